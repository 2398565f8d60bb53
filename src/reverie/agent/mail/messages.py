"""A message from one agent to another: a plain value, its form in a file, its form to a model.

In a file it is one JSON object with a signature over all the rest. To a model it stands in a frame
that names the sender, which its text cannot close; in a transcript its origin says whose and
which one it is, so that whoever reads the transcript knows what was delivered. Nothing here opens
a file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from reverie.errors import InvalidInput, InvalidMessage
from reverie.light import dataclass
from reverie.session.attachments import frame_text
from reverie.text.safety import clean, whole
from reverie.transcript.blocks import text_block
from reverie.transcript.records import Entry, UserMessage

LetterKind: TypeAlias = Literal[
    "message", "result", "shutdown_request", "shutdown_response", "plan_approval_response"
]
ORIGIN = "agent"
LEAD = "lead"
EVERYBODY = "*"
MAX_TEXT = 20_000
"""Characters of one message; what is longer belongs into a file."""
MAX_BYTES = 8 * MAX_TEXT
"""Bytes of a message in a file, at most."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
HERE = "@here"
"""Behind a sender's name: the numbers of this process, which are not those of its files."""
_ORIGIN = re.compile(rf"{ORIGIN}:({NAME.pattern}(?:{HERE})?):(\d{{1,15}})")


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """One message. `number` counts those of one sender to one recipient, from 1 on."""

    sender: str
    to: str
    text: str
    summary: str = ""
    kind: LetterKind = "message"
    approve: bool | None = None  # in an answer: yes or no
    number: int = 0
    at: float = 0.0
    here: bool = False  # it never was in a file

    @property
    def series(self) -> str:
        """Whose numbers its own is one of."""
        return f"{self.sender}{HERE}" if self.here else self.sender

    def message(self) -> UserMessage:
        """As the recipient's model gets it."""
        name = f' from="{self.sender}" type="{self.kind}"'
        answer = "" if self.approve is None else f' approve="{str(self.approve).lower()}"'
        text = frame_text("agent-message", self.text, f"{name}{answer}")
        return UserMessage((text_block(text),), f"{ORIGIN}:{self.series}:{self.number}")


class MailKeys(Protocol):
    """What letters are signed with."""

    def key(self, sender: str, to: str) -> bytes | None:
        """The key for letters from one to the other; None where this side has none."""
        ...


@dataclass(frozen=True, slots=True)
class LeaderKeys:
    """Those of a lead, which can make every key."""

    master: bytes

    def secret(self, sender: str) -> bytes:
        """What a sender signs with: its own, and nobody else's."""
        return _mac(self.master, sender.encode())

    def key(self, sender: str, to: str) -> bytes | None:
        return _mac(self.secret(sender), to.encode())


@dataclass(frozen=True, slots=True)
class TeammateKeys:
    """Those of a teammate: it can sign as itself, and check what the others send to it."""

    name: str
    own: bytes
    others: dict[str, bytes]

    def key(self, sender: str, to: str) -> bytes | None:
        if sender == self.name:
            return _mac(self.own, to.encode())
        return self.others.get(sender) if to == self.name else None


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def check_message(letter: AgentMessage) -> AgentMessage:
    """The letter as it may be sent, or InvalidInput."""
    if len(letter.text) > MAX_TEXT:
        raise InvalidInput(
            f"a message has at most {MAX_TEXT:,} characters, not {len(letter.text):,}",
            do="Write the rest into a file and name it",
        )
    if letter.kind.endswith("_response") and letter.approve is None:
        raise InvalidInput(f"a {letter.kind} says yes or no", do="Give approve: true or false")
    return replace(letter, text=whole(letter.text), summary=whole(letter.summary))


def encode(letter: AgentMessage, key: bytes) -> bytes:
    """The bytes of a file."""
    value = asdict(letter)
    value.pop("here")
    return json.dumps({**value, "mac": _signature(value, key)}, ensure_ascii=False).encode()


def _signature(value: dict[str, Any], key: bytes) -> str:
    return _mac(key, json.dumps(value, sort_keys=True).encode()).hex()


def decode(data: bytes, keys: MailKeys, sender: str, to: str, number: int) -> AgentMessage:
    """The letter in a file that lies where this sender's would; InvalidMessage says why not."""
    if len(data) > MAX_BYTES:
        raise InvalidMessage(f"it has more than {MAX_BYTES:,} bytes")
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage("it is torn, or no message") from error
    if not isinstance(value, dict):
        raise InvalidMessage("it is no message")
    fields = cast("dict[str, Any]", value)
    signed = fields.pop("mac", "")
    key = keys.key(sender, to)
    if key is None or not isinstance(signed, str):
        raise InvalidMessage("nobody of that name may write here")
    made = _signature(fields, key)
    if not hmac.compare_digest(signed.encode("utf-8", "replace"), made.encode()):
        raise InvalidMessage("its signature is not the sender's")
    try:
        letter = AgentMessage(**fields)
    except TypeError as error:
        raise InvalidMessage("it is of another version") from error
    if not _is_well_formed(fields):
        raise InvalidMessage("it is of another version")
    if (letter.sender, letter.to, letter.number) != (sender, to, number):
        raise InvalidMessage("it was meant for another place")
    if letter.kind not in get_args(LetterKind):
        raise InvalidMessage("it is of no known kind")
    return letter


def _is_well_formed(fields: dict[str, Any]) -> bool:
    """Whether each value is of its kind: a signature says who wrote, not that it is right."""
    texts = (fields.get(name, "") for name in ("sender", "to", "text", "summary", "kind"))
    if not all(isinstance(text, str) for text in texts) or "here" in fields:
        return False
    if len(fields.get("text", "")) > MAX_TEXT or type(fields.get("number")) is not int:
        return False
    at = fields.get("at", 0)
    return fields.get("approve") in (None, True, False) and type(at) in (int, float)


def truncate_result(text: str) -> str:
    """A result as a letter can carry it."""
    if len(text) <= MAX_TEXT:
        return text
    note = f"\n[cut here: {len(text):,} characters in all; its transcript has the rest]"
    return text[: MAX_TEXT - len(note)] + note


def check_name(name: str) -> str:
    """A name that a mailbox can have, or InvalidInput."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            "this cannot name an agent", where=clean(name)[:80] or "(empty)", do="Use a-z 0-9 _ -"
        )
    return name


def delivered_numbers(entries: Iterable[Entry]) -> dict[str, int]:
    """The newest number of each series that a transcript holds."""
    found: dict[str, int] = {}
    for entry in entries:
        record = entry.record
        if isinstance(record, UserMessage) and (known := _ORIGIN.fullmatch(record.origin)):
            found[known[1]] = max(found.get(known[1], 0), int(known[2]))
    return found
