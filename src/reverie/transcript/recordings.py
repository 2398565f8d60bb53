"""Recorded sessions by their program; pi's.

Sessions that other programs recorded, read as transcripts of ours.

`read` takes a file's lines and gives entries, in an order the fold follows, and says of
each row it could not place why. It reads and never writes; blocks keep their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from reverie.errors import ImportFailed, InvalidMessage
from reverie.transcript import claude_code
from reverie.transcript.blocks import Block, Json, Object, block_of, parse, text_block
from reverie.transcript.claude_code import RecordedRow, RecordedSession, rows_of, when
from reverie.transcript.messages import count
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

__all__ = ["RecordedRow", "RecordedSession", "is_ours", "read"]


def read(lines: Iterable[str], name: str = "") -> RecordedSession:
    """A recorded session of any kind we know, told by its first rows."""
    rows, faults = rows_of(lines)
    if not rows:
        raise ImportFailed("no row of this file can be read", where=name, do=_KNOWN)
    kinds = {str(row.value.get("type")) for row in rows}
    if any("uuid" in row.value for row in rows):
        return claude_code.read_claude_code(rows, faults)
    if "session" in kinds and "message" in kinds:
        return read_pi(rows, faults)
    raise ImportFailed("this is not a session file that can be read", where=name, do=_KNOWN)


_KNOWN = "Give a session file (.jsonl) of Claude Code, pi or Reverie"


def is_ours(first_line: str) -> bool:
    """Whether a file begins as one of our own transcripts does."""
    try:
        value: Json = parse(first_line)
    except InvalidMessage:
        return False
    return isinstance(value, dict) and "v" in value and "sum" in value


# --- The pi agent's session files: one row a message, in order, without ids.


def read_pi(rows: Sequence[RecordedRow], faults: Sequence[str]) -> RecordedSession:
    out: list[Entry] = []
    places: dict[int, str] = {}
    left_out: dict[int, str] = {}
    for index, row in enumerate(rows):
        record = _record(row, rows, index, places, out)
        if record is None:
            left_out[row.number] = f"a row of type {row.string('type')} says nothing"
            continue
        ident = f"pi-{row.number}"
        at = when(row.value.get("timestamp"))
        out.append(Entry(ident, out[-1].id if out else "", at, record))
        places[row.number] = ident
    head = next((r for r in rows if r.string("type") == "session"), rows[0])
    return RecordedSession(
        "pi", head.string("id"), head.string("cwd"), tuple(out), places, left_out, tuple(faults)
    )


def _record(
    row: RecordedRow,
    rows: Sequence[RecordedRow],
    index: int,
    places: dict[int, str],
    out: Sequence[Entry],
) -> Record | None:
    if row.string("type") == "compaction" and out:
        return _compaction(row, rows, index, places, out)
    if row.string("type") != "message":
        return None
    message = row.object("message")
    match message.get("role"):
        case "user":
            return UserMessage(row.blocks())
        case "assistant":
            return _assistant(row, message)
        case "toolResult":
            return UserMessage((_result(message),), "tool")
        case "bashExecution":
            said = f"$ {message.get('command', '')}\n{message.get('output', '')}"
            return UserMessage((text_block(said),), "client")
        case _:
            return None


def _assistant(row: RecordedRow, message: Object) -> AssistantMessage:
    blocks = tuple(_block(b) for b in row.blocks())
    used = message.get("usage")
    usage = None
    if isinstance(used, dict):
        usage = Usage(
            count(used.get("input")),
            count(used.get("cacheRead")),
            count(used.get("cacheWrite")),
            count(used.get("output")),
        )
    return AssistantMessage(
        blocks,
        model=str(message.get("model") or ""),
        provider=str(message.get("provider") or ""),
        message_id=f"pi-{row.number}",
        stop_reason=str(message.get("stopReason") or ""),
        usage=usage if usage and usage.total else None,
    )


def _block(block: Block) -> Block:
    """A block of pi's in the Messages API's form."""
    value = block.value
    if block.type == "toolCall":
        return block_of(
            {
                "type": "tool_use",
                "id": value.get("id"),
                "name": value.get("name"),
                "input": value.get("arguments") or {},
            }
        )
    if block.type == "thinking":
        signature = value.get("thinkingSignature")
        thinking = {"type": "thinking", "thinking": value.get("thinking")}
        return block_of({**thinking, "signature": signature} if signature else thinking)
    return block


def _result(message: Object) -> Block:
    result: dict[str, Json] = {
        "type": "tool_result",
        "tool_use_id": message.get("toolCallId"),
        "content": message.get("content"),
    }
    if message.get("isError"):
        result["is_error"] = True
    return block_of(result)


def _compaction(
    row: RecordedRow,
    rows: Sequence[RecordedRow],
    index: int,
    places: dict[int, str],
    out: Sequence[Entry],
) -> Record:
    """`firstKeptEntryIndex` counts the file's rows; what stands before it is summarised."""
    kept = cast("object", row.value.get("firstKeptEntryIndex"))
    limit = kept if isinstance(kept, int) and 0 < kept <= index else index
    before = [places[r.number] for r in rows[:limit] if r.number in places]
    last = before[-1] if before else out[-1].id
    return Replaced(
        out[0].id,
        last,
        (Stand("user", (text_block(str(row.value.get("summary") or "")),)),),
        "compaction",
        boundary=Boundary(tokens_before=count(row.value.get("tokensBefore"))),
    )
