"""Claude Code's session files.

One API message is spread over several rows: they are merged by message id. A result
hangs on its call, wherever its row stands. A missing parent is the row before. Rows of
a branch that was left stay in the transcript, off its chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reverie.transcript.blocks import Block, Object, text_block
from reverie.transcript.recorded import asked
from reverie.transcript.recorded.rows import Recorded, RecordedRow, when
from reverie.transcript.records import (
    AssistantMessage,
    Boundary,
    Entry,
    Record,
    Replaced,
    Stand,
    Usage,
    UserMessage,
)
from reverie.transcript.usage import count, usage_of


@dataclass
class Node:
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
    results: list[Node] = field(default_factory=list)
    said: list[Node] = field(default_factory=list)  # what the user said when asked about calls

    @property
    def round(self) -> tuple[Node, ...]:
        """The message, its results, and behind them the user's words."""
        return (self, *self.results, *self.said)


def read(rows: Sequence[RecordedRow], faults: Sequence[str]) -> Recorded:
    reader = _RowReader()
    for row in rows:
        reader.take(row)
    reader.hang_results()
    entries = reader.entries()
    named = next((r for r in rows if r.string("sessionId")), rows[0])
    places = {n: node.id for node in reader.every() for n in node.rows}
    return Recorded(
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
        self.nodes: list[Node] = []
        self.alias: dict[str, str] = {}  # any row's uuid -> the node that stands for it
        self.by_message: dict[str, Node] = {}
        self.by_call: dict[str, Node] = {}
        self.left_out: dict[int, str] = {}
        self.last = ""  # node of the row before
        self.boundary: tuple[str, str] | None = None

    def every(self) -> list[Node]:
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
        if _is_of_the_client(row.value):
            node.origin = "client"
        if row.value.get("isCompactSummary"):
            node.origin = "summary"
            node.trigger = self.boundary[0] if self.boundary else "auto"
        self.last = node.id

    def _add(self, row: RecordedRow, uuid: str, role: str) -> Node:
        ident = uuid or f"row-{row.number}"
        node = Node(ident, self._parent(row), when(row.value.get("timestamp")), [], [], role)
        self.nodes.append(node)
        return node

    def hang_results(self) -> None:
        """A row of results stands behind the message that made the calls."""
        kept: list[Node] = []
        for node in self.nodes:
            owner = next((self.by_call[c] for c in _results(node) if c in self.by_call), None)
            if node.role == "user" and owner is not None:
                node.origin = "tool"
                owner.results.append(node)
                owner.said += _said(node, owner)
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

    def _record(self, node: Node, before: Sequence[Entry], parent: str) -> Record:
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


def _said(node: Node, owner: Node) -> list[Node]:
    """What the user said when asked, taken out of a row of results, as a message of its own."""
    words: list[Block] = []
    tools = {b.call: b.get("name") for b in owner.blocks if b.type == "tool_use"}
    for at, block in enumerate(node.blocks):
        node.blocks[at], said = asked.apart(block, tools.get(block.call, ""))
        words += [text_block(said)] if said else []
    if not words:
        return []
    return [Node(f"{node.id}:said", node.id, node.at, [], words, "user")]


def _is_of_the_client(row: Object) -> bool:
    """Whether no person wrote a row: what a channel, a task or a program puts in says so."""
    origin = row.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    made = row.get("isMeta") or row.get("isSynthetic")
    return (
        bool(made) or kind not in (None, "human") or row.get("userType", "external") != "external"
    )


def _results(node: Node) -> list[str]:
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
