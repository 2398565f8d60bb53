"""SearchMemory and SearchSessions: the past of this project, searched by words.

They give passages with their source, best first, bounded in number and size: a small memory
whole, of a long text the part that has the words. What is found was written by others and stands
in a frame that it cannot close. They only read, and only this project's memory and sessions; of
the session that asks only what is sealed, for the rest is in its context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anyio import to_thread

from reverie.memory.format.entry import TopicFile
from reverie.memory.ranking import iso_time
from reverie.session.recall.index import MemoryIndex
from reverie.session.recall.notes import saved
from reverie.store.memories import Memories
from reverie.store.plain import read_plain
from reverie.store.recall.index import RecallHit
from reverie.store.written import FileTimes
from reverie.text.tokens import terms
from reverie.text.untrusted import defused, frame
from reverie.tools.tool import Action, Input, Output, Tool, ToolContext

SHOWN = 5
MAX = 20
MAX_LOOKED = 100
"""Turns looked at where some of the asking session's own may not be shown."""
PASSAGE = 600
"""Characters of one passage."""
SMALL = 2_000
"""Bytes of a memory that is shown whole."""


def recall_tools(
    memories: Memories,
    found: Callable[[], MemoryIndex],
    sealed: Callable[[], frozenset[str]] = frozenset,
) -> tuple[Tool, Tool]:
    """The two tools over one project's index, which is asked for when it is needed. `sealed` are
    the messages of the asking session that are out of its context."""

    async def memory(value: Input, context: ToolContext) -> Output:
        index, now, query = found(), context.clock.now(), str(value["query"])
        hits = await to_thread.run_sync(
            lambda: index.search(query, now, k=_count(value)),
            abandon_on_cancel=True,
        )
        times = FileTimes(memories.folder, now, memories.history, index.alone)
        rows = await to_thread.run_sync(
            lambda: [_memory(index, hit, saved(times.at(hit.file), now)) for hit in hits]
        )
        whole = await to_thread.run_sync(lambda: [_small(index, hit) for hit in hits])
        parts = (around(hit.passage, query) for hit in hits)
        texts = [text or part for text, part in zip(whole, parts, strict=True)]
        more = "" if all(whole) else "Read a file for all of it."
        return _output(rows, hits, texts, context, more)

    async def sessions(value: Input, context: ToolContext) -> Output:
        index, now = found(), context.clock.now()
        own = context.stored.session if context.stored else ""
        gone, query, count = sealed(), str(value["query"]), _count(value)
        without = frozenset[str]() if gone else frozenset({own})
        every = await to_thread.run_sync(
            lambda: index.search(
                query, now, k=MAX_LOOKED if gone else count, kinds=("transcript",), without=without
            ),
            abandon_on_cancel=True,
        )
        hits = [hit for hit in every if hit.file != own or hit.message in gone][:count]
        rows = [_session(hit) for hit in hits]
        return _output(rows, hits, [around(hit.passage, query) for hit in hits], context, "")

    return (
        _tool(
            "SearchMemory",
            "Searches this project's long-term memory by words and gives the passages that fit "
            "best, each with its file and age.",
            memory,
        ),
        _tool(
            "SearchSessions",
            "Searches the earlier sessions of this project, and what has left the context of this "
            "one: what the user said, what was answered, what tools were called with and gave. "
            "Gives passages, each with session, message and time. "
            "Use it where memory has nothing, with narrow words: an error text, a path, a name.",
            sessions,
        ),
    )


def _tool(name: str, description: str, action: Action) -> Tool:
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in any words"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX,
                "description": f"How many passages to give at most; {SHOWN} if left out",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    return Tool(name, description, schema, action, read_only=True)


def _count(value: Input) -> int:
    return min(int(value.get("limit") or SHOWN), MAX)


def _memory(index: MemoryIndex, hit: RecallHit, age: str) -> str:
    kind = f"[{hit.type}] " if hit.type else ""
    about = f": {_line(hit.description)}" if hit.description else ""
    where = f"{index.folder / hit.file}:{hit.line or 1}"
    return f"{kind}{_line(where)}, {age}{about}"


def _session(hit: RecallHit) -> str:
    who = f", {hit.name}" if hit.name else ""
    return f"session {hit.session or hit.file}, message {hit.message}, {iso_time(hit.saved)}{who}"


def _line(text: str) -> str:
    return " ".join(defused(text).split())[:PASSAGE]


def _small(index: MemoryIndex, hit: RecallHit) -> str:
    """A small memory's body; "" where it is large or cannot be read."""
    try:
        data = read_plain(index.folder / hit.file, SMALL)
    except (OSError, ValueError):
        return ""
    if data is None or len(data) > SMALL:
        return ""
    return TopicFile(hit.file, data).body.strip()


def around(text: str, query: str) -> str:
    """The part of a text that has most of a query's words, cut at lines where they are short."""
    text = text.strip()
    if len(text) <= PASSAGE:
        return text
    wanted = frozenset(terms(query))
    step = PASSAGE // 2
    starts = range(0, max(1, len(text) - step), step)
    held = {at: len(wanted & frozenset(terms(text[at : at + PASSAGE]))) for at in starts}
    best = max(starts, key=lambda at: (held[at], -at))
    end = best + PASSAGE
    before, after = "[…] " if best else "", " […]" if end < len(text) else ""
    return f"{before}{text[best:end].strip()}{after}"


def _output(
    rows: Sequence[str],
    hits: Sequence[RecallHit],
    texts: Sequence[str],
    context: ToolContext,
    more: str,
) -> Output:
    if not rows:
        return Output("Nothing found")
    session = context.stored.session if context.stored else ""
    out: list[str] = []
    for row, hit, text in zip(rows, hits, texts, strict=True):
        out.append(f"{row}\n{frame(text, session=session, source=hit.file)}" if text else row)
    return Output("\n\n".join([*out, more] if more else out))
