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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reverie.transcript.blocks import Block, Json, text_block, text_of
from reverie.transcript.messages import Item
from reverie.transcript.names import outline, reference
from reverie.transcript.records import (
    AssistantMessage,
    Record,
    Replaced,
    Stand,
    Strip,
    UserMessage,
)
from reverie.transcript.view import View
from reverie.world import World

NAME = "collapse"
SEALED = "collapse"
FOLDED = "collapse fold"
RESULT_NAMES = 250  # characters of names kept of a result
SAID = 60  # characters kept of what the assistant said
LINE_SHARE = 0.06  # of a sealed round's tokens, its line has about so many
FOLD_SHARE = 2 / 3
PATHS = 200
INTRO = (
    "[Earlier rounds, sealed: one line a call. `ReadBack` with a reference such as r:abc123 "
    "gives the call and its result whole.]\n"
)
_TROUBLE = ("Error", "FAILED", "error:", "panic:", "Traceback")
_PATH_KEYS = ("file_path", "path", "notebook_path")


@dataclass(frozen=True, slots=True)
class Price:
    """The figures behind a seal, in input tokens."""

    held: float  # spent on reading old rounds since the last seal
    cost: float  # of writing the kept end and the new lines
    tail: int
    cold: bool

    @property
    def pays(self) -> bool:
        return self.held >= self.cost

    def told(self, limit: int) -> str:
        if self.cold:
            return f"the cache was cold; the tail had {self.tail:,} tokens"
        if self.tail > limit:
            return f"the tail had {self.tail:,} of {limit:,} tokens"
        return f"reading cost {self.held:,.0f}, sealing costs {self.cost:,.0f}"


async def seal(view: View, world: World) -> Sequence[Record]:
    """Seal old rounds where it pays; fold old lines where they are many."""
    if not world.collapses:
        return ()
    first = tail_start(view)
    price = priced(view, world, first)
    limit = world.settings.scaled(world.window).collapse_tail
    if not _due(view, world, price, limit):
        return ()
    kept = _kept_from(view, world, first)
    old = view.items.since(first)[: kept - first]
    text = "\n".join(_lines(world, old))
    if not text:
        return ()
    intro = INTRO if first == 0 or view.items[first - 1].kind == "head" else ""
    record = Replaced(
        old[0].id,
        old[-1].id,
        (Stand("user", (text_block(intro + text),)),),
        SEALED,
        strips=_strips(view, world, kept),
        why=price.told(limit),
    )
    fold = _fold(view, world, text_block(intro + text).tokens)
    return (fold, record) if fold is not None else (record,)


def tail_start(view: View) -> int:
    """The first item that is neither head nor sealed."""
    at = len(view.items)
    while at and view.items[at - 1].kind not in ("replaced", "head"):
        at -= 1
    return at


def priced(view: View, world: World, first: int) -> Price:
    """What the tail has cost since the last seal, and what sealing it would cost."""
    settings = world.settings
    kept = kept_tokens(world)
    size = held = 0.0
    for item in view.items.since(first):
        if item.role == "assistant":
            held += settings.price_read * max(0.0, size - kept)
        size += item.tokens
    lines = max(0.0, size - kept) * LINE_SHARE
    cost = settings.price_write_short * kept + settings.price_write_long * lines
    return Price(held, cost, int(size), is_cold(view, world))


def kept_tokens(world: World) -> int:
    """What stays live at a seal: at most a tenth of the tail."""
    settings = world.settings.scaled(world.window)
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
    if _binding(world) and not _turn_begins(view):
        return False
    return price.pays or price.cold


def _binding(world: World) -> bool:
    return world.model is not None and world.model.capabilities.thinking_binding


def _turn_begins(view: View) -> bool:
    """Whether what is about to be sent is the user's own word, not a tool's."""
    unsent = view.unsent()
    return bool(unsent) and not any(i.results for i in unsent)


def _kept_from(view: View, world: World, first: int) -> int:
    """The first item that stays live: whole rounds, and always the newest message."""
    items, size = view.items, 0
    at, budget = len(items), kept_tokens(world)
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


