"""What becomes of what an extraction wrote: judged, then applied by comparison.

Each draft is judged by what it adds (`speakers`). What only repeats what was injected is an echo
and is not saved. What the user said is saved with their trust. The rest is untrusted: what would
command or describe the user waits for review, and a fact gets a marked file without a pointer.

Then it is saved like any memory: secrets and forgotten words refused, a version with its origin,
file and pointer by one plan. A file that changed in the meantime is merged, once; where that cannot
be done cleanly the draft is given up, and the cursor stays where it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from reverie.errors import InvalidInput, NotFound, PathRefused, ScanFailed, SecretFound, StoreError
from reverie.secrets.scanner import scan, tellable
from reverie.session.extraction.drafts import MemoryDraft
from reverie.session.extraction.speakers import (
    ConversationText,
    DraftVerdict,
    judge,
    without_source,
)
from reverie.session.extraction.trigger import NAME
from reverie.store.files import Changed
from reverie.store.fs import digest
from reverie.store.memory_store import MemoryStore, SaveOutcome
from reverie.topics import entry as entries
from reverie.topics.entry import TEAM, TopicFile
from reverie.topics.merge import merge_file
from reverie.topics.trust import Trust
from reverie.topics.versions import Origin

_HEAD = 4_096  # bytes that a head may add to a body


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
            _save(without_source(draft), memories, origin, done, dry=dry, pointers=pointers)
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
    name = draft.key.removeprefix(f"{TEAM}/")
    odd = draft.base is None and ("/" in name or name.startswith("."))
    if odd or not entries.is_topic(draft.key):
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
    if draft.data == draft.base:
        return  # it only named its source
    if dry:
        memories.allow(draft.key, draft.data)
        untrusted = origin.trust is Trust.UNTRUSTED
        waits = untrusted and memories.waits(draft.key, draft.data)
        (done.queued if waits else done.unverified if untrusted else done.written).append(draft.key)
        return
    try:
        made = _apply(draft, memories, origin, pointers=pointers)
    except Changed:
        draft = _merge_draft(draft, memories)
        if draft.data == draft.base:
            return  # somebody wrote the same
        made = _apply(draft, memories, origin, pointers=pointers)
    if made.unverified:
        done.unverified.append(made.key)
    else:
        (done.queued if made.queued else done.written).append(made.key)


def _apply(
    draft: MemoryDraft, memories: MemoryStore, origin: Origin, *, pointers: bool
) -> SaveOutcome:
    return memories.save(
        draft.key,
        draft.data,
        origin,
        expect=None if draft.base is None else digest(draft.base),
        exclusive=draft.base is None,
        pointer=pointers,
        planned=True,
    )


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
