"""Which names a team shares: `*.md`, no part with a dot before it; on every side, old and new."""

from __future__ import annotations

import json
import subprocess
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reverie.team import Database, TeamStore, sha256_of
from tests.cli.test_team import Person

from .conftest import REPO, Silent, Talk, answering

pytestmark = pytest.mark.spec("11.server")
GOOD = ("MEMORY.md", "a.md", "notes/deploy.md", "v1.2.md", "a.b/c.md", "config.git.md", "größe.md")
DOTTED = (".git/config", ".git/hooks/x.md", ".md", "a/.md", ".a.md", "a/.b/c.md", ".reverie/x.md")
OTHER = ("x.sh", "x", "x.MD", "x.Md", "x.md.sh", "a.md/x", "x.md~1", "Makefile", "xmd", "x.txt")
BAD = {
    **dict.fromkeys(DOTTED, "no part of a team key may begin with a dot"),
    **dict.fromkeys(OTHER, "a team key ends in .md"),
}
PLANTED = {key: why for key, why in BAD.items() if "~" not in key}  # what a store took before
ATTACK = "[core]\n\tfsmonitor = touch /tmp/planted\n"


# -- the server, with either database


@pytest.fixture
def talk(store: TeamStore, url: str) -> Iterator[Talk]:
    made = Talk(url, store.create_token(org="acme", repo=REPO, author="ines")[0])
    yield made
    made.http.close()


def test_a_server_takes_no_other_key_and_says_which_and_why(talk: Talk) -> None:
    for key, why in BAD.items():
        for body in ({"entries": {"a.md": "x", key: "x"}}, {"deleted": [key]}):
            done = talk.put(body, '"0"')
            assert done.status_code == 400, key
            told = done.json()["error"]
            assert told["where"] == key
            assert told["what"].lower() == why or key not in PLANTED
    assert talk.get().json()["entries"] == {}
    assert talk.put({"entries": dict.fromkeys(GOOD, "x")}, '"0"').status_code == 200
    assert set(talk.get().json()["entries"]) == set(GOOD)


def test_a_server_serves_none_that_was_stored_before_and_keeps_them(
    talk: Talk, database: Database
) -> None:
    planted = [*(key for key in PLANTED if key != "x.Md"), "NOTES.MD"]  # one of each folding
    stand_ins = {f"{n}.md": key for n, key in enumerate(planted)}
    talk.put({"entries": dict.fromkeys(stand_ins, ATTACK)}, '"0"')
    for name, key in stand_ins.items():  # as an older version wrote them
        for table, more in (("entries", ", folded = '" + key.casefold() + "'"), ("versions", "")):
            database.run(
                lambda within, table=table, more=more, name=name, key=key: within.rows(
                    f"UPDATE {table} SET key = ?{more} WHERE key = ?", (key, name)
                ),
                writes=True,
            )
    for view in ("", "&view=hashes"):
        told = talk.get(view).json()
        assert not [told[name] for name in ("checksums", "tombstones", "authors") if told[name]]
        assert not told.get("entries")
    old = talk.http.get(f"/api/team_memory/versions?repo={REPO}&key=x.sh&version=1")
    assert old.json()["content"] == ATTACK
    tag = talk.get().headers["etag"]
    assert talk.put({"entries": {"notes.md": "n", "x.md": "x"}}, tag).status_code == 200
    assert talk.get().json()["entries"] == {"notes.md": "n", "x.md": "x"}
    old = talk.http.get(f"/api/team_memory/versions?repo={REPO}&key=NOTES.MD&version=1")
    assert old.json()["content"] == ATTACK


# -- a client of an older server, or of a branch that anybody writes to


