"""Finds and removes secrets; reports rule and line, never the value.

Looks for secrets, and says where: the rule and the line, never the value.

What it is given is read as it stands, without hidden characters, with each line joined to the
next, and with up to two encodings undone. The work is bounded by the size of the text times a
constant, whatever the text; `ScanStats` counts it. Anything that goes wrong inside ends as
`ScanFailed`, which a caller must take for a refusal, and nothing that was looked at is part
of it. It reads no file, clock or setting, and keeps nothing.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NewType

from reverie.errors import ScanFailed, SecretFound
from reverie.light import dataclass
from reverie.secrets.normalization import TextView, join_lines, plain, undo_encodings
from reverie.secrets.patterns import (
    KEYSTORE,
    Match,
    MatchSpan,
    Pattern,
    SecretRule,
    WordFinder,
    compile_pattern,
    keywords,
    matches,
    rules,
)
from reverie.secrets.plausibility import plausible, words

DEPTH = 2
"""How many encodings are undone, one inside the other."""

ALIKE = 6
"""So many letters and digits in a row that a name has in common with a text are made from it."""

Scanned = NewType("Scanned", bytes)
"""Bytes that were looked at and found clean: what may be sent is of this type."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class SecretHit:
    """A secret of this rule begins in this line, from 1; line 0 is the file's name."""

    rule: str
    line: int


@dataclass(slots=True)
class ScanStats:
    """What a scan did: texts read, patterns run over one, bytes they ran over, and matches."""

    views: int = 0
    passes: int = 0
    bytes: int = 0
    matches: int = 0


def scan(data: bytes | str, name: str = "", work: ScanStats | None = None) -> tuple[SecretHit, ...]:
    """Every secret in the text and in its name, by line and rule."""
    try:
        return _scan(data, name, work or ScanStats())
    except Exception as error:  # noqa: BLE001 - whatever broke, the text must not pass
        kind = type(error).__name__
    # Outside the handler: the error above may hold the text, and must not hang on to this one.
    raise ScanFailed(
        f"The text could not be searched for secrets ({kind})",
        do="It is treated as if it held one; see that google-re2 is installed",
    )


def check_clean(data: bytes | bytearray | memoryview | str, name: str = "") -> Scanned:
    """The very bytes that were searched; `SecretFound` where there is something to find."""
    own = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    if hits := scan(own, name):
        raise secret_error(hits, tellable(name, own))
    return Scanned(own)


def tellable(name: str, data: bytes | str) -> str:
    """The name of a text that holds a secret, or nothing where it may be made from that text:
    names of memories are made from their first words."""
    text = _letters(data if isinstance(data, str) else _text(data))
    stem = _letters(name.rpartition("/")[2].partition(".")[0])
    parts = (stem[at : at + ALIKE] for at in range(len(stem) - ALIKE + 1))
    return "" if any(part in text for part in parts) else name


def _letters(text: str) -> str:
    """Its letters and digits, whatever their case."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def secret_error(hits: tuple[SecretHit, ...], name: str = "") -> SecretFound:
    """The error that names the hits; a name that itself holds a secret is not repeated."""
    places = [f"{hit.rule} in {f'line {hit.line}' if hit.line else 'its name'}" for hit in hits]
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return SecretFound(
        f"It looks as if this held a secret: {', '.join(places[:5])}{more}",
        where="" if any(not hit.line for hit in hits) else name,
        do="Take the secret out; say instead where it is kept",
    )


# -- the search ----------------------------------------------------------------------


def _scan(data: bytes | str, name: str, work: ScanStats) -> tuple[SecretHit, ...]:
    text = (data if isinstance(data, str) else _text(data)).replace("\r\n", "\n")
    hits = {SecretHit(rule, 0) for rule, _ in _search(name, work)} if name else set[SecretHit]()
    if KEYSTORE.search(name):
        hits.add(SecretHit("pkcs12-file", 0))
    hits |= {SecretHit(rule, line) for rule, line in _search(text.replace("\r", "\n"), work)}
    return tuple(sorted(_named_once(hits), key=lambda hit: (hit.line, hit.rule)))


def _named_once(hits: set[SecretHit]) -> set[SecretHit]:
    """Without the rules of our own in lines where one of gitleaks names a secret."""
    own = {rule.id for rule in rules() if rule.kind}
    named = {hit.line for hit in hits if hit.rule not in own}
    return {hit for hit in hits if hit.rule not in own or hit.line not in named}


def _text(data: bytes) -> str:
    """Bytes as text; whatever is not text stands as a sign that is in no secret."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def _search(text: str, work: ScanStats) -> Iterator[tuple[str, int]]:
    for view in _views(TextView(text)):
        for rule, secret in spans(view, work):
            yield rule, view.line(secret[0])


