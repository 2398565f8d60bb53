"""How a rule that was written for source code is made to see a secret in prose.

gitleaks wants a quote, a space, a semicolon or an end after most secrets; Markdown puts a
comma, a full stop, a bracket, `**`, `|` or `_` there, and back-ticks between a name and its
value. Each change below widens: whatever a pattern of gitleaks matches, ours does too (but
for the lazy run of letters before a name, which only lengthens the match). What is in `rules`
stays a copy. Nothing here sees a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from reverie.memory.secrets.own import PLACES, SPANS_LINES, TOKENS, SecretKind
from reverie.memory.secrets.rules import GITLEAKS

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

_PEM = r"(?i)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"

# Patterns of our own beside those of gitleaks, under the same ids.
_MORE: tuple[tuple[str, str, tuple[str, ...], float], ...] = (
    # A key that is cut off before its last line.
    ("private-key", _PEM + r"(?s:.){0,300}?([A-Za-z0-9+/]{24,})", ("-----begin",), 3.5),
)

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


def widened(rule: str, pattern: str) -> str:
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
    wide = widened(rule, pattern)
    return SecretRule(rule, wide, keywords, floor, named, spans or rule.startswith("curl-"))


@cache
def rules() -> tuple[SecretRule, ...]:
    """Every rule that has a pattern."""
    return (*(_rule(*one) for one in (*GITLEAKS, *_MORE)), *_own_rules())


def _own_rules() -> Iterator[SecretRule]:
    for rule, pattern, words in TOKENS:
        whole = f"{START}({pattern}){END}"
        yield SecretRule(rule, whole, tuple(words.split(" ")), TOKEN_FLOOR, kind="token")
    for rule, pattern, words, kind in PLACES:
        spans = rule in SPANS_LINES
        named = kind in ("password", "strict")
        yield SecretRule(rule, pattern, tuple(words.split(" ")), 0.0, named, spans, kind)


@cache
def keywords() -> tuple[str, ...]:
    """Every keyword of every rule, once, in a fixed order."""
    return tuple(sorted({word for rule in rules() for word in rule.keywords}))
