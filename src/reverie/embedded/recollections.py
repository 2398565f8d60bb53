"""Answers about the conversation so far, from the conversation itself.

A few kinds of question are known by their words; any other is looked up by its rare words,
and what is found is quoted with its source. Nothing found is said as such. Nothing is made
up, and scans are linear in the length of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reverie.embedded.history import CallOutcome, ConversationHistory, Said
from reverie.embedded.phrases import Phrases, is_chinese
from reverie.embedded.reports import clip, is_test_run, line_number, named, report

ASKED = 500  # characters of a question that are looked at
SHOWN = 3
LISTED = 20
TERMS = 12
PLACES = 50  # places looked at for one word in one text
SAYING = r"\b(?:ask|asked|say|said|question|request|message|want|wanted|tell|told)\b"
MINE = r"\b(?:i|my|me)\b"
STOP = frozenset(
    (
        *(
            "the",
            "a",
            "an",
            "is",
            "are",
            "was",
            "were",
            "do",
            "does",
            "did",
            "what",
            "which",
            "who",
        ),
        *(
            "whose",
            "when",
            "where",
            "why",
            "how",
            "i",
            "you",
            "we",
            "it",
            "my",
            "our",
            "your",
            "of",
        ),
        *("in", "on", "at", "to", "for", "with", "and", "or", "not", "that", "this", "there", "be"),
        *("have", "has", "had", "can", "could", "would", "should", "will", "me", "us", "about"),
        *("tell", "know", "please", "from", "by", "as", "if", "so", "any", "some", "than"),
    )
)
STOP_ZH = frozenset("的了是在我你他她它们这那有吗呢吧么什哪谁怎为和与就都也很不个")
ASKING = re.compile(
    r"(?:what|which|who|whose|when|where|why|how|did|do|does|is|are|was|were|have|has|can|tell)\b"
)
ASKING_ZH = ("什么", "哪", "谁", "怎么", "多少", "吗", "为何", "为什么", "如何", "几")
WORD = re.compile(r"[^\W_][\w.\-/]{0,80}")


def is_question(text: str) -> bool:
    low = text[:ASKED].strip().lower()
    return (
        low.endswith(("?", "？"))
        or bool(ASKING.match(low))
        or any(word in low for word in ASKING_ZH)
    )


# --- kinds of question that are known


def _quoted(said: Said, say: Phrases, template: str) -> str:
    return template.format(text=clip(said.text), source=source_of(said, say))


def source_of(said: Said, say: Phrases) -> str:
    who = say.you if said.role == "user" else say.me
    return say.message.format(number=said.message, who=who)


def _mine(history: ConversationHistory) -> list[Said]:
    return [s for s in history.earlier if s.role == "user"]


def _first(history: ConversationHistory, say: Phrases) -> str:
    mine = _mine(history)
    return _quoted(mine[0], say, say.first_ask) if mine else say.no_asks


def _last(history: ConversationHistory, say: Phrases) -> str:
    mine = _mine(history)
    return _quoted(mine[-1], say, say.last_ask) if mine else say.no_asks


def _all(history: ConversationHistory, say: Phrases) -> str:
    mine = [f"“{clip(s.text)}” ({source_of(s, say)})" for s in _mine(history)]
    return _listed(say.all_asks, mine, say) if mine else say.no_asks


def _listed(head: str, items: Sequence[str], say: Phrases) -> str:
    if not items:
        return f"{head} {say.none_such}"
    out = [head, *(f"  - {item}" for item in items[:LISTED])]
    if len(items) > LISTED:
        out.append("  " + say.more.format(count=len(items) - LISTED))
    return "\n".join(out)


def _of_tools(
    history: ConversationHistory, names: tuple[str, ...], key: str, say: Phrases
) -> list[str]:
    good = {o.call.id for o in history.outcomes if not o.error or o.call.name == "Bash"}
    found: dict[str, int] = {}
    for call in history.calls:
        if call.name in names and call.get(key) and call.id in good:
            found.setdefault(clip(call.get(key)), call.message)
    return [f"{name} ({say.message.format(number=at, who=say.me)})" for name, at in found.items()]


def _files(history: ConversationHistory, say: Phrases) -> str:
    return _listed(say.files_read, _of_tools(history, ("Read",), "file_path", say), say)


def _changed(history: ConversationHistory, say: Phrases) -> str:
    names = _of_tools(history, ("Write", "Edit"), "file_path", say)
    return _listed(say.files_changed, names, say)


def _commands(history: ConversationHistory, say: Phrases) -> str:
    return _listed(say.commands, _of_tools(history, ("Bash",), "command", say), say)


def _errors(history: ConversationHistory, say: Phrases) -> str:
    failed = [f"{named(o.call)}: {clip(o.text)}" for o in history.outcomes if o.error]
    return _listed(say.errors, failed, say)


def _tests(history: ConversationHistory, say: Phrases) -> str:
    runs = [o for o in history.outcomes if is_test_run(o)]
    if not runs:
        return say.none_such
    where = say.message.format(number=runs[-1].message, who=named(runs[-1].call))
    return f"{say.tests.format(source=where)}\n{report(runs[-1], say)}"


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question: all of its patterns must be found."""

    patterns: tuple[str, ...]
    answer: Callable[[ConversationHistory, Phrases], str]

    def fits(self, question: str) -> bool:
        return all(re.search(pattern, question) for pattern in self.patterns)


