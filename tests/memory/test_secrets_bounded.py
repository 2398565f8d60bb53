"""Row 57: however a text is made, the work is bounded by its size. Counts, not times."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from reverie.secrets import ScanStats, keywords, rules, scan
from tests.conftest import Scale

pytestmark = [pytest.mark.spec("11.secrets"), pytest.mark.spec("7.secrets")]

ALL_WORDS = " ".join(keywords()) + "\n"
HOSTILE: dict[str, Callable[[int], str]] = {
    "one letter": lambda size: "a" * size,
    "letters and stops": lambda size: "a." * (size // 2),
    "key and spaces": lambda size: "key" + " " * size,
    "keys": lambda size: "key=" * (size // 4),
    "every keyword": lambda size: (ALL_WORDS * (size // len(ALL_WORDS) + 1))[:size],
    "lines of one sign": lambda size: "a\n" * (size // 2),
    "percent signs": lambda size: "%25" * (size // 3),
    "escapes": lambda size: "\\u005c" * (size // 6),
    "base64 of base64": lambda size: base64.b64encode(
        base64.b64encode(b"key = " * (size // 11))
    ).decode(),
    "headers": lambda size: ("-----BEGIN " + "PRIVATE KEY-----") * (size // 27),
    "commands": lambda size: "curl " * (size // 5),
    "hidden signs": lambda size: "a\u200b" * (size // 4),
    "expanding signs": lambda size: "\ufdfa" * (size // 3),
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_row_57_the_work_grows_with_the_size_alone(shape: str, scale: Scale) -> None:
    size = scale.pick(20_000, 200_000)
    work = ScanStats()
    scan(HOSTILE[shape](size), "", work)
    # Every reading of the text is at most as long as the text, and there are few of them.
    assert work.views <= 50
    assert work.passes <= work.views * len(rules())
    assert work.bytes <= 8 * len(rules()) * (size + 1_000)
    assert work.matches <= size
    double = ScanStats()
    scan(HOSTILE[shape](2 * size), "", double)
    assert double.views <= work.views + 2
    assert double.bytes <= 2.2 * work.bytes + 10_000
    assert double.matches <= 2.2 * work.matches + 100
