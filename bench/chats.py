"""Recall on chats of a user with an assistant, against plain FTS5 in the same run. Needs
`REVERIE_SHARED`.

Three kinds. Dialogues of two people, their turns taken alternately as the user's and the
assistant's. The same as long chats: as people talk with an assistant, each of the user's turns
ends in a question, and each of the assistant's goes on for long, both with what was said in other
dialogues, drawn by a seed; what the user's turns answer and what the assistant's do is told apart.
And recorded sessions: a query is a sentence that the user typed, with at least two words that one
earlier message of the session had, and no other; that message is what is to be found, among all
that was said before it and in all other sessions. Every query belongs to one of two halves by its
sha256.

The yardstick is a table of the same messages: `unicode61`, BM25, any of the query's words.

    python -m bench run recall_more
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import sqlite3
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import ROOT_SHARED, Figure, Row, against_peers
from reverie.recall import Query, utterances
from reverie.store import RecallIndex
from reverie.transcript import AssistantMessage, Entry, UserMessage, text_block

DATA = ROOT_SHARED / "data"
NOW = 1_780_000_000.0
DEPTHS = (5, 10)
HALVES = ("dev", "held")
HALF = {"dev": "the half that was worked on", "held": "the half that was held back"}
LONG = 10
"""Turns of others that make an assistant's answer long."""
LOOKED = 60
"""Finds of which those are taken that were said before the query."""
RARE = 2
MIN_WORDS, MAX_WORDS = 4, 40
CATEGORIES = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a chat."""

    id: str
    role: str
    text: str
    at: float = NOW


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and the messages that answer it."""

    text: str
    wanted: frozenset[str]
    before: str = ""  # the message it stands in: what came from there on is not the past

    @property
    def half(self) -> str:
        return HALVES[hashlib.sha256(self.text.encode()).digest()[0] % 2]


@dataclass(frozen=True, slots=True)
class Chats:
    """Sessions by name, and what is asked of them."""

    sessions: Mapping[str, Sequence[Said]]
    asked: Sequence[Asked]


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not (DATA / "locomo_dev.json.gz").is_file():
        yield "dialogues and sessions", f"not found under {ROOT_SHARED.name}", "", None
        return
    yield from compared("roles", "dialogues with roles", [with_roles(one) for one in dialogues()])
    for role in ("user", "assistant"):
        what = f"dialogues as long chats, the {role} said it"
        yield from compared(f"long.{role}", what, [as_long(one, role) for one in dialogues()])
    yield from compared("recorded", "recorded sessions", [recorded_chats()])


# Searching


def compared(key: str, what: str, chats: Sequence[Chats]) -> Iterator[Figure | Row]:
    found = [row for one in chats for row in searched(one)]
    for half in HALVES:
        here = [row for row in found if row.asked.half == half]
        for depth in DEPTHS:
            own = statistics.mean(share(row.ours[:depth], row.asked.wanted) for row in here)
            plain = statistics.mean(share(row.theirs[:depth], row.asked.wanted) for row in here)
            name = f"{what}: evidence in the first {depth}, {HALF[half]}"
            yield against_peers(
                f"chats.{key}.{half}.{depth}",
                name,
                own,
                {"FTS5": plain},
                better="higher",
                unit="share",
                n=len(here),
            )


@dataclass(frozen=True, slots=True)
class Found:
    """What both found for one query, best first."""

    asked: Asked
    ours: list[str]
    theirs: list[str]


def searched(chats: Chats) -> list[Found]:
    theirs, later = Plain(chats), Later(chats)
    with tempfile.TemporaryDirectory() as name:
        ours = Ours(chats, Path(name))
        rows = [
            Found(one, later.left(one, ours.find(one.text)), later.left(one, theirs.find(one.text)))
            for one in chats.asked
        ]
        ours.index.close()
    return rows


def share(found: Sequence[str], wanted: frozenset[str]) -> float:
    return len(set(found) & wanted) / len(wanted)


class Later:
    """Leaves out what was said in a query's own session from it on."""

    def __init__(self, chats: Chats) -> None:
        self.places = {
            one.id: (name, n) for name, said in chats.sessions.items() for n, one in enumerate(said)
        }

    def left(self, asked: Asked, found: Sequence[str]) -> list[str]:
        if not asked.before:
            return list(found)
        name, at = self.places[asked.before]
        return [one for one in found if self.places[one][0] != name or self.places[one][1] < at]


class Ours:
    """The product's index of past sessions."""

    def __init__(self, chats: Chats, folder: Path) -> None:
        self.index = RecallIndex.open(folder / "index.sqlite3")
        for name, said in chats.sessions.items():
            self.index.put_session(name, utterances(map(entry_of, said)))

    def find(self, text: str) -> list[str]:
        hits = self.index.search(Query.of(text, NOW), k=LOOKED, kinds=("transcript",))
        return [hit.message for hit in hits]


