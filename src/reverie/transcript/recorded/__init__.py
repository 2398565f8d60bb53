"""Sessions that other programs recorded, read as transcripts of ours.

`read` takes a file's lines and gives entries, in an order the fold follows, and says of
each row it could not place why. It reads and never writes; blocks keep their text.
"""

from __future__ import annotations

from collections.abc import Iterable

from reverie.errors import ImportFailed, InvalidMessage
from reverie.transcript.blocks import Json, parse
from reverie.transcript.recorded import claude_code, pi
from reverie.transcript.recorded.rows import Recorded, RecordedRow, rows_of

__all__ = ["Recorded", "RecordedRow", "is_ours", "read"]


def read(lines: Iterable[str], name: str = "") -> Recorded:
    """A recorded session of any kind we know, told by its first rows."""
    rows, faults = rows_of(lines)
    if not rows:
        raise ImportFailed("no row of this file can be read", where=name, do=_KNOWN)
    kinds = {str(row.value.get("type")) for row in rows}
    if any("uuid" in row.value for row in rows):
        return claude_code.read(rows, faults)
    if "session" in kinds and "message" in kinds:
        return pi.read(rows, faults)
    raise ImportFailed("this is not a session file that can be read", where=name, do=_KNOWN)


_KNOWN = "Give a session file (.jsonl) of Claude Code, pi or Reverie"


def is_ours(first_line: str) -> bool:
    """Whether a file begins as one of our own transcripts does."""
    try:
        value: Json = parse(first_line)
    except InvalidMessage:
        return False
    return isinstance(value, dict) and "v" in value and "sum" in value
