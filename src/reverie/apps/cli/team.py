"""`reverie team`: memory that is shared, its server, its tokens, and the search for secrets.

`scan` exits with 1 where there is a secret, or where a file could not be searched.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.apps.cli.app import HOST, CommandGroup, json_option, port_option, project_option
from reverie.apps.cli.output import document, json_line, note, say
from reverie.apps.cli.recall import open_memory
from reverie.memory.check import scan_files
from reverie.providers.connection import extra
from reverie.settings.sources import environment
from reverie.store import home as places
from reverie.store.project import Project
from reverie.text.format import plural, utc_minute
from reverie.text.safety import line, reveal

if TYPE_CHECKING:
    from reverie.team.protocol import CountedRefusal
    from reverie.team.store import TeamStore

DATABASE = "REVERIE_TEAM_DATABASE"

database_option = click.option(
    "--database",
    default="",
    metavar="URL",
    help="A path, or postgresql://…; else REVERIE_TEAM_DATABASE, else a file in home.",
)


@click.group(cls=CommandGroup, no_args_is_help=True)
def app() -> None:
    """Share memory with a team: sync, server, tokens, search for secrets."""


@app.command()
@project_option
@click.option("--pull", is_flag=True, help="Only take what is new there; push nothing.")
@json_option
def sync(project: Project, pull: bool, as_json: bool) -> None:
    """Take what teammates wrote, and push what is new here."""
    from reverie.session.team import sync_team

    with open_memory(project) as memories:
        done = sync_team(memories, project, pull_only=pull)
        done.lost = {key: str(memories.beside.root / name) for key, name in done.lost.items()}
    if as_json:
        document(done.value())
        return
    say(f"{_files('pulled', done.pulled)}; {_files('pushed', done.pushed)}")
    for key, where in done.lost.items():
        say(f"{key}: both sides changed it; the team's text stands, yours is kept in {where}")
    for key in done.conflicts:
        if key not in done.lost:
            say(f"{key}: both sides changed it, and both texts were merged")
    for key in done.returned:
        say(f"{key}: you deleted it, and it came back: deletions do not travel")
    for key, why in sorted(done.blocked.items()):
        say(f"{key}: not shared, since {why}")
    for key in done.unlisted:
        say(f"{key}: no line of team/MEMORY.md names it; `reverie memory check --fix` adds one")
    if done.group:
        note(f"`reverie memory undo {done.group}` takes back what was pulled, for you alone")


def _files(what: str, keys: Sequence[str]) -> str:
    """How many files, and which, as far as a line is long enough."""
    if not keys:
        return f"nothing {what}"
    more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
    return f"{plural(len(keys), 'file')} {what}: {', '.join(keys[:5])}{more}"


@app.command()
@project_option
@json_option
def status(project: Project, as_json: bool) -> None:
    """Show what a sync would do, and change nothing."""
    from reverie.session.team import team_status

    with open_memory(project) as memories:
        found = team_status(memories, project)
    if as_json:
        document(found.value())
        return
    say(f"{found.repo} at {found.url}, in {found.folder}")
    rows = (
        ("to pull", found.to_pull),
        ("to push", found.to_push),
        ("changed on both sides", found.conflicts),
        ("deleted here, coming back with the next sync", found.returning),
        ("taken back here, until a teammate changes it again", found.taken_back),
    )
    for name, keys in rows:
        if keys:
            say(f"{name}: {', '.join(keys)}")
    for key, why in sorted(found.blocked.items()):
        say(f"{key}: not shared, since {why}")
    if not any(keys for _, keys in rows):
        say("both sides are alike")


@app.command("diff")
@project_option
@json_option
def show_diff(project: Project, as_json: bool) -> None:
    """Show the files in which both sides differ, line by line, and change nothing."""
    from reverie.session.team import DIFFERS, team_changes

    with open_memory(project) as memories:
        found = team_changes(memories, project)
    if as_json:
        document([one.value() for one in found])
        return
    for one in found:
        by = f", last written by {one.author}" if one.author else ""
        say(f"{one.key}: {DIFFERS[one.what]}{by}{f', since {one.why}' if one.why else ''}", "bold")
        there, here = ((side or "").splitlines() for side in (one.there, one.here))
        before, after = (here, there) if one.what in ("pull", "returning") else (there, here)
        for row in list(unified_diff(before, after, lineterm=""))[2:]:
            say(line(reveal(row), 400))
    if not found:
        say("both sides are alike")


@app.command("log")
@project_option
@click.option(
    "-n", "most", type=click.IntRange(1, 1_000), default=20, show_default=True, help="Rows to show."
)
@click.option("--refused", is_flag=True, help="Show what the server refused instead.")
@click.option(
    "--database",
    default="",
    metavar="URL",
    help="With --refused: all that this database's servers refused, to anybody.",
)
@json_option
def show_log(project: Project, most: int, refused: bool, database: str, as_json: bool) -> None:
    """Show who wrote which shared memory, and when; the newest first.

    Of what was refused a token sees its own, and one for all repositories its organisation's.
    """
    if database and not refused:
        raise click.UsageError("--database goes with --refused")
    if refused:
        _show_refused(_refusals(project, most, database), as_json=as_json)
        return
    from reverie.session.team import connect

    rows = connect(project).log(most)
    if as_json:
        document([asdict(one) for one in rows])
        return
    for one in rows:
        when = utc_minute(one.at)
        what = "deleted" if one.deleted else "wrote"
        say(f"{when}  {one.author} {what} {one.key} (version {one.version})")
    if not rows:
        say("Nobody has written anything yet.")


_REFUSED = {
    401: "without a valid token",
    403: "a write with a token that may only read",
    404: "another repository than the token's, or a version that is not there",
    412: "a write on an old state",
    413: "too large",
    428: "a write without If-Match",
    429: "too many writes",
}


def _refusals(project: Project, most: int, database: str) -> list[CountedRefusal]:
    if not database:
        from reverie.session.team import refused_by_server

        return refused_by_server(project, most)
    with _store(database) as store:
        return store.all_refusals(most)


def _show_refused(rows: Sequence[CountedRefusal], *, as_json: bool) -> None:
    if as_json:
        document([asdict(one) for one in rows])
        return
    for one in rows:
        when = utc_minute(one.latest)
        who = f"{one.author} ({one.token})" if one.token else "somebody unknown"
        where = f" in {one.repo}" if one.repo else ""
        why = _REFUSED.get(one.status, "not as the server understands it")
        say(f"{when}  {who}{where}: {plural(one.times, 'time')} {one.status}, {why}")
    if not rows:
        say("Nothing was refused.")


@app.command()
@click.option("--host", default=HOST, show_default=True, help="The address to listen on.")
@port_option(8788)
@database_option
@click.option("--tombstones", is_flag=True, help="Let deletions travel to everybody.")
@json_option
def serve(host: str, port: int, database: str, tombstones: bool, as_json: bool) -> None:
    """Serve team memory over HTTP until Ctrl-C."""
    import anyio

    with extra("team", "The team server cannot serve"):
        from reverie.apps.team.server import app as application
        from reverie.http_server import listen
        from reverie.http_server import serve as run

    def ready(url: str) -> None:
        if as_json:
            json_line({"url": url})
        else:
            say(f"Team memory at {url} (Ctrl-C stops it)")
            say("  `reverie team token create --repo owner/name` makes a token for a teammate")
        sys.stdout.flush()

    with _store(database, tombstones=tombstones) as store:
        anyio.run(run, application(store), listen(host, port), ready)


@app.command()
@click.argument("file", type=click.Path(path_type=Path), help="The file to write.")
@database_option
def backup(file: Path, database: str) -> None:
    """Write everything that a server keeps to a file; tokens only by their digests."""
    from reverie.team.backup import write_backup

    with _store(database) as store:
        count = write_backup(store.database, file)
    say(f"{plural(count, 'row')} written to {file}")


@app.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True), help="What `backup` wrote.")
@database_option
def restore(file: Path, database: str) -> None:
    """Fill an empty database from a backup, of either kind of database."""
    from reverie.team.backup import read_backup

    with _store(database) as store:
        count = read_backup(store.database, file)
    say(f"{plural(count, 'row')} restored")


# Tokens


@app.group(cls=CommandGroup, no_args_is_help=True)
def token() -> None:
    """Make, list and revoke the tokens of a server."""


@token.command()
@click.option("--repo", required=True, metavar="OWNER/NAME", help="`*` for all of them.")
@click.option("--org", default="default", show_default=True, help="The organisation.")
@click.option("--author", default="", help="Whose token it is; else your user name.")
@click.option("--read-only", is_flag=True, help="The token may not write.")
@click.option("--days", type=click.IntRange(1, 3650), help="How long it is good.")
@database_option
@json_option
def create(
    repo: str,
    org: str,
    author: str,
    read_only: bool,
    days: int | None,
    database: str,
    as_json: bool,
) -> None:
    """Make a token. It is shown once."""
    with _store(database) as store:
        text, one = store.create_token(
            org=org,
            repo=repo,
            author=author or environment().get("USER", "") or "teammate",
            writes=not read_only,
            expires=time.time() + days * 86_400 if days else None,
        )
    if as_json:
        document({"token": text, "id": one.id, "repo": one.repo, "writes": one.writes})
    else:
        say(text)
        note("It is not shown again. A teammate sets it as REVERIE_TEAM_TOKEN.")


@token.command("list")
@database_option
@json_option
def list_tokens(database: str, as_json: bool) -> None:
    """List the tokens, without their secret parts."""
    with _store(database) as store:
        found = store.list_tokens()
    if as_json:
        document([asdict(one) for one in found])
        return
    for one in found:
        state = "writes" if one.writes else "reads"
        if not one.is_good(time.time()):
            state = "revoked" if one.revoked else "expired"
        say(f"{one.id}  {one.org}  {one.repo}  {one.author}  {state}")
    if not found:
        say("There are no tokens yet.")


@token.command()
@click.argument("name", help="The id of the token.")
@database_option
def revoke(name: str, database: str) -> None:
    """Make a token worthless from now on, by the id that `list` shows."""
    with _store(database) as store:
        one = store.revoke_token(name)
    say(f"{one.id} of {one.author} is revoked")


@contextmanager
def _store(database: str, *, tombstones: bool = False) -> Generator[TeamStore]:
    """What a server keeps, open for as long as somebody works with it."""
    from reverie.team.database import open_database
    from reverie.team.store import TeamStore

    environ = environment()
    url = database or environ.get(DATABASE, "")
    if not url:
        url = str(places.home(environ) / "team" / "team.sqlite3")
    store = TeamStore(open_database(url), now=time.time, tombstones=tombstones)
    try:
        yield store
    finally:
        store.close()


@app.command()
@click.argument(
    "path", type=click.Path(path_type=Path), help="A file, or a folder and everything below it."
)
@json_option
def scan(path: Path, as_json: bool) -> None:
    """List secrets in a file or folder by file, line and rule. Exits with 1 if there are any."""
    searched, found = scan_files(path)
    if as_json:
        document([asdict(one) for one in found])
    else:
        for one in found:
            say(f"{one.file}:{one.line}: {one.rule}")
        note(f"{plural(searched, 'file')} searched, {plural(len(found), 'secret')} found")
    if found:
        raise click.exceptions.Exit(1)
