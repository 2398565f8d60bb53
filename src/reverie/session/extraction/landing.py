"""What becomes of what an extraction wrote: judged, then landed by comparison.

Each draft is judged by what it adds. What only repeats what was injected is an echo and is not
saved. It is trusted where the user's own words carry it: most of its content, and each sentence
that reads like an instruction. Otherwise it came from tools, files or the agent's own thoughts
and is untrusted, so that an instruction in it waits for a person.

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
from reverie.layers.extraction import NAME, Fresh, WordsSaid, user_words
from reverie.memory.echo import Passages, content, echo, is_said, sentences
from reverie.memory.format import entry as entries
from reverie.memory.format.entry import TEAM, TopicFile
from reverie.memory.merge import merge
from reverie.memory.secrets import scan, tellable
from reverie.memory.trust import Trust, goes_to_review, reads_like_instruction
from reverie.memory.versions import Origin
from reverie.session.extraction.files import Draft
from reverie.store.files import Changed
from reverie.store.memories import Memories
from reverie.store.plain import digest
from reverie.transcript.blocks import text_of
from reverie.transcript.records import Attached
from reverie.transcript.view import View, head_blocks

RECALL = "recall"
OWN = 0.6
"""The part of an instruction that must stand in one passage of the user's."""
MOSTLY = 0.5
"""The part of a memory's content that must be in the user's words at all."""
SHORT_ANSWER = 15
"""Content words of an answer that cannot be told apart from what it answers."""
MAX_NAMED = 20
"""Messages that an origin names."""
_HEAD = 4_096  # bytes that a head may add to a body
_YES = re.compile(
    r"\s*(?:yes|yep|yeah|exactly|right|correct|perfect|great|good|nice|ok(?:ay)?|sure|agreed|"
    r"keep|love|that's it|do (?:it|that|so)|对|好|是的?|没错|正是|可以|就这样|完美|同意)",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\s*(?:no\b|nope|not\b|wrong|actually|rather|instead|it'?s\b|不|错|应该|改成)", re.IGNORECASE
)


# --- what there is to judge by


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said since, and what was injected: memories, index, instruction files."""

    own: Passages  # with what a yes agreed to
    about: Passages  # with what a yes or no was about
    injected: Passages
    messages: tuple[str, ...] = ()


def heard(view: View, fresh: Fresh) -> Heard:
    words = user_words(view, fresh.items)
    injected = [(RECALL, text) for text in recalled(view)]
    return Heard(
        Passages((one.source, _answered(one, _YES)) for one in words),
        Passages((one.source, _answered(one, _YES, _NO)) for one in words),
        Passages([*injected, ("the instructions or the index", head_text(view))]),
        tuple(one.source for one in words),
    )


def _answered(words: WordsSaid, *kinds: re.Pattern[str]) -> str:
    """A message, behind what it answers where it is a bare yes or no to that."""
    if not words.before or not any(kind.match(words.text) for kind in kinds):
        return words.text
    if len(content(words.text[:2_000])) > SHORT_ANSWER:
        return words.text
    asked = [part for part in words.before.split("\n\n") if part.strip()]
    return f"{asked[-1]}\n{words.text}"


def recalled(view: View) -> list[str]:
    """Every text that recall put into this conversation."""
    return [
        block.get("text")
        for entry in view.entries
        if isinstance(entry.record, Attached) and entry.record.kind == RECALL
        for block in entry.record.blocks
    ]


def head_text(view: View) -> str:
    return "" if view.head is None else text_of([b.value for b in head_blocks(view.head.context)])


# --- the judgement


@dataclass(frozen=True, slots=True)
class DraftVerdict:
    """How far a draft can be trusted and which messages carry it; or why it is not saved."""

    trust: Trust = Trust.UNTRUSTED
    messages: tuple[str, ...] = ()
    refusal: str = ""


def judge(draft: Draft, heard: Heard) -> DraftVerdict:
    """What a draft adds, judged by where it comes from."""
    known = set(_told(draft.key, draft.base or b""))
    added = [one for one in _told(draft.key, draft.data) if one not in known]
    found = echo(added, heard.injected, heard.about)
    if found is not None:
        return DraftVerdict(refusal=f"it repeats what was injected ({found.source})")
    matches = {one: heard.own.best(content(one)) for one in added}
    carried = (m.source for one, m in matches.items() if is_said(content(one), m))
    named = tuple(dict.fromkeys(carried))[:MAX_NAMED] or heard.messages[-MAX_NAMED:]
    about = frozenset[str]().union(*(content(one) for one in added))
    owned = len(about & heard.own.every) / len(about) if about else 1.0
    commands = [m for one, m in matches.items() if reads_like_instruction(one)]
    trusted = owned >= MOSTLY and all(match.share >= OWN for match in commands)
    return DraftVerdict(Trust.AGENT if trusted else Trust.UNTRUSTED, named)


def _told(key: str, data: bytes) -> Iterator[str]:
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
class LandedDrafts:
    """What a run came to, file by file."""

    written: list[str] = field(default_factory=list[str])
    queued: list[str] = field(default_factory=list[str])
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    given_up: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(frozen=True, slots=True)
class WordsSource:
    """Whose words they are: goes into every version's origin."""

    session: str
    note: str = ""
    team: bool = False


def land(
    drafts: Iterable[Draft],
    memories: Memories,
    heard: Heard,
    source: WordsSource,
    *,
    dry: bool = False,
) -> LandedDrafts:
    """Save what deserves it. A disk that fails raises; what landed before stays."""
    done = LandedDrafts()
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
            _save(draft, memories, origin, done, dry=dry)
        except Changed as error:
            done.given_up.append((draft.key, error.what))
        except (SecretFound, ScanFailed, PathRefused) as error:
            done.refused.append((_name(draft), error.what))
        except NotFound:
            raise
        except InvalidInput as error:
            done.refused.append((_name(draft), error.what))
    return done


def _name(draft: Draft) -> str:
    """What a draft is called where it is told of; not by a name made from a secret in it."""
    try:
        hits = scan(draft.data, draft.key)
    except ScanFailed:
        return "a memory"
    named = all(hit.line for hit in hits)
    told = tellable(draft.key, draft.data) if hits and named else draft.key
    return (told if named else "") or "a memory"


def _why_not(draft: Draft, memories: Memories, source: WordsSource) -> str:
    if not entries.is_topic(draft.key):
        return "it is no topic file"
    if draft.key.startswith(f"{TEAM}/") and not source.team:
        return "the team's folder is not in use"
    body = TopicFile(draft.key, draft.data).body.strip()
    if not body:
        return "it says nothing"
    return "" if draft.base is not None else _twin(body, memories)


def _twin(body: str, memories: Memories) -> str:
    """The file that has just this body already, in words; what vanishes meanwhile is none."""
    length = len(body.encode())
    topics = memories.folder.keys()
    for key in topics:
        with contextlib.suppress(NotFound, StoreError):
            size = memories.folder.stat(key).size
            near = length <= size <= length + _HEAD
            if near and memories.folder.read(key).body.strip() == body:
                return f"{key} says so already"
    return ""


def _save(
    draft: Draft, memories: Memories, origin: Origin, done: LandedDrafts, *, dry: bool
) -> None:
    if dry:
        memories.allow(draft.key, draft.data)
        text = draft.data.decode("utf-8", "replace")
        (done.queued if goes_to_review(origin.trust, text) else done.written).append(draft.key)
        return
    new = draft.base is None
    expect = None if draft.base is None else digest(draft.base)
    try:
        made = memories.save(draft.key, draft.data, origin, expect=expect, exclusive=new)
    except Changed:
        merged = _merged(draft, memories)
        if merged.data == merged.base:
            return  # somebody wrote the same
        expect = None if merged.base is None else digest(merged.base)
        made = memories.save(
            merged.key, merged.data, origin, expect=expect, exclusive=merged.base is None
        )
    (done.queued if made.queued else done.written).append(made.key)


def _merged(draft: Draft, memories: Memories) -> Draft:
    """The draft on top of what the file holds by now; a file that was removed stays so."""
    try:
        theirs = memories.folder.bytes_of(draft.key)
    except NotFound:
        raise InvalidInput("It was removed meanwhile") from None
    base, ours, other = (
        one.decode("utf-8", "surrogateescape") for one in (draft.base or b"", draft.data, theirs)
    )
    done = merge(draft.key, base, ours, other)
    if done.clean:
        return Draft(draft.key, theirs, done.text.encode("utf-8", "surrogateescape"))
    if draft.base is not None:
        raise Changed("The same lines were changed meanwhile", where=draft.key)
    one = TopicFile(draft.key, draft.data)
    return replace(
        draft, key=entries.key_for(one.name, one.type, frozenset(memories.folder.keys()))
    )


def told(pairs: Sequence[tuple[str, str]]) -> str:
    """Files with their reasons, in a line."""
    return "; ".join(f"{key}: {why}" for key, why in pairs)
