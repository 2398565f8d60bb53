"""What this installation has, what is wrong with it, and what it lacks.

It looks and changes nothing; asked to fix things it takes rights away from others on files of
ours, and removes temporary files that nobody writes any more. Something that is merely not
there is a note, not a problem.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import anyio

from reverie.clients.background import background_facts, describe_background
from reverie.clients.files import ClientSettings
from reverie.clients.plugin import is_outdated
from reverie.clients.proxy_address import ProxyAddress, known_token, object_in, proxy_status
from reverie.clients.service import WITHOUT
from reverie.embedded.model import EmbeddedModel
from reverie.errors import PathRefused, ReverieError
from reverie.memory.values import list_memories
from reverie.observer import SystemClock
from reverie.providers.anthropic import AnthropicModel
from reverie.providers.cli import agent_facts
from reverie.providers.cli_programs import PROGRAMS
from reverie.providers.connection import install_command
from reverie.providers.costs import dollars, money
from reverie.providers.openai import OpenAIModel
from reverie.providers.selection import AGENT, model_for
from reverie.reports import home_files
from reverie.session.budget import Budget, days
from reverie.session.library import SessionLibrary, holder
from reverie.session.open_memory import find_memory
from reverie.settings.schema import read_object
from reverie.settings.sources import settings_places
from reverie.store import home as places
from reverie.store.agent_ledger import AgentLedger
from reverie.store.files import Folder
from reverie.store.journal import BadLine, Journal, LineFault
from reverie.store.lock import FileLock
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project, is_on
from reverie.store.rules import RuleStore
from reverie.text.format import plural, size, utc_day
from reverie.text.safety import line
from reverie.topics.entry import is_index
from reverie.transcript.blocks import text_block
from reverie.transcript.fold import apply
from reverie.transcript.records import Entry, HeadSet, UserMessage
from reverie.transcript.view import EMPTY
from reverie.wire.reply import Reply
from reverie.wire.request import Request, render
from reverie.world import complete, say_nothing

CheckState = Literal["ok", "note", "fixed", "problem"]
OLDEST = (3, 11)
LEAST_SPACE = 200 * 10**6

FIX = "It can be fixed; ask for fixes"
_TORN = (LineFault.TORN, LineFault.UNSEALED)
_PROGRAMS = {
    "git": ("memories are not checked against commits", "git"),
    "rg": ("files are searched by slower built-in code", "ripgrep"),
    "bwrap": ("background agents get no shell, typed tools only", "bubblewrap"),
}
"""What is lost without a program, and the package that brings it."""
EXTRAS = {
    "anthropic": (("anthropic",), "Anthropic's models cannot be asked"),
    "openai": (("openai",), "OpenAI's models cannot be asked"),
    "terminal": (("prompt_toolkit",), "`reverie chat` speaks line by line"),
    "web": (("jinja2", "starlette", "uvicorn"), "no page by `reverie web`"),
    "proxy": (("httpx2", "starlette", "uvicorn"), "no `reverie proxy`"),
    "mcp": (("mcp",), "no MCP: neither servers for our agent nor `reverie mcp`"),
    "server": (("starlette", "uvicorn"), "no `reverie simulate`"),
    "team": (
        ("psycopg", "starlette", "watchfiles"),
        "no `reverie team serve`, no sharing as you work",
    ),
    "fleet": (("procrastinate", "psycopg"), "`reverie fleet` stays on one host"),
    "semantic": (("numpy", "threadpoolctl"), "`reverie recall` goes by words, not by meaning"),
}
"""By extra: what it brings, and what is lost without."""
ASK = "Answer with the one word: ready"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    state: CheckState
    what: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class DoctorRun:
    """What is looked at, and whether faults are to be fixed."""

    place: Project
    fix: bool = False
    trial: bool = False  # whether the model is asked a word, which may cost a little

    def checks(self) -> Iterator[Check]:
        """All checks, in order; one that cannot be made says so and stops no other."""
        for name, look in _CHECKS.items():
            try:
                yield from look(self)
            except (ReverieError, OSError) as error:
                yield Check(name, "problem", str(error))


# --- the machine


def _python(_: DoctorRun) -> Iterator[Check]:
    found = sys.version.split()[0]
    good = sys.version_info >= OLDEST
    do = "" if good else "Install Python 3.11 or newer"
    yield Check("python", "ok" if good else "problem", f"Python {found}", do)


def _programs(_: DoctorRun) -> Iterator[Check]:
    for name, (loss, package) in _PROGRAMS.items():
        path = shutil.which(name)
        do = "" if path else f"Install the package {package}"
        yield Check(name, "ok" if path else "note", path or f"not found: {loss}", do)


def _sqlite(_: DoctorRun) -> Iterator[Check]:
    import sqlite3

    try:
        with sqlite3.connect(":memory:") as base:
            base.execute("create virtual table t using fts5(x)")
        base.close()
    except sqlite3.Error:
        loss = "no FTS5: searching memory and transcripts is slower"
        yield Check("sqlite", "note", f"SQLite {sqlite3.sqlite_version}, {loss}")
        return
    yield Check("sqlite", "ok", f"SQLite {sqlite3.sqlite_version} with FTS5")


def _extras(_: DoctorRun) -> Iterator[Check]:
    for name, (modules, loss) in EXTRAS.items():
        there = all(find_spec(module) is not None for module in modules)
        what = "installed" if there else f"absent: {loss}"
        yield Check(name, "ok" if there else "note", what, "" if there else install_command(name))


def _model(examined: DoctorRun) -> Iterator[Check]:
    place = examined.place
    settings = replace(place.settings, provider_retries=0)
    try:
        model = model_for("", place.environ, settings)
    except ReverieError as error:
        yield Check("model", "problem", error.what, error.do)
        return
    yield Check("model", "ok", model.name if model else "embedded: no key is configured")
    if examined.trial:
        yield _check_model(model or EmbeddedModel(settings))


async def _answer(model: AnthropicModel | OpenAIModel | EmbeddedModel, asked: Request) -> Reply:
    try:
        return await complete(model, asked)
    finally:
        if not isinstance(model, EmbeddedModel):
            await model.aclose()


def _check_model(model: AnthropicModel | OpenAIModel | EmbeddedModel) -> Check:
    """One word of the model's: key, address, network and name in one go."""
    view = apply(EMPTY, Entry("head", "", 0.0, HeadSet(model.name)))
    asked = apply(view, Entry("ask", "", 0.0, UserMessage((text_block(ASK),))))
    try:
        reply = anyio.run(_answer, model, render(asked))
    except ReverieError as error:
        return Check("trial", "problem", f"{model.name} did not answer: {error.what}", error.do)
    cost = None if reply.usage is None else dollars(model.name, reply.usage)
    paid = "" if model.capabilities.free or cost is None else f", for {money(cost)}"
    return Check("trial", "ok", f"{model.name} answered{paid}: {line(reply.text, 60)}")


