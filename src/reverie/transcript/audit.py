"""What must survive a compaction, and whether it did.

The audit of a compaction: does what must survive survive?

What must: the user's words and what in them binds, the paths and identifiers that are
likely to be needed again, the errors that were met, the tasks still open. It survives where
the context has it word for word, or a reference in the context reads it back. What does not
goes into a bounded keep-list, the likeliest to be needed first. Nothing is made up: every
line of the list is quoted from the messages that go. Pure, and linear in their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from reverie.light import dataclass, pattern
from reverie.settings.catalog import DEFAULTS
from reverie.transcript.blocks import TEXT_BYTES, Json, Object, estimate
from reverie.transcript.mentions import (
    REFERENCE,
    NameUse,
    TextPart,
    parts,
    rank_names,
    readable,
    reference,
    trouble,
)
from reverie.transcript.messages import Item, SentBlock
from reverie.transcript.records import UserMessage
from reverie.transcript.view import View

SurvivorKind: TypeAlias = Literal["constraint", "path", "identifier", "error", "task", "user"]
NAMES = 60  # names of each of the two kinds that must survive
ERRORS = 8  # the newest errors
USER_WHOLE = 800  # characters of a user's message that must survive whole
USER_START = 300  # of a longer one: its beginning
QUOTED = 400  # characters of one line of the keep-list
REFERENCES_SHARE = 4  # at most this part of the keep-list goes to references
INTRO = "Kept from the messages above, word for word, since the summary does not have it:"
READER = "ReadBack"
REST = "`{reader}` gives these calls whole:"
TITLES: dict[SurvivorKind, str] = {
    "constraint": "The user's conditions",
    "user": "The user said",
    "task": "Open tasks",
    "error": "Errors met",
    "path": "Paths",
    "identifier": "Names",
}
# What binds: forbidding, demanding, preferring and correcting words.
BINDING = pattern(
    r"\b(?:never|always|must(?:n't)?|do not|don't|dont|only|without|instead|make sure|ensure|"
    r"should(?:n't)?|cannot|can't|avoid|keep|prefer|at (?:most|least)|no longer|not allowed|"
    r"required?|important|remember|careful)\b|不要|不能|不得|必须|务必|只能|只用|一定|禁止|别|总是|"
    r"始终|避免|确保|保持|记住|注意",
    re.IGNORECASE,
)
_SENTENCE = pattern(r"[^\n.!?。！？]+(?:[.!?](?!\s|$)[^\n.!?。！？]*)*[.!?。！？]?")
_QUOTED = pattern(r"(?m)^(?:>[ \t]?|user:[ \t]?)")
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class MustSurvive:
    """Something that must survive, and the message it comes from."""

    kind: SurvivorKind
    text: str
    message: str
    readers: tuple[str, ...] = field(default=(), compare=False)  # ids whose reference reads it


@dataclass(frozen=True, slots=True)
class Audit:
    """What came of it. `fidelity` is the share that survives with the keep-list."""

    fidelity: float = 1.0
    missing: tuple[MustSurvive, ...] = ()  # neither in the context nor by a reference in it
    keep: str = ""  # to append to the summary; empty where it has everything
    unaided: float = 1.0  # the share without the keep-list
    held: int = 0  # how many things had to survive
    lost: tuple[MustSurvive, ...] = ()  # of the missing, what the keep-list has no room for


def _find_survivors(found: Sequence[TextPart]) -> tuple[MustSurvive, ...]:
    out = [*_user(found), *_tasks(found), *_errors(found), *_names(found)]
    return tuple({(one.kind, one.text): one for one in out}.values())


def audit_replacement(
    gone: Sequence[Item],
    context: str | Sequence[str],
    *,
    keep_tokens: int = DEFAULTS.compact_keep_list_tokens,
    reader: str = READER,
) -> Audit:
    """What of `gone` the context still has, and a keep-list of what it has not. `reader` is the
    tool that takes references; without one they keep nothing."""
    found = parts(gone)
    must = _find_survivors(found)
    texts = [context] if isinstance(context, str) else list(context)
    stood = _Context(texts, cites=bool(reader))
    missing = tuple(one for one in must if not stood.has(one))
    calls = [part for part in found if part.who == "call"] if reader else []
    keep = _keep(missing, calls, stood, keep_tokens, REST.format(reader=reader))
    kept = _Context([keep], cites=bool(reader))
    lost = tuple(one for one in missing if not kept.has(one))
    shares = _share(len(lost), must), _share(len(missing), must)
    return Audit(shares[0], missing, keep, shares[1], len(must), lost)


def with_earlier_words(view: View, gone: Sequence[Item]) -> list[Item]:
    """What goes, with the user's own messages that older summaries in it stand for: a second
    summary must not lose what the first one kept."""
    covered = frozenset[str]().union(*(item.covers for item in gone))
    places = sorted(at for ident in covered if (at := view.entries.place(ident)) is not None)
    earlier: list[Item] = []
    for entry in (view.entries[at] for at in places):
        record = entry.record
        if isinstance(record, UserMessage) and record.origin == "user":
            pieces = tuple(SentBlock(b, entry.id, n) for n, b in enumerate(record.blocks))
            earlier.append(Item(entry.id, "user", pieces))
    return [*earlier, *gone]


def _share(missing: int, must: Sequence[MustSurvive]) -> float:
    return round(1 - missing / len(must), 4) if must else 1.0


# --- what must survive


def _user(found: Sequence[TextPart]) -> Iterator[MustSurvive]:
    """The user's words, newest first, and the sentences in them that bind."""
    mine = [p for p in found if p.who == "user" and not p.media]
    for part in reversed(mine):
        text = part.text.strip()
        if len(text) >= _SHORTEST:
            kept = text if len(text) <= USER_WHOLE else text[:USER_START]
            yield MustSurvive("user", kept, part.source, (part.reader,))
    for part in reversed(mine):
        for sentence in binding(part.text):
            reached = sentence in readable(part.text)
            yield MustSurvive(
                "constraint", sentence, part.source, (part.reader,) if reached else ()
            )


