"""A rule said again is no second memory: it counts on the one that is there.

The user's own sentences since the last look are held against the rules of memory. One that orders
or forbids, and says what a rule says, with nothing turned round, adds its day to the head of that
rule (`said`), which keeps it in the head of every session from then on. From the third time on the
user is offered what would hold. Only rules of the user's own count, and each once a look.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.errors import NotFound, ReverieError, StoreError
from reverie.light import dataclass, pattern
from reverie.rules import rule as reading
from reverie.rules.match import ASK
from reverie.rules.prohibition import compile_sentence
from reverie.rules.rule_set import compile_rule, same_calls
from reverie.session.extraction.speakers import users_trust
from reverie.session.extraction.trigger import NAME, UserText
from reverie.store.memory_store import MemoryStore
from reverie.store.rules import RuleStore
from reverie.store.rules_ledger import DECLINED, OFFERED, RuleCounts, offer_of
from reverie.store.rules_ledger import SAID as SAID_AGAIN
from reverie.text.format import utc_day
from reverie.topics.claims import find_literals
from reverie.topics.entry import TEAM, TopicFile
from reverie.topics.manifest import SAID
from reverie.topics.novelty import content, negates, sentences
from reverie.topics.versions import Origin
from reverie.world import Notice

LEAST = 2
"""Content words that a sentence and a rule must have in common."""
MAX_SAID = 50
MAX_SENTENCES = 40
MAX_SENTENCE = 400
_ORDERS = pattern(
    r"\b(?:never|always|don['’]?t|do not|stop|again|told you|i said|remember|from now on|no more"
    r"|must|nie|niemals|immer|nicht|wieder|schon gesagt|nunca|siempre|otra vez|te dije|jamais"
    r"|toujours|encore|не|никогда|всегда|опять|снова)\b|不要|别|禁止|总是|又|说过",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RepeatedRule:
    """A rule that was said again, how often by now, and the message that said it."""

    key: str
    times: int
    message: str
    notice: str = ""


def said_again(
    words: Sequence[UserText], memories: MemoryStore, session: str
) -> list[RepeatedRule]:
    """Count every rule that these words repeat; one that changed meanwhile is left as it is."""
    if not any(_may_repeat(said.text) for said in words):
        return []  # and no rule has to be read
    rules = _rules(memories)
    found: list[RepeatedRule] = []
    for said in words:
        older = [one for one in rules if _is_older(one.key, said, memories, session)]
        for sentence in sentences(said.text)[:MAX_SENTENCES] if older else ():
            match = _find_repeated_rule(sentence[:MAX_SENTENCE], older)
            if match is None or any(one.key == match.key for one in found):
                continue
            try:
                found.append(_count_repeat(match, said, memories, session))
            except ReverieError:
                continue
    return found


def _may_repeat(text: str) -> bool:
    """Whether a text orders something, in words or by the calls that it names literally."""
    parts = (one[:MAX_SENTENCE] for one in sentences(text)[:MAX_SENTENCES])
    return bool(_ORDERS.search(text)) or any(map(compile_sentence, parts))


def _rules(memories: MemoryStore) -> list[TopicFile]:
    """The user's own rules: feedback, or what names calls, that nobody else brought."""
    found: list[TopicFile] = []
    for line in memories.folder.scan():
        if line.type not in reading.RULED or line.key.startswith(f"{TEAM}/"):
            continue
        try:
            one = memories.folder.read(line.key)
        except (NotFound, StoreError):
            continue
        about_calls = line.type == "feedback" or compile_rule(one, own=True) is not None
        if about_calls and not (one.is_unverified or one.superseded or one.is_cut):
            found.append(one)
    return found


def _is_older(key: str, said: UserText, memories: MemoryStore, session: str) -> bool:
    """Whether a rule was there before these words: what made it does not say it again, and what
    was counted is not counted twice."""
    try:
        versions = memories.history.log(key)
    except (NotFound, StoreError):
        return True
    if any(
        one.origin.session == session and said.source in one.origin.messages for one in versions
    ):
        return False
    return not versions or versions[0].at < said.at


def _find_repeated_rule(sentence: str, rules: Sequence[TopicFile]) -> TopicFile | None:
    """The rule that a sentence says again: one that names the same calls literally, or one that
    has all its words, and of which it has half, with "never" and "always" the same."""
    literal = compile_sentence(sentence)
    if literal is not None:  # it names the calls of a rule, in whatever words
        same = (one for one in rules if same_calls(literal, compile_rule(one, own=True) or {}))
        if (match := next(same, None)) is not None:
            return match
    about = content(sentence)
    if len(about) < LEAST or not _ORDERS.search(sentence):
        return None
    for one in rules:
        core = one.description or one.body.partition("\n\n")[0]
        theirs, whole = content(core), content(f"{core} {one.body}")
        if not about <= whole:
            continue  # a word more may be another rule
        if len(about & theirs) * 2 < len(theirs) or negates(sentence) != negates(core):
            continue
        if find_literals(sentence, names=False) - find_literals(f"{core}\n{one.body}", names=False):
            continue  # another value is another rule
        return one
    return None


def _count_repeat(
    one: TopicFile, said: UserText, memories: MemoryStore, session: str
) -> RepeatedRule:
    day = utc_day(said.at) if said.at else "unknown day"
    days = [*reading.said_on(one.front), day][-MAX_SAID:]
    changed = one.with_value(", ".join(days), SAID)
    note = f"said again on {day}"
    origin = Origin("save", users_trust(one), NAME, session, (said.source,), "Write", note)
    memories.save(one.key, changed.data, origin)
    times = len(days) + 1
    counts: RuleCounts | None = None
    if memories.project is not None:
        store = RuleStore(memories, memories.project)
        store.count([(one.key, SAID_AGAIN)], said.at, session)
        counts = store.counts().get(one.key) if times >= OFFERED else None
    return RepeatedRule(one.key, times, said.source, _repeat_notice(changed, times, counts))


def _repeat_notice(one: TopicFile, times: int, counts: RuleCounts | None) -> str:
    """What a person is told where a rule was said too often."""
    if times < OFFERED or (counts is not None and counts.of(DECLINED)):
        return ""
    told = f"You have said this {times} times: {one.description or one.name}."
    rule = compile_rule(one, own=True)
    if rule is None:
        return f"{told} It names no call to hold: add `applies_to` to {one.key} (docs/rules.md)"
    offer = offer_of(rule, counts)
    if offer is None:
        return told
    does = "has you asked before calls" if offer.level == ASK else "blocks calls"
    return f"{told} `reverie memory rules level {one.key} {offer.level}` {does} that break it"


def notices(repeats: Sequence[RepeatedRule]) -> list[Notice]:
    """What is said of them."""
    found: list[Notice] = []
    for one in repeats:
        found.append(Notice(NAME, f"said again, counted on {one.key} ({one.times} times)"))
        if one.notice:
            found.append(Notice("rules", one.notice, "warning"))
    return found
