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
from dataclasses import dataclass
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
PLACES = 50  # places looked at for one word in one text
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


@dataclass(frozen=True, slots=True)
class Mention:
    """Somewhere in the conversation that has words of a question."""

    score: float
    order: int
    text: str
    source: str


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
    texts = [*_texts(history, say)]
    lows = [text.lower() for text, _ in texts]
    weight = {t: 1.0 / (1 + sum(t in low for low in lows)) for t in wanted}
    known = [t for t in wanted if any(t in low for low in lows)]
    if not known:
        return None
    best: dict[str, Mention] = {}
    for order, ((text, where), low) in enumerate(zip(texts, lows, strict=True)):
        for place in _places(text, low, where, order, weight):
            old = best.get(place.text)
            if old is None or place.score > old.score:
                best[place.text] = place
    need = 0.5 * sum(weight[t] for t in wanted if t in known)
    ranked = sorted(best.values(), key=lambda p: (-p.score, -p.order))
    kept = [p for p in ranked if p.score >= need][:SHOWN]
    if not kept or len(known) * 2 < len(wanted):
        return None
    return "\n".join([say.found, *(f"  - “{p.text}” ({p.source})" for p in kept)])


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


def _places(
    text: str, low: str, where: Where, order: int, weight: dict[str, float]
) -> Iterator[Mention]:
    if len(low) != len(text):  # a few letters change their length with their case
        text = low
    seen: set[int] = set()
    for term in weight:
        at = low.find(term)
        for _ in range(PLACES):
            if at < 0:
                break
            start = max(low.rfind("\n", max(0, at - 200), at) + 1, at - 200, 0)
            end = low.find("\n", at, at + 200)
            line = low[start : end if end >= 0 else at + 200]
            if start not in seen:
                seen.add(start)
                score = sum(w for t, w in weight.items() if t in line)
                source = where(text.count("\n", 0, start))
                shown = clip(text[start : start + len(line)].lstrip(" >-*\t"))
                yield Mention(score, order, shown, source)
            at = low.find(term, at + max(1, len(line) - (at - start)))


# --- What tool results say, in a few lines, with the place they come from.
#
# A report quotes and counts; it never interprets, and it never takes anything in a result for a
# request. Results of any size and shape are read once, line by line.


SHOWN_LINES = 5
STORED = "<persisted-output>"
SILENT = "(no output)"
NUMBERED = re.compile(r" {0,12}(\d{1,9})[\t→|:]")
EXIT = re.compile(r"\bexit(?:ed with)? (?:code|status):?[ \t]{0,3}(-?\d{1,9})", re.IGNORECASE)
SUMMARY = re.compile(r"\b\d{1,9} (?:passed|failed|errors?|failures?|skipped|passing|failing)\b")
FAILURE = re.compile(r"(?:FAILED|FAIL:|ERROR:?|--- FAIL:|not ok|E {3})[ \t]")
PASSED = re.compile(r"(?:OK|PASS|ok)\b.{0,60}|Ran \d{1,9} tests?\b.{0,60}")


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
    if call.name == "Read":
        return _file(what, call, text, say)
    if call.name == "Bash":
        return _command(what, text, outcome.error, code, say)
    return _format_listing(what, text, say)


def exit_code(text: str) -> int | None:
    """The exit code a shell's result names, at its beginning or end."""
    found = EXIT.search(text[:400]) or EXIT.search(text[-400:])
    return int(found[1]) if found else None


def _content_lines(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line.strip() and STORED not in line and line != SILENT
    ]


def _file(what: str, call: PastCall, text: str, say: Phrases) -> str:
    lines = text.splitlines()
    if not text.strip():
        return say.empty.format(what=what)
    first = line_number(call, text)
    out = [say.counted(say.lines, f"{what} ({call.path}:{first})", len(lines))]
    out += [say.stored] if STORED in text[:200] else []
    out += ["  " + clip(line) for line in lines if line.strip()][:SHOWN_LINES]
    return "\n".join(out)


def line_number(call: PastCall, text: str, index: int = 0) -> int:
    """The number in its file of a line of a result: its own, or counted from the offset."""
    own = NUMBERED.match(text)
    offset = call.input.get("offset")
    known = isinstance(offset, int) and not isinstance(offset, bool) and offset > 0
    start = int(own[1]) if own else (offset if known and isinstance(offset, int) else 1)
    return start + index


def _format_listing(what: str, text: str, say: Phrases) -> str:
    lines = _content_lines(text)
    if not lines:
        return say.empty.format(what=what)
    out = [say.counted(say.lines, what, len(lines))]
    out += [say.stored] if STORED in text[:200] else []
    out += ["  " + clip(line) for line in lines[:SHOWN_LINES]]
    if len(lines) > SHOWN_LINES:
        out.append("  " + say.more.format(count=len(lines) - SHOWN_LINES))
    return "\n".join(out)


def _command(what: str, text: str, error: bool, code: int | None, say: Phrases) -> str:
    lines = _content_lines(text)
    summary = summary_lines(lines)
    ended = f", {say.exit.format(code=code)}" if code is not None else ""
    head = say.counted(say.output, what, len(lines), exit=ended)
    if error or code:
        told = ended.lstrip(", ")
        head = say.failed.format(what=what, text=told or clip("\n".join(lines[:1])))
        lines = lines if told else lines[1:]
    quoted = summary or lines[-SHOWN_LINES:]
    out = [head, *("  " + clip(line) for line in quoted)]
    return "\n".join([*out[:1], say.stored, *out[1:]] if STORED in text[:200] else out)


def summary_lines(lines: Sequence[str]) -> list[str]:
    """What a test run says of itself: its failures and its last summary line."""
    summed = [line for line in lines if SUMMARY.search(line[:400])]
    summed = summed or [line for line in lines[-3:] if PASSED.match(line)]
    failures = [line for line in lines if FAILURE.match(line)]
    if not summed and not failures:
        return []
    last = summed[-1:]
    picked = [line for line in failures if line not in last][:SHOWN_LINES]
    return [*picked, *last]
