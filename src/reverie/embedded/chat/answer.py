"""The embedded model as the main agent: a memory assistant that says what it is.

It calls tools where the user's words are a request it knows, reports what came back, and
answers questions from the conversation and from what was recalled into it, with the source. For
everything else it says what it is. Calls that only read go out together; one that may change
something waits for those before it, and after a failure nothing more is done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.embedded import history as past
from reverie.embedded.chat.lookup import first_ask, is_question, looked_up
from reverie.embedded.chat.phrases import ENGLISH, Phrases, phrases
from reverie.embedded.chat.reports import named, report
from reverie.embedded.chat.requests import Asked, asked
from reverie.embedded.history import (
    LOOKED_AT,
    CallAsked,
    ConversationHistory,
    PastCall,
    clip,
    read_ask,
)
from reverie.transcript.blocks import Block, text_block
from reverie.wire.request import Request

_THANKS = re.compile(r"\s*(?:thanks|thank you|谢谢)[\s.!。！]*", re.IGNORECASE)
_HELP = re.compile(
    r"\s*(?:/?help|帮助|who are you|what are you|what can you do|你是谁|你能做什么)?[\s.!?。！？]*",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\s*(?:what did i (?:ask|say) first|我先说了什么)[\s?？]*", re.IGNORECASE)


def answer(request: Request) -> Sequence[Block]:
    """The blocks of a reply: words, then calls."""
    history = past.read(request)
    words = history.newest.text
    say = phrases(words)
    found = asked(words)
    texts = [report(outcome, say) for outcome in history.fresh]
    left = _planned(history, found)[len(history.made) :]
    if left and history.made and any(o.error for o in history.fresh):
        texts.append(say.stopped.format(rest="; ".join(clip(_named(a)) for a in left)))
        left = []
    if not history.made:
        texts += _beginning(history, found, say)
    elif not left:
        texts += _ending(found, say)
    used = {call.id for call in history.calls}
    blocks = [text_block("\n\n".join(texts))] if any(texts) else []
    blocks += [past.call_block(request, used, a.tool, a.input) for a in _next(left)]
    return blocks or [text_block(say.no_words)]


def _planned(history: ConversationHistory, found: Asked) -> list[CallAsked]:
    """The calls that answer a message, in order; the same at every round of its turn."""
    before = [c for c in history.calls if c.message < history.newest.message]
    seen = {c.path for c in before if c.name == "Read"}
    out: list[CallAsked] = []
    for ask in found.asks:
        path = str(ask.input.get("file_path", ""))
        if ask.tool not in history.tools:
            continue
        if ask.tool == "Edit" and path not in seen and "Read" in history.tools:
            out.append(read_ask(path))
        if path:
            seen.add(path)
        out.append(ask)
    return out


def _next(left: Sequence[CallAsked]) -> Sequence[CallAsked]:
    """The calls that may go out now: all that only read, or the one that does more."""
    if left and left[0].alone:
        return left[:1]
    count = next((n for n, ask in enumerate(left) if ask.alone), len(left))
    return left[:count]


def _named(ask: CallAsked) -> str:
    return named(PastCall("", ask.tool, ask.input, 0))


def _beginning(history: ConversationHistory, found: Asked, say: Phrases) -> list[str]:
    """What is said before any call: to a request, to a question, to anything else."""
    if history.fresh and not found.asks:
        return []  # said to a call that was denied: what became of that is told
    if not history.newest.text.strip():
        return [say.no_words, *_about(history, say)]
    if found.asks:
        missing = dict.fromkeys(a.tool for a in found.asks if a.tool not in history.tools)
        lines = [say.missing.format(tool=tool) for tool in missing]
        if missing and not any(a.tool in history.tools for a in found.asks):
            lines += [_can(history, say), *_ending(found, say)]
        return lines
    return [_said(history, say)]


def _ending(found: Asked, say: Phrases) -> list[str]:
    """What of a request was not done, once the rest is."""
    out: list[str] = []
    if found.rest:
        out.append(say.rest.format(rest=clip("; ".join(found.rest))))
    if found.unread:
        out.append(say.unread.format(read=LOOKED_AT, unread=found.unread))
    return out


def _said(history: ConversationHistory, say: Phrases) -> str:
    words = history.newest.text[:LOOKED_AT]
    if _THANKS.fullmatch(words):
        return say.welcome
    if _HELP.fullmatch(words):
        return "\n\n".join(_about(history, say))
    if _FIRST.fullmatch(words):
        return first_ask(history, say)
    if is_question(words):
        return looked_up(history, say) or say.not_found
    if any(ENGLISH.am in s.text or say.am in s.text for s in history.earlier):
        return say.short
    return "\n\n".join([say.no_rule, *_about(history, say)])


def _about(history: ConversationHistory, say: Phrases) -> list[str]:
    return [say.am, _can(history, say), say.recall, say.configure]


def _can(history: ConversationHistory, say: Phrases) -> str:
    forms = [form for tool, form in say.forms.items() if tool in history.tools]
    return say.can.format(forms=" · ".join(forms)) if forms else say.no_tools
