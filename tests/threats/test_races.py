"""A folder that another process swaps for a link without pause: memories, tools and team files
are written inside it or not at all."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.errors import ReverieError
from reverie.store import MemoryStore
from reverie.team.folder import land, read_files
from reverie.toolbox import PermissionRule
from reverie.topics import Origin, Trust
from tests.conftest import Scale
from tests.tools.kit import Place, use

from .test_paths import SECRET, exchange, outside, untouched  # noqa: F401 - a fixture

pytestmark = pytest.mark.spec("1.store")
FACT = (
    "---\nname: n{0}\ndescription: d{0}\ntype: project\n---\n\nThe port of service {0} is 80{0}.\n"
)
USER = Origin("save", Trust.USER, agent="user", in_person=True)


@contextlib.contextmanager
def swapping(folder: Path, outside: Path) -> Generator[None]:  # noqa: F811
    """While the block runs, `folder` is now itself and now a link to `outside`."""
    swap, link = exchange(), folder.with_name("swapped-link")
    link.symlink_to(outside, target_is_directory=True)
    child = os.fork()
    if child == 0:
        try:
            while os.getppid() != 1:
                swap(folder, link)
                time.sleep(0.0005)  # long enough to get through a check, too short to finish
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def tried(count: int, doors: list[Callable[[int], Any]]) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for number in range(count):
        try:
            doors[number % len(doors)](number)
            outcomes["inside"] += 1
        except (ReverieError, FileNotFoundError):
            outcomes["refused"] += 1
    return outcomes


def test_memories_in_a_folder_that_is_swapped(
    tmp_path: Path,
    outside: Path,  # noqa: F811
    scale: Scale,
) -> None:
    """The team's folder within a memory: saves, removals, and what a pull brings."""
    root = tmp_path / "memory"
    (root / "team").mkdir(parents=True)
    with MemoryStore(root, tmp_path / "history", tmp_path / "home", now=time.time) as store:
        doors: list[Callable[[int], Any]] = [
            lambda n: store.save(f"team/m{n}.md", FACT.format(n).encode(), USER),
            lambda n: land(
                store, {f"p{n}.md": FACT.format(n).encode()}, read_files(store), "pulled"
            ),
            lambda n: store.folder.read("team/secret.md"),
            lambda n: store.remove(f"team/m{n - 3}.md", USER),
        ]
        with swapping(root / "team", outside):
            outcomes = tried(scale.pick(120, 600), doors)
    assert untouched(outside)
    assert set(outcomes) == {"inside", "refused"}, outcomes


async def test_tools_in_a_folder_that_is_swapped(
    tmp_path: Path,
    outside: Path,  # noqa: F811
    scale: Scale,
) -> None:
    """Permission is given for `d` of the project, whatever stands behind the name later."""
    place = Place(tmp_path)
    (place.root / "d").mkdir()
    (place.root / "d" / "secret.md").write_text("inside")
    rules = tuple(PermissionRule(tool, "d/**") for tool in ("Write", "Edit"))
    box = place.box(place.policy("ask", rules))
    outcomes: Counter[str] = Counter()
    calls: list[Callable[[int], Awaitable[Any]]] = [
        lambda n: use(box, "Write", file_path=f"d/w{n}.md", content="planted"),
        lambda n: use(box, "Read", file_path=f"d/w{n - 1}.md"),
        lambda n: use(
            box, "Edit", file_path=f"d/w{n - 2}.md", old_string="planted", new_string="more"
        ),
        lambda n: use(box, "Read", file_path="d/secret.md"),
        lambda n: use(box, "Grep", pattern="lies", path="d", output_mode="content"),
    ]
    with swapping(place.root / "d", outside):
        for number in range(scale.pick(250, 5_000)):
            found = await calls[number % len(calls)](number)
            assert SECRET.decode() not in found.text
            outcomes["refused" if found.is_error else "inside"] += 1
            await anyio.lowlevel.checkpoint()
    assert untouched(outside)
    assert set(outcomes) == {"inside", "refused"}, outcomes
