"""Every Python block of the page on fitting runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.spec("18.fit")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "fitting.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("at", range(len(BLOCKS)))
def test_a_block_runs(at: int, home: Path):
    exec(compile(BLOCKS[at], f"fitting.md block {at + 1}", "exec"), {})


def test_there_are_blocks():
    assert len(BLOCKS) == 8
