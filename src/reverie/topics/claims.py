"""What a memory says about a repository: the paths, symbols, commits and flags it names.

A claim is something that can be looked for: `src/auth.py`, `parse_header()`, `3f2c1ab`,
`--dry-run`. What stands in code marks is taken more readily than what stands in prose, where
only shapes count that prose does not have. Addresses, patterns and product names are none.

A literal is anything that stands for one thing alone: a command, path, address, number, name.

Pure, linear in the text and bounded: a long text has no more claims than a short one may have.
Nothing here looks whether a claim holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Literal, TypeAlias

from reverie.light import dataclass, pattern
from reverie.text.markdown import blocks
from reverie.text.stems import is_german
from reverie.text.tokens import FUNCTION

ClaimKind: TypeAlias = Literal["path", "symbol", "commit", "flag"]

MAX = 24
"""Claims of one text."""
MAX_TEXT = 64 * 1024
"""Characters of a text that are looked at."""
_LINE = 2_000
_LONG = 200

_CODE = pattern(r"(?<!`)(`+)(?!`)([^`\n]{1,300})\1(?!`)")
_URL = pattern(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>`\"')\]]+|\bwww\.\S+", re.IGNORECASE)
_FENCE = pattern(r"[ \t]{0,3}(?:```|~~~)")
_ENDING = pattern(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")
_PATH = pattern(r"(?<![\w@:/.~*<-])(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)*/?(?![\w*{<])")
_DOTTED = pattern(r"\.\w|file\b")  # any path of prose has an ending, or is a Makefile
_FILE = pattern(
    r"\.(?:py|pyi|ts|tsx|jsx|mjs|cjs|go|rs|rb|java|kt|swift|c|cc|cpp|h|hpp|cs|php|sh|bash|sql|md|"
    r"toml|yaml|yml|json|jsonl|ini|cfg|lock|html|css|scss|vue|svelte|proto|tf|gradle|xml|txt)$"
)
_NAMED = frozenset({"Makefile", "Dockerfile", "Justfile", "Procfile", "Rakefile", "Gemfile"})
_WORD = r"[A-Za-z_][A-Za-z0-9_]*"
_CALLED = re.compile(rf"(?<![\w./-])({_WORD}(?:(?:\.|::){_WORD}){{0,4}})\(\)")
_JOINED = re.compile(
    r"(?<![\w./:@$-])(_?[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)(?![\w/-]|\.\w|::|\()"
)
_SYMBOL = re.compile(rf"{_WORD}(?:(?:\.|::|#){_WORD}){{0,4}}(?:\(\))?")
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?![\w-])")
_HASH = re.compile(r"(?<![\w./:#-])([0-9a-f]{7,40})(?![\w/:-]|\.\w)")
_IN = re.compile(
    r"\W{0,4}(?:\w{1,20} ){0,3}(?:in|of|from|at|inside|within|在|位于|@|\()\W{0,4}", re.IGNORECASE
)
_HAS = re.compile(r"[\W\d]{0,6}(?:has|defines|contains|holds|exports|的|中的?|里的?)?\W{0,4}")
_COMMIT = re.compile(r"(?:commits?|revisions?|revs?|sha|hash|提交)\W{0,3}$", re.IGNORECASE)


_DOUBT = re.compile(
    r"\b(?:remov(?:e[ds]?|al|ing)|delet(?:e[ds]?|ion|ing)|dropp?(?:ed|ing)|deprecated|obsolete|"
    r"legacy|renam(?:e[ds]?|ing)|replac(?:e[ds]?|ing)|migrat(?:e[ds]?|ion)|moved|split|extracted|"
    r"merged into|no longer|formerly|previously|used to|was|were|had been|before|old|instead|"
    r"future|planned|proposed|upcoming|would|could|might|hypothetical|eventually|not yet|"
    r"example|e\.g|such as|for instance|like|placeholder|template|sample|imagine|pattern|naming|"
    r"never|don'?t|do not|avoid|wrong|bad|anti-?pattern|symptom|mistake|fails?|missing|"
    r"creates?d?|creating|generat\w+|writes?|written|produc\w+|outputs?|stores?d?|saves?d?|temp\w*|"
    r"run-?time|at startup|gitignored?|ignored|cache[ds]?|upstream|external|third-party|symlink)\b"
    r"|\bto be\b|\bconvert\b|\bsays\b|[❌✗→⇒]|->|=>|(?-i:\bNOT\b)|删除|移除|改名|例如|不再|以前",
    re.IGNORECASE,
)
"""A line with such a word may name what is gone, not there yet, made at run time, or elsewhere."""
_PLACEHOLDER = re.compile(
    r"(?:^|[/_.-])(?:foo|bar|baz|qux|quux|example|sample|xxx+|yyy+|dummy|placeholder|thing|whatever)"
    r"(?:[/_.-]|\d|$)|(?:^|[/_.-])(?:my|your|some|old|new)[_-]|tests/path/|X[xX]x|\.\.\.|…|(?:^|_)X(?:\b|_)|^@|NNN",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """Something a text names. `near` is the file it is said to stand in; a claim that is not `sure`
    may as well be about something else, so that not finding it tells nothing. One that is `stated`
    is said to be there now, and can be nothing but the repository's own: no example, nothing that
    was removed or is made at run time, no name of another program."""

    kind: ClaimKind
    text: str
    line: int
    near: str = ""
    sure: bool = True
    stated: bool = True


def find_claims(text: str, most: int = MAX) -> tuple[Claim, ...]:
    """What a text names, each once, in the order of its lines."""
    found: dict[tuple[ClaimKind, str], Claim] = {}
    text = text[:MAX_TEXT]
    aside = _aside(text)
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            continue
        said = re.sub(r"\S*\w[_/.]\w\S*", " ", _CODE.sub(" ", line[:_LINE]))
        doubtful = number in aside or _DOUBT.search(said) is not None or "://" in line
        for one in _of_line(line[:_LINE], number):
            if 1 < len(one.text) <= _LONG:
                claim = replace(one, stated=not doubtful and _is_telling(one))
                known = found.setdefault((claim.kind, claim.text), claim)
                if claim.stated and not known.stated:
                    found[claim.kind, claim.text] = claim
        if len(found) >= most:
            break
    return tuple(found.values())[:most]


def _aside(text: str) -> frozenset[int]:
    """Lines that show something rather than say it: code, headings."""
    shown = (one for one in blocks(text) if one.kind in ("code", "heading"))
    return frozenset(number for one in shown for number in range(one.line, one.last + 1))


def _of_line(line: str, number: int) -> list[Claim]:
    plain = _URL.sub(" ", line) if "://" in line or "www." in line else line
    coded = [match[2].strip() for match in _CODE.finditer(plain)] if "`" in plain else []
    prose = _CODE.sub(" ", plain) if coded else plain
    out: list[Claim] = []
    for code in coded:
        out += _of_code(code, number)
    out += _of_prose(prose, number)
    out += _commits(plain, number)
    paths = {claim.text for claim in out if claim.kind == "path" and claim.sure}
    if len(paths) != 1:
        return out
    near = paths.pop()
    return [
        Claim(c.kind, c.text, c.line, near, c.sure)
        if c.kind == "symbol" and not c.near and _lies_in(plain, c.text, near)
        else c
        for c in out
    ]


def _lies_in(line: str, symbol: str, path: str) -> bool:
    """Whether a line says that the symbol stands in the file: `x()` in `a.py`, `a.py`: `x()`."""
    named, at = line.find(symbol), line.find(path)
    if named < at:
        return bool(_IN.fullmatch(line[named + len(symbol) : at]))
    return bool(_HAS.fullmatch(line[at + len(path) : named]))


def _of_code(code: str, number: int) -> Iterator[Claim]:
    """What stands in code marks: a name alone, or a command line."""
    words = code.split()
    alone = len(words) == 1
    ours = bool(words) and (alone or _is_path(words[0], coded=True))
    for n, word in enumerate(words):
        for flag in _FLAG.findall(word.partition("=")[0]):
            yield Claim("flag", flag, number, sure=ours)
        bare = word.strip("\"',;:")
        if bare.startswith("-") or (n == 0 and not alone and "/" not in bare):
            continue
        path, _, inside = bare.partition("::")
        path = re.sub(r"(?:[:#]L?\d+(?:-L?\d+)?)+$", "", path)
        if _is_path(path, coded=True):
            yield Claim("path", path, number, sure=_is_sure(path))
            if re.fullmatch(_WORD, inside):
                yield Claim("symbol", inside, number, path)
        elif alone and _is_symbol(bare):
            yield Claim("symbol", bare, number)


def _of_prose(prose: str, number: int) -> Iterator[Claim]:
    for match in _PATH.finditer(prose) if _DOTTED.search(prose) else ():
        path = match[0].rstrip(".")
        if _is_path(path, coded=False):
            yield Claim("path", path, number, sure=_is_sure(path))
    for match in _CALLED.finditer(prose) if "()" in prose else ():
        yield Claim("symbol", f"{match[1]}()", number)
    for match in _JOINED.finditer(prose) if "_" in prose else ():
        yield Claim("symbol", match[1], number)
    for flag in _FLAG.findall(prose) if "--" in prose else ():
        yield Claim("flag", flag, number)


def _commits(line: str, number: int) -> Iterator[Claim]:
    for match in _HASH.finditer(line):
        name = match[1]
        told = bool(_COMMIT.search(line[max(0, match.start() - 20) : match.start()].rstrip("`(")))
        mixed = not name.isdigit() and not name.isalpha()
        if told or (mixed and len(name) in (*range(7, 13), 40)):
            yield Claim("commit", name, number, sure=told or len(name) == 40)


def _is_path(text: str, *, coded: bool) -> bool:
    if not text or re.search(r"[*?{}<>$|\\]", text) or re.fullmatch(r"[./~]+|[\d./]+", text):
        return False
    last = text.rstrip("/").rpartition("/")[2]
    if "/" not in text.rstrip("/"):
        known = bool(_FILE.search(text)) or text in _NAMED
        return (known and len(last) > 3) or (coded and text.endswith("/") and len(text) > 2)
    if coded:
        return bool(re.fullmatch(r"[\w.@+~/-]+", text))
    return bool(_ENDING.search(last)) and len(last) > 2


def _is_sure(path: str) -> bool:
    """Whether it can be nothing but a path of a file or folder."""
    last = path.rstrip("/").rpartition("/")[2]
    return bool(_ENDING.search(last)) or path.endswith("/") or last in _NAMED


def _is_telling(claim: Claim) -> bool:
    """Whether a claim, by its shape and place, can only be about this repository."""
    if not claim.sure or _PLACEHOLDER.search(claim.text):
        return False
    if claim.kind == "path":
        return _is_own_path(claim.text)
    if claim.kind == "symbol":
        return bool(claim.near) or _is_own_name(claim.text)
    return False  # flags belong to other programs, and commits are squashed


def _is_own_path(path: str) -> bool:
    names = path.rstrip("/").split("/")
    if any(_FILE.search(name) for name in names[:-1]):
        return False  # two files, one as good as the other
    if path.endswith("/"):
        return len(names) > 2
    if len(names) == 1:  # a bare name: of code, since others are made while a program runs
        return bool(_SOURCE.search(path)) and path == path.lower() and len(path) > _TELLING
    return bool(_ENDING.search(names[-1])) or names[-1] in _NAMED


_SOURCE = re.compile(r"\.(?:py|pyi|ts|tsx|jsx|go|rs|rb|java|kt|swift|cc?|cpp|hpp?|cs|php|sh|sql)$")
_TELLING = 12


def _is_own_name(symbol: str) -> bool:
    """Whether a name alone is long enough to be the repository's own: `parse_header_line()`."""
    inner = symbol.removesuffix("()")
    plain = not re.search(r"\.|::|#", inner)
    return symbol.endswith("()") and plain and inner.count("_") >= 2 and inner == inner.lower()


