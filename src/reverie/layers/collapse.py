"""Context collapse: an append-only log of sealed lines, and a short live tail.

Instead of letting the context grow to the window and summarising it, old rounds are
sealed: each call becomes one line that names what was asked and by which reference the
result can be read back; the user's words stay as they were said. No model is called and
nothing is lost. Sealed bytes do not change, a long-lived mark stands behind them, and a
seal writes only its new lines and the kept end of the tail. When lines pass their budget
the older ones fold into the user's words, the paths, and their references.

When to seal is a calculation: what reading the old rounds again has cost since the last
seal, against what writing the kept end anew would cost. A cold cache, or a tail over its
limit, decides at once. The figures are recorded with the edit.

On a provider whose thinking is bound to what precedes it, a seal waits for the end of a
turn, or for the tail's limit; thinking that is kept is stripped in the same record.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, takewhile

from reverie.settings import Settings
from reverie.transcript.blocks import Block, Json, text_block, text_of
from reverie.transcript.messages import Item
from reverie.transcript.names import first_names, reference
from reverie.transcript.records import (
    AssistantMessage,
    Record,
    Replaced,
    Stand,
    UserMessage,
    unchanging,
)
from reverie.transcript.view import STANDING, View
from reverie.world import World

NAME = "collapse"
SEALED = "collapse"
FOLDED = "collapse fold"
RESULT_NAMES = 320  # characters of names kept of a result, at most
LONG_TAIL = 30_000  # tokens; what is near stands in a longer one, and fewer names do:
FEW_NAMES = 160
STORED_NAMES = 900  # the same of one that was stored as it arrived
NAMES_SHARE = 6  # and never more than this part of the result
LOOKED_AT = 4  # characters that are searched, for each of names
TROUBLE_AT = 600  # characters at its end that are searched for trouble
SAID = 30  # characters kept of what the assistant said
FOLD_SHARE = 2 / 3
EARNED = 2.5  # times its cost, before a seal pays: lines say less than what they stand for
INTRO = "[Earlier rounds, sealed: one line a call. "
_STORED, _NAMES = "<persisted-output>", "Names in it: "
_TROUBLE = ("Error", "FAILED", "error:", "panic:", "Traceback")
_PATH_KEYS = ("file_path", "path", "notebook_path")


@unchanging
class Price:
    """The figures behind a seal, in input tokens."""

    held: float  # spent on reading old rounds since the last seal
    cost: float  # of writing the kept end anew; the lines cost the same whenever they come
    tail: int
    cold: bool

    @property
    def pays(self) -> bool:
        return self.held >= EARNED * self.cost

    def told(self, limit: int) -> str:
        if self.cold:
            return f"the cache was cold; the tail had {self.tail:,} tokens"
        if self.tail > limit:
            return f"the tail had {self.tail:,} of {limit:,} tokens"
        return f"reading cost {self.held:,.0f}, sealing costs {self.cost:,.0f}"


async def seal(view: View, world: World) -> Sequence[Record]:
    """Seal old rounds where it pays; fold old lines where they are many."""
    settings, limit = world.scaled, world.scaled.collapse_tail
    # a message whose calls still wait is not touched; a fork goes on with its parent's bytes
    if settings.context_policy != "collapse" or view.open_calls or view.is_fork:
        return ()
    price = priced(view, world, settings)
    if not (_due(view, world, price, limit) and world.collapses):
        return ()
    first = view.live
    kept = _kept_from(view, kept_tokens(settings))
    # what already stands for others (a snip's mark, a summary) stays where it is
    old = list(takewhile(_is_live, view.items[first:kept]))
    text = seal_lines(settings, old, cites=world.way_back.messages)
    if not text:
        return ()
    begins = first == 0 or view.items[first - 1].kind == "head"
    intro = f"{INTRO}{world.way_back.named()}]\n" if begins else ""
    block = text_block(intro + text)
    record = Replaced(
        old[0].id,
        old[-1].id,
        (Stand("user", (block,)),),
        SEALED,
        strips=world.unbound(view.items.since(kept)),
        why=price.told(limit),
    )
    fold = _fold(view, settings, block.tokens, cites=world.way_back.messages)
    return (record, fold) if fold is not None else (record,)


def _is_live(item: Item) -> bool:
    return item.kind not in STANDING


def priced(view: View, world: World, settings: Settings) -> Price:
    """What the tail has cost since the last seal, and what sealing it would cost."""
    kept = kept_tokens(settings)
    held = max(0, view.reread - view.answers * kept)
    cost = settings.price_write_short * kept
    return Price(settings.price_read * held, cost, view.live_tokens, is_cold(view, world))


def kept_tokens(settings: Settings) -> int:
    """What stays live at a seal: at most a tenth of the tail."""
    return min(settings.collapse_kept, settings.collapse_tail // 10)


def is_cold(view: View, world: World) -> bool:
    """Whether the tail's cache entries have run out, so that an edit is free."""
    if view.last_assistant_at is None:
        return False
    idle = world.clock.now() - view.last_assistant_at
    return idle > world.settings.cache_short_minutes * 60


