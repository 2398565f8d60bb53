"""Whether the numbers that a text cites are those that were measured.

A number is cited by `<!-- figure: KEY -->` right before it; KEY is one of `python -m bench keys`.
It is held against the results at the precision it is shown with: 87 % stands for .865 to .875, and
21,300 for 21,250 to 21,350. In the columns of a table whose head begins with "measured", and
between `<!-- claims -->` and `<!-- /claims -->`, every number has to be cited; code, links and
comments are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

NUMBER = r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_CITED = re.compile(rf"<!-- figure: ([\w./-]+) -->({NUMBER})?(\s?%)?")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ASIDE = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+")
_CLAIMS = re.compile(r"<!-- claims -->(.*?)<!-- /claims -->", re.DOTALL)
_ANY = re.compile(rf"(?<![\w.]){NUMBER}(?!\w)")


def faults(text: str, known: Mapping[str, float]) -> list[str]:
    """What is wrong with the figures of a text; nothing where all is well."""
    return [*_wrong(text, known), *_bare(text)]


def _wrong(text: str, known: Mapping[str, float]) -> Iterator[str]:
    for found in _CITED.finditer(text):
        key, shown, percent = found.groups()
        if key not in known:
            yield f"{key}: no such figure; `python -m bench keys` lists them"
        elif shown is None:
            yield f"{key}: no number stands behind the mark"
        else:
            value = known[key] * (100 if percent else 1)
            if not agrees(shown, value):
                yield f"{key}: the text says {shown}, measured is {value:.6g}"


def agrees(shown: str, value: float) -> bool:
    """Whether a number is the value at the precision it is shown with."""
    plain = shown.replace(",", "")
    _, point, digits = plain.partition(".")
    step = 10.0 ** -len(digits)
    if not point and abs(float(plain)) >= 1_000:
        step = 10.0 ** (len(plain) - len(plain.rstrip("0")))
    return abs(float(plain) - value) <= step / 2 + 1e-9


def _bare(text: str) -> Iterator[str]:
    """Numbers that have to be cited and are not."""
    for place in (*_claimed(text), *_measured(text)):
        rest = _COMMENT.sub(" ", _ASIDE.sub(" ", _CITED.sub(" ", place)))
        for number in _ANY.findall(rest):
            yield f"{number} is not cited in: {' '.join(rest.split())[:80]}"


def _claimed(text: str) -> list[str]:
    return [found.group(1) for found in _CLAIMS.finditer(text)]


def _measured(text: str) -> Iterator[str]:
    """The cells below a head that begins with "measured"."""
    columns: list[int] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not columns:
            columns = [n for n, cell in enumerate(cells) if cell.lower().startswith("measured")]
            continue
        if set(line) <= set("|-: "):
            continue
        yield from (cells[n] for n in columns if n < len(cells))
