"""Memories, and recall explained.

Memories: what it knows, where from, and putting it right.

A change is made at once and can be undone; only forgetting cannot, and asks for the word. The
form of an edit carries the version it began from: where somebody else changed the file meanwhile,
nothing is saved and both texts are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from reverie.apps.web import format as show
from reverie.apps.web.workspace import ScreenRequest, Workspace, missing
from reverie.errors import InvalidInput, NotFound, ReverieError, SecretFound
from reverie.memory.forget import ForgetReport, ForgetRun
from reverie.memory.values import describe_origin
from reverie.reports.memory_index import COUNTED, PAGE, MemoryQuery
from reverie.reports.plots import bar
from reverie.reports.timeline import Values
from reverie.session.recall.ledger import ledgers
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore
from reverie.topics import entry as entries
from reverie.topics.entry import TopicFile
from reverie.topics.trust import Trust
from reverie.topics.versions import By, Origin, Version, blame

KINDS = ("user", "feedback", "project", "reference")
MAX_VERSIONS = 30
VIEWS = ("text", "source", "blame", "recalled")


def by_user(kind: str, note: str = "") -> Origin:
    """A change that a person asked for on the page."""
    return Origin(kind, Trust.USER, agent="user", tool="web", note=note, in_person=True)


def address(key: str) -> str:
    return f"/memories/{quote(key, safe='/')}"


# --- looking


def list_memories(desk: Workspace, ask: ScreenRequest) -> Response:
    return desk.page("memories.html", **_list(desk, ask), one=None)


def _list(desk: Workspace, ask: ScreenRequest) -> dict[str, Any]:
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


def show_memory(desk: Workspace, ask: ScreenRequest) -> Response:
    key = ask.path["name"]
    with desk.memory() as memories:
        if memories is None:
            raise missing("memory", key)
        one = _detail(desk, memories, key, ask)
    return desk.page("memories.html", **_list(desk, ask), one=one)


def _detail(desk: Workspace, memories: MemoryStore, key: str, ask: ScreenRequest) -> dict[str, Any]:
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
        "blame": _blame_rows(memories, history) if view == "blame" else (),
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


def _difference(
    memories: MemoryStore, ask: ScreenRequest, steps: list[Version]
) -> dict[str, Any] | None:
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


def _content(memories: MemoryStore, name: str) -> bytes:
    try:
        return memories.history.content(name) if name else b""
    except NotFound:
        return b""


def _blame_rows(memories: MemoryStore, history: list[Version]) -> list[dict[str, Any]]:
    found = blame(history, memories.history.content)
    return [
        {"line": one.line, "id": one.version.id, "by": describe_origin(one.version.origin)}
        for one in found[:400]
    ]


# --- changing


def editing(desk: Workspace, ask: ScreenRequest) -> Response:
    key = ask.path["name"]
    with desk.memory() as memories:
        if memories is None or not memories.folder.exists(key):
            raise missing("memory", key)
        file = memories.folder.read(key)
    values = {"name": file.name, "description": file.description, "type": file.type}
    values |= {"text": file.body, "version": digest(file.data)}
    return _form(desk, key, values)


def new(desk: Workspace, ask: ScreenRequest) -> Response:
    del ask
    values = {"name": "", "description": "", "type": "", "text": "", "version": ""}
    return _form(desk, "", values)


def _form(
    desk: Workspace,
    key: str,
    values: dict[str, str],
    error: ReverieError | None = None,
    **more: Any,
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


def _form_values(ask: ScreenRequest) -> dict[str, str]:
    found = {n: ask.given(n) for n in ("name", "description", "type", "text", "version")}
    found["text"] = found["text"].replace("\r\n", "\n")
    return found


def save(desk: Workspace, ask: ScreenRequest) -> Response:
    """Save an edit, unless the file is not what the form began from."""
    key, values = ask.path["name"], _form_values(ask)
    with desk.changing() as memories:
        if not memories.folder.exists(key):
            raise missing("memory", key)
        file = memories.folder.read(key)
        try:
            made = _apply_form(file, values)
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


def _apply_form(file: TopicFile, values: dict[str, str]) -> bytes:
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


def add(desk: Workspace, ask: ScreenRequest) -> Response:
    values = _form_values(ask)
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


def undo(desk: Workspace, ask: ScreenRequest) -> Response:
    """Take one version back, with all that was made in the same step."""
    with desk.changing() as memories:
        done = memories.undo(ask.given("version"), by_user("undo"))
        keys = [one.key for one in done.done if entries.is_topic(one.key)]
        newest = memories.history.log(keys[0])[-1].id if keys else ""
    place = address(keys[0]) if keys else "/memories"
    return desk.to(f"{place}?undo={newest}" if newest else place, "undone")


def remove(desk: Workspace, ask: ScreenRequest) -> Response:
    key = ask.path["name"]
    with desk.changing() as memories:
        memories.remove(key, by_user("remove"))
        newest = memories.history.log(key)[-1].id
    return desk.to(f"{address(key)}?undo={newest}", "removed")


# --- forgetting


def forgetting(desk: Workspace, ask: ScreenRequest) -> Response:
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
    desk: Workspace, words: str, report: ForgetReport | None = None, wrong: str = ""
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


def forget_form(desk: Workspace, ask: ScreenRequest) -> Response:
    return forgetting(desk, ScreenRequest(form={"words": (ask.query.get("words", ""),)}))


GET = {
    "/memories": list_memories,
    "/memories/new": new,
    "/memories/forget": forget_form,
    "/memories/edit/{name:path}": editing,
    "/memories/{name:path}": show_memory,
}
POST = {
    "/memories/new": add,
    "/memories/undo": undo,
    "/memories/forget": forgetting,
    "/memories/edit/{name:path}": save,
    "/memories/remove/{name:path}": remove,
}


# --- Recall explained: why did it remember this, or not that?


RESULTS = 10
MAX_TURNS = 12
SIGNALS = {
    "path": ("k-user", "file name"),
    "name": ("k-assistant", "name"),
    "about": ("k-sealed", "description"),
    "body": ("k-results", "text"),
    "near": ("k-memory", "words side by side"),
    "meaning": ("acc", "meaning"),
    "recency": ("k-head", "recency"),
}


def show_recall(desk: Workspace, ask: ScreenRequest) -> Response:
    question = ask.query.get("q", "")[:2_000].strip()
    rows: list[Values] = []
    if question:
        rows = desk.recall_rows(question, RESULTS)
    most = max((sum(map(abs, row["why"].values())) for row in rows), default=0)
    clear = [row for row in rows if row["clear"]]
    return desk.page(
        "recall.html",
        screen="recall",
        q=question,
        rows=[
            {**row, "bar": _bar(row["why"], most), "signals": _signals_text(row["why"])}
            for row in rows
        ],
        clear=len(clear),
        nothing=bool(question) and not clear,
        considered=desk.memories.sums()["memories"],
        most=desk.settings.recall_files,
        used=_used_signals(rows),
        signals=SIGNALS,
        checked=[one for row in rows for one in row["checked"]][:20],
        **_ledger(desk, ask),
        said="",
    )


def _used_signals(rows: list[Values]) -> list[tuple[str, str]]:
    """The signals that speak in these results, for the legend."""
    names = dict.fromkeys(name for row in rows for name, value in row["why"].items() if value)
    return [SIGNALS.get(name, ("ghost2", name)) for name in names]


def _bar(why: Mapping[str, float], most: float) -> Markup:
    parts = [(SIGNALS.get(name, ("ghost2", ""))[0], max(0.0, value)) for name, value in why.items()]
    return Markup(bar(parts, f"signals: {_signals_text(why)}", most))


def _signals_text(why: Mapping[str, float]) -> str:
    named = ((SIGNALS.get(name, ("", name))[1], value) for name, value in why.items() if value)
    return ", ".join(f"{name} {value:.2f}" for name, value in named)


def _ledger(desk: Workspace, ask: ScreenRequest) -> dict[str, Any]:
    """What recall did in one session, turn by turn: the one asked for, else the newest."""
    try:
        if not desk.sessions.newest():
            return {"turns": [], "session": ""}
        name = ask.query.get("session", "") or desk.sessions.newest()
        turns = ledgers(desk.library.read(name).entries)
    except NotFound:
        return {"turns": [], "session": ""}
    return {"turns": [turn.value() for turn in turns[::-1][:MAX_TURNS]], "session": name}


RECALL_GET = {"/recall": show_recall}
RECALL_POST: dict[str, Any] = {}
