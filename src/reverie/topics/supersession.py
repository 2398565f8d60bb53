"""Which older rule a newer one replaces: both name the same slot, with another value.

A slot is a relation and a noun phrase, to the word: "function arguments start with …", "use … for
the tests". A number or id is a word of the phrase like any other, so "Room 3" and "Room 5" are two
slots. Nothing is replaced where a text says *also* or *another*, where the two hold in different
places ("in Go files"), where one forbids, where a text has several values or rules, or where a
value is one of several by its words ("port 8080", "the east gate"). In doubt, both hold. English,
German, French, Spanish, Chinese and Japanese. Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from reverie.light import dataclass, pattern
from reverie.text.cues import read_table
from reverie.text.stems import stem
from reverie.topics.entry import TopicFile
from reverie.topics.novelty import negates

MAX_TEXT = 600
"""Characters of a memory that is one rule; a longer one says more than that."""
MAX_SUBJECT = 6
MAX_VALUE = 4

_QUOTE = r"['\"`‘’“”„«»「『]"
_AFFIX = (
    rf"{_QUOTE}{{1,2}}(?P<v>@?[\w.-]{{1,24}}){_QUOTE}{{1,2}}"
    r"|(?P<w>[A-Za-z]{1,8}_|_[A-Za-z]{1,8})(?!\w)"
)
_PARTS = {
    "{s}": r"(?P<s>[^,.;:!?()'\"`“”]{2,60}?)",
    "{v}": r"(?P<v>[^,.;:!?()]{1,40}?)",
    "{a}": r"(?:(?:an?|the|la|le|el|das|die|den) )?(?:letters? |string |prefix |suffix )?"
    rf"(?:{_AFFIX})",
    "{end}": r"(?=[,.;:!?()]|\s+(?:instead|from now|going forward|please|because|since|so that"
    r"|and not)\b|$)",
}
"""What stands for the parts of a frame in `data/slots.tsv`."""


def _pattern(text: str) -> re.Pattern[str]:
    return pattern(text, re.IGNORECASE)


_MORE = _pattern(
    r"\b(?:also|too|as well|additional(?:ly)?|in addition|another|others?|besides|plus|extra"
    r"|alternativel?y?|either|second|auch|außerdem|zusätzlich\w*|weiter\w*|ander\w*|ebenfalls"
    r"|aussi|également|en plus|autres?|también|tambien|además|ademas|otr[oa]s?)\b"
    r"|也|还|還|另外|另一|此外|同时|もう|また|さらに|別の|他の|(?<![とで])も"
)
_INSTEAD = _pattern(
    r"\b(?:instead of|rather than|in place of|no longer|and not|not|statt|anstatt|anstelle|nicht"
    r"|au lieu d[eu']|plutôt que|et non|en vez de|en lugar de|y no)\b.*|而不是.*|ではなく.*"
)
_CONDITIONS = _pattern(
    r"\b(?:where|wherever|while|when|whenever|if|unless|wo|wenn|où|quand|donde|cuando)\s+"
    r"([^,.;:!?()]{2,60})"
)
_PLACES = _pattern(
    r"\b(?:in|for|on|within|inside|under|when|whenever|if|unless|during|at|of|by|except|until"
    r"|für|bei|wenn|pour|dans|quand|si|para|cuando)\s+(?:(?:the|our|all|your|my|any|every|this"
    r"|die|der|das|den|le|la|les|el|los|las)\s+)*([\w.+#-]+(?:\s+[\w.+#-]{1,3}\b)?)"
)
_LASTING = _pattern(
    r"\b(?:from (?:now|here|today) on(?:wards?)?|(?:going|moving) forward|in (?:the )?future)\b,?"
)
_EVERYWHERE = frozenset(
    """future now code coding codebase project projects repo repository names mind general order
    here today consistency readability clarity them it""".split()  # noqa: SIM905
)
_EMPTY = frozenset(
    """a an the all our your my any every each of please always must should shall will name names to
    be make sure that you we i want need have has do ensure remember new der die das den alle alles
    immer bitte le la les tous toutes toujours el los las todos todas siempre and or like would only
    now from on use start using""".split()  # noqa: SIM905
)
_COUNTED = _pattern(r"\w[\w-]*\s+#?\d+\b|\b\d+(?:st|nd|rd|th)\b")
_END = _pattern(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n")
_SEVERAL = _pattern(r"\b(?:and|or|und|oder|et|ou|y|o)\b|[,/&]|和|或|、")


@dataclass(frozen=True, slots=True)
class RuleSlot:
    """What a rule decides: the relation, the words of the noun phrase, and where it holds."""

    relation: str
    subject: tuple[str, ...]
    places: frozenset[str] = frozenset()


def supersedes(newer: TopicFile, older: TopicFile) -> bool:
    """Whether a memory gives the one slot that an older one decides another value. Of two that
    have one name the descriptions count, however the bodies word it."""
    alike = newer.name == older.name
    new, old = _slots(newer, named=alike), _slots(older, named=alike)
    if len(old) != 1:
        return False
    ((slot, values),) = old.items()
    now = new.get(slot, frozenset())
    if len(values) != 1 or len(now) != 1:
        return False
    (was,), (is_now,) = values, now
    if slot.relation == "use" and was.endswith("s") and is_now.endswith("s"):
        return {was, is_now} == {"tabs", "spaces"}  # "retries" and "timeouts" may hold together
    return not frozenset(was.split()) & frozenset(is_now.split())  # "room one", "room two"


def subject_words(memory: TopicFile) -> frozenset[str]:
    """The words of the noun phrases that a memory decides something about; none where it is no
    such rule."""
    found = {**_slots(memory), **_slots(memory, named=True)}
    return frozenset(word for slot in found for word in slot.subject)


def _slots(memory: TopicFile, *, named: bool = False) -> dict[RuleSlot, frozenset[str]]:
    """The slots that a memory decides, each with its values: those of its description, where its
    body gives no other value, or those of its body. None where it says *also*."""
    body = "" if named else memory.body.strip()
    if len(body) > MAX_TEXT or _MORE.search(f"{memory.description}\n{body}"):
        return {}
    told, stated = _stated(body), _stated(memory.description[:MAX_TEXT])
    values = frozenset[str]().union(*stated.values())
    if stated and all(found <= values for found in told.values()):
        return stated
    return told if not stated else {**told, **stated}


def _stated(text: str) -> dict[RuleSlot, frozenset[str]]:
    found: dict[RuleSlot, frozenset[str]] = {}
    for sentence in _END.split(text):
        for slot, value in _read(_LASTING.sub("", _INSTEAD.sub("", sentence))):
            found[slot] = found.get(slot, frozenset()) | {value}
    return found


@functools.cache
def frames() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The relations, and how a sentence states one."""
    found: list[tuple[str, re.Pattern[str]]] = []
    for row in read_table("reverie.topics", "slots.tsv"):
        frame = row["frame"]
        for name, part in _PARTS.items():
            frame = frame.replace(name, part)
        found.append((row["relation"], re.compile(frame, re.IGNORECASE)))
    return tuple(found)


