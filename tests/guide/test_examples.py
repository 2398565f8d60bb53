"""The programs in `examples` run as they stand, and show what they are for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.spec("18.examples")
FOLDER = Path(__file__).resolve().parents[2] / "examples"
SHOWN = {
    "agent": ["The code word is heron.", "Never run npm here"],
    "fitting": ["105,327 tokens, sent 2,2", "32,038 characters come"],
    "layer": ["[50, 50, 50, 50, 1800, 1800, 1800, 1800]"],
    "learning": ["saved feedback_run_the_linter.md", "ORDERS", "again: []"],
    "loop_anthropic": ["It counts to 20000.", "cache held: True", "the request 8"],
    "loop_chat": ["Yes."],
    "loop_responses": ["It left on Monday.", "the cache held: True"],
    "memory": ["found:   Integration tests", "changed: Integration tests hit a real Postgres"],
    "users": ["side entrance", "bob: ['Parcels go out on Mondays']"],
    "wrapped": ["From the read replica.", "the model was told: True"],
}


def test_there_are_ten_and_the_page_names_each() -> None:
    found = {path.stem for path in FOLDER.glob("*.py")}
    assert found == set(SHOWN)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}.py]({name}.py)" in page for name in found)


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_an_example_shows_what_it_is_for(
    name: str,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    out, err = capfd.readouterr()
    for words in SHOWN[name]:
        assert words in out
    assert err == ""
    assert not home.exists()  # each has a home of its own
