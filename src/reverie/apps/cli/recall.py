"""`reverie recall`: which memories fit some words, how well and why; and the ledger of a session.

Looking makes nothing but the index, which can be deleted at any time. Results come best first,
also those that would not be injected unasked; `--explain` says what each signal gave and how what
a memory names stands in the repository now. Text of others is shown with what hides made visible.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import click

from reverie.apps.cli.memory_open import text_from
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import document, line, note, say
from reverie.errors import InvalidInput, NotFound, ProviderError, StoreError
from reverie.memory.claims import claims
from reverie.memory.format.entry import TopicFile
from reverie.memory.recall.meaning import Meaning
from reverie.session.context import work_root
from reverie.session.recall.checked import CheckedClaim, Repository
from reverie.session.recall.index import MemoryIndex
from reverie.session.recall.ledger import LedgerTurn, ledgers
from reverie.session.recall.meaning import embeddings_by, meaning
from reverie.session.recall.notes import days, saved
from reverie.settings import environment
from reverie.store.memories import memory_folder
from reverie.store.memory import MemoryFolder
from reverie.store.recall.index import RecallHit
from reverie.store.written import FileTimes
from reverie.text.counts import plural
from reverie.text.untrusted import reveal
from reverie.upkeep.place import ProjectPlace, find_session
from reverie.world import Notice

COUNT = 10
MAX = 1_000


@contextlib.contextmanager
def opened(place: ProjectPlace) -> Generator[tuple[MemoryIndex, MemoryFolder | None] | None]:
    """The project's index and memory; None where there is nothing to search."""
    settings = place.loaded().settings
    folder = memory_folder(place.home, place.root, settings)
    index = MemoryIndex.of(
        place.home, place.root, place.environ, folder, settings=settings, say=_said
    )
    if not folder.is_dir() and not index.transcripts.is_dir():
        yield None
        return
    memory = MemoryFolder(folder, create=False, say=_said) if folder.is_dir() else None
    try:
        yield index, memory
    finally:
        index.close()
        if memory is not None:
            memory.close()


def _said(notice: Notice) -> None:
    note(notice.text)


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
    query: tuple[str, ...], k: int, explain: bool, ledger: bool, as_json: bool, project: Path
) -> None:
    """Find the memories that match a query, best first."""
    given = " ".join(query or ())
    if ledger:
        _ledger(ProjectPlace.of(project), given, as_json)
        return
    if not given.strip():
        raise InvalidInput("The query is empty", do="Give some words, or --ledger")
    text = text_from(given)
    now = time.time()
    rows: list[dict[str, Any]] = []
    place = ProjectPlace.of(project)
    with opened(place) as found:
        if found is not None:
            index, memory = found
            hits = index.search(text, now, k=k, meaning=_meaning(place, index, text))
            root = work_root(Path(project)) if explain else None
            rows = [_row(hit, index, memory, now, root) for hit in dated(hits, memory, now)]
    if as_json:
        document(rows)
        return
    for number, row in enumerate(rows, 1):
        _show(number, row, explain)
    if not rows:
        say("Nothing found.")


def dated(hits: Sequence[RecallHit], memory: MemoryFolder | None, now: float) -> list[RecallHit]:
    """The memories found, each with the time it was written instead of that of its file."""
    if memory is None:
        return list(hits)
    times = FileTimes(memory, now)
    return [replace(hit, saved=times.at(hit.file)) for hit in hits]


def _meaning(place: ProjectPlace, index: MemoryIndex, text: str) -> Meaning | None:
    """What the query means to the model of the setting; None where none is named, or, which is
    said, where it gives no answer."""
    model = embeddings_by(place.loaded().settings, place.environ)
    if model is None:
        return None
    index.refresh()

    async def asked() -> Meaning:
        try:
            with index.opened() as opened:
                return await meaning(opened, model, text)
        finally:
            await model.aclose()

    try:
        return anyio.run(asked)
    except ProviderError as error:
        note(f"Searched by words only: {error}")
        return None


def _row(
    hit: RecallHit, index: MemoryIndex, memory: MemoryFolder | None, now: float, root: Path | None
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "file": hit.file,
        "score": round(hit.score, 4),
        "clear": hit.clear,
        "type": hit.type,
        "name": hit.name,
        "description": hit.description,
        "saved": hit.saved,
        "days": days(hit.saved, now) if hit.saved else None,
        "line": hit.line,
        "passage": hit.passage,
        "path": str(index.folder / hit.file),
    }
    if root is not None:
        row["why"] = {name: round(value, 4) for name, value in hit.why}
        row["checked"] = [_checked(c) for c in _claims(hit, memory, root)]
    return row


def _claims(hit: RecallHit, memory: MemoryFolder | None, root: Path) -> tuple[CheckedClaim, ...]:
    try:
        text = memory.read(hit.file).text if memory is not None else ""
    except (NotFound, StoreError):
        return ()
    path = environment().get("PATH", "")
    also = None if memory is None else memory.root
    return Repository(root, path=path, also=also).check(claims(text))


def _checked(found: CheckedClaim) -> dict[str, Any]:
    claim = found.claim
    value = {"kind": claim.kind, "text": claim.text, "line": claim.line}
    return {**value, "status": found.status, "where": found.where, "why": found.why}


def _show(number: int, row: dict[str, Any], explain: bool) -> None:
    clear = "" if row["clear"] else "  (too weak to be injected)"
    say(f"{number}. {row['file']}  {row['score']:.3f}{clear}", "bold")
    about = row["description"] or row["name"]
    kind = f"[{row['type']}] " if row["type"] else ""
    say(line(f"{kind}{reveal(about)}", 160), indent=3)
    say(saved(row["saved"], time.time()), indent=3)
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


def _ledger(place: ProjectPlace, given: str, as_json: bool) -> None:
    library = place.library()
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


def entry_of(memory: MemoryFolder | None, key: str) -> TopicFile:
    """A memory that was found."""
    if memory is None:
        raise NotFound("There is no memory in this project", where=key)
    return memory.read(key)
