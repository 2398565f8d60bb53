"""Claude Code's session files, and rows of any recording.

Claude Code's session files.

One API message is spread over several rows: they are merged by message id. A result
hangs on its call, wherever its row stands. A missing parent is the row before. Rows of
a branch that was left stay in the transcript, off its chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reverie.errors import InvalidMessage
from reverie.transcript.blocks import (
    Block,
    Json,
    Object,
    block_from,
    dump,
    elements,
    members,
    parse,
    text_block,
)
from reverie.transcript.messages import count, usage_of
from reverie.transcript.records import (
    AssistantMessage,
    Boundary,
    Entry,
    Record,
    Replaced,
    Stand,
    Usage,
    UserMessage,
    speaker,
)


@dataclass
class RecordedNode:
    """One entry in the making."""

    id: str
    parent: str
    at: float
    rows: list[int]
    blocks: list[Block]
    role: str
    message: Object = field(default_factory=dict)
    origin: str = "user"
    trigger: str = ""
    outcome: Json = None  # what the client noted of a result, beside what it sent
    results: list[RecordedNode] = field(default_factory=list)
    said: list[RecordedNode] = field(
        default_factory=list
    )  # what the user said when asked about calls

    @property
    def round(self) -> tuple[RecordedNode, ...]:
        """The message, its results, and behind them the user's words."""
        return (self, *self.results, *self.said)


def read_claude_code(rows: Sequence[RecordedRow], faults: Sequence[str]) -> RecordedSession:
    reader = _RowReader()
    for row in rows:
        reader.take(row)
    reader.hang_results()
    entries = reader.entries()
    named = next((r for r in rows if r.string("sessionId")), rows[0])
    places = {n: node.id for node in reader.every() for n in node.rows}
    return RecordedSession(
        "claude-code",
        named.string("sessionId"),
        named.string("cwd"),
        tuple(entries),
        places,
        reader.left_out,
        tuple(faults),
    )


