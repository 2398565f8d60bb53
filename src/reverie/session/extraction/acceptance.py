"""What becomes of what an extraction wrote: judged, then landed by comparison.

Each draft is judged by what it adds. What only repeats what was injected is an echo and is not
saved. It is trusted where its source is the user: their own words carry it, or a plain yes to a
question about just that; what a tool said is nobody's yes. Where tools said something meanwhile,
most of it must be the user's, and nothing that only a tool said may be in it; where none did, a
memory in another language than the user's is theirs too. The rest is untrusted: what would command
or tell of the user waits for a person, and a fact gets a marked file without a pointer.

Then it is saved like any memory: secrets and forgotten words refused, a version with its origin,
the pointer behind the file. A file that changed meanwhile is merged, once; where that cannot be
done cleanly the draft is given up, and the cursor stays where it was. Nobody's words are lost.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from reverie.errors import InvalidInput, NotFound, PathRefused, ScanFailed, SecretFound, StoreError
from reverie.secrets.scanner import scan, tellable
from reverie.session.extraction.drafts import MemoryDraft
from reverie.session.extraction.trigger import (
    NAME,
    RECALL,
    NewMessages,
    UserText,
    head_text,
    recalled_texts,
    user_words,
)
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore
from reverie.topics import entry as entries
from reverie.topics.consent import asked_last, is_yes, language_of, without_questions
from reverie.topics.entry import TEAM, TopicFile
from reverie.topics.merge import merge_file
from reverie.topics.novelty import PassageIndex, content, echo, is_said, sentences
from reverie.topics.trust import Trust, reads_like_instruction
from reverie.topics.versions import Origin
from reverie.transcript.blocks import text_of
from reverie.transcript.messages import Item
from reverie.transcript.view import View

OWN = 0.6
"""The part of an instruction that must stand in one passage of the user's."""
MOSTLY = 0.5
"""The part of a memory's content that must be in the user's words where tools spoke too."""
PARAPHRASED = 0.34
"""The same where nobody but the user can have said it."""
TAINTED = 0.25
"""The part that only a tool said, from which on it counts as the tool's."""
OF_A_TOOL = 0.5
"""The part of a question that one passage of a tool's holds: no yes makes it the user's."""
ENOUGH = 2
ENOUGH_LETTERS = 20
"""Content words, and letters, from which on a user said something that has a language."""
MAX_SPOKEN = 200_000
"""Characters that are looked at, of one result and of all that was said."""
SHORT_ANSWER = 15
"""Content words of an answer that cannot be told apart from what it answers."""
MAX_NAMED = 20
"""Messages that an origin names."""

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_ASKING = frozenset(
    [
        "shall",
        "should",
        "would",
        "want",
        "like",
        "keep",
        "do",
        "soll",
        "sollen",
        "ich",
        "wir",
        "ab",
        "jetzt",
        "sofort",
        "künfti",
        "damit",
        "dabei",
        "debo",
        "hago",
        "desde",
        "partir",
        "ahora",
        "dois",
        "je",
    ]
)  # words that ask whether to, cut as `_stem_long_words` cuts them
_LONG_WORD = re.compile(
    "\\b([A-Za-z\u00c0-\u024f\u0400-\u04ff]{6})[A-Za-z\u00c0-\u024f\u0400-\u04ff]+"
)
_SPELLED = re.compile(
    r"(?<!\w)['\"`‘“](?P<quoted>[^\s'\"`’”]{1,40})['\"`’”]|(?<!\w)(?P<name>\w{0,40}_\w{0,40})"
)
_HEAD = 4_096  # bytes that a head may add to a body
_YES = re.compile(
    r"(?:yes|yep|yeah|exactly|right|correct|perfect|great|good|nice|ok(?:ay)?|sure|agreed|"
    r"keep|love|that's it|do (?:it|that|so)|对|好|是的?|没错|正是|可以|就这样|完美|同意)",
    re.IGNORECASE,
)
_NO = re.compile(
    r"(?:no\b|nope|not\b|wrong|actually|rather|instead|it'?s\b|不|错|应该|改成)", re.IGNORECASE
)


# --- what there is to judge by


@dataclass(frozen=True, slots=True)
class ConversationText:
    """What the user said since, and what was injected: memories, index, instruction files."""

    own: PassageIndex  # with what a yes agreed to
    about: PassageIndex  # with what a yes or no was about
    injected: PassageIndex
    messages: tuple[str, ...] = ()
    results: PassageIndex = field(default_factory=PassageIndex)  # what tools said
    fresh_results: bool = False  # whether any of it came since the last look
    agent: frozenset[str] = frozenset()  # what the agent's own words are about
    words: str = ""  # the user's, to tell their language
    tool_dates: frozenset[str] = frozenset()  # calendar dates that only tools told
    letters: frozenset[str] = frozenset()  # what the user spelled out and nothing injected has


