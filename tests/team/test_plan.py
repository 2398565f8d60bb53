"""What a sync decides, as properties: nothing is dropped, and a second round does nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import InvalidInput
from reverie.team import (
    BATCH_BYTES,
    BATCH_ENTRIES,
    EntryChange,
    RemoteState,
    SyncMode,
    batches,
    plan,
)
from reverie.team.protocol import check_repo

pytestmark = pytest.mark.spec("11.sync")
KEYS = st.sampled_from(["a", "b", "c"])
FOLDERS = st.dictionaries(KEYS, st.sampled_from(["1", "2", "3"]))
MODES = st.builds(SyncMode, merging=st.booleans(), deletions=st.booleans())


def after(
    here: dict[str, str], there: dict[str, str], known: dict[str, str], mode: SyncMode
) -> tuple[dict[str, str], dict[str, str]]:
    """Both sides after doing what the plan says; a merge is the two texts joined."""
    found = plan(here, known, RemoteState("t", there), mode)
    ours, theirs = dict(here), dict(there)
    for key in found.take:
        ours[key] = there[key]
    for key in found.merge:
        ours[key] = theirs[key] = f"{here[key]}+{there[key]}"
    for key in found.push:
        theirs[key] = ours[key]
    for key in found.remove:
        del ours[key]
    for key in found.delete:
        del theirs[key]
    return ours, theirs


@given(FOLDERS, FOLDERS, FOLDERS, MODES)
def test_both_sides_agree_after_one_round(
    here: dict[str, str], there: dict[str, str], known: dict[str, str], mode: SyncMode
) -> None:
    ours, theirs = after(here, there, known, mode)
    assert ours == theirs
    again = plan(ours, theirs, RemoteState("t", theirs), mode)
    assert again.is_done


@given(FOLDERS, FOLDERS, FOLDERS, MODES)
def test_no_text_is_lost_that_was_not_agreed_on_before(
    here: dict[str, str], there: dict[str, str], known: dict[str, str], mode: SyncMode
) -> None:
    """A local text that the server never had stays, goes up, is merged, or is kept as lost."""
    found = plan(here, known, RemoteState("t", there), mode)
    for key, text in here.items():
        if text in (known.get(key), there.get(key)):
            continue
        assert key in (*found.push, *found.merge, *found.lost)
    for key, text in there.items():
        if text not in (known.get(key), here.get(key)):
            assert key in (*found.take, *found.merge)


@given(FOLDERS, FOLDERS, FOLDERS)
def test_a_deletion_travels_only_where_both_agreed_to_it(
    here: dict[str, str], there: dict[str, str], known: dict[str, str]
) -> None:
    found = plan(here, known, RemoteState("t", there), SyncMode(deletions=False))
    assert not found.delete
    assert not found.remove
    gone = {key for key in there if key not in here and key in known}
    assert gone == set(found.returned)


def test_a_tombstone_removes_only_what_was_left_alone() -> None:
    dead = RemoteState("t", {}, {}, {"a": "1", "b": "1", "c": "1"})
    found = plan(
        {"a": "1", "b": "2", "c": "1"}, {"a": "1", "b": "1"}, dead, SyncMode(deletions=True)
    )
    assert found.remove == ["a", "c"]
    assert found.push == ["b"]


@given(st.lists(st.integers(0, BATCH_BYTES - 10), max_size=30))
def test_batches_keep_their_order_and_limits(sizes: list[int]) -> None:
    drafts = [EntryChange(f"{n:04}.md", "x" * size, "") for n, size in enumerate(sizes)]
    made = list(batches(drafts))
    assert [one for batch in made for one in batch] == drafts
    for batch in made:
        assert sum(one.size for one in batch) <= BATCH_BYTES
        assert len(batch) <= BATCH_ENTRIES


def test_an_index_that_both_changed_is_merged_and_any_other_file_is_the_servers() -> None:
    here, known = {"MEMORY.md": "ours", "a.md": "ours"}, {"MEMORY.md": "old", "a.md": "old"}
    found = plan(here, known, RemoteState("t", {"MEMORY.md": "theirs", "a.md": "theirs"}))
    assert (found.merge, found.take, found.lost) == (["MEMORY.md"], ["a.md"], ["a.md"])


def test_a_batch_may_be_full_to_the_last_byte() -> None:
    half = EntryChange("a.md", "x" * (BATCH_BYTES // 2 - 4), "")
    other = EntryChange("b.md", "x" * (BATCH_BYTES - half.size - 4), "")
    assert half.size + other.size == BATCH_BYTES
    assert list(batches([half, other])) == [[half, other]]
    assert list(batches([half, other, EntryChange("c", "", "")])) == [
        [half, other],
        [EntryChange("c", "", "")],
    ]


def test_a_name_that_is_no_repository_is_quoted_to_a_length() -> None:
    with pytest.raises(InvalidInput) as error:
        check_repo("a" * 500)
    assert error.value.where == repr("a" * 200)
