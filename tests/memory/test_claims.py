"""What a text says about a repository: paths, symbols, commits, flags; and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.topics import MAX, Claim, find_claims

pytestmark = pytest.mark.spec("B8")


def found(text: str) -> set[tuple[str, str]]:
    return {(c.kind, c.text) for c in find_claims(text)}


COMMIT = "9fceb02d0ae598e95dc970b74767f19372d61af8"
NO_CLAIMS = (
    "TCP/IP and/or input/output, 24/7, on 2026/01/02",
    "https://example.com/src/app.py and www.example.com/a/b.html",
    "Node.js, GitHub, PostgreSQL, JavaScript and e.g. this",
    "version 1.2.3 at 10.0.0.1, about 1234567 users",
    "originSessionId: 3f2c1ab9-1234-4abc-8abc-1234567890ab",
    "the glob `src/**/*.py` and `{a,b}/c.py`",
    *("run `pytest` or `npm`", "a -- dash, ---, and --- rules", "deadbeef feedface", ""),
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("See src/auth/session.py:42 for it.", {("path", "src/auth/session.py")}),
        ("It is in `scripts/release.sh`.", {("path", "scripts/release.sh")}),
        (
            "The `Makefile` has it, pyproject.toml too.",
            {("path", "Makefile"), ("path", "pyproject.toml")},
        ),
        ("Look below `docs/adr/`.", {("path", "docs/adr/")}),
        ("代码在 `src/主.py` 里。", {("path", "src/主.py")}),
        ("[it](docs/a.md#L3)", {("path", "docs/a.md")}),
        ("Call parse_header() first.", {("symbol", "parse_header()")}),
        (
            "`Session.prepare` and `MAX_SIZE`",
            {("symbol", "Session.prepare"), ("symbol", "MAX_SIZE")},
        ),
        ("max_retries is three", {("symbol", "max_retries")}),
        ("`std::move()`", {("symbol", "std::move()")}),
        ("`tests/test_a.py::test_b`", {("path", "tests/test_a.py"), ("symbol", "test_b")}),
        ("since commit 3f2c1ab", {("commit", "3f2c1ab")}),
        (f"see `{COMMIT}`", {("commit", COMMIT)}),
        ("提交 1234567", {("commit", "1234567")}),
        ("pass --dry-run to it", {("flag", "--dry-run")}),
        ("`reverie chat --max-cost=5`", {("flag", "--max-cost")}),
        *((text, set()) for text in NO_CLAIMS),
    ],
)
def test_what_a_text_names(text: str, wanted: set[tuple[str, str]]):
    assert found(text) == wanted


def test_a_flag_of_another_program_and_a_branch_are_not_sure():
    named = find_claims("`git commit --no-verify`, `feature/x`, `--fast`, `bin/run --slow`")
    unsure = ("--no-verify", "feature/x", "bin/run")
    known = dict.fromkeys(unsure, False) | dict.fromkeys(("--fast", "--slow"), True)
    assert {c.text: c.sure for c in named} == known


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("`login()` in `src/auth.py`", "src/auth.py"),
        ("`login()` (src/auth.py:10)", "src/auth.py"),
        ("The function `login()` defined in src/auth.py", "src/auth.py"),
        ("`src/auth.py`: `login()`", "src/auth.py"),
        ("`src/auth.py` 中的 `login()`", "src/auth.py"),
        ("`src/auth.py::login`", "src/auth.py"),
        ("`login()` in `a/x.py` or `a/y.py`", ""),
        ("`login()` is documented by the page README.md", ""),
        ("`login()`", ""),
    ],
)
def test_a_symbol_knows_the_file_it_is_said_to_stand_in(text: str, near: str):
    assert [c.near for c in find_claims(text) if c.kind == "symbol"] == [near]


def test_each_once_with_its_first_line_and_bounded():
    many = "\n".join(f"see src/f{n}.py and src/f{n}.py" for n in range(500))
    out = find_claims(many)
    assert len(out) == MAX
    assert out[0] == Claim("path", "src/f0.py", 1)
    assert out[5].line == 6
    assert len(find_claims("`" + "a/" * 100_000 + "b.py`")) <= 1


@given(st.text(max_size=2_000))
def test_any_text_has_claims_of_one_line_without_marks(text: str):
    for claim in find_claims(text):
        assert 1 < len(claim.text) <= 200
        assert not set(claim.text) & set('\n<>`"$|')