def binding(text: str) -> list[str]:
    """The sentences of a user's text that demand, forbid or correct something."""
    found = (m.group().strip() for m in _SENTENCE.finditer(text))
    return [s[:QUOTED] for s in found if len(s) >= _SHORTEST and BINDING.search(s)]


def _tasks(found: Sequence[TextPart]) -> Iterator[MustSurvive]:
    for task in open_tasks(found):
        yield MustSurvive("task", task.text, task.source, task.calls)


def _errors(found: Sequence[TextPart]) -> Iterator[MustSurvive]:
    """The newest errors, newest first, by the line that says what went wrong."""
    failed = [p for p in found if p.who == "error" and p.call]
    for part in failed[: -ERRORS - 1 : -1]:
        line = trouble(part.text)[:QUOTED]
        if len(line) >= _SHORTEST:
            reached = line in " ".join(readable(part.text).split())
            yield MustSurvive("error", line, part.source, (part.call,) if reached else ())


def _names(found: Sequence[TextPart]) -> Iterator[MustSurvive]:
    every = rank_names(found)
    for name in _first(every, is_path=True):
        yield MustSurvive("path", name.text, name.source, tuple(name.readers))
    for name in _first(every, is_path=False):
        yield MustSurvive("identifier", name.text, name.source, tuple(name.readers))


def _first(every: Iterable[NameUse], *, is_path: bool) -> list[NameUse]:
    return [name for name in every if name.is_path is is_path][:NAMES]


# --- whether it does


class _Context:
    """What a context says, and which references it has."""

    def __init__(self, texts: Sequence[str], *, cites: bool) -> None:
        whole = "\n".join(texts)
        self.text = _plain(whole)
        self.references = set(REFERENCE.findall(whole)) if cites else set[str]()

    def here(self, one: MustSurvive) -> bool:
        return _plain(one.text) in self.text

    def has(self, one: MustSurvive) -> bool:
        return any(reference(c) in self.references for c in one.readers) or self.here(one)


def _plain(text: str) -> str:
    """Without the line ends and marks that quoting may change."""
    return " ".join(_QUOTED.sub("", text).split())


# --- the keep-list


def _keep(
    missing: Sequence[MustSurvive],
    calls: Sequence[TextPart],
    stood: _Context,
    tokens: int,
    rest: str,
) -> str:
    """The missing, by kind, within a budget; then calls by reference, for all the rest."""
    whole = tokens * TEXT_BYTES
    shares = whole - whole // REFERENCES_SHARE if calls else whole
    lines, left = _survivor_lines(missing, shares - _size(INTRO))
    out = [INTRO, *lines] if lines else []
    wanted = {one.readers[-1] for one in left if one.readers}
    spare = whole - sum(map(_size, out))
    references = _references(calls, wanted, stood, spare - _size(rest))
    out += [rest, *references] if references else []
    text = "\n".join(out)
    return text if estimate(text) <= tokens else ""


def _size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


def _survivor_lines(
    missing: Sequence[MustSurvive], room: int
) -> tuple[list[str], list[MustSurvive]]:
    """Lines by kind while they fit, and what did not."""
    shown: dict[SurvivorKind, list[str]] = {}
    left: list[MustSurvive] = []
    for kind, title in TITLES.items():
        for one in (one for one in missing if one.kind == kind):
            line = _line(one)
            cost = _size(line) + (0 if kind in shown else _size(title) + 1)
            if cost > room:
                left.append(one)
            else:
                room -= cost
                shown.setdefault(kind, []).append(line)
    said = "\n".join(shown.get("user", ()))
    bound = [line for line in shown.pop("constraint", ()) if line[2:] not in said]
    if bound:  # said once: a condition is often a whole message
        shown = {"constraint": bound, **shown}
    out: list[str] = []
    for kind, lines in shown.items():
        joined = " " if kind == "identifier" else "\n"
        out += [f"{TITLES[kind]}:", joined.join(lines)]
    return out, left


