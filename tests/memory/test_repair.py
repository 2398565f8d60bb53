"""Repairs of a memory folder: what they leave, what they never lose, and that they end."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reverie.consolidation import (
    CheckInput,
    FixResult,
    check,
    fact_verdict,
    files_after,
    fix_folder,
)
from reverie.topics import TopicFile, parse_index
from reverie.topics import check as indexes_check
from tests.conftest import Scale

from .test_facts import TWINS
from .test_hygiene import DAY, NOW, THEN, folder, topic

pytestmark = pytest.mark.spec("B6")


def mended(files: dict[str, bytes], times: dict[str, float] | None = None) -> dict[str, bytes]:
    """The folder after a repair, which loses nothing and changes nothing a second time."""
    look = CheckInput(files, dict.fromkeys(files, THEN) | (times or {}), NOW)
    done = fix_folder(look)
    after = dict(files_after(look, done))
    assert fact_verdict(files, after, done.reasons, now=NOW).lost == ()
    again = fix_folder(replace(look, files=after))
    assert again == FixResult({}), again
    later = replace(look, files=after, times=dict.fromkeys(after, NOW))
    assert fix_folder(later).files == {}
    return after


def test_a_folder_in_order_stays_as_it_is() -> None:
    files = folder()
    assert mended(files) == files


_BUILD = "The release bot ships every Friday at 17:00 from branch `stable`. Rosa approves it."


def test_equal_files_become_one_and_links_follow() -> None:
    files = folder({"release.md": _BUILD, "x.md": "See [it](shipping.md) first."})
    files["shipping.md"] = files["release.md"].replace(b"bot ships", b"Bot ships")
    files["MEMORY.md"] += b"- [release](shipping.md)\n"
    after = mended(files, {"shipping.md": THEN + DAY})
    assert "shipping.md" not in after
    assert after["release.md"] == files["release.md"]
    assert "(release.md)" in after["x.md"].decode()
    assert b"shipping.md" not in after["MEMORY.md"]


_SHARED = (
    "The build farm stands in Oslo and has 40 machines.\n\nPavel Novak keeps its keys.\n\n"
    "Backups of the farm run at 03:00 every night.\n\nA fire drill is held there in May.\n\n"
)
_OLD = "Uploads are limited to 25 megabytes for guests."
_LEFT = {
    "a paraphrase": (_BUILD, "Each Friday at 17:00 the bot ships `stable`; Rosa approves each."),
    "one fact more": (_BUILD, f"{_BUILD} Rollbacks take 12 minutes."),
    "code": (_BUILD, f"{_BUILD}\n\n```sh\nbot ship --now\n```"),
    "a name": tuple(f"{_SHARED}{who} approves every build at noon." for who in ("Tomas", "Ines")),
    "a value": (_OLD, f"{_OLD.replace('25', '40')} The proxy in Oslo cuts off longer ones."),
    "dates": ("Rosa moved the ledger yesterday, and the audit is due by 2026-04-05.", "TBD"),
    "a moved date": ("Last week Rosa moved the ledger.", "Tomorrow Rosa moves the ledger."),
}


@pytest.mark.parametrize(("one", "other"), [*_LEFT.values(), *TWINS], ids=str)
def test_what_is_not_equal_stays_as_it_lies(one: str, other: str) -> None:
    """What looks like a duplicate, a contradiction, a stale date or junk is for a person."""
    for texts in ((one, other), (_SHARED + one, _SHARED + other)):
        files = folder({"a.md": texts[0], "b.md": texts[1]})
        assert mended(files, {"b.md": THEN + 40 * DAY}) == files


def test_without_a_time_nothing_is_made_up() -> None:
    files = folder({"x.md": "Rosa moved the ledger yesterday."})
    assert fix_folder(CheckInput(files, {}, NOW)).files == {}


def test_the_index_is_mended() -> None:
    files = folder()
    files["sub/moved.md"] = topic("moved.md", "The printer is on floor 3 next to the stairs.")
    detail = "Mei-Ling Chou keeps the list of its 568 open points " + "sorted by age " * 9
    files["MEMORY.md"] = (
        "# Memory\n\n- [deploys](deploys.md)\n- [deploys](deploys.md)\n"
        "- [x](x.md) — gone since May\n"
        f"- [people](people.md) — {detail}\n- [moved](moved.md) — printers\n"
        "The ledger closes at 18:00 on workdays.\n\n"
        "## Rules (2026-02-01)\n\nWe agreed on these:\n\n- Rosa owns the ledger.\n"
        "- Pavel keeps the badge.\n\n### Later\n\n| who | what |\n|---|---|\n| Mei | mail |\n"
    ).encode()
    after = mended(files)
    assert b"The ledger closes at 18:00 on workdays.\n" in after["MEMORY.md"]  # prose is left alone
    index = parse_index(after["MEMORY.md"])
    own = [key for key in after if key != "MEMORY.md"]
    assert indexes_check(index, own) == ()
    assert after["MEMORY.md"].startswith(b"# Memory\n\n")
    assert b"568 open points" in after["people.md"]
    (made,) = [key for key in own if b"Rosa owns the ledger." in after[key]]
    entry = TopicFile(made, after[made])
    assert (entry.name, entry.type) == ("Rules (2026-02-01)", "project")
    assert entry.body == (
        "# Rules (2026-02-01)\n\nWe agreed on these:\n\n- Rosa owns the ledger.\n"
        "- Pavel keeps the badge.\n\n### Later\n\n| who | what |\n|---|---|\n| Mei | mail |\n"
    )
    assert b"Rules (2026-02-01)](" in after["MEMORY.md"]
    assert b"## Rules" not in after["MEMORY.md"]
    assert index.find("sub/moved.md") is not None


def test_daily_logs_are_distilled_into_topics_and_never_changed() -> None:
    log = (
        "# 2026-03-04\n\n"
        "- 09:15 The staging cluster in Frankfurt was rebuilt yesterday by Pavel\n"
        "- 10:00 The user prefers tabs over spaces in Go code\n"
        "- 11:30 I'm working on the parser right now\n"
        "- 12:00 token ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A" + " for the CI\n"
    ).encode()
    key = "logs/2026/03/2026-03-04.md"
    after = mended({**folder(), key: log})
    assert after[key] == log
    assert b"was rebuilt yesterday by Pavel (2026-03-04)" in after["deploys.md"]
    (fresh,) = [one for one in after if one not in {**folder(), key: b""}]
    assert "The user prefers tabs over spaces in Go code (2026-03-04)" in after[fresh].decode()
    assert fresh.encode() in after["MEMORY.md"]
    every = b"".join(data for name, data in after.items() if name != key)
    assert b"working on the parser" not in every
    assert b"ghp_" not in every


def test_what_needs_a_person_is_left() -> None:
    files = folder({"junk.md": "TBD", "a.md": "See [gone](gone.md) for the list of all regions."})
    assert mended(files) == files


def test_files_that_are_no_plain_text_are_left() -> None:
    files = folder()
    files["x.md"] = topic("x.md", "Rosa moved the ledger yesterday.") + b"\xff\n"
    files["MEMORY.md"] += b"- [x](x.md)\n"
    assert mended(files) == files


def test_crlf_files_keep_their_line_ends() -> None:
    files = folder({"x.md": "Rosa moved the ledger home.\nSee [deploys](sub/deploys.md)."})
    files["x.md"] = files["x.md"].replace(b"\n", b"\r\n")
    after = mended(files)
    assert after["x.md"] == files["x.md"].replace(b"sub/deploys.md", b"deploys.md")


def test_a_huge_index_becomes_a_topic_a_section(scale: Scale) -> None:
    """1 MB at proof scale."""
    count = scale.pick(60, 1_200)
    rows = ["# Memory", ""]
    for section in range(10):
        rows += [f"## Part {section}", ""]
        rows += [f"- Fact {section}-{n} of hall {n * 7} is kept by Rosa {n}." for n in range(count)]
        rows.append("")
    files = {"MEMORY.md": "\n".join(rows).encode() * 1}
    done = fix_folder(CheckInput(files, {}, NOW))
    after = files_after(CheckInput(files, {}, NOW), done)
    assert len(after) == 11
    assert fact_verdict(files, after, done.reasons, now=NOW).lost == ()
    assert fix_folder(CheckInput(after, {}, NOW)).files == {}


_WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "Rosa Pavel ledger limit 25 40 not never is are yesterday by 2026-04-05 the of guests "
        "uploads `api_key` allowed - # | . : [x](y.md) deadline",
    )
)


@example({"a": ["yesterday"]})
@example({"a": ["yesterday"], "b": ["yesterday"]})
@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(_WORDS, max_size=30), max_size=5))
def test_no_folder_is_mended_forever_or_loses_a_fact(given_words: dict[str, list[str]]) -> None:
    files = {f"{key}.md": " ".join(words).encode() for key, words in given_words.items()}
    times = {key: THEN + n * DAY for n, key in enumerate(sorted(files))}
    look = CheckInput(files, times, NOW)
    done = fix_folder(look)
    after = files_after(look, done)
    assert fact_verdict(files, after, done.reasons, now=NOW).lost == ()
    assert fix_folder(replace(look, files=after)).files == {}
    assert check(replace(look, files=after)).score >= 0
