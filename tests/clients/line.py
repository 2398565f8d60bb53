"""A whole line: the client, a recorder, the proxy as a process of its own, a simulated provider.

Without a proxy the recorder speaks to the provider, which is the client alone. Both sides of the
proxy are kept; `verdict` lays them beside each other.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reverie.simulator import Engine, FaultPlan
from reverie.simulator import serving as provider
from tests.clients.judge import Seen, Verdict, judge, price, seen
from tests.clients.model import Planned
from tests.clients.passing import NUMBER, Passing, passing
from tests.processes import end


@dataclass
class Proxy:
    """`reverie proxy` on a free port, with a home of its own."""

    upstream: str
    home: Path
    options: Sequence[str] = ()
    port: int = 0
    process: subprocess.Popen[str] | None = None
    bases: dict[str, str] = field(default_factory=dict[str, str])

    def start(self) -> dict[str, str]:
        line = [sys.executable, "-m", "reverie.apps.cli", "proxy", "--port", str(self.port)]
        line += ["--json", "--upstream", self.upstream, "--upstream-openai", f"{self.upstream}/v1"]
        environ = {**os.environ, "REVERIE_HOME": str(self.home)}
        self.process = subprocess.Popen(
            [*line, *self.options], env=environ, text=True, stdout=subprocess.PIPE, cwd=self.home
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, f"the proxy did not start: exit {self.process.wait()}"
        self.bases = json.loads(said)
        return self.bases

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        try:
            return self.process.wait(20)
        finally:
            end(self.process)


@dataclass
class Line:
    """One line while it stands."""

    engine: Engine
    recorder: Passing
    url: str
    proxy: Proxy | None = None
    course: int = 1

    def session(self, number: int) -> str:
        """A session's id, another one in every course."""
        return f"{self.course:08d}-0000-4000-8000-{number:012d}"

    def begin(self, plans: Mapping[str, Sequence[Any]]) -> Line:
        """The same line for another course: what was recorded so far is put away."""
        if self.proxy is not None and not self.proxy.runs:  # a course before this one failed
            self.connect(self.proxy.start())
        self.course += 1
        self.engine.answerer = Planned({"rest": [], **plans})
        self.engine.faults = FaultPlan()
        self.engine.log.clear()
        self.recorder.requests.clear()
        return self

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        """The proxy goes and comes back, as another process on another port."""
        assert self.proxy is not None
        self.proxy.stop(how)
        self.connect(self.proxy.start())

    def connect(self, bases: Mapping[str, str]) -> None:
        self.recorder.upstream = bases["anthropic"].rstrip("/")
        self.recorder.openai = bases["openai"].rstrip("/")

    @property
    def client_side(self) -> list[Seen]:
        return list(self.recorder.requests)

    @property
    def upstream_side(self) -> list[Seen]:
        return [
            seen(int(one.headers.get(NUMBER, "0")), one.path, dict(one.headers), one.body)
            for one in self.engine.log
            if one.body
        ]

    @property
    def refused(self) -> list[str]:
        """What the provider refused as bad; faults that a test has planned are none."""
        return [f"{e.status} {e.error}" for e in self.engine.log if e.status >= 400 and not e.fault]

    def verdict(self) -> Verdict:
        return judge(self.client_side, self.upstream_side)

    def costs(self) -> tuple[float, float]:
        """What the client's own requests would cost, and what those upstream do."""
        return price(self.client_side).cost, price(self.upstream_side).cost

    def clean(self) -> Verdict:
        """Nothing broken, lost or refused; never more than four marks."""
        found = self.verdict()
        assert found.requests, "no request was made"
        assert not found.caused, "\n".join(map(str, found.caused))
        assert not found.lost, f"requests {found.lost} did not arrive"
        assert found.most_marks <= 4
        assert self.refused == []
        return found


def has_proxy() -> bool:
    from reverie.apps.cli import COMMANDS

    return "proxy" in COMMANDS and COMMANDS["proxy"].is_there()


@contextmanager
def standing(
    plans: Mapping[str, Sequence[Any]],
    home: Path,
    *,
    proxied: bool = True,
    options: Sequence[str] = ("--policy", "store"),
    **engine: Any,
) -> Generator[Line]:
    """A line whose provider follows the plans. Its clients come by URL alone, and may read what the
    policy stores: they skip permissions."""
    if proxied and not has_proxy():
        pytest.skip("needs proxy: this version has no `reverie proxy`")
    home.mkdir(parents=True, exist_ok=True)
    recorder = Passing()
    made = Engine(answerer=Planned({"rest": [], **plans}), **engine)
    with provider(made) as upstream, passing(recorder) as url:
        line = Line(made, recorder, url)
        if not proxied:
            line.connect({"anthropic": upstream, "openai": f"{upstream}/v1"})
            yield line
            return
        line.proxy = Proxy(upstream, home, options)
        try:
            line.connect(line.proxy.start())
            yield line
            line.proxy.stop()
        finally:
            if line.proxy.process is not None:
                end(line.proxy.process)