def heard_words(view: View, fresh: NewMessages) -> ConversationText:
    words = user_words(view, fresh.items)
    injected = [(RECALL, text) for text in recalled_texts(view)]
    results = PassageIndex(("a tool", text) for text in result_texts(view.items))
    agent = [item for item in fresh.items if item.role == "assistant"]
    spoken = [piece.block.get("text") for item in agent for piece in item.pieces]
    spoken += [one.before for one in words[:1]]
    told = {date for text in result_texts(view.items) for date in _DATE.findall(text)}
    said = {date for one in words for date in _DATE.findall(one.text)}
    known = [head_text(view), *recalled_texts(view)]
    return ConversationText(
        PassageIndex((one.source, _with_question(one, view.items)) for one in words),
        PassageIndex((one.source, _with_statement(one, _YES, _NO)) for one in words),
        PassageIndex([*injected, ("the instructions or the index", head_text(view))]),
        tuple(one.source for one in words),
        results,
        any(result_texts(fresh.items)),
        content("\n".join(spoken)[-MAX_SPOKEN:]),
        "\n".join(one.text for one in words if not is_yes(one.text))[-MAX_SPOKEN:],
        frozenset(told - said),
        literal_words(one.text for one in words) - literal_words(known),
    )


def literal_words(texts: Iterable[str]) -> frozenset[str]:
    """What texts spell out to the letter: quoted words, and names with an underscore."""
    found = (_SPELLED.finditer(text[:MAX_SPOKEN]) for text in texts)
    return frozenset(one["quoted"] or one["name"] for each in found for one in each)


def result_texts(items: Iterable[Item]) -> Iterator[str]:
    """What tools gave, call by call."""
    for item in items:
        for piece in item.pieces:
            if piece.block.type == "tool_result":
                yield text_of(piece.block.value)[:MAX_SPOKEN]


def _with_question(words: UserText, items: Iterable[Item]) -> str:
    """A message, behind the question that it says yes to; not where a tool put that forward, in
    whichever form of its words."""
    question = asked_last(words.before)
    if not question or not is_yes(words.text):
        return without_questions(words.text)
    said = PassageIndex(("a tool", _stem_long_words(text)) for text in result_texts(items))
    asked = content(_stem_long_words(question)) - _ASKING
    if said.best(asked).share >= OF_A_TOOL:
        return words.text
    return f"{question}\n{words.text}"


def _stem_long_words(text: str) -> str:
    """A text with its long words cut to how they begin."""
    return _LONG_WORD.sub(r"\1", text)


def _with_statement(words: UserText, *kinds: re.Pattern[str]) -> str:
    """A message, behind what it answers where it is a bare yes or no to that."""
    said = words.text.lstrip()
    if not words.before or not any(kind.match(said) for kind in kinds):
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
    found = echo(added, heard.injected, heard.about)
    if found is not None and not _letters(draft) & heard.letters:
        return DraftVerdict(refusal=f"it repeats what was injected ({found.source})")
    matches = {one: heard.own.best(content(one)) for one in added}
    carried = (m.source for one, m in matches.items() if is_said(content(one), m))
    named = tuple(dict.fromkeys(carried))[:MAX_NAMED] or heard.messages[-MAX_NAMED:]
    about = frozenset[str]().union(*(content(one) for one in added))
    commands = [m for one, m in matches.items() if reads_like_instruction(one)]
    trusted = _is_the_users(about, heard, " ".join(added)) and (
        (not heard.fresh_results and _speaks_otherwise(heard, " ".join(added)))
        or all(match.share >= OWN for match in commands)
    )
    return DraftVerdict(Trust.AGENT if trusted else Trust.UNTRUSTED, named)


def _letters(draft: MemoryDraft) -> frozenset[str]:
    """What a draft newly spells out: the words around it may be the old ones."""
    now, before = (one.decode("utf-8", "replace") for one in (draft.data, draft.base or b""))
    return literal_words([now]) - literal_words([before])


def _is_the_users(about: frozenset[str], heard: ConversationText, text: str) -> bool:
    """Whether the user is the source of what a text is about. A date is one thing: worked out
    from "Friday next week" it is the user's, though a log has the same numbers in it."""
    dates = frozenset(_DATE.findall(text))
    if not dates & heard.tool_dates:
        about = about - content(" ".join(dates))
    if not about:
        return True
    own = heard.own.every
    owned = len(about & own) / len(about)
    if heard.fresh_results:
        only = (about & heard.results.every) - own
        named = any(_names_a_thing(term) for term in only)
        return owned >= MOSTLY and not named and len(only) < TAINTED * len(about)
    if owned < MOSTLY and heard.results.best(about).share >= OF_A_TOOL:
        return False  # a tool said so earlier
    theirs = len((about & heard.agent) - own) / len(about)
    if _speaks_otherwise(heard, text):
        return theirs < MOSTLY and len(content(heard.words)) >= ENOUGH
    return owned >= PARAPHRASED and theirs < MOSTLY


def _names_a_thing(term: str) -> bool:
    """Whether a term stands for one thing alone: a number, an address, a path."""
    return any(sign.isdigit() or sign in "./@" for sign in term)


def _speaks_otherwise(heard: ConversationText, text: str) -> bool:
    """Whether a text is in another language than what the user said."""
    enough = len(heard.words) >= ENOUGH_LETTERS or not heard.words.isascii()
    return enough and language_of(heard.words) != language_of(text)


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


