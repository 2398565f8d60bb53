"""`reverie recall`: which memories fit some words, how well and why; and the ledger of a session.

Looking makes nothing but the index, which can be deleted at any time. Results come best first,
also those that would not be injected unasked; `--explain` says what each signal gave and how what
a memory names stands in the repository now. Text of others is shown with what hides made visible.
"""

from __future__ import annotations

import time
from typing import Any

import click

from reverie.apps.cli.memory_open import text_from
from reverie.apps.cli.options import json_option, project_option
from reverie.apps.cli.show import document, line, say, tell
from reverie.errors import InvalidInput, NotFound
from reverie.session.library import Library, find_session
from reverie.session.open_memory import OpenMemory
from reverie.session.recall.answer import recall_rows
from reverie.session.recall.ledger import LedgerTurn, ledgers
from reverie.session.recall.notes import saved
from reverie.store.project import Project
from reverie.text.counts import plural
from reverie.text.untrusted import reveal

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


def _ledger(project: Project, given: str, as_json: bool) -> None:
    library = Library.find(project)
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
