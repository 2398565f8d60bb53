"""The web page over many sessions and memories: CPU of each page against one over a hundred."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from uuid import UUID

import anyio

from bench.figures import Figure, Row, at_most, slug
from reverie.apps.web import Ask, Desk, Keeper, save
from reverie.apps.web.dream import shown as dream
from reverie.apps.web.health import shown as health
from reverie.apps.web.memories import listed as memories
from reverie.apps.web.memories import shown as memory
from reverie.apps.web.recall import shown as recall
from reverie.apps.web.review import listed as review
from reverie.apps.web.savings import shown as savings
from reverie.apps.web.sessions import listed as sessions
from reverie.apps.web.sessions import shown as session
from reverie.session import Library, open_session
from reverie.store import Project
from reverie.wire import user

FEW, SESSIONS, MEMORIES = 100, 5_000, 10_000
MOST = 1.5
ROUNDS = 15
WHY = "a page takes a few milliseconds or less: on a busy machine the ratio of two is unsure"


def measure(out: Path) -> Iterable[Figure | Row]:
    del out
    few, _ = _costs(FEW, FEW)
    many, built = _costs(SESSIONS, MEMORIES)
    yield "index of all built anew, CPU", f"{built:.1f} s", "", None
    for name, cost in many.items():
        what = (
            f"page, {name}: CPU over {SESSIONS:,} sessions and {MEMORIES:,} memories,"
            f" in that over {FEW} of each"
        )
        yield at_most(f"page.{slug(name)}", what, cost / few[name], MOST, "x", ROUNDS, WHY)
        yield f"{name}, CPU", f"{1000 * few[name]:.1f} → {1000 * cost:.1f} ms", "", None


def _costs(sessions_: int, memories_: int) -> tuple[Mapping[str, float], float]:
    """CPU of each page over so many of each, and of building the index."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REVERIE_HOME"] = f"{folder}/home"
        project = Path(folder, "project")
        project.mkdir()
        place = Project.at(project)
        first = anyio.run(_talk, project)
        _fill(place, first, sessions_, memories_)
        desk = Desk(place)
        desk.start = _nothing  # what runs beside a page is not its cost
        began = time.process_time()
        Keeper(desk).look()
        built = time.process_time() - began
        pages = {
            "sessions": lambda: sessions(desk, Ask()),
            "sessions, searched": lambda: sessions(desk, Ask(query={"q": "tests"})),
            "timeline": lambda: session(desk, Ask(path={"id": first})),
            "memories": lambda: memories(desk, Ask()),
            "memories, a word and letters of half": lambda: memories(
                desk, Ask(query={"q": "port od"})
            ),
            "memories, letters of one": lambda: memories(desk, Ask(query={"q": "zb"})),
            "memories, a word of all": lambda: memories(desk, Ask(query={"q": "port"})),
            "memories, a word of one": lambda: memories(desk, Ask(query={"q": "zebra"})),
            "memory": lambda: memory(desk, Ask(path={"name": "project_7.md"})),
            "memory, saved": lambda: _save(desk),
            "review": lambda: review(desk, Ask()),
            "recall": lambda: recall(desk, Ask(query={"q": "the port of service 7"})),
            "dream": lambda: dream(desk, Ask()),
            "health": lambda: health(desk, Ask()),
            "savings": lambda: savings(desk, Ask()),
        }
        found: dict[str, float] = {}
        for name, page in pages.items():
            page()
            found[name] = min(_spent(page) for _ in range(ROUNDS))
        desk.close()
        return found, built


def _spent(page: Callable[[], object]) -> float:
    began = time.process_time()
    page()
    return time.process_time() - began


def _save(desk: Desk) -> None:
    """An edit as the form sends it, of a text that differs each time."""
    text = (f"Service 9 listens on port {time.monotonic_ns()}.",)
    form = {"name": ("Port of service 9",), "type": ("project",), "text": text, "over": ("1",)}
    answer = save(desk, Ask(path={"name": "project_9.md"}, form=form))
    assert answer.status_code == 303


def _nothing(name: str, work: object) -> None:
    del name, work


async def _talk(project: Path) -> str:
    used = {"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 900}
    answer = {"content": [{"type": "text", "text": "Yes."}], "model": "m", "usage": used}
    async with open_session(project, model="m", system="Be brief.") as made:
        for n in range(3):
            await made.add(user(f"Find out why the tests fail, part {n}"))
            await made.prepare()
            await made.observe(answer)
            await made.end_turn()
        return made.id


def _fill(place: Project, first: str, sessions_: int, memories_: int) -> None:
    library = Library.of(place)
    for n in range(1, sessions_):
        other = UUID(int=n, version=4)
        shutil.copy(library.path / f"{first}.jsonl", library.path / f"{other}.jsonl")
        if (library.path / first / "blobs").is_dir():
            (library.path / str(other)).mkdir(mode=0o700)
            (library.path / str(other) / "blobs").symlink_to(library.path / first / "blobs")
    folder = place.memory_folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for n in range(memories_):
        head = f"---\nname: Port of service {n}\ndescription: Where {n} listens\ntype: project\n---"
        more = " The zebra (zb) runs there." if n == 7 else " It is odd." if n % 2 else ""
        text = f"{head}\n\nService {n} listens on port {n}.{more}\n"
        (folder / f"project_{n}.md").write_text(text)
    library.close()
