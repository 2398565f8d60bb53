"""A team's store in courses drawn by chance: SQLite is killed, fails, loses power at any call."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random

import pytest

from reverie.team import HttpRefusal, TeamStore, Token, open_database
from tests.breaking import OS, SQLITE, Acked, attempted, cut, failed, killed
from tests.conftest import Scale
from tests.faults import Ack

from .conftest import HERE, draft

pytestmark = [pytest.mark.spec("1.courses")]
FILE = Path("data/team/team.sqlite3")
Step = tuple[str, tuple[str, ...], int]


def opened(base: Path) -> TeamStore:
    return TeamStore(open_database(str(base / FILE)), now=lambda: 1_700_000_000.0)


class StoreCourse:
    """Batches are put, tokens are made and taken back; between them the store is opened again."""

    def __init__(self, chance: Random) -> None:
        self.steps: list[Step] = [
            (
                chance.choice(["put"] * 4 + ["token", "revoke", "again"]),
                tuple(chance.sample(["a.md", "b.md", "c.md"], chance.randint(1, 3))),
                chance.choice([10, 10, 9_000]),
            )
            for _ in range(chance.randint(2, 5))
        ]
        self.new = chance.random() < 0.3  # nothing is there yet

    def begin(self, base: Path) -> None:
        if not self.new:
            store = opened(base)
            store.create_token(org="acme", repo="*", author="first")
            store.put(HERE, [draft("a.md", "begun")], store.tag(HERE), writer(store))
            store.close()

    def act(self, base: Path, ack: Ack) -> None:
        store: TeamStore | None = None
        for at, (kind, keys, size) in enumerate(self.steps):
            if kind == "again" and store is not None:
                attempted(store.close)
                store = None
            store = store or attempted(opened, base)
            if store is not None:
                attempted(step, store, kind, keys, at, size, ack)
        if store is not None:
            attempted(store.close)
        ack("over")

    def check(self, base: Path, acked: Acked) -> None:
        store = opened(base)
        texts = store.contents(HERE).contents
        assert self.new or texts["a.md"]
        newest: dict[str, str] = {}
        for word, *rest in (one.split() for one in acked):
            if word == "put":
                key, version, text = rest
                newest[key] = text
                kept = store.version(HERE, key, int(version)) or ""
                assert kept.split()[0] == text, f"a version is lost: {key} {version}"
            elif word in ("made", "revoked"):
                known = {one.id: one for one in store.list_tokens()}
                assert rest[0] in known, "a token is lost"
                assert word == "made" or known[rest[0]].revoked, "a token lives again"
        for key, text in newest.items():
            assert int(texts[key].split()[0][4:]) >= int(text[4:]), f"lost: {key} {text}"
        found = {row.key: row.version for row in reversed(store.log(HERE))}
        assert {k: store.version(HERE, k, v) for k, v in found.items()} == texts
        tag = store.put(HERE, [draft("a.md", "text99")], store.tag(HERE), writer(store))
        assert store.tag(HERE) == tag
        store.close()
        connection = sqlite3.connect(base / FILE)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


def writer(store: TeamStore) -> Token:
    known = [one for one in store.list_tokens() if not one.revoked]
    return known[0] if known else store.create_token(org="acme", repo="*", author="somebody")[1]


def step(store: TeamStore, kind: str, keys: tuple[str, ...], at: int, size: int, ack: Ack) -> None:
    if kind == "token":
        ack(f"made {store.create_token(org='acme', repo='*', author='a')[1].id}")
    elif kind == "revoke":
        name = store.create_token(org="acme", repo="*", author="b")[1].id
        store.revoke_token(name)
        ack(f"revoked {name}")
    elif kind == "put":
        text = f"text{at} {'x' * size}"
        try:
            tag = store.put(HERE, [draft(k, text) for k in keys], store.tag(HERE), writer(store))
        except HttpRefusal:
            return
        for key in keys:
            ack(f"put {key} {tag.strip(chr(34)).split('-')[1]} text{at}")


def test_what_a_team_put_outlives_a_kill(scale: Scale) -> None:
    chance = Random(f"team kills:{scale.seed}")
    killed(StoreCourse, chance, scale.pick(4, 300), SQLITE)


def test_what_a_team_put_outlives_a_call_that_fails(scale: Scale) -> None:
    chance = Random(f"team faults:{scale.seed}")
    failed(StoreCourse, chance, scale.pick(8, 1_000), SQLITE)
    failed(StoreCourse, chance, scale.pick(2, 200), OS)


def test_what_a_team_put_outlives_a_power_cut(scale: Scale) -> None:
    cut(StoreCourse, Random(f"team power:{scale.seed}"), scale.pick(8, 1_000), SQLITE)
