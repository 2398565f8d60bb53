"""Layer 4: compaction. A summary takes the place of messages; the transcript keeps them.

`automatic` fires over the threshold, where the notes could not help. `full` and `partial`
are what a person asks for. Each is one `Replaced` with a boundary, and the records that
restore what is needed at once: nothing is edited, and until they are appended nothing has
happened. Every compaction is audited: what the summary has not, a bounded keep-list has. What is
restored and kept counts: no compaction makes a context larger. One that frees too little is a
failure; after a few in a row automatic tries stop, and it says so.

A call is never cut from its result. Thinking that a replacement makes invalid is named in
its record. Never from a fork, never while calls wait for their results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from reverie.errors import InvalidInput, NotAvailable, ReverieError
from reverie.layers.compaction import ranges, summary
from reverie.layers.compaction.ranges import ReplacedSpan, Side, messages_of
from reverie.layers.compaction.summary import (
    NAME,
    SOURCE,
    CompactionFailed,
    SummaryResult,
    ratio,
    write_summary,
)
from reverie.light import dataclass
from reverie.transcript.blocks import Block, dump, join_members, members, text_block
from reverie.transcript.fold import apply
from reverie.transcript.records import Attached, Boundary, Entry, HeadSet, Record, Replaced, Stand
from reverie.transcript.tasks import SummaryTask
from reverie.transcript.view import Trail, View, head_blocks
from reverie.wire.request import NO_HEAD, Request
from reverie.world import Notice, World

if TYPE_CHECKING:
    from reverie.transcript.audit import Audit

TOLD = 3  # missing things that are named to a person
STOPPED = (
    "Automatic compaction stops for this session after {failures} failures in a row. "
    "/compact tries again and switches it back on; /snip and /clear make room without a model"
)
STOPPED_AGENT = "Automatic compaction stops for this agent after {failures} failures in a row"
Trigger: TypeAlias = Literal["auto", "manual"]


async def automatic(view: View, world: World) -> Sequence[Record]:
    """Compact where the count has passed the threshold."""
    settings = world.settings
    if view.is_fork or world.fork is None or world.model is None or world.collapses:
        return ()
    if not settings.auto_compact_enabled or view.open_calls:
        return ()
    if view.tokens <= settings.compact_threshold(world.window) or is_breaker_open(view, world):
        return ()
    if not _worth_it(view, world):
        return ()
    by_itself = settings.compact_by_provider and world.model.capabilities.compaction
    try:
        return await (by_provider(view, world, "auto") if by_itself else full(view, world))
    except ReverieError as error:
        failures = view.compaction_failures + 1
        stops = failures >= settings.compact_breaker_failures
        if is_agent(view):  # no person is there to type a command
            do = STOPPED_AGENT.format(failures=failures) if stops else "Nothing was changed"
            raise CompactionFailed(error.what, where=error.where, do=do) from error
        if not stops:
            raise
        raise CompactionFailed(str(error), do=STOPPED.format(failures=failures)) from error


def is_agent(view: View) -> bool:
    """Whether a conversation is that of a background agent: no person types there."""
    return view.started is not None and bool(view.started.agent)


def is_breaker_open(view: View, world: World) -> bool:
    """Whether automatic compaction has stopped for this session."""
    return view.compaction_failures >= world.settings.compact_breaker_failures


def _worth_it(view: View, world: World) -> bool:
    """Whether enough could be freed at all: what the user said last stays, however long."""
    try:
        span = ranges.whole(view)
    except InvalidInput:
        return False
    return span.tokens * ratio(view) > _least(world, "auto")


async def full(
    view: View, world: World, trigger: Trigger = "auto", instructions: str = ""
) -> tuple[Record, ...]:
    """The whole conversation becomes a summary; what the user said last stays."""
    return await _compact_span(view, world, ranges.whole(view), trigger, instructions)


async def partial(
    view: View, world: World, side: Side, pivot: str, instructions: str = ""
) -> tuple[Record, ...]:
    """The messages from one on (`from`), or those before it (`up_to`), become a summary."""
    return await _compact_span(view, world, ranges.part(view, side, pivot), "manual", instructions)


async def by_provider(
    view: View, world: World, trigger: Trigger = "manual", instructions: str = "", up_to: str = ""
) -> tuple[Record, ...]:
    """The same by the provider's own compaction: thinking that stays behind it stays valid."""
    span = ranges.part(view, "up_to", up_to) if up_to else ranges.whole(view)
    if world.around is not None:
        instructions = await world.around.before(trigger, instructions)
    made = await request_block(view, world, span, instructions)
    stand, ends = Stand("assistant", (made.block,)), span.last == len(view.items) - 1
    draft = _replacement(view, span, trigger, stand, made.calls)
    behind = foreseen(view, world, (draft,))
    _must_free(view, behind, world, trigger)
    restored = () if world.around is None else await world.around.after(behind, trigger)

    def follows(files: Sequence[Record], keep: str = "") -> Sequence[Record]:
        return around(view, files, keep, ends=ends)

    restored = _fitting(view, world, trigger, restored, lambda r: (draft, *follows(r)))
    behind = foreseen(view, world, (draft, *follows(restored)))
    texts = [made.block.get("content"), *_texts(behind)]
    found = _audit_span(view, span, texts, world, _room(view, behind))
    record = _replacement(view, span, trigger, stand, made.calls, found)
    return _finish_records(view, world, record, follows(restored, found.keep))