# --- landing


@dataclass
class ExtractionResult:
    """What a run came to, file by file."""

    written: list[str] = field(default_factory=list[str])
    queued: list[str] = field(default_factory=list[str])
    unverified: list[str] = field(default_factory=list[str])  # with a file and no pointer
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    given_up: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(frozen=True, slots=True)
class TextSource:
    """Whose words they are: goes into every version's origin."""

    session: str
    note: str = ""
    team: bool = False


def land(
    drafts: Iterable[MemoryDraft],
    memories: MemoryStore,
    heard: ConversationText,
    source: TextSource,
    *,
    dry: bool = False,
    pointers: bool = True,
) -> ExtractionResult:
    """Save what deserves it. A disk that fails raises; what landed before stays."""
    done = ExtractionResult()
    for draft in drafts:
        if entries.is_index(draft.key):
            continue  # pointers follow their files
        why = _why_not(draft, memories, source)
        verdict = DraftVerdict(refusal=why) if why else judge(draft, heard)
        if verdict.refusal:
            done.refused.append((_name(draft), verdict.refusal))
            continue
        origin = Origin(
            "save", verdict.trust, NAME, source.session, verdict.messages, "Write", source.note
        )
        try:
            _save(draft, memories, origin, done, dry=dry, pointers=pointers)
        except Changed as error:
            done.given_up.append((draft.key, error.what))
        except (SecretFound, ScanFailed, PathRefused) as error:
            done.refused.append((_name(draft), error.what))
        except NotFound:
            raise
        except InvalidInput as error:
            done.refused.append((_name(draft), error.what))
    return done


def _name(draft: MemoryDraft) -> str:
    """What a draft is called where it is told of; not by a name made from a secret in it."""
    try:
        hits = scan(draft.data, draft.key)
    except ScanFailed:
        return "a memory"
    named = all(hit.line for hit in hits)
    told = tellable(draft.key, draft.data) if hits and named else draft.key
    return (told if named else "") or "a memory"


def _why_not(draft: MemoryDraft, memories: MemoryStore, source: TextSource) -> str:
    if not entries.is_topic(draft.key):
        return "it is no topic file"
    if draft.key.startswith(f"{TEAM}/") and not source.team:
        return "the team's folder is not in use"
    body = TopicFile(draft.key, draft.data).body.strip()
    if not body:
        return "it says nothing"
    return "" if draft.base is not None else _twin(body, memories)


def _twin(body: str, memories: MemoryStore) -> str:
    """The file that has just this body already, in words; what vanishes meanwhile is none."""
    length = len(body.encode())
    topics = memories.folder.keys()
    for key in topics:
        with contextlib.suppress(NotFound, StoreError):
            size = memories.folder.stat(key).size
            near = length <= size <= length + _HEAD
            same = memories.folder.read(key) if near else None
            if same is not None and not same.superseded and same.body.strip() == body:
                return f"{key} says so already"
    return ""


def _save(
    draft: MemoryDraft,
    memories: MemoryStore,
    origin: Origin,
    done: ExtractionResult,
    *,
    dry: bool,
    pointers: bool,
) -> None:
    if dry:
        memories.allow(draft.key, draft.data)
        untrusted = origin.trust is Trust.UNTRUSTED
        waits = untrusted and memories.waits(draft.key, draft.data)
        (done.queued if waits else done.unverified if untrusted else done.written).append(draft.key)
        return
    new = draft.base is None
    expect = None if draft.base is None else digest(draft.base)
    try:
        made = memories.save(
            draft.key, draft.data, origin, expect=expect, exclusive=new, pointer=pointers
        )
    except Changed:
        merged = _merge_draft(draft, memories)
        if merged.data == merged.base:
            return  # somebody wrote the same
        expect = None if merged.base is None else digest(merged.base)
        made = memories.save(
            merged.key,
            merged.data,
            origin,
            expect=expect,
            exclusive=merged.base is None,
            pointer=pointers,
        )
    if made.unverified:
        done.unverified.append(made.key)
    else:
        (done.queued if made.queued else done.written).append(made.key)


def _merge_draft(draft: MemoryDraft, memories: MemoryStore) -> MemoryDraft:
    """The draft on top of what the file holds by now; a file that was removed stays so."""
    try:
        theirs = memories.folder.bytes_of(draft.key)
    except NotFound:
        raise InvalidInput("It was removed meanwhile") from None
    base, ours, other = (
        one.decode("utf-8", "surrogateescape") for one in (draft.base or b"", draft.data, theirs)
    )
    done = merge_file(draft.key, base, ours, other)
    if done.clean:
        return MemoryDraft(draft.key, theirs, done.text.encode("utf-8", "surrogateescape"))
    if draft.base is not None:
        raise Changed("The same lines were changed meanwhile", where=draft.key)
    one = TopicFile(draft.key, draft.data)
    return replace(
        draft, key=entries.key_for(one.name, one.type, frozenset(memories.folder.keys()))
    )


def format_reasons(pairs: Sequence[tuple[str, str]]) -> str:
    """Files with their reasons, in a line."""
    return "; ".join(f"{key}: {why}" for key, why in pairs)