class _RowReader:
    def __init__(self) -> None:
        self.nodes: list[RecordedNode] = []
        self.alias: dict[str, str] = {}  # any row's uuid -> the node that stands for it
        self.by_message: dict[str, RecordedNode] = {}
        self.by_call: dict[str, RecordedNode] = {}
        self.left_out: dict[int, str] = {}
        self.last = ""  # node of the row before
        self.boundary: tuple[str, str] | None = None

    def every(self) -> list[RecordedNode]:
        return [n for node in self.nodes for n in node.round]

    def take(self, row: RecordedRow) -> None:
        kind, uuid = row.string("type"), row.string("uuid")
        if row.value.get("isSidechain"):
            self.left_out[row.number] = "a sub-agent's row"
            return
        if uuid and uuid in self.alias:
            self.left_out[row.number] = "the same row twice"
            return
        if kind == "assistant":
            self._assistant(row, uuid)
        elif kind == "user":
            self._user(row, uuid)
        else:
            self._own(row, kind, uuid)

    def _own(self, row: RecordedRow, kind: str, uuid: str) -> None:
        """A row of the client's own: nothing was said in it. What follows it follows its parent."""
        self.left_out[row.number] = f"a row of the client's own ({kind or 'no type'})"
        if row.string("subtype") == "compact_boundary":
            found = row.object("compactMetadata").get("trigger")
            self.boundary = ("manual" if found == "manual" else "auto", uuid)
        if uuid:
            self.alias[uuid] = self._parent(row)

    def _parent(self, row: RecordedRow) -> str:
        for key in ("parentUuid", "logicalParentUuid"):
            found = self.alias.get(row.string(key))
            if found is not None:
                return found
        return self.last

    def _assistant(self, row: RecordedRow, uuid: str) -> None:
        message = row.object("message")
        name = str(message.get("id") or uuid)
        node = self.by_message.get(name)
        if node is None:
            node = self._add(row, uuid, "assistant")
            self.by_message[name] = node
        node.rows.append(row.number)
        self.alias[uuid] = node.id
        blocks = row.blocks()
        node.blocks.extend(blocks)
        if _output(message) >= _output(node.message):
            node.message = message
        for block in blocks:
            if block.type == "tool_use":
                self.by_call.setdefault(block.call, node)
        self.last = node.id

    def _user(self, row: RecordedRow, uuid: str) -> None:
        node = self._add(row, uuid, "user")
        node.rows.append(row.number)
        node.blocks.extend(row.blocks())
        self.alias[uuid] = node.id
        node.outcome = row.value.get("toolUseResult")
        if _is_of_the_client(row.value):
            node.origin = "client"
        if row.value.get("isCompactSummary"):
            node.origin = "summary"
            node.trigger = self.boundary[0] if self.boundary else "auto"
        self.last = node.id

    def _add(self, row: RecordedRow, uuid: str, role: str) -> RecordedNode:
        ident = uuid or f"row-{row.number}"
        node = RecordedNode(
            ident, self._parent(row), when(row.value.get("timestamp")), [], [], role
        )
        self.nodes.append(node)
        return node

    def hang_results(self) -> None:
        """A row of results stands behind the message that made the calls."""
        kept: list[RecordedNode] = []
        for node in self.nodes:
            owner = next((self.by_call[c] for c in _results(node) if c in self.by_call), None)
            if node.role == "user" and owner is not None:
                owner.said += _extract_user_words(node, owner)
                node.origin = "tool"
                owner.results.append(node)
            else:
                kept.append(node)
        self.nodes = kept

    def entries(self) -> list[Entry]:
        """In file order, each round in one piece, each parent the end of its round."""
        end: dict[str, str] = {}
        for node in self.nodes:
            for one in node.round:
                end[one.id] = node.round[-1].id
        out: list[Entry] = []
        seen: set[str] = set()
        for node in self.nodes:
            parent = end.get(node.parent, "")
            if parent not in seen:
                parent = out[-1].id if out else ""
            for one in node.round:
                out.append(Entry(one.id, parent, one.at, self._record(one, out, parent)))
                seen.add(one.id)
                parent = one.id
        return out

    def _record(self, node: RecordedNode, before: Sequence[Entry], parent: str) -> Record:
        blocks = tuple(node.blocks)
        if node.role == "assistant":
            return AssistantMessage(
                blocks,
                model=str(node.message.get("model") or ""),
                provider="anthropic",
                message_id=str(node.message.get("id") or ""),
                stop_reason=str(node.message.get("stop_reason") or ""),
                usage=_usage(node.message, blocks),
            )
        if node.origin == "summary" and before:
            return Replaced(
                before[0].id,
                parent,
                (Stand("user", blocks),),
                "compaction",
                boundary=Boundary("manual" if node.trigger == "manual" else "auto"),
            )
        return UserMessage(blocks, node.origin)


def _extract_user_words(node: RecordedNode, owner: RecordedNode) -> list[RecordedNode]:
    """What the user said when asked, or beside a result, taken out of a row of results, as a
    message of its own."""
    words = [b for b in node.blocks if speaker(b) == "user"]
    node.blocks = [b for b in node.blocks if speaker(b) == "tool"]
    if node.outcome is None or _is_of_the_user(node.outcome):
        tools = {b.call: b.get("name") for b in owner.blocks if b.type == "tool_use"}
        for at, block in enumerate(node.blocks):
            node.blocks[at], said = apart(block, tools.get(block.call, ""))
            words += [text_block(said)] if said else []
    if not words:
        return []
    said = RecordedNode(f"{node.id}:said", node.id, node.at, [], words, "user")
    said.origin = node.origin
    return [said]


def _is_of_the_user(outcome: Json) -> bool:
    """Whether a client noted that a person refused a call or answered its questions."""
    if isinstance(outcome, dict):
        return "answers" in outcome
    return isinstance(outcome, str) and outcome.startswith(_NOTED)


def _is_of_the_client(row: Object) -> bool:
    """Whether no person wrote a row: what a channel, a task or a program puts in says so."""
    origin = row.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    made = row.get("isMeta") or row.get("isSynthetic")
    return (
        bool(made) or kind not in (None, "human") or row.get("userType", "external") != "external"
    )


def _results(node: RecordedNode) -> list[str]:
    return [b.call for b in node.blocks if b.type == "tool_result"]


def _output(message: Object) -> int:
    usage = message.get("usage")
    return count(usage.get("output_tokens")) if isinstance(usage, dict) else -1


def _usage(message: Object, blocks: Sequence[Block]) -> Usage | None:
    """The usage recorded; an output count that is a stream's placeholder is estimated."""
    found = message.get("usage")
    if not isinstance(found, dict) or message.get("model") == "<synthetic>":
        return None
    used = usage_of(found)
    return replace(used, output=max(used.output, sum(b.tokens for b in blocks)))


