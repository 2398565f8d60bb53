"""Facts: what a folder said that another state of it no longer says, and which reasons hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.consolidation import (
    DropReason,
    LostFact,
    RemovalReason,
    Tombstone,
    fact_verdict,
    facts_of,
    reasons_block,
    reasons_in,
)

pytestmark = pytest.mark.spec("B6")

HEAD = "---\nname: Deploys\ndescription: how deploys work\ntype: project\n---\n\n"
OLD = (
    HEAD + "# Deploys\n\nThe limit is 31 characters. Never deploy on Friday.\n\n"
    "- use `foo_bar` for Baz\n- the token of `api.example` lasts 90 days\n"
)
NOW = 1_790_000_000.0


def texts(found: tuple[LostFact, ...]) -> list[str]:
    return [one.text for one in found]


def gone(old: str, new: str, *reasons: RemovalReason, now: float = NOW) -> list[str]:
    after = {"a.md": new.encode()} if new else {}
    return texts(fact_verdict({"a.md": old.encode()}, after, reasons, now=now).lost)


def test_every_kind_of_passage_is_a_fact() -> None:
    text = OLD + "\n| limit | 5 |\n|---|---|\n\n```\nmake all\n```\n\n> quoted words here\n"
    found = {one.kind: one.text for one in facts_of(text)}
    assert found["row"] == "| limit | 5 |"
    assert found["code"] == "make all"
    assert found["heading"] == "Deploys"
    assert found["sentence"] == "quoted words here"
    assert found["value"] == "how deploys work"
    assert "project" not in [one.text for one in facts_of(text)]


@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("\n\n", "\n\n\n"),
        OLD.upper().replace("NAME:", "name:"),
        OLD.replace("The limit is 31 characters.", "The **limit** is\n31 characters."),
        OLD.replace("- use `foo_bar`", "* use _foo_bar_"),
        HEAD + "\n".join(sorted(OLD.removeprefix(HEAD).splitlines())),
    ],
    ids=["gaps", "case", "reflow", "marks", "order"],
)
def test_what_only_looks_different_is_kept(new: str) -> None:
    assert gone(OLD, new) == []


def test_facts_may_move_to_another_file() -> None:
    rest = {"b.md": OLD.encode(), "a.md": (HEAD + "Nothing.\n").encode()}
    assert fact_verdict({"a.md": OLD.encode()}, rest).lost == ()


def test_other_words_are_a_loss_however_alike() -> None:
    said = "Deployments never happen on a Friday."
    assert gone(OLD, OLD.replace("Never deploy on Friday.", said)) == ["Never deploy on Friday."]
    why = RemovalReason("merged_into", "a.md", "a.md", "Never deploy on Friday.")
    assert gone(OLD, OLD.replace("Never deploy on Friday.", said), why) != []
    longer = "All know: never deploy on Friday, Rosa says."
    assert gone(OLD, OLD.replace("Never deploy on Friday.", longer)) == []


TWINS = [
    ("Tomas approves releases of the reader.", "Ines approves releases of the reader."),
    ("Releases of the reader wait two days.", "Releases of the portal wait two days."),
    ("Releases of the reader wait two days.", "Releases of the reader wait five days."),
    ("The reader ships every Tuesday.", "The reader ships every Thursday."),
    ("Tomas gibt den Leser frei.", "Ines gibt den Leser frei."),
    ("Der Leser braucht zwei Tage.", "Das Portal braucht zwei Tage."),
    ("Der Leser braucht zwei Tage.", "Der Leser braucht fünf Tage."),
    ("Der Leser wird dienstags geliefert.", "Der Leser wird donnerstags geliefert."),
    ("王伟批准阅读器的发布。", "李娜批准阅读器的发布。"),
    ("阅读器的发布需要两天。", "门户的发布需要两天。"),
    ("阅读器的发布需要两天。", "阅读器的发布需要五天。"),
    ("阅读器每周二部署。", "阅读器每周四部署。"),
    ("The offset is -5 degrees.", "The offset is 5 degrees."),
    ("Ines reports to Tomas.", "Tomas reports to Ines."),
    ("Deploy on Friday.", "Never deploy on Friday."),
    ("Guests may upload files.", "Guests may upload files unless the quota is used up."),
    ("Der Leser ist freigegeben.", "Der Leser ist nicht freigegeben."),
]


@pytest.mark.parametrize(("one", "other"), TWINS)
@pytest.mark.parametrize("why", ["merged_into", "duplicate_of", "shortened"])
def test_a_near_twin_is_not_where_a_fact_went(one: str, other: str, why: DropReason) -> None:
    old = {"a.md": one.encode(), "b.md": other.encode()}
    new = {"b.md": old["b.md"]}
    assert texts(fact_verdict(old, new, [RemovalReason(why, "a.md", "b.md")]).lost) == [one]


def test_what_replaced_a_fact_is_told_with_it() -> None:
    new = OLD.replace("31", "40")
    said, by = "The limit is 31 characters.", "The limit is 40 characters."
    why = RemovalReason("contradicted_by", "a.md", "a.md", said, by)
    found = fact_verdict({"a.md": OLD.encode()}, {"a.md": new.encode()}, [why])
    assert found.lost == ()
    assert found.tombstones == (Tombstone("a.md", said, "contradicted_by", "a.md", by),)
    other = RemovalReason("contradicted_by", "a.md", "a.md", said, "The limit is 50 characters.")
    assert texts(fact_verdict({"a.md": OLD.encode()}, {"a.md": new.encode()}, [other]).lost) == [
        said
    ]


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("The limit is 31 characters.", "The limit is 40 characters."),
        ("Never deploy on Friday.", "Deploy on Friday."),
        ("use `foo_bar` for Baz", "use `foo_baz` for Baz"),
        ("the token of `api.example` lasts 90 days", ""),
    ],
)
def test_another_value_a_turned_meaning_or_a_hole_is_a_loss(said: str, instead: str) -> None:
    assert gone(OLD, OLD.replace(said, instead)) == [said]


BODY = "The gateway listens on port 8080 for guests.\n"
TITLED = "---\nname: {}\ndescription: {}\ntype: project\n---\n\n" + BODY


@pytest.mark.parametrize(
    ("name", "about", "kept"),
    [
        ("Gateway", "where the gateway listens", True),
        ("Yesterday", "on guests", True),
        ("Gateway", "guests reach the gateway on port 9090", False),
        ("Gateway of room 3", "where the gateway listens", False),
        ("Halvard", "about it", False),
    ],
)
def test_a_title_goes_where_a_file_has_its_ids_and_words(name: str, about: str, kept: bool) -> None:
    old = {"a.md": TITLED.format(name, about).encode(), "b.md": b"Something else.\n"}
    assert (fact_verdict(old, {"b.md": old["b.md"] + BODY.encode()}).lost == ()) is kept


def test_a_description_that_is_all_a_memory_says_is_a_fact() -> None:
    old = {"a.md": b"---\nname: Deploys\ndescription: Never deploy on Friday\n---\n"}
    said = [one.text for one in fact_verdict(old, {}).lost]
    assert said == ["Deploys", "Never deploy on Friday"]


def test_a_line_that_the_file_still_has_is_no_loss() -> None:
    """Whatever its words are worth alone: a rewritten file keeps what it did not touch."""
    index = "- [Yesterday](y.md) — yesterday\n- [A](a.md) — the ledger\n"
    files = {"y.md": b"Yesterday.\n", "a.md": b"The ledger is closed.\n"}
    made = index.replace("the ledger", "the ledger is closed") + "- [B](b.md) — yesterday\n"
    new = files | {"MEMORY.md": made.encode(), "b.md": b"Yesterday.\n"}
    assert fact_verdict(files | {"MEMORY.md": index.encode()}, new).lost == ()
    assert fact_verdict({"y.md": b"Yesterday.\n"}, {"b.md": b"So it was yesterday.\n"}).lost == ()


IDS = [
    ("Room 3 has the broken projector.", "Room 5 has the broken projector."),
    ("Crane one lifts 40 tonnes.", "Crane two lifts 60 tonnes."),
    ("Customer Adler pays by invoice.", "Customer Borg pays by invoice."),
    ("The third shift begins at noon.", "The second shift begins at noon."),
    ("Release 2.3 needs the old driver.", "Release 2.4 needs the old driver."),
    ("Raum 3 hat den kaputten Beamer.", "Raum 5 hat den kaputten Beamer."),
    ("Kran zwei hebt 40 Tonnen Stahl.", "Kran drei hebt 40 Tonnen Stahl."),
    ("会议室3的投影仪坏了。", "会议室5的投影仪坏了。"),
    ("El servidor 12 aloja la wiki.", "El servidor 14 aloja la wiki."),
]


@pytest.mark.parametrize(("one", "other"), IDS)
@pytest.mark.parametrize("why", ["superseded_by", "contradicted_by", "duplicate_of"])
def test_another_id_beside_a_noun_is_another_thing(one: str, other: str, why: DropReason) -> None:
    old = {"a.md": one.encode(), "b.md": other.encode()}
    reason = RemovalReason(why, "a.md", "b.md", one, other)
    assert texts(fact_verdict(old, {"b.md": old["b.md"]}, [reason]).lost) == [one]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The build runs on Python 3.11.", "The build runs on Python 3.12."),
        ("Rosa Delgado signs the ledger.", "Pavel Novák signs the ledger."),
        ("Crane one lifts 40 tonnes.", "Crane one lifts 45 tonnes since May."),
    ],
)
def test_a_value_that_changed_may_be_superseded(one: str, other: str) -> None:
    old = {"a.md": one.encode(), "b.md": other.encode()}
    reason = RemovalReason("superseded_by", "a.md", "b.md", one, other)
    assert fact_verdict(old, {"b.md": old["b.md"]}, [reason]).lost == ()


REWORDED = [
    ("Run `make check` before every commit.", "Before each commit, run `make check`.", True),
    (
        "The release bot ships every Friday at 17:00 from branch `stable`.",
        "Every Friday at 17:00 the release bot ships from `stable`.",
        True,
    ),
    ("Deploys happen from stable on Fridays.", "We deploy from stable on Fridays.", True),
    ("The ledger is closed by Rosa at 18:00.", "Rosa closes the ledger at 18:00.", True),
    ("Vor jedem Commit läuft `make check`.", "`make check` läuft vor jedem Commit.", True),
    ("Run `make check` before every commit.", "Run `make test` before every commit.", False),
    ("The bot ships every Friday.", "The bot ships every Thursday.", False),
    ("The ledger closes at 18:00.", "The ledger never closes at 18:00.", False),
    ("Tabs are for indentation.", "The printer is on floor 3.", False),
]


@pytest.mark.parametrize(("one", "other", "same"), REWORDED)
def test_the_same_in_other_words_is_checked_both_ways(one: str, other: str, same: bool) -> None:
    old = {"a.md": one.encode(), "b.md": other.encode()}
    reason = RemovalReason("duplicate_of", "a.md", "b.md", one, other)
    found = fact_verdict(old, {"b.md": old["b.md"]}, [reason])
    assert (found.lost == ()) is same
    assert [grave.by for grave in found.tombstones] == ([other] if same else [])


@pytest.mark.parametrize(
    ("said", "goes"),
    [
        ("I'm currently debugging the login flow; tests are still failing.", True),
        ("To fix this import error, delete the cache. It went away.", True),
        ("Jonas is lazy.", True),
        ("The ledger closes at 18:00 on workdays.", False),
        ("Never deploy on Friday.", False),
    ],
)
def test_never_kept_holds_only_for_what_reads_like_it(said: str, goes: bool) -> None:
    old = {"a.md": f"{HEAD}{said}\n".encode()}
    assert (fact_verdict(old, {}, [RemovalReason("never_kept", "a.md")]).lost == ()) is goes


def test_a_date_written_out_is_no_loss_and_one_left_out_is() -> None:
    old = HEAD + "Rosa met the auditors last Monday about 12 items.\n"
    assert gone(old, old.replace("last Monday", "on 2026-03-02")) == []
    assert gone(old, old.replace("last Monday ", "")) != []


def test_everything_gone_is_everything_lost() -> None:
    assert len(gone(OLD, "")) == len(facts_of(OLD))
    claimed = RemovalReason("merged_into", "a.md", "nowhere.md")
    assert len(gone(OLD, "", claimed)) == len(facts_of(OLD))


def test_a_reason_must_name_a_file_that_says_something_like_it() -> None:
    old = {"a.md": OLD.encode(), "b.md": (HEAD + "Lunch is at noon.\n").encode()}
    new = {"b.md": old["b.md"]}
    for why in ("merged_into", "duplicate_of", "superseded_by", "contradicted_by"):
        left = fact_verdict(old, new, [RemovalReason(why, "a.md", "b.md")]).lost
        assert "The limit is 31 characters." in texts(left), why
        told = "nothing like it" if why.endswith("ed_by") else "words do not stand"
        assert any(told in one.note for one in left)


def test_merged_needs_every_number_and_name() -> None:
    old = {"a.md": b"Questions go to Pavel, extension 4802, before noon.\n"}
    almost = {"b.md": b"Questions go to Pavel, extension 4811, before noon.\n"}
    assert fact_verdict(old, almost, [RemovalReason("merged_into", "a.md", "b.md")]).lost
    other = {"b.md": b"Rosa: *questions* go to Pavel,\nextension 4802, before noon. Not later.\n"}
    assert fact_verdict(old, other, [RemovalReason("merged_into", "a.md", "b.md")]).lost == ()


def test_contradicted_needs_the_subject_with_another_value() -> None:
    new = OLD.replace("The limit is 31 characters.", "The limit is 40 characters.")
    said = "The limit is 31 characters."
    assert gone(OLD, new, RemovalReason("contradicted_by", "a.md", "a.md", said)) == []
    other = RemovalReason("contradicted_by", "a.md", "a.md", "Never deploy on Friday.")
    assert gone(OLD, new, other) == [said]


def test_expired_needs_a_date_that_has_passed() -> None:
    old = HEAD + "The freeze ends on 2026-01-05.\n"
    why = RemovalReason("expired", "a.md")
    assert gone(old, HEAD + "x\n", why) == []
    assert gone(old, HEAD + "x\n", why, now=1_700_000_000.0) != []
    assert gone(OLD, HEAD + "x\n", why) != []


def test_a_pointer_may_go_only_where_it_led_nowhere() -> None:
    index = b"- [A](a.md) \xe2\x80\x94 the secret handshake of 1912\n"
    why = RemovalReason("pointer", "MEMORY.md")
    assert fact_verdict({"MEMORY.md": index}, {"MEMORY.md": b""}, [why]).lost == ()
    files = {"MEMORY.md": index, "a.md": b"Something else.\n"}
    left = fact_verdict(files, {"MEMORY.md": b"", "a.md": files["a.md"]}, [why]).lost
    assert texts(left) == ["A — the secret handshake of 1912"]


def test_chinese_facts_are_compared_too() -> None:
    old = "限制是三十一个字符。周五不要部署。\n"
    assert gone(old, "周五不要部署。限制是三十一个字符。\n") == []
    assert gone(old, "限制是三十一个字符。\n") == ["周五不要部署。"]


def test_reasons_pass_through_text() -> None:
    every = (
        RemovalReason("merged_into", "a.md", "b.md"),
        RemovalReason("contradicted_by", "c.md", "d.md", 'the "limit" is\n```31'),
    )
    text = f"orient: done\n\n{reasons_block(every)}\n"
    assert reasons_in(text) == every
    assert reasons_in('```reasons\nnot json\n{}\n[]\n{"file": 3, "reason": "expired"}\n```') == ()
    assert reasons_in('```reasons\n{"file": "a.md", "reason": "bored"}\n```') == ()


@given(st.text(max_size=400), st.text(max_size=200))
def test_any_text_is_compared_and_the_same_text_loses_nothing(text: str, other: str) -> None:
    data = text.encode("utf-8", "replace")
    assert fact_verdict({"a.md": data}, {"b.md": data}).lost == ()
    fact_verdict({"a.md": data, "MEMORY.md": data}, {"a.md": other.encode("utf-8", "replace")})
