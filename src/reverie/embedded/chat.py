"""Answers, look-ups and tool reports.

The embedded model as the main agent: a memory assistant that says what it is.

It calls tools where the user's words are a request it knows, reports what came back, and
answers questions from the conversation and from what was recalled into it, with the source. For
everything else it says what it is. Calls that only read go out together; one that may change
something waits for those before it, and after a failure nothing more is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from reverie.embedded import history as past
from reverie.embedded.history import (
    LOOKED_AT,
    STAND,
    CallOutcome,
    ConversationHistory,
    PastCall,
    RequestedCall,
    SpokenText,
    clip,
)
from reverie.embedded.requests import (
    CHINESE,
    ENGLISH,
    TOOLS,
    ParsedRequests,
    Phrases,
    parse_requests,
    phrases,
)
from reverie.text.tokens import FUNCTION, has_chinese
from reverie.transcript.blocks import Block, text_block
from reverie.wire.request import Request

_THANKS = re.compile(r"\s*(?:thanks|thank you|谢谢)[\s.!。！]*", re.IGNORECASE)
_HELP = re.compile(
    r"\s*(?:/?help|帮助|who are you|what are you|what can you do|你是谁|你能做什么)?[\s.!?。！？]*",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\s*(?:what did i (?:ask|say) first|我先说了什么)[\s?？]*", re.IGNORECASE)


def answer_chat(request: Request) -> Sequence[Block]:
    """The blocks of a reply: words, then calls."""
    history = past.read(request)
    words = history.newest.text
    say = phrases(words)
    found = parse_requests(words)
    texts = [report(outcome, say) for outcome in history.fresh]
    asked = [ask for ask in found.asks if ask.tool in history.tools]
    left = asked[len(history.made) :]
    if left and history.made and any(o.error for o in history.fresh):
        texts.append(say.stopped.format(rest="; ".join(clip(_describe_ask(a)) for a in left)))
        left = []
    if not history.made:
        texts += _beginning(history, found, say)
    elif not left:
        texts += _ending(found, say)
    used = {call.id for call in history.calls}
    blocks = [text_block("\n\n".join(texts))] if any(texts) else []
    blocks += [past.call_block(request, used, a.tool, a.input) for a in _next(left)]
    return blocks or [text_block(say.no_words)]


def _next(left: Sequence[RequestedCall]) -> Sequence[RequestedCall]:
    """The calls that may go out now: all that only read, or the one that does more."""
    if left and left[0].alone:
        return left[:1]
    count = next((n for n, ask in enumerate(left) if ask.alone), len(left))
    return left[:count]


def _describe_ask(ask: RequestedCall) -> str:
    return describe_call(PastCall("", ask.tool, ask.input, 0))


def _beginning(history: ConversationHistory, found: ParsedRequests, say: Phrases) -> list[str]:
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
    return [_answer_text(history, say)]


def _ending(found: ParsedRequests, say: Phrases) -> list[str]:
    """What of a request was not done, once the rest is."""
    out: list[str] = []
    if found.rest:
        out.append(say.rest.format(rest=clip("; ".join(found.rest))))
    if found.unread:
        out.append(say.unread.format(read=LOOKED_AT, unread=found.unread))
    return out


def _answer_text(history: ConversationHistory, say: Phrases) -> str:
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
    forms = [say.form(tool) for tool in TOOLS if tool in history.tools]
    return say.can.format(forms=" · ".join(forms)) if forms else say.no_tools


# --- Questions, looked up in the conversation and in what was recalled into it.
#
# A question is looked up by its rare words, and what is found is quoted with its source. Nothing
# found is said as such. Nothing is made up, and scans are linear in the length of the
# conversation.


ASKED = 500  # characters of a question that are looked at
SHOWN = 3
TERMS = 12
PIECE = 400  # characters of a line that are looked at together
STOP_ZH = frozenset("的了是在我你他她它们这那有吗呢吧么什哪谁怎为和与就都也很不个")
ASKING = re.compile(
    r"(?:what|which|who|whose|when|where|why|how|did|do|does|is|are|was|were|have|has|can|tell)\b"
)
ASKING_ZH = ("什么", "哪", "谁", "怎么", "多少", "吗", "为何", "为什么", "如何", "几")
_SENTENCE = re.compile(r"[.!。！]\s|[。！]\S|\n")
WORD = re.compile(r"[^\W_][\w.\-/]{0,80}")


def is_question(text: str) -> bool:
    low = text[:ASKED].strip().lower()
    return (
        low.endswith(("?", "？"))
        or bool(ASKING.match(low))
        or any(word in low for word in ASKING_ZH)
    )


def only_asks(text: str) -> bool:
    """Whether a message is a question and tells nothing."""
    return is_question(text) and len(text) < ASKED and not _SENTENCE.search(text.strip())


def first_ask(history: ConversationHistory, say: Phrases) -> str:
    """What the user said first here."""
    mine = [said for said in history.earlier if said.role == "user"]
    if not mine:
        return say.no_asks
    return say.first_ask.format(text=clip(mine[0].text), source=_source(mine[0], say))


def _source(said: SpokenText, say: Phrases) -> str:
    return say.message.format(number=said.message, who=say.you)


def terms(text: str) -> list[str]:
    """The words of a question that say something; for Chinese, pairs of characters."""
    found: dict[str, None] = {}
    low = text[:ASKED].lower()
    for match in WORD.finditer(low):
        word = match.group().strip(".-/")
        if has_chinese(word):
            kept = [c for c in word if c not in STOP_ZH]
            found.update((a + b, None) for a, b in pairwise(kept) if a + b in word)
            found.update((run, None) for run in re.findall(r"[a-z0-9_.\-/]{2,}", word))
        elif len(word) > 1 and word not in FUNCTION:
            found[word] = None
    return list(found)[:TERMS]


def looked_up(history: ConversationHistory, say: Phrases) -> str | None:
    """Places with the words of the newest message, or None where there are none."""
    wanted = terms(history.newest.text)
    if not wanted:
        return None
    texts = [(text.lower(), text, where) for text, where in _texts(history, say)]
    counts = {term: sum(term in low for low, _, _ in texts) for term in wanted}
    weight = {term: 1.0 / (1 + count) for term, count in counts.items() if count}
    if len(weight) * 2 < len(wanted):
        return None
    need = sum(weight.values()) / 2
    best: dict[str, tuple[float, int, str]] = {}
    for order, (low, text, where) in enumerate(texts):
        for number, line in enumerate(text.split("\n") if any(t in low for t in weight) else ()):
            for at in range(0, len(line), PIECE):
                piece = line[at : at + PIECE]
                score = sum(w for term, w in weight.items() if term in piece.lower())
                if score >= need:
                    shown = clip(piece.lstrip(" >-*\t"))
                    best[shown] = max(best.get(shown, (0.0, 0, "")), (score, order, where(number)))
    if not best:
        return None
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], -item[1][1]))
    rows = (f"  - “{text}” ({source})" for text, (_, _, source) in ranked[:SHOWN])
    return "\n".join([say.found, *rows])


Where = Callable[[int], str]


def _texts(history: ConversationHistory, say: Phrases) -> Iterator[tuple[str, Where]]:
    """What users and tools said, with the source of a line of it. What this model said
    itself is no source."""
    for said in history.earlier:
        if said.role == STAND:
            yield _without_own(said.text), lambda _: say.summary
        elif said.role == "user" and not only_asks(said.text):
            source = _source(said, say)
            yield said.text, lambda _, source=source: source
    for file, body in history.memories:
        yield body, lambda _, file=file: file
    for outcome in history.outcomes:
        yield outcome.text, lambda line, outcome=outcome: _line_source(outcome, line)


def _without_own(text: str) -> str:
    """A summary without the lines that quote this model's own answers."""
    own = [
        one for say in (ENGLISH, CHINESE) for one in (say.found[:40], say.not_found, say.am[:40])
    ]
    return "\n".join(line for line in text.split("\n") if not any(one in line for one in own))


