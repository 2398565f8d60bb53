"""The examples of the library's page and of the first screen run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.spec("18.facade")
ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(code: str, name: str) -> None:
    exec(compile(code, name, "exec"), {"__name__": "example"})


@pytest.mark.parametrize("number", range(len(blocks(PAGE))))
def test_an_example_of_the_page_runs(home: Path, number: int) -> None:
    run(blocks(PAGE)[number], f"docs/library.md, block {number}")


def test_the_first_example_is_the_one_on_the_first_screen(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = blocks(README)[0]
    run(first, "README.md")
    assert "mocked migration" in capsys.readouterr().out
    lines = [line.split("#")[0].strip() for line in first.splitlines()]
    page = [line.split("#")[0].strip() for line in blocks(PAGE)[0].splitlines()]
    assert [line for line in lines if line] == [line for line in page if line]


def test_the_page_names_every_verb() -> None:
    from reverie import Memory

    for name in vars(Memory):
        assert name.startswith("_") or f"{name}" in PAGE, name
