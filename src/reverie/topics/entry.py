"""A topic file: one memory, as bytes and as what they say.

The bytes are the truth. An entry reads them as Markdown with frontmatter, also in the form
Claude Code gives it (`type` below `metadata`), and changes them one value at a time; what it
does not know it keeps. A type outside the closed set loads as untyped. Words that become a
memory get their name and type here: taken from the words, none added.

Nothing here reads a file, and an entry that was cut short when it was read is never written.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias, cast

from reverie.errors import InvalidInput
from reverie.light import dataclass, pattern
from reverie.text.safety import strip, whole
from reverie.topics import frontmatter
from reverie.topics.frontmatter import BOM, Frontmatter, Names
from reverie.topics.index import shorten

Type: TypeAlias = Literal["user", "feedback", "project", "reference"]

TYPES: tuple[Type, ...] = ("user", "feedback", "project", "reference")
UNTYPED = ""
INDEX = "MEMORY.md"
TEAM = "team"
LOGS = "logs"
MAX_READ = 1024 * 1024
"""Bytes of a topic file that are read; a longer one is shown cut."""

_TYPED: dict[str, Type] = {name: name for name in TYPES}
_HEADING = pattern(r"[ ]{0,3}#{1,6}[ \t]+(\S.*)")
_WORD = pattern(r"[^\W_]+")
_DEVICE = pattern(r"con|prn|aux|nul|com\d|lpt\d", re.IGNORECASE)
_STEM = 60


TRUST, UNVERIFIED = "trust", "unverified"
"""What the head of a memory says that does not rest on the user's word."""
FROM = "from"
"""The key by which a draft names the user's sentence that it rests on; no saved file has it."""
SUPERSEDED, STILL_CURRENT = "superseded", "no"
"""The key that names the newer rule in a memory's place, and what a person sets it to who wants the
older one to hold as well."""


@dataclass(frozen=True, slots=True)
class TopicFile:
    """One topic file. `modified` is in seconds; `size` that of the whole file."""

    key: str
    data: bytes
    modified: float = 0.0
    size: int = -1

    @property
    def front(self) -> Frontmatter:
        return frontmatter.parse_frontmatter(self.data)

    @property
    def is_cut(self) -> bool:
        return self.size > len(self.data)

    @property
    def note(self) -> str:
        """What whoever is shown the entry has to be told about it, or ""."""
        if self.is_cut:
            return f"only the first {len(self.data):,} of {self.size:,} bytes are shown"
        return self.front.fault

    @property
    def name(self) -> str:
        return self.front.get("name") or stem(self.key)

    @property
    def description(self) -> str:
        return self.front.get("description")

    @property
    def type(self) -> Type | Literal[""]:
        return type_of(self.front)

    @property
    def is_unverified(self) -> bool:
        """Whether its head says that nobody has confirmed it: it has no pointer until then."""
        return self.front.get(TRUST) == UNVERIFIED

    @property
    def superseded(self) -> str:
        """The file of the newer rule that holds in its place, or ""."""
        return superseded_by(self.front)

    @property
    def fault(self) -> str:
        """Why the frontmatter was not read as such, or ""."""
        return self.front.fault

    @property
    def text(self) -> str:
        """The whole file to show; bytes that are no text are replaced, in what is shown alone."""
        return decode_text(self.data)

    @property
    def body(self) -> str:
        return decode_text(self.data[self.front.body :]).lstrip("\r\n")

    @property
    def title(self) -> str:
        """What an index line calls it: its name, or its first heading where it has none."""
        if self.front.get("name"):
            return " ".join(self.name.split())
        found = map(_HEADING.match, self.body[:4096].splitlines())
        heading = next(filter(None, found), None)
        return heading[1].rstrip("# \t") or self.name if heading else self.name

    def with_value(self, value: str, *names: str) -> TopicFile:
        """The entry with one key of its frontmatter set; all other bytes stay."""
        self._must_be_whole()
        where = names
        if names == ("type",) and self.front.find("metadata", "type") is not None:
            where = ("metadata", "type")
        return self._with(frontmatter.edit(self.data, where, value))

    def without_value(self, name: str) -> TopicFile:
        """The entry without one key of its frontmatter; all other bytes stay."""
        return self._with(frontmatter.remove(self.data, name))

    def with_body(self, body: str) -> TopicFile:
        """The entry with another body behind the same frontmatter."""
        self._must_be_whole()
        at = self.front.body
        end = frontmatter.newline(self.data)
        gap = end if self.front.present else b""
        text = whole(body.strip("\r\n").replace("\r\n", "\n")).encode()
        return self._with(self.data[:at] + gap + text.replace(b"\n", end) + end)

    def _with(self, data: bytes) -> TopicFile:
        return TopicFile(self.key, data, self.modified)

    def _must_be_whole(self) -> None:
        if self.is_cut:
            raise InvalidInput(
                f"The file has {self.size:,} bytes, and only {len(self.data):,} were read",
                where=self.key,
                do="Split it into smaller files",
            )