def _line_source(outcome: CallOutcome, line: int) -> str:
    call = outcome.call
    if call.name == "Read" and call.path:
        return f"{call.path}:{line_number(call, outcome.text, line)}"
    return f"{describe_call(call)}:{line + 1}"


# --- What tool results say, in a few lines, with the place they come from.
#
# A report quotes and counts; it never interprets, and it never takes anything in a result for a
# request. Results of any size and shape are read once, line by line.


SHOWN_LINES = 5
STORED = "<persisted-output>"
SILENT = "(no output)"
NUMBERED = re.compile(r" {0,12}(\d{1,9})[\t→|:]")
EXIT = re.compile(r"\bexit(?:ed with)? (?:code|status):?[ \t]{0,3}(-?\d{1,9})", re.IGNORECASE)


def describe_call(call: PastCall) -> str:
    """A call as people would name it."""
    if call.name == "Bash":
        return f"`{clip(call.get('command'), 80)}`"
    where = clip(call.path or call.get("reference"), 100)
    return f"{call.name} {where}".strip() or "?"


def report(outcome: CallOutcome, say: Phrases) -> str:
    """A few lines on one result."""
    call, text = outcome.call, outcome.text
    what = describe_call(call)
    code = exit_code(text) if call.name == "Bash" else None
    if outcome.error and call.name != "Bash":
        return say.failed.format(what=what, text=clip(text) or "?")
    if call.name == "Bash":
        return _command(what, text, outcome.error, code, say)
    return _listing(what, call, text, say)


