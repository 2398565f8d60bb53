"""The patterns of secrets: rules for source code made to see one in prose, matched by RE2.

gitleaks wants a quote, a space, a semicolon or an end after most secrets; Markdown puts a
comma, a full stop, a bracket, `**`, `|` or `_` there, and back-ticks between a name and its
value. Each change below widens: whatever a pattern of gitleaks matches, ours does too (but
for the lazy run of letters before a name, which only lengthens the match). What is in `rules`
stays a copy.

Everything is matched in time linear in the text, whatever the text is; that is why it is RE2
and not `re`. Texts are bytes, one for each character (`signs`). It never logs: a line of RE2's own
about a pattern that is too large would end up beside the text on somebody's screen. The
package `google-re2` carries no types; this is the one place that knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from reverie.light import dataclass
from reverie.secrets.names import PARTS, SecretKind, rows, spelt

MatchSpan = tuple[int, int]


class Match(Protocol):
    """Where a pattern and its groups matched; (-1, -1) for a group that took no part."""

    def span(self, group: int = 0) -> MatchSpan: ...


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def groups(self) -> int: ...

    def search(self, text: bytes, pos: int = 0) -> Match | None: ...


class PatternEngineFailed(RuntimeError):
    """RE2 did not answer as it must."""


@cache
def _re2() -> Any:
    return import_module("re2")


def _options(**changed: Any) -> Any:
    options = _re2().Options()
    options.encoding = options.Encoding.LATIN1
    options.log_errors = False
    for name, value in changed.items():
        setattr(options, name, value)
    return options


@cache
def compile_pattern(pattern: str) -> Pattern:
    """The pattern, ready to search; an invalid one raises."""
    return _re2().compile(pattern.encode("latin-1"), _options())


class WordFinder:
    """Finds which of many words stand in a text, in one pass, whatever their case."""

    # Added to every text: where even this is not found, "nothing found" means nothing.
    _CANARY = b"\x01canary\x01"

    def __init__(self, words: Sequence[str]) -> None:
        self._count = len(words)
        self._set = _re2().Set.SearchSet(_options(case_sensitive=False, max_mem=64 << 20))
        for word in (*(word.encode("latin-1") for word in words), self._CANARY):
            self._set.Add(_re2().escape(word))
        self._set.Compile()

    def among(self, text: bytes) -> frozenset[int]:
        """The positions, in the list given, of the words that stand in the text."""
        found: frozenset[int] = frozenset(self._set.Match(text + self._CANARY) or ())
        if self._count not in found:
            raise PatternEngineFailed("RE2 gave up on the keywords")
        return found - {self._count}


def matches(pattern: Pattern, text: bytes, *, again: bool) -> Iterator[Match]:
    """Every match from left to right.

    With `again`, the search goes on inside a match, at its first group: for patterns whose
    value may itself begin with what another value is named by. No part is matched a third time.
    """
    at = reach = 0
    while (found := pattern.search(text, at)) is not None:
        yield found
        start, end = found.span()
        groups = range(1, pattern.groups + 1 if again and start >= reach else 1)
        inner = (first for first, _ in map(found.span, groups) if first > start)
        at = max(next(inner, end), start + 1)
        reach = max(reach, end)


BEFORE_NAME = r"[\w.-]{0,50}?"
AFTER_NAME = r"""[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
AFTER_NAME_IN_GROUP = AFTER_NAME.replace("{0,3}(?:", "{0,3})(?:")
AFTER_SECRET = r"""(?:[\x60'"\s;]|\\[nr]|$)"""

# A name, then a back-tick, bracket or bold; a column of a table; "is" in a sentence.
_NAME_CLOSES = r"""[\s'"\x60*_)\]\\]{0,5}"""
_GIVES = r"(?:=|>|:{1,3}=|\|{1,2}|:|=>|\?=|,|(?:\bis|\bwas)[ \t])"
_VALUE_OPENS = r"""[\x60'"\s=*_(\[<\\]{0,6}"""
# Whatever cannot go on a word; an underscore or dash that ends one.
END = r"(?:[^\w-]|[_-]+(?:[^\w-]|$)|$)"
END_BUT_BASE64 = END.replace(r"[^\w-]|", r"[^\w+/-]|", 1)
# A word's start; also after `_` and after an escape of JSON, whose letter is no word's.
START = r"(?:\b|_|\\[nrt])"

# Changes that one rule alone needs: what stands in the pattern, and what is put there.
_OWN: dict[str, tuple[tuple[str, str], ...]] = {
    "azure-ad-client-secret": (
        (r"""(?:^|[\\'"\x60\s>=:(,)])""", ""),
        (r"""(?:$|[\\'"\x60\s<),])""", END),
    ),
    "curl-auth-header": ((r"(?:\B|\s|\z)", r"(?:\B|\s|_|\z)"),),
    "curl-auth-user": ((r"(?:\s|\z)", r"(?:\W|_|\z)"),),
    # Wider ends must not cut a value short that goes on in the other alphabet.
    "generic-api-key": (
        (
            r"([\w.=-]{10,150}|[a-z0-9][a-z0-9+/]{11,}={0,3})" + AFTER_SECRET,
            rf"(?:([\w.=-]{{10,150}}){END_BUT_BASE64}|([a-z0-9][a-z0-9+/]{{11,}}={{0,3}}){END})",
        ),
    ),
    "kubernetes-secret-yaml": (
        (r"(?:\bkind:", rf"(?:{START}kind:"),
        (
            r"""(?s:.){0,200}?\bkind:[ \t]*["']?\bsecret\b["']?)""",
            r"""(?s:.){0,200}?\bkind:[ \t]*["']?\bsecret(?:\b|_)["']?)""",
        ),
        (r"|\bdata:(?s:.){0,100}?\s+", rf"|{START}data:(?s:.){{0,100}}?\s+"),
    ),
    # A key of `-` at its end has no word boundary there.
    "openai-api-key": ((r"[A-Za-z0-9_-]{58})\b|sk-", r"[A-Za-z0-9_-]{58})|sk-"),),
    "openshift-user-token": ((r"(?:[^\w-]|\z)", END),),
    "perplexity-api-key": ((r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""", END),),
    "sentry-org-token": ((r"(?:[^a-zA-Z0-9+/]|\z)", r"(?:[^a-zA-Z0-9+]|\z)"),),
    "sidekiq-sensitive-url": ((r"(?:[\/|\#|\?|:]|$)", r"(?:[^\w-]|_|$)"),),
    "sourcegraph-access-token": ((r"(\b(sgp_", "((sgp_"), (r"{40})\b)", "{40}))")),
}

TOKEN_FLOOR = 2.5
"""Below it a token is a row of signs that stands for one."""

_PEM = r"(?i)-{4,5} ?BEGIN[ A-Z0-9_-]{0,100}(?:PRIVATE|STATIC) KEY[ A-Z0-9]{0,10} ?-{4,5}"

# Patterns of our own beside those of gitleaks, under the same ids.
_MORE: tuple[tuple[str, str, tuple[str, ...], float], ...] = (
    # A key that is cut off before its last line.
    ("private-key", _PEM + r"(?s:.){0,300}?([A-Za-z0-9+/]{24,})", ("---begin", "--- begin"), 3.0),
)

GITLEAKS = tuple(
    (rule, pattern, tuple(words.split("|")), float(floor))
    for rule, floor, words, pattern in rows("gitleaks")
)
"""Id, pattern, keywords and entropy floor of each rule of gitleaks, as published."""
TOKENS = tuple((rule, pattern, words) for rule, words, pattern in rows("tokens"))
"""Id, pattern, and the words of which one stands in every text that holds such a token."""
_PART = re.compile(r"\{([A-Z_]+)\}")

KEYSTORE = re.compile(r"[^/]\.p(?:12|fx)$", re.IGNORECASE)
"""The one rule that goes by the file's name: `pkcs12-file`."""


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A rule as it is applied."""

    id: str
    pattern: str
    keywords: tuple[str, ...]
    floor: float
    named: bool = False
    """The secret is known by the name before it, not by its own shape."""
    spans_lines: bool = False
    """The pattern itself reaches over line ends; joining lines would only blur it."""
    kind: SecretKind = ""
    """How `own` judges the value; empty for a rule of gitleaks."""


def widen_pattern(rule: str, pattern: str) -> str:
    """The pattern, seeing secrets in prose as well."""
    for old, new in _OWN.get(rule, ()):
        if old not in pattern:
            raise ValueError(f"{rule}: a pattern that is to be widened has changed")
        pattern = pattern.replace(old, new, 1)
    pattern = re.sub(r"(^(?:\(\?i\))?|\|)\\b(?=[(A-Za-z0-9])", lambda m: m[1] + START, pattern)
    pattern = re.sub(r"\\b$", r"(?:\\b|_)", pattern)
    pattern = pattern.replace(BEFORE_NAME, "").replace(AFTER_SECRET, END)
    pattern = pattern.replace(AFTER_NAME, _NAME_CLOSES + _GIVES + _VALUE_OPENS)
    return pattern.replace(AFTER_NAME_IN_GROUP, _NAME_CLOSES + ")" + _GIVES + _VALUE_OPENS)


def _rule(rule: str, pattern: str, keywords: tuple[str, ...], floor: float) -> SecretRule:
    named = AFTER_NAME in pattern or AFTER_NAME_IN_GROUP in pattern
    spans = rule in ("generic-api-key", "kubernetes-secret-yaml", "private-key")
    wide = widen_pattern(rule, pattern)
    return SecretRule(rule, wide, keywords, floor, named, spans or rule.startswith("curl-"))


@cache
def rules() -> tuple[SecretRule, ...]:
    """Every rule that has a pattern."""
    return (*(_rule(*one) for one in (*GITLEAKS, *_MORE)), *_own_rules())


def _own_rules() -> Iterator[SecretRule]:
    for rule, pattern, words in TOKENS:
        whole = f"{START}({pattern}){END}"
        yield SecretRule(rule, whole, tuple(words.split(" ")), TOKEN_FLOOR, kind="token")
    for rule, kind, reach, words, pattern in rows("places"):
        named = kind in ("password", "strict", "key", "beside", "near")
        whole, calls = _filled(pattern), tuple(_filled(words).split(" "))
        yield SecretRule(rule, whole, calls, 0.0, named, reach == "lines", cast("SecretKind", kind))


def _filled(text: str) -> str:
    """A row's text in the bytes of patterns, with the parts that it names."""
    return _PART.sub(lambda found: PARTS[found[1]], spelt(text))


@cache
def keywords() -> tuple[str, ...]:
    """Every keyword of every rule, once, in a fixed order."""
    return tuple(sorted({word for rule in rules() for word in rule.keywords}))