def _strips(view: View, world: World, kept: int) -> tuple[Strip, ...]:
    """The thinking in what stays live: bound to what is sealed away, it would be refused."""
    if not _binding(world):
        return ()
    return tuple(
        Strip(p.source, p.index)
        for item in view.items.since(kept)
        for p in item.pieces
        if p.block.thinking
    )


# --- the lines


def _lines(world: World, items: Sequence[Item]) -> Iterator[str]:
    width = world.settings.collapse_line
    for item in items:
        for piece in item.pieces:
            yield from _block_lines(item, piece.block, width)


def _block_lines(item: Item, block: Block, width: int) -> Iterator[str]:
    match block.type:
        case "text" if item.role == "user" and item.kind != "attached":
            yield _user_words(block.get("text"))
        case "text" if item.role == "assistant" and not block.blank:
            yield "- " + _short(block.get("text"), SAID)
        case "tool_use":
            given = _short(_words(block.value.get("input")), width)
            yield f"> {block.get('name')} {given} {reference(block.get('id'))}"
        case "tool_result":
            yield from _result_lines(text_of(block.value.get("content")), width)
        case "image" | "document":
            yield f"[{block.type}]"
        case _:
            pass


def _user_words(text: str) -> str:
    """What the user said, whole, every line marked as theirs."""
    return "user: " + text.replace("\n", "\nuser: ")


def _words(value: Json) -> str:
    if isinstance(value, dict):
        return " ".join(_words(v) for v in value.values())
    if isinstance(value, list):
        return " ".join(_words(v) for v in value)
    return "" if value is None else str(value)


def _short(text: str, width: int) -> str:
    return " ".join(text[: width * 2].split())[:width]


def _result_lines(text: str, width: int) -> Iterator[str]:
    trouble = max(text.rfind(word) for word in _TROUBLE)
    if trouble >= 0:
        start = text.rfind("\n", 0, trouble) + 1
        yield "  " + _short(text[max(start, trouble - width) :].partition("\n")[0], width)
    found = outline(text, RESULT_NAMES)
    if found:
        yield "  " + found


# --- folding old lines


def _fold(view: View, world: World, coming: int) -> Replaced | None:
    """The older lines become the user's words, the paths touched, and references."""
    lines = [i for i in view.items if i.kind == "replaced" and i.reason == SEALED]
    total = sum(i.tokens for i in lines) + coming
    if total <= world.settings.scaled(world.window).collapse_log or len(lines) < 2:
        return None
    size, count = 0, 0
    while count < len(lines) and size < total * FOLD_SHARE:
        size += lines[count].tokens
        count += 1
    old = lines[:count]
    text = folded_text(view, old)
    if text_block(text).tokens >= size:
        return None
    return Replaced(
        old[0].id,
        old[-1].id,
        (Stand("user", (text_block(text),)),),
        FOLDED,
        why=f"sealed lines had {total:,} tokens",
    )


def folded_text(view: View, items: Sequence[Item]) -> str:
    """The user's words as they were, then each path with the references that touched it."""
    words: list[str] = []
    touched: dict[str, list[str]] = {}
    for record in _records(view, items):
        if isinstance(record, UserMessage) and record.origin not in ("tool", "interrupted"):
            words += [_user_words(b.get("text")) for b in record.blocks if b.type == "text"]
        elif isinstance(record, AssistantMessage):
            for block in record.blocks:
                if block.type == "tool_use":
                    touched.setdefault(_subject(block), []).append(reference(block.get("id")))
    paths = [f"{path} {' '.join(refs)}" for path, refs in touched.items()]
    return "\n".join([*words, "[Folded calls, by what they touched]", *paths])


def _records(view: View, items: Sequence[Item]) -> Iterator[Record]:
    places = sorted(
        place
        for entry in {e for i in items for e in i.covers}
        if (place := view.places.get(entry)) is not None
    )
    return (view.entries[place].record for place in places)


def _subject(block: Block) -> str:
    """What a call was about: its path, or the tool's name."""
    given = block.value.get("input")
    if isinstance(given, dict):
        for key in _PATH_KEYS:
            if isinstance(given.get(key), str):
                return str(given[key])
    return block.get("name")
