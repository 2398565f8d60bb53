"""SearchMemory and SearchSessions: the past of this project, searched by words.

They give passages with their source, best first, bounded in number and size. What is found was
written by others and stands in a frame that it cannot close. They only read, and only this
project's memory and sessions; the session that asks is left out, its own past is in its context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anyio import to_thread

from reverie.memory.ranking import iso_time
from reverie.session.recall.index import MemoryIndex
from reverie.session.recall.notes import days
from reverie.store.recall.index import RecallHit
from reverie.text.untrusted import defused, frame
from reverie.tools.tool import Action, Input, Output, Tool, ToolContext

SHOWN = 5
MAX = 20
PASSAGE = 600
"""Characters of one passage."""


def recall_tools(found: Callable[[], MemoryIndex]) -> tuple[Tool, Tool]:
    """The two tools over one project's index, which is asked for when it is needed."""

    async def memory(value: Input, context: ToolContext) -> Output:
        index, now = found(), context.clock.now()
        hits = await to_thread.run_sync(
            lambda: index.search(str(value["query"]), now, k=_count(value)),
            abandon_on_cancel=True,
        )
        rows = [_memory(index, hit, now) for hit in hits]
        return _output(rows, hits, context, "Read a file for all of it.")

    async def sessions(value: Input, context: ToolContext) -> Output:
        index, now = found(), context.clock.now()
        own = frozenset({context.stored.session}) if context.stored else frozenset[str]()
        hits = await to_thread.run_sync(
            lambda: index.search(
                str(value["query"]), now, k=_count(value), kinds=("transcript",), without=own
            ),
            abandon_on_cancel=True,
        )
        rows = [_session(hit) for hit in hits]
        return _output(rows, hits, context, "")

    return (
        _tool(
            "SearchMemory",
            "Searches this project's long-term memory by words and gives the passages that fit "
            "best, each with its file and age.",
            memory,
        ),
        _tool(
            "SearchSessions",
            "Searches the earlier sessions of this project: what the user said, what was answered, "
            "what tools were called with. Gives passages, each with session, message and time. "
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


def _memory(index: MemoryIndex, hit: RecallHit, now: float) -> str:
    age = days(hit.saved, now)
    kind = f"[{hit.type}] " if hit.type else ""
    about = f": {_line(hit.description)}" if hit.description else ""
    where = f"{index.folder / hit.file}:{hit.line or 1}"
    return f"{kind}{_line(where)}, saved {age} day{'' if age == 1 else 's'} ago{about}"


def _session(hit: RecallHit) -> str:
    who = f", {hit.name}" if hit.name else ""
    return f"session {hit.session or hit.file}, message {hit.message}, {iso_time(hit.saved)}{who}"


def _line(text: str) -> str:
    return " ".join(defused(text).split())[:PASSAGE]


def _output(
    rows: Sequence[str], hits: Sequence[RecallHit], context: ToolContext, more: str
) -> Output:
    if not rows:
        return Output("Nothing found")
    session = context.stored.session if context.stored else ""
    out: list[str] = []
    for row, hit in zip(rows, hits, strict=True):
        passage = hit.passage.strip()
        cut = passage if len(passage) <= PASSAGE else passage[:PASSAGE].rstrip() + " […]"
        out.append(f"{row}\n{frame(cut, session=session, source=hit.file)}" if cut else row)
    return Output("\n\n".join([*out, more] if more else out))
