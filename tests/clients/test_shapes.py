"""The proxy under clients of known shapes: no prefix broken, never dearer, mostly cheaper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.courses import EVENTS, PLANS, RECORDED, remembered
from tests.clients.judge import price
from tests.clients.line import Line, standing
from tests.clients.shape import ReadingBack

pytestmark = pytest.mark.spec("B15.clients")


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", ["compaction", "cut_stream"])
def test_the_client_alone_breaks_as_it_does(tmp_path: Path, cwd: Path, name: str) -> None:
    """The harness itself: without a proxy both sides are the same."""
    with standing(PLANS, tmp_path / "home", proxied=False) as line:
        EVENTS[name](line, cwd)
        found = line.clean()
        assert found.client_breaks == found.upstream_breaks
        assert line.costs()[0] == pytest.approx(line.costs()[1])


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """One proxy for all courses: each has its own sessions and its own project."""
    with standing(PLANS, tmp_path_factory.mktemp("proxied") / "home") as line:
        yield line


@pytest.mark.integration
@pytest.mark.parametrize("name", list(EVENTS))
def test_no_event_makes_the_proxy_break_a_prefix(proxied: Line, cwd: Path, name: str) -> None:
    line = proxied.begin(PLANS)
    assert line.proxy is not None
    remembered(cwd, line.proxy.home)
    EVENTS[name](line, cwd)
    line.clean()
    alone, through = line.costs()
    assert through <= 1.02 * alone, f"{through / alone:.3f}"


@pytest.mark.integration
def test_recorded_shapes_cost_at_most_two_thirds(proxied: Line, tmp_path: Path) -> None:
    alone = through = 0.0
    told: list[str] = []
    for name, course in RECORDED.items():
        line = proxied.begin(PLANS)
        assert line.proxy is not None
        remembered(made(tmp_path / name), line.proxy.home)
        course(line, tmp_path / name)
        found = line.clean()
        costs = line.costs()
        told.append(f"{name}: {found.requests} requests, {costs[1] / costs[0]:.3f}")
        alone, through = alone + costs[0], through + costs[1]
    assert through <= 0.65 * alone, f"{through / alone:.3f}; {told}"


@pytest.mark.integration
def test_with_one_stored_result_in_four_read_back(proxied: Line, tmp_path: Path) -> None:
    alone = through = 0.0
    told: list[str] = []
    for name, course in RECORDED.items():
        with standing(PLANS, tmp_path / f"{name}-bare", proxied=False) as line:
            course(line, made(tmp_path / name))
            bare = price(line.client_side).cost
        line = proxied.begin(PLANS)
        model = line.engine.answerer = ReadingBack({"rest": [], **PLANS})
        course(line, tmp_path / name)
        line.clean()
        cost = price(line.upstream_side).cost
        assert len(model.read) == len(model.seen) // 4 > 0
        told.append(f"{name}: {len(model.read)} of {len(model.seen)} read, {cost / bare:.3f}")
        alone, through = alone + bare, through + cost
    assert through <= 0.70 * alone, f"{through / alone:.3f}; {told}"


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
