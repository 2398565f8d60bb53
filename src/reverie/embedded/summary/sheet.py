"""A summary in the making: nine sections, the room that is left, and the user's words in them.

Lines go in while they fit into the share they were given and into the whole; what is not
used stays for what comes later. A name can be put behind a line that stands already.

The user's words are verbatim, and the longest cut first where they are too many. Every message
keeps its beginning and its end; of what is cut the names are kept. Where even that is too much,
the oldest after the first are counted and left out. A cut is always said, with the reference by
which the message can be read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reverie.embedded.summary.salience import QUOTE, WorkDone
from reverie.text.format import plural
from reverie.transcript.audit.names import names_in
from reverie.transcript.names import REFERENCE, reference
from reverie.transcript.sections import SUMMARY

HEADINGS = tuple(f"## {n}. {title}" for n, title in enumerate(SUMMARY, 1))
NAMES = 2  # the section of names that no file gave
BEFORE_NAMES = "·"
SMALLEST = 12  # bytes of room below which nothing more is tried
_EMPTY = 12  # bytes of what stands in an empty section
SHORTEST = 160  # bytes a message keeps, at the least
START = 3 / 4  # of what a cut message keeps, the part that is its beginning
NAMES_SHARE = 1 / 4  # of what a cut message keeps goes to names in what was cut
CUT = "[… {count:,} characters left out{reference}{names}]"
LEFT_OUT = "[{count} of the user left out here]"


def size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


class Sheet:
    """Sections by number, in a room of so many bytes."""

    def __init__(self, room: int) -> None:
        self.limit = room
        self.room = room - sum(size(heading) + _EMPTY for heading in HEADINGS)
        self.sections: dict[int, list[str]] = {n: [] for n in range(1, len(SUMMARY) + 1)}
        self.behind: dict[str, list[str]] = {}  # names, by the line they stand behind

    @property
    def is_full(self) -> bool:
        return self.room < SMALLEST

    def at_most(self, most: int) -> None:
        """From here on there is no more room than this."""
        self.room = min(self.room, most)

    def put(self, section: int, lines: Iterable[str], share: float) -> set[str]:
        """The lines that fit, in order; one that does not, or stands already, is passed over."""
        room = min(self.room, int(self.limit * share))
        placed: set[str] = set()
        for line in lines:
            cost = size(line)
            if cost <= room and line not in self.sections[section]:
                room -= cost
                self.room -= cost
                placed.add(line)
                self.sections[section].append(line)
        return placed

    def put_words(self, section: int, heading: str, words: Sequence[str], share: float) -> None:
        """One line of words, as many as fit."""
        room = min(self.room, int(self.limit * share)) - size(heading)
        shown: list[str] = []
        for word in words:
            room -= size(word)
            if room < 0:
                break
            shown.append(word)
        if shown:
            self.put(section, [" ".join([heading, *shown])], 1.0)

    def extend(self, line: str, name: str) -> None:
        """A name behind a line; without one, among the names of section 2."""
        cost = size(name) + (0 if line in self.behind else size(BEFORE_NAMES))
        if cost <= self.room:
            self.room -= cost
            self.behind.setdefault(line, []).append(name)

    def references(self) -> set[str]:
        every = (line for lines in self.sections.values() for line in lines)
        return {found for line in every for found in REFERENCE.findall(line)}

    def _whole(self, line: str) -> str:
        found = self.behind.get(line)
        return " ".join([line, BEFORE_NAMES, *found]) if found else line

    def text(self, nothing: str) -> str:
        out: list[str] = []
        for number, heading in enumerate(HEADINGS, 1):
            lines = [self._whole(line) for line in self.sections[number]]
            if number == NAMES and "" in self.behind:
                lines.append(" ".join(self.behind[""]))
            out += [heading, *(lines or [nothing])]
        return "\n".join(out)


# The user's words


@dataclass(frozen=True, slots=True)
class UserWords:
    """A message of the user's, and the reference that reads it back, where there is one."""

    text: str
    reference: str = ""


def user_lines(done: WorkDone, room: int) -> list[str]:
    """All user messages, oldest first, within so many bytes: one line of text each."""
    said = [UserWords(text.strip()) for text in done.carried]
    said += [UserWords(p.text.strip(), reference(p.source)) for p in done.user]
    texts = list({words.text: words for words in said if words.text}.values())
    whole = [quoted(words.text) for words in texts]
    sizes = [size(text) for text in whole]
    if sum(sizes) <= room or not texts:
        return whole
    cap = allowed(sizes, room)
    if cap < SHORTEST:
        return _fewer(texts, room)
    return [
        w if n <= cap else shortened(t, cap) for w, n, t in zip(whole, sizes, texts, strict=True)
    ]


def allowed(sizes: Sequence[int], room: int) -> int:
    """The largest size such that all, each cut to it, fit."""
    left = room
    ordered = sorted(sizes)
    for n, one in enumerate(ordered):
        share = left // (len(ordered) - n)
        if one > share:
            return share
        left -= one
    return max(ordered, default=0)


def quoted(text: str) -> str:
    return "\n".join(f"{QUOTE}{line}".rstrip() for line in text.split("\n")) + "\n"


def shortened(words: UserWords, cap: int) -> str:
    """A message cut to about `cap` bytes, its beginning and end kept."""
    text = words.text
    data = text.encode("utf-8", "replace")
    names_room = int(cap * NAMES_SHARE)
    room = max(0, cap - names_room - len(CUT) - text.count("\n", 0, cap) * len(QUOTE))
    start = data[: int(room * START)].decode("utf-8", "ignore")
    end = data[len(data) - (room - int(room * START)) :].decode("utf-8", "ignore")
    middle = text[len(start) : len(text) - len(end)]
    kept = f"{start}\n{end}"
    shown: list[str] = []
    for name in names_in(middle):
        names_room -= size(name)
        if names_room < 0:
            break
        if name not in kept:
            shown.append(name)
    told = "; names in them: " + " ".join(shown) if shown else ""
    known = f": {words.reference}" if words.reference else ""
    cut = CUT.format(count=len(middle), reference=known, names=told)
    return quoted(f"{start}\n{cut}\n{end}")


def _fewer(texts: Sequence[UserWords], room: int) -> list[str]:
    """The first and the newest messages, cut; between them, how many are missing."""
    cut = [quoted(t.text) if size(t.text) < SHORTEST else shortened(t, SHORTEST) for t in texts]
    room -= size(cut[0]) + size(LEFT_OUT) + 8
    newest: list[str] = []
    for text in reversed(cut[1:]):
        room -= size(text)
        if room < 0:
            break
        newest.append(text)
    gone = len(cut) - 1 - len(newest)
    between = [LEFT_OUT.format(count=plural(gone, "message"))] if gone else []
    return [cut[0], *between, *reversed(newest)]
