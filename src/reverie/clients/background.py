"""What a model learns behind the plugin and the proxy, once the user has said yes.

Rules learn at once, where a turn ends. A model is asked later: a turn's end only leaves a note of
what is due (`agent/due`) and starts one worker for the home, in a session of its own, that waits
for more turns, takes the newest state of each session, and ends when nothing is due. What fails
stays due. Nothing runs where `background_model` is not set.

A key that only lies in a client's environment is not used here: it counts where the setting
`background_key` names its variable.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from reverie import programs
from reverie.clients.files import ClientSettings
from reverie.clients.proxy_address import known_token
from reverie.concurrency import run
from reverie.errors import Held, InvalidInput, NotFound, ReverieError
from reverie.light import dataclass
from reverie.memory.tasks import TaskRun, dream_memory
from reverie.memory.work import learn_session
from reverie.providers.cli import CliModel, agent_facts, parse_name
from reverie.providers.cli_programs import INSIDE, PROGRAMS
from reverie.providers.selection import AGENT, model_for
from reverie.session.transfer import past_in
from reverie.settings.catalog import Settings
from reverie.settings.sources import environment
from reverie.store.agent_ledger import DREAM_USD, PLACE, AgentLedger
from reverie.store.files import Folder
from reverie.store.lock import FileLock
from reverie.store.project import Project
from reverie.transcript.records import Extracted
from reverie.world import Model, say_nothing

DUE = "due"
WORKER = "worker.lock"
AT_ONCE = 3
"""Sessions after which it is looked again what is due, the newest first."""
IDLE = 240.0
"""Seconds after which a session's turns are due, however few they are."""
DAY = 86_400.0
MAX_NOTE = 65_536
CLIENTS = {"claude": ("claude-code", "anthropic", ""), "codex": ("codex", "openai", "/v1")}
ADDRESSES = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
CHEAP = {"ANTHROPIC": "anthropic:claude-haiku-4-5", "OPENAI": "openai:gpt-5"}
"""The model that `auto` takes with a key, by how the variable's name begins."""


# --- who learns


def wants_model(settings: Settings) -> bool:
    """Whether the user has said yes to a model."""
    return (settings.background_model or "off") not in ("off", "embedded")


def background_name(project: Project) -> str:
    """The model that would learn here now, or "" for rules."""
    settings, name = project.settings, project.settings.background_model or ""
    if not wants_model(settings) or INSIDE in project.environ:
        return ""
    if name != "auto":
        return name
    key = settings.background_key or ""
    if project.environ.get(key):
        found = next((model for start, model in CHEAP.items() if key.startswith(start)), "")
        if found:
            return found
    usable = (
        one for one in PROGRAMS.values() if agent_facts(one, project.environ, settings).usable
    )
    return next((f"{AGENT}{one.name}" for one in usable), "")


def background_model(project: Project, *, dream: bool = False) -> Model | None:
    """The model that learns behind plugin and proxy, or that may `dream`; None for rules."""
    name = background_name(project)
    if not name:
        return None
    if not name.startswith(AGENT):
        return model_for(name, _own_keys(project, name), project.settings)
    program, model = parse_name(name)

    def allowed() -> bool:
        now = project.reload().settings
        return wants_model(now) and not now.memory_off()

    meter, base = AgentLedger(project.home, dream=dream), _past_the_proxy(project, program.name)
    return CliModel(program, model, meter, project.environ, project.settings, base, allowed)


def _own_keys(project: Project, name: str) -> Mapping[str, str]:
    """The environment with the one key that our settings name, for the provider of a model."""
    variable = project.settings.background_key or ""
    key = project.environ.get(variable, "")
    if not key and not name.startswith("ollama:"):
        do = "Set background_key to the environment variable that holds it"
        raise InvalidInput("no key is named for background work", where=name, do=do)
    host = project.environ.get("OLLAMA_HOST", "")
    which = "OPENAI_API_KEY" if name.startswith("openai") else "ANTHROPIC_API_KEY"
    return {which: key, "OLLAMA_HOST": host}


