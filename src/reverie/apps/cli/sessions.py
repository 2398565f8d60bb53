"""`sessions`, `prune` included.

`reverie sessions`: list, show, export, import and prune.

Looking needs no lock and changes nothing, also while another process writes. `import`
makes new sessions and touches no old one; `prune` removes whole sessions, after asking,
never memory and never one that is in use.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, cast, get_args

import click

from reverie.agent.subagents.registry import as_they_stand
from reverie.apps.cli import output
from reverie.apps.cli.app import CommandGroup, json_option, project_option, sessions_like
from reverie.apps.cli.output import (
    Column,
    document,
    json_text,
    note,
    raw,
    say,
    table,
    with_progress,
)
from reverie.errors import InvalidInput, NotFound, ReverieError
from reverie.reports import transcript_view
from reverie.session import transfer
from reverie.session.library import (
    OldSessions,
    SessionLibrary,
    find_old,
    find_session,
    home_libraries,
    remove_session,
)
from reverie.session.summaries import Transcript
from reverie.store.files import Folder
from reverie.store.home import SessionFile, check_folder
from reverie.store.journal import BadLine
from reverie.store.project import Project
from reverie.text.format import age, plural, size
from reverie.text.safety import line
from reverie.transcript.blocks import parse
from reverie.wire.request import render

ExportFormat = Literal["jsonl", "json", "md"]
_ROWS_SHOWN = 10


session_id = click.argument(
    "session",
    metavar="ID",
    shell_complete=sessions_like,
    help="The session id, or its first characters.",
)


@click.group(cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """List, show, export, import and prune sessions."""


# --- list


@app.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every project.")
@json_option
@project_option
def list_all(everywhere: bool, as_json: bool, project: Project) -> None:
    """List the sessions of this project, newest first."""
    rows = [row for row in _rows(project, everywhere) if row is not None]
    if as_json:
        document({"home": str(project.home), "root": str(project.root), "sessions": rows})
        return
    if not rows:
        check_folder(project.home)
        say("No sessions yet." if everywhere else f"No sessions yet in {project.root}.")
        return
    now = time.time()
    names = ("id", "title", "age", "messages", "turns", "tokens", "agents", "size", "faults")
    left = ("id", "title")
    columns = [Column(name, right=name not in left, cut=name == "title") for name in names]
    columns += [Column("project", wraps=True)] if everywhere else []
    short = _unique([row["id"] for row in rows]) if sys.stdout.isatty() else 36
    table(columns, [_row_shown({**row, "id": row["id"][:short]}, now, everywhere) for row in rows])


def _unique(ids: Sequence[str]) -> int:
    """How much of an id tells these sessions apart."""
    lengths = (n for n in range(8, 36) if len({name[:n] for name in ids}) == len(ids))
    return next(lengths, 36)


def _rows(project: Project, everywhere: bool) -> Iterator[dict[str, Any] | None]:
    if everywhere:
        libraries = list(home_libraries(project))
    else:
        own = SessionLibrary.find(project)
        libraries = [(str(project.root), own)] if own else []
    files = [(root, library, file) for root, library in libraries for file in library.sessions()]
    files.sort(key=lambda found: -found[2].mtime)

    yield from with_progress(files, "reading", lambda found: summary(*found))
    for _, library in libraries:
        library.keep_summaries()


def summary(root: str, library: SessionLibrary, file: SessionFile) -> dict[str, Any] | None:
    """One session in a line; one that cannot be read says why, one that is gone is left out."""
    row: dict[str, Any] = {"project": root, "path": str(file.path), "error": ""}
    try:
        return {**asdict(library.summary(file)), **row, "agents": _agents(library, file)}
    except NotFound:
        return None
    except ReverieError as error:
        row |= {"id": file.id, "title": "", "at": file.mtime, "size": file.size}
        row |= {"messages": 0, "turns": 0, "tokens": 0, "faults": 0, "agents": []}
        return {**row, "error": str(error)}


def _agents(library: SessionLibrary, file: SessionFile) -> list[dict[str, Any]]:
    """The agents of a session, the oldest first."""
    names = ("id", "name", "type", "about", "mode", "state", "reason", "worktree")
    found = as_they_stand(library.folder, file.id) if (library.path / file.id).is_dir() else []
    return [{name: getattr(one, name) for name in names} for one in found]


def _row_shown(row: dict[str, Any], now: float, everywhere: bool) -> list[str]:
    counts = [f"{row[name]:,}" for name in ("messages", "turns", "tokens")]
    title = row["title"] or f"(cannot be read: {row['error']})"
    faults = str(row["faults"] or "")
    counts.append(str(len(row["agents"]) or ""))
    shown = [row["id"], line(title, 60), age(now - row["at"]), *counts, size(row["size"]), faults]
    return [*shown, row["project"] or "?"] if everywhere else shown


# --- show


@app.command()
@session_id
@click.option("--full", is_flag=True, help="Cut and omit nothing.")
@click.option("--raw", "lines", is_flag=True, help="Print the lines of the file as they are.")
@click.option(
    "--request", is_flag=True, help="Print the request that would be sent now, byte for byte."
)
@json_option
@project_option
def show(
    session: str, full: bool, lines: bool, request: bool, as_json: bool, project: Project
) -> None:
    """Show a session as a conversation, with the decisions made about it."""
    library, found = _locate_session(project, session)
    if lines:
        _show_lines(library, found, as_json)
        return
    transcript = library.read(found)
    facts = transcript_view.overview(transcript)
    if request:
        _show_request(transcript, as_json)
        return
    steps = list(transcript_view.steps(transcript, str(library.path / found)))
    if as_json:
        document({**facts, "steps": [asdict(step) for step in steps]})
        return
    say(facts["title"], "bold")
    say(f"{found} · {facts['project'] or '-'} · {facts['model'] or 'no model'}")
    counts = [plural(facts["messages"], "message"), plural(facts["turns"], "turn")]
    say(" · ".join([*counts, plural(facts["tokens"], "token")]))
    for member in as_they_stand(library.folder, found):
        say(f"agent {member.line}")
    output.print_steps(steps, full=full)
    for fault in facts["faults"]:
        note(f"{found}: {fault}")


def _locate_session(project: Project, given: str) -> tuple[SessionLibrary, str]:
    library = SessionLibrary.find(project)
    found = find_session(library, given)
    return cast("SessionLibrary", library), found


def _show_lines(library: SessionLibrary, session: str, as_json: bool) -> None:
    found = list(transfer.raw_lines(library, session))
    if as_json:
        faults = [asdict(fault) for fault in found if isinstance(fault, BadLine)]
        document(
            {"id": session, "lines": [f for f in found if isinstance(f, str)], "faults": faults}
        )
        return
    for text in found:
        if isinstance(text, BadLine):
            note(f"line {text.number} at byte {text.offset} is skipped: {text.reason}")
        else:
            raw(text)


def _show_request(transcript: Transcript, as_json: bool) -> None:
    made = render(transcript.view)
    sendable = bool(made.count) and made.at(made.count - 1).role == "user"
    if as_json:
        document(
            {
                "id": transcript.id,
                "sendable": sendable,
                "tokens": made.tokens,
                "marks": [asdict(mark) for mark in made.marks],
                "request": parse(made.body()),
            }
        )
        return
    raw(made.body())
    if not sendable:
        note("This request cannot be sent as it is: it ends with an answer of the model.")


# --- export


@app.command()
@click.argument(
    "session",
    default="",
    metavar="[ID]",
    shell_complete=sessions_like,
    help="The session id, or its first characters.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(ExportFormat)),
    default="jsonl",
    show_default=True,
    help="Output format.",
)
@click.option("--out", default="", help="A file, or a folder (ending in /) for all files.")
@click.option("--all", "everything", is_flag=True, help="Export all sessions to a folder.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
@project_option
def export(
    session: str,
    form: ExportFormat,
    out: str,
    everything: bool,
    force: bool,
    as_json: bool,
    project: Project,
) -> None:
    """Export a session with all its files to stdout, to a file or to a folder."""
    if bool(session) == everything:
        raise InvalidInput("Give a session id or --all", do="`reverie sessions list` shows the ids")
    into_folder = out.endswith("/") or (bool(out) and Path(out).is_dir())
    if everything and not into_folder:
        raise InvalidInput("--all needs a folder to write to", do="Give --out FOLDER/")
    if everything:
        library = SessionLibrary.find(project)
        found = [file.id for file in library.sessions()] if library else []
    else:
        library, chosen = _locate_session(project, session)
        found = [chosen]
    if into_folder:
        _export_folder(library, found, Path(out), force, as_json)
    else:
        _export_text(cast("SessionLibrary", library), found[0], form, out, force, as_json)


def _export_folder(
    library: SessionLibrary | None, found: Sequence[str], out: Path, force: bool, as_json: bool
) -> None:
    count = 0
    if library is not None:
        with Folder(out.absolute()) as target:

            def copy(session: str) -> int:
                return transfer.copy_out(library, session, target, force=force)

            count = sum(with_progress(found, "copying", copy))
    if as_json:
        document({"sessions": list(found), "out": str(out), "files": count})
        return
    say(f"{plural(len(found), 'session')}, {plural(count, 'file')} in {out}")


def _export_text(
    library: SessionLibrary, session: str, form: ExportFormat, out: str, force: bool, as_json: bool
) -> None:
    if form == "md":
        found = library.read(session)
        text = output.markdown(found, str(library.path / session))
    elif form == "json":
        facts = transcript_view.overview(library.read(session))
        text = json_text({**facts, **transfer.as_value(library, session)})
    else:
        text = "\n".join(transfer.as_lines(library, session))
    if not out:
        if as_json and form != "json":
            document({"id": session, "format": form, "text": text})
        else:
            (raw if form == "jsonl" else say)(text)
        return
    target = Path(out).absolute()
    with Folder(target.parent) as folder:
        folder.write(target.name, text.encode("utf-8", "replace") + b"\n", exclusive=not force)
    if as_json:
        document({"id": session, "format": form, "out": str(target)})
    else:
        say(f"{session} was exported to {target}")


# --- import


@app.command("import")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE…",
    help="Files or folders to import.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@click.option("--again", is_flag=True, help="Import again what is already here.")
@json_option
@project_option
def bring(
    files: tuple[Path, ...], dry_run: bool, again: bool, as_json: bool, project: Project
) -> None:
    """Import sessions of Claude Code and pi (.jsonl, .jsonl.gz, folders), and exported ones."""
    failed: list[dict[str, Any]] = []
    code = 0

    def work(file: Path) -> transfer.ImportedSession | None:
        nonlocal code
        try:
            parcel = transfer.parcel_of(file)
            library = None if dry_run else SessionLibrary.of(project)
            return transfer.land(library, parcel, project.root, again=again)
        except ReverieError as error:
            failed.append({"file": str(file), "error": str(error)})
            code = error.exit_code
            return None

    made = with_progress([*map(Path, transfer.expand_folders(map(str, files)))], "importing", work)
    brought = [found for found in made if found]
    if as_json:
        document({"imported": [found.value() for found in brought], "failed": failed})
    else:
        _tell_brought(brought, failed, dry_run)
    if code:
        raise click.exceptions.Exit(code)


def _tell_brought(
    brought: Sequence[transfer.ImportedSession], failed: Sequence[dict[str, Any]], dry_run: bool
) -> None:
    for found in brought:
        parcel = found.parcel
        done = "imported" if found.written else "already here"
        done = "would be imported" if dry_run else done
        say(f"{Path(parcel.file).name}: {parcel.program}, {done} as {found.session}")
        say(f"  {parcel.on_chain:,} of {plural(parcel.rows, 'row')} in the conversation")
        reasons: dict[str, list[int]] = {}
        for row, why in parcel.off.items():
            reasons.setdefault(why, []).append(row)
        for why, rows in reasons.items():
            more = ", …" if len(rows) > _ROWS_SHOWN else ""
            named = ", ".join(map(str, rows[:_ROWS_SHOWN])) + more
            say(f"  {plural(len(rows), 'row')} not: {why} ({named})")
        for fault in parcel.faults[:_ROWS_SHOWN]:
            say(f"  {fault}")
    for one_failed in failed:
        note(f"{one_failed['file']}: {one_failed['error']}")


@click.command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Default: the setting retentionDays.",
)
@click.option("--dry-run", is_flag=True, help="Only list what would go.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@project_option
def prune(
    older_than: float | None, dry_run: bool, yes: bool, as_json: bool, project: Project
) -> None:
    """Remove sessions that have not been touched for a number of days.

    A session is its transcript, stored results and agents. Memory is never touched.
    """
    days = project.settings.retention_days if older_than is None else older_than
    library = SessionLibrary.find(project)
    found = find_old(library, days, time.time()) if library else OldSessions()
    if found.due and not dry_run and not yes:
        if as_json:
            raise InvalidInput("--json cannot ask for confirmation", do="Give --yes or --dry-run")
        long = f"{days:g} {'day' if days == 1 else 'days'}"
        say(f"{plural(len(found.due), 'session')} untouched for {long} in {project.root}")
        click.confirm("Remove for good?", abort=True)
    removed: list[str] = []
    kept = dict(found.kept)
    if library is not None and not dry_run:
        failures = with_progress(found.due, "removing", lambda name: remove_session(library, name))
        for name, why in zip(found.due, failures, strict=True):
            if why:
                kept[name] = why
            else:
                removed.append(name)
    if as_json:
        left = [{"id": name, "why": why} for name, why in kept.items()]
        would = list(found.due) if dry_run else []
        document({"days": days, "removed": removed, "would_remove": would, "left": left})
        return
    gone = found.due if dry_run else removed
    say(f"{plural(len(gone), 'session')} {'would be removed' if dry_run else 'removed'}")
    for name in gone:
        say(f"  {name}")
    for name, why in kept.items():
        note(f"{name} was kept: {why}")


app.add_command(prune)
