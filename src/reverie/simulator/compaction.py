"""On-demand compaction: when it is refused, and what its block says.

The request holds the whole conversation; the answer is one signed block that a later
request sends back first in its place. The words come from the answerer, like any other.
"""

from __future__ import annotations

from reverie.simulator.answers import SimulatedAnswer
from reverie.simulator.catalogue import ModelSpec
from reverie.simulator.prompt import blocks_in, objects
from reverie.simulator.refusals import bad
from reverie.transcript.blocks import Object

EMPTY = "Nothing was said."


def check_compaction(body: Object, model: ModelSpec) -> None:
    """Raise what the API answers to a compaction it cannot do, or a block it cannot take."""
    contents = [blocks_in(m.get("content")) for m in objects(body.get("messages"))]
    blocks = [b for c in contents for b in c if b.get("type") == "compaction"]
    if sum(b.get("content") is not None for b in blocks) > 1:
        said = "`messages` holds more than one `compaction` block with content"
        raise bad(said, code="compaction_block_ambiguous")
    if any(b.get("content") == "" for b in blocks):
        raise bad("`compaction` block's `content` must not be empty")
    wanted = body.get("compaction")
    if wanted is None:
        return
    if not isinstance(wanted, dict) or wanted.get("type") != "summarize":
        raise bad("compaction.type: Input should be 'summarize'")
    if body.get("context_management") is not None:
        raise bad("compaction: cannot be combined with `context_management`")
    if not model.compaction:
        raise bad(f"compaction: not supported by {model.id}")
    others = [b for c in contents for b in c if b.get("type") != "compaction"]
    if not others:
        said = "`messages` holds no `user` or `assistant` content to summarize"
        raise bad(said, code="compaction_nothing_to_summarize")


def summary(said: SimulatedAnswer) -> str:
    """The words of an answer, as a compaction block carries them."""
    return "".join(b.get("text") for b in said.content if b.type == "text").strip() or EMPTY
