"""The provider's own compaction, where it offers one and it was chosen.

The provider is sent the beginning of the conversation as it stands and answers with one
block of its own making, which later requests send back first, unchanged. Its signature goes
on where that beginning ended, so the thinking behind it stays valid: nothing is stripped, and
nothing may come between. What stood in front of the first message, and what the audit found
missing, is attached at the end for that reason. Only a beginning can be compacted this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reverie.errors import NotAvailable
from reverie.layers.compaction.asking import SOURCE, CompactionFailed
from reverie.layers.compaction.ranges import ReplacedSpan
from reverie.layers.compaction.shortened import messages_of
from reverie.light import dataclass
from reverie.transcript.blocks import Block, dump, joined, members, text_block
from reverie.transcript.records import Attached, HeadSet, Record
from reverie.transcript.tasks import SummaryTask
from reverie.transcript.view import Trail, View, head_blocks
from reverie.wire.request import NO_HEAD, Request
from reverie.world import World

CONTEXT, KEPT = "context", "kept"
LEFT_OUT = ("context_management", "stop_sequences", "output_config", "tool_choice")
GO_ON = "[The conversation above was compacted by the provider. Go on from where it stands.]"


@dataclass(frozen=True, slots=True)
class Made:
    """The provider's block."""

    block: Block
    calls: int = 1


async def made(view: View, world: World, span: ReplacedSpan, instructions: str) -> Made:
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
    return Made(blocks[0])


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
    head = replace(head, options=joined(options))
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
