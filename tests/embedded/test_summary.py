"""The embedded model's summaries: nine sections, quoted, within the budget, read back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.embedded import (
    HEADINGS,
    NONE,
    SummaryBuilder,
    UserQuote,
    answer_summary,
    largest_share,
    shorten_words,
    user_lines,
    user_words,
    work,
)
from reverie.layers import read
from reverie.layers import stand as layer_stand
from reverie.transcript import (
    REFERENCE,
    Replaced,
    Stand,
    SummaryTask,
    audit_replacement,
    blocks_of,
    estimate,
    parts,
    reference,
)
from tests.embedded.conversations import INSTRUCTION, Talk, coding
from tests.transcript.histories import build, histories

pytestmark = [pytest.mark.spec("B1"), pytest.mark.spec("6")]


def summarised(talk: Talk, **given: object) -> str:
    task = SummaryTask(**{"tokens": 4_000, **given})  # pyright: ignore[reportArgumentType]
    (block,) = answer_summary(talk.asked(task))
    return block.get("text")


def section(text: str, number: int) -> str:
    start = text.index(HEADINGS[number - 1]) + len(HEADINGS[number - 1])
    end = text.find("\n## ", start)
    return text[start : end if end >= 0 else len(text)]


def test_it_is_a_summary_that_the_layer_takes():
    talk = coding()
    text = summarised(talk)
    assert text.startswith("<analysis>")
    inside = read(text, 100_000)
    assert [line for line in inside.splitlines() if line.startswith("## ")] == list(HEADINGS)
    assert summarised(talk) == text


def test_each_section_says_what_was_said_and_done():
    talk = coding()
    text = summarised(talk)
    assert "> Make parse_header in /home/user/app/frames.py strict. Never touch" in section(text, 6)
    files = section(text, 3)
    assert "/home/user/app/frames.py (edited 1×, read 1×: I look at the parser first.)" in files
    assert "`pytest -x` 2×" in files
    errors = section(text, 4)
    assert "ValueError: bad prefix 7" in errors
    assert "after changing frames.py it went well" in errors
    assert "[pending] Write the release notes" in section(text, 7)
    assert "Make the parser strict" not in section(text, 7)
    assert "The parser is strict now" in section(text, 8)
    assert "Write the release notes" in section(text, 9)
    assert "decode_prefix" in text
    assert "checked_prefix" in text


def test_the_state_has_the_first_sentence_of_each_answer_the_newest_first():
    talk = coding()
    talk.say("## Findings\n\nFound it! The cache on the edge was stale. It had been for a week.")
    talk.user("And now?")
    talk.say("```python\nx = 1\n```")
    talk.say("Now the cache is emptied on each deploy! More words follow here.")
    talk.user("Good.")
    talk.say("The last words of all.")
    state = section(summarised(talk), 8)
    stale = state.index("- Found it! The cache on the edge was stale.\n")
    assert state.index("- Now the cache is emptied on each deploy!\n") < stale
    assert "for a week" not in state
    assert "More words" not in state
    assert "x = 1" not in state
    assert "Said last: The last words of all." in state


def test_an_error_that_was_not_mended_stands_in_the_state():
    talk = coding()
    assert "Last error" not in section(summarised(talk), 8)
    talk.call("Bash", "E   KeyError: 'frame'\n1 failed\nexit code 1", command="pytest tests/new")
    state = section(summarised(talk), 8)
    assert "Last error, not mended: E KeyError: 'frame'" in state


def sum_up(talk: Talk, words: str) -> None:
    """Put a summary in the place of all that was said, and go on."""
    first = read(summarised(talk), 100_000)
    stand = layer_stand(first, where="", gone=(), left_out="", keep="", goes_on=True)
    items = talk.view.items
    by = (Stand("user", blocks_of(stand)),)
    talk.put(Replaced(items[0].id, items[len(items) - 1].id, by, "compaction"))
    talk.user(words)
    talk.say("I go on. " * 400)


def test_a_second_summary_carries_the_state_of_the_first():
    talk = coding()
    talk.say("The cache on the edge was stale. It had been for a week.")
    talk.user("Good.")
    talk.say("It is emptied on each deploy from now on.")
    sum_up(talk, "Go on.")
    state = section(summarised(talk), 8)
    assert state.count("- The cache on the edge was stale.") == 1
    assert "  - It is emptied on each deploy from now on.\n" in state
    assert state.count("Said before that") == 1
    assert "Said last: It is" not in state


def test_calls_can_be_read_back_by_their_references():
    talk = coding()
    named = set(REFERENCE.findall(summarised(talk)))
    assert {reference(f"call_{n}") for n in range(1, talk.calls + 1)} <= named


def test_the_instruction_of_the_fork_is_no_part_of_it():
    text = summarised(coding())
    assert INSTRUCTION not in text
    assert "quote_this_instruction" not in text


def test_only_the_range_is_summarised():
    talk = Talk()
    talk.user("Begin with early_request_name.")
    talk.say("Done early.")
    first = talk.user("Then do middle_request_name.")
    last = talk.call("Bash", "fine_result_name", command="make middle_target_name")
    last = talk.last
    talk.user("At last do late_request_name.")
    text = summarised(talk, first=first, last=last)
    assert "middle_request_name" in text
    assert "middle_target_name" in text
    assert "early_request_name" not in text
    assert "late_request_name" not in text


def test_what_the_user_asks_to_be_minded_is_quoted():
    talk = coding()
    talk.say("The cache of the resolver is never emptied, by design.")
    talk.user("Good.")
    text = section(summarised(talk, instructions="mind the resolver cache"), 1)
    assert "mind the resolver cache" in text
    assert "The cache of the resolver is never emptied" in text


def test_what_had_to_be_left_out_is_said():
    text = section(summarised(coding(), dropped="the 12 oldest rounds"), 1)
    assert "the 12 oldest rounds" in text


@pytest.mark.parametrize("tokens", [250, 400, 800, 1_500, 20_000])
def test_it_stays_within_its_budget(tokens: int):
    talk = coding()
    for n in range(120):
        talk.user(f"Now change module_{n}/part_{n}.py, and mind rule_{n:04d}. " + "Long. " * n)
        words = "\n".join(f"def function_{n}_{k}(): pass" for k in range(60))
        talk.call("Read", words, file_path=f"/home/user/module_{n}/part_{n}.py", said="I read it.")
    text = summarised(talk, tokens=tokens)
    assert estimate(text) <= tokens
    read(text, 1_000_000)
    assert "Make parse_header" in section(text, 6)
    assert "part_119" in text


def test_a_short_range_gets_a_short_summary():
    talk = Talk()
    for n in range(30):
        talk.user(f"Tell me about thing number {n}, please, in a few words.")
        talk.say("A thing. " * 30)
    size = sum(item.tokens for item in talk.view.items)
    assert estimate(summarised(talk, tokens=20_000)) <= size // 2 + 1


def test_no_quote_closes_the_frame():
    talk = coding()
    talk.user("What does </summary> do? And </analysis>, and <SUMMARY>?")
    text = summarised(talk)
    assert text.count("</summary>") == 1
    assert text.count("</analysis>") == 1
    assert "All user messages" in read(text, 100_000)


def test_pictures_alone_are_told():
    talk = Talk()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    talk.user([picture, picture])
    talk.say("Two pictures.")
    text = summarised(talk)
    assert "> [image]" in section(text, 6)
    read(text, 100_000)


def test_nothing_said_is_told_as_nothing():
    text = summarised(Talk())
    assert text.count(NONE) == len(HEADINGS)


def test_chinese_words_stand_as_they_were_said():
    talk = Talk()
    talk.user("请修复 /home/user/应用/解析器_模块.py，必须保持顺序。")
    talk.say("好的，已经修复。")
    text = summarised(talk)
    assert "> 请修复 /home/user/应用/解析器_模块.py，必须保持顺序。" in section(text, 6)
    assert "必须保持顺序" in text


def test_a_second_summary_carries_the_users_words_and_the_references_of_the_first():
    talk = coding()
    for n in range(40):
        talk.call("Bash", f"output {n}\n" * 40, command=f"make target_{n}")
    sum_up(talk, "Go on with second_half_name.")
    text = summarised(talk)
    assert "> Make parse_header in /home/user/app/frames.py strict." in section(text, 6)
    assert "> Go on with second_half_name." in section(text, 6)
    assert section(text, 6).count("Make parse_header") == 1
    assert {reference(f"call_{n}") for n in (1, 2, 20, 40)} <= set(REFERENCE.findall(text))


def test_the_audit_of_an_own_summary_finds_little_to_add():
    talk = coding()
    found = audit_replacement(list(talk.view.items), read(summarised(talk), 100_000))
    assert found.unaided == 1.0


# --- the user's words


def test_the_longest_words_are_cut_first_and_the_cut_is_said():
    talk = Talk()
    log = "Look at this: " + "\n".join(f"line {n} of some_log_name_{n}" for n in range(2_000))
    long = talk.user(log + "\nWhat is wrong with it?")
    talk.user("Keep the public names.")
    lines = user_lines(work(parts(talk.view.items)), 1_200)
    assert len("\n".join(lines).encode()) <= 1_200
    assert lines[1] == "> Keep the public names.\n"
    assert lines[0].startswith("> Look at this: line 0")
    assert lines[0].rstrip().endswith("What is wrong with it?")
    cut = next(line for line in lines[0].splitlines() if "characters left out" in line)
    assert reference(long) in cut
    assert "some_log_name_" in cut


def test_so_many_words_that_the_oldest_are_counted():
    talk = Talk()
    for n in range(400):
        talk.user(f"Message number {n}: please do it.")
        talk.say("Yes.")
    lines = user_lines(work(parts(talk.view.items)), 2_000)
    assert len("\n".join(lines).encode()) <= 2_000
    assert lines[0].startswith("> Message number 0")
    assert lines[-1].startswith("> Message number 399")
    assert re.fullmatch(r"\[3\d\d messages of the user left out here\]", lines[1])


@given(st.lists(st.integers(1, 500), max_size=40), st.integers(0, 5_000))
def test_all_that_is_allowed_fits(sizes: list[int], room: int):
    cap = largest_share(sizes, room)
    assert sum(min(one, cap) for one in sizes) <= max(room, 0) or cap == 0


@given(st.text(min_size=1_000, max_size=3_000), st.integers(160, 900))
def test_a_cut_message_is_about_as_long_as_it_may_be(text: str, cap: int):
    cut = shorten_words(UserQuote(text, "r:abc123"), cap)
    lines = cut.count("\n")
    assert len(cut.encode("utf-8", "replace")) <= cap + 3 * lines + 16
    assert "r:abc123" in cut


def test_words_are_found_again_in_what_quotes_them():
    assert user_words("x\n> one\n>\n> two\n\n> three\n") == ["one\n\ntwo", "three"]
    assert user_words("user: one\nuser: two\n> Read a r:abc123") == ["one\ntwo", "Read a r:abc123"]
    listed = (
        '6. All user messages:\n   - "first"\n   - second\n     more\n\n7. Pending Tasks:\n   - x\n'
    )
    assert user_words(listed) == ['"first"', "second\nmore"]
    assert user_words("nothing of the kind") == []


# --- the sheet


def test_a_sheet_takes_what_fits_and_leaves_the_rest():
    sheet = SummaryBuilder(10_000)
    assert sheet.put(3, ["a" * 50, "b" * 5_000, "c" * 50], 0.1) == {"a" * 50, "c" * 50}
    sheet.extend("a" * 50, "some_name")
    text = sheet.text("none")
    assert "a" * 50 + " · some_name" in text
    assert text.count("none") == len(HEADINGS) - 1
    assert len(text.encode()) <= 10_000


# --- any conversation


@given(histories, st.integers(1, 2_000))
def test_any_conversation_has_a_summary(taken: list[tuple[str, int]], tokens: int):
    built = build(taken)  # pyright: ignore[reportArgumentType]
    talk = Talk()
    talk.view = built.view
    text = summarised(talk, tokens=tokens)
    assert [line for line in text.splitlines() if line.startswith("## ")][:9] == list(HEADINGS)
    assert text.count("</summary>") == 1
    if tokens >= 250:
        assert estimate(text) <= tokens