def _past_the_proxy(project: Project, program: str) -> str:
    """The address in place of our proxy's, where the program would go through that; or ""."""
    client, api, end = CLIENTS[program]
    clients = ClientSettings(replace(project, environ=dict(project.environ)))
    url = ""
    if client in clients.installed():
        url = clients.upstreams(clients.port(client)).get(api) or ADDRESSES[api]
    elif (token := known_token(project.home)) and token in str(
        project.environ.get(f"{api.upper()}_BASE_URL")
    ):
        url = ADDRESSES[api]
    return f"{url}{end}" if url else ""


def terms(settings: Settings) -> str:
    """What a yes means: what is sent where, and what it costs at most."""
    return (
        "What you and the agent said, without files and tool results, goes to the provider that "
        "your agent uses: about 3,000 tokens every few turns, at most "
        f"${settings.cli_daily_usd:.2f} a day by list price. Once a day it may tidy the memory, "
        f"whose files are sent then, for at most ${DREAM_USD:.2f} of that. "
        "`reverie config set background_model off` ends it."
    )


def background_facts(project: Project) -> dict[str, Any]:
    """Who learns behind plugin and proxy, and what the agent program did today."""
    ledger, settings = AgentLedger(project.home), project.settings
    state, own = ledger.state(), Project.personal(home=project.home, environ=project.environ)
    return {
        "model": settings.background_model if wants_model(settings) else "rules",
        "extract_noninteractive": project.flags.on("extract_noninteractive"),
        "due": len(_due(own, set())),
        "paused": ledger.paused(),
        "limits": {"calls": settings.cli_daily_calls, "usd": settings.cli_daily_usd},
        **{key: value for key, value in asdict(state).items() if key not in ("until", "untold")},
    }


def describe_background(facts: Mapping[str, Any]) -> list[str]:
    """The same in sentences."""
    alone = "learned from" if facts["extract_noninteractive"] else "not learned from"
    rest = f"Sessions with nobody there (`claude -p`, SDK) are {alone} (extract_noninteractive)."
    if facts["model"] == "rules":
        how = "`reverie config set background_model auto` lets a model learn too, and says its cost"
        return [f"Rules learn behind plugin and proxy. {how}.", rest]
    used = f"{facts['calls']:,} of {facts['limits']['calls']:,} runs, {facts['tokens']:,} tokens"
    spent = f"${facts['usd']:.4f} of ${facts['limits']['usd']:.2f} by list price"
    lines = [f"{facts['model']} learns behind plugin and proxy: {used}, {spent} today."]
    if facts["paused"]:
        lines.append(f"It is {facts['paused']}")
    elif facts["error"]:
        lines.append(f"Its last error: {facts['error']}")
    return [*lines, rest]


# --- what is due


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session with turns that no model has seen."""

    transcript: str
    folder: str  # whose project's memory learns
    turns: int = 0
    ended: bool = False
    at: float = 0.0

    def is_due(self, settings: Settings, now: float) -> bool:
        enough = self.ended or self.turns >= settings.cli_every_turns or now - self.at > IDLE
        return self.turns > 0 and enough


def note_turn(project: Project, transcript: Path, session: str, *, ended: bool = False) -> None:
    """Note that a turn of a session, or the session, has ended; start the worker where it is due.
    Nothing happens where the user has not said yes. Where both plugin and proxy see a session, it
    is learned from the transcript that was noted first."""
    project = project.reload()
    if not wants_model(project.settings) or INSIDE in project.environ:
        return
    with Folder(project.home / PLACE / DUE) as folder:
        key = f"{sha256(session.encode()).hexdigest()[:32]}.json"
        known = _read(folder, key) or DueSession(str(transcript), str(project.root))
        if known.transcript != str(transcript):
            return
        noted = replace(known, turns=known.turns + 1, ended=known.ended or ended, at=time.time())
        _write(folder, key, noted)
    if noted.is_due(project.settings, noted.at) and not _worker_lock(project.home).holder():
        _start_worker(project)


def _start_worker(project: Project) -> None:
    """Start it as nobody's child, so that it outlives a hook."""
    given = {**project.environ, "REVERIE_HOME": str(project.home)}
    programs.detach(programs.python(__name__), given)


