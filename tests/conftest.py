"""What every test stands on.

- No test sees the real home: `HOME` and `REVERIE_HOME` point into a temporary folder,
  and settings and keys from outside are taken out of the environment.
- A test that cannot run here skips and says why; `REVERIE_REQUIRE` (`all`, or the names
  of needs, by comma) turns such skips into failures. The last lines of a run list them, and
  the very last says what was not proven here and how to get it.
- `REVERIE_SCALE=proof` asks for the full numbers; without it the same promises are
  tested small, and the same way every time. `REVERIE_EXAMPLES` says how many random
  examples a property gets there, `REVERIE_SEED` where tests that draw by chance begin.
- Tests marked `integration` talk to programs of foreign make. They run where a mark expression
  names them (`-m integration`), or beside the others with `REVERIE_INTEGRATION=1`.
"""

from __future__ import annotations

import gc
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.processes import children, end

T = TypeVar("T")
pytest_plugins = ["tests.postgres"]
ROOT = Path(__file__).resolve().parent.parent
REQUIRED = frozenset(filter(None, os.environ.get("REVERIE_REQUIRE", "").split(",")))
INTEGRATION = os.environ.get("REVERIE_INTEGRATION", "") == "1"
PROOF = os.environ.get("REVERIE_SCALE", "small") == "proof"
SHARED = Path(os.environ.get("REVERIE_SHARED") or ROOT.parent / "shared")
OURS = frozenset(
    f"REVERIE_{name}"
    for name in ("REQUIRE", "SCALE", "INTEGRATION", "SHARED", "BUDGET", "EXAMPLES", "SEED", "TALLY")
)
NEED = re.compile(r"needs ([\w.-]+):")
PACKAGES = {
    "bwrap": "bubblewrap",
    "git": "git",
    "ip": "iproute2",
    "python3": "python3",
    "rg": "ripgrep",
    "tmux": "tmux",
}
FOREIGN = re.compile(r"(REVERIE|CLAUDE|ANTHROPIC|OPENAI|GIT|XDG)_")

settings.register_profile(
    "small",
    max_examples=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "proof",
    max_examples=int(os.environ.get("REVERIE_EXAMPLES", "1000")),
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("proof" if PROOF else "small")


# -- scale ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of a promise to test: `scale.pick(1_000, 20_000)`; and where chance begins."""

    proof: bool
    seed: int = 0
    times: int = 1
    """How much longer than in `make proof`: it doubles from slice to slice of `make endurance`."""

    def pick(self, small: T, proof: T) -> T:
        return proof if self.proof else small


@pytest.fixture(scope="session")
def scale() -> Scale:
    times = max(1, int(os.environ.get("REVERIE_EXAMPLES", "1000")) // 1000)
    return Scale(PROOF, int(os.environ.get("REVERIE_SEED", "0")), times)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What belongs to another tier is left out: that is a choice, not a skip."""
    others = [] if PROOF else ["proof"]
    if "integration" not in config.option.markexpr and not INTEGRATION:
        others.append("integration")
    left_out = [item for item in items if any(map(item.get_closest_marker, others))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


# -- surroundings --------------------------------------------------------------------


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _apart_from_the_real_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("away")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if FOREIGN.match(name) and name not in OURS:
                patch.delenv(name)
        patch.setenv("HOME", str(folder))
        patch.setenv("REVERIE_HOME", str(folder / ".reverie"))
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for who in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{who}_NAME", "Test")
            patch.setenv(f"GIT_{who}_EMAIL", "test@example.invalid")
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of this test's own; not created, since the first writer has to."""
    folder = tmp_path / "home"
    monkeypatch.setenv("REVERIE_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of this repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded sessions and other material that lies beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs shared: set REVERIE_SHARED to the folder with the recorded sessions")
    return SHARED.resolve()


# -- skips ---------------------------------------------------------------------------


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if shutil.which(program) is None:
                pytest.skip(f"needs {program}: it is not on PATH")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    longrepr = report.longrepr
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = _reason(report)
    need = NEED.match(reason)
    if "all" in REQUIRED or (need and need[1] in REQUIRED):
        report.outcome = "failed"
        report.longrepr = f"skipped, and REVERIE_REQUIRE does not allow that: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


# -- failures ------------------------------------------------------------------------

_FAILED = pytest.StashKey[bool]()
_BEFORE = pytest.StashKey[set[int]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[_BEFORE] = children()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that failed takes no other one down: what it left running is ended, and what it left
    open is put away before the next begins, which would be warned of it and fail."""
    done = yield
    if item.stash.get(_FAILED, False):
        _put_away(item.stash.get(_BEFORE, None))
    return done


def _put_away(before: set[int] | None) -> None:
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        sys.__dict__.pop(name, None)  # they hold every frame of the failure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in gc.get_objects() if before is not None else ():
            if issubclass(type(one), subprocess.Popen) and one.pid not in before:
                end(one)
        gc.collect()


def _cpu() -> float:
    """Seconds of CPU used here and by every process that has ended below."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Closing:
    """Says at the very end what was skipped and how the time compares with the budget."""

    def __init__(self) -> None:
        self.skipped: dict[str, str] = {}
        self.started = time.monotonic()

    def _note(self, report: Any) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.nodeid] = _reason(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def lines(self) -> Iterator[str]:
        if budget := int(os.environ.get("REVERIE_BUDGET", "0")):
            used = time.monotonic() - self.started
            over = "" if used <= budget else "  OVER BUDGET"
            yield f"time: {used:.0f} s of {budget} s, {_cpu():.0f} s of CPU{over}"
        if not self.skipped:
            yield "no skips"
            return
        yield f"skips: {len(self.skipped)}"
        for test, reason in sorted(self.skipped.items()):
            yield f"  {test}: {reason}"
        yield not_proven(self.skipped.values())


def not_proven(reasons: Iterable[str]) -> str:
    """What tests that did not run would have proven, by what they lack, and how to get that."""
    found = Counter(m[1] if (m := NEED.match(one)) else "something else" for one in reasons)
    lacking = ", ".join(f"{count} for want of {name}" for name, count in sorted(found.items()))
    packages = sorted(PACKAGES[name] for name in found if name in PACKAGES)
    ways = [f"apt-get install {' '.join(packages)}"] if packages else []
    ways += ["set REVERIE_SHARED to the recorded sessions"] if "shared" in found else []
    how = "; ".join(ways) or "see the reasons above"
    return f"not proven here: {sum(found.values())} tests ({lacking}). To prove them: {how}"


def pytest_configure(config: pytest.Config) -> None:
    # what a shell starts in the background ignores interrupts, and so would every child
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Closing(), "closing")


def pytest_unconfigure(config: pytest.Config) -> None:
    closing = config.pluginmanager.get_plugin("closing")
    if closing is not None and config.pluginmanager.has_plugin("terminalreporter"):
        print("\n".join(closing.lines()), flush=True)