def entry_of(said: Said) -> Entry:
    blocks = (text_block(said.text),)
    record = UserMessage(blocks) if said.role == "user" else AssistantMessage(blocks)
    return Entry(said.id, "", said.at, record)


class Plain:
    """FTS5 as it comes."""

    def __init__(self, chats: Chats) -> None:
        self.base = sqlite3.connect(":memory:")
        self.base.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, x, tokenize=unicode61)")
        every = ((one.id, one.text) for said in chats.sessions.values() for one in said)
        self.base.executemany("INSERT INTO t VALUES (?, ?)", every)

    def find(self, text: str) -> list[str]:
        words = dict.fromkeys(re.findall(r"\w+", text.lower()))
        match = " OR ".join(f'"{word}"' for word in words)
        rows = self.base.execute(
            "SELECT id FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT ?", (match, LOOKED)
        )
        return [row[0] for row in rows]


# Dialogues


def dialogues() -> list[Any]:
    return json.loads(gzip.decompress((DATA / "locomo_dev.json.gz").read_bytes()))


def with_roles(dialogue: Any) -> Chats:
    talk = dialogue["conversation"]
    sessions: dict[str, list[Said]] = {}
    for name in (key for key in talk if re.fullmatch(r"session_\d+", key)):
        sessions[name] = [
            Said(turn["dia_id"], ("user", "assistant")[n % 2], turn["text"])
            for n, turn in enumerate(talk[name])
        ]
    known = {one.id for said in sessions.values() for one in said}
    return Chats(sessions, list(questions(dialogue, known)))


def questions(dialogue: Any, known: set[str]) -> Iterator[Asked]:
    for one in dialogue["qa"]:
        named = re.findall(r"D:?(\d+):(\d+)", " ".join(one.get("evidence", [])))
        wanted = frozenset(f"D{int(s)}:{int(t)}" for s, t in named) & known
        if one["category"] in CATEGORIES and wanted:
            yield Asked(one["question"], wanted)


def as_long(dialogue: Any, role: str) -> Chats:
    plain, chance = with_roles(dialogue), random.Random(dialogue["sample_id"])
    others = [one.text for each in dialogues() if each["sample_id"] != dialogue["sample_id"]
              for said in with_roles(each).sessions.values() for one in said]  # fmt: skip
    asking = [text for text in others if text.rstrip().endswith("?")]

    def longer(one: Said) -> Said:
        more = [chance.choice(asking)] if one.role == "user" else chance.choices(others, k=LONG)
        return Said(one.id, one.role, "\n\n".join([one.text, *more]))

    sessions = {name: [longer(one) for one in said] for name, said in plain.sessions.items()}
    known = {one.id for said in plain.sessions.values() for one in said if one.role == role}
    return Chats(sessions, [one for one in plain.asked if one.wanted <= known])


# Recorded sessions


def recorded_sessions() -> Iterator[tuple[str, list[Said]]]:
    """What users typed and assistants wrote, without calls and results."""
    for path in sorted((DATA / "sessions_dev").glob("*.jsonl.gz")):
        if path.name.startswith("pi-"):
            continue
        name = path.name.removesuffix(".jsonl.gz")
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        said = [found for n, row in enumerate(rows) if (found := message(f"{name}:{n}", row))]
        if len(said) >= 4:
            yield name, said


def message(ident: str, row: Any) -> Said | None:
    if row.get("type") not in ("user", "assistant") or row.get("isMeta"):
        return None
    if row.get("isCompactSummary") or row.get("isSidechain"):
        return None
    content = row["message"]["content"]
    parts = [content] if isinstance(content, str) else [
        part["text"] for part in content if isinstance(part, dict) and part.get("type") == "text"
    ]  # fmt: skip
    text = "\n".join(parts).strip()
    if not text or text.startswith(("<", "[Request", "This session is being continued")):
        return None
    return Said(ident, row["type"], text)


def recorded_chats() -> Chats:
    sessions = dict(recorded_sessions())
    asked: dict[str, Asked] = {}
    for said in sessions.values():
        for one in later_queries(said):
            asked.setdefault(one.text, one)
    return Chats(sessions, list(asked.values()))


def later_queries(said: Sequence[Said]) -> Iterator[Asked]:
    """Sentences of the user that speak of what one earlier message alone said."""
    where: dict[str, list[str]] = {}
    for one in said:
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", one.text) if one.role == "user" else ():
            if MIN_WORDS <= len(sentence.split()) <= MAX_WORDS:
                once = [where[word][0] for word in words(sentence) if len(where.get(word, ())) == 1]
                best = {ident for ident, count in Counter(once).items() if count >= RARE}
                if best:
                    yield Asked(sentence, frozenset(best), one.id)
        for word in words(one.text):
            where.setdefault(word, []).append(one.id)


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_][\w.-]{3,}\w", text.lower()))