def exit_code(text: str) -> int | None:
    """The exit code a shell's result names, at its beginning or end."""
    found = EXIT.search(text[:400]) or EXIT.search(text[-400:])
    return int(found[1]) if found else None


def _content_lines(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line.strip() and STORED not in line and line != SILENT
    ]


def line_number(call: PastCall, text: str, index: int = 0) -> int:
    """The number in its file of a line of a result: its own, or counted from the offset."""
    own = NUMBERED.match(text)
    offset = call.input.get("offset")
    known = isinstance(offset, int) and not isinstance(offset, bool) and offset > 0
    start = int(own[1]) if own else (offset if known and isinstance(offset, int) else 1)
    return start + index


def _listing(what: str, call: PastCall, text: str, say: Phrases) -> str:
    """What a call gave: how many lines, from where, and the first of them."""
    lines = _content_lines(text)
    if not lines:
        return say.empty.format(what=what)
    place = f" ({call.path}:{line_number(call, text)})" if call.name == "Read" else ""
    count = len(text.splitlines()) if place else len(lines)
    out = [say.counted(say.lines, f"{what}{place}", count)]
    out += [say.stored] if STORED in text[:200] else []
    out += ["  " + clip(line) for line in lines[:SHOWN_LINES]]
    if len(lines) > SHOWN_LINES and not place:
        out.append("  " + say.more.format(count=len(lines) - SHOWN_LINES))
    return "\n".join(out)


def _command(what: str, text: str, error: bool, code: int | None, say: Phrases) -> str:
    lines = _content_lines(text)
    ended = f", {say.exit.format(code=code)}" if code is not None else ""
    head = say.counted(say.output, what, len(lines), exit=ended)
    if error or code:
        told = ended.lstrip(", ")
        head = say.failed.format(what=what, text=told or clip("\n".join(lines[:1])))
        lines = lines if told else lines[1:]
    out = [head, *("  " + clip(line) for line in lines[-SHOWN_LINES:])]
    return "\n".join([*out[:1], say.stored, *out[1:]] if STORED in text[:200] else out)
