"""Layer 5, the choices: when a turn is looked through for memories, from where, with which words.

Pure functions of a view and what is handed in. The cursor is the newest `Extracted` whose
message is still in the conversation: after a rewind that is an earlier one, after a compaction
the summary counts as new where it stands for messages that were never looked at. So nothing is
passed over, and at worst something is seen twice. Running the fork, and what becomes of what it
writes, is the session's part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files

from reverie.light import dataclass
from reverie.session.recall.selection import spoken_text
from reverie.session.recall.selection import words as count_words
from reverie.text.safety import neutralize_markup
from reverie.topics.manifest import ManifestLine
from reverie.topics.novelty import content
from reverie.transcript.blocks import elements, text_of
from reverie.transcript.messages import Item, SentBlock
from reverie.transcript.records import (
    AssistantMessage,
    Attached,
    Entry,
    Extracted,
    TurnEnded,
    UserMessage,
    is_typed,
)
from reverie.transcript.view import View, head_blocks
from reverie.world import World

NAME = "extract_memories"
WRITERS = ("Edit", "Write", "MultiEdit")
REMEMBERING = ("Remember", "Forget")
PASTED = "paste"
"""Why a message stands for itself with its two ends alone."""
NOTHING_THERE = "None yet."
WHOLE = "Only its newest {count} messages are new: save nothing that only earlier ones say."
ABRIDGED = "The user's words are complete. The agent's are shortened, results of tools left out."
FOLLOW = "The index, `MEMORY.md`, is updated for you."
NO_POINTERS = "There is no index: a memory is found by its description and body."
NO_DATES = "The day on which the user spoke is not known."
MAX_TOLD = 200
"""Characters by which a call of the main agent is told."""
MAX_DATES = 40
"""Messages whose dates are told one by one."""
LEAST_WORDS = 6
"""Words, by Unicode's segmentation, from which a message is worth a call."""
LOOKED_BACK = 20
"""Records in which the words are found that the first of the user's may answer."""
LOOKED_AT = 20_000
"""Characters of a message that are compared with what it answers."""
# What a short message says where it is meant for later too, in the languages most often met. One
# that is missed is not lost: it is looked at with what comes next, or at the session's end.
_LASTING = re.compile(
    r"\b(?:remember|memori[sz]e|keep in mind|note(?= that|:)|from now on|going forward|always|never"
    r"|merke?|denk dran|ab (?:jetzt|sofort)|künftig|immer|nie|niemals"
    r"|recuerda|acuérdate|a partir de ahora|siempre|nunca|jamás"
    r"|souviens|retiens|rappelle-toi|désormais|dorénavant|toujours|jamais"
    r"|lembra|lembre|a partir de agora|sempre|ricorda|ricordati|d'ora in poi|mai"
    r"|onthoud|voortaan|altijd|nooit|pamiętaj|zapamiętaj|od teraz|zawsze|nigdy"
    r"|запомни|помни|отныне|впредь|всегда|никогда|запам.ятай|відтепер|завжди|ніколи"
    r"|unutma|hatırla|bundan sonra|her zaman|asla)\b"
    r"|记住|記住|记得|記得|以后|以後|今后|今後|从现在|從現在|总是|總是|永远|永遠|一律|不要再"
    r"|覚えて|これから|いつも|必ず|決して|기억|앞으로|항상|절대"
    r"|تذكر|من الآن|دائما|أبدا|याद रख|हमेशा|कभी",
    re.IGNORECASE,
)


# --- when


def why_not_due(view: View, world: World, *, has_memory: bool, interactive: bool) -> str:
    """Why no extraction is due, or "" where one is; asked in the order of SPEC §7."""
    off = world.settings.memory_off()
    gates: tuple[tuple[bool, str], ...] = (
        (not off and has_memory, off or "there is no memory folder"),
        (bool(world.flags.get("extract_memories")), "extract_memories is off"),
        (not world.flags.get("daily_log"), "the daily log is kept instead"),
        (_is_main(view), "it is not the main agent"),
        (
            interactive or bool(world.flags.get("extract_noninteractive")),
            "nobody is there, and extract_noninteractive is off",
        ),
        (turns_since(view, every(world)) >= every(world), "it is not this turn's turn"),
    )
    return next((why for opened, why in gates if not opened), "")


def _is_main(view: View) -> bool:
    return not view.is_fork and (view.started is None or view.started.source == "main")


def tools(view: View) -> frozenset[str]:
    """The names of the tools that the model was told of."""
    found = [] if view.head is None else elements(view.head.tools)
    return frozenset(str(value.get("name")) for _, value in found if isinstance(value, dict))


def every(world: World) -> int:
    found = world.flags.get("extract_every")
    return found if isinstance(found, int) and not isinstance(found, bool) else 1


def turns_since(view: View, most: int) -> int:
    """Turns that ended since the last extraction, as far as `most` of them."""
    count = 0
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, Extracted) or count >= most:
            break
        count += isinstance(record, TurnEnded)
    return count


