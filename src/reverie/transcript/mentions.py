"""Names a model could not guess, and how likely each is needed again.

Names a model could not guess: paths, identifiers, flags, hashes.

They are what a later step is likely to repeat, so previews and sealed lines carry them.
Linear in the text, and bounded: only its first and last parts are looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

from reverie.light import dataclass
from reverie.settings.catalog import DEFAULTS
from reverie.transcript.blocks import Block, Json, Object
from reverie.transcript.messages import HEAD, INTERRUPTED, Item, SentBlock
from reverie.transcript.records import Role
from reverie.transcript.tasks import SUMMARY

SHORTEST = 8
LONGEST = 400
LOOKED_AT = 12_000  # characters of a text that are counted
_INSIDE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
_SPACED = bytes([byte if byte in _INSIDE else ord(" ") for byte in range(256)])
_LONG = re.compile(rf" ([^ ]{{{SHORTEST - 1},}}[A-Za-z0-9_])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T_-]?[\dZ.-]*)")  # a date, with or without a time
_COLORS = re.compile(r"\x1b\[[\d;]*m")
_LEADING = "./-"  # of a path, a flag, a bullet
_POINTS = str.maketrans("", "", ".-/")  # inside numbers
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [_ALPHABET[n & 31] + _ALPHABET[n >> 5] for n in range(1024)]
REFERENCE = re.compile(r"r:[0-9a-hjkmnp-tv-z]{6}")


def names(text: str) -> Counter[str]:
    """The telling words of a text without what leads them, and how often each occurs."""
    found = Counter[str]()
    for word, times in _count_words(text).items():
        name = word.lstrip(_LEADING)
        if SHORTEST <= len(name) <= LONGEST and not _plain(name):
            found[name] += times
    return found


def _count_words(text: str) -> Counter[str]:
    if len(text) > LOOKED_AT:
        foot = LOOKED_AT // 3
        text = text[: LOOKED_AT - foot] + "\n" + text[-foot:]
    return Counter(_words(text))


def _words(text: str) -> list[str]:
    """Its long words, without what stands behind them. All between words becomes a space
    first, so that the pattern begins to match once a word, not at each of its letters."""
    if "\x1b" in text:
        text = _COLORS.sub(" ", text)
    spaced = text.encode("utf-8", "replace").translate(_SPACED).decode()
    return _LONG.findall(" " + spaced)


@lru_cache(maxsize=5_000)
def _plain(word: str) -> bool:
    """Whether prose could hold it: no mixed case, no joined words, no letters with digits. A
    number or a time is no name either."""
    word = word.lstrip(_LEADING)
    if word.isalpha():
        return word.islower() or word.isupper() or word[1:].islower()
    if not word[0].isdigit():
        return word in _OURS
    return _TIME.fullmatch(word) is not None or word.translate(_POINTS).isdigit()


def outline(text: str, limit: int, without: str = "") -> str:
    """The most frequent telling words, within `limit` characters, leaving out known ones."""
    out: list[str] = []
    for name, _ in _count_words(text).most_common():
        if len(name) < limit and not _plain(name) and name not in without:
            out.append(name)
            limit -= len(name) + 1
            if limit <= SHORTEST:
                break
    return " ".join(out)


def first_names(text: str, limit: int, looked_at: int, said: set[str], line: str = "") -> list[str]:
    """The telling words that a text's beginning has for the first time, the most frequent first,
    within `limit` characters: none in `said`, nor inside another one or `line`, where they go."""
    out: list[str] = []
    for word, _ in Counter(_words(text[:looked_at])).most_common():
        name = _LINE.sub(r"\1", word) if "-" in word else word
        if name not in said and len(name) < limit and not (_plain(name) or name in line):
            out.append(name)
            said.add(name)
            line += " " + name
            limit -= len(name) + 1
            if limit <= SHORTEST:
                break
    return out


@lru_cache(maxsize=2_000)
def reference(call: str) -> str:
    """A short name for a tool call, by which its result can be read back."""
    number = int.from_bytes(blake2b(call.encode("utf-8", "surrogatepass"), digest_size=4).digest())
    low, middle, high = number & 1023, number >> 10 & 1023, number >> 20 & 1023
    return f"r:{_PAIRS[low]}{_PAIRS[middle]}{_PAIRS[high]}"


def part_reference(first: str) -> str:
    """A short name for a part of a conversation, by its first message: the rounds from there on."""
    return reference(f"{first}+")


def round_text(who: str, blocks: Sequence[Block], stored: Mapping[str, str] | None = None) -> str:
    """A message as it is read back among others: each block under what it is, a call with its
    reference. `stored` has results that are kept elsewhere, by call."""
    out: list[str] = []
    for block in blocks:
        if block.type == "tool_use":
            out.append(f"[call {reference(block.call)}] {block.get('name')} {block.text}")
        elif block.type == "tool_result":
            text = (stored or {}).get(block.call, block.text)
            out.append(f"[result {reference(block.call)}]\n{text}")
        elif not block.thinking:
            out.append(f"[{who}]\n{block.text}" if block.type == "text" else f"[{block.type}]")
    return "\n".join(out)


# --- How likely each name of a conversation is to be needed again.
#
# A name scores for every part it stands in: more where the user said it or a call used it than
# where a tool printed it, and half as much for each fifth of the conversation that has passed
# since. A part counts once however often it repeats the name, so that a long listing does not
# drown what was worked on. Signs of our own, ids that a provider gave, places in memory and drawn
# rules are no names. Linear in the text, the same for the same words.


WEIGHTS: Mapping[Who, float] = MappingProxyType(
    {"user": 4.0, "call": 4.0, "stand": 4.0, "assistant": 1.0, "result": 0.3, "error": 0.3}
)
HALVED = 0.2  # of the conversation: a name last seen so long ago counts half
SUFFIX = 4  # letters of a file's suffix, at most
NAMES_LONGEST = 300  # characters of a name; what is longer is data
# Characters that one reference surely reads back: the rest is for the lines' numbers.
READABLE = int(DEFAULTS.collapse_reference * DEFAULTS.text_bytes_per_token * 0.8)
_NAMES_INSIDE = re.compile(r"[A-Za-z0-9_./-]")
_OURS = frozenset(  # tags that frame what we attach, and what stands in a result's place
    {"persisted-output", "system-reminder", "restored-file", "conversation-summary"}
)
_STORED = "/tool-results/"
_MADE_UP = re.compile(  # ids that providers and clients give, and places in memory
    r"(?:srv)?toolu_(?=\w*\d)\w+|(?:call|msg|req|resp|chatcmpl)[_-](?=\w*\d)[A-Za-z0-9]{12,}"
    r"|0x[0-9a-fA-F]{6,16}"
)
_LINE = re.compile(r"(\.[A-Za-z]\w{0,4})-\d+(?:-.*)?$")  # a file's name with a line of a listing


@dataclass(slots=True)
class NameUse:
    """A name and where it stands."""

    text: str
    score: float = 0.0
    source: str = ""  # the last entry it stands in
    readers: list[str] = field(default_factory=list[str])  # ids whose reference reads it back

    @property
    def is_path(self) -> bool:
        return "/" in self.text


def rank_names(found: Sequence[TextPart]) -> list[NameUse]:
    """The names of a conversation, the likeliest to be needed first."""
    known: dict[str, NameUse] = {}
    last = found[-1].at if found else 0
    first = found[0].at if found else 0
    half = max(1.0, HALVED * (last - first + 1))
    for part in found:
        weight = WEIGHTS.get(part.who, 0.0)
        if not weight:
            continue
        gain = weight * 0.5 ** ((last - part.at) / half)
        every = names_in(part.text)
        reached = set(_reachable_names(part, every))
        for text in every:
            name = known.get(text)
            if name is None:
                name = known[text] = NameUse(text)
            name.score += gain
            name.source = part.source
            if text in reached and part.reader not in name.readers[-1:]:
                name.readers.append(part.reader)
    return sorted(known.values(), key=lambda name: (-name.score, name.text))


def _reachable_names(part: TextPart, every: list[str]) -> list[str]:
    """The names of a part that a reference to it reads back."""
    if not part.reader:
        return []
    return every if len(part.text) <= READABLE else names_in(readable(part.text))


def readable(text: str) -> str:
    """What of a text its reference surely reads back at once."""
    return text[:READABLE]


def names_in(text: str) -> list[str]:
    """The telling words of a text, each once, in the order they stand. Of words joined by
    dots the parts count, but for a file's name."""
    out: dict[str, None] = {}
    for at in range(0, len(text), LOOKED_AT):
        here = text[at : at + LOOKED_AT]
        for found in names(here):
            if len(found) > NAMES_LONGEST or is_junk(found):
                continue
            word = _LINE.sub(r"\1", found)
            if "/" in word:
                out[_with_root_slash(word, here)] = None
            elif "." not in word or _is_file(word):
                out[word] = None
            else:
                out.update((part, None) for one in word.split(".") for part in names(one))
    return list(out)


