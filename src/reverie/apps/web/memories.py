"""Memories: what it knows, where from, and putting it right.

A change is made at once and can be undone; only forgetting cannot, and asks for the word. The
form of an edit carries the version it began from: where somebody else changed the file meanwhile,
nothing is saved and both texts are shown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from reverie.apps.web import show
from reverie.apps.web.desk import Ask, Desk, missing
from reverie.errors import InvalidInput, NotFound, ReverieError, SecretFound
from reverie.memory.format import entry as entries
from reverie.memory.format.entry import TopicFile
from reverie.memory.trust import Trust
from reverie.memory.versions import By, Origin, Version, blame
from reverie.store.files import Changed
from reverie.store.memories import Memories
from reverie.store.plain import digest
from reverie.upkeep.forget import ForgetReport, ForgetRun
from reverie.upkeep.memory import describe_origin
from reverie.upkeep.memory_index import COUNTED, PAGE, MemoryQuery

KINDS = ("user", "feedback", "project", "reference")
MAX_VERSIONS = 30
VIEWS = ("text", "source", "blame", "recalled")


def by_user(kind: str, note: str = "") -> Origin:
    """A change that a person asked for on the page."""
    return Origin(kind, Trust.USER, agent="user", tool="web", note=note)


def address(key: str) -> str:
    return f"/memories/{quote(key, safe='/')}"


# --- looking


def listed(desk: Desk, ask: Ask) -> Response:
    return desk.page("memories.html", **_list(desk, ask), one=None)


def _list(desk: Desk, ask: Ask) -> dict[str, Any]:
    given = {name: ask.query.get(name, "")[:40] for name in ("type", "trust", "finding")}
    query = MemoryQuery.of(ask.query.get("q", "")[:200], ask.page, **given)
    rows, count = desk.memories.page(query)
    return {
        "screen": "memories",
        "rows": rows,
        "count": count,
        "sums": desk.memories.sums(),
        "query": query,
        "q": ask.query.get("q", "")[:200],
        "page": query.page,
        "pages": max(1, -(-count // PAGE)),
        "more": query.narrows and count >= COUNTED,
        "said": ask.query.get("said", ""),
        "undo": ask.query.get("undo", "")[:40],
    }


def shown(desk: Desk, ask: Ask) -> Response:
    key = ask.path["name"]
    with desk.memory() as memories:
        if memories is None:
            raise missing("memory", key)
        one = _detail(desk, memories, key, ask)
    return desk.page("memories.html", **_list(desk, ask), one=one)


def _detail(desk: Desk, memories: Memories, key: str, ask: Ask) -> dict[str, Any]:
    history = memories.history.log(key)
    version = ask.query.get("version", "")
    gone = not memories.folder.exists(key)
    if not history and gone:
        raise missing("memory", key)
    if version:
        step = memories.history.find(version)
        file = TopicFile(key, _content(memories, step.after), step.at)
    elif gone:
        file = TopicFile(key, _content(memories, history[-1].before), history[-1].at)
    else:
        file = memories.folder.read(key)
    view = ask.query.get("view", "text")
    steps = history[::-1][:MAX_VERSIONS]
    undone = {name for step in history for name in step.undoes}
    return {
        "file": file,
        "key": key,
        "address": address(key),
        "gone": gone,
        "version": version,
        "view": view if view in VIEWS else "text",
        "trust": (history[-1].origin.trust if gone else memories.trust(key)).label,
        "from": describe_origin(history[-1].origin) if history else "",
        "findings": desk.memories.findings(key),
        "versions": [_version(step, step.id in undone) for step in steps],
        "more": max(0, len(history) - MAX_VERSIONS),
        "diff": _difference(memories, ask, steps),
        "blame": _blamed(memories, history) if view == "blame" else (),
        "recalled": desk.sessions.recalled(key) if view == "recalled" else (),
        "origins": _origins(steps),
    }


def _version(step: Version, undone: bool) -> dict[str, Any]:
    change = "removed" if not step.after else "added" if not step.before else "changed"
    return {
        "id": step.id,
        "change": change if not step.undoes else f"{change} (undo)",
        "by": describe_origin(step.origin),
        "trust": step.origin.trust.label,
        "kind": step.origin.kind,
        "session": step.origin.session,
        "at": step.at,
        "undone": undone,
        "after": step.after,
    }


def _origins(steps: list[Version]) -> list[tuple[By, str, str]]:
    """Where its versions came from, as all of one origin can be taken back: how, what, in words."""
    found: dict[tuple[By, str], str] = {}
    for step in steps:
        origin = step.origin
        if step.undoes or origin.trust is Trust.USER:
            continue
        if origin.session:
            found["session", origin.session] = f"session {origin.session[:8]}"
        elif origin.agent:
            found["agent", origin.agent] = origin.agent
    return [(by, value, words) for (by, value), words in found.items()]


def _difference(memories: Memories, ask: Ask, steps: list[Version]) -> dict[str, Any] | None:
    """What one version changed, or how two differ."""
    wanted = ask.query.get("version", "") or (steps[0].id if steps else "")
    if not wanted:
        return None
    step = memories.history.find(wanted)
    before = step.before
    if against := ask.query.get("against", ""):
        before = memories.history.find(against).after
    texts = [_content(memories, name).decode("utf-8", "replace") for name in (before, step.after)]
    words = ask.query.get("diff", "") != "lines"
    rows = show.difference(*texts, words=words)
    return {"version": step.id, "against": against, "rows": rows, "words": words}


def _content(memories: Memories, name: str) -> bytes:
    try:
        return memories.history.content(name) if name else b""
    except NotFound:
        return b""


def _blamed(memories: Memories, history: list[Version]) -> list[dict[str, Any]]:
    found = blame(history, memories.history.content)
    return [
        {"line": one.line, "id": one.version.id, "by": describe_origin(one.version.origin)}
        for one in found[:400]
    ]


# --- changing


def editing(desk: Desk, ask: Ask) -> Response:
    key = ask.path["name"]
    with desk.memory() as memories:
        if memories is None or not memories.folder.exists(key):
            raise missing("memory", key)
        file = memories.folder.read(key)
    values = {"name": file.name, "description": file.description, "type": file.type}
    values |= {"text": file.body, "version": digest(file.data)}
    return _form(desk, key, values)


def new(desk: Desk, ask: Ask) -> Response:
    del ask
    values = {"name": "", "description": "", "type": "", "text": "", "version": ""}
    return _form(desk, "", values)


def _form(
    desk: Desk, key: str, values: dict[str, str], error: ReverieError | None = None, **more: Any
) -> Response:
    status = 200 if error is None else 409 if isinstance(error, Changed) else 400
    return desk.page(
        "memory_edit.html",
        status,
        screen="memories",
        key=key,
        address=address(key) if key else "/memories",
        values=values,
        kinds=KINDS,
        error=error,
        theirs=more.get("theirs"),
        said="",
    )


def _given(ask: Ask) -> dict[str, str]:
    found = {n: ask.given(n) for n in ("name", "description", "type", "text", "version")}
    found["text"] = found["text"].replace("\r\n", "\n")
    return found


def save(desk: Desk, ask: Ask) -> Response:
    """Save an edit, unless the file is not what the form began from."""
    key, values = ask.path["name"], _given(ask)
    with desk.changing() as memories:
        if not memories.folder.exists(key):
            raise missing("memory", key)
        file = memories.folder.read(key)
        try:
            made = _edited(file, values)
            if made == file.data:
                return desk.to(address(key), "unchanged")
            expect = digest(file.data) if ask.given("over") else values["version"]
            done = memories.save(key, made, by_user("edit"), expect=expect)
        except Changed as error:
            rows = show.difference(file.body, values["text"])
            theirs = {"rows": rows, "version": digest(file.data)}
            return _form(desk, key, values, error, theirs=theirs)
        except (SecretFound, InvalidInput, ReverieError) as error:
            return _form(desk, key, values, error)
        newest = memories.history.log(key)[-1].id
    return desk.to(f"{address(key)}?undo={newest}", done.outcome)


def _edited(file: TopicFile, values: dict[str, str]) -> bytes:
    """The file with what the form says; what the form does not know of stays."""
    for name, value in (
        ("name", file.name),
        ("description", file.description),
        ("type", file.type),
    ):
        given = " ".join(values[name].split())
        if given != value:
            file = file.with_value(given, name)
    if values["text"].strip() != file.body.strip():
        file = file.with_body(values["text"])
    return file.data


def add(desk: Desk, ask: Ask) -> Response:
    values = _given(ask)
    with desk.changing() as memories:
        try:
            done = memories.remember(
                values["text"],
                by_user("save"),
                name=values["name"].strip(),
                description=values["description"].strip(),
                type=values["type"] if values["type"] in KINDS else "",
            )
        except ReverieError as error:
            return _form(desk, "", values, error)
        steps = memories.history.log(done.key) if done.outcome == "saved" else []
    undo = f"?undo={steps[-1].id}" if steps else ""
    return desk.to(f"{address(done.key)}{undo}", done.outcome)


def undo(desk: Desk, ask: Ask) -> Response:
    """Take one version back, with all that was made in the same step."""
    with desk.changing() as memories:
        done = memories.undo(ask.given("version"), by_user("undo"))
        keys = [one.key for one in done.done if entries.is_topic(one.key)]
        newest = memories.history.log(keys[0])[-1].id if keys else ""
    place = address(keys[0]) if keys else "/memories"
    return desk.to(f"{place}?undo={newest}" if newest else place, "undone")


def remove(desk: Desk, ask: Ask) -> Response:
    key = ask.path["name"]
    with desk.changing() as memories:
        memories.remove(key, by_user("remove"))
        newest = memories.history.log(key)[-1].id
    return desk.to(f"{address(key)}?undo={newest}", "removed")


# --- forgetting


def forgetting(desk: Desk, ask: Ask) -> Response:
    """Where some words are, before they are erased for good."""
    words = ask.given("words").strip()
    if not words:
        return _forget_page(desk, "")
    work = ForgetRun.of(desk.place)
    if ask.given("sure").strip() == "forget":
        with desk.changing():
            report = work.run(words, dry_run=False)
        return _forget_page(desk, words, report)
    wrong = "Type the word forget to confirm." if ask.given("confirm") else ""
    return _forget_page(desk, words, work.run(words, dry_run=True), wrong)


def _forget_page(
    desk: Desk, words: str, report: ForgetReport | None = None, wrong: str = ""
) -> Response:
    found = Counter(
        _PLACES.get(one.kind, "other files") for one in (report.touched if report else ())
    )
    return desk.page(
        "forget.html",
        screen="memories",
        words=words,
        report=report,
        kinds=found.most_common(),
        home=f"{desk.place.home}/",
        wrong=wrong,
        said="",
    )


_PLACES = {
    "session": "of sessions and dreams",
    "memory": "memories",
    "history": "of their history",
    "derived": "indexes",
}


def forget_form(desk: Desk, ask: Ask) -> Response:
    return forgetting(desk, Ask(form={"words": (ask.query.get("words", ""),)}))


GET = {
    "/memories": listed,
    "/memories/new": new,
    "/memories/forget": forget_form,
    "/memories/edit/{name:path}": editing,
    "/memories/{name:path}": shown,
}
POST = {
    "/memories/new": add,
    "/memories/undo": undo,
    "/memories/forget": forgetting,
    "/memories/edit/{name:path}": save,
    "/memories/remove/{name:path}": remove,
}