def _due(view: View, world: World, price: Price, limit: int) -> bool:
    if price.tail > limit:
        return True
    return (price.pays or price.cold) and (not world.binds or _turn_begins(view))


def _turn_begins(view: View) -> bool:
    """Whether what is about to be sent is the user's own word, not a tool's."""
    unsent = view.unsent()
    return bool(unsent) and not any(i.results for i in unsent)


def _kept_from(view: View, budget: int) -> int:
    """The first item that stays live: whole rounds, and always the newest message."""
    items, first, size = view.items.since(0), view.live, 0
    at = len(items)
    while at > first and size + items[at - 1].tokens <= budget:
        at -= 1
        size += items[at].tokens
    while at < len(items) and items[at].role != "assistant":
        at += 1
    if at < len(items):
        return at
    at = len(items) - 1
    while at > first and items[at - 1].role == "user" and not items[at - 1].results:
        at -= 1
    if items[at].results:
        while at > first and items[at].role != "assistant":
            at -= 1
    return at


# --- the lines


def seal_lines(settings: Settings, items: Sequence[Item], *, cites: bool = False) -> str:
    """The lines of some rounds. A name is given once: `said` are those given so far. With
    `cites`, a message that no line holds whole and no call stands for has a reference too."""
    said: set[str] = set()
    out: list[str] = []
    width = settings.collapse_line
    names = FEW_NAMES if settings.collapse_tail > LONG_TAIL else RESULT_NAMES
    for item in items:
        for piece in item.pieces:
            block = piece.block
            if block.type == "tool_use":
                out.append(_call_line(block, width, said))
            elif block.type == "tool_result":
                text = text_of(block.value.get("content"))
                out += _trouble(text, width)
                if found := _names(text, names, said):
                    out.append("  " + " ".join(found))
            elif line := _said_line(item, block):
                out.append(line)
        if cites and is_cut(item):
            out.append(f"  {reference(item.id)}")
    return "\n".join(out)


def _call_line(block: Block, width: int, said: set[str]) -> str:
    name, ref = block.get("name"), reference(block.call)
    given = _given(block.value.get("input"), max(20, width - len(name) - len(ref)), said)
    return f"> {name} {given} {ref}"


def _said_line(item: Item, block: Block) -> str:
    match block.type:
        case "text" if item.role == "user" and item.kind != "attached":
            return _user_words(block.get("text"))
        case "text" if item.role == "assistant" and not block.blank:
            return "- " + _short(block.get("text"), SAID)
        case "image" | "document":
            return f"[{block.type}]"
        case _:
            return ""


def is_cut(item: Item) -> bool:
    """Whether lines leave out some of what a message said, and no call in it is cited."""
    if item.role == "user":
        return item.kind == "message" and any(
            piece.block.type not in ("text", "tool_result") for piece in item.pieces
        )
    if item.calls:
        return False
    texts = [piece.block.get("text") for piece in item.pieces]
    return len(texts) > 1 or any(not t or t != _short(t, SAID) for t in texts)


def _user_words(text: str) -> str:
    """What the user said, whole, every line marked as theirs."""
    return "user: " + text.replace("\n", "\nuser: ")


