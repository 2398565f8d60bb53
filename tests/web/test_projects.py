"""The switcher: the projects of one home on one page, each within its own addresses."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.apps.web import HEADERS, SHOWN_PROJECTS, Gate, ProjectRouter
from reverie.reports import NAME
from reverie.store import (
    LOCK,
    OWNER,
    Project,
    claim_address,
    find_project,
    home_projects,
    named_project,
    project_folder,
    project_key,
    project_name,
)
from tests.web.conftest import HOSTILE, InThisProcess, Visitor, talk

pytestmark = pytest.mark.spec("18.web-projects")
PLACES = (
    "/sessions?q=tests&sort=-cost",
    "/sessions/{session}",
    "/sessions/{session}?at=1&only=stored",
    "/sessions/{session}/stored/t0",
    "/memories?q=port",
    "/memories/new",
    "/memories/moving",
    "/memories/forget?words=port",
    "/memories/{memory}",
    "/memories/{memory}?view=source",
    "/memories/edit/{memory}",
    "/review",
    "/recall?q=port",
    "/dream",
    "/health",
    "/health/mend",
    "/savings",
    "/team",
    "/fleet",
    "/projects",
    "/nothing",
)


class Links(HTMLParser):
    """Where a page leads, and its switcher apart from the rest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.out: list[str] = []
        self.switch: list[str] = []
        self._apart = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        self._apart |= "switch" in (given.get("class") or "").split()
        found = self.switch if self._apart else self.out
        names = ("href", "action", "formaction", "hx-get", "sse-connect", "src")
        found += [given[name] for name in names if given.get(name)]

    def handle_endtag(self, tag: str) -> None:
        self._apart &= tag != "details"


class Home:
    """A page begun in one project of a home that has others."""

    def __init__(self, first: Path, room: int = 8) -> None:
        self.place = Project.at(first)
        self.gate = Gate()
        self.page = ProjectRouter(self.place, self.gate, room)
        self.visitor = Visitor(self.page)
        self.visitor.enter(self.gate)

    def prefix(self, project: Path) -> str:
        return f"/projects/{project_key(Project.at(project))}"

    def text(self, path: str) -> str:
        answer = self.visitor.get(path)
        assert answer.status == 200, path
        return answer.text


def begun(folder: Path) -> Path:
    """A project that the home knows."""
    folder.mkdir(parents=True)
    place = Project.at(folder)
    project_folder(place.home, place.root, environ=place.environ)
    return folder


@pytest.fixture
def other(home: Path, tmp_path: Path) -> Path:
    return begun(tmp_path / "other")


@pytest.fixture
def two(project: Path, other: Path) -> Iterator[Home]:
    """A page of a project; the home has another one."""
    yield from closed(Home(project))


def closed(home: Home) -> Iterator[Home]:
    try:
        yield home
    finally:
        home.page.close()


# --- which there are


def test_the_side_names_the_projects_and_keeps_the_screen(two: Home, other: Path) -> None:
    shown = two.text("/memories")
    assert f"<b>other</b>{other}" in shown
    assert Links(shown).switch == [
        f"{two.prefix(other)}/memories",
        "/memories",
        "/projects",
    ]
    there = two.text(f"{two.prefix(other)}/memories")
    assert '/memories" aria-current="true"><b>other</b>' in there
    assert Links(there).switch[1] == "/memories"


def test_one_project_needs_no_switcher(home: Path, project: Path) -> None:
    for one in closed(Home(project)):
        shown = one.text("/sessions")
        assert Links(shown).switch == []
        assert '<p class="project"><b>project</b>' in shown
        assert "choose another" not in shown


def test_a_project_that_begins_later_is_reached_at_once(two: Home, tmp_path: Path) -> None:
    late = begun(tmp_path / "late")
    assert two.visitor.get(f"{two.prefix(late)}/sessions").status == 200
    two.page.look()
    assert "<b>late</b>" in two.text("/sessions")


def test_the_side_shows_some_and_a_page_all(home: Path, project: Path, tmp_path: Path) -> None:
    for n in range(SHOWN_PROJECTS + 3):
        begun(tmp_path / "code" / f"p{n:02}")
    for one in closed(Home(project)):
        assert len(Links(one.text("/sessions")).switch) == SHOWN_PROJECTS + 1
        shown = one.text("/projects")
        assert shown.count('class="item"') == SHOWN_PROJECTS + 4
        assert f"<b>{SHOWN_PROJECTS + 4} projects</b> in this home" in shown


def test_projects_have_names_and_no_hashes(two: Home) -> None:
    """A project that is a name has a folder with a digest in the home."""
    for name in ("Acme, Inc.", "日本"):
        root = named_project(two.place.home, name)
        claim_address(two.place.home, root)
    names = [project_name(two.place.home, root) for root in home_projects(two.place).values()]
    assert names == ["acme-inc", "other", "project", "unnamed"]