# --- What a person said when a client asked them, found in the results that clients put it into.
#
# Clients hand a person's correction, or their answer to a question, to the model as a tool result.
# Known phrases are told apart: the result keeps the client's own sentence, the words are the
# user's. What the client noted beside a result says whose they are, where it did; else the phrase
# must be all of the result, and of a call that failed or that asks. Nothing here guesses.


ASKS = "AskUserQuestion"
_NOTED = ("User rejected", "Error: The user doesn't want to proceed")
_PARTLY = re.compile(r"(?m)^[ \t]*Answer: (.+)$")  # given before the user asked back
_REJECTED = re.compile(
    r"(?s)(The user doesn't want to proceed with this tool use\. The tool use was rejected"
    r"[^\n]{0,200}, the user said:)\n(?!The user wants to clarify these questions)(.+)"
)
_ANSWERED = re.compile(
    r"(?s)(User has answered your questions:) (.+?)\."
    r"(?: You can now continue with the user's answers in mind\.)?"
)
_QUOTES = re.compile(
    r"The user doesn't want to proceed with this tool use\. The tool use was rejected[^\n]{0,200}, "
    r"the user said:\n|User has answered your questions: "
)


def quotes_user(text: str) -> bool:
    """Whether a result is a client's sentence with what the user said when asked. Any tool could
    write the same, so it is no proof of whose words these are."""
    return _QUOTES.match(text) is not None


def apart(block: Block, tool: str) -> tuple[Block, str]:
    """A result without the user's words, and those words; the block itself where it has none."""
    content = block.value.get("content") if block.type == "tool_result" else None
    if not isinstance(content, str):
        return block, ""
    found = None
    if block.value.get("is_error") is True:
        found = _REJECTED.fullmatch(content)
        if found is None and _QUOTES.match(content):
            return block, "\n".join(_PARTLY.findall(content))
    elif tool == ASKS:
        found = _ANSWERED.fullmatch(content)
    if found is None or not found[2].strip():
        return block, ""
    return block.with_member("content", dump(found[1])), found[2].strip()


# --- Rows of a foreign session file, and what reading them gives.


LATEST = 253_402_300_799  # the last second of the year 9999


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One line of the file."""

    number: int
    text: str
    value: Object

    def string(self, key: str) -> str:
        found = self.value.get(key)
        return found if isinstance(found, str) else ""

    def object(self, key: str) -> Object:
        found = self.value.get(key)
        return found if isinstance(found, dict) else {}

    def raw(self, *path: str) -> str:
        """The text of a nested member, as it stands in the file."""
        text = self.text
        for key in path:
            text = members(text)[key][0]
        return text

    def blocks(self) -> tuple[Block, ...]:
        """The content of the row's message."""
        content = self.object("message").get("content")
        if isinstance(content, str):
            return (block_from(*_text_block(content, self.raw("message", "content"))),)
        if not isinstance(content, list):
            return ()
        parts = elements(self.raw("message", "content"))
        return tuple(block_from(raw, value) for raw, value in parts if isinstance(value, dict))


def _text_block(text: str, raw: str) -> tuple[str, Json]:
    return f'{{"type":"text","text":{raw}}}', {"type": "text", "text": text}


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A recorded session as entries, and what became of each row."""

    program: str
    session: str
    cwd: str
    entries: tuple[Entry, ...]
    places: dict[int, str]  # row number -> the entry it went into
    left_out: dict[int, str]  # row number -> why it has none
    faults: tuple[str, ...]


def rows_of(lines: Iterable[str]) -> tuple[list[RecordedRow], list[str]]:
    """The rows that can be read; the others are named, never fatal."""
    rows: list[RecordedRow] = []
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            value = parse(text, f"row {number}")
        except InvalidMessage as error:
            faults.append(str(error))
            continue
        if isinstance(value, dict):
            rows.append(RecordedRow(number, text, value))
        else:
            faults.append(f"row {number} is not an object")
    return rows, faults


def when(value: Json) -> float:
    """A time as seconds since the epoch; 0 where there is none that could be written again."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value).timestamp()
        else:
            at = float(value) / 1000 if isinstance(value, (int, float)) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return at if 0 <= at <= LATEST else 0.0
