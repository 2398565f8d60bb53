"""The list of sessions and the timeline of one: what each layer did, and was it worth it?"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from markupsafe import Markup
from starlette.responses import Response

from reverie.apps.web.format import source
from reverie.apps.web.workspace import ScreenRequest, Workspace, missing
from reverie.providers.costs import dollars
from reverie.reports.plots import CACHE_WORDS, KIND_WORDS, PlotMark, stack_chart
from reverie.reports.session_index import PAGE, SORTS, SessionQuery
from reverie.reports.timeline import Values, count_events
from reverie.text.format import number, plural, short_number
from reverie.transcript.records import Usage

MAX_EVENTS = 50
MAX_TEXT = 16_000
_CHIPS = {
    "stored": "Stored",
    "sealed": "Sealed",
    "cleared": "Cleared",
    "compaction": "Compacted",
    "notes": "Notes",
    "learned": "Learned",
    "recall": "Recall",
    "fork": "Agents",
    "failed": "Faults",
}
_SHAPES = {"stored": "stored", "sealed": "seal", "compaction": "compaction"}


# --- the list


def list_sessions(desk: Workspace, ask: ScreenRequest) -> Response:
    sort = ask.query.get("sort", "-at")
    name = sort.removeprefix("-")
    query = SessionQuery(
        ask.query.get("q", "")[:200],
        ask.query.get("only", "")[:20],
        name if name in SORTS else "at",
        sort.startswith("-"),
        ask.page,
    )
    rows, count = desk.sessions.page(query)
    first = (query.page - 1) * PAGE + 1
    return desk.page(
        "sessions.html",
        screen="sessions",
        rows=rows,
        count=count,
        sums=desk.sessions.sums(),
        programs=dict(desk.sessions.programs()),
        query=query,
        sort=sort,
        first=first,
        last=first + len(rows) - 1,
        reading=desk.reading,
        policy=desk.settings.context_policy,
        saved=desk.savings.sums(desk.settings.context_policy)["sessions"],
        said="",
    )


# --- one session


def show_session(desk: Workspace, ask: ScreenRequest) -> Response:
    name = desk.sessions.find(ask.path["id"])
    row, told = desk.sessions.session(name)
    requests = cast("list[Values]", told["requests"])
    every = cast("list[Values]", told["events"])
    events, counts = _together(every), count_events(every)
    breaks = _breaks(told, requests)
    only = ask.query.get("only", "")
    kept = [one for one in events if not only or one.get("kind") == only]
    at = _at(ask, requests, kept)
    page = min(ask.page, max(1, -(-len(kept) // MAX_EVENTS)))
    untouched = cast("list[float]", row["untouched"])
    untouched = untouched if len(untouched) == len(requests) else []
    return desk.page(
        "timeline.html",
        screen="sessions",
        row=row,
        told=told,
        lead=_lead(row, told),
        at=at,
        request=requests[at - 1] if 0 < at <= len(requests) else None,
        here=[_words(one) for one in events if one["request"] == at and one["layer"] != "turn"],
        broken=[one for one in breaks if one["request"] == at],
        before=_beside(at, events, -1),
        behind=_beside(at, events, 1),
        window=_window(requests, events, breaks, at, untouched),
        untouched=untouched,
        cache=_cache_plot(requests, breaks, at) if row["cost"] else "",
        kind_words=KIND_WORDS,
        cache_words=CACHE_WORDS,
        largest=max((sum(one["kinds"].values()) for one in requests), default=0),
        room=desk.settings.context_window or desk.settings.default_window,
        events=[_words(one) for one in kept[(page - 1) * MAX_EVENTS : page * MAX_EVENTS]],
        count=len(kept),
        page=page,
        pages=max(1, -(-len(kept) // MAX_EVENTS)),
        chips=[(kind, word, counts[kind]) for kind, word in _CHIPS.items() if kind in counts],
        only=only,
        breaks=breaks,
        counts=counts,
        money=_money(row, told),
        policy=desk.settings.context_policy,
        follows=not ask.query,
        resume=f"reverie --resume {name}",
        at_folder=shlex.quote(str(desk.place.root)),
        said="",
    )


def _at(ask: ScreenRequest, requests: Sequence[Values], kept: Sequence[Values]) -> int:
    """The request that is looked at: asked for, else that of the last deed, else the last."""
    given = ask.query.get("at", "")
    if given.isdecimal() and len(given) < 9:
        return max(1, min(int(given), len(requests)))
    deeds = [one["request"] for one in kept if one["layer"] != "turn"]
    return min(deeds[-1] if deeds else len(requests), len(requests))


def _beside(at: int, events: Sequence[Values], way: int) -> int:
    """The next request that something happened for, on one side."""
    found = {one["request"] for one in events if one["layer"] != "turn"}
    near = [one for one in found if (one - at) * way > 0]
    return (min(near) if way > 0 else max(near)) if near else 0


def _breaks(told: Values, requests: Sequence[Values]) -> list[Values]:
    """The cache breaks of the main conversation, each with its request."""
    places = {one.get("entry"): n for n, one in enumerate(requests, 1)}
    broken = told.get("cache", {}).get("broken", [])
    return [{**one, "request": places.get(one["entry"], 0)} for one in broken]


def _money(row: Values, told: Values) -> float | None:
    """Dollars, where the model has a published price."""
    del told
    used = Usage(row["uncached"], row["read"], row["written"], row["output"])
    return dollars(row["model"], used)


def _lead(row: Values, told: Values) -> str:
    """The sentence that a person could repeat."""
    if row["error"]:
        return "This session cannot be read."
    if not row["requests"]:
        return "Nothing was asked of a model yet."
    if not row["cost"]:
        return "The embedded model answered: nothing is billed, there is no cache"
    breaks = "no cache break" if not row["breaks"] else plural(row["breaks"], "cache break")
    if not told["recorded"]:
        breaks = "breaks cannot be told: its requests were not recorded"
    return f"of its input was read from the cache; {breaks}. {number(row['cost'])} units"


# --- plots


def _window(
    requests: Sequence[Values],
    events: Sequence[Values],
    breaks: Sequence[Values],
    at: int,
    untouched: Sequence[float],
) -> Any:
    if not requests:
        return ""
    rows = [{f"k-{kind}": count for kind, count in one["kinds"].items()} for one in requests]
    classes = {f"k-{kind}": words for kind, words in KIND_WORDS.items()}
    counts = count_events(events)
    largest = max(sum(row.values()) for row in rows)
    label = (
        f"Tokens in the window by kind over {plural(len(rows), 'request')}; largest"
        f" {number(largest)}. {plural(counts.get('sealed', 0), 'seal')},"
        f" {plural(counts.get('stored', 0), 'stored result')},"
        f" {plural(counts.get('compaction', 0), 'compaction')},"
        f" {plural(len(breaks), 'cache break')}."
    )
    if untouched:
        label += f" If nothing were done, the largest had {number(max(untouched))}."
    marks = _flags(events, breaks, len(rows))
    return Markup(stack_chart(rows, classes, label, marks=marks, at=at, over=untouched))


def _flags(events: Sequence[Values], breaks: Sequence[Values], requests: int) -> list[PlotMark]:
    marks: list[PlotMark] = []
    for one in events:
        shape = _SHAPES.get(one.get("kind", ""))
        if shape and one["request"] <= requests and len(marks) < 200:
            text = f"request {one['request']}: {one['kind']}; {one.get('why', '')}"
            marks.append(PlotMark(one["request"], shape, text[:200]))
    broken = [one for one in breaks if one["request"]]
    return marks + [
        PlotMark(one["request"], "break", f"request {one['request']}: {one['explanation']}")
        for one in broken[:100]
    ]


def _cache_plot(requests: Sequence[Values], breaks: Sequence[Values], at: int) -> Any:
    if not any(one["usage"] for one in requests):
        return ""
    rows: list[Mapping[str, float]] = []
    for one in requests:
        used = one["usage"] or {"read": 0, "written": 0, "uncached": 0}
        rows.append(
            {"c-read": used["read"], "c-written": used["written"], "c-plain": used["uncached"]}
        )
    classes = {f"c-{name}": words for name, words in CACHE_WORDS.items()}
    label = "Tokens read from and written to the cache by request"
    marks = _flags((), breaks, len(rows))
    return Markup(stack_chart(rows, classes, label, low=True, marks=marks, at=at))


# --- events in words


def _together(events: Sequence[Values]) -> list[Values]:
    """Results that were cleared in one go are one event, with the tools they came from."""
    out: list[Values] = []
    for one in events:
        last = out[-1] if out else {}
        cleared = one.get("kind") == "cleared"
        if cleared and all(last.get(name) == one[name] for name in ("kind", "request", "why")):
            last["tools"].append(one["tool"])
        else:
            out.append({**one, "tools": [one["tool"]]} if cleared else one)
    return out


def _describe_clearing(one: Values) -> tuple[str, str]:
    counts = Counter(tool or "a tool" for tool in one["tools"])
    if len(one["tools"]) == 1:
        return f"An old result of {next(iter(counts))} cleared.", one["why"]
    tools = ", ".join(f"{tool} {count}" for tool, count in counts.items())
    return f"{len(one['tools'])} old results cleared: {tools}.", one["why"]


def _words(one: Values) -> Values:
    """An event with the sentence it is told in."""
    if one["layer"] == "turn":
        return one
    made = _SENTENCES[one["kind"]](one)
    return {**one, "sentence": made[0], "reason": made[1]}


def _describe_collapse(one: Values) -> tuple[str, str]:
    then, now = sum(one["before"].values()), sum(one["after"].values())
    what = {"snip": "Taken out", "folded": "Sealed lines folded"}.get(
        one["reason"], "Old rounds sealed"
    )
    return f"{what}: {number(then)} tokens became {number(now)}.", one["why"]


def _describe_compaction(one: Values) -> tuple[str, str]:
    calls = "no model asked" if not one["calls"] else plural(one["calls"], "call") + " to a model"
    who = "/compact" if one["trigger"] == "manual" else "The window was full"
    then, now = number(one["tokens_before"]), number(one["tokens_after"])
    return f"{who}: {then} tokens became {now}, {calls}.", one["why"]


def _recall(one: Values) -> tuple[str, str]:
    looked = plural(one["considered"], "memory", "memories")
    if not one["injected"]:
        why = "" if "clearly useful" in one["why"] else one["why"]
        return f"{looked} considered, none clearly useful.", why
    files = ", ".join(hit["file"] for hit in one["injected"])
    return f"{looked} considered, {len(one['injected'])} injected: {files}.", one["why"]


def _describe_learning(one: Values) -> tuple[str, str]:
    files = ", ".join(one["written"])
    return (f"Learned: {files}." if files else "Nothing new to learn."), one["why"]


def _agent(one: Values) -> tuple[str, str]:
    asked = f"{plural(one['requests'], 'request')}, {short_number(one['tokens'])} tokens"
    who = source(one["source"])
    return f"{who[:1].upper()}{who[1:]}: {one['outcome']}, {asked}.", ""


_SENTENCES: dict[str, Callable[[Values], tuple[str, str]]] = {
    "stored": lambda one: (
        f"A result of {number(one['size'])} bytes stored; the context holds its beginning.",
        one["why"],
    ),
    "cleared": _describe_clearing,
    "sealed": _describe_collapse,
    "compaction": _describe_compaction,
    "notes": lambda one: (
        f"Session notes brought up to date, {short_number(one['tokens'])} tokens covered.",
        "",
    ),
    "learned": _describe_learning,
    "recall": _recall,
    "fork": _agent,
    "failed": lambda one: ("It failed, and the session went on without it.", one["error"]),
    "refused": lambda one: ("The provider refused a request.", one["error"]),
}


# --- what was stored


def show_stored(desk: Workspace, ask: ScreenRequest) -> Response:
    """A stored result read back, from a place in it on."""
    name = desk.sessions.find(ask.path["id"])
    _, told = desk.sessions.session(name)
    call = ask.path["call"]
    found = next(
        (one for one in told["events"] if one.get("kind") == "stored" and one["call"] == call), None
    )
    if found is None:
        raise missing("stored result", call)
    data = desk.library.folder.read(f"{name}/{found['path']}")
    offset = ask.query.get("from", "0")
    start = min(int(offset), len(data)) if offset.isdecimal() and len(offset) < 12 else 0
    text = data[start : start + MAX_TEXT].decode("utf-8", "replace")
    following = start + MAX_TEXT if start + MAX_TEXT < len(data) else 0
    return desk.page(
        "stored.html",
        screen="sessions",
        session=name,
        event=found,
        text=text,
        start=start,
        following=following,
        size=len(data),
        said="",
    )


GET = {
    "/sessions": list_sessions,
    "/sessions/{id}": show_session,
    "/sessions/{id}/stored/{call}": show_stored,
}
POST: dict[str, Any] = {}
