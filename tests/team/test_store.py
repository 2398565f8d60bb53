"""What the team server keeps, on both databases: tags, limits, tokens, versions, tenants."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.errors import InvalidInput, NotFound
from reverie.team import (
    BATCH_BYTES,
    BEGINNING,
    ROWS,
    STEPS,
    Database,
    DatabaseAway,
    EntryChange,
    HttpRefusal,
    RefusedRequest,
    TeamStore,
    Token,
    TooFast,
    Transaction,
    migrate,
    open_database,
    sha256_of,
)
from reverie.testing import ManualClock

from .conftest import HERE, draft

pytestmark = pytest.mark.spec("11.server")


def writer(store: TeamStore, repo: str = "acme/reader", org: str = "acme") -> Token:
    return store.create_token(org=org, repo=repo, author="ines")[1]


def refusal(status: int) -> pytest.RaisesExc[HttpRefusal]:
    return pytest.RaisesExc(HttpRefusal, check=lambda error: error.status == status)


def test_a_write_lands_on_the_state_it_was_made_for_alone(store: TeamStore) -> None:
    token = writer(store)
    assert store.hashes(HERE).tag == BEGINNING
    first = store.put(HERE, [draft("a.md", "one")], BEGINNING, token)
    second = store.put(HERE, [draft("a.md", "two"), draft("b.md", "b")], first, token)
    for stale in (BEGINNING, first, '"never"', '"0-0"'):
        with refusal(412):
            store.put(HERE, [draft("a.md", "lost")], stale, token)
    found = store.contents(HERE)
    assert found.tag == second
    assert found.contents == {"a.md": "two", "b.md": "b"}
    assert store.hashes(HERE).checksums == {"a.md": sha256_of("two"), "b.md": sha256_of("b")}


def test_row_44_a_tag_never_comes_back(store: TeamStore) -> None:
    token = writer(store)
    tags = [BEGINNING]
    for text in ("A", "B", "A"):
        tags.append(store.put(HERE, [draft("a.md", text)], tags[-1], token))
    assert len(set(tags)) == 4
    with refusal(412):
        store.put(HERE, [draft("a.md", "late")], tags[1], token)


def test_every_version_is_kept_with_its_author(store: TeamStore, hand: ManualClock) -> None:
    token = writer(store)
    tag = store.put(HERE, [draft("a.md", "one")], BEGINNING, token)
    hand.time += 60
    store.put(HERE, [draft("a.md", "two")], tag, token)
    log = store.log(HERE)
    assert [(one.version, one.author, one.at) for one in log] == [
        (2, "ines", hand.time),
        (1, "ines", hand.time - 60),
    ]
    assert store.version(HERE, "a.md", 1) == "one"
    assert store.version(HERE, "a.md", 3) is None
    assert store.version(("acme", "acme/other"), "a.md", 1) is None


@pytest.mark.parametrize("key", ["../a.md", "/a.md", "a\\b", "a%2fb", "a\0", "", "ａ.md", "A/../b"])
def test_keys_that_lead_elsewhere_are_refused(store: TeamStore, key: str) -> None:
    with refusal(400):
        store.put(HERE, [draft(key, "x")], BEGINNING, writer(store))
    assert store.hashes(HERE).tag == BEGINNING


def test_row_46_a_wrong_hash_stores_nothing(store: TeamStore) -> None:
    with refusal(400):
        store.put(
            HERE,
            [draft("good.md", "x"), EntryChange("a.md", "x", sha256_of("y"))],
            BEGINNING,
            writer(store),
        )
    assert store.hashes(HERE).tag == BEGINNING


def test_the_bytes_of_a_repository_fall_with_what_is_removed(store: TeamStore) -> None:
    """Its limits count what it holds now, or a repository would fill up by edits alone."""
    token, store.tombstones = writer(store), True

    def counted() -> list[int]:
        sql = "SELECT entries, bytes FROM repositories WHERE org = ? AND repo = ?"
        return [int(one or 0) for one in store.database.run(lambda t: t.rows(sql, HERE))[0]]

    both = [draft("a.md", "x" * 1_000), draft("b.md", "y" * 500)]
    tag = store.put(HERE, both, BEGINNING, token)
    assert counted() == [2, 1_508]
    tag = store.put(HERE, [draft("a.md", "short")], tag, token)
    assert counted() == [2, 513]
    tag = store.put(HERE, [EntryChange("b.md", None, "")], tag, token)
    assert counted() == [1, 9]
    store.put(HERE, [draft("b.md", "back")], tag, token)
    assert counted() == [2, 17]


def test_row_47_the_limit_of_a_batch_is_exact(store: TeamStore) -> None:
    token = writer(store)
    fits = "x" * (BATCH_BYTES - len("a.md"))
    tag = store.put(HERE, [draft("a.md", fits[:-1])], BEGINNING, token)
    tag = store.put(HERE, [draft("a.md", fits)], tag, token)
    with pytest.raises(HttpRefusal, match=r"a\.md") as error:
        store.put(HERE, [draft("a.md", fits + "x"), draft("b.md", "b")], tag, token)
    assert error.value.status == 413
    many = [draft(f"{n}.md", "") for n in range(1_001)]
    with refusal(413):
        store.put(HERE, many, tag, token)


def test_two_keys_that_one_file_system_takes_for_one_are_refused(store: TeamStore) -> None:
    token = writer(store)
    tag = store.put(HERE, [draft("Café.md", "x")], BEGINNING, token)
    with refusal(409):
        store.put(HERE, [draft("café.md", "y")], tag, token)
    with refusal(400):
        store.put(HERE, [draft("b.md", "x"), draft("B.md", "y")], tag, token)


def test_writes_are_limited_a_token_and_second(store: TeamStore, hand: ManualClock) -> None:
    token, other = writer(store), writer(store)
    tag = BEGINNING
    for n in range(20):
        tag = store.put(HERE, [draft("a.md", str(n))], tag, token)
    with pytest.raises(TooFast) as error:
        store.put(HERE, [draft("a.md", "x")], tag, token)
    assert 0 < error.value.wait <= 1
    tag = store.put(HERE, [draft("a.md", "other")], tag, other)
    hand.time += 0.5
    for n in range(10):
        tag = store.put(HERE, [draft("a.md", str(n))], tag, token)
    with pytest.raises(TooFast):
        store.put(HERE, [draft("a.md", "x")], tag, token)
    hand.time -= 1000  # a clock set back neither fills nor empties the bucket
    with pytest.raises(TooFast):
        store.put(HERE, [draft("a.md", "x")], tag, token)


def test_deletions_are_kept_where_they_travel(database: Database, hand: ManualClock) -> None:
    store = TeamStore(database, now=hand.now, tombstones=True)
    token = writer(store)
    tag = store.put(HERE, [draft("a.md", "one"), draft("b.md", "b")], BEGINNING, token)
    tag = store.put(HERE, [EntryChange("a.md", None, sha256_of("one"))], tag, token)
    found = store.contents(HERE)
    assert dict(found.contents) == {"b.md": "b"}
    assert dict(found.tombstones) == {"a.md": sha256_of("one")}
    store.put(HERE, [draft("a.md", "again")], tag, token)
    assert store.hashes(HERE).tombstones == {}
    plain = TeamStore(database, now=hand.now)
    with refusal(400):
        plain.put(HERE, [EntryChange("a.md", None, "")], plain.tag(HERE), token)


def test_row_41_tokens_are_known_by_their_digest_alone(store: TeamStore, hand: ManualClock) -> None:
    text, one = store.create_token(org="acme", repo="*", author="ines", expires=hand.time + 10)
    assert store.token(text) == one
    bad = ("", "x", text[:-1], text + "x", text.upper(), f" {text}", "rvt_" + "0" * 12 + text[16:])
    assert [store.token(wrong) for wrong in bad] == [None] * 7
    dump = store.database.run(lambda within: within.rows("SELECT * FROM tokens"))
    assert text.split("_", 2)[2] not in repr(dump)
    hand.time += 11
    assert store.token(text) is None
    hand.time -= 11
    store.revoke_token(one.id)
    assert store.token(text) is None
    with pytest.raises(NotFound):
        store.revoke_token(one.id)
    assert [row.revoked is None for row in store.list_tokens()] == [False]


def test_bad_names_make_no_token(store: TeamStore) -> None:
    for repo in ("acme", "acme/..", "../x", "a/b/c", "acme/", "acme/x.git", "a b/c", "acme/x\n"):
        with pytest.raises(InvalidInput):
            store.create_token(org="acme", repo=repo, author="ines")
    with pytest.raises(InvalidInput):
        store.create_token(org="", repo="*", author="ines")


def test_tenants_have_nothing_in_common(store: TeamStore) -> None:
    theirs = ("other", "acme/reader")
    store.put(HERE, [draft("a.md", "ours")], BEGINNING, writer(store))
    assert store.hashes(theirs).tag == BEGINNING
    store.put(theirs, [draft("a.md", "theirs")], BEGINNING, writer(store, org="other"))
    assert store.contents(HERE).contents == {"a.md": "ours"}
    assert store.contents(theirs).contents == {"a.md": "theirs"}


def test_steps_are_taken_once_and_newer_ones_are_refused(database: Database) -> None:
    assert migrate(database) == migrate(database) == len(STEPS)
    database.run(
        lambda within: within.rows("INSERT INTO migrations (number) VALUES (?)", (len(STEPS) + 1,)),
        writes=True,
    )
    with pytest.raises(InvalidInput, match="newer"):
        migrate(database)


def test_a_database_of_the_first_version_gets_what_is_new_and_keeps_what_it_has(
    database: Database, hand: ManualClock
) -> None:
    def old(within: Transaction) -> None:
        within.rows("CREATE TABLE migrations (number BIGINT PRIMARY KEY)")
        for statement in STEPS[0]:
            within.rows(statement)
        within.rows("INSERT INTO migrations (number) VALUES (1)")
        within.rows("INSERT INTO repositories VALUES ('acme', 'acme/reader', 'x', 7, 0, 0)")

    database.run(old, writes=True)
    store = TeamStore(database, now=hand.now)
    assert store.tag(HERE) == '"x-7"'
    assert store.all_refusals() == []


@pytest.mark.spec("11.refused")
def test_what_was_refused_is_counted_by_hour_and_seen_by_whom_it_concerns(
    store: TeamStore, hand: ManualClock
) -> None:
    ines, tomas = writer(store), writer(store)
    lead = writer(store, "*")
    other = writer(store, "zeta/app", "zeta")
    for token, times in ((ines, 3), (tomas, 2), (other, 1)):
        for _ in range(times):
            store.refused.count(RefusedRequest(412, token.id, token.org, token.repo))
    store.refused.count(RefusedRequest(401, ines.id))  # a wrong secret, or a token that is over
    store.refused.count(RefusedRequest(401, "0123456789ab"))  # no token of ours: nobody's name
    store.refused.write()
    hand.time += 3600
    store.refused.count(RefusedRequest(412, ines.id, "acme", "acme/reader"))

    def seen(token: Token, repo: str = "acme/reader") -> list[tuple[str, int, int]]:
        found = store.refusals(token, repo)
        return sorted((one.token, one.status, one.times) for one in found)

    own = sorted([(ines.id, 401, 1), (ines.id, 412, 1), (ines.id, 412, 3)])
    assert seen(ines) == own
    assert seen(tomas) == [(tomas.id, 412, 2)]
    assert seen(lead) == sorted([*own, (tomas.id, 412, 2)])
    assert seen(lead, "acme/else") == [(ines.id, 401, 1)]
    assert seen(other, "zeta/app") == [(other.id, 412, 1)]
    everything = store.all_refusals()
    assert len(everything) == 6
    assert [one.status for one in everything if not one.token] == [401]
    assert {one.author for one in everything} == {"ines", ""}


@pytest.mark.spec("11.refused")
def test_a_flood_of_refusals_is_few_writes_and_few_rows(
    store: TeamStore, hand: ManualClock
) -> None:
    token = writer(store, "*")
    due = [
        store.refused.count(RefusedRequest(412, token.id, "acme", f"acme/r{n}")) for n in range(500)
    ]
    assert due == [True] * 500  # nothing was written yet
    store.refused.write()
    assert len(store.all_refusals(1_000)) == 101  # the rest is counted without its repository
    assert sum(one.times for one in store.all_refusals(1_000)) == 500
    assert store.refused.count(RefusedRequest(412)) is False
    for turn in range(30):
        hand.time += 0.5
        known = RefusedRequest(412, token.id, "acme", f"acme/r{turn}-0")
        assert store.refused.count(known) is False
        hand.time += 0.5  # a second after the last write, to the moment
        for n in range(100):
            one = RefusedRequest(412, token.id, "acme", f"acme/r{turn}-{n}")
            assert store.refused.count(one) is True
        store.refused.write()
    rows = store.all_refusals(10_000)
    assert ROWS - 100 <= len([one for one in rows if one.org == "acme"]) <= ROWS
    assert rows[0].repo.startswith("acme/r29-")


def test_a_database_that_is_away_keeps_no_refusal_from_being_answered(
    tmp_path: Path, hand: ManualClock
) -> None:
    store = TeamStore(open_database(str(tmp_path / "team.sqlite3")), now=hand.now)
    kept = store.refused._database  # pyright: ignore[reportPrivateUsage]

    class Away:
        kind = "sqlite"

        def run(self, *given: object, **more: object) -> None:
            raise DatabaseAway("away")

    store.refused._database = Away()  # type: ignore[assignment]
    store.refused.count(RefusedRequest(401))
    store.refused.write()
    store.refused._database = kept
    store.refused.write()
    assert [one.times for one in store.all_refusals()] == [1]
    store.close()
