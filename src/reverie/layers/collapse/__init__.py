"""Context collapse: an append-only log of sealed lines, and a short live tail.

Instead of letting the context grow to the window and summarising it, old rounds are sealed:
each call becomes a line that says what was asked, how it ended and by which reference the
whole can be read back; the user's words stay as they were said, the assistant's answers up
to a limit. No model is called; the transcript keeps it all. Sealed bytes do not change, a
long-lived mark stands behind them, and a seal writes only its new lines and the kept end of
the tail. What the lines are is said at their head, in bytes that never leave. When lines pass
their budget the older ones fold (`lines.fold_lines`).

When to seal is a calculation (`price_collapse`). Where the tail holds thinking, and the provider
binds it to what precedes it, a seal waits for the end of a turn, or for the tail's limit;
thinking that is kept is stripped in the same record. In a list that is its caller's (`whole_turns`)
the limit waits too, while the kept end holds thinking: a provider refuses a turn under way whose
thinking is gone. Thinking in what leaves goes with it; there only the first seal waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import takewhile

from reverie.errors import ReverieError
from reverie.layers.collapse import lines as words
from reverie.layers.collapse.lines import FOLDED, SEALED, fold_lines, frame_lines, seal_lines
from reverie.settings.catalog import Settings
from reverie.transcript.blocks import Block, dump, text_block
from reverie.transcript.mentions import reference
from reverie.transcript.messages import Item, Message, SentBlock
from reverie.transcript.records import HeadSet, Record, Replaced, Stand, unchanging
from reverie.transcript.tasks import Task
from reverie.transcript.view import STANDING, Trail, View
from reverie.wire.request import Request
from reverie.world import Notice, ReadBackHint, World

__all__ = [
    "FOLDED",
    "INTRO",
    "NAME",
    "SEALED",
    "explanation",
    "price_collapse",
    "seal",
    "seal_lines",
]

NAME = "collapse"
OPENING = "[Earlier rounds of this conversation, sealed: "  # of every version's explanation
INTRO = (
    OPENING + "shortened by the program, nothing is lost. "
    "<user> is what the user said, word for word; <assistant> an answer of yours, - what you said "
    "beside a call; > a tool call of yours with its reference, under it = how it ended, ! an "
    "error, then names from it. A command without ! ended without an error code. A [folded] part "
    "tells what was changed, what failed (why, newest reference, when, how often; or that it went "
    "well later), the last test runs, commits and pushes in their order, then what was said, then "
    "files and commands; the reference at its head gives its rounds whole. "
)
REST = (
    " Use it before you rely on what a line leaves out. Behind the last [end] the conversation "
    "goes on as it is.]"
)


def explanation(way_back: ReadBackHint) -> str:
    """What the lines are, and how what they leave out is read back."""
    return INTRO + way_back.named() + REST


async def seal(view: View, world: World) -> Sequence[Record]:
    """Seal old rounds where it pays; fold old lines where they are many."""
    settings, limit = world.scaled, world.tail_limit(view)
    # a message whose calls still wait is not touched; a fork goes on with its parent's bytes
    if settings.context_policy != "collapse" or view.open_calls or view.is_fork:
        return ()
    if found := cut(view, world):
        return found
    price = price_collapse(view, world, settings)
    if not (is_due(view, world, price, limit) and world.collapses):
        return ()
    first = view.live
    kept = _kept_from(view, kept_tokens(settings))
    # what already stands for others (a snip's mark, a summary) stays where it is
    old = list(takewhile(_is_live, view.items[first:kept]))
    text = seal_lines(settings, old, view.items.since(first + len(old)), view)
    if not text:
        return ()
    intro = text_block(explanation(world.way_back))
    head = _explanation(view)
    lines = text_block(frame_lines(view, old, text, "sealed"))
    record = Replaced(
        old[0].id,
        old[-1].id,
        (Stand("user", (lines,) if head else (intro, lines)),),
        SEALED,
        strips=world.unbound(view.items.since(kept)),
        why=price.told(limit),
    )
    gone = fold_lines(view, settings, lines.tokens)
    if not gone:
        return (record,)
    from reverie.layers.collapse.folds import fold, joined_parts  # due rarely

    out: list[Record] = [record]
    for some in filter(None, (joined_parts(view, settings, gone[0]), gone)):
        shown = intro if head in [i.id for i in some] else None
        made = fold(view, some, shown, settings, await summarize_lines(some, world))
        out += [made] if made is not None else []
    return out


def _is_live(item: Item) -> bool:
    return item.kind not in STANDING


def _explanation(view: View) -> str:
    """The item that says what the lines are, or nothing where none does."""
    for item in view.items[: view.live]:
        if item.reason in (SEALED, FOLDED) and item.pieces[0].block.get("text").startswith(INTRO):
            return item.id
    return ""


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


# --- Pastes that a live tail cannot hold are cut before they are first sent.
#
# A user's message is shown whole as it arrives, and until it is sealed. Only where what they just
# said is larger than the tail may be do its longest texts give way to their two ends and their
# names; a reference reads them back. That happens before any request has carried them, so no sent
# byte changes.


PASTED = "paste"


def cut(view: View, world: World) -> Sequence[Record]:
    """The unsent messages of the user's whose longest texts have to be cut. A list that is only
    fitted is its caller's: there a message too long for the window is refused, not cut."""
    if not world.way_back.files:
        return ()
    new = [i for i in view.unsent() if i.kind == "message" and i.role == "user" and not i.results]
    excess = sum([i.tokens for i in new]) - world.scaled.collapse_tail
    if excess <= 0:
        return ()
    sizes = sorted([(p.block.tokens, i.id, p.index) for i in new for p in i.pieces], reverse=True)
    gone: set[tuple[str, int]] = set()
    for size, ident, index in sizes:
        if excess <= 0 or size <= words.PASTE:
            break
        gone.add((ident, index))
        excess -= size
    named = {ident for ident, _ in gone}
    return [_record(i, gone, world) for i in new if i.id in named]


