"""What the calls of a round touched, as a query: files by their names, and errors that came back.

A file is named with the folder it lies in, and only a memory that names it too counts as belonging
to it; so does an error's text, by the words that tell it from others. A pure function of a view.
"""

from __future__ import annotations

from collections.abc import Iterator

from reverie.light import dataclass
from reverie.memory.rules.calls import CallPlace, parse
from reverie.transcript.blocks import Block, text_of
from reverie.transcript.records import AssistantMessage, UserMessage
from reverie.transcript.view import View


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_PATHS = 12
MAX_ERROR = 400
LEAST_NAME = 5
"""Letters of a file's name that tell it from others."""
_COMMON = _set(
    "readme.md index.ts index.js index.tsx main.py main.go main.rs __init__.py package.json "
    "setup.py mod.rs lib.rs makefile dockerfile test.py utils.py index.html tsconfig.json"
)


@dataclass(frozen=True, slots=True)
class Touched:
    """Names of files, and texts of errors."""

    names: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is looked for: a sentence each."""
        return "\n".join((*self.names, *self.errors))


def touched(view: View) -> Touched:
    """What the calls touched whose results were added last; nothing where it was no round."""
    results = _last_results(view)
    if not results:
        return Touched()
    answered = {block.call for block in results}
    calls = [block for block in _last_calls(view) if block.call in answered]
    names = dict.fromkeys(name for block in calls for name in _names(block))
    errors = [text_of(b.value)[:MAX_ERROR] for b in results if b.value.get("is_error") is True]
    return Touched(tuple(names)[:MAX_PATHS], tuple(filter(None, errors))[:2])


def _last_results(view: View) -> tuple[Block, ...]:
    found: list[Block] = []
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, AssistantMessage):
            break
        if isinstance(record, UserMessage):
            found += [block for block in record.blocks if block.type == "tool_result"]
    return tuple(found)


def _last_calls(view: View) -> tuple[Block, ...]:
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, AssistantMessage):
            return tuple(block for block in record.blocks if block.type == "tool_use")
    return ()


def _names(block: Block) -> Iterator[str]:
    call = parse(block.get("name"), block.value.get("input"), CallPlace("/"))
    for act in call.acts:
        for path in act.paths:
            folder, _, name = path.rstrip("/").rpartition("/")
            telling = len(name) >= LEAST_NAME and "." in name and name.lower() not in _COMMON
            if telling:
                yield f"{folder.rpartition('/')[2]}/{name}".lstrip("/")
