"""Keys: what passes, what is refused, and that the two rules agree with each other."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import PathRefused
from reverie.store import DEPTH, NAME_BYTES, Folder, beneath, check_key, fold_key, format_path

pytestmark = pytest.mark.spec("1.store")

GOOD = [
    "MEMORY.md",
    "team/topic.md",
    "café.md",
    "记忆.md",
    "ประวัติ.md",
    "हिन्दी.md",
    "0b6f2c1e-7a34-4c8e-9a0a-51f7d1d0a001/tool-results/toolu_01x.txt",
    "-home-user-project/a.jsonl",
    ".consolidate-lock",
    "a b.md",
    "a+b (copy), v1=2 @x.md",
    "Конфигурация.md",
    "٣.md",
    "v1..2.md",
    "console.md",
    "com10.md",
]

# Everything that has ever meant something else than its looks, and plenty of plain letters.
hostile = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "./\\%:~ \0\n\r\t．／‥․∕\u200b\u202e\u2044\ufeff\u00ad²①ﬁK\u212a\u0301eéßİ"
        ),
        st.sampled_from("abcCONUL012ef"),
        st.characters(),
    ),
    max_size=24,
)


@pytest.mark.parametrize("key", GOOD)
def test_ordinary_names_pass_unchanged(key: str) -> None:
    assert check_key(key) == key


@given(hostile)
def test_what_passes_stays_inside_on_every_system(key: str) -> None:
    try:
        canonical = check_key(key)
    except PathRefused:
        return
    assert canonical == unicodedata.normalize("NFKC", key)
    assert check_key(canonical) == canonical
    for text in (key, canonical):
        assert not PurePosixPath(text).is_absolute()
        assert not PureWindowsPath(text).anchor
        assert ".." not in PurePosixPath(text).parts
        assert ".." not in PureWindowsPath(text).parts
        assert os.path.normpath(text) == text
        assert all(len(name.encode()) <= NAME_BYTES for name in text.split("/"))
        assert len(text.split("/")) <= DEPTH
        assert text.isprintable()


@given(hostile)
def test_a_refusal_can_be_printed(key: str) -> None:
    with pytest.raises(PathRefused) as caught:
        check_key(f"{key}:")
    assert str(caught.value).isprintable()


@given(st.lists(st.text(st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1, max_size=8)))
def test_letters_and_digits_of_any_script_pass_once_normal(parts: list[str]) -> None:
    key = "/".join(f"x{unicodedata.normalize('NFKC', part)}" for part in parts[:DEPTH]) or "x"
    plain = all(c == "/" or unicodedata.category(c)[0] in "LN" for c in key)
    if plain and unicodedata.normalize("NFKC", key) == key:
        assert check_key(key) == key


@given(st.text(max_size=12))
def test_folding_ignores_form_and_case_and_folds_once(key: str) -> None:
    folded = fold_key(key)
    assert fold_key(folded) == folded
    for form in ("NFC", "NFD"):
        assert fold_key(unicodedata.normalize(form, key)) == folded


def test_folding_tells_other_names_apart() -> None:
    assert fold_key("a.md") != fold_key("b.md")
    assert fold_key("a/b") != fold_key("ab")


@given(st.lists(st.sampled_from(["a", "b", "memory", "memory-evil"]), max_size=5), st.data())
def test_beneath_agrees_with_the_library_on_plain_paths(parts: list[str], data: st.DataObject):
    root = Path("/", *parts[: data.draw(st.integers(0, len(parts)))])
    path = Path("/", *parts)
    assert beneath(root, path) == path.is_relative_to(root)
    assert beneath(root / "memory", path) == path.is_relative_to(root / "memory")


def test_beneath_wants_like_with_like() -> None:
    assert not beneath(Path("/a"), Path("a"))
    assert not beneath(Path("a"), Path("/a"))
    assert not beneath(Path("/a"), Path("/a/../b"))
    assert not beneath(Path("/a/.."), Path("/a/../b"))
    assert beneath(Path("a"), Path("a/b"))


def test_the_names_of_temporary_files_are_reserved() -> None:
    for key in (".reverie-1-0123456789abcdef.tmp", "d/.reverie-99-0123456789abcdef.tmp"):
        with pytest.raises(PathRefused, match="reserved"):
            check_key(key)
    assert check_key(".reverie-1.tmp")


def test_shown_is_safe_to_print_and_short() -> None:
    assert format_path("a.md") == "a.md"
    assert format_path("\x1b[31m") == "'\\x1b[31m'"
    assert format_path("\udc80") == "'\\udc80'"
    assert format_path("") == "''"
    assert len(format_path("x" * 10_000)) == 501


def test_a_key_of_the_greatest_size_can_be_written(tmp_path: Path) -> None:
    with Folder(tmp_path / "r") as folder:
        key = "/".join(["d" * 60] * (DEPTH - 1) + ["n" * NAME_BYTES])
        folder.write(key, b"x")
        assert folder.list() == (key,)


@pytest.mark.parametrize("key", ["\u0301a.md", "d/\u0301\u0301.md"])
def test_a_name_does_not_begin_with_a_mark_of_another_letter(key: str) -> None:
    with pytest.raises(PathRefused, match="begins with a combining mark"):
        check_key(key)
