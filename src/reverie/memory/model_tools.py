"""A memory as tools for a model: two for any loop, all of them for doors that are tools alone.

Searching, asking, keeping, listing, reading, what was, taking back, checking, past sessions. What
a model keeps is an agent's word, never a person's; what it read elsewhere is untrusted, and where
that reads like an instruction it waits for a person's look. An order to override, leak, hide or run
waits wherever it came from. What is found is framed as memory and bounded. Secrets are refused,
and every change can be taken back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reverie.errors import InvalidInput, NotFound
from reverie.memory.context import HEADING, note
from reverie.text.format import cut_line, plural, utc_minute
from reverie.text.safety import frame, neutralize_markup
from reverie.toolbox.toolset import Offer, ToolAnswer, Toolset
from reverie.topics.entry import TYPES

if TYPE_CHECKING:
    from reverie.memory.dream_tools import ClientDreams
    from reverie.memory.memory import Memory
    from reverie.memory.values import Change, Found, Saved

SEARCH = "search_memory"
REMEMBER = "remember"
READING = (SEARCH, "ask_memory", "list_memories", "read_memory", "memory_history", "check_memory")
LONGEST = 20_000
"""Characters that may be kept as one memory."""
EACH = 4_096
"""Characters of one memory among several."""
WHOLE = 40_000
"""Characters of one answer."""
LISTED = 50
CHANGES = 20
FAULTS = 50
_CLIENT = re.compile(r"[^A-Za-z0-9_.-]+")
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 50}
_FILE = {"type": "string", "maxLength": 300}

Run = Callable[["Memory", Mapping[str, Any]], str]
_SEARCHED: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in words"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
)
_REMEMBERED: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The fact, with its reason, in full"},
            "name": {"type": "string", "description": "A few words to file it under"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
)


def memory_tools(memory: Memory) -> Toolset:
    """The tools of one memory."""
    return Toolset(
        [
            Offer(
                SEARCH,
                SEARCH,
                "Searches what is remembered from earlier conversations, best first, with ages.",
                _SEARCHED,
                lambda given: _give_found(memory, given),
            ),
            Offer(
                REMEMBER,
                REMEMBER,
                "Keeps one fact for later conversations. Not for what files or history tell.",
                _REMEMBERED,
                lambda given: _keep(memory, given),
            ),
        ]
    )


def _give_found(memory: Memory, given: Mapping[str, Any]) -> ToolAnswer:
    hits = memory.search(str(given["query"]), limit=int(given.get("limit") or 5))
    if not hits:
        return ToolAnswer("Nothing that is remembered fits.")
    return ToolAnswer("\n\n".join([HEADING, *map(note, hits)]))


def _keep(memory: Memory, given: Mapping[str, Any]) -> ToolAnswer:
    writer = memory.__as_model__(REMEMBER)
    done = writer.add(str(given["text"]), name=str(given.get("name") or ""))
    return ToolAnswer(_waiting(done) if done.outcome == "queued" else str(done))


def _waiting(done: Saved) -> str:
    return (
        f"Not saved yet: it reads like an instruction ({_line(done.reason)}), so it waits for "
        "the person's look (`reverie memory review`). Tell them."
    )


def model_tools(
    memory: Memory,
    *,
    client: str = "",
    read_only: bool = False,
    dreams: ClientDreams | None = None,
) -> Toolset:
    """The tools of one memory; `client` is who calls them, for the history. With `dreams` the
    client's own model can tidy it."""
    who = _CLIENT.sub("-", client).strip("-")[:64]
    made = [
        _offer(memory, SEARCH, _SEARCH, {"query": _QUERY, "limit": _LIMIT}, ["query"], _search),
        _offer(memory, "ask_memory", _ASK, {"question": _QUERY}, ["question"], _ask),
        _offer(memory, "list_memories", _LIST, {"type": _TYPE, "page": _PAGE}, [], _list),
        _offer(memory, "read_memory", _READ, {"file": _FILE}, ["file"], _read),
        _offer(
            memory, "search_sessions", _PAST, {"query": _QUERY, "limit": _LIMIT}, ["query"], _past
        ),
        _offer(memory, "memory_history", _HISTORY, {"file": _FILE}, [], _history),
        _offer(memory, "check_memory", _CHECK, {}, [], _check),
    ]
    if not read_only:
        kept: Run = lambda m, given: _remember(m, given, who)  # noqa: E731
        taken: Run = lambda m, given: _undo(m, given, who)  # noqa: E731
        made.insert(2, _offer(memory, REMEMBER, _KEEP, _KEPT, ["text"], kept))
        made.append(_offer(memory, "undo_memory", _UNDO, {"change": _CHANGE}, ["change"], taken))
        made += dreams.offers(who) if dreams is not None else ()
    return Toolset(made)