def is_junk(word: str) -> bool:
    """Whether a word is nobody's: a sign of ours, an id, a place in memory, a drawn rule."""
    if word in _OURS or _STORED in word or _MADE_UP.fullmatch(word):
        return True
    return not any(sign.isalnum() for sign in word)


def _with_root_slash(word: str, text: str) -> str:
    """A path with the slash it begins with, if it does."""
    at = text.find(word)
    begins = at >= 1 and text[at - 1] == "/" and (at == 1 or not _NAMES_INSIDE.match(text[at - 2]))
    return f"/{word}" if begins else word


def _is_file(word: str) -> bool:
    stem, _, suffix = word.rpartition(".")
    return "." not in stem and len(suffix) <= SUFFIX and suffix.islower()


# --- A conversation as parts: whose words, in which message, of which call.
#
# A part is one block's text with the one who wrote it: the user, the assistant, a call, its
# result, an error, what stands for older messages, or something attached. Items and the messages
# of a request are read the same way. Linear in the text; nothing is judged here.


Who: TypeAlias = Literal["user", "assistant", "call", "result", "error", "stand", "attached"]
PATH_KEYS = ("file_path", "path", "notebook_path")
REMINDER = "<system-reminder>"
STANDS = 3  # references or known headings in a user's text that make it a stand-in of ours
HEADINGS = (
    *(title.lower() for title in SUMMARY),
    *("files and code sections", "session title", "current state", "task specification"),
    *("files and functions", "workflow", "errors & corrections", "learnings", "key results"),
    *("codebase and system documentation", "worklog"),
)
_HEADING = re.compile(r"(?m)^[ \t]{0,3}(?:#{1,6}[ \t]+|\*\*)?(?:\d{1,2}[.)][ \t]+)?([^\n]{4,40})$")
_TROUBLE = re.compile(
    r"(?m)^.{0,200}?(?:\b(?:[A-Z]\w{0,40})?(?:Error|Exception)\b|\berror:|\bpanic:|\bfatal:"
    r"|\bFAIL(?:ED)?\b|\bTraceback\b|\bundefined:|\bcannot find\b|\bno such file\b"
    r"|\bpermission denied\b|\bcommand not found\b).{0,300}$"
)
_TELLING = re.compile(  # in what is known to have failed: a place in a file, or a word for it
    r"(?mi)^(?:\S+:\d+(?::\d+)?:? .{1,300}|.{0,200}?\b(?:error|fail(?:ed|ure)?|cannot|unknown"
    r"|invalid|conflict|not found|undefined|refused|denied)\b.{0,300})$"
)
_EXIT = re.compile(r"\bexit(?:ed with)? (?:code|status):?[ \t]{0,3}(-?\d{1,9})", re.IGNORECASE)
_OPENING = re.compile(r"\b(?:summary|notes)\b", re.IGNORECASE)
_OPENING_LOOKED_AT = 400  # characters in which a stand-in says what it is
_AT_END = 6_000  # characters of a result in which a failure is looked for


