"""Cue phrases in tables, and the one matcher for them.

A table is a TSV file inside a package: lines that begin with `#` say where it comes from, the
first other line names the columns. A cue is a phrase in small letters: `(a|b)` is one of several,
`(a|)` may be missing, `…` is any few words, `0` a digit, `*` any letters of a word, a `.` at the
end the end of the text. It stands at the beginning of a text, unless it begins with `…`. Case,
spaces and commas between words do not count; words of Chinese and Japanese have no ends to look
for. Tables are read once. Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from reverie.light import dataclass
from reverie.text.tables import read_rows

GAP = 60
"""Characters that `…` may stand for between words."""
_DENSE = ("zh", "ja")
_TOKEN = re.compile(r"[()|…]|\s+|[^\s()|…]+")
_INNER = re.compile(r"\(([^()]*)\)")


@functools.cache
def read_table(package: str, name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a table by the names of its columns."""
    header, *rows = read_rows(package, name.removesuffix(".tsv"))
    return tuple(dict(zip(header, row, strict=True)) for row in rows)


@dataclass(frozen=True, slots=True)
class Cue:
    """One row: a phrase, what it is a cue for, and what speaks against it."""

    phrase: str
    language: str
    kind: str
    veto: tuple[str, ...] = ()
    held: str = ""

    def search(self, text: str) -> re.Match[str] | None:
        """Where a text has the cue."""
        return compile_phrase(self.phrase, self.language).search(text)


@functools.cache
def read_cues(package: str, name: str) -> tuple[Cue, ...]:
    """The cues of a table with the columns cue, language, kind, veto and held."""
    return tuple(
        Cue(row["cue"], row["language"], row["kind"], tuple(row["veto"].split()), row["held"])
        for row in read_table(package, name)
    )


@functools.cache
def compile_phrase(phrase: str, language: str = "en") -> re.Pattern[str]:
    """A phrase as a pattern, to be searched for."""
    dense = language in _DENSE
    source = "" if phrase.startswith("…") else "^"
    for token in _TOKEN.findall(phrase.removeprefix("…").removesuffix(" .").strip()):
        if token in "()|":
            source += "(?:" if token == "(" else token
        elif token == "…":
            source += rf".{{0,{GAP}}}?"
        elif token.isspace():
            source += r"[\s,，]*+"
        else:
            source += token_source(token, dense=dense)
    return re.compile(source + (r"\W*$" if phrase.endswith(" .") else ""), re.IGNORECASE)


def token_source(word: str, *, dense: bool) -> str:
    """One word of a phrase, whole where its language has words."""
    body = re.escape(word).replace("0", r"\d").replace(r"\*", r"\w*")
    before = r"\b" if not dense and (word[0].isalnum() or word[0] == "*") else ""
    after = r"\b" if not dense and (word[-1].isalpha() or word[-1] == "*") else ""
    return f"{before}{body}{after}"


def example(phrase: str) -> str:
    """The shortest text that a phrase stands for, of its first choices."""
    while found := _INNER.search(phrase):
        choices = found[1].split("|")
        phrase = phrase.replace(found[0], "" if "" in choices else choices[0], 1)
    return " ".join(phrase.removesuffix(" .").replace("…", " ").replace("*", "").split())