def _offer(
    memory: Memory,
    name: str,
    about: str,
    properties: Mapping[str, Any],
    required: list[str],
    run: Run,
) -> Offer:
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }
    return Offer(name, name, about, schema, lambda given: _run_tool(run, memory, given))


def _run_tool(run: Run, memory: Memory, given: Mapping[str, Any]) -> ToolAnswer:
    try:
        return ToolAnswer(_truncate_answer(run(memory, given)))
    except NotFound as error:  # in the words of these tools
        do = "memory_history has the ids" if "change" in given else "list_memories has the files"
        raise NotFound(error.what, where=error.where, do=do) from None


def _truncate_answer(text: str) -> str:
    return text if len(text) <= WHOLE else f"{text[:WHOLE]}\n[cut at {WHOLE:,} characters]"


# What a model is told

_QUERY = {"type": "string", "minLength": 1, "maxLength": 2000}
_TYPE = {"type": "string", "enum": list(TYPES)}
_PAGE = {"type": "integer", "minimum": 1, "description": f"{LISTED} memories are one page"}
_CHANGE = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": "The id that remember or memory_history gave",
}
_KEPT: Mapping[str, Any] = {
    "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST,
        "description": "The fact in full, with its reason; dates as calendar dates",
    },
    "name": {"type": "string", "maxLength": 100, "description": "A short title"},
    "type": {
        **_TYPE,
        "description": (
            "user: who the person is; feedback: how they want you to work; project: what goes on "
            "and why; reference: where to find something outside"
        ),
    },
    "source": {
        "type": "string",
        "enum": ["conversation", "elsewhere"],
        "description": (
            "conversation (the default): the person said it, or you worked it out together. "
            "elsewhere: you read it in a file, a web page or a tool's result"
        ),
    },
    "replaces": {
        **_FILE,
        "description": "The file of a memory that this corrects; its text is replaced",
    },
}
_SEARCH = (
    "Searches the long-term memory of this project: what earlier conversations left about the "
    "person, their wishes, decisions and their reasons. Use it before you decide or ask something "
    "that may have been settled earlier. Best first, each with file and age; what is old may have "
    "changed, so check it against the project before you rely on it."
)
_ASK = (
    "Answers one question from memories and past sessions, in their own words and with sources. "
    "Says so where nothing there answers it. For a fact you want straight (a name, a date, a "
    "reason); search_memory gives more around it."
)
_KEEP = (
    "Keeps one fact for later conversations: a wish or correction of the person's, a decision "
    "with its reason, where something is found. Call it when they ask you to remember something "
    "or correct how you work. Not for what the code or its history tells, nor for the task of the "
    "moment; never passwords or keys. If search_memory shows a memory that is wrong now, give its "
    "file as replaces."
)
_LIST = (
    "Lists all memories of this project with file, type, age and first line, the newest first. "
    "To find something, search_memory is better."
)
_READ = "Gives one memory whole, by its file as the other tools name it."
_PAST = (
    "Searches what was said and done in past conversations that Reverie recorded in this project "
    "(its own agent's and imported ones), word for word. Longer than memory: for an error text, a "
    "path or a name that memory does not know."
)
_HISTORY = (
    "Tells what became of a memory: every change with its id, time, who made it and the text it "
    "left. Without a file, the newest changes of all memories."
)
_CHECK = (
    "Looks for what is wrong with the memory: duplicates, contradictions, dead references, secrets "
    "and the like, each with the words that show it. Changes nothing."
)
_UNDO = (
    "Takes one change of the memory back, by its id: something kept by mistake goes, something "
    "overwritten returns. What was written since stays. To forget a memory, take all its changes "
    "back, the newest first."
)


# What it gets


def _search(memory: Memory, given: Mapping[str, Any]) -> str:
    hits = memory.search(str(given["query"]), limit=int(given.get("limit") or 5))
    if not hits:
        return "Nothing that is remembered fits."
    return "\n\n".join([HEADING, *map(_note, hits)])


def _note(hit: Found) -> str:
    when = "today" if hit.age == "today" else f"{hit.age} ago"
    text = hit.text
    if len(text) > EACH:
        text = f"{text[:EACH]}\n[cut; read_memory gives it whole]"
    return f"Saved {when}: {hit.file}\n{_frame_text(text, hit)}"