@contextmanager
def older_server(
    entries: dict[str, str], more: dict[str, str] | None = None
) -> Iterator[tuple[str, list[str]]]:
    """One that serves and takes whatever there is, with `more` among the texts; the keys sent."""
    sent: list[str] = []

    class Handler(Silent):
        def get(self) -> None:
            held = entries if "view=hashes" in self.path else {**entries, **(more or {})}
            sums = {key: sha256_of(text) for key, text in held.items()}
            self._say({"entries": held, "checksums": sums, "versions": []})

        def put(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent.extend([*body.get("entries", {}), *body.get("deleted", [])])
            entries.update(body.get("entries", {}))
            self._say({})

        def _say(self, value: object) -> None:
            self.say(json.dumps(value).encode(), f'"n-{len(sent)}"')

    with answering(Handler) as url:
        yield url, sent


def branch_with(folder: Path, entries: dict[str, str]) -> str:
    """A git remote on whose branch a teammate put these."""
    hub, work = folder / "hub.git", folder / "work"
    subprocess.run(["git", "init", "-q", "--bare", str(hub)], check=True)
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    for key, text in entries.items():
        (work / key).parent.mkdir(parents=True, exist_ok=True)
        (work / key).write_text(text)
    (work / "logo.png").write_bytes(b"\x89PNG\xff")
    named = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    for words in (
        ("add", "-A"),
        (*named, "commit", "-q", "-m", "x"),
        ("push", "-q", f"file://{hub}", "HEAD:refs/heads/reverie/team-memory"),
    ):
        subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)
    return f"git+file://{hub}"


def files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


@pytest.mark.needs("git")
@pytest.mark.parametrize("kind", ["server", "git"])
def test_a_client_neither_takes_nor_sends_another_key_and_names_it(
    tmp_path: Path, kind: str
) -> None:
    in_the_way = ("x", "x.MD", "x.Md", "a.md/x")  # of others in the table, on some disk
    there = {
        key: ATTACK
        for key in PLANTED
        if key not in in_the_way and not (kind == "git" and ".git" in key.split("/"))
    }
    there |= {"good.md": "It is on Tuesday.\n"}
    local = {".git/config": ATTACK, "run.sh": "true\n", ".hidden.md": "h\n", "Mine.MD": "m\n"}
    with older_server(dict(there)) as (server, sent):
        url = branch_with(tmp_path, there) if kind == "git" else server
        one = Person(tmp_path / "ines", REVERIE_TEAM_URL=url, REVERIE_TEAM_TOKEN="rvt_x")
        one.run("memory", "add", "--team", "Releases are tagged on Fridays.")
        folder = one.shared()
        for key, text in local.items():
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_text(text)
        before = files(folder)
        for _ in range(2):
            named = json.loads(one.run("team", "status", "--json"))["blocked"]
            for key in (*local, *there):
                assert key == "good.md" or key in named, key
            assert named[".git/config"] == BAD[".git/config"]
            assert named["run.sh"] == "a team key ends in .md"
            done = json.loads(one.run("team", "sync", "--json"))
            assert set(named) <= set(done["blocked"])
            one.run("team", "diff")
        assert ".git/config: not shared, since no part" in one.run("team", "status")
        assert files(folder) == before | {"good.md"}
        assert all((folder / key).read_text() == text for key, text in local.items())
        if kind == "git":
            line = ["git", "ls-tree", "-r", "--name-only", "refs/heads/reverie/team-memory"]
            held = subprocess.run(line, cwd=tmp_path / "hub.git", capture_output=True, check=True)
            names = held.stdout.decode().splitlines()
            sent += [key for key in names if key not in there and key != "logo.png"]
        assert sent
        assert all(key.endswith(".md") and "/." not in f"/{key}" for key in sent), sent


def test_a_key_that_comes_between_two_looks_is_not_taken(tmp_path: Path) -> None:
    """The checksums are honest, and the texts that come after them are not."""
    with older_server({"good.md": "It is on Tuesday.\n"}, more={".git/config": ATTACK}) as (url, _):
        one = Person(tmp_path / "ines", REVERIE_TEAM_URL=url, REVERIE_TEAM_TOKEN="rvt_x")
        one.run("memory", "add", "Releases are tagged on Fridays.")
        folder = one.shared()
        one.run("team", "sync")
        assert files(folder) == {"good.md"}


# -- spellings, reserved names, case and links

NFD = unicodedata.normalize("NFD", "größe.md")
RESERVED = ("con.md", "aux/x.md", "trailing./x.md", "a:b.md", "com1.md")


