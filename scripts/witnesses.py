"""A plugin of pytest for `scripts.mutants`: by which lines of the damaged modules tests come.

What a test does in a process of its own is not seen here, so that a damage may count as not noticed
which such a test would notice; never the other way round.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, TypeVar

import pytest

FILES, NOTES = "MUTANTS_FILES", "MUTANTS_NOTES"
Notes = Mapping[str, tuple[float, Mapping[str, list[int]]]]
"""By test: its seconds, and by file the lines that it comes by."""


class Named(Protocol):
    """A test, by the name that pytest has for it."""

    @property
    def nodeid(self) -> str: ...


T = TypeVar("T", bound=Named)


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


def chosen(items: Sequence[T], notes: Notes, file: str, lines: range) -> list[T]:
    """The tests that come by some lines of a file, the quickest first; all where none does."""

    def comes_by(item: T) -> bool:
        if item.nodeid not in notes:  # it is new, perhaps for this very line
            return True
        return any(one in lines for one in notes[item.nodeid][1].get(file, ()))

    met = [item for item in items if comes_by(item)]
    return sorted(met, key=lambda one: notes.get(one.nodeid, (0.0,))[0]) or list(items)


def pytest_configure(config: pytest.Config) -> None:
    files, notes = os.environ[FILES].split(os.pathsep), Path(os.environ[NOTES])
    config.pluginmanager.register(Noting(files, notes))