def _agent(examined: DoctorRun) -> Iterator[Check]:
    """The user's agent program, where it may learn: version, flags, login, pause."""
    place = examined.place
    facts = background_facts(place)
    yield from (Check("background", "ok", line) for line in describe_background(facts))
    named = str(facts["model"]).removeprefix(AGENT).partition("/")[0]
    usable = True
    for name in PROGRAMS if named == "auto" else filter(PROGRAMS.__contains__, [named]):
        found = agent_facts(PROGRAMS[name], place.environ, place.settings)
        said = f"{name}: {found.version} at {found.path}" if found.path else f"{name}: not found"
        why = f", does not know {', '.join(found.missing)}" if found.missing else ""
        why += "" if found.logged_in or not found.path else ", not logged in"
        good = found.usable
        usable = usable and good
        state: CheckState = "ok" if good else "note" if named == "auto" else "problem"
        do = "" if good else f"Install or update {name}, and log in; until then rules learn"
        yield Check("background", state, f"{said}{why or ', logged in' * good}", do)
    if facts["paused"]:
        ends = examined.fix and usable
        if ends:
            AgentLedger(place.home).resume()
        what = f"The agent program is {facts['paused']}"
        yield Check("background", "fixed" if ends else "problem", what, "" if ends else FIX)


# --- home


