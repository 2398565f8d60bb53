"""Whose word a draft is: the user's, or somebody else's.

A draft may name the sentence of the user's that it rests on (`from:`). Where that is a verbatim
part of what the user said since the last extraction, the draft is the user's, in whatever words or
language. Without it the content words decide. Either way a draft is somebody else's where it has a
literal that a tool said and the user did not, or a sentence that a tool says and the user does not.

What the user asks, reports of others or rejects is no statement of theirs. A yes to a question
states what was asked, unless a tool brought it up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from reverie.rules.rule import is_firm
from reverie.session.extraction.drafts import MemoryDraft
from reverie.session.extraction.trigger import (
    RECALL,
    NewMessages,
    UserText,
    head_text,
    recalled_texts,
    tools,
    user_words,
)
from reverie.text.format import utc_day
from reverie.text.safety import strip
from reverie.text.tokens import FUNCTION
from reverie.topics.claims import find_literals
from reverie.topics.consent import (
    asked_last,
    is_yes,
    language_of,
    unwrapped,
    without_questions,
    without_reported,
)
from reverie.topics.entry import FROM, TopicFile
from reverie.topics.novelty import PassageIndex, content, echo, is_said, sentences
from reverie.topics.trust import Trust, reads_like_instruction
from reverie.transcript.blocks import text_of
from reverie.transcript.messages import Item
from reverie.transcript.view import View

OWN = 0.4
"""The part of a draft's content that must be the user's where it names no sentence; and the part of
a question that one passage of a tool's holds: no yes makes that the user's. Wrong rows of the
trust tables, 125 in sight and 21 held back: 0 and 1 at .34, 0 and 1 at .4, 0 and 2 at .5."""
ENOUGH = 3
"""Content words from which on a sentence can be known as somebody's."""
NAMED = 5
"""Letters by which a name is known: Postgres is PostgreSQL."""
MAX_SPOKEN = 200_000
"""Characters that are looked at, of one result and of all that was said."""
SHORT_ANSWER = 15
"""Content words of an answer that cannot be told apart from what it answers."""
MAX_NAMED = 20
"""Messages that an origin names."""

_YES = re.compile(
    r"(?:yes|yep|yeah|exactly|right|correct|perfect|great|good|nice|ok(?:ay)?|sure|agreed|"
    r"keep|love|that's it|do (?:it|that|so)|对|好|是的?|没错|正是|可以|就这样|完美|同意)",
    re.IGNORECASE,
)
_NO = re.compile(
    r"(?:no\b|nope|not\b|wrong|actually|rather|instead|it'?s\b|不|错|应该|改成)", re.IGNORECASE
)
_LONG_WORD = re.compile(
    "\\b([A-Za-z\u00c0-\u024f\u0400-\u04ff]{5})[A-Za-z\u00c0-\u024f\u0400-\u04ff]+"
)
_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W_\u3040-\u30ff\u3400-\u9fff]+")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_PARTS = re.compile(r"\n|…|\.\.\.")


# --- what was said, and by whom


@dataclass(frozen=True, slots=True)
class UserStatement:
    """What a message of the user's states; `rules` is that without what it reports of others."""

    source: str
    text: str
    rules: str


