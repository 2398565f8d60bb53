"""Questions from outside a turn: rows with reasons, quotes.

An answer in the words of the past: the sentences that hold what a question asks for.

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
from reverie.light import dataclass, pattern
from reverie.recall.gate import QueryVector
from reverie.recall.ranker import Query
from reverie.rules.calls import CallContext, parse
from reverie.session.open_memory import OpenMemory
from reverie.session.recall.project_index import FileTimes, embeddings_by, meaning
from reverie.session.recall.verification import CheckedClaim, Repository
from reverie.store.recall.index import RecallHit
from reverie.text.format import days_since
from reverie.text.safety import strip
from reverie.text.tokens import terms
from reverie.topics.claims import find_claims
from reverie.topics.entry import TopicFile
from reverie.transcript.blocks import Block, text_of
from reverie.transcript.mentions import names
from reverie.transcript.records import AssistantMessage, UserMessage
from reverie.transcript.view import View
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


def _meaning(memory: OpenMemory, text: str) -> QueryVector | None:
    """Return what the query means to the model of the setting; None where none is named, or,
    which is said, where it gives no answer."""
    index, model = memory.index, embeddings_by(memory.project.settings, memory.project.environ)
    if model is None:
        return None
    index.refresh()

    async def asked() -> QueryVector:
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
        "days": days_since(hit.saved, now) if hit.saved else None,
        "line": hit.line,
        "passage": hit.passage,
        "path": str(memory.index.folder / hit.file),
    }
    if root is not None:
        row["why"] = {name: round(value, 4) for name, value in hit.why}
        row["checked"] = [_claim_value(c) for c in _claims(hit, memory, root)]
    return row


def _claims(hit: RecallHit, memory: OpenMemory, root: Path) -> tuple[CheckedClaim, ...]:
    folder = memory.folder
    try:
        text = folder.read(hit.file).text if folder is not None else ""
    except (NotFound, StoreError):
        return ()
    path = memory.project.environ.get("PATH", "")
    also = None if folder is None else folder.root
    return Repository(root, path=path, also=also).check(find_claims(text))


def _claim_value(found: CheckedClaim) -> dict[str, Any]:
    claim = found.claim
    value = {"kind": claim.kind, "text": claim.text, "line": claim.line}
    return {**value, "status": found.status, "where": found.where, "why": found.why}


# --- What the calls of a round touched, as a query: files by their names, and errors that came
# back.
#
# That a memory is about the words of it is not enough: errors speak of sessions, requests and
# paths as everything does. A memory belongs to a file where it names it, and not one of that name
# in another folder; to an error where it has of it what no other error has: a name, a code, or a
# stretch of its words. Pure functions of a view and of texts.


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAX_PATHS = 12
MAX_ERROR = 400
MAX_FOLDER = 100
LEAST_NAME = 5
"""Letters of a file's name that tell it from others."""
MANY_FILES = 12
"""Files that a memory names, from which on it is about none of them."""
IN_A_ROW = 5
"""Words of an error in a row that are said of no other by chance."""
ALONE = 12
"""Letters of a name in an error that tells it from others by itself; of shorter ones two do."""
_STOCK = pattern(
    r"</?[a-z_]+>|exit (?:code|status) \d+|no such file or directory|permission denied"
    r"|command not found|(?:path|file) does not exist",
    re.IGNORECASE,
)
_CODE = pattern(r"\b[A-Z]+\d{2,}\b")
"""What an error is called in its own list: E0308, TS2345."""
_LOOSE = pattern(r"\b(?:[A-Z]{5,}|\d{3,})\b")
"""What tells beside another: FATAL, 5433."""
_FILE = pattern(r"(?<![\w-])[\w-]{2,}\.[a-z]{1,4}\b")
_SHOUTED = frozenset(("ERROR", "FAILED", "FATAL", "WARNING", "PANIC", "ABORTED"))
_WORD = pattern(r"[^\W_]+")
_APART = pattern(r"[^\w.-]")
_COMMON = _set(
    "readme.md index.ts index.js index.tsx main.py main.go main.rs __init__.py package.json "
    "setup.py mod.rs lib.rs makefile dockerfile test.py utils.py index.html tsconfig.json"
)


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """Names of files, and texts of errors."""

    names: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is looked for: a sentence each."""
        return "\n".join((*self.names, *self.errors))

    def is_in(self, memory: str) -> bool:
        """Whether a memory, in small letters, names one of the files, or tells of an error."""
        lists = len(set(_FILE.findall(memory))) > MANY_FILES
        named = not lists and any(_is_named(name.lower(), memory) for name in self.names)
        return named or any(_is_told(error, memory) for error in self.errors)


def _is_named(path: str, memory: str) -> bool:
    """Whether a file is named, alone or with the folder it lies in."""
    folder, _, name = path.rpartition("/")
    for found in re.finditer(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", memory):
        before = memory[max(0, found.start() - MAX_FOLDER) : found.start()]
        above = _APART.split(before[:-1])[-1] if before.endswith("/") else ""
        if not folder or above in ("", ".", folder):
            return True
    return False


def _is_told(error: str, memory: str) -> bool:
    """Whether a memory has of an error what tells it from others."""
    said = _STOCK.sub(" ", error)
    words = {*names(said), *_CODE.findall(said), *_LOOSE.findall(said)} - _SHOUTED
    there = [one for one in words if _has(memory, one.lower())]
    if len(there) > 1 or any(len(one) >= ALONE or _CODE.fullmatch(one) for one in there):
        return True
    text = " ".join(_WORD.findall(memory))
    return any(f" {row} " in f" {text} " for row in _rows(said.lower()))


def _has(memory: str, word: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", memory) is not None


def _rows(said: str) -> Iterator[str]:
    """Each stretch of a few words in a row, within a line."""
    for line in said.splitlines():
        words = _WORD.findall(line)
        for at in range(len(words) - IN_A_ROW + 1):
            yield " ".join(words[at : at + IN_A_ROW])


def read_last_round(view: View) -> ToolQuery:
    """What the calls of the last answer touch, and the errors that came back so far."""
    failed = (b for b in _last_results(view) if b.value.get("is_error") is True)
    files = dict.fromkeys(name for block in _last_calls(view) for name in _names(block))
    errors = (text_of(block.value)[:MAX_ERROR] for block in failed)
    return ToolQuery(tuple(files)[:MAX_PATHS], tuple(filter(None, errors))[:2])


def _last_results(view: View) -> tuple[Block, ...]:
    found: list[Block] = []
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, AssistantMessage):
            break
        if isinstance(record, UserMessage):
            found += [block for block in record.blocks if block.type == "tool_result"]
    return tuple(found)


def _last_calls(view: View) -> tuple[Block, ...]:
    for at in range(len(view.entries) - 1, -1, -1):
        record = view.entries[at].record
        if isinstance(record, AssistantMessage):
            return tuple(block for block in record.blocks if block.type == "tool_use")
    return ()


def _names(block: Block) -> Iterator[str]:
    call = parse(block.get("name"), block.value.get("input"), CallContext("/"))
    for act in call.acts:
        for path in act.paths:
            folder, _, name = path.rstrip("/").rpartition("/")
            telling = len(name) >= LEAST_NAME and "." in name and name.lower() not in _COMMON
            if telling:
                yield f"{folder.rpartition('/')[2]}/{name}".lstrip("/")
