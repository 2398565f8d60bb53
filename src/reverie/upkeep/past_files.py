"""Session files to learn from, of Claude Code, pi and our own, packed or plain; only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from reverie.errors import InvalidMessage
from reverie.session.extraction.past import PastSession
from reverie.store.journal import unseal
from reverie.transcript import recorded
from reverie.transcript.codec import decode
from reverie.transcript.recorded import is_ours
from reverie.transcript.records import Entry, Started
from reverie.upkeep import transfer


def past_in(path: Path, told: Callable[[str], object]) -> PastSession:
    """The recorded session in a file; what of it cannot be read is told."""
    lines, faults = transfer.lines_of(path)
    for fault in faults:
        told(f"{path}: {fault}")
    if lines and is_ours(lines[0]):
        return _ours(lines, path)
    found = recorded.read(lines, str(path))
    name = found.session or path.name.partition(".")[0]
    return PastSession(name, found.entries, str(path), found.program, found.cwd)


def _ours(lines: Sequence[str], path: Path) -> PastSession:
    entries: list[Entry] = []
    for text in lines:
        found = unseal(text.encode("utf-8", "surrogateescape"))
        try:
            entries.append(decode((found[0].decode() if found else text), lambda _: None))
        except (InvalidMessage, UnicodeDecodeError):
            continue  # a head whose parts lie elsewhere, or a torn line: nobody's words
    started = next((e.record for e in entries if isinstance(e.record, Started)), None)
    name = started.session if started else path.name.partition(".")[0]
    return PastSession(name, tuple(entries), str(path), "reverie", started.cwd if started else "")
