"""Whether what a pattern found can be a secret.

Three questions: is it random enough for its rule (entropy, strictly above the floor); is it
a placeholder; and, where only a name before it points to it, is it made of words. The allow
lists of gitleaks are kept in spirit: a value is excused as a whole or not at all. A remark
beside a secret (`gitleaks:allow`) excuses nothing, nor does the name of the file, nor a word
like "false" inside it.

What a rule of our own found is judged in `likely`.
"""

from __future__ import annotations

import re

from reverie.light import pattern
from reverie.memory.secrets.likely import entropy, likely
from reverie.memory.secrets.patterns import MatchSpan, SecretRule
from reverie.memory.secrets.worded import worded

_PLACEHOLDER = pattern(
    r"""true|false|null|none|undefined
    | (.)\1{2,}
    | \$\d+ | \$\{?\w+\}? | \$\{\{.*\}\} | \{\{.*\}\} | %\w+% | @\w+@ | \{\w{0,40}\} | <[^<>]*>
    | /(?:bin|etc|home|opt|tmp|usr|var|Users)/[\w ./-]+
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_EXAMPLE = pattern(r".+EXAMPLE", re.DOTALL)
# What is named so is no secret: a column, an index, the public half, a count, a name or path.
_NO_SECRET = pattern(
    r"""(?:bucket|cache|dedup|dict|foreign|hot|idempotency|index|lookup|map|natural|partition
        |primary|pub(?:lic)?|routing|schema|sequence|shard|sort|unique)[ _.-]?keys?\d*\b
    | access(?:ibility|or) | author(?!iz) | api[ _.-]?(?:name|version)
    | key[ _.-]?(?:board|code|frame|id|name|press|ring|stone|stroke|type|word)
    | (?:credentials?|token)[ _.-]?(?:id|count|limit|budget|type)\b
    | (?:auth|key|token)[ _.-]?(?:dir|docs?|endpoint|file|path|url)\b | tokeni[sz]""",
    re.IGNORECASE | re.VERBOSE,
)
# The words and the identifier that stand right before the part of a name that was matched.
_BEFORE = pattern(r"(?:\w{1,20}[ ])?[\w.-]{0,30}\Z")

MOSTLY = 0.7
"""The share of words that excuses what any name of a secret may stand before."""
WHOLLY = 0.9
"""The share that excuses what the name of a product stands before."""

PARTLY = 0.4
"""The share that excuses the name of a function that is called."""

# Their shape alone would fit a word after "Bearer", prose about PEM, or a method (`s.readLine`).
_OPEN = {"curl-auth-header": WHOLLY, "private-key": WHOLLY, "vault-service-token": MOSTLY}


def plausible(rule: SecretRule, text: str, match: MatchSpan, secret: MatchSpan) -> bool:
    """Whether what this rule matched in the text is to be taken for a secret."""
    value = text[slice(*secret)]
    if not value or (rule.floor and entropy(value) <= rule.floor):
        return False
    bare = value.strip("\"'`")
    if _PLACEHOLDER.fullmatch(bare):
        return False
    if rule.kind:
        called = rule.named and text[secret[1] : secret[1] + 1] == "("
        named = rule.kind in ("key", "beside") and _NO_SECRET.search(
            _name(text, match[0], secret[0])
        )
        return not named and not called and likely(rule.kind, bare)
    if rule.id == "aws-access-token":
        return not _EXAMPLE.fullmatch(bare)
    if rule.id == "curl-auth-user":
        return not _stand_in(bare)
    if rule.id == "generic-api-key":
        called = text[secret[1] : secret[1] + 1] == "("
        named = _NO_SECRET.search(_name(text, match[0], secret[0]))
        return not named and not worded(bare, PARTLY if called else MOSTLY)
    if rule.named or rule.id in _OPEN:
        return not worded(bare, _OPEN.get(rule.id, WHOLLY))
    return True


def _name(text: str, start: int, end: int) -> str:
    """What the value is called: the match up to it, and what belongs to that before it."""
    before = _BEFORE.search(text[max(0, start - 60) : start])
    return (before[0] if before else "") + text[start:end]


_STAND_INS = pattern(
    r"change(?:it|me)|pass(?:word|wd)?|pwd|secret|token|test|user(?:name)?|example|x+|\*+|\.+",
    re.IGNORECASE,
)


def _stand_in(pair: str) -> bool:
    """Whether the second half of `user:password` only says what should stand there."""
    password = pair.partition(":")[2].strip("\"'")
    whole = _STAND_INS.fullmatch(password) or _PLACEHOLDER.fullmatch(password)
    return bool(whole) or (password.startswith("[") and password.endswith("]"))
