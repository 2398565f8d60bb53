"""Questions, looked up in the conversation and in what was recalled into it.

A question is looked up by its rare words, and what is found is quoted with its source. Nothing
found is said as such. Nothing is made up, and scans are linear in the length of the
conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from reverie.embedded.chat.phrases import CHINESE, ENGLISH, Phrases
from reverie.embedded.chat.reports import line_number, named
from reverie.embedded.history import STAND, CallOutcome, ConversationHistory, Said, clip
from reverie.text.tokens import FUNCTION, has_chinese

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


def _source(said: Said, say: Phrases) -> str:
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
    return f"{named(call)}:{line + 1}"


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
