"""Backups: whole, between both kinds of database, and tags that never mean two states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.errors import InvalidInput
from reverie.team import (
    BEGINNING,
    KIND,
    STEPS,
    Database,
    HttpRefusal,
    TeamStore,
    open_database,
    read_backup,
    write_backup,
)
from reverie.testing import ManualClock

from .conftest import HERE, draft

pytestmark = pytest.mark.spec("11.backup")


def filled(store: TeamStore) -> tuple[str, str]:
    text, token = store.create_token(org="acme", repo="acme/reader", author="ines")
    tag = store.put(HERE, [draft("a.md", "one — ü")], BEGINNING, token)
    tag = store.put(HERE, [draft("a.md", "two")], tag, token)
    return text, tag


def test_everything_comes_back_and_old_tags_do_not_fit(
    store: TeamStore, tmp_path: Path, hand: ManualClock
) -> None:
    text, tag = filled(store)
    file = tmp_path / "backup.jsonl"
    count = write_backup(store.database, file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert text.split("_", 2)[2] not in file.read_text("utf-8")
    other = TeamStore(open_database(str(tmp_path / "other.sqlite3")), now=hand.now)
    assert read_backup(other.database, file) == count
    assert other.contents(HERE).contents == {"a.md": "two"}
    assert other.version(HERE, "a.md", 1) == "one — ü"
    found = other.token(text)
    assert found is not None
    assert found.author == "ines"
    with pytest.raises(HttpRefusal) as error:
        other.put(HERE, [draft("a.md", "x")], tag, found)
    assert error.value.status == 412
    with pytest.raises(InvalidInput, match="not empty"):
        read_backup(other.database, file)
    with pytest.raises(InvalidInput, match="written"):
        write_backup(store.database, file)
    other.close()


@pytest.mark.parametrize("damage", ["torn", "short", "other", "table", "empty"])
def test_a_backup_that_is_not_whole_changes_nothing(
    database: Database, tmp_path: Path, hand: ManualClock, damage: str
) -> None:
    source = TeamStore(open_database(str(tmp_path / "source.sqlite3")), now=hand.now)
    filled(source)
    file = tmp_path / "backup.jsonl"
    write_backup(source.database, file)
    source.close()
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text(
        {
            "torn": "".join(lines)[:-30],
            "short": "".join(lines[:-2]),
            "other": '{"kind": "x"}\n',
            "table": lines[0] + '["migrations", 7]\n{"rows": 1}\n',
            "empty": "",
        }[damage],
        "utf-8",
    )
    store = TeamStore(database, now=hand.now)
    with pytest.raises(InvalidInput):
        read_backup(store.database, file)
    assert store.contents(HERE).tag == BEGINNING
    assert store.list_tokens() == []


def test_a_backup_of_an_older_version_is_taken_and_of_a_newer_one_not(
    database: Database, tmp_path: Path, hand: ManualClock
) -> None:
    file = tmp_path / "backup.jsonl"
    store = TeamStore(database, now=hand.now)
    for steps in (0, len(STEPS) + 1, 1):
        file.write_text(
            json.dumps({"kind": KIND, "steps": steps})
            + '\n["repositories", "acme", "acme/reader", "x", 7, 0, 0]\n{"rows": 1}\n'
        )
        if steps != 1:
            with pytest.raises(InvalidInput):
                read_backup(store.database, file)
    assert read_backup(store.database, file) == 1
    assert store.tag(HERE).endswith('-7"')
