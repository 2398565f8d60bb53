"""`reverie ask`: a question answered from memories and earlier sessions, in their own words.

Every sentence of the answer is quoted with its source. Where nothing there answers the question,
it says so. No model is asked and no network used.
"""

from __future__ import annotations

import time
from typing import Any

import click

from reverie.api.reading import LOOKED, UNKNOWN
from reverie.apps.cli.memory_open import text_from
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import document, line, say, tell
from reverie.errors import InvalidInput
from reverie.session.open_memory import OpenMemory
from reverie.session.recall.answer import Quote, answer, date_hits
from reverie.session.recall.notes import days, saved
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.text.untrusted import reveal


@click.command()
@click.argument(
    "question", nargs=-1, required=True, metavar="QUESTION", help="The question; - for stdin."
)
@click.option(
    "--sessions/--no-sessions", default=True, show_default=True, help="Search past sessions too."
)
@json_option
@project_option
def ask(question: tuple[str, ...], sessions: bool, as_json: bool, project: Project) -> None:
    """Answer a question from memories and past sessions, with sources."""
    text = text_from(" ".join(question)).strip()
    if not text:
        raise InvalidInput("The question is empty")
    now = time.time()
    quotes: tuple[Quote, ...] = ()
    with OpenMemory.of(project, say=tell) as memory:
        if memory.is_searchable:
            hits = date_hits(memory.index.search(text, now, k=LOOKED), memory, now)
            if sessions:
                hits += memory.index.search(text, now, k=LOOKED, kinds=("transcript",))
            quotes = answer(text, hits, memory.read)
    if as_json:
        document(_value(text, quotes))
        return
    if not quotes:
        say(UNKNOWN)
        return
    for quote in quotes:
        say(reveal(quote.text))
        say(f"— {_source(quote, now)}", "dim", indent=2)


def _value(question: str, quotes: tuple[Quote, ...]) -> dict[str, Any]:
    sources = [
        {
            "kind": quote.hit.kind,
            "file": quote.hit.file,
            "line": quote.line,
            "session": quote.hit.session,
            "message": quote.hit.message,
            "saved": quote.hit.saved,
            "text": quote.text,
            "score": quote.score,
        }
        for quote in quotes
    ]
    said = " ".join(quote.text for quote in quotes)
    return {
        "question": question,
        "known": bool(quotes),
        "answer": said or UNKNOWN,
        "sources": sources,
    }


def _source(quote: Quote, now: float) -> str:
    hit = quote.hit
    if hit.kind == "memory":
        return line(f"{hit.file}:{quote.line}, {saved(hit.saved, now)}")
    ago = f"{plural(days(hit.saved, now), 'day')} ago"
    return line(f"session {hit.session or hit.file}, message {hit.message}, {ago}")