def spans(view: TextView, work: ScanStats) -> Iterator[tuple[str, MatchSpan]]:
    """Each secret that one reading of a text shows: the rule, and where in it."""
    work.views += 1
    for rule, pattern in _candidate_rules(view.raw):
        if view.joined and rule.spans_lines:
            continue
        work.passes += 1
        work.bytes += len(view.raw)
        for match in matches(pattern, view.raw, again=rule.named):
            work.matches += 1
            for secret in _secrets(rule, match, pattern, view.text):
                if plausible(rule, view.text, match.span(), secret):
                    yield rule.id, secret


def _views(text: TextView) -> Iterator[TextView]:
    """The text, every other way to read it, and what is encoded in each."""
    bases = [text, *_some(plain(text))]
    for base in tuple(bases):
        bases.extend(join_lines(base))
    yield from bases
    for _ in range(DEPTH):
        bases = [inner for base in bases for inner in undo_encodings(base)]
        yield from bases


def _some(view: TextView | None) -> tuple[TextView, ...]:
    return () if view is None else (view,)


def _secrets(rule: SecretRule, match: Match, pattern: Pattern, text: str) -> Iterable[MatchSpan]:
    """What may be the secret: of a stretch near its name every word."""
    secret = _secret(match, pattern)
    return words(text, *secret) if rule.kind == "near" else (secret,)


def _secret(match: Match, pattern: Pattern) -> MatchSpan:
    """Where the secret is: the longest group, or the whole match where there is none."""
    spans = [match.span(group) for group in range(1, pattern.groups + 1)]
    return max(spans, key=lambda span: span[1] - span[0], default=match.span())


# -- the rules that a text calls for -------------------------------------------------


@cache
def _words() -> WordFinder:
    return WordFinder(keywords())


@cache
def _by_keyword() -> tuple[tuple[int, ...], ...]:
    """For each keyword the rules that it calls for, by number."""
    called: dict[str, list[int]] = {word: [] for word in keywords()}
    for number, rule in enumerate(rules()):
        for word in dict.fromkeys(rule.keywords):
            called[word].append(number)
    return tuple(map(tuple, called.values()))


def _candidate_rules(raw: bytes) -> Iterator[tuple[SecretRule, Pattern]]:
    """The rules of which a keyword stands in the text, whatever its case."""
    numbers = {number for word in _words().among(raw) for number in _by_keyword()[word]}
    for number in sorted(numbers):
        rule = rules()[number]
        yield rule, compile_pattern(rule.pattern)


# --- A text without its secrets, for what must go on though it holds one: a summary, a report.
#
# What stands there in plain sight is replaced by a mark that names the rule; where that leaves
# something, because it was disguised or on two lines, whole lines go. What comes back was searched
# and is clean, and a clean text comes back as it was. It raises `ScanFailed` where it cannot tell.