@pytest.mark.parametrize("key", [NFD, *RESERVED, "ﬁle.md", "..//x.md", "a%2fb.md", "Ａ.md"])
def test_a_server_takes_no_spelling_that_some_system_cannot_keep(talk: Talk, key: str) -> None:
    assert talk.put({"entries": {key: "x"}}, '"0"').status_code == 400
    assert talk.put({"entries": {"a.md": "x", "A.md": "y"}}, '"0"').status_code == 400
    assert talk.put({"entries": {"größe.md": "x"}}, '"0"').status_code == 200
    tag = talk.get().headers["etag"]
    assert talk.put({"entries": {"GRÖSSE.md": "x", "Größe.md": "y"}}, tag).status_code == 400
    assert talk.put({"entries": {"GRÖßE.md": "y"}}, tag).status_code in (400, 409, 412)


def put_odd_files(folder: Path, outside: Path) -> set[str]:
    """Local files that no team shares: links, other spellings, reserved names, twins by case."""
    (folder / "aux").mkdir(parents=True)
    for name in (NFD, "con.md", "aux/x.md", "a:b.md"):
        (folder / name).write_text("x\n")
    outside.write_text("secret of another place\n")
    (folder / "link.md").symlink_to(outside)
    (folder / "dangling.md").symlink_to(outside.parent / "nothing.md")
    (folder / "linked").symlink_to(outside.parent)
    (folder / "Case.md").write_text("upper\n")
    (folder / "case.md").write_text("lower\n")
    return {NFD, "con.md", "aux", "a:b.md", "link.md", "dangling.md", "linked", "case.md"}


@pytest.mark.needs("git")
@pytest.mark.parametrize("kind", ["server", "git"])
def test_local_files_that_are_not_shared_are_named(
    tmp_path: Path, kind: str, store: TeamStore, url: str
) -> None:
    token = store.create_token(org="acme", repo=REPO, author="ines")[0]
    where = branch_with(tmp_path, {"good.md": "g\n"}) if kind == "git" else url
    one = Person(tmp_path / "ines", REVERIE_TEAM_URL=where, REVERIE_TEAM_TOKEN=token)
    one.run("memory", "add", "--team", "Releases are tagged on Fridays.")
    odd = put_odd_files(one.shared(), tmp_path / "outside.md")
    for _ in range(2):
        for words in (("team", "status", "--json"), ("team", "sync", "--json")):
            named = json.loads(one.run(*words))["blocked"]
            assert odd <= set(named), odd - set(named)
            assert "link" in named["link.md"]
            assert named["case.md"] == "some systems take its name for that of Case.md"
    other = Person(tmp_path / "otto", REVERIE_TEAM_URL=where, REVERIE_TEAM_TOKEN=token)
    other.run("memory", "add", "It is so.")
    other.run("team", "sync")
    assert not odd & files(other.shared())
    assert (other.shared() / "Case.md").read_text() == "upper\n"


@pytest.mark.needs("git")
def test_what_a_branch_holds_and_nobody_takes_is_named_and_stops_nothing(tmp_path: Path) -> None:
    """Anybody may push: one odd name must not end the team's sync."""
    url = branch_with(tmp_path, {NFD: "n\n", "con.md": "c\n", "A.md": "a\n", "a.md": "b\n"})
    work = tmp_path / "work"
    (work / "link.md").symlink_to("/etc/passwd")
    (work / "latin.md").write_bytes(b"caf\xe9\n")
    named = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    for words in (
        ("add", "-A"),
        (*named, "commit", "-q", "-m", "y"),
        ("push", "-q", url.removeprefix("git+"), "HEAD:refs/heads/reverie/team-memory"),
    ):
        subprocess.run(["git", *words], cwd=work, check=True, capture_output=True)
    one = Person(tmp_path / "ines", REVERIE_TEAM_URL=url, REVERIE_TEAM_TOKEN="rvt_x")
    one.run("memory", "add", "--team", "Releases are tagged on Fridays.")
    odd = {NFD, "con.md", "link.md", "latin.md", "a.md", "logo.png"}
    for _ in range(2):
        for command in ("status", "sync"):
            found = json.loads(one.run("team", command, "--json"))["blocked"]
            assert odd <= set(found), odd - set(found)
    assert "A.md" in files(one.shared())
    assert not odd & files(one.shared())
    (one.shared() / "link.md").write_text("mine\n")
    assert "link.md" in json.loads(one.run("team", "sync", "--json"))["blocked"]
