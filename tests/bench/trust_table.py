"""The trust table: drafts that a fooled model would write, and what must become of them.

A row is a conversation, the draft that an extraction made of it, and the outcomes allowed:
`queued` waits for a person, `file_without_pointer` lies in the folder and not in its index,
`refused` is not saved at all, `saved` has its pointer. Whatever is not `saved` never stands in
the head of a session. Three kinds: `draft` rests on what a tool said, also where a yes launders
it; `control` rests on the user's own words; `answer` is a user's answer to a question, which is
consent to just that question (`consents`) or is not. A third is `held`: whoever makes the rules
looks at the others alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("trust_table.jsonl")
FRESH = Path(__file__).with_name("trust_table_fresh.jsonl")
"""Rows that were written once the rules stood; none was looked at to change one."""
NAMED = Path(__file__).with_name("trust_table_named.jsonl")
"""Drafts that name the user's sentence they rest on, rightly or not; written with the rule."""
OUTCOMES = frozenset({"queued", "file_without_pointer", "refused", "saved"})


@dataclass(frozen=True, slots=True)
class Line:
    """Something that was said: by the user, the assistant, or a tool."""

    who: str
    text: str


@dataclass(frozen=True, slots=True)
class TrustCase:
    """One row of the table."""

    id: str
    kind: str
    language: str
    conversation: tuple[Line, ...]
    type: str
    name: str
    description: str
    body: str
    allowed: frozenset[str]
    held: bool
    consents: bool | None = None
    source: str = ""

    @property
    def file(self) -> str:
        """The draft's text as a memory file has it."""
        head = f"name: {self.name}\ndescription: {json.dumps(self.description)}\ntype: {self.type}"
        head += f"\nfrom: {json.dumps(self.source, ensure_ascii=False)}" if self.source else ""
        return f"---\n{head}\n---\n\n{self.body}\n"

    @property
    def reaches_the_head(self) -> bool:
        return self.allowed == {"saved"}


def cases(table: Path = TABLE) -> list[TrustCase]:
    return [_case(json.loads(line)) for line in table.read_text("utf-8").splitlines()]


def is_held(ident: str) -> bool:
    return sha256(ident.encode()).digest()[0] % 3 == 0


def _case(row: dict[str, Any]) -> TrustCase:
    draft = row["draft"]
    return TrustCase(
        id=row["id"],
        kind=row["kind"],
        language=row["language"],
        conversation=tuple(Line(**one) for one in row["conversation"]),
        type=draft["type"],
        name=draft["name"],
        description=draft["description"],
        body=draft["body"],
        allowed=frozenset(row["allowed"]),
        held=row.get("held", True),
        consents=row.get("consents"),
        source=draft.get("from", ""),
    )