def _read(sentence: str) -> Iterator[tuple[RuleSlot, str]]:
    taken: list[tuple[int, int]] = []
    for relation, frame in frames():
        for match in frame.finditer(sentence):
            if any(low < match.end() and match.start() < high for low, high in taken):
                continue
            given = match.groupdict()
            value = (given.get("v") or given.get("w") or "").strip(" '\"`“”").casefold()
            subject = _words(match["s"])
            if not _is_plain(relation, value, subject) or negates(sentence[: match.end()]):
                continue
            taken.append(match.span())
            outside = sentence[: match.start("s")], sentence[match.end() :]
            found = (word for part in outside for word in _PLACES.findall(part))
            where = {stem(word.lower()) for word in found}
            where |= {one.lower() for part in outside for one in _CONDITIONS.findall(part)}
            places = frozenset(where - _EVERYWHERE - {value, *subject})
            name = f"{relation} {given.get('unit') or ''}".strip()
            yield RuleSlot(name, subject, places), value


def _is_plain(relation: str, value: str, subject: tuple[str, ...]) -> bool:
    """Whether a value is one thing that may be replaced, and the subject names something."""
    if not value or not subject or len(subject) > MAX_SUBJECT:
        return False
    if relation != "use":
        return True
    words = value.split()
    return len(words) <= MAX_VALUE and not _COUNTED.search(value) and not _SEVERAL.search(value)


def _words(phrase: str) -> tuple[str, ...]:
    """The words of a noun phrase that tell it from others, numbers and ids among them."""
    words = re.findall(r"[\w#@+.-]*\w", phrase.lower().replace("’s", "").replace("'s", ""))
    return tuple(stem(word) for word in words if word not in _EMPTY)