TRIES = 8
LONGEST = 2_000  # characters of an address before the secret in it
_OPENS = re.compile(r"[\s\"'`<>()\[\]{},;]")
_ENDS = re.compile(r"[\s\"'`<>|]")
_ESCAPED = re.compile(r"\\[nrt\"]")
_TRAILING = ".,;:)]}*_\\"
_QUOTES = "\"'`"
QUOTED = 200  # characters between two quotes
# Rules that find the first line of a block, and the lines that go on with it.
_BLOCKS = ("private-key", "putty-key")
_KEY_LINE = re.compile(r"[ \t>|#*]*(?:[A-Za-z0-9+/=_\\-]+|[A-Z][\w-]{2,20}: ?[^\s:]+)[ \t]*")
_LAST_LINE = re.compile(r"[ \t>|#*]*-{4,5} ?END\b.*")


def remove_secrets(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a mark in place of each secret, and the rules that found one."""
    hits = scan(text)
    if not hits:
        return text, ()
    rules = tuple(dict.fromkeys(hit.rule for hit in hits))
    text = _without_spans(text.replace("\r\n", "\n").replace("\r", "\n"))
    for _ in range(TRIES):
        hits = scan(text)
        if not hits:
            return text, rules
        text = _without_lines(text, hits)
    return mark(rules[0]), rules


def mark(rule: str) -> str:
    return f"[secret removed: {rule}]"


def _without_spans(text: str) -> str:
    shown = spans(TextView(text), ScanStats())
    found = sorted((*_whole(text, rule, *secret), rule) for rule, secret in shown)
    parts: list[str] = []
    done = 0
    for start, end, rule in found:
        if start >= done:
            parts += (text[done:start], mark(rule))
        done = max(done, end)
    return "".join((*parts, text[done:]))


def _whole(text: str, rule: str, start: int, end: int) -> tuple[int, int]:
    """The secret with what hangs on behind it; of an address that holds one the whole address, but
    for a login, which is told from its host; of a key every line."""
    low = max(0, start - LONGEST)
    first = max((found.end() for found in _OPENS.finditer(text, low, start)), default=low)
    if rule in _BLOCKS:
        return start, _end_of_key(text, _end_of_word(text, end))
    last = max(end, _end_of_quote(text, start, end), _bare_end(text, end))
    scheme, _, rest = text[first:last].partition("://")
    if rest and scheme.isalnum() and "@" not in rest.partition("/")[0]:
        return first, last
    return start, last


def _end_of_word(text: str, end: int) -> int:
    behind = _ENDS.search(text, end)
    return behind.start() if behind else len(text)


def _bare_end(text: str, end: int) -> int:
    """Where the word ends, without what follows an escape, and without stops and brackets."""
    word = text[end : _end_of_word(text, end)]
    escape = _ESCAPED.search(word)
    return end + len(word[: escape.start() if escape else None].rstrip(_TRAILING))


def _end_of_quote(text: str, start: int, end: int) -> int:
    """Where the quote ends in which it stands, if it does so in the same line."""
    if not start or text[start - 1] not in _QUOTES:
        return end
    line = text[end : end + QUOTED].partition("\n")[0]
    return end + max(0, line.find(text[start - 1]))


def _end_of_key(text: str, end: int) -> int:
    """The end of the block's last line, given that of its first."""
    while end < len(text) and text[end] == "\n":
        after = text.find("\n", end + 1)
        stop = after if after >= 0 else len(text)
        line = text[end + 1 : stop]
        if _LAST_LINE.fullmatch(line):
            return stop
        if not _KEY_LINE.fullmatch(line):
            break
        end = stop
    return end


def _without_lines(text: str, hits: tuple[SecretHit, ...]) -> str:
    """Without the lines in which a secret begins, and those after them."""
    rules = {hit.line: hit.rule for hit in hits}
    rows = text.split("\n")
    for line, rule in rules.items():
        rows[line - 1] = mark(rule)
        if line < len(rows) and line + 1 not in rules:
            rows[line] = ""
    return "\n".join(rows)
