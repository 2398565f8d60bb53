"""An answer in the words of the past: the sentences that hold what a question asks for.

Every sentence of the answer stands word for word in a memory or in an earlier session, and comes
with the place. A word of the question weighs more the fewer texts have it; where no text holds
enough of that weight, there is no answer, and that is said. No model, and nothing is made up.

`recall_rows` gives what recall finds for some words, how well and why.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from reverie.errors import NotFound, ProviderError, StoreError
from reverie.light import dataclass
from reverie.memory.claims import claims
from reverie.memory.format.entry import TopicFile
from reverie.memory.recall.meaning import Meaning
from reverie.memory.recall.ranking import Query
from reverie.session.open_memory import OpenMemory
from reverie.session.recall.checked import CheckedClaim, Repository
from reverie.session.recall.meaning import embeddings_by, meaning
from reverie.session.recall.notes import days
from reverie.store.recall.index import RecallHit
from reverie.store.written import FileTimes
from reverie.text.tokens import terms
from reverie.text.untrusted import strip
from reverie.world import Notice

SHOWN = 3
"""Sentences of an answer."""
ENOUGH = 0.5
"""The share of a question's weight that a text must hold to answer it."""
CLOSE = 0.6
"""The share of the best sentence's score that the others of an answer have."""
MAX_LINES = 2_000
LONGEST = 400
"""Characters of one sentence."""
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_MARKS = re.compile(r"^[\s>#*+\-|]+|^\s*\d+[.)]\s+|\*\*|__|`{3,}.*")


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that stands somewhere, and where."""

    text: str
    score: float
    hit: RecallHit
    line: int = 0


@dataclass(frozen=True, slots=True)
class _Text:
    hit: RecallHit
    about: str
    sentences: tuple[tuple[str, int], ...]


def answer(
    question: str, hits: Sequence[RecallHit], read: Callable[[str], TopicFile]
) -> tuple[Quote, ...]:
    """The sentences that answer a question, best first; none where nothing does."""
    wanted = Query.of(question, 0.0).terms
    texts = [text for hit in hits if (text := _text(hit, read)) is not None]
    if not wanted or not texts:
        return ()
    held = [[frozenset(terms(s)) for s, _ in text.sentences] for text in texts]
    about = [frozenset(terms(text.about)) for text in texts]
    counts = Counter(t for n, _ in enumerate(texts) for t in about[n].union(*held[n]))
    weights = {t: math.log(1 + len(texts) / (0.5 + counts[t])) for t in wanted}
    whole = sum(weights.values())
    found: dict[str, Quote] = {}
    for n, text in enumerate(texts):
        for (sentence, line), own in zip(text.sentences, held[n], strict=True):
            direct = _share(weights, own)
            if direct > 0 and not _asks(sentence, question):
                score = (direct + 0.5 * _share(weights, about[n] - own)) / whole
                found.setdefault(sentence, Quote(sentence, round(score, 4), text.hit, line))
    ranked = sorted(found.values(), key=lambda q: (-q.score, -q.hit.score, q.hit.file, q.line))
    enough = [q for q in ranked if q.score >= ENOUGH]
    return tuple(q for q in enough if q.score >= CLOSE * enough[0].score)[:SHOWN]


def _share(weights: dict[str, float], held: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in held)


def _asks(sentence: str, question: str) -> bool:
    """Whether a sentence only asks: the question itself, said before, is no answer to it."""
    return sentence.rstrip().endswith(("?", "？")) or sentence.strip() == question.strip()


def _text(hit: RecallHit, read: Callable[[str], TopicFile]) -> _Text | None:
    if hit.kind != "memory":
        return _Text(hit, "", tuple(sentences(hit.passage, 1)))
    try:
        one = read(hit.file)
    except (NotFound, StoreError):
        return None
    body = one.body
    above = one.text.count("\n") - body.count("\n")
    rows = tuple(sentences(body, above + 1)) or tuple(sentences(one.description, 1))
    return _Text(hit, f"{one.key} {one.name} {one.description}", rows)


def sentences(text: str, first: int) -> Iterator[tuple[str, int]]:
    """The sentences of a text, without Markdown's marks, each with its line."""
    for number, line in enumerate(text.splitlines()[:MAX_LINES], first):
        for piece in _END.split(_MARKS.sub("", strip(line))):
            bare = " ".join(piece.split())[:LONGEST]
            if len(bare) > 1:
                yield bare, number


# --- rows for a list, with reasons


def recall_rows(
    memory: OpenMemory,
    text: str,
    now: float,
    k: int,
    root: Path | None = None,
    *,
    beside: bool = False,
) -> list[dict[str, Any]]:
    """Return what is found, best first, for JSON; also what would not be injected unasked.

    With `root` each row says why, and how what it names stands in the repository there now. With
    `beside` somebody else brings the index up to date where that is slow. Nothing is made but the
    index, which can be deleted at any time.
    """
    if not memory.is_searchable:
        return []
    meant = _meaning(memory, text)
    hits = memory.index.search(text, now, k=k, meaning=meant, beside=beside)
    return [_row(hit, memory, now, root) for hit in date_hits(hits, memory, now)]


def date_hits(hits: Sequence[RecallHit], memory: OpenMemory, now: float) -> list[RecallHit]:
    """Return the hits, each with the time its memory was written instead of that of its file."""
    if memory.folder is None:
        return list(hits)
    with memory.index.opened() as index:
        times = FileTimes(memory.folder, now, memory.history, index.alone)
        return [replace(hit, saved=times.at(hit.file)) for hit in hits]


def _meaning(memory: OpenMemory, text: str) -> Meaning | None:
    """Return what the query means to the model of the setting; None where none is named, or,
    which is said, where it gives no answer."""
    index, model = memory.index, embeddings_by(memory.project.settings, memory.project.environ)
    if model is None:
        return None
    index.refresh()

    async def asked() -> Meaning:
        try:
            with index.opened() as opened:
                return await meaning(opened, model, text)
        finally:
            await model.aclose()

    try:
        return anyio.run(asked)
    except ProviderError as error:
        memory.say(Notice("recall", f"Searched by words only: {error}", "warning"))
        return None


def _row(hit: RecallHit, memory: OpenMemory, now: float, root: Path | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "file": hit.file,
        "score": round(hit.score, 4),
        "clear": hit.clear,
        "type": hit.type,
        "name": hit.name,
        "description": hit.description,
        "saved": hit.saved,
        "days": days(hit.saved, now) if hit.saved else None,
        "line": hit.line,
        "passage": hit.passage,
        "path": str(memory.index.folder / hit.file),
    }
    if root is not None:
        row["why"] = {name: round(value, 4) for name, value in hit.why}
        row["checked"] = [_checked(c) for c in _claims(hit, memory, root)]
    return row


def _claims(hit: RecallHit, memory: OpenMemory, root: Path) -> tuple[CheckedClaim, ...]:
    folder = memory.folder
    try:
        text = folder.read(hit.file).text if folder is not None else ""
    except (NotFound, StoreError):
        return ()
    path = memory.project.environ.get("PATH", "")
    also = None if folder is None else folder.root
    return Repository(root, path=path, also=also).check(claims(text))


def _checked(found: CheckedClaim) -> dict[str, Any]:
    claim = found.claim
    value = {"kind": claim.kind, "text": claim.text, "line": claim.line}
    return {**value, "status": found.status, "where": found.where, "why": found.why}