def _record(item: Item, gone: set[tuple[str, int]], world: World) -> Replaced:
    blocks = [
        _shorten_paste(p.block, item.id, world) if (item.id, p.index) in gone else p.block
        for p in item.pieces
    ]
    why = f"the message had {item.tokens:,} tokens"
    by = (Stand("user", tuple(blocks)),)
    return Replaced(item.id, item.id, by, PASTED, seals=False, why=why)


def _shorten_paste(block: Block, ident: str, world: World) -> Block:
    text, ref = block.get("text"), reference(ident)
    if not text:
        return block
    told = f"[This is a part. {world.way_back.tool} with the reference {ref} gives all of it.]"
    return text_block(f"{words.outline_paste(text)}\n{told}")


# --- When a seal pays: what reading the old rounds has cost against what a seal would cost.
#
# Prices and lifetimes are those of the provider and model; the figures are recorded with the edit.
# A cold cache, or a tail over its limit, decides at once. While nothing is sealed yet, a cold
# cache seals only a tail that is worth it: a short session never costs more than one in which
# everything is sent. Pure functions of a view and its world.


ROUNDS = 80  # requests within which the first seal has to pay for all that it writes
LINES_SHARE = 0.1  # of what is sealed: what its lines have, as measured
FIRST_COLD = 6_000  # tokens of the tail from which a cold cache makes the first seal


@unchanging
class SealPrice:
    """The figures behind a seal, in input tokens."""

    held: float  # spent on reading old rounds since the last seal
    cost: float  # of writing the kept end again, and with the first seal its lines and the head
    tail: int
    cold: bool

    @property
    def pays(self) -> bool:
        return self.held >= self.cost > 0

    def told(self, limit: int) -> str:
        if self.cold:
            return f"the cache was cold; the tail had {self.tail:,} tokens"
        if self.tail > limit:
            return f"the tail had {self.tail:,} of {limit:,} tokens"
        return f"reading cost {self.held:,.0f}, sealing costs {self.cost:,.0f}"