def _given(value: Json, width: int, said: set[str]) -> str:
    """What a call was asked, on one line; a path that was named before, by its last part."""
    words: list[str] = []
    for key, member in value.items() if isinstance(value, dict) else ():
        if key in _PATH_KEYS and isinstance(member, str):
            bare = member.rstrip("./-")
            words.append(f"…/{member.rpartition('/')[2]}" if bare in said else member)
            said.add(bare)
        else:
            words.append(_words(member))
    return _short(" ".join([word for word in words if word]), width)


def _words(value: Json) -> str:
    """The texts and numbers in a value; switches say little."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(map(_words, value.values()))
    if isinstance(value, list):
        return " ".join(map(_words, value))
    return "" if value is None or isinstance(value, bool) else str(value)


def _short(text: str, width: int) -> str:
    return " ".join(text[: width * 2].split())[:width]


def _trouble(text: str, width: int) -> list[str]:
    """The line a result ends in trouble with, if it does."""
    end = text[-TROUBLE_AT:]
    at = max([end.rfind(word) for word in _TROUBLE if word in end], default=-1)
    if at < 0:
        return []
    start = end.rfind("\n", 0, at) + 1
    return ["  " + _short(end[max(start, at - width) :].partition("\n")[0], width)]


def _names(text: str, most: int, said: set[str]) -> list[str]:
    """What a result names, for the first time."""
    if text.startswith(_STORED) and _NAMES in text:  # the preview tells them
        told = text.partition(_NAMES)[2].partition("\n")[0]
        return first_names(told, STORED_NAMES, len(told), said)
    return first_names(text, min(most, len(text) // NAMES_SHARE), LOOKED_AT * most, said)


# --- folding old lines


def _fold(view: View, settings: Settings, coming: int, *, cites: bool = False) -> Replaced | None:
    """The older lines become the user's words, the paths touched, and references."""
    # lines with nothing else between them
    runs = groupby(view.items[: view.live], lambda item: item.reason == SEALED)
    lines = max([list(run) for sealed, run in runs if sealed], key=len, default=list[Item]())
    total = sum([i.tokens for i in lines]) + coming
    if total <= settings.collapse_log or len(lines) < 2:
        return None
    size, count = 0, 0
    while count < len(lines) and size < total * FOLD_SHARE:
        size += lines[count].tokens
        count += 1
    old = lines[:count]
    text = folded_text(view, old, cites=cites)
    if text_block(text).tokens >= size:
        return None
    return Replaced(
        old[0].id,
        old[-1].id,
        (Stand("user", (text_block(text),)),),
        FOLDED,
        why=f"sealed lines had {total:,} tokens",
    )


_NOT_SAID = ("tool", "interrupted", "go_on")  # by nobody, or by the loop


def folded_text(view: View, items: Sequence[Item], *, cites: bool = False) -> str:
    """The user's words as they were, then each path with the references that touched it;
    with `cites`, those of messages without a call too."""
    words: list[str] = []
    spoken: list[str] = []
    touched: dict[str, list[str]] = {}
    for entry in view.entries.among(frozenset[str]().union(*[i.covers for i in items])):
        record = entry.record
        if isinstance(record, UserMessage) and record.origin not in _NOT_SAID:
            words += [_user_words(b.get("text")) for b in record.blocks if b.type == "text"]
            if any(b.type not in ("text", "tool_result") for b in record.blocks):
                spoken.append(reference(entry.id))
        elif isinstance(record, AssistantMessage):
            for block in record.blocks:
                if block.type == "tool_use":
                    touched.setdefault(_subject(block), []).append(reference(block.call))
            if not any(b.type == "tool_use" for b in record.blocks):
                spoken.append(reference(entry.id))
    if cites and spoken:
        touched["messages"] = spoken
    paths = [f"{path} {' '.join(refs)}" for path, refs in touched.items()]
    return "\n".join([*words, "[Folded calls, by what they touched]", *paths])


def _subject(block: Block) -> str:
    """What a call was about: its path, or the tool's name."""
    given = block.value.get("input")
    if isinstance(given, dict):
        for key in _PATH_KEYS:
            if isinstance(given.get(key), str):
                return str(given[key])
    return block.get("name")