def _home(examined: DoctorRun) -> Iterator[Check]:
    place, home = examined.place, examined.place.home
    there = next((p for p in (home, *home.parents) if p.is_dir()), home)
    try:
        places.check_folder(home)
    except PathRefused as error:
        yield Check("home", "problem", f"{error.where} is no folder", error.do)
        return
    if not os.access(there, os.W_OK | os.X_OK):
        yield Check("home", "problem", f"{home} cannot be written", "Check who owns it")
    elif home.is_dir():
        layout = "shared with Claude Code" if places.is_shared(home, place.environ) else ""
        yield Check("home", "ok", f"{home} {layout}".strip())
    else:
        yield Check("home", "ok", f"{home} is made when something is first written")
    free = shutil.disk_usage(there).free
    if free >= LEAST_SPACE:
        yield Check("space", "ok", f"{size(free)} free")
    else:
        yield Check("space", "problem", f"{size(free)} free", f"Free at least {size(LEAST_SPACE)}")


def _rights(examined: DoctorRun) -> Iterator[Check]:
    place = examined.place
    found = home_files.open_to_others(place.home, place.environ)
    named = ", ".join(str(path) for path in found[:3]) + (", …" if len(found) > 3 else "")
    what = f"{plural(len(found), 'file or folder', 'files and folders')} open to others: {named}"
    if not found:
        yield Check("rights", "ok", "files 0600, folders 0700")
    elif examined.fix:
        left = [path for path in found if not home_files.close_to_others(path)]
        yield Check("rights", "problem" if left else "fixed", what)
        yield from map(_link_problem, filter(home_files.has_other_names, left))
    else:
        yield Check("rights", "problem", what, FIX)


def _link_problem(path: Path) -> Check:
    what = f"{path} is left as it is: it has a second name, perhaps outside home"
    return Check("rights", "problem", what, "Replace it by a copy, or remove it")


def _temporary(examined: DoctorRun) -> Iterator[Check]:
    home = examined.place.home
    found = home_files.temporary(home)
    if not found:
        yield Check("temporary", "ok", "none left over")
        return
    what = plural(len(found), "temporary file")
    if examined.fix:
        swept = home_files.sweep(home)
        kept = f", {len(found) - swept} of them perhaps in use" if swept < len(found) else ""
        yield Check("temporary", "fixed" if swept else "note", f"{what}{kept}")
    else:
        yield Check("temporary", "note", what, FIX)


# --- the project


def _settings(examined: DoctorRun) -> Iterator[Check]:
    place = examined.place
    found = [*place.problems, *place.flags.problems()]
    for problem in dict.fromkeys(found):
        state: CheckState = "problem" if problem.level == "error" else "note"
        yield Check("settings", state, str(problem), "Correct the file that it names")
    if not found:
        yield Check("settings", "ok", "all settings and flags are valid")


def _project(examined: DoctorRun) -> Iterator[Check]:
    place = examined.place
    folder = place.folder()
    owner = read_object(folder / places.OWNER)[0].get("root")
    moved = f", moved here from {owner}" if owner not in (None, str(place.root)) else ""
    made = moved if folder.is_dir() else ", made at the first session"
    yield Check("project", "ok", f"{place.root} → {folder.name}{made}")
    if not (now := is_on(place)).on:
        do = "`reverie on` switches it on"
        yield Check("project", "note", f"Reverie is off here ({now.where})", do)