async def _compact_span(
    view: View, world: World, span: ReplacedSpan, trigger: Trigger, instructions: str
) -> tuple[Record, ...]:
    if world.around is not None:
        instructions = await world.around.before(trigger, instructions)
    made = await write_summary(view, world, span, instructions)
    draft = _record(view, world, span, trigger, made)
    behind = foreseen(view, world, (draft,))
    _must_free(view, behind, world, trigger)
    restored = () if world.around is None else await world.around.after(behind, trigger)
    restored = _fitting(view, world, trigger, restored, lambda r: (draft, *r))
    behind = foreseen(view, world, (draft, *restored))
    found = _audit_span(view, span, _texts(behind), world, _room(view, behind))
    record = _record(view, world, span, trigger, made, found)
    done = _finish_records(view, world, record, restored)
    if trigger == "auto" and done[0].boundary is not None:  # who asked is told by their door
        world.say(Notice(NAME, describe_compaction(done[0].boundary)))
    return done


def foreseen(view: View, world: World, records: Sequence[Record]) -> View:
    """The view as it would be behind some records; to look at, not to keep."""
    at = world.clock.now()
    for n, record in enumerate(records):
        view = apply(view, Entry(f"foreseen:{n}", view.leaf, at, record))
    return view


# --- the record


def _record(
    view: View,
    world: World,
    span: ReplacedSpan,
    trigger: Trigger,
    made: SummaryResult,
    found: Audit | None = None,
) -> Replaced:
    text = summary.stand(
        made.text,
        where=span.where,
        gone=span.gone,
        left_out=made.left_out,
        keep=found.keep if found else "",
        goes_on=trigger == "auto" and span.last == len(view.items) - 1,
        reader=world.way_back.tool,
    )
    stand = Stand("user", (text_block(text),))
    record = _replacement(view, span, trigger, stand, made.calls, found)
    return replace(record, strips=world.unbound(view.items.since(span.last + 1)))


def _replacement(
    view: View,
    span: ReplacedSpan,
    trigger: Trigger,
    stand: Stand,
    calls: int,
    found: Audit | None = None,
) -> Replaced:
    """The range, what stands for it, and all that is recorded of the compaction."""
    before = [i.id for i in view.items.cut(span.first) if i.kind != "head"]
    tail = "".join(i.id for i in view.items.since(span.last + 1)[:1])
    boundary = Boundary(
        trigger,
        view.tokens,
        tools=tuple(sorted(view.called)),
        kept=(before[0], before[-1], tail) if before else ("", "", tail),
        fidelity=found.fidelity if found else None,
        missing=tuple(one.text for one in found.lost) if found else (),
        calls=calls,
    )
    return Replaced(
        span.gone[0].id,
        span.gone[-1].id,
        (stand,),
        NAME,
        boundary=boundary,
        why=f"{trigger}, {span.side.replace('_', ' ')}: {view.tokens:,} tokens",
    )


def _finish_records(
    view: View, world: World, record: Replaced, restored: Sequence[Record]
) -> tuple[Replaced, *tuple[Record, ...]]:
    """All records, with the count behind them; CompactionFailed where it is no smaller."""
    behind = foreseen(view, world, (record, *restored))
    _must_free(view, behind, world, "manual")
    if record.boundary is not None:
        record = replace(record, boundary=replace(record.boundary, tokens_after=behind.tokens))
    return (record, *restored)


# --- what it must do


def _must_free(view: View, behind: View, world: World, trigger: Trigger) -> None:
    """An automatic compaction frees a share of the window, one that was asked for anything."""
    freed, least = view.tokens - behind.tokens, _least(world, trigger)
    if freed < least:
        raise CompactionFailed(
            f"it would free {max(0, freed):,} tokens, and must free {least:,}",
            where=f"{view.tokens:,} tokens in the context",
            do="Nothing was changed; /snip takes out what you name",
        )


def _least(world: World, trigger: Trigger) -> int:
    share = world.settings.compact_must_free_share
    return int(world.window * share) if trigger == "auto" else 1


def _fitting(
    view: View,
    world: World,
    trigger: Trigger,
    restored: Sequence[Record],
    records: Callable[[Sequence[Record]], Sequence[Record]],
) -> Sequence[Record]:
    """What is restored, without the files that would leave too little room: the largest go first,
    for those can be read again."""
    while True:
        try:
            _must_free(view, foreseen(view, world, records(restored)), world, trigger)
        except CompactionFailed:
            files = [r for r in restored if isinstance(r, Attached) and r.kind == "file"]
            if not files:
                return restored
            largest = max(files, key=lambda r: sum(b.tokens for b in r.blocks))
            restored = [r for r in restored if r is not largest]
        else:
            return restored