def asks_now(view: View, *, last: bool = False) -> bool:
    """Whether what the user said since the last look is worth a call. What is not is joined to
    what comes next: to a turn that is, to a compaction, or at the `last` (an idle pause, the
    session's end) to whatever there is, since a bare yes may confirm what the agent asked."""
    seen = view.entries.place(view.extracted.last) if view.extracted else None
    since = 0 if seen is None else seen + 1
    compacted = view.entries.place(view.boundary) if view.boundary else None
    words = _said_since(view, since)
    if last or (compacted is not None and compacted >= since):
        return any(words)
    return any(map(_is_worth, words))


def _said_since(view: View, start: int) -> Iterator[UserText]:
    """What the user wrote from an entry on, also where lines stand for it by now."""
    before = ""
    for entry in view.entries.since(max(0, start - LOOKED_BACK)):
        record = entry.record
        if isinstance(record, AssistantMessage):
            before = text_of([b.value for b in record.blocks if b.type == "text"]) or before
        elif isinstance(record, UserMessage) and (view.entries.place(entry.id) or 0) >= start:
            text = spoken_text(record)
            if text:
                yield UserText(entry.id, text, entry.at, before)


def _is_worth(said: UserText) -> bool:
    """Whether a message says enough, or is short and plainly meant for later too."""
    if count_words(said.text, LEAST_WORDS) >= LEAST_WORDS:
        return _adds(said)
    return _LASTING.search(said.text) is not None


def _adds(said: UserText) -> bool:
    """Whether a message says more than an approval or a pick: it has words of its own, more than
    one that what it answers does not have."""
    new = content(said.text[:LOOKED_AT]) - content(said.before[-LOOKED_AT:])
    return sum(not word.isdigit() for word in new) > 1


def skips_index(world: World) -> bool:
    """Whether saves leave the pointer out: by flag, and only where recall finds the files."""
    return bool(world.flags.get("skip_index")) and bool(world.flags.get("recall"))


# --- from where


@dataclass(frozen=True, slots=True)
class NewMessages:
    """What came since the last look: `since` is the last message seen, `last` the newest."""

    since: str
    last: str
    items: tuple[Item, ...]

    @property
    def count(self) -> int:
        return sum(item.kind in ("message", "replaced") for item in self.items)

    @property
    def has_words(self) -> bool:
        """Whether anybody said anything; results of tools are nobody's words."""
        return any(
            _is_said(piece)
            for item in self.items
            if item.kind in ("message", "replaced")
            for piece in item.pieces
        )


def _is_said(piece: SentBlock) -> bool:
    text = piece.block.get("text") if piece.block.type == "text" else ""
    return bool(text.strip()) and is_typed(text)


def fresh(view: View, cursor: str = "") -> NewMessages:
    """The items behind the cursor; `cursor` is one that the view does not have yet."""
    start = 0
    for last in _cursors(view, cursor):
        found = _behind(view, last)
        if found is not None:
            start = found
            break
    items = tuple(item for item in view.items.since(start) if item.kind != "head")
    named = [item.id for item in items if item.kind in ("message", "attached", "replaced")]
    before = view.items[start - 1] if start else None
    since = before.id if before is not None and before.kind != "head" else ""
    return NewMessages(since, named[-1] if named else "", items)


def _cursors(view: View, cursor: str) -> Iterator[str]:
    """Where extraction has been, the newest first."""
    if cursor:
        yield cursor
    if view.extracted is None:
        return
    yield view.extracted.last
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, Extracted):
            yield record.last


def _behind(view: View, last: str) -> int | None:
    """The first item behind a message, or None where it is not in the conversation."""
    for at in range(len(view.items) - 1, -1, -1):
        item = view.items[at]
        if item.id == last:
            return at + 1
        if last in item.covers:
            return at if _holds_unseen(view, item, last) else at + 1
    return None


def _holds_unseen(view: View, item: Item, last: str) -> bool:
    """Whether a summary stands for messages that came behind the last one seen."""
    seen = view.entries.place(last)
    if seen is None:
        return True
    said = (UserMessage, AssistantMessage)
    for ident in item.covers:
        place = view.entries.place(ident)
        if place is not None and place > seen and isinstance(view.entries[place].record, said):
            return True
    return False


# --- what the main agent saw to


def saved_since(fresh: NewMessages, inside: Callable[[str], bool]) -> tuple[str, ...]:
    """The calls by which the main agent saw to memory itself, in a line each."""
    return tuple(dict.fromkeys(_saving(fresh, inside)))


def _saving(fresh: NewMessages, inside: Callable[[str], bool]) -> Iterator[str]:
    for item in fresh.items:
        for piece in item.pieces:
            block = piece.block
            if block.type != "tool_use":
                continue
            name, given = block.get("name"), block.value.get("input")
            told = given if isinstance(given, dict) else {}
            path = told.get("file_path")
            if name in REMEMBERING:
                yield f"{name}: {_one_line(told.get('text') or told.get('name'))}"
            elif name in WRITERS and isinstance(path, str) and inside(path):
                yield f"{name}: {_one_line(path)}"