def _memory(examined: DoctorRun) -> Iterator[Check]:
    """Whether memories can be read, and whether some wait for a person."""
    with find_memory(examined.place, say_nothing) as memories:
        if memories is None:
            yield Check("memory", "ok", "none yet")
            return
        count, waiting = len(list_memories(memories)), len(memories.review.items())
        broken = memories.review.unreadable()
        if memories.forgotten.unfinished():
            do = "Forget the same words again"
            yield Check("memory", "problem", "A forget was cut off: some words are left", do)
    told = f"{plural(count, 'memory', 'memories')} read"
    if broken:
        yield Check("memory", "problem", f"{told}; {broken[0]} in review cannot be read")
    elif waiting:
        do = "`reverie memory review list` shows them"
        yield Check("memory", "note", f"{told}, {waiting} waiting for review", do)
    else:
        yield Check("memory", "ok", told)


def _transcripts(examined: DoctorRun) -> Iterator[Check]:
    library = SessionLibrary.find(examined.place)
    files = library.sessions() if library else []
    if library is None or not files:
        yield Check("sessions", "ok", "none yet")
        return
    torn = 0
    for file in files:
        try:
            found = list(Journal.open(library.folder, file.path.name, write=False).read())
        except ReverieError as error:
            yield Check("sessions", "problem", str(error), "Check who may read it")
            continue
        faults = [one for one in found if isinstance(one, BadLine)]
        bad = [one for one in faults if one.reason not in _TORN]
        torn += len(faults) - len(bad)
        if bad:
            what = f"{file.id}: {plural(len(bad), 'line')} cannot be read, the first is number"
            yield Check("sessions", "problem", f"{what} {bad[0].number}: {bad[0].reason}", _DAMAGED)
    yield Check("sessions", "ok", f"{plural(len(files), 'transcript')} of this project read")
    if torn:
        what = f"{plural(torn, 'line')} torn by a crash, never acknowledged"
        yield Check("sessions", "note", f"{what}; passed over")


_DAMAGED = "Check the disk; all other lines still count"


def _locks(examined: DoctorRun) -> Iterator[Check]:
    place = examined.place
    library = SessionLibrary.find(place)
    held = [
        f"{file.id} by {who}"
        for file in (library.sessions() if library else [])
        if library and (who := holder(library, file))
    ]
    projects = FileLock(place.home / places.LOCK).holder()
    held += [f"the list of projects by {projects}"] if projects else []
    yield Check("locks", "ok", f"in use: {'; '.join(held)}" if held else "nothing is in use")


# --- clients that speak through the proxy


def _keys(examined: DoctorRun) -> Iterator[Check]:
    """What was learned where requests of a key named neither a folder nor a person."""
    home = examined.place.home
    for key in sorted(home.glob("proxy/keys/*")):
        folder = places.find_project_folder(home, key) / "memory"
        count = sum(file.name != "MEMORY.md" for file in folder.glob("*.md"))
        if count:
            what = f"{plural(count, 'memory', 'memories')} of nobody in particular in {folder}"
            do = "Copy what is yours into a project's memory, and remove the folder"
            yield Check("keys", "note", f"{what}: kept, told to nobody", do)


def _clients(examined: DoctorRun) -> Iterator[Check]:
    place = examined.place
    clients = ClientSettings(place)
    for name in clients.installed():
        address = ProxyAddress(clients.port(name), known_token(place.home))
        found = clients.in_place(name, address)
        if found is None:
            do = f"`reverie install {name}` puts it back, `reverie uninstall {name}` forgets it"
            yield Check("clients", "problem", f"{name}: its settings no longer name the proxy", do)
            continue
        yield _traffic(name, found)
    if is_outdated(place.environ):
        what = "claude-code: the plugin's hooks block every call once this package is gone"
        do = "`reverie install claude-code --plugin` writes hooks that do not"
        yield Check("clients", "problem", what, do)


