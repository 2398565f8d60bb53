"""The secret scanner: how long it takes, beside detect-secrets on the same texts, and on
texts that are made to be slow. Needs the memory documents (`REVERIE_SHARED`); the comparison
needs `pip install detect-secrets` and is left out without it.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.__main__ import ROOT_SHARED, Row
from reverie.memory.secrets import scan

SIZE = 200_000
LIMIT = 0.1
HOSTILE = {
    "`a`": "a" * SIZE,
    "`a.` x 25k": "a." * 25_000,
    "`key` and spaces": "key" + " " * SIZE,
}
MORE = {
    "`key=` over and over": "key=" * (SIZE // 4),
    "escapes": "\\u005c" * (SIZE // 6),
    "lines of one word": "word123\n" * (SIZE // 8),
}


def measure(out: Path) -> Iterator[Row]:
    del out
    for name, text in HOSTILE.items():
        took = least(lambda text=text: scan(text))
        yield f"200 KB of {name}", f"{1000 * took:.0f} ms", "100 ms", took <= LIMIT
    for name, text in MORE.items():
        took = least(lambda text=text: scan(text))
        yield f"200 KB of {name}", f"{1000 * took:.0f} ms", "", None
    path = ROOT_SHARED / "data" / "memory_docs_dev.jsonl.gz"
    if not path.is_file():
        yield "memory documents", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    with gzip.open(path) as file:
        texts: list[str] = [json.loads(line)["body"] for line in file]
    prose = "".join(texts)[:SIZE]
    took = least(lambda: scan(prose))
    yield "200 KB of memory documents", f"{1000 * took:.0f} ms", "100 ms", took <= LIMIT
    ten = least(lambda: scan(prose * 10))
    yield "ten times as much", f"{ten / took:.1f} x", "12 x", ten <= 12 * took
    yield from beside(texts)


def beside(texts: list[str]) -> Iterator[Row]:
    """Ours against theirs over all documents, and how many each would refuse."""
    ours = least(lambda: [scan(text) for text in texts], times=3)
    blocked = sum(bool(scan(text)) for text in texts)
    yield f"refused of {len(texts)} clean documents", str(blocked), "0", blocked == 0
    if importlib.util.find_spec("detect_secrets") is None:
        yield "detect-secrets", "not installed", "", None
        return
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, f"{number}.md") for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            Path(file).write_text(text, encoding="utf-8")
        refused = theirs(files)
        took = least(lambda: theirs(files), times=2)
    yield "refused by detect-secrets", str(refused), "", None
    yield "time against detect-secrets", f"{ours / took:.2f} x", "1 x", ours <= took


def theirs(files: list[str]) -> int:
    """Files in which detect-secrets, as it is shipped, sees a secret."""
    settings: Any = importlib.import_module("detect_secrets.settings")
    search: Any = importlib.import_module("detect_secrets.core.scan")
    with settings.default_settings():
        return sum(bool(list(search.scan_file(file))) for file in files)


def least(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds, the least of several."""
    work()
    best = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_SELF)
        work()
        after = resource.getrusage(resource.RUSAGE_SELF)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best