def _room(view: View, behind: View) -> int:
    """Tokens that a keep-list may have before a context is no smaller than it was."""
    return int((view.tokens - behind.tokens) / max(1.0, ratio(view))) - 1


def _texts(view: View) -> list[str]:
    return [p.block.text for item in (*view.items, *view.waiting) for p in item.pieces]


def _audit_span(
    view: View, span: ReplacedSpan, texts: Sequence[str], world: World, room: int
) -> Audit:
    from reverie.transcript.audit import audit_replacement, with_earlier_words

    gone = with_earlier_words(view, span.gone)
    most = min(world.settings.compact_keep_list_tokens, max(0, room))
    return audit_replacement(gone, texts, keep_tokens=most, reader=world.way_back.tool)


def describe_compaction(boundary: Boundary) -> str:
    """A compaction in a sentence."""
    text = f"compacted {boundary.tokens_before:,} tokens to {boundary.tokens_after:,}"
    if boundary.fidelity is not None:
        text += f"; {boundary.fidelity:.0%} of what must survive is there or can be read back"
    if boundary.missing:
        named = ", ".join(" ".join(one.split())[:60] for one in boundary.missing[:TOLD])
        more = len(boundary.missing) - TOLD
        text += f"; missing: {named}" + (f" and {more:,} more" if more > 0 else "")
    return text


# --- The provider's own compaction, where it offers one and it was chosen.
#
# The provider is sent the beginning of the conversation as it stands and answers with one block of
# its own making, which later requests send back first, unchanged. Its signature goes on where that
# beginning ended, so the thinking behind it stays valid: nothing is stripped, and nothing may come
# between. What stood in front of the first message, and what the audit found missing, is attached
# at the end for that reason. Only a beginning can be compacted this way.


CONTEXT, KEPT = "context", "kept"
LEFT_OUT = ("context_management", "stop_sequences", "output_config", "tool_choice")
GO_ON = "[The conversation above was compacted by the provider. Go on from where it stands.]"


@dataclass(frozen=True, slots=True)
class ProviderSummary:
    """The provider's block."""

    block: Block
    calls: int = 1


async def request_block(
    view: View, world: World, span: ReplacedSpan, instructions: str
) -> ProviderSummary:
    """Ask for the block; NotAvailable where that cannot be, CompactionFailed where none came."""
    if world.model is None or not world.model.capabilities.compaction or world.ask is None:
        raise NotAvailable(
            "this provider offers no compaction of its own",
            where=world.model_name,
            do="Compact without it; our own summary works with every provider",
        )
    if span.side == "from":
        raise NotAvailable(
            "a provider's own compaction takes the beginning of a conversation, not its end",
            do="Use --up-to, or compact without it",
        )
    reply = await world.ask(_request(view, span, instructions))
    blocks = [b for b in reply.blocks if b.type == "compaction"]
    if len(blocks) != 1 or not blocks[0].get("content").strip():
        raise CompactionFailed(
            "the provider's own compaction gave no summary",
            where=reply.stop_reason,
            do="Nothing was changed; compact without it",
        )
    return ProviderSummary(blocks[0])


def _request(view: View, span: ReplacedSpan, instructions: str) -> Request:
    """The beginning of the conversation, byte for byte, with the option that asks."""
    messages = messages_of(view.items[: span.last + 1])
    head = view.head or NO_HEAD
    options = {k: raw for k, (raw, _) in members(head.options).items() if k not in LEFT_OUT}
    asked = {"type": "summarize", "instructions": instructions.strip() or None}
    options["compaction"] = dump(asked)
    blocks = messages[-1].end
    marks = tuple(m for m in view.marks if m.part != "messages" or m.block < blocks)
    task = SummaryTask(first=span.gone[0].id, last=span.gone[-1].id, instructions=instructions)
    tokens = view.head_tokens + sum(m.tokens for m in messages)
    head = replace(head, options=join_members(options))
    return Request(head, Trail(messages), (), marks, SOURCE, task, view.leaf, tokens)


def around(view: View, restored: Sequence[Record], keep: str, *, ends: bool) -> list[Record]:
    """What follows the block: the head without what stood in front, and that, with what was
    restored and kept, at the end. System prompt and tools stay, or the block would not hold."""
    if view.head is None:
        return [*restored]
    fresh = next((r for r in restored if isinstance(r, HeadSet)), view.head)
    context = head_blocks(fresh.context)
    out: list[Record] = [replace(view.head, context="[]", reason="compaction")]
    out += [Attached(context, CONTEXT)] if context else []
    out += [r for r in restored if not isinstance(r, HeadSet)]
    words = "\n\n".join(filter(None, (keep, GO_ON if ends else "")))
    return [*out, Attached((text_block(words),), KEPT)] if words else out