def test_a_name_with_hostile_signs_is_inert_on_every_page(
    two: Home, tmp_path: Path, other: Path
) -> None:
    begun(tmp_path / "<img src=x onerror=alert(1)>")
    begun(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe2\x80\xae")))
    two.page.look()
    for path in ("/sessions", "/projects", f"{two.prefix(other)}/review"):
        shown = two.text(path)
        assert "<img" not in shown
        assert "U+202E" in shown
    (odd,) = [one for one in Links(two.text("/projects")).out if "img" in one]
    assert two.visitor.get(odd).status == 200


# --- everything stays in the project


def test_every_screen_and_its_links_stay_in_the_project(two: Home, other: Path) -> None:
    prefix = two.prefix(other)
    anyio.run(talk, other, "Find out why the tests fail")
    two.visitor.post(f"{prefix}/memories/new", {"text": "The port is 8080.", "name": "Port"})
    there = two.page.opened(project_key(Project.at(other)))
    there.keeper.look()
    desk = there.desk
    desk.commands = InThisProcess()
    (session,) = desk.library.sessions()
    with desk.memory_there() as memories:
        keys = memories.folder.keys()
    (memory,) = [key for key in keys if "port" in key]
    for place in PLACES:
        answer = two.visitor.get(prefix + place.format(session=session.id, memory=memory))
        assert answer.status == (404 if place == "/nothing" else 200), place
        assert f"<b>other</b>{other}" in answer.text
        found = Links(answer.text)
        strays = [one for one in found.out if not one.startswith((f"{prefix}/", "#", "/static/"))]
        assert strays == (["/sessions"] if place == "/projects" else []), place
        assert f"{prefix}/events" in found.out
    desk.settle(60)


def test_a_form_acts_in_its_project_and_comes_back_to_it(two: Home, other: Path) -> None:
    prefix = two.prefix(other)
    done = two.visitor.post(f"{prefix}/memories/new", {"text": "Ports are odd.", "name": "Ports"})
    assert done.status == 303
    address = done.headers["location"]
    assert address.startswith(f"{prefix}/memories/")
    assert "Ports are odd." in two.text(address)
    version = address.partition("undo=")[2].partition("&")[0]
    undone = two.visitor.post(f"{prefix}/memories/undo", {"version": version})
    assert undone.headers["location"].startswith(f"{prefix}/memories")
    assert "Ports are odd." not in two.text("/memories")
    assert two.page.first.desk.base.rows("SELECT file FROM memory LIMIT 5") == []
    assert two.visitor.post(f"{prefix}/review/none/drop").status == 404


def test_live_events_are_those_of_the_project(two: Home, other: Path) -> None:
    prefix, told = two.prefix(other), list[bytes]()

    async def watch() -> None:
        gone = anyio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            told.append(message.get("body", b""))
            if len(told) == 2:  # the stream has begun
                two.page.first.desk.hub.tell("of the first")
                two.page.opened(project_key(Project.at(other))).desk.hub.tell("of the other")
            if b"of the" in told[-1]:
                gone.set()

        scope = two.visitor.scope("GET", f"{prefix}/events")
        with anyio.fail_after(30):
            await two.page(scope, receive, send)

    anyio.run(watch)
    assert b"".join(told).count(b"event:") == 1
    assert told[-1].startswith(b"event: of the other\n")


def test_the_key_of_the_first_project_leads_to_its_plain_addresses(two: Home) -> None:
    path = f"/projects/{project_key(two.place)}/"
    assert "/events" in Links(two.text(f"{path}sessions")).out
    assert two.visitor.get(path).headers["location"] == "/sessions"


def test_an_address_that_lacks_or_has_a_slash_stays_in_the_project(two: Home, other: Path) -> None:
    prefix = two.prefix(other)
    assert two.visitor.get(f"{prefix}/").headers["location"] == f"{prefix}/sessions"
    for given, led in ((prefix, f"{prefix}/"), (f"{prefix}/review/", f"{prefix}/review")):
        location = two.visitor.get(given).headers["location"]
        assert location == f"http://{two.visitor.host}{led}"


# --- what is no project of this home


def everything(home: Path) -> set[str]:
    return {str(one) for one in home.rglob("*")}


@pytest.fixture
def traps(two: Home, tmp_path: Path, project: Path) -> list[str]:
    """Keys that look like projects of the home and are none."""
    projects = two.place.home / "projects"
    (projects / "a-file").write_text("x")
    gone = begun(tmp_path / "gone")
    key = project_key(Project.at(gone))
    gone.rmdir()
    outside = tmp_path / "outside"
    owners = {
        outside: str(tmp_path),
        projects / "twin": str(project),
        projects / "relative": ".",
        projects / "not-text": 7,
        projects / "nul": "/tmp\0x",
        projects / "up": "../..",
    }
    for folder, root in owners.items():
        folder.mkdir()
        (folder / OWNER).write_text(json.dumps({"root": root, "identity": ""}))
    (projects / "linked").symlink_to(outside)
    (projects / "unowned").mkdir()
    names = [one.name for one in projects.iterdir() if one.name != project_key(two.place)]
    return [key, *(name for name in names if "other" not in name), "linked"]


def test_a_folder_that_is_no_project_is_not_listed_and_not_opened(
    two: Home, traps: list[str]
) -> None:
    before = everything(two.place.home.parent)
    two.page.look()
    assert len(traps) > 8
    assert len(Links(two.text("/sessions")).switch) == 3
    for key in traps:
        assert find_project(two.place, key) is None
        answer = two.visitor.get(f"/projects/{key}/sessions")
        assert answer.status == 404, key
        assert "There is no such project" in answer.text
    grown = everything(two.place.home.parent) - before
    assert {Path(one).name.partition("-")[0] for one in grown} <= {NAME}


UNKNOWN = ("nothing", "..", "../../etc", "%2e%2e%2f", ".", "\0", "\\..\\", "x" * 5_000, "日本")


def test_an_unknown_or_hostile_name_is_a_page_that_shows_those_there_are(
    two: Home, other: Path
) -> None:
    for key in (*UNKNOWN, HOSTILE, "\udcff"):
        path = f"/projects/{key}/memories/x"
        for place in (path, two.prefix(other) + path):
            answer = two.visitor.get(place)
            assert answer.status == 404, place
            assert "There is no such project" in answer.text
            assert two.prefix(other) in answer.text
            assert "<script>doc" not in answer.text
            assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
        assert two.visitor.post(path, {"text": "Planted."}).status == 404
    assert two.visitor.get("/projects//evil.test/sessions").status == 404


def test_nobody_without_the_cookie_learns_of_a_project_or_opens_it(two: Home, other: Path) -> None:
    kept = Project.at(other).folder() / NAME
    for path in (f"{two.prefix(other)}/sessions", "/projects/nothing/sessions", "/projects"):
        for visitor in (
            Visitor(two.page),
            Visitor(two.page, two.visitor.cookie, "evil.test:4321"),
        ):
            answer = visitor.get(path)
            assert answer.status == 403
            assert str(other) not in answer.text
            assert "There is no such project" not in answer.text
            assert visitor.get(f"{path}?token={two.gate.token}").status == 403
        assert two.visitor.post(path, {}, origin="http://evil.test").status == 403
    assert not kept.exists()
    two.text(f"{two.prefix(other)}/sessions")
    assert kept.exists()


# --- how many are open


def test_the_one_not_looked_at_for_longest_is_closed_for_the_next(
    home: Path, project: Path, tmp_path: Path
) -> None:
    made = [begun(tmp_path / name) for name in ("a", "b", "c")]
    for one in closed(Home(project, room=2)):
        desks = []
        for folder in (*made[:2], made[0], made[2]):
            one.text(f"{one.prefix(folder)}/sessions")
            desks.append(one.page.opened(project_key(Project.at(folder))).desk)
        assert [desk.closed for desk in desks] == [False, True, False, False]
        assert not one.page.first.desk.closed
        one.text(f"{one.prefix(made[1])}/sessions")


def test_what_is_opened_has_its_lists_at_once_and_they_are_kept_until_it_ends(
    two: Home, other: Path
) -> None:
    anyio.run(talk, other, "Find out why the tests fail", 1)
    before = set(threading.enumerate())
    two.page.start()
    two.visitor.get(f"{two.prefix(other)}/sessions")
    keeper = two.page.opened(project_key(Project.at(other))).keeper
    assert keeper.has_looked.wait(60)
    assert "Find out why the tests fail" in two.text(f"{two.prefix(other)}/sessions")
    two.page.close()
    begun_here = set(threading.enumerate()) - before
    assert [one for one in begun_here if one.name == "reverie-keeper"] == []


def test_a_project_with_work_under_way_is_not_closed(
    home: Path, project: Path, tmp_path: Path
) -> None:
    made = [begun(tmp_path / name) for name in ("a", "b")]
    for one in closed(Home(project, room=1)):
        one.text(f"{one.prefix(made[0])}/sessions")
        desk = one.page.opened(project_key(Project.at(made[0]))).desk
        over = threading.Event()
        desk.start("work", partial(waited, over))
        try:
            one.text(f"{one.prefix(made[1])}/sessions")
            assert not desk.closed
        finally:
            over.set()


def waited(over: threading.Event) -> None:
    over.wait(60)


def test_a_project_that_cannot_be_opened_says_why_and_the_others_work(
    two: Home, other: Path
) -> None:
    """It has become a repository, which its folder cannot be told: the home's lock is damaged."""
    for name in ("description", "info/exclude"):
        (other / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (other / ".git" / name).write_text(name)
        os.utime(other / ".git" / name, ns=(1_000_000_001, 1_000_000_001))
    (two.place.home / LOCK).unlink()
    (two.place.home / LOCK).mkdir()
    answer = two.visitor.get(f"{two.prefix(other)}/sessions")
    assert answer.status == 500
    assert LOCK in answer.text
    assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    two.text("/sessions")
