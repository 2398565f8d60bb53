"""Cue phrases in tables, and the one matcher for them.

A table is a TSV file inside a package: lines that begin with `#` say where it comes from, the
first other line names the columns. A cue is a phrase in small letters: `(a|b)` is one of several,
`(a|)` may be missing, `…` is any few words, `.` at the end is the end of the text. It stands at the
beginning of a text, unless it begins with `…`. Case and the width of spaces do not count; words of
Chinese and Japanese have no ends to look for. Tables are read once. Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

from reverie.light import dataclass

GAP = 60
"""Characters that `…` may stand for between words."""
_DENSE = ("zh", "ja")
_GROUP = re.compile(r"\(([^()]*)\)\s?")


@functools.cache
def read_table(package: str, name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a table by the names of its columns."""
    lines = files(package).joinpath("data", name).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]
    return tuple(dict(zip(rows[0], row, strict=True)) for row in rows[1:])


@dataclass(frozen=True, slots=True)
class Cue:
    """One row: a phrase, what it is a cue for, and what speaks against it."""

    phrase: str
    language: str
    kind: str
    veto: tuple[str, ...] = ()
    held: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        return compile_phrase(self.phrase, self.language)

    @property
    def is_anywhere(self) -> bool:
        return self.phrase.startswith("…")


def read_cues(package: str, name: str) -> tuple[Cue, ...]:
    """The cues of a table with the columns cue, language, kind, veto and held."""
    rows = read_table(package, name)
    return tuple(
        Cue(one["cue"], one["language"], one["kind"], tuple(one["veto"].split()), one["held"])
        for one in rows
    )


@functools.cache
def compile_phrase(phrase: str, language: str) -> re.Pattern[str]:
    """A phrase as a pattern, to be searched for."""
    dense = language in _DENSE
    body = phrase.removeprefix("…").removesuffix(".").strip()
    source = ""
    for n, part in enumerate(re.split(r"(\([^()]*\)|…|\s+)", body)):
        if n % 2 == 0:
            source += re.escape(part)
        elif part == "…":
            source = source.removesuffix(r"\s+") + rf".{{0,{GAP}}}?" + ("" if dense else r"\b")
        elif part.isspace():
            source += "" if source.endswith((r"?\b", r"}?", "_OPTIONAL_")) else r"\s+"
            source = source.removesuffix("_OPTIONAL_")
        else:
            choices = [
                re.sub(r"\s+", r"\\s+", re.escape(one).replace(r"\ ", " "))
                for one in part[1:-1].split("|")
            ]
            some = "|".join(filter(None, choices))
            optional = "" in choices
            source += rf"(?:(?:{some})\s*)?_OPTIONAL_" if optional else f"(?:{some})"
    source = source.replace("_OPTIONAL_", "")
    start = "" if phrase.startswith("…") else "^"
    end = r"\W*$" if phrase.endswith(".") else "" if dense else r"(?!\w)"
    edge = "" if dense else r"(?<!\w)"
    return re.compile(start + edge + source + end, re.IGNORECASE)


def example(phrase: str) -> str:
    """The shortest text that a phrase stands for."""
    plain = _GROUP.sub(lambda one: _choice(one[1]), phrase.strip("."))
    return " ".join(plain.replace("…", " ").split())


def _choice(group: str) -> str:
    choices = group.split("|")
    return "" if "" in choices else f"{choices[0]} "


def find_cue(text: str, cues: Iterable[Cue]) -> tuple[Cue, re.Match[str]] | None:
    """The first cue of a table that a text has, and where."""
    for one in cues:
        if found := one.pattern.search(text):
            return one, found
    return None
