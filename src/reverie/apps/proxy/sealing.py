"""Old rounds of a long conversation, sealed: the policies `collapse` and `classic`.

What `reverie.fit` does to a list, done to a request after all else was decided; what leaves lies
in files that the client's own tool reads. The same history gives the same bytes, whenever and by
whichever process it is asked for. What the client says before the first prompt, its user's standing
instructions among it, never leaves; and where the client itself sums up, nothing more does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from reverie.api.fitting import Fitter, Policy
from reverie.middleware import chain
from reverie.middleware.engine import Seal
from reverie.middleware.scanning import LIST
from reverie.middleware.speakers import is_notice
from reverie.transcript.blocks import dump, parse
from reverie.wire.reading import Format

Message = dict[str, Any]
FOLDER = "sealed"
ASIDE = ("system", "developer")
MOST = 24
"""Conversations that are known at once; one that comes back later is read anew."""


def sealing(policy: Policy) -> Seal:
    """How a request's text becomes one whose old rounds are sealed."""
    fitters: OrderedDict[tuple[Path, str, str], Fitter] = OrderedDict()

    def fitter(key: tuple[Path, str, str], tools: list[Any]) -> Fitter:
        found = fitters.pop(key, None) or Fitter(
            model=key[1],
            tools=tools,
            policy=policy,
            store=key[0] / FOLDER,
            via=key[2],
            marks=False,
        )
        fitters[key] = found
        if len(fitters) > MOST:
            fitters.popitem(last=False)[1].close()
        return found

    def seal(
        form: Format, text: str, reader: str, folder: Path, *, summing: bool = False
    ) -> str | None:
        value = chain.as_value(parse(text))
        messages: Any = value[LIST[form]]
        if not isinstance(messages, list):
            return None
        head, rest = _begun(cast("list[Message]", messages))
        end = _asked(rest) if summing else len(rest)
        if not end:
            return None
        key = (folder, str(value.get("model") or ""), reader)
        made = fitter(key, value.get("tools") or []).fit(rest[:end])
        if not made.changes:
            return None
        return dump({**value, LIST[form]: [*_joined(head, list(made), form), *rest[end:]]})

    return seal


def _begun(messages: list[Message]) -> tuple[list[Message], list[Message]]:
    """What stands before the first prompt, and the rest; a message that has both is parted."""
    for at, message in enumerate(messages):
        if message.get("role") in ASIDE:
            continue
        if message.get("role") != "user":
            return messages[:at], messages[at:]
        blocks = _blocks(message)
        count = next((n for n, one in enumerate(blocks) if not _is_notice(one)), len(blocks))
        if count < len(blocks):
            own = [{**message, "content": blocks[:count]}] if count else []
            parted = {**message, "content": blocks[count:]} if count else message
            return [*messages[:at], *own], [parted, *messages[at + 1 :]]
    return messages, []


def _blocks(message: Message) -> list[Any]:
    content = message.get("content")
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _is_notice(block: object) -> bool:
    text = block if isinstance(block, str) else chain.as_value(block).get("text")
    return isinstance(text, str) and is_notice(text)


def _asked(messages: Sequence[Message]) -> int:
    """The end of what was asked last, before this request."""
    spoken = (n for n, one in enumerate(messages) if one.get("role") == "assistant")
    return max(spoken, default=0)


def _joined(head: list[Message], rest: list[Message], form: Format) -> list[Message]:
    """Both again as one list, blocks of one speaker in one message."""
    if form != "messages" or not head or not rest or head[-1].get("role") != "user":
        return [*head, *rest]
    if rest[0].get("role") != "user":
        return [*head, *rest]
    both = [_text_block(one) for m in (head[-1], rest[0]) for one in _blocks(m)]
    return [*head[:-1], {**rest[0], "content": both}, *rest[1:]]


def _text_block(block: object) -> object:
    return {"type": "text", "text": block} if isinstance(block, str) else block