def _one_line(value: object) -> str:
    return " ".join(str(value or "").split())[:MAX_TOLD]


# --- with which words


@dataclass(frozen=True, slots=True)
class UserText:
    """What somebody said since, by the message it stands in; `before` is what it answers."""

    source: str
    text: str
    at: float
    before: str = ""


def user_words(view: View, items: Iterable[Item]) -> list[UserText]:
    """What the user wrote, and nothing that a tool, a hook or a layer put in."""
    found: list[UserText] = []
    before, given = "", tuple(items)
    for item in (*just_before(view, given), *given):
        entry = _said_in(view, item)
        text = "\n".join(piece.block.get("text") for piece in item.pieces if _is_said(piece))
        record = entry.record if entry else None
        if isinstance(record, UserMessage) and record.origin == "user" and text.strip():
            source, at = (entry.id, entry.at) if entry else (item.id, 0.0)
            found.append(UserText(source, text, at, before))
        if item.role == "assistant" and text.strip():
            before = text
    return found


def _said_in(view: View, item: Item) -> Entry | None:
    """The message that an item shows, also one of which only both ends are shown."""
    cut = item.kind == "replaced" and item.reason == PASTED and len(item.covers) == 1
    return view.entries.find(next(iter(item.covers)) if cut else item.id)


def just_before(view: View, items: Sequence[Item]) -> tuple[Item, ...]:
    """The agent's last words in front of some items: the first of them may answer these."""
    first = items[0].id if items else ""
    for at in range(len(view.items) - 1, 0, -1):
        if view.items[at].id == first:
            before = view.items[at - 1]
            return (before,) if before.role == "assistant" else ()
    return ()


@cache
def _prompt() -> str:
    return (files("reverie.layers") / "prompts" / "extraction.md").read_text("utf-8")


def dates(words: Sequence[UserText]) -> str:
    """When the user said what is looked at, so that "next Friday" can be told as a date."""
    days = [(datetime.fromtimestamp(one.at, UTC), one.text) for one in words[-MAX_DATES:] if one.at]
    if not days:
        return ""
    if len({day.date() for day, _ in days}) == 1:
        return f"The user spoke on {days[0][0]:%A, %Y-%m-%d}."
    rows = [f"- {day:%A, %Y-%m-%d}: “{_one_line(text)[:60]}”" for day, text in days]
    return neutralize_markup("The user spoke on these days:\n" + "\n".join(rows))


def manifest_lines(
    records: Sequence[ManifestLine], words: Sequence[UserText], most: int
) -> list[str]:
    """The lines of memories that a model is shown, the newest first: where there are more than
    `most`, those that have most words in common with what the user said."""
    said = content("\n".join(one.text for one in words)[-LOOKED_AT:])
    near = sorted(records, key=lambda one: -len(content(f"{one.name} {one.description}") & said))
    chosen = {one.key for one in near[:most]}
    return [one.line for one in records if one.key in chosen]


def extraction_prompt(
    fresh: NewMessages,
    manifest: Sequence[str],
    *,
    abridged: bool = False,
    hidden: int = 0,
    saved: Sequence[str] = (),
    dates: str = "",
    pointers: bool = True,
) -> str:
    """What the model is told behind the conversation, or behind its new messages abridged. The
    manifest's lines are of files that others may have written."""
    there = "\n".join(neutralize_markup(line) for line in manifest) or NOTHING_THERE
    if hidden > 0:
        there += f"\n\n{hidden:,} more memories are not listed."
    if saved:
        rows = "\n".join(f"- {neutralize_markup(one)}" for one in saved)
        there += f"\n\nThe agent has already saved this itself. Do not save it again:\n{rows}"
    values: Mapping[str, str] = {
        "given": ABRIDGED if abridged else WHOLE.format(count=f"{fresh.count:,}"),
        "index": FOLLOW if pointers else NO_POINTERS,
        "manifest": there,
        "dates": dates or NO_DATES,
    }
    parts = re.split(r"\{(given|index|manifest|dates)\}", _prompt())
    return "".join(values[one] if n % 2 else one for n, one in enumerate(parts)).rstrip() + "\n"


RECALL = "recall"


_HEADING = re.compile(r"^(?:\[[0-9a-f]{8}\] .*:|\(Saved [\d-]{10}\))$", re.MULTILINE)


def recalled_texts(view: View) -> list[str]:
    """Every text that recall put into this conversation."""
    return [
        block.get("text")
        for entry in view.entries
        if isinstance(entry.record, Attached) and entry.record.kind == RECALL
        for block in entry.record.blocks
    ]


def shown_texts(view: View) -> str:
    """Return what recall put into this conversation and still stands there."""
    items = (item for item in view.items if item.kind == "attached")
    return "\n".join(piece.block.get("text") for item in items for piece in item.pieces)


def head_text(view: View) -> str:
    """What stands in the head, without the lines that only say which file it is from."""
    if view.head is None:
        return ""
    return _HEADING.sub("", text_of([b.value for b in head_blocks(view.head.context)]))
