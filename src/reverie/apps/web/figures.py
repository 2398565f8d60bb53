"""Figures that take longer than a request: worked out beside it, kept, and shown with their age.

What reads every transcript is worked out by the command that shows it, in a process of its own at
low priority. A page asks for what is kept and never waits; when it is older than a page may show
it, it is worked out again, once at a time, and open pages are told.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from reverie.errors import NotAvailable, NotFound, ReverieError

if TYPE_CHECKING:
    from reverie.apps.web.desk import Desk

FRESH = 30.0
"""Seconds after which a figure is worked out again when somebody looks."""
_LOW = 10
_REVERIE = (sys.executable, "-P", "-m", "reverie.apps.cli")  # -P: not from the working folder


@dataclass(frozen=True, slots=True)
class KeptFigure:
    """A figure as it was last worked out; `error` says why there is none."""

    value: Any = None
    at: float = 0.0
    error: str = ""
    do: str = ""


class ProjectFigures:
    """The figures of one project."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.fresh = FRESH
        self._lock = threading.Lock()
        self._outdated = Counter[str]()  # how often something was done that changes a figure

    def get(
        self, makers: Mapping[str, Callable[[], Any]], fresh: float | None = None
    ) -> dict[str, KeptFigure]:
        """What is kept of each, from one query; what is old is worked out beside it."""
        fresh = self.fresh if fresh is None else fresh
        found = self._desk.base.facts([f"figure {name}" for name in makers])
        kept = {name: _kept(found.get(f"figure {name}", "")) for name in makers}
        for name, make in makers.items():
            if time.time() - kept[name].at > fresh:
                self._desk.start(f"figure {name}", partial(self.make, name, make))
        return kept

    def last(self, name: str) -> KeptFigure:
        """What is kept of one; nothing is worked out."""
        return _kept(self._desk.base.fact(f"figure {name}"))

    def make(self, name: str, make: Callable[[], Any]) -> None:
        """Work one out, keep it, and tell open pages; anew where it was outdated meanwhile."""
        while not self._desk.closed:
            began = self._outdated[name]
            found = _made(make)
            with self._lock:
                if began == self._outdated[name] and not self._desk.closed:
                    self._desk.base.note([(f"figure {name}", json.dumps(found))])
                    break
        self._desk.hub.tell("health")

    def outdated(self, *names: str) -> None:
        """Forget what is kept: something was done that changes it."""
        with self._lock:
            self._outdated.update(names)
            self._desk.base.note([(f"figure {name}", "") for name in names])


def _made(make: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"value": make(), "at": time.time()}
    except ReverieError as error:
        return {"at": time.time(), "error": error.what, "do": error.do}
    except (OSError, ImportError, ValueError) as error:  # a program or an extra is missing
        return {"at": time.time(), "error": str(error), "do": "`reverie doctor` may say more"}


def _kept(text: str) -> KeptFigure:
    return KeptFigure(**json.loads(text)) if text else KeptFigure()


def by_command(desk: Desk, *words: str) -> Any:
    """What a command answers with `--json`; None where it was stopped before it answered."""
    text = desk.commands.run([*words, "--json", "--project", str(desk.place.root)])
    return _answer(text) if text.strip() else None


def at_once(desk: Desk, *words: str, about: Sequence[str] = ()) -> Any:
    """What a short command answers that somebody waits for; `about` is what it is about, which
    is never read as an option."""
    text = desk.commands.ask([*words, "--json", "--", *about])
    if not text.strip():
        where = " ".join(words[:2])
        raise NotAvailable(f"`reverie {where}` gave no answer", do="Run it in a terminal")
    return _answer(text)


def _answer(text: str) -> Any:
    found = json.loads(text)
    if isinstance(found, dict) and (error := cast("dict[str, Any]", found).get("error")):
        fault = NotFound if error.get("type") == "NotFound" else NotAvailable
        told = {name: str(error.get(name, "")) for name in ("where", "do")}
        raise fault(str(error["what"]), **told)
    return cast("Any", found)


class Commands:
    """Commands of ours in processes of their own; those that take long one at a time, behind
    everything else."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._turn = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._over = False

    def run(self, words: Sequence[str]) -> str:
        """What a command prints; nothing once it was asked to stop."""
        with self._turn:
            return "" if self._over else self.started([*_REVERIE, *words])

    def ask(self, words: Sequence[str]) -> str:
        """The same for a command that is short: it does not wait for the others."""
        return "" if self._over else self.started([*_REVERIE, *words], 0)

    def started(self, line: Sequence[str], low: int = _LOW) -> str:
        none, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(
            line, stdin=none, stdout=pipe, stderr=none, env=self._environ
        ) as process:
            self._running.append(process)
            with contextlib.suppress(OSError):  # it is over already
                if low:
                    os.setpriority(os.PRIO_PROCESS, process.pid, low)
            text, _ = process.communicate()
        self._running.remove(process)
        return text.decode("utf-8", "replace")

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        self._over = True
        for process in list(self._running):
            process.terminate()
