"""The judge of what a dream lost can fail: one other word, and it names the sentence."""

from __future__ import annotations

import json

import pytest

from bench.lost import losses

pytestmark = pytest.mark.spec("B6")


def folder(*bodies: str) -> dict[str, bytes]:
    head = "---\nname: A note\ndescription: about it\ntype: project\n---\n\n"
    return {f"n{n}.md": f"{head}{body}\n".encode() for n, body in enumerate(bodies)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Tomas approves releases and wants two days.",
            "Ines approves releases and wants two days.",
        ),
        ("The reader keeps its cache warm.", "The reader keeps its table warm."),
        ("A release takes two days.", "A release takes five days."),
        ("Builds run on Monday.", "Builds run on Friday."),
        ("Nobody may push to the branch.", "Anybody may push to the branch."),
        ("The limit is -5 degrees.", "The limit is 5 degrees."),
        ("Die Freigabe gibt Jonas am Montag.", "Die Freigabe gibt Petra am Montag."),
        ("Die Freigabe dauert zwei Tage.", "Die Freigabe dauert fünf Tage."),
        ("Der Dienst läuft montags im Keller.", "Der Dienst läuft montags im Speicher."),
        ("发布由王芳批准。", "发布由李雷批准。"),
        ("每周一发布。", "每周五发布。"),
    ],
)
def test_one_other_word_is_another_fact(one: str, other: str) -> None:
    assert [said.text for said in losses(folder(one, other), folder(other)).words] == [one]
    assert losses(folder(one, other), folder(f"{other}\n\n{one}")).words == []


def test_a_number_with_a_full_stop_inside_a_line_is_no_list_item() -> None:
    old = folder("It sets the cursor to row 0. The user loses their place (PR #12) then.")
    new = folder("It sets the cursor to row 0.\n\nThe user loses their place (PR #12) then.")
    assert losses(old, new).words == []
    assert [said.text for said in losses(old, folder("It sets the cursor to row 1.")).words] == [
        "It sets the cursor to row 0.",
        "The user loses their place (PR #12) then.",
    ]
    assert losses(folder("3. Clear the table."), folder("- Clear the table.")).words == []


def test_a_day_in_quotes_that_stays_is_not_lost() -> None:
    row = 'It fails on "last month" or "since January".'
    assert losses(folder(row), folder(row)).words == []
    assert len(losses(folder(row), folder('It fails on "last month" or "since May".')).words) == 1


def test_a_tombstone_counts_where_the_line_that_replaces_it_stands() -> None:
    old, new = "The release is on 3 March 2026.", "The release is on 9 March 2026."
    row = {"file": "n0.md", "reason": "superseded_by", "target": "n0.md", "fact": old, "by": new}
    account = f"```reasons\n{json.dumps(row)}\n```\n"
    found = losses(folder(old), folder(new), account)
    assert (found.words, found.tombstones) == ([], 1)
    assert len(losses(folder(old), folder("All is quiet."), account).words) == 1
    assert len(losses(folder(old), folder(new)).words) == 1