def price_collapse(view: View, world: World, settings: Settings) -> SealPrice:
    """What the tail has cost since the last seal, and what sealing it would cost. The first seal
    also pays for its lines and for the head, which is written again to live as long as they do;
    later ones would write their lines whenever they come."""
    kept, tail = kept_tokens(settings), view.live_tokens
    prices = world.prices
    held = max(0, view.reread - view.answers * kept)
    cost = prices.write * kept
    if not view.sealed:
        lines = LINES_SHARE * max(0, tail - kept)
        first = prices.write_long * (view.head_tokens + lines) + cost
        if prices.read * (tail - kept - lines) * ROUNDS < first:
            cost = first
    cold = is_cold(view, world) and (bool(view.sealed) or tail >= FIRST_COLD)
    return SealPrice(prices.read * held, cost, tail, cold)


def kept_tokens(settings: Settings) -> int:
    """What stays live at a seal: at most a tenth of the tail."""
    return min(settings.collapse_kept, settings.collapse_tail // 10)


def is_cold(view: View, world: World) -> bool:
    """Whether the tail's cache entries have run out, so that an edit is free."""
    if view.last_assistant_at is None:
        return False
    return world.clock.now() - view.last_assistant_at > world.prices.short


def is_due(view: View, world: World, price: SealPrice, limit: int) -> bool:
    over = price.tail > limit
    if not (over or price.pays or price.cold):
        return False
    if _turn_begins(view) or (over and not world.whole_turns):
        return True
    first = view.live
    if world.whole_turns and (over or view.sealed):
        first = _kept_from(view, kept_tokens(world.scaled))
    return not world.unbound(view.items.since(first))


def _turn_begins(view: View) -> bool:
    """Whether what is about to be sent is the user's own word, not a tool's."""
    unsent = view.unsent()
    return bool(unsent) and not any(i.results for i in unsent)


# --- A few lines on what was decided and what is open, written by a model when lines fold.
#
# Only where a setting names a model for summaries: it reads the lines that fold, nothing else. An
# answer that is empty, too long, late or an error is dropped, and the fold is what it would have
# been without. The lines say that they are a model's.


SOURCE = "fold"
TOKENS = 400  # of the answer, at most
SECONDS = 20.0  # the answer may take
HEADING = "[What was decided and what is open, in a model's words]"


async def summarize_lines(items: Sequence[Item], world: World) -> str:
    """What a model says of these lines; nothing where there is none, or it says nothing of use."""
    if world.summariser is None or world.ask is None:
        return ""
    import anyio

    from reverie.secrets.scanner import remove_secrets

    answer = ""
    with anyio.move_on_after(SECONDS):
        try:
            model = await world.summariser()
            if not model.capabilities.free:  # the embedded one has no words for this
                answer = (await world.ask(_request(items, model.name), model)).text
        except ReverieError as error:
            world.say(Notice("collapse", f"lines fold without a summary: {error}", "warning"))
    text = words.told_apart(remove_secrets(answer)[0].strip())
    if not text or text_block(text).tokens > TOKENS * 1.5:
        return ""
    return f"{HEADING}\n{text}"


def _request(items: Sequence[Item], model: str) -> Request:
    lines = "\n".join([piece.block.get("text") for item in items for piece in item.pieces])
    text = _prompt().replace("{{tokens}}", f"{TOKENS:,}").replace("{{lines}}", lines)
    block = text_block(text)
    head = HeadSet(model, options=dump({"max_tokens": TOKENS * 2}))
    said = Message("user", (SentBlock(block, SOURCE, 0),), None)
    return Request(
        head, Trail[Message](), (said,), source=SOURCE, task=Task(SOURCE), tokens=block.tokens
    )


@cache
def _prompt() -> str:
    return (files("reverie.layers") / "prompts" / "fold.md").read_text("utf-8")