def _line(one: MustSurvive) -> str:
    if one.kind in ("path", "identifier"):
        return one.text
    return "- " + one.text[:QUOTED].replace("\n", "\n  ")


def _references(
    calls: Sequence[TextPart], wanted: set[str], stood: _Context, room: int
) -> list[str]:
    """References that the context has not, by what their calls were about: those wanted
    first, then the newest."""
    newest = list(calls)[::-1]
    ordered = sorted(newest, key=lambda part: part.call not in wanted)
    groups: dict[str, list[str]] = {}
    for part in ordered:
        name = reference(part.call)
        if name in stood.references:
            continue
        about = part.path.rpartition("/")[2] or part.tool
        room -= len(name) + 1 + (0 if about in groups else _size(about) + 3)
        if room < 0:
            break
        groups.setdefault(about, []).append(name)
    return [f"- {about}: {' '.join(found)}" for about, found in groups.items()]


# --- Which tasks of a conversation are still open, read from the calls that kept a list.
#
# Lists are known by their shape, not by a tool's name: members with a status that are given whole
# each time, or tasks made one by one and updated by number. Boxes that the assistant or the user
# left unticked count where no tool keeps a list. Only what is written is told.


DONE = frozenset(
    {"completed", "complete", "done", "cancelled", "canceled", "deleted", "closed", "skipped"}
)
WORDS = ("content", "subject", "step", "title", "text", "task", "description")
NUMBERS = ("taskId", "task_id", "id")
LONGEST = 300  # characters of one task
_NUMBER = re.compile(r"#(\d{1,9})")
_BOX = re.compile(r"(?m)^[ \t]{0,12}[-*+][ \t]+\[([ xX])\][ \t]+(.{3,300})$")


@dataclass(frozen=True, slots=True)
class OpenTask:
    """One task on a list."""

    text: str
    status: str
    source: str
    calls: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.status.lower() in DONE


def open_tasks(found: Sequence[TextPart]) -> list[OpenTask]:
    """Tasks not done yet, those in hand first."""
    listed = {**_numbered_tasks(found), **_whole(found)}
    tasks = list(listed.values()) if listed else list(_boxes(found))
    left = [task for task in tasks if not task.is_done]
    return sorted(left, key=lambda task: task.status.lower() in ("pending", "open", ""))


def _whole(found: Sequence[TextPart]) -> dict[str, OpenTask]:
    """The newest list that was given whole."""
    for part in reversed(found):
        if part.who == "call" and isinstance(part.input, dict):
            for value in part.input.values():
                tasks = list(_tasks_from_list(value, part))
                if tasks:
                    return {f"list {n}": task for n, task in enumerate(tasks)}
    return {}


def _tasks_from_list(value: Json, part: TextPart) -> Iterator[OpenTask]:
    for member in value if isinstance(value, list) else ():
        if not isinstance(member, dict) or not isinstance(member.get("status"), str):
            return
        text = _words(member)
        if text:
            yield OpenTask(text, str(member["status"]), part.source, (part.call,))


def _words(value: Object) -> str:
    texts = (value.get(key) for key in WORDS)
    found = next((t for t in texts if isinstance(t, str) and t.strip()), "")
    return " ".join(found.split())[:LONGEST]


def _numbered_tasks(found: Sequence[TextPart]) -> dict[str, OpenTask]:
    """Tasks that were made one by one: a result names their number, later calls their status."""
    out: dict[str, OpenTask] = {}
    asked: dict[str, TextPart] = {}
    for part in found:
        if part.who == "call":
            asked[part.call] = part
            number, status = _status_update(part)
            if number in out:
                task = out[number]
                out[number] = replace(task, status=status, calls=(*task.calls, part.call))
        elif part.who == "result" and part.call in asked:
            made = asked[part.call]
            number = _NUMBER.search(part.text[:200]) if made.given("subject") else None
            if number and isinstance(made.input, dict):
                out[number[1]] = OpenTask(_words(made.input), "pending", made.source, (made.call,))
    return out


def _status_update(part: TextPart) -> tuple[str, str]:
    given = part.input if isinstance(part.input, dict) else {}
    number = next((str(given[key]) for key in NUMBERS if isinstance(given.get(key), str | int)), "")
    return (number, part.given("status")) if part.given("status") else ("", "")


def _boxes(found: Sequence[TextPart]) -> Iterator[OpenTask]:
    """Boxes of the newest text that has any."""
    for part in reversed(found):
        if part.who in ("assistant", "user", "stand"):
            boxes = _BOX.findall(part.text)
            for mark, text in boxes:
                yield OpenTask(
                    text.strip(), "completed" if mark.strip() else "pending", part.source
                )
            if boxes:
                return