@dataclass(frozen=True)
class ConversationText:
    """What the user stated since the last extraction, and what everybody else said."""

    stated: tuple[UserStatement, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()  # messages, with what a yes or no was about
    injected: tuple[tuple[str, str], ...] = ()  # memories, index, instruction files
    results: tuple[str, ...] = ()  # what tools said
    agent: str = ""  # what the agent said since
    words: str = ""  # all that the user ever said here, and the days on which they did
    fresh_results: bool = False  # whether a tool said anything since the last extraction
    tools: frozenset[str] = frozenset()  # names of the agent's own tools: a draft may say them

    @cached_property
    def injected_passages(self) -> PassageIndex:
        return PassageIndex(self.injected)

    @cached_property
    def answer_passages(self) -> PassageIndex:
        return PassageIndex(self.answers)

    @cached_property
    def result_passages(self) -> PassageIndex:
        return PassageIndex(("a tool", one) for one in self.results)

    @classmethod
    def of(cls, *user: str, injected: str = "") -> ConversationText:
        """What a user alone said, message by message."""
        said = [UserText(f"m{n}", text, 0.0) for n, text in enumerate(user)]
        return cls(
            tuple(_stated(one, ()) for one in said),
            tuple((one.source, one.text) for one in said),
            (("recall", injected),),
            words="\n".join(user),
        )


def heard_words(view: View, fresh: NewMessages) -> ConversationText:
    """Who said what in a conversation."""
    words = user_words(view, fresh.items)
    results = tuple(result_texts(view.items))
    agent = [item for item in fresh.items if item.role == "assistant"]
    spoken = [piece.block.get("text") for item in agent for piece in item.pieces]
    ever = [one.text for one in user_words(view, view.items)]
    return ConversationText(
        tuple(_stated(one, results) for one in words),
        tuple((one.source, _with_statement(one)) for one in words),
        (
            *((RECALL, text) for text in recalled_texts(view)),
            ("the instructions or the index", head_text(view)),
        ),
        results,
        "\n".join((*spoken, *(one.before for one in words[:1])))[-MAX_SPOKEN:],
        "\n".join((*ever, *(utc_day(one.at) for one in words if one.at)))[-MAX_SPOKEN:],
        any(result_texts(fresh.items)),
        frozenset(map(str.lower, tools(view))),
    )


def result_texts(items: Iterable[Item]) -> Iterator[str]:
    """What tools gave, call by call."""
    for item in items:
        for piece in item.pieces:
            if piece.block.type == "tool_result":
                yield text_of(piece.block.value)[:MAX_SPOKEN]


def _stated(words: UserText, results: Iterable[str]) -> UserStatement:
    """What a message states, behind the question that it says yes to; not where a tool brought
    that up, in whichever form of its words."""
    text = unwrapped(words.text)
    question = asked_last(words.before)
    if not question or not is_yes(text):
        text = without_questions(text)
        return UserStatement(words.source, text, without_reported(text))
    said = PassageIndex(("a tool", _begin(one)) for one in results)
    asked = content(_begin(question))
    if said.best(asked).share < OWN:
        text = f"{question}\n{text}"
    return UserStatement(words.source, text, text)


def _begin(text: str) -> str:
    """A text with its long words cut to how they begin."""
    return _LONG_WORD.sub(r"\1", text)


def _with_statement(words: UserText) -> str:
    """A message, behind what it answers where it is a bare yes or no to that."""
    said = words.text.lstrip()
    if not words.before or not (_YES.match(said) or _NO.match(said)):
        return words.text
    if len(content(words.text[:2_000])) > SHORT_ANSWER:
        return words.text
    asked = [part for part in words.before.split("\n\n") if part.strip()]
    return f"{asked[-1]}\n{words.text}"


# --- the judgement


@dataclass(frozen=True, slots=True)
class DraftVerdict:
    """How far a draft can be trusted and which messages carry it; or why it is not saved."""

    trust: Trust = Trust.UNTRUSTED
    messages: tuple[str, ...] = ()
    refusal: str = ""


def judge(draft: MemoryDraft, heard: ConversationText) -> DraftVerdict:
    """What a draft adds, judged by where it comes from."""
    known = set(_file_sentences(draft.key, draft.base or b""))
    added = [one for one in _file_sentences(draft.key, draft.data) if one not in known]
    found = echo(added, heard.injected_passages, heard.answer_passages)
    if found is not None and not _spells_news(draft, heard):
        return DraftVerdict(refusal=f"it repeats what was injected ({found.source})")
    topic = TopicFile(draft.key, draft.data)
    rule = topic.type == "feedback" or any(map(reads_like_instruction, added))
    stated = [(one.source, one.rules if rule else one.text) for one in heard.stated]
    own, quote = PassageIndex(stated), _named(draft)
    source = _find_quote(quote, stated)
    if source and not _is_about(quote, " ".join(added)):
        source = ""
    matches = {one: own.best(content(one)) for one in added}
    carried = (match.source for one, match in matches.items() if is_said(content(one), match))
    every = tuple(one.source for one in heard.stated)[-MAX_NAMED:]
    named = (source,) if source else tuple(dict.fromkeys(carried))[:MAX_NAMED] or every
    invented = content(quote) and not is_said(content(quote), own.best(content(quote)))
    owned = source or (not invented and _is_the_users(added, own, heard))
    if not owned or _is_a_tools(added, quote, own, heard):
        return DraftVerdict(Trust.UNTRUSTED, named)
    return DraftVerdict(users_trust(topic), named)


def users_trust(topic: TopicFile) -> Trust:
    """The trust of what the user said; but that a rule asks or blocks is theirs to set by hand."""
    return Trust.AGENT if is_firm(topic.front) else Trust.USER


def _named(draft: MemoryDraft) -> str:
    """The sentence that a draft names as its source, unless its file had that key before."""
    now, before = (
        TopicFile(draft.key, one).front.get(FROM) for one in (draft.data, draft.base or b"")
    )
    return "" if now == before else now


def without_source(draft: MemoryDraft) -> MemoryDraft:
    """The draft as it is saved: the origin of its version names the message it rests on."""
    if not _named(draft):
        return draft
    topic = TopicFile(draft.key, draft.data)
    kept = TopicFile(draft.key, draft.base or b"").front.get(FROM)
    topic = topic.with_value(kept, FROM) if kept else topic.without_value(FROM)
    return replace(draft, data=topic.data)


def _find_quote(quote: str, stated: Sequence[tuple[str, str]]) -> str:
    """The message that a quotation is a verbatim part of, or "": whole words, whatever the
    spaces, quotation marks and case; what it leaves out in the middle is marked by dots."""
    parts = [words for part in _PARTS.split(quote) if (words := _words(part))]
    if sum(_count_words(part) for part in parts) < ENOUGH:
        return ""
    for source, text in stated:
        said = f" {' '.join(_words(text))} "
        if all(f" {' '.join(part)} " in said for part in parts):
            return source
    return ""


def _words(text: str) -> list[str]:
    """The words of a text; of a script without spaces its characters."""
    return _WORD.findall(unicodedata.normalize("NFKC", strip(text)).casefold())


def _count_words(words: Sequence[str]) -> int:
    """The content words among these; two characters of a script without spaces are one."""
    dense = sum(not one.isascii() and len(one) == 1 for one in words)
    return (dense + 1) // 2 + sum(len(one) > 1 and one not in FUNCTION for one in words)


def _is_about(quote: str, text: str) -> bool:
    """Whether a draft has a word of the sentence it names, where both are in one language."""
    languages = {language_of(quote), language_of(text)}
    if len(languages) == 2 and "" not in languages:
        return True
    return bool(content(_begin(quote)) & content(_begin(text)))


def _is_a_tools(
    added: Sequence[str], quote: str, own: PassageIndex, heard: ConversationText
) -> bool:
    """Whether a draft has a literal, or a sentence, that a tool said and the user did not."""
    if not heard.results:
        return False
    results = "\n".join(heard.results).lower()
    words = heard.words.lower()
    literals = find_literals("\n".join(added)) - heard.tools
    if any(_is_in(one, results) and not _is_users(one, words) for one in literals):
        return True
    named = content(quote)
    for about in map(content, added):
        theirs = heard.result_passages.best(about)
        users = max(own.best(about).share, len(about & named) / max(len(about), 1))
        if len(about) >= ENOUGH and is_said(about, theirs) and theirs.share > users:
            return True
    return False


def _is_in(literal: str, text: str) -> bool:
    """Whether a text has a literal, as a word or words of its own."""
    words = r"\W+".join(map(re.escape, literal.split()))
    return re.search(rf"(?<!\w){words}(?!\w)", text) is not None


def _is_users(literal: str, words: str) -> bool:
    """Whether the user said each word of a literal; of a plain name they may say the beginning."""
    return all(
        _is_in(one, words) or (one.isalpha() and len(one) > NAMED and one[:NAMED] in words)
        for one in literal.split()
    )


def _is_the_users(added: Sequence[str], own: PassageIndex, heard: ConversationText) -> bool:
    """Whether the user's words carry a draft that names no sentence."""
    text = _DATE.sub(" ", " ".join(added))
    about = content(text)
    if not about:
        return True
    agents = len((about & content(heard.agent)) - own.every) / len(about)
    if not heard.fresh_results and _speaks_otherwise(heard, text):
        return agents < OWN
    commands = [content(one) for one in added if reads_like_instruction(one)]
    if not all(is_said(one, own.best(one)) for one in commands):
        return False
    return len(about & own.every) / len(about) >= OWN and (heard.fresh_results or agents < OWN)


def _speaks_otherwise(heard: ConversationText, text: str) -> bool:
    """Whether a text is in another language than what the user stated."""
    said = "\n".join(one.text for one in heard.stated if not is_yes(one.text))
    enough = _count_words(_words(said)) >= ENOUGH
    return enough and language_of(text) not in ("", language_of(said))


def _spells_news(draft: MemoryDraft, heard: ConversationText) -> bool:
    """Whether a draft newly spells out what the user did and nothing injected has: the words
    around it may be the old ones."""
    now, before = (one.decode("utf-8", "replace") for one in (draft.data, draft.base or b""))
    news = find_literals(now, names=False) - find_literals(before, names=False)
    known = "\n".join(text for _, text in heard.injected).lower()
    said = "\n".join(one.text for one in heard.stated).lower()
    return any(_is_in(one, said) and not _is_in(one, known) for one in news)


def _file_sentences(key: str, data: bytes) -> Iterator[str]:
    """What a topic file says, sentence by sentence; paragraphs are read unwrapped."""
    if not data:
        return
    one = TopicFile(key, data)
    if one.front.present:
        yield from sentences(one.front.get("name"))
        yield from sentences(one.description)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+#>]|\d+\.)\s)", one.body):
        yield from sentences(" ".join(paragraph.split()))
