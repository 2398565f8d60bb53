"""A sync between folders and a server that really run: what is taken, pushed, kept, merged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reverie.apps.team import app
from reverie.errors import InvalidInput
from reverie.http_server import serving
from reverie.team import (
    EntryChange,
    EntryVersion,
    Offline,
    Permanent,
    RemoteState,
    ServerAnswer,
    Stale,
    SyncMode,
    TeamClient,
    TeamStore,
    open_database,
    sync_memory,
)
from reverie.testing import ManualClock
from reverie.topics import Origin, Trust

from .conftest import HERE, REPO, Mate, draft

pytestmark = pytest.mark.spec("11.sync")
USER = Origin("save", Trust.USER, agent="user")


def client(url: str, store: TeamStore, author: str) -> TeamClient:
    text, _ = store.create_token(org="acme", repo=REPO, author=author)
    return TeamClient(url, text, REPO, seconds=10)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, TeamStore]]:
    import time

    database = open_database(str(tmp_path / "team.sqlite3"))
    store = TeamStore(database, now=time.time, tombstones=True)
    with serving(app(store)) as url:
        yield url, store
    store.close()


@pytest.fixture
def mates(server: tuple[str, TeamStore], tmp_path: Path, hand: ManualClock) -> Iterator[list[Mate]]:
    url, store = server
    made = [Mate(tmp_path / name, client(url, store, name), hand.now) for name in ("ines", "tomas")]
    yield made
    for one in made:
        one.memories.close()


def agree(one: Mate, other: Mate, key: str, text: str, mode: SyncMode | None = None) -> None:
    """Let both have this text."""
    one.write(key, text)
    one.sync(mode)
    other.sync(mode)


def test_what_one_writes_the_other_gets_as_untrusted_and_can_undo(mates: list[Mate]) -> None:
    ines, tomas = mates
    ines.write("deploy.md", "Deploys go out on Tuesdays.\n")
    assert ines.sync().pushed == ["deploy.md"]
    got = tomas.sync()
    assert (got.pulled, got.pushed) == (["deploy.md"], [])
    assert tomas.read("deploy.md") == "Deploys go out on Tuesdays.\n"
    assert tomas.memories.trust("team/deploy.md") is Trust.UNTRUSTED
    assert "ines" in tomas.memories.history.log("team/deploy.md")[-1].origin.note
    again = tomas.sync()
    assert not (again.pulled)
    assert not (again.pushed)
    assert not (again.conflicts)
    tomas.memories.undo("", USER)
    assert not tomas.path("deploy.md").exists()
    for _ in range(2):  # taken back for oneself: neither pulled again nor pushed to all
        after = tomas.sync()
        assert not (after.pulled)
        assert not (after.pushed)
        assert not (after.returned)
    assert ines.sync().pulled == []
    ines.write("deploy.md", "Deploys go out on Wednesdays.\n")
    ines.sync()
    assert tomas.sync().pulled == ["deploy.md"]


def test_row_49_the_server_wins_and_the_loser_is_kept(mates: list[Mate]) -> None:
    ines, tomas = mates
    agree(ines, tomas, "a.md", "one\n")
    ines.write("a.md", "by ines\n")
    ines.sync()
    tomas.write("a.md", "by tomas\n")
    got = tomas.sync()
    assert got.conflicts == ["a.md"]
    assert tomas.read("a.md") == "by ines\n"
    assert tomas.memories.beside.read(got.lost["a.md"]) == b"by tomas\n"
    assert ines.sync().pulled == []


def test_merging_keeps_both_sides_words(mates: list[Mate]) -> None:
    ines, tomas = mates
    both = SyncMode(merging=True)
    agree(ines, tomas, "a.md", "top\n\nmiddle\n\nend\n", both)
    ines.write("a.md", "top by ines\n\nmiddle\n\nend\n")
    ines.sync(both)
    tomas.write("a.md", "top\n\nmiddle\n\nend by tomas\n")
    got = tomas.sync(both)
    assert got.conflicts == ["a.md"]
    assert got.pushed == ["a.md"]
    ines.sync(both)
    assert ines.read("a.md") == tomas.read("a.md") == "top by ines\n\nmiddle\n\nend by tomas\n"


def test_row_50_a_deletion_does_not_travel_and_is_told(mates: list[Mate]) -> None:
    ines, tomas = mates
    agree(ines, tomas, "a.md", "one\n")
    tomas.path("a.md").unlink()
    got = tomas.sync()
    assert (got.returned, got.pulled) == (["a.md"], ["a.md"])
    assert ines.path("a.md").exists()
    assert tomas.path("a.md").exists()


def test_row_50_where_deletions_travel_both_lose_the_file(mates: list[Mate]) -> None:
    ines, tomas = mates
    mode = SyncMode(deletions=True)
    agree(ines, tomas, "a.md", "one\n", mode)
    tomas.path("a.md").unlink()
    assert tomas.sync(mode).pushed == ["a.md"]
    assert ines.sync(mode).removed == ["a.md"]
    assert not ines.path("a.md").exists()
    assert ines.memories.undo("", USER).done
    assert ines.read("a.md") == "one\n"


def test_what_may_not_be_shared_stays_and_is_named(mates: list[Mate]) -> None:
    ines, tomas = mates
    ines.write("key.md", "The key is " + "ghp_" + "0123456789abcdefABCDEF0123456789abcd" + "\n")
    ines.write("me.md", "---\nname: me\ndescription: x\ntype: user\n---\nI am new.\n")
    ines.write("big.md", "x" * 200_001)
    ines.path("bin.md").write_bytes(b"\xff\xfe")
    ines.write("good.md", "fine\n")
    got = ines.sync()
    assert got.pushed == ["good.md"]
    assert sorted(got.blocked) == ["big.md", "bin.md", "key.md", "me.md"]
    assert "0123456789abcdefABCDEF" not in repr(got.blocked)
    assert tomas.sync().pulled == ["good.md"]


def test_a_server_that_is_away_leaves_everything_for_the_next_time(
    mates: list[Mate], server: tuple[str, TeamStore], tmp_path: Path
) -> None:
    ines, _tomas = mates
    away = TeamClient("http://127.0.0.1:9", "x", REPO, seconds=2)
    ines.write("a.md", "one\n")
    with pytest.raises(Offline):
        sync_memory(ines.memories, away, now=ines.now)
    wrong = TeamClient(server[0], "wrong", REPO)
    with pytest.raises(Permanent, match="401"):
        sync_memory(ines.memories, wrong, now=ines.now)
    assert ines.read("a.md") == "one\n"
    assert ines.sync().pushed == ["a.md"]


class Failing:
    """The other side, whose nth write fails after or before it was taken."""

    def __init__(self, client: TeamClient, at: int, *, taken: bool) -> None:
        self.url, self.repo = client.url, client.repo
        self.state, self.hashes, self.log = client.state, client.hashes, client.log
        self._put, self._at, self._taken = client.put, at, taken

    def put(self, drafts: Sequence[EntryChange], expected: str) -> str:
        self._at -= 1
        if self._at == 0 and self._taken:
            self._put(drafts, expected)
        if self._at == 0:
            raise Offline("The connection was cut")
        return self._put(drafts, expected)


@pytest.mark.parametrize("taken", [True, False])
def test_row_48_a_push_that_fails_in_the_middle_is_gone_on_with(
    mates: list[Mate], taken: bool
) -> None:
    ines, tomas = mates
    for n in range(6):
        ines.write(f"n{n}.md", f"{n} " * 40_000)
    cut = Failing(ines.remote, 2, taken=taken)
    with pytest.raises(Offline):
        sync_memory(ines.memories, cut, now=ines.now)
    left = ines.sync()
    assert len(left.pushed) == (2 if taken else 4)
    assert not left.conflicts
    assert len(tomas.sync().pulled) == 6


def test_somebody_who_writes_in_between_makes_it_start_over(mates: list[Mate]) -> None:
    ines, tomas = mates
    tomas.sync()

    class Racing(Failing):
        def put(self, drafts: Sequence[EntryChange], expected: str) -> str:
            self._at -= 1
            if self._at >= 0:
                tomas.write(f"by-tomas-{self._at}.md", "x\n")
                tomas.sync()
            return self._put(drafts, expected)

    ines.write("a.md", "one\n")
    done = sync_memory(ines.memories, Racing(ines.remote, 3, taken=False), now=ines.now)
    assert done.pushed == ["a.md"]
    assert len(done.pulled) == 3
    ines.write("a.md", "two\n")
    with pytest.raises(Stale):
        sync_memory(ines.memories, Racing(ines.remote, 99, taken=False), now=ines.now)
    assert ines.read("a.md") == "two\n"
    assert ines.sync().pushed == ["a.md"]


def test_what_tells_of_the_user_never_reaches_the_shared_folder(
    mates: list[Mate], server: tuple[str, TeamStore]
) -> None:
    ines, tomas = mates
    text = "---\nname: me\ndescription: new to Go\ntype: user\n---\nNew to Go.\n"
    with pytest.raises(InvalidInput, match="private"):
        ines.memories.save("team/me.md", text.encode(), USER)
    _, token = server[1].create_token(org="acme", repo=REPO, author="mallory")
    tag = server[1].tag(HERE)
    server[1].put(HERE, [draft("me.md", text)], tag, token)
    got = tomas.sync()
    assert got.pulled == []
    assert "private" in got.blocked["me.md"]
    assert not tomas.path("me.md").exists()


def test_both_add_to_the_index_and_no_line_is_lost(mates: list[Mate]) -> None:
    ines, tomas = mates
    agree(ines, tomas, "MEMORY.md", "- [Start](start.md) — first\n")
    ines.write("MEMORY.md", "- [Start](start.md) — first\n- [Deploy](deploy.md) — Tuesdays\n")
    ines.sync()
    tomas.write("MEMORY.md", "- [Start](start.md) — first\n- [Tests](tests.md) — with make\n")
    got = tomas.sync()
    assert (got.conflicts, got.lost) == (["MEMORY.md"], {})
    ines.sync()
    for line in ("(start.md)", "(deploy.md) — Tuesdays", "(tests.md) — with make"):
        assert ines.read("MEMORY.md").count(line) == tomas.read("MEMORY.md").count(line) == 1


def test_a_file_put_there_by_hand_is_shared_and_said_to_be_in_no_index(mates: list[Mate]) -> None:
    ines, tomas = mates
    ines.write("MEMORY.md", "- [Start](start.md) — first\n")
    for name in ("start", "deploy"):
        ines.write(f"{name}.md", f"---\nname: {name}\ndescription: x\n---\nText.\n")
    ines.write("waits.md", "---\nname: waits\ntrust: unverified\n---\nText.\n")
    ines.write("table.csv", "a,b\n")
    got = ines.sync()
    assert len(got.pushed) == 4
    assert got.blocked == {"table.csv": "a team key ends in .md"}
    assert got.unlisted == ["deploy.md"]
    assert ines.sync().unlisted == []  # said once
    assert tomas.sync().unlisted == []  # and to whoever wrote it


def answered(mate: Mate, named: dict[str, str]) -> Callable[..., ServerAnswer]:
    """Lets the server name these as authors; gives what it did before."""
    kept = mate.remote._send  # pyright: ignore[reportPrivateUsage]

    def told(*given: Any) -> ServerAnswer:
        answer = kept(*given)
        body = json.loads(answer.body) | {"authors": named} if answer.body else {}
        return ServerAnswer(answer.status, answer.headers, json.dumps(body).encode())

    mate.remote._send = told  # type: ignore[method-assign]
    return kept


def test_however_many_wrote_what_is_pulled_they_are_named_in_so_many_letters(
    mates: list[Mate],
) -> None:
    ines, tomas = mates
    named = {f"{name}.md": name * 90 for name in "abc"}
    for key in named:
        ines.write(key, f"Of {key}.\n")
    ines.sync()
    answered(tomas, named)
    assert len(tomas.sync().pulled) == 3
    note = tomas.memories.history.log("team/a.md")[-1].origin.note
    assert note == f"by {', '.join(named.values())}"[:200]


@pytest.mark.parametrize("named", [{}, {"a.md": "x\x1b[2J"}, {"a.md": "x" * 101}])
def test_an_author_whom_the_server_does_not_know_is_named_so_and_not_trusted(
    mates: list[Mate], named: dict[str, str]
) -> None:
    """Nothing that such a file says is more than a stranger's words, also when it comes again
    with an author that is known."""
    ines, tomas = mates
    ines.write("a.md", "Deploys go out on Tuesdays.\n")
    ines.sync()
    kept = answered(tomas, named)
    assert tomas.sync().pulled == ["a.md"]
    assert tomas.memories.trust("team/a.md") is Trust.UNTRUSTED
    assert tomas.memories.history.log("team/a.md")[-1].origin.note == "by somebody unknown"
    tomas.remote._send = kept  # type: ignore[method-assign]
    ines.write("a.md", "Deploys go out on Wednesdays.\n")
    ines.sync()
    assert tomas.sync().pulled == ["a.md"]
    assert tomas.memories.trust("team/a.md") is Trust.UNTRUSTED
    assert tomas.memories.history.log("team/a.md")[-1].origin.note == "by ines"


def test_a_push_of_more_batches_than_a_token_may_write_waits_and_goes_on(
    tmp_path: Path, hand: ManualClock
) -> None:
    store = TeamStore(open_database(str(tmp_path / "slow.sqlite3")), now=hand.now)
    text, _ = store.create_token(org="acme", repo=REPO, author="ines")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        hand.time += seconds

    with serving(app(store)) as url:
        ines = Mate(tmp_path / "ines", TeamClient(url, text, REPO, sleep=sleep), hand.now)
        for n in range(45):
            ines.write(f"n{n:02}.md", f"{n:02} " * 40_000)
        assert len(ines.sync().pushed) == 45
        ines.memories.close()
    assert waited == [1.0, 1.0]
    assert len(store.hashes(HERE).checksums) == 45
    store.close()


class Interrupted:
    """The server, and somebody who saves here while its answer is on its way."""

    def __init__(self, client: TeamClient, saves: list[Callable[[], None]]) -> None:
        self._client, self._saves = client, saves
        self.url, self.repo = client.url, client.repo

    def state(self, known: str = "") -> RemoteState | None:
        found = self._client.state(known)
        if self._saves:
            self._saves.pop(0)()
        return found

    def hashes(self, known: str = "") -> RemoteState | None:
        return self._client.hashes(known)

    def put(self, drafts: Sequence[EntryChange], expected: str) -> str:
        return self._client.put(drafts, expected)

    def log(self, most: int = 100) -> list[EntryVersion]:
        return self._client.log(most)


def test_what_is_saved_while_a_conflict_is_settled_is_kept_too(mates: list[Mate]) -> None:
    """A sync that has to begin again keeps the newer words aside, not only those it saw first."""
    ines, tomas = mates
    ines.write("a.md", "Ines' words.\n")
    ines.sync()
    tomas.write("a.md", "Tomas' first words.\n")
    link = Interrupted(tomas.remote, [lambda: tomas.write("a.md", "Tomas' second words.\n")])
    done = sync_memory(tomas.memories, link, now=tomas.now)
    assert tomas.read("a.md") == "Ines' words.\n"
    assert done.conflicts == ["a.md"]
    kept = tomas.memories.beside.root.glob("team-lost/*/a.md")
    assert sorted(one.read_text() for one in kept) == [
        "Tomas' first words.\n",
        "Tomas' second words.\n",
    ]
