"""The embedded model as the main agent: a plain, honest conversation.

It calls tools where the user's words are a request it knows, reports what came back, and
answers questions about the conversation from the conversation. For everything else it
says what it is. Calls that only read go out together; one that may change something waits
for those before it, and after a failure nothing more is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from reverie.embedded import history as past
from reverie.embedded.chat.asks import Asked, asked
from reverie.embedded.forms import CallAsked, read_ask
from reverie.embedded.history import ConversationHistory, PastCall
from reverie.embedded.phrases import ENGLISH, Phrases, phrases
from reverie.embedded.recollections import is_question, known, looked_up
from reverie.embedded.reports import clip, is_test_run, named, report
from reverie.text.clauses import LOOKED_AT, bared
from reverie.transcript.blocks import Block, text_block
from reverie.transcript.request import Request

THANKS = frozenset({"thanks", "thank you", "thx", "谢谢", "多谢", "thank you very much"})
HELP = frozenset({"help", "/help", "?", "帮助", "what can you do", "你能做什么", "你会做什么"})
ABOUT = (
    *("who are you", "what are you", "what is this", "are you a", "are you real", "your name"),
    *("what can you do", "how do i configure", "how can i configure", "which model are you"),
    *("你是谁", "你是什么", "你是不是", "你能做", "你会做", "怎么配置", "如何配置", "什么模型"),
)


def answer(request: Request) -> Sequence[Block]:
    """The blocks of a reply: words, then calls."""
    history = past.read(request)
    words = history.newest.text
    say = phrases(words)
    found = asked(words)
    texts = [report(outcome, say) for outcome in history.fresh]
    steps = _planned(history, found)
    left = steps[len(history.made) :]
    if left and history.made and any(o.error for o in history.fresh):
        texts.append(say.stopped.format(rest="; ".join(clip(_named(a)) for a in left)))
        left = []
    calls = _next(left)
    if not history.made:
        texts += _beginning(history, found, say)
    elif not left:
        texts += _ending(found, say)
    used = {call.id for call in history.calls}
    blocks = [text_block("\n\n".join(texts))] if any(texts) else []
    blocks += [past.call_block(request, used, a.tool, a.input) for a in calls]
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
        out.append(_same_tests(history, before, ask) if ask.tests else ask)
    return out


def _same_tests(
    history: ConversationHistory, before: Sequence[PastCall], ask: CallAsked
) -> CallAsked:
    """The tests are run the way they were run before in this conversation."""
    ids = {call.id for call in before}
    runs = [o.call for o in history.outcomes if o.call.id in ids and is_test_run(o)]
    runs = [call for call in runs if "test" in call.get("command").lower()]
    return CallAsked("Bash", {"command": runs[-1].get("command")}) if runs else ask


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
    if not history.newest.text.strip():
        return [] if history.fresh else [say.no_words, *_about(history, say)]
    if found.asks:
        missing = dict.fromkeys(a.tool for a in found.asks if a.tool not in history.tools)
        lines = [say.missing.format(tool=tool) for tool in missing]
        if len(missing) and not any(a.tool in history.tools for a in found.asks):
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
    words = history.newest.text
    plain = bared(words[:LOOKED_AT]).lower().strip(" .!?。！？~")
    if plain in THANKS:
        return say.welcome
    short = words[:LOOKED_AT].strip().lower()
    about = len(short) <= 200 and any(one in short for one in ABOUT)
    if plain in HELP or not plain or about:
        return "\n".join(_about(history, say))
    found = known(history, say)
    if found is None and is_question(words):
        found = looked_up(history, say) or say.not_found
    if found is not None:
        return found
    if any(ENGLISH.am in s.text or say.am in s.text for s in history.earlier):
        return say.short
    return "\n".join([say.no_rule, *_about(history, say)])


def _about(history: ConversationHistory, say: Phrases) -> list[str]:
    return [say.am, _can(history, say), say.recall, say.configure]


def _can(history: ConversationHistory, say: Phrases) -> str:
    forms = [form for tool, form in say.forms.items() if tool in history.tools]
    return say.can.format(forms=" · ".join(forms)) if forms else say.no_tools
