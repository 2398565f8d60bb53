"""A plugin of pytest for `scripts.mutants`: by which lines tests come, or many damages in one run.

`Witnesses` notes by which lines of the damaged modules each test comes. What a test does in a
process of its own is not seen, so that a damage may count as not noticed which such a test would
notice; never the other way round.

`Trials` collects the tests once. Each damage is put into a process forked from there: into the
file, for what is imported or started later, and into the functions that are loaded, whose code is
replaced. There the tests run that come by the damaged lines, up to the first that fails. In the
end those that failed run where nothing is damaged, and must pass.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType
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


class Witnesses:
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


TRIALS, FOUND = "MUTANTS_TRIALS", "MUTANTS_FOUND"
POLL_S = 0.02
LEAST_S, SLOWER = 20.0, 5.0  # how long damaged tests may take: so much, and so often their time


class Trials:
    """Runs the tests against each damage; `name` is what the notes call its file."""

    def __init__(self, given: dict[str, Any], found: Path) -> None:
        self._notes: Notes = given["notes"]
        self._trials: list[dict[str, Any]] = given["trials"]
        self._found = found

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        noticed, outcomes = list[str](), list[str]()
        for trial in self._trials:
            first, last = trial["lines"]
            items = chosen(session.items, self._notes, trial["name"], range(first, last + 1))
            file = Path(trial["file"])
            source = file.read_text(encoding="utf-8")
            file.write_text(trial["text"], encoding="utf-8")
            try:
                outcomes.append(self._tried(session, items, trial))
            finally:
                file.write_text(source, encoding="utf-8")
            noticed += [outcomes[-1]] if "::" in outcomes[-1] else []
        control = [item for item in session.items if item.nodeid in noticed]
        passed = self._tried(session, control, {}) if control else ""
        told = json.dumps({"outcomes": outcomes, "control": passed})
        self._found.write_text(told, encoding="utf-8")
        return True

    def _tried(
        self, session: pytest.Session, items: Sequence[pytest.Item], trial: Mapping[str, Any]
    ) -> str:
        """The test that noticed; "" where none did, "time" where they ran without end."""
        ours, theirs = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(ours)
            os.setsid()
            with contextlib.suppress(BaseException):
                os.write(theirs, self._run(session, items, trial).encode() or b"-")
            os._exit(0)
        os.close(theirs)
        try:
            known = (self._notes[item.nodeid][0] for item in items if item.nodeid in self._notes)
            ended = waited(pid, LEAST_S + SLOWER * sum(known))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        with open(ours, "rb") as file:
            told = file.read(100_000).decode() if ended else "time"
        return "" if told == "-" else told or "died"

    def _run(
        self, session: pytest.Session, items: Sequence[pytest.Item], trial: Mapping[str, Any]
    ) -> str:
        if trial and not replaced(trial["file"], trial["inside"], trial["text"]):
            return "not loaded"
        for item, after in zip(items, [*items[1:], None], strict=True):
            before = session.testsfailed
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed > before:
                return item.nodeid
        return ""


def waited(pid: int, seconds: float) -> bool:
    """Whether a process has ended within some time; it has in any case afterwards."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(POLL_S)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def replaced(file: str, inside: str, text: str) -> bool:
    """Whether a function of a file has the code of this text now, or is not imported yet."""
    if not any(getattr(one, "__file__", None) == file for one in list(sys.modules.values())):
        return True
    new = {
        code.co_firstlineno: code
        for code in _codes(compile(text, file, "exec"))
        if code.co_qualname == inside
    }
    done = 0
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == file:
            code = new.get(one.__code__.co_firstlineno)
            if code is not None and one.__code__.co_qualname == inside:
                one.__code__ = code
                done += 1
    return done > 0


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def pytest_configure(config: pytest.Config) -> None:
    if TRIALS in os.environ:
        given = json.loads(Path(os.environ[TRIALS]).read_text(encoding="utf-8"))
        config.pluginmanager.register(Trials(given, Path(os.environ[FOUND])))
    else:
        files, notes = os.environ[FILES].split(os.pathsep), Path(os.environ[NOTES])
        config.pluginmanager.register(Witnesses(files, notes))