def _traffic(name: str, address: ProxyAddress) -> Check:
    told = proxy_status(address)
    if told is None:
        gone = f"{name} is set to the proxy, but nothing answers on port {address.port}"
        what = f"{gone}: without it, {name} {WITHOUT[name]}"
        do = f"Start it: `reverie proxy`; or take it out: `reverie uninstall {name}`"
        return Check("clients", "problem", what, do)
    own = object_in(told, "requests")  # of whoever uses an address without a name
    if address.client:
        own = object_in(object_in(told, "clients"), name)
    count = sum(n for n in own.values() if isinstance(n, int))
    if not count:
        what = f"{name}: the proxy runs, no request has arrived since it started"
        return Check("clients", "note", what, f"Start {name} anew and ask it something")
    arrived = "request has" if count == 1 else "requests have"
    what = f"{name}: {count:,} {arrived} arrived at the proxy since it started"
    return Check("clients", "ok", what)


_CHECKS: dict[str, Callable[[DoctorRun], Iterator[Check]]] = {
    "python": _python,
    "programs": _programs,
    "sqlite": _sqlite,
    "extras": _extras,
    "model": _model,
    "background": _agent,
    "home": _home,
    "rights": _rights,
    "temporary": _temporary,
    "settings": _settings,
    "project": _project,
    "memory": _memory,
    "sessions": _transcripts,
    "locks": _locks,
    "clients": _clients,
    "keys": _keys,
}


# --- what ran unasked, who changed what is trusted, and who forgot what


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One thing that was done: on which day (UTC), by whom, and what."""

    day: str
    who: str
    what: str


def audit(place: Project, now: float, back: int = 30) -> list[AuditRow]:
    """Read the ledgers that exist: history, budget, rules, forgotten words, settings files."""
    with find_memory(place, say_nothing) as memories:
        rows = [*_memory_rows(memories, place.root)] if memories else []
    rows += [*_spent_rows(place, now, back), *_settings_rows(place)]
    first = utc_day(now - back * 86_400)
    return sorted((one for one in rows if one.day >= first), key=lambda one: one.day, reverse=True)


def _memory_rows(memories: MemoryStore, root: Path) -> Iterator[AuditRow]:
    steps: dict[tuple[str, str, str], list[str]] = {}
    for step in memories.history.log():
        origin = step.origin
        own = origin.agent in ("", "user") and origin.kind in ("save", "edit") and not origin.note
        if not own and not is_index(step.key):
            what = f"{origin.kind} ({origin.note})" if origin.note else origin.kind
            who = origin.agent or origin.tool or "unknown"
            steps.setdefault((utc_day(step.at), who, what), []).append(step.key)
    for (day, who, what), keys in steps.items():
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield AuditRow(day, who, f"{what}: {keys[0]}{more}")
    for mark in memories.forgotten.marks():
        state = "" if mark.done else ", cut off"
        yield AuditRow(utc_day(mark.at), "user", f"forget: {mark.length} characters{state}")
    for file, counts in RuleStore(memories, root).counts().items():
        for day, events in counts.days.items():
            told = ", ".join(f"{event} {count}" for event, count in sorted(events.items()))
            yield AuditRow(day, "rules", f"{file}: {told}")


def _spent_rows(place: Project, now: float, back: int) -> Iterator[AuditRow]:
    with Folder(place.home) as home:
        for one in days(Budget(home, place.settings, SystemClock()), now, back):
            for source, calls in one.calls.items():
                spent = f"{plural(calls, 'call')}, {one.weighted[source]:,.0f} weighted tokens"
                yield AuditRow(one.day, source, f"ran unasked: {spent}")


def _settings_rows(place: Project) -> Iterator[AuditRow]:
    for kind, path in settings_places(home=place.home, root=place.root).items():
        with suppress(OSError, KeyError):  # not there, or of a user without a name
            day, who = utc_day(path.stat().st_mtime), path.owner()
            yield AuditRow(day, who, f"changed {kind} settings: {path}")
