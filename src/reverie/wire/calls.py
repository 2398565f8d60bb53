"""Tool calls that a model wrote badly, or did not finish writing.

A call whose input is cut off by the output limit is never a call: it becomes a line of
text that says so and keeps what there was. A finished call whose input is not a JSON
object stays a call, with its text under `INVALID_JSON`, so that the tool refuses it and
the model reads why. Nothing here repairs JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.errors import InvalidMessage
from reverie.transcript.blocks import Block, dump, parse, text_block

_CUT_CALL = re.compile(r"\[A call of (\S{1,200}) was cut off by the output limit: ")
CUT = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})


def is_object(text: str) -> bool:
    try:
        return isinstance(parse(text), dict)
    except InvalidMessage:
        return False


def input_text(written: str) -> str:
    """The input of a finished call as the text of a JSON object."""
    if not written.strip():
        return "{}"
    return written if is_object(written) else '{"INVALID_JSON":' + dump(written) + "}"


def was_cut(written: str, stop_reason: str) -> bool:
    """Whether a call's input ends where the answer was cut off."""
    return stop_reason in CUT and not is_object(written)


def cut_call(name: str, written: str) -> Block:
    return text_block(f"[A call of {name} was cut off by the output limit: {written}]")


def cut_name(blocks: Sequence[Block]) -> str:
    """The tool whose call was cut off at the end of an answer; empty where none was."""
    said = [b for b in blocks if b.type == "text"]
    found = _CUT_CALL.match(said[-1].text) if said else None
    return found[1] if found else ""
