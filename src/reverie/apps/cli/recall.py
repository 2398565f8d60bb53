"""`ask` and `recall`.

`reverie recall`: which memories fit some words, how well and why; and the ledger of a session.

Looking makes nothing but the index, which can be deleted at any time. Results come best first,
also those that would not be injected unasked; `--explain` says what each signal gave and how what
a memory names stands in the repository now. Text of others is shown with what hides made visible.
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from reverie.apps.cli.app import json_option, project_option
from reverie.apps.cli.output import document, say, tell
from reverie.errors import InvalidInput, NotFound
from reverie.memory.search import LOOKED, UNKNOWN
from reverie.session import open_memory as opening
from reverie.session.library import SessionLibrary, find_session
from reverie.session.open_memory import OpenMemory
from reverie.session.recall.excerpts import describe_age
from reverie.session.recall.ledger import LedgerTurn, ledgers
from reverie.session.recall.query import Quote, answer, date_hits, recall_rows
from reverie.store.memory_store import MemoryStore
from reverie.store.project import Project
from reverie.text.format import days_since, plural
from reverie.text.safety import line, reveal
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin

COUNT = 10
MAX = 1_000


@click.command()
@click.argument(
    "query",
    nargs=-1,
    metavar="QUERY",
    help="Words to look for; - for stdin. With --ledger, a session id.",
)
@click.option(
    "-k",
    type=click.IntRange(min=1, max=MAX),
    metavar="N",
    default=COUNT,
    show_default=True,
    help="Maximum number of results.",
)
@click.option("--explain", is_flag=True, help="Show why each matched, and check what it refers to.")
@click.option("--ledger", is_flag=True, help="Show what recall did in a session, turn by turn.")
@json_option
@project_option
def recall(
    query: tuple[str, ...], k: int, explain: bool, ledger: bool, as_json: bool, project: Project
) -> None:
    """Find the memories that match a query, best first."""
    given = " ".join(query or ())
    if ledger:
        _ledger(project, given, as_json)
        return
    if not given.strip():
        raise InvalidInput("The query is empty", do="Give some words, or --ledger")
    text = text_from(given)
    now = time.time()
    root = project.worktree if explain else None
    with OpenMemory.of(project, say=tell) as memory:
        rows = recall_rows(memory, text, now, k, root)
    if as_json:
        document(rows)
        return
    for number, row in enumerate(rows, 1):
        _show(number, row, explain)
    if not rows:
        say("Nothing found.")


def _show(number: int, row: dict[str, Any], explain: bool) -> None:
    clear = "" if row["clear"] else "  (too weak to be injected)"
    say(f"{number}. {row['file']}  {row['score']:.3f}{clear}", "bold")
    about = row["description"] or row["name"]
    kind = f"[{row['type']}] " if row["type"] else ""
    say(line(f"{kind}{reveal(about)}", 160), indent=3)
    say(describe_age(row["saved"], time.time()), indent=3)
    if not explain:
        return
    why = ", ".join(f"{name} {value:.3f}" for name, value in row["why"].items())
    say(f"why: {why}", indent=3)
    if row["passage"]:
        say(f"line {row['line']}: {line(reveal(row['passage']), 160)}", indent=3)
    for claim in row["checked"]:
        where = f" to {claim['where']}" if claim["status"] == "moved" else ""
        reason = f" ({claim['why']})" if claim["why"] else ""
        say(line(f"{claim['kind']} {claim['text']}: {claim['status']}{where}{reason}"), indent=3)


# --- the ledger


def _ledger(project: Project, given: str, as_json: bool) -> None:
    library = SessionLibrary.find(project)
    if library is None:
        raise NotFound("There are no sessions in this project yet")
    session = find_session(library, given) if given.strip() else library.newest()
    turns = ledgers(library.read(session).entries)
    if as_json:
        document({"session": session, "turns": [turn.value() for turn in turns]})
        return
    say(f"session {session}", "bold")
    for turn in turns:
        _turn(turn)
    if not turns:
        say("Recall did nothing in this session.")


def _turn(turn: LedgerTurn) -> None:
    record = turn.record
    say()
    say(f"“{line(turn.said, 100)}”", "bold")
    why = f": {record.why}" if record.why else ""
    looked = plural(record.considered, "memory", "memories")
    say(line(f"{looked} considered, {record.selector} selector{why}"), indent=2)
    for row in turn.rows:
        told = row.candidate
        cited = f"; cited by “{row.cited.what}”" if row.cited else ""
        reason = f" ({told.why})" if told.why else ""
        say(line(f"{told.outcome} {told.file} {told.score:.3f}{reason}{cited}"), indent=2)


# --- `reverie ask`: a question answered from memories and earlier sessions, in their own words.
#
# Every sentence of the answer is quoted with its source. Where nothing there answers the question,
# it says so. No model is asked and no network used.


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
        return line(f"{hit.file}:{quote.line}, {describe_age(hit.saved, now)}")
    ago = f"{plural(days_since(hit.saved, now), 'day')} ago"
    return line(f"session {hit.session or hit.file}, message {hit.message}, {ago}")


# --- What the `reverie memory` commands begin with: the project's memory, notices on stderr.


def find_memory(project: Project) -> AbstractContextManager[MemoryStore | None]:
    """The project's memory; None where there is none."""
    return opening.find_memory(project, tell)


def open_memory(project: Project) -> AbstractContextManager[MemoryStore]:
    """The project's memory, made where it is missing."""
    return opening.open_memory(project, tell)


def by_user(kind: str, note: str = "") -> Origin:
    """A change that a person asked for on the command line."""
    return Origin(kind, Trust.USER, agent="user", tool="cli", note=note, in_person=True)


with_option = click.option(
    "--with",
    "source",
    default="",
    metavar="FILE",
    help="A file with the new contents; - for stdin.",
)


def contents_from(source: str) -> bytes:
    """The bytes of a file that was named, or with `-` of stdin."""
    if source == "-":
        return text_from("-").encode()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise NotFound(f"The file cannot be read: {error.strerror}", where=source) from error


def text_from(given: str) -> str:
    """A text given as it is, or with `-` on stdin."""
    if given != "-":
        return given
    with os.fdopen(os.dup(0), "rb") as stdin:
        data = stdin.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is {data[error.start]:#04x}"
        raise InvalidInput(
            f"What came on stdin is no UTF-8 text: {byte}",
            do="Convert it first, as with `iconv -f latin1 -t utf-8`",
        ) from None