def _worker_lock(home: Path) -> FileLock:
    return FileLock(home / PLACE / WORKER)


def _read(folder: Folder, key: str) -> DueSession | None:
    try:
        return DueSession(**json.loads(folder.read(key, MAX_NOTE)))
    except (NotFound, ValueError, TypeError):
        return None


def _write(folder: Folder, key: str, noted: DueSession) -> None:
    folder.write(key, json.dumps(asdict(noted)).encode(), durable=False)


def _due(own: Project, passed: set[str]) -> list[tuple[str, DueSession]]:
    """What is due and was not tried, the newest first."""
    try:
        with Folder(own.home / PLACE / DUE, create=False) as folder:
            known = [(key, _read(folder, key)) for key in folder.list() if key not in passed]
    except NotFound:
        return []
    now = time.time()
    found = [(key, one) for key, one in known if one and one.is_due(own.settings, now)]
    return sorted(found, key=lambda pair: pair[1].at, reverse=True)


# --- the worker


def work(own: Project) -> None:
    """Learn what is due, and what becomes due on the way. It is looked once more after the lock
    is given up: who noted something until then saw the lock and started no worker."""
    passed = set[str]()
    while _due(own, passed):
        try:
            with _worker_lock(own.home).hold(0.0):
                _drain(own, passed)
        except Held:
            return


def _drain(own: Project, passed: set[str]) -> None:
    learned = dict[str, None]()  # folders, in order
    while due := _due(own, passed):
        wait = own.settings.cli_wait_seconds
        rest = due[0][1].at + wait - time.time()
        if 0 < rest <= wait:
            time.sleep(rest)
            continue
        for key, one in due[:AT_ONCE]:
            passed.add(key)
            if _learned(own, one):
                passed.discard(key)
                _settle(own, key, one)
                learned[one.folder] = None
    for folder in learned:
        _dream(own, folder)


def _learned(own: Project, due: DueSession) -> bool:
    """Learn from one session; False where it stays due."""
    try:
        project = Project.at(due.folder, home=own.home, environ=own.environ)
        off = project.settings.memory_off() or not project.flags.on("extract_memories")
        if off or not wants_model(project.settings) or not Path(due.transcript).is_file():
            return True
        model = background_model(project)
        if model is None:
            return False
        past = past_in(Path(due.transcript), lambda _: None)
        said = tuple(one for one in past.entries if not isinstance(one.record, Extracted))
        learn_session(project, replace(past, entries=said), model, say_nothing)
    except ReverieError:
        return False
    return True


def _dream(own: Project, folder: str) -> None:
    """Tidy a memory with the agent program where that is due, once a day in a home."""
    with suppress(ReverieError):
        project = Project.at(folder, home=own.home, environ=own.environ)
        model = background_model(project, dream=True)
        if isinstance(model, CliModel) and not AgentLedger(own.home).state().dreams:
            run(lambda: dream_memory(project, TaskRun(model)))


def _settle(own: Project, key: str, seen: DueSession) -> None:
    """Leave due only what was noted since; a note without turns is kept for a day, so that the
    session stays with its transcript."""
    with suppress(NotFound), Folder(own.home / PLACE / DUE, create=False) as folder:
        now = _read(folder, key) or seen
        more = now.turns - seen.turns
        _write(folder, key, replace(now, turns=more, ended=now.ended and more > 0))
        for old in folder.list():
            known = _read(folder, old)
            if known is None or (not known.turns and time.time() - known.at > DAY):
                folder.remove(old, durable=False)


if __name__ == "__main__" and INSIDE not in environment():
    work(Project.personal(environ=dict(environment())))
