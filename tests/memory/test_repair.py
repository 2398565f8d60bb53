"""Repairs of a memory folder: what they leave, what they never lose, and that they end."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reverie.memory.facts import Reason, lost
from reverie.memory.format import index as indexes
from reverie.memory.format.entry import TopicFile, new
from reverie.memory.hygiene.check import CheckInput, check
from reverie.memory.repair.edits import Repaired
from reverie.memory.repair.merging import merged
from reverie.memory.repair.repair import kept, repaired
from tests.conftest import Scale

from .test_facts import TWINS
from .test_hygiene import DAY, NOW, THEN, folder, topic

pytestmark = pytest.mark.spec("B6")


def mended(files: dict[str, bytes], times: dict[str, float] | None = None) -> dict[str, bytes]:
    """The folder after a repair, which loses nothing and changes nothing a second time."""
    look = CheckInput(files, dict.fromkeys(files, THEN) | (times or {}), NOW)
    done = repaired(look)
    after = dict(kept(look, done))
    assert lost(files, after, done.reasons, now=NOW) == ()
    again = repaired(replace(look, files=after))
    assert again == Repaired({}), again
    later = replace(look, files=after, times=dict.fromkeys(after, NOW))
    assert repaired(later).files == {}
    return after


def test_a_folder_in_order_stays_as_it_is() -> None:
    files = folder()
    assert mended(files) == files


def test_duplicates_become_one_with_the_facts_of_both() -> None:
    one = (
        "The release bot ships every Friday at 17:00 from branch `stable`. "
        "Rosa Delgado approves each build before the bot uploads it."
    )
    other = (
        "Every Friday at 17:00 the release bot ships from the `stable` branch; "
        "each build is approved by Rosa Delgado before upload.\n\n"
        "- Rollbacks take 12 minutes."
    )
    files = folder(
        {"release.md": one, "shipping.md": other, "x.md": "See [it](shipping.md) first."}
    )
    after = mended(files, {"shipping.md": THEN + DAY})
    assert "shipping.md" not in after
    text = after["release.md"].decode()
    assert one in text
    assert "Rollbacks take 12 minutes." in text
    assert "Every Friday at 17:00 the release bot ships from" in text  # other words stay
    assert text.count("Rosa Delgado") == 2
    assert "(release.md)" in after["x.md"].decode()
    assert b"shipping.md" not in after["MEMORY.md"]


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("Uploads are taken by the Zurich gateway on week…", ""),
        ("Pavel keeps the spare badge in dra...", "Pavel keeps the spare badge in dra\n"),
    ],
)
def test_a_cut_name_is_not_carried_into_a_merged_file(name: str, left: str) -> None:
    """Only where nothing else says it are its words kept."""
    one = "The release bot ships every Friday at 17:00 from branch `stable`."
    other = f"{one} On weekends the gateway in Zurich takes the uploads instead."
    files = {
        "release.md": topic("release.md", one),
        "shipping.md": new(
            "shipping.md", name=name, description=name, type="project", body=other
        ).data,
    }
    made = merged("release.md", files["release.md"].decode(), files["shipping.md"].decode())
    assert "On weekends the gateway in Zurich" in made
    assert name not in made
    assert left in made
    reason = Reason("merged_into", "shipping.md", "release.md")
    assert lost(files, {"release.md": made.encode()}, [reason], now=NOW) == ()


_SHARED = (
    "The build farm stands in Oslo and has 40 machines.\n\nPavel Novak keeps its keys.\n\n"
    "Backups of the farm run at 03:00 every night.\n\nA fire drill is held there in May.\n\n"
)


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_a_merge_keeps_near_twins_apart(one: str, other: str) -> None:
    """Files that are duplicates but for one fact each: both facts stand in what is left."""
    made = merged(
        "a.md",
        topic("a.md", _SHARED + one).decode(),
        topic("b.md", f"{_SHARED}{other}").decode(),
    )
    rows = [row.removeprefix("- ") for row in made.splitlines()]
    assert one in rows
    assert other in rows
    assert made.count("40 machines") == 1


def test_what_stands_at_odds_in_twins_is_not_made_one_file() -> None:
    one, other = (f"{_SHARED}{who} approves every build at noon." for who in ("Tomas", "Ines"))
    files = folder({"a.md": one, "b.md": other})
    assert mended(files, {"b.md": THEN + DAY}) == files


def test_a_merge_puts_what_is_new_under_its_heading_and_renews_the_description() -> None:
    base = new(
        "a.md",
        name="farm",
        description="notes",
        type="project",
        body=f"## Where\n\n{_SHARED}## Who\n\nRosa runs it.",
    )
    fresh = new(
        "b.md",
        name="farm",
        description="The farm moves in 2027",
        type="project",
        body=f"## Where\n\n{_SHARED}It moves in 2027.",
    )
    made = TopicFile("a.md", merged("a.md", base.text, fresh.text).encode())
    assert made.description == "The farm moves in 2027"
    assert made.body.index("It moves in 2027.") < made.body.index("## Who")
    assert made.body.count("## Where") == 1


def test_code_and_tables_of_a_duplicate_move_whole() -> None:
    one = "The release bot ships every Friday at 17:00 from branch `stable` for Rosa Delgado."
    other = f"{one}\n\n```sh\nbot ship --now\n```\n\n| step | who |\n|---|---|\n| sign | Pavel |"
    files = folder({"release.md": one, "shipping.md": other})
    text = mended(files, {"shipping.md": THEN + DAY})["release.md"].decode()
    assert "```sh\nbot ship --now\n```" in text
    assert "| step | who |\n|---|---|\n| sign | Pavel |" in text


def test_the_newer_statement_takes_the_place_of_the_older() -> None:
    old = "Uploads are limited to 25 megabytes for guests."
    new = f"{old.replace('25', '40')} The proxy in Oslo cuts off longer ones with status 413."
    body = f"Guests are people without an account. {old} They cannot delete."
    files = folder({"uploads.md": body, "limits.md": new})
    after = mended(files, {"limits.md": THEN + 40 * DAY})
    text = after["uploads.md"].decode()
    assert "Guests are people without an account. Uploads are limited to 40 megabytes" in text
    assert "25 megabytes" not in text
    look = CheckInput(files, {"uploads.md": THEN, "limits.md": THEN + 40 * DAY}, NOW)
    edits = [one for one in repaired(look).edits if one.why == "contradicted_by"]
    assert (edits[0].file, edits[0].before, edits[0].target) == ("uploads.md", old, "limits.md")


def test_a_contradicted_description_takes_its_pointer_with_it() -> None:
    old = "Uploads are limited to 25 megabytes for guests."
    entry = TopicFile("uploads.md", topic("uploads.md", "More on this later on."))
    data = entry.with_value(old, "description").data
    files = folder({"limits.md": old.replace("25", "40")}) | {"uploads.md": data}
    files["MEMORY.md"] += f"- [uploads](uploads.md) — {old}\n".encode()
    after = mended(files, {"limits.md": THEN + 40 * DAY})
    assert TopicFile("uploads.md", after["uploads.md"]).description == old.replace("25", "40")
    assert b"25 megabytes" not in after["MEMORY.md"]


def test_dates_are_written_out_from_the_files_own_time() -> None:
    files = folder({"x.md": "Rosa moved the ledger yesterday, and the audit is due by 2026-04-05."})
    text = mended(files)["x.md"].decode()
    assert "moved the ledger on 2026-03-03, and" in text
    assert "due by 2026-04-05 (passed)." in text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Yesterday Rosa moved the ledger.", "On 2026-03-03 Rosa moved the ledger."),
        ("Last week Rosa moved the ledger.", "In the week of 2026-02-23 Rosa moved the ledger."),
        ("The ledger is Rosa's since yesterday.", "The ledger is Rosa's since 2026-03-03."),
        ("Rosa moved yesterday's ledger.", "Rosa moved 2026-03-03's ledger."),
    ],
)
def test_a_date_that_is_written_out_fits_its_sentence(said: str, told: str) -> None:
    assert told in mended(folder({"x.md": said}))["x.md"].decode()


def test_without_a_time_nothing_is_made_up() -> None:
    files = folder({"x.md": "Rosa moved the ledger yesterday."})
    assert repaired(CheckInput(files, {}, NOW)).files == {}


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
    index = indexes.parse(after["MEMORY.md"])
    own = [key for key in after if key != "MEMORY.md"]
    assert indexes.check(index, own) == ()
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
    assert b"was rebuilt on 2026-03-03 by Pavel (2026-03-04)" in after["deploys.md"]
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
    files = folder({"x.md": "Rosa moved the ledger yesterday.\nIt took an hour."})
    files["x.md"] = files["x.md"].replace(b"\n", b"\r\n")
    after = mended(files)
    assert after["x.md"] == files["x.md"].replace(b"yesterday", b"on 2026-03-03")


def test_a_huge_index_becomes_a_topic_a_section(scale: Scale) -> None:
    """1 MB at proof scale."""
    count = scale.pick(60, 1_200)
    rows = ["# Memory", ""]
    for section in range(10):
        rows += [f"## Part {section}", ""]
        rows += [f"- Fact {section}-{n} of hall {n * 7} is kept by Rosa {n}." for n in range(count)]
        rows.append("")
    files = {"MEMORY.md": "\n".join(rows).encode() * 1}
    done = repaired(CheckInput(files, {}, NOW))
    after = kept(CheckInput(files, {}, NOW), done)
    assert len(after) == 11
    assert lost(files, after, done.reasons, now=NOW) == ()
    assert repaired(CheckInput(after, {}, NOW)).files == {}


_WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "Rosa Pavel ledger limit 25 40 not never is are yesterday by 2026-04-05 the of guests "
        "uploads `api_key` allowed - # | . : [x](y.md) deadline",
    )
)


@example({"a": ["yesterday"]})
@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(_WORDS, max_size=30), max_size=5))
def test_no_folder_is_mended_forever_or_loses_a_fact(given_words: dict[str, list[str]]) -> None:
    files = {f"{key}.md": " ".join(words).encode() for key, words in given_words.items()}
    times = {key: THEN + n * DAY for n, key in enumerate(sorted(files))}
    look = CheckInput(files, times, NOW)
    done = repaired(look)
    after = kept(look, done)
    assert lost(files, after, done.reasons, now=NOW) == ()
    assert repaired(replace(look, files=after)).files == {}
    assert check(replace(look, files=after)).score >= 0
