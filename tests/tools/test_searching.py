"""Grep, by ripgrep and by our own finder, with the same answers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.kit import Place, snapshot, use

pytestmark = pytest.mark.spec("13")


@pytest.fixture(params=["rg", "finder"])
def environ(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """A PATH with ripgrep, and one without."""
    if request.param == "finder":
        return {"PATH": str(tmp_path / "empty")}
    if not any(os.access(f"{p}/rg", os.X_OK) for p in os.environ["PATH"].split(":")):
        pytest.skip("needs rg: it is not on PATH")
    return dict(os.environ)


@pytest.fixture
def root(place: Place) -> Path:
    for name, text in {
        "a.py": "def one():\n    return 1\n\n\ndef two():\n    return ONE\n",
        "src/b.txt": "one\n",
        ".hidden": "one\n",
        ".git/x": "one\n",
        "bin": "one\0two\n",
    }.items():
        path = place.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (place.outside / "o.txt").write_text("one\n")
    (place.root / "link").symlink_to(place.outside)
    return place.root


async def test_the_three_modes(place: Place, root: Path, environ: dict[str, str]) -> None:
    box = place.box(environ=environ)
    files = await use(box, "Grep", pattern="one", glob="*.{py,txt}")
    assert files.text.splitlines() == ["a.py", "src/b.txt"]
    lines = await use(box, "Grep", pattern="def", output_mode="content", path="a.py")
    assert lines.text.splitlines() == ["a.py:1:def one():", "a.py:5:def two():"]
    count = await use(box, "Grep", pattern="ONE", ignore_case=True, output_mode="count")
    assert set(count.text.splitlines()) >= {".hidden:1", "a.py:2"}
    assert ".git" not in count.text
    assert "link" not in count.text
    assert (await use(box, "Grep", pattern="zzz")).text == "No matches"
    whole = await use(box, "Grep", pattern="one", path=str(root / "src"))
    assert whole.text == "src/b.txt"  # as it can be handed to every other tool


async def test_context_and_head_limit(place: Place, root: Path, environ: dict[str, str]) -> None:
    box = place.box(environ=environ)
    found = await use(box, "Grep", pattern="^def", output_mode="content", context=1, glob="a.py")
    name = "a.py"
    assert found.text.splitlines() == [
        f"{name}:1:def one():",
        f"{name}-2-    return 1",
        "--",
        f"{name}-4-",
        f"{name}:5:def two():",
        f"{name}-6-    return ONE",
    ]
    first = await use(box, "Grep", pattern="e", output_mode="content", head_limit=1)
    assert len(first.text.splitlines()) == 2
    assert "more lines" in first.text


@pytest.mark.parametrize(
    "pattern",
    [
        "--pre=touch",
        "--pre=touch ran",
        "-e",
        "--",
        "-f/etc/passwd",
        "--files",
        "-r",
        "$(touch ran)",
    ],
)
async def test_a_pattern_is_never_an_option(
    place: Place, root: Path, environ: dict[str, str], pattern: str
) -> None:
    before = snapshot(place.root)
    for value in (
        {"pattern": pattern},
        {"pattern": "one", "glob": pattern},
        {"pattern": "one", "path": pattern},
    ):
        found = await use(place.box(environ=environ), "Grep", **value)
        assert "root:" not in found.text
    assert snapshot(place.root) == before


async def test_configuration_of_ripgrep_is_not_read(place: Place, root: Path) -> None:
    config = place.outside / "rc"
    config.write_text("--pre=touch\n--follow\n")
    environ = {**os.environ, "RIPGREP_CONFIG_PATH": str(config)}
    before = snapshot(place.root)
    found = await use(place.box(environ=environ), "Grep", pattern="one")
    assert "o.txt" not in found.text
    assert snapshot(place.root) == before


async def test_bad_patterns_are_told(place: Place, root: Path, environ: dict[str, str]) -> None:
    box = place.box(environ=environ)
    for pattern in ("(", "[", "a{99999999999}", "\0"):
        found = await use(box, "Grep", pattern=pattern)
        assert found.is_error, pattern


async def test_a_pattern_that_runs_away_ends(place: Place, environ: dict[str, str]) -> None:
    (place.root / "a").write_text("a" * 5_000 + "!\n")
    place.settings = replace(place.settings, tool_seconds=1.0)
    found = await use(place.box(environ=environ), "Grep", pattern="(a+)+(a+)+(a+)+$")
    assert found.text == "No matches" or "was ended after" in found.text


async def test_large_and_odd_files(place: Place, environ: dict[str, str]) -> None:
    (place.root / "many").write_text("hit\n" * 400_000)
    (place.root / "wide").write_text("hit" + "x" * 3_000_000 + "\n")
    (place.root / "bytes").write_bytes(b"hit \xff\xfe\n")
    os.mkfifo(place.root / "pipe")
    (place.root / os.fsdecode(b"od\xffd")).write_text("hit\n")
    found = await use(place.box(environ=environ), "Grep", pattern="hit", output_mode="content")
    assert not found.is_error
    assert len(found.text) < 60_000
    wide = await use(
        place.box(environ=environ), "Grep", pattern="hit", output_mode="content", path="wide"
    )
    assert len(wide.text) < 5_000
    names = await use(place.box(environ=environ), "Grep", pattern="hit")
    assert len(names.text.splitlines()) == 4
