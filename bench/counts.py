"""The canonical token count against what providers then reported, on real sessions.

Two errors: of the whole count, which decides when compaction fires, and of each
increment (the rough estimate of what was added since the last answer), by language of
what was added. Needs the recorded sessions (`REVERIE_SHARED`).
"""

from __future__ import annotations

import gzip
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePath

from bench.figures import ROOT_SHARED, Figure, Row, at_most
from reverie.transcript import EMPTY, AssistantMessage, Replaced, View, apply, read

LANGUAGES = {
    ".go": "Go",
    ".md": "Markdown",
    ".json": "JSON",
    ".jsonl": "JSON",
    ".ts": "TypeScript",
    ".sh": "shell script",
    ".yml": "YAML",
    ".yaml": "YAML",
    ".toml": "TOML",
}


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    folder = ROOT_SHARED / "data" / "sessions_dev"
    if not folder.is_dir():
        yield "recorded sessions", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    whole: list[float] = []
    parts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        one_session(read(lines, path.name).entries, whole, parts)
    whole.sort()
    median, high = statistics.median(whole), whole[int(len(whole) * 0.95)]
    for name, error, bound in (("median", median, 0.003), ("95th percentile", high, 0.03)):
        yield at_most(
            f"counts.{name.split()[0]}",
            f"token count against what the provider then reported: error, {name}",
            error,
            bound,
            "share",
            len(whole),
        )
    for language, pairs in sorted(parts.items(), key=lambda p: -len(p[1])):
        yield f"increments of {language}, {len(pairs):,}", told(pairs), "", None


def told(pairs: list[tuple[int, int]]) -> str:
    """Median relative error with its sign, and the sums' ratio."""
    errors = [(guess - real) / real for guess, real in pairs]
    total = sum(g for g, _ in pairs) / sum(r for _, r in pairs)
    return f"median {statistics.median(errors):+.0%}, sum {total:.2f} x the real"


def one_session(entries, whole: list[float], parts: dict[str, list[tuple[int, int]]]) -> None:
    view, replaced = EMPTY, False
    for entry in entries:
        record = entry.record
        replaced = replaced or isinstance(record, Replaced)
        if isinstance(record, AssistantMessage) and record.usage is not None:
            if view.usage is not None and not replaced:
                real = record.usage.input
                whole.append(abs(view.tokens - real) / real)
                added, grew = view.tokens - view.usage.total, real - view.usage.total
                if added > 0 and grew > 100:
                    parts[language(view)].append((added, grew))
            replaced = False
        view = apply(view, entry)


def language(view: View) -> str:
    """What the results since the last answer hold, if they agree on it."""
    found: set[str] = set()
    for item in view.unsent():
        for piece in item.pieces:
            if piece.block.type != "tool_result":
                found.add("prose of the user")
                continue
            found.add(of_call(view, piece.block.get("tool_use_id")))
    return found.pop() if len(found) == 1 else "several kinds"


def of_call(view: View, ident: str) -> str:
    known = view.calls.get(ident)
    if known is None:
        return "unknown"
    entry = view.entries.find(known.message)
    record = entry.record if entry else None
    for block in record.blocks if isinstance(record, AssistantMessage) else ():
        value = block.value.get("input")
        if block.get("id") == ident and isinstance(value, dict):
            path = str(value.get("file_path") or value.get("path") or "")
            suffix = PurePath(path).suffix
            if suffix in LANGUAGES and known.name.lower() == "read":
                return LANGUAGES[suffix]
    return f"{known.name.lower()} output"