def _is_symbol(text: str) -> bool:
    """Whether a word in code marks is a name in code, and no plain word or program."""
    if not _SYMBOL.fullmatch(text) or len(text) < 3:
        return False
    inner = text.removesuffix("()")
    joined = "_" in inner.strip("_") or "." in inner or "::" in inner or "#" in inner
    humps = bool(re.search(r"[a-z0-9][A-Z]", inner))
    return joined or humps or text.endswith("()")


# --- literals


_DENSE = pattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_RUN = pattern(r"[\w./@:~%+#=&?*-]*\w")
_SPELLED = pattern(r"(?<!\w)['\"‘“]([^\s'\"`’”]{1,40})['\"’”]")
_SHAPED = pattern(r"[\d_@]|\w[/.:]\w|/\w|\w/|^--?\w|[a-z][A-Z]")
_NAME = pattern(r"(?<=[a-z\d,;)] )[A-Z][\w-]*[a-z][\w-]*")
_PLAIN = frozenset(("and/or", "e.g", "i.e"))
_CALENDAR = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december
    """.split()  # noqa: SIM905
)
_COUNT = 2
"""Digits up to which a bare number is told by the word beside it alone."""


def find_literals(text: str, *, names: bool = True) -> frozenset[str]:
    """What a text spells out, in small letters: code, a word alone in quotation marks, addresses,
    paths, flags, identifiers, numbers, and with `names` capitalized words inside a sentence. A
    short bare number is taken with the words beside it; days and months are no names."""
    text = _DENSE.sub(" ", text[:MAX_TEXT])
    found = {" ".join(code[2].split()) for code in _CODE.finditer(text)}
    found |= {quoted[1] for quoted in _SPELLED.finditer(text)}
    runs = [run for run in _RUN.findall(text) if run.lower() not in FUNCTION]
    found |= {run for run in runs if _SHAPED.search(run) and not _is_count(run)}
    found |= {" ".join(pair) for pair in pairwise(runs) if any(map(_is_count, pair))}
    if names and not is_german(text):
        found |= {name for name in _NAME.findall(text) if name.lower() not in _CALENDAR}
    return frozenset(literal.lower() for literal in found) - _PLAIN


def _is_count(word: str) -> bool:
    return word.isdigit() and len(word) <= _COUNT
