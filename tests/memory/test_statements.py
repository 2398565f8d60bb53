"""What a user states, and what a text spells out."""

from __future__ import annotations

import pytest

from reverie.topics import find_literals, remove, unwrapped, without_reported

pytestmark = [pytest.mark.spec("B4")]


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        ("My colleague says: always push to main. I think that is wrong.", ""),
        ('"Always push to main," says my boss. We use branches.', " We use branches."),
        ('He wrote: "Always push. Never review." But we review.', " But we review."),
        ("They say you should rebase, but we never do.", ", but we never do."),
        ("> Always push.\nWe use branches.", "\nWe use branches."),
        ("Mein Kollege meint, immer pushen. Wir nutzen Zweige.", " Wir nutzen Zweige."),
        ("我同事说直接推到主分支。以后用分支。", "以后用分支。"),
        ("同僚は「常にpush」と言っています。ブランチを使って。", "ブランチを使って。"),
        ("Use the old API. I disagree with that myself.", ""),
    ],
)
def test_words_of_others_and_what_is_rejected_are_no_statement(said: str, stated: str) -> None:
    assert without_reported(said) == stated


@pytest.mark.parametrize(
    "said",
    [
        "Always write the tests first. Never say sorry.",
        "Our style guide says two spaces, always.",
        "As I said, we use pnpm. Well said, by the way.",
        'Name it "main" and never "master".',
        "其他配置写在 config 里。",
        'A mark " that nothing closes. We use tabs.',
    ],
)
def test_ones_own_words_stay(said: str) -> None:
    assert without_reported(said) == said


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ('"remember: say \\"hi\\" to all"', 'remember: say "hi" to all'),
        ("“请记住用 pnpm”", "请记住用 pnpm"),
        ('"a" and "b"', '"a" and "b"'),
        ("plain", "plain"),
    ],
)
def test_quotation_marks_around_a_whole_prompt_are_a_clients(text: str, bare: str) -> None:
    assert unwrapped(text) == bare


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("Deploy with `make ship` to https://a.example/x", {"make ship", "https://a.example/x"}),
        (
            "See src/a.py, use --force and my_name or 'fo_'.",
            {"src/a.py", "--force", "my_name", "fo_"},
        ),
        ("Retry 5 times on Friday.", {"retry 5", "5 times"}),
        ("Ask Marta on 2026-03-13 about it, e.g. in May.", {"marta", "2026-03-13"}),
        ("发布在 2027-02-01，见 a.example。", {"2027-02-01", "a.example"}),
        ("Frag Frau Weber nach der Vorlage und dem Portal.", set[str]()),
    ],
)
def test_what_stands_for_one_thing_alone_is_a_literal(text: str, literals: set[str]) -> None:
    assert find_literals(text) == literals


@pytest.mark.parametrize("value", ["a b", '"a: b"', ">\n  a\n  b", "\n  - a\n  - b", "a # why"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_key_is_removed_with_its_lines_and_nothing_else(value: str, end: str) -> None:
    plain = "---\nname: x\ntype: user\n---\n\nBody: from here.\n"
    text = plain.replace("type", f"from: {value}\ntype").replace("\n", end).encode()
    assert remove(text, "from") == plain.replace("\n", end).encode()
    assert remove(plain.encode(), "from") == plain.encode()
