"""A plugin of pytest for `scripts.mutants`: the tests that come by a damaged line are run.

One run of a file of tests notes how long each takes and by which lines of the damaged modules it
comes; later ones run the tests that come by given lines, the quickest first, and all of them where
none does. What a test does in a process of its own is not seen here, so that a damage may count as
not noticed which such a test would notice; never the other way round.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

FILES, NOTES, LINES = "MUTANTS_FILES", "MUTANTS_NOTES", "MUTANTS_LINES"
Notes = Mapping[str, tuple[float, Mapping[str, list[int]]]]
"""By test: its seconds, and by file the lines that it comes by."""


class Noting:
    """Notes by which lines of some files each test comes."""

    def __init__(self, files: Iterable[str], notes: Path) -> None:
        self._files = {str(Path.cwd() / file): file for file in files}
        self._notes = notes
        self._lines: set[tuple[str, int]] = set()
        self._found: dict[str, tuple[float, dict[str, list[int]]]] = {}

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        del event, arg
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        del event, arg
        self._lines.add((self._files[frame.f_code.co_filename], frame.f_lineno))
        return self._line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._lines, began = set(), time.monotonic()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            seconds, lines = time.monotonic() - began, dict[str, list[int]]()
            for file, line in sorted(self._lines):
                lines.setdefault(file, []).append(line)
            self._found[item.nodeid] = (seconds, lines)

    def pytest_sessionfinish(self) -> None:
        self._notes.write_text(json.dumps(self._found), encoding="utf-8")


class Choosing:
    """Leaves the tests that come by some lines, the quickest first; all where there are none."""

    def __init__(self, notes: Notes, file: str, lines: range) -> None:
        self._notes, self._file, self._lines = notes, file, lines

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if met := [item for item in items if self._comes_by(item.nodeid)]:
            items[:] = sorted(met, key=lambda item: self._notes.get(item.nodeid, (0.0,))[0])

    def _comes_by(self, test: str) -> bool:
        if test not in self._notes:  # it is new, perhaps for this very line
            return True
        _, lines = self._notes[test]
        return any(one in self._lines for one in lines.get(self._file, ()))


def pytest_configure(config: pytest.Config) -> None:
    files, notes = os.environ[FILES].split(os.pathsep), Path(os.environ[NOTES])
    if LINES in os.environ:
        first, last = map(int, os.environ[LINES].split("-"))
        known = json.loads(notes.read_text(encoding="utf-8"))
        config.pluginmanager.register(Choosing(known, files[0], range(first, last + 1)))
    else:
        config.pluginmanager.register(Noting(files, notes))