WHICH = r"\b(?:which|what|list)\b"
KINDS = (
    QuestionKind((r"\b(?:first|initially|beginning|at the start)\b", SAYING, MINE), _first),
    QuestionKind((r"\b(?:last|previous|just now|before this|before that)\b", SAYING, MINE), _last),
    QuestionKind((r"\bwhat (?:did|have|had) i (?:ask|asked|say|said|want|told|tell)\b",), _all),
    QuestionKind((WHICH, r"\bfiles?\b", r"\b(?:read|open|opened|see|seen|view|looked?)\b"), _files),
    QuestionKind(
        (WHICH, r"\bfiles?\b", r"\b(?:change|changed|edit|edited|write|wrote|written|creat)"),
        _changed,
    ),
    QuestionKind((WHICH, r"\bcommands?\b", r"\b(?:run|ran|execute|executed)\b"), _commands),
    QuestionKind(
        (r"\btests?\b", r"\b(?:say|said|pass|passed|fail|failed|failing|results?|outcome)\b"),
        _tests,
    ),
    QuestionKind(
        (r"\b(?:what went wrong|(?:which|what|any) (?:errors?|failures?)|what failed)\b",), _errors
    ),
    QuestionKind(("第一|最先|最开始|一开始|最初", "问|说|要求|消息|话"), _first),
    QuestionKind(("上一|上次|刚才|刚刚", "我", "问|说|要求|消息|话"), _last),
    QuestionKind(("我.{0,4}(?:问|说)(?:过|了).{0,3}(?:什么|哪些)",), _all),
    QuestionKind(("哪些文件|什么文件|哪个文件", "读|看|打开"), _files),
    QuestionKind(("哪些文件|什么文件|哪个文件", "改|写|编辑|创建"), _changed),
    QuestionKind(("哪些命令|什么命令", "运行|执行|跑"), _commands),
    QuestionKind(("测试", "结果|通过|失败|怎么样|如何|说了?什么"), _tests),
    QuestionKind(("出了?什么错|哪些错误|什么错误|报了?什么错|哪里出错",), _errors),
)


def known(history: ConversationHistory, say: Phrases) -> str | None:
    """The answer to a question of a known kind."""
    question = history.newest.text.strip()
    if len(question) > ASKED:
        return None
    low = question.lower()
    found = next((kind for kind in KINDS if kind.fits(low)), None)
    return found.answer(history, say) if found and is_question(low) else None


# --- any other question: its words, looked up


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
        if any(map(is_chinese, word)):
            kept = [c for c in word if c not in STOP_ZH]
            found.update((a + b, None) for a, b in pairwise(kept) if a + b in word)
            found.update((run, None) for run in re.findall(r"[a-z0-9_.\-/]{2,}", word))
        elif len(word) > 1 and word not in STOP:
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
        if said.role == "user":
            source = source_of(said, say)
            yield said.text, lambda _, source=source: source
    for file, body in history.memories:
        yield body, lambda _, file=file: file
    for outcome in history.outcomes:
        yield outcome.text, lambda line, outcome=outcome: _line_source(outcome, line)


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
                yield Mention(score, order, clip(text[start : start + len(line)]), source)
            at = low.find(term, at + max(1, len(line) - (at - start)))
