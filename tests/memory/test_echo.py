"""What was injected is found again in other words, and news about it is not taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.topics import LOOKED_AT, PassageIndex, content, echo, is_said, sentences

pytestmark = pytest.mark.spec("B5")
TABS = "Indent with tabs, never with spaces.\n\n**Why:** the linter of the team rejects spaces."
BILLING = "Deploys of the billing service happen only on Tuesdays after 14:00."
CHINESE = "代码缩进使用制表符，不要使用空格。团队的检查工具会拒绝空格。"
INDEX = "- [Tabs](tabs.md) — indentation\n- [Deploy](deploy.md) — billing deploys on Tuesdays"


def injected() -> PassageIndex:
    return PassageIndex(("memory", text) for text in (TABS, BILLING, CHINESE, INDEX))


def heard(*said: str) -> PassageIndex:
    return PassageIndex((f"m{n}", text) for n, text in enumerate(said))


@pytest.mark.parametrize(
    "added",
    [
        [TABS],
        ["The user likes tabs for indentation.", "The team's linter refuses spaces."],
        ["Tabs are used for indenting, spaces are avoided."],
        [BILLING],
        ["Billing is shipped on Tuesdays in the afternoon, from 14:00."],
        ["Releases of the billing service: Tuesdays only, after 14:00."],
        ["用户偏好用制表符缩进代码，避免空格。"],
        ["团队检查工具拒绝空格，缩进用制表符。"],
    ],
)
@pytest.mark.parametrize("said", [[], ["Add a test for the parser.", "写一个测试"]])
def test_the_same_in_other_words_is_an_echo(added: list[str], said: list[str]) -> None:
    found = echo(added, injected(), heard(*said))
    assert found is not None
    assert found.source == "memory"
    assert found.share >= 0.75


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("Deploys of the billing service happen on Thursdays after 14:00.", "deploys: Thursdays"),
        ("Do not deploy billing on Tuesdays.", "please don't deploy billing on Tuesdays any more"),
        ("Indent with tabs of width 8.", "our tabs are 8 wide, indent so"),
        ("Answers should be in German.", "answer in German please"),
        ("The linter of the team is called Otter.", "the linter is called Otter"),
        ("缩进使用四个空格。", "改用四个空格缩进"),
        ("Marta owns the importer.", ""),
    ],
)
def test_news_is_no_echo(added: str, said: str) -> None:
    assert echo([added], injected(), heard(said)) is None


def test_a_long_text_does_not_contain_everything() -> None:
    def word(kind: str, n: int) -> str:
        return kind + "".join("kmpqrtvwxz"[int(digit)] for digit in f"{n:03}")

    page = " ".join(f"{word('Ba', n)} speaks of {word('do', n)}." for n in range(400))
    passages = PassageIndex([("page", page)])
    near = f"{word('Ba', 90)} speaks of {word('do', 91)} and {word('do', 92)}."
    far = f"{word('Ba', 3)} speaks of {word('do', 90)} and {word('do', 311)}."
    assert echo([near], passages, heard()) is not None
    assert echo([far], passages, heard()) is None


def test_lines_of_an_index_stand_alone() -> None:
    passages = PassageIndex([("index", "- [Deploy](d.md) — the window\n- [Otter](o.md) — staging")])
    about = content("Deploys of Otter go to staging in the window.")
    assert not is_said(about, passages.best(about))


def test_windows_do_not_reach_from_one_text_into_the_next() -> None:
    many = ["alpha beta gamma"] + [f"word{n} " * 3 for n in range(200)]
    passages = PassageIndex([("a", "alpha beta"), ("b", "gamma delta"), ("c", " ".join(many))])
    assert passages.best(content("alpha beta gamma")).source == "c"
    two = PassageIndex([("a", "alpha beta"), ("b", "gamma delta")])
    assert two.best(content("beta gamma")).share == 0.5


def test_what_says_too_little_is_no_echo() -> None:
    assert echo(["Why", "The user", ""], injected(), heard()) is None
    assert echo([], injected(), heard()) is None
    assert echo([TABS], PassageIndex(), heard()) is None


def test_of_a_huge_text_beginning_and_end_are_read() -> None:
    text = "The first word is otter.\n" + "x" * (3 * LOOKED_AT) + "\nThe last word is walrus."
    found = sentences(text)
    assert (found[0], found[-1]) == ("The first word is otter.", "The last word is walrus.")
    assert sum(map(len, found)) <= LOOKED_AT


@given(st.lists(st.text(max_size=200), max_size=4), st.lists(st.text(max_size=200), max_size=4))
def test_it_is_total_and_a_text_echoes_itself(texts: list[str], others: list[str]) -> None:
    passages = PassageIndex((str(n), text) for n, text in enumerate(texts))
    echo(others, passages, heard(*others))
    for text in texts:
        parts = sentences(text)
        if sum(len(content(part)) for part in parts if len(content(part)) > 1) > 0:
            assert echo(parts, passages, PassageIndex()) is not None


def test_it_is_the_same_every_time() -> None:
    first, second = injected(), injected()
    about = content("Deploys on Tuesdays with tabs")
    assert first.best(about) == second.best(about)


def test_a_number_from_one_sentence_does_not_go_with_another() -> None:
    injected = PassageIndex([("a.md", "The review is on 3 May. The demo is on 4 June.")])
    said = PassageIndex([("user", "The demo is on 3 June.")])
    assert echo(["The demo is on 3 June."], injected, said) is None
    assert echo(["The demo is on 4 June."], injected, PassageIndex()) is not None