class SpokenMessage(Protocol):
    """An item of a view, or a message of a request."""

    @property
    def role(self) -> Role: ...

    @property
    def pieces(self) -> tuple[SentBlock, ...]: ...


@dataclass(frozen=True, slots=True)
class TextPart:
    """The words of one block."""

    who: Who
    text: str
    source: str  # the entry it comes from
    at: int  # the number of its message
    call: str = ""  # the call's id, of a call or a result
    tool: str = ""
    input: Json = None
    media: bool = False

    @property
    def reader(self) -> str:
        """The id whose reference reads it back: its call's, or a user's message's own."""
        return self.call or (self.source if self.who == "user" else "")

    def given(self, key: str) -> str:
        """A member of a call's input that is a string."""
        found = self.input.get(key) if isinstance(self.input, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def path(self) -> str:
        """The file or folder a call names."""
        return next((p for key in PATH_KEYS if (p := self.given(key))), "")


def parts(spoken: Iterable[SpokenMessage]) -> list[TextPart]:
    """All words of some items or messages, in order; thinking and the head are left out."""
    out: list[TextPart] = []
    made: dict[str, TextPart] = {}
    for at, one in enumerate(spoken):
        kind = one.kind if isinstance(one, Item) else ""
        for piece in one.pieces:
            if piece.source == HEAD:
                continue
            found = _part(piece, one.role, kind, at, made)
            if found is not None:
                out.append(found)
    return out


def _part(
    piece: SentBlock, role: Role, kind: str, at: int, made: dict[str, TextPart]
) -> TextPart | None:
    block, source = piece.block, piece.source
    match block.type:
        case "text":
            return (
                None
                if block.blank
                else TextPart(_writer(block, role, kind), block.text, source, at)
            )
        case "tool_use":
            call = block.call
            words = given_words(block.value.get("input"))
            found = TextPart("call", words, source, at, call, block.get("name"), _input(block))
            made.setdefault(call, found)
            return found
        case "tool_result":
            call = block.call
            asked = made.get(call)
            if block.text == INTERRUPTED:
                return None
            who: Who = "error" if is_failure(block) else "result"
            tool, given = (asked.tool, asked.input) if asked else ("", None)
            return TextPart(who, block.text, source, at, call, tool, given)
        case "image" | "document":
            return TextPart(_writer(block, role, kind), f"[{block.type}]", source, at, media=True)
        case _:
            return None


def _input(block: Block) -> Object:
    found = block.value.get("input")
    return found if isinstance(found, dict) else {}


def _writer(block: Block, role: Role, kind: str) -> Who:
    if kind == "replaced":
        return "stand"
    if role == "assistant":
        return "assistant"
    text = block.get("text")
    if kind in ("attached", "synthetic") or text.lstrip()[: len(REMINDER)] == REMINDER:
        return "attached"
    return "stand" if not kind and stands_for_others(text) else "user"


def stands_for_others(text: str) -> bool:
    """Whether a text in the user's place is a summary, notes or sealed lines. A request does
    not say so, and an item does: its kind."""
    if len(list(islice(REFERENCE.finditer(text), STANDS))) == STANDS:
        return True
    if not _OPENING.search(text[:_OPENING_LOOKED_AT]):
        return False
    titles = {m[1].strip(" *:#\t").lower() for m in _HEADING.finditer(text)}
    return len(titles.intersection(HEADINGS)) >= STANDS


def given_words(value: Json) -> str:
    """The texts and numbers in a call's input, line by line."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(filter(None, map(given_words, value.values())))
    if isinstance(value, list):
        return "\n".join(filter(None, map(given_words, value)))
    return "" if value is None or isinstance(value, bool) else str(value)


# --- failures


def exit_code(text: str) -> int:
    """The exit code that a result tells at one of its ends; 0 where it tells none."""
    ends = text if len(text) <= 800 else f"{text[:400]}\n{text[-400:]}"
    found = _EXIT.search(ends) if "exit" in ends.lower() else None
    return int(found[1]) if found is not None else 0


def is_failure(block: Block) -> bool:
    """Whether a result says that its call failed: by its flag, or by its exit code."""
    return block.value.get("is_error") is True or exit_code(block.text) != 0


def error_lines(text: str, looked_at: int = _AT_END, *, failed: bool = False) -> list[str]:
    """The lines at a text's end that name an error: those that say more than that, if any do. Of
    what is known to have `failed` also those that only look like it, where there are no others."""
    end = text[-looked_at:]
    every = [m.group().strip() for m in _TROUBLE.finditer(end)]
    if failed and not every:
        every = [m.group().strip() for m in _TELLING.finditer(end)]
    return [line for line in every if len(line.split()) > 1] or every


def trouble(text: str) -> str:
    """The line of a failed result that says what went wrong: the last one that names an
    error, or the first line with words."""
    lines = error_lines(text)[-1:] or [t for t in text[:_AT_END].splitlines() if t.strip()][:1]
    return " ".join(lines[0].split()) if lines else ""