def new(key: str, *, name: str, description: str, type: str, body: str) -> TopicFile:  # noqa: A002
    """A new topic file, in the form that Reverie and Claude Code both read."""
    if type not in _TYPED:
        raise InvalidInput(
            "There is no such type of memory", where=type[:80], do=f"Use {', '.join(TYPES)}"
        )
    one_line = " ".join(description.split())
    fields = {"name": " ".join(name.split()), "description": one_line, "type": type}
    rows = [f"{key}: {frontmatter.scalar(value)}" for key, value in fields.items()]
    text = "\n".join(("---", *rows, "---", "", body.strip("\r\n"), ""))
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("The memory is not valid Unicode", where=key) from None
    entry = TopicFile(key, data)
    if entry.front.fault or entry.description != one_line:
        raise InvalidInput(
            "The name or description is too long", where=key, do="Move detail into the body"
        )
    return entry


def type_of(front: Frontmatter) -> Type | Literal[""]:
    """The type as either form gives it; one that is not known is none."""
    for names in cast("tuple[Names, ...]", (("type",), ("metadata", "type"))):
        found = _TYPED.get(front.get(*names).strip().lower())
        if found is not None:
            return found
    return UNTYPED


def superseded_by(front: Frontmatter) -> str:
    """The file of the newer rule that a head names, or ""."""
    named = front.get(SUPERSEDED)
    return "" if named == STILL_CURRENT else named


def decode_text(data: bytes) -> str:
    """Bytes as text to look at: a BOM's encoding is honoured, and what is no text replaced."""
    for mark, encoding in _ENCODINGS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


_ENCODINGS = (
    (BOM, "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


# Keys


def stem(key: str) -> str:
    """A file's name without folders and ending."""
    name = key.rpartition("/")[2]
    return name[:-3] if name.lower().endswith(".md") else name


def is_index(key: str) -> bool:
    return key.rpartition("/")[2].casefold() == INDEX.casefold()


def is_topic(key: str) -> bool:
    """Whether a key below the memory folder names a memory: no index, no daily log."""
    first, slash, _ = key.partition("/")
    logged = bool(slash) and first.casefold() == LOGS
    return key.lower().endswith(".md") and not is_index(key) and not logged


def index_of(key: str) -> str:
    """The index that has the pointer to a file: the team's own for what lies below `team/`."""
    return f"{TEAM}/{INDEX}" if key.startswith(f"{TEAM}/") else INDEX


def key_for(name: str, type: str = "", taken: frozenset[str] = frozenset()) -> str:  # noqa: A002
    """A file name made from a memory's name, in any script, that nobody has yet."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    words = _WORD.findall(strip(unicodedata.normalize("NFKC", folded)))
    base = "_".join(filter(None, (type, *words)))[:_STEM].strip("_") or "memory"
    if _DEVICE.fullmatch(base):
        base = f"memory_{base}"
    known = {unicodedata.normalize("NFC", key).casefold() for key in taken}
    number = 1
    key = f"{base}.md"
    while key.casefold() in known:
        number += 1
        key = f"{base}_{number}.md"
    return key


_NAME_WORDS = 8
_NAME = 60
_PERSON = pattern(
    r"\b(?:I am|I'm|my (?:role|name|job|team)|I (?:work|like|know|use|prefer)|the user)\b"
    r"|我(?:是|叫|的)|用户",
    re.IGNORECASE,
)
_RULE = pattern(
    r"\b(?:always|never|don'?t|do not|prefer|avoid|instead of|stop)\b|(?:总是|不要|别|务必|偏好)",
    re.IGNORECASE,
)
_MARKS = pattern(r"[`*#>\[\]]+|(?<!\w)_+|_+(?!\w)")
_LINK = pattern(r"https?://\S+")
_CUT = ("…", "...")
_OPENING = re.compile(r"\A[#>*\-\s]+")
_STOP = re.compile(r"[.!?](?=\s)|[。！？]")
_SUMMARY = 140


def title_of(text: str) -> str:
    """The first words of a text, without marks; a word is cut only where it is the first."""
    first = next((line for line in _MARKS.sub("", text).splitlines() if line.strip(" \t-")), "")
    words = first.lstrip(" \t-").split()[:_NAME_WORDS]
    while len(words) > 1 and len(" ".join(words)) > _NAME:
        words.pop()
    return " ".join(words)[:_NAME].strip(" .,:;-—。，：；") or "memory"


def summary_of(text: str) -> str:
    """One line that says what a memory is about: its first sentence."""
    one = " ".join(_OPENING.sub("", text).split())
    end = _STOP.search(one[:_SUMMARY])
    return one[: end.end()] if end else shorten(one, _SUMMARY)


def sort_of(text: str) -> str:
    """The type that fits best; project where nothing tells."""
    if _RULE.search(text):
        return "feedback"
    if _PERSON.search(text):
        return "user"
    return "reference" if _LINK.search(text) else "project"


def is_cut(text: str) -> bool:
    """Whether a name or description ends where there was no more room."""
    return text.rstrip().endswith(_CUT)


def uncut(text: str) -> str:
    """The words that are left of it."""
    return text.rstrip(" \t\n….") if is_cut(text) else text