def _frame_text(text: str, hit: Found) -> str:
    return frame(text, session="", source=hit.file, trust=hit.trust)


def _ask(memory: Memory, given: Mapping[str, Any]) -> str:
    found = memory.ask(str(given["question"]))
    if not found.known:
        return found.text
    rows = [
        f"{_frame_text(one.text, one)}\n{_line(one.file)}, {_ago(one)}" for one in found.sources
    ]
    return "\n\n".join(rows)


def _remember(memory: Memory, given: Mapping[str, Any], who: str) -> str:
    trusted = given.get("source") != "elsewhere"
    text, file = str(given["text"]), str(given.get("replaces") or "")
    writer = memory.__as_model__(REMEMBER, agent=who, is_trusted=trusted)
    if file:
        done = writer.update(file, text)
    else:
        kind, name = str(given.get("type") or ""), str(given.get("name") or "")
        done = writer.add(text, type=kind, name=name)
    if done.outcome == "queued":
        return _waiting(done)
    change = f"; undo_memory takes back change {done.change}" if done.change else ""
    return f"{done}{change}"


def _list(memory: Memory, given: Mapping[str, Any]) -> str:
    found = memory.list(type=str(given.get("type") or ""))
    if not found:
        return "There are no memories yet."
    page = int(given.get("page") or 1)
    first = (page - 1) * LISTED
    shown = found[first : first + LISTED]
    if not shown:
        raise InvalidInput("There is no such page", where=str(page))
    rows = [
        f"{_line(one.file)} [{one.type or 'no type'}] {_ago(one)}: {_line(one.text)}"
        for one in shown
    ]
    left = len(found) - first - len(shown)
    more = [f"{left} more; page {page + 1} goes on"] if left else []
    return "\n".join([f"{plural(len(found), 'memory', 'memories')}:", *rows, *more])


def _read(memory: Memory, given: Mapping[str, Any]) -> str:
    found = memory.get(str(given["file"]))
    kind = f" [{found.type}]" if found.type else ""
    return f"{_line(found.file)}{kind}, saved {_ago(found)}\n{_frame_text(found.text, found)}"


def _past(memory: Memory, given: Mapping[str, Any]) -> str:
    hits = memory.search(str(given["query"]), limit=int(given.get("limit") or 5), kind="session")
    if not hits:
        return "Nothing in past sessions fits."
    return "\n\n".join(
        f"{_line(hit.file)}, {_ago(hit)}\n{_frame_text(hit.text[:EACH], hit)}" for hit in hits
    )


def _history(memory: Memory, given: Mapping[str, Any]) -> str:
    found = memory.history(str(given.get("file") or ""))
    if not found:
        return "Nothing was ever changed."
    rows = [_change(one) for one in reversed(found[-CHANGES:])]
    left = len(found) - len(rows)
    return "\n\n".join([*rows, f"{plural(left, 'older change')} not shown"] if left else rows)


def _change(one: Change) -> str:
    at = utc_minute(one.at)
    head = f"change {one.id}: {_line(one.file)}, {at} UTC, {_line(str(one.origin))}"
    if not one.text:
        return f"{head}\n(removed)"
    return f"{head}\n{frame(one.text[:1000], session='', source=one.file)}"


def _check(memory: Memory, given: Mapping[str, Any]) -> str:
    del given
    found = memory.check()
    rows = [_line(str(fault)) for fault in found.faults[:FAULTS]]
    left = len(found.faults) - len(rows)
    more = [f"{left} more"] if left else []
    head = f"Score {found.score} of 100, {plural(len(found.faults), 'fault')}."
    tidy = ["`reverie memory check --fix` mends what loses nothing."] if rows else []
    return "\n".join([head, *rows, *more, *tidy])


def _undo(memory: Memory, given: Mapping[str, Any], who: str) -> str:
    done = memory.__as_model__("undo_memory", agent=who).undo(str(given["change"]))
    left = [f"left as it is: {_line(file)} ({why})" for file, why in done.left]
    files = ", ".join(map(_line, done.files))
    return "\n".join([f"taken back: {files or 'nothing'} (change {done.change})", *left])


def _ago(one: Found) -> str:
    return "today" if one.age == "today" else f"{one.age} ago"


def _line(text: str, most: int = 300) -> str:
    return cut_line(neutralize_markup(text), most)
