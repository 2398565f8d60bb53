"""What is lost at writing, and what at recall: the evidence of LoCoMo's questions, step by step.

A dialogue is learned session by session by `reverie memory learn` with the embedded model, once for
each of its two people as the user. Then three things are counted apart, evidence by evidence: put
in (a turn that answers a question was said), stored (a memory keeps what the turn says), retrieved
(that memory is among the first ten for the question). Transcripts are kept whole beside, and
searched too: of what extraction left out, this much comes back from there.

The judge reads the memory files: a turn is kept where one file holds most of its telling words. It
shares no code with what writes or searches. Needs the dialogues (`REVERIE_SHARED`).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import reverie
from bench import recall_data as data
from bench.figures import QUICK, ROOT_SHARED, Figure, Row, against_peers, at_least
from bench.memorycode import learn, memory_files
from bench.recall import Plain
from reverie.recall import Query, Utterance

KEPT = 0.6  # of a turn's telling words
TOP = 10
DIALOGUES = 1 if QUICK else 5
COMMON = """
about after again always another anything around because been before being could does doing doesn't
don't down ever every everything from going great have having here how's just know like little look
love made make makes many maybe more much never nice only other really said same should since some
something soon still such sure take than thanks that that's their them then there these they thing
things think this those time today tons totally very want wanted was we've well were what what's
when where which while will with would wow yeah year you you're your
"""
_OFTEN = frozenset(COMMON.split())


@dataclass(frozen=True, slots=True)
class Followed:
    """One piece of evidence: what became of it."""

    stored: bool
    retrieved: bool
    in_transcript: bool
    by_fts5: bool  # plain FTS5 over the same turns finds it


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not data.there():
        yield "dialogues", f"not found under {ROOT_SHARED.name}", "", None
        return
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(followed, data.dialogues()[:DIALOGUES]))
    every = [one for rows, _ in found for one in rows]
    files = sum(count for _, count in found)
    yield from figures(every)
    yield "memories written in all", str(files), "", None


def figures(every: Sequence[Followed]) -> Iterator[Figure]:
    put_in = len(every)
    stored = [one for one in every if one.stored]
    got = sum(one.retrieved for one in stored)
    either = sum(one.in_transcript or one.retrieved for one in every)
    yield at_least(
        "quality.locomo.stored",
        "LoCoMo: evidence put in that a memory keeps (the rest is lost at writing)",
        len(stored) / put_in,
        0.5,
        "share",
        put_in,
        why="the embedded extraction keeps what it is plainly told, and people who chat tell"
        " nothing plainly; a model in its place reads more",
    )
    yield at_least(
        "quality.locomo.retrieved",
        f"LoCoMo: of the stored, in the first {TOP} for its question (the rest is lost at recall)",
        got / max(1, len(stored)),
        0.7,
        "share",
        len(stored),
        why="few memories answer several questions; what was asked shares no word with them",
    )
    yield against_peers(
        "quality.locomo.either",
        f"LoCoMo: evidence in the first {TOP} memories or turns, transcripts searched too",
        either / put_in,
        {"FTS5 over the turns": sum(one.by_fts5 for one in every) / put_in},
        better="higher",
        unit="share",
        n=put_in,
    )


def followed(dialogue: data.Dialogue) -> tuple[list[Followed], int]:
    """Every piece of evidence of one dialogue, and how many memories were written."""
    turns = {one.message: one for said in dialogue.sessions.values() for one in said}
    people = sorted({one.speaker for one in turns.values()})
    plain = Plain({ident: [f"{one.speaker} {one.text}"] for ident, one in turns.items()})
    out: list[Followed] = []
    with tempfile.TemporaryDirectory() as name:
        homes = {who: Learned(Path(name) / f"p{n}", dialogue, who) for n, who in enumerate(people)}
        with dialogue.index(Path(name) / "turns.sqlite3") as index:
            for question in dialogue.questions:
                query = Query.of(question.text, data.NOW)
                hits = index.search(query, k=TOP, kinds=("transcript",))
                said = {hit.message for hit in hits}
                others = set(plain.search(question.text, TOP))
                for ident in question.evidence:
                    turn = turns[ident]
                    home = homes[turn.speaker]
                    keeping = home.keeping(turn.text)
                    found = keeping & home.found(question.text)
                    now = Followed(bool(keeping), bool(found), ident in said, ident in others)
                    out.append(now)
        count = sum(len(home.texts) for home in homes.values())
        for home in homes.values():
            home.memory.close()
    return out, count


class Learned:
    """What one person's memory holds after a dialogue."""

    def __init__(self, base: Path, dialogue: data.Dialogue, user: str) -> None:
        home, project, talk = (base / part for part in ("home", "project", "talk"))
        for folder in (home, project, talk):
            folder.mkdir(parents=True)
        files: list[str] = []
        for number, said in enumerate(dialogue.sessions.values()):
            path = talk / f"{number:03d}.jsonl"
            path.write_text(session_file(f"{dialogue.id}-{number:03d}", said, user), "utf-8")
            files.append(str(path))
        learn(home, project, files)
        found = [path for path in memory_files(home) if path.name != "MEMORY.md"]
        self.texts = {path.name: words(path.read_text("utf-8")) for path in found}
        self.memory = reverie.Memory(project, home=home)
        self._known: dict[str, set[str]] = {}

    def keeping(self, text: str) -> set[str]:
        """The memories that keep what a turn says."""
        wanted = words(text)
        if not wanted:
            return set()
        most = KEPT * len(wanted)
        return {name for name, held in self.texts.items() if len(wanted & held) >= most}

    def found(self, question: str) -> set[str]:
        if question not in self._known:
            hits = self.memory.search(question, limit=TOP)
            self._known[question] = {Path(hit.file).name for hit in hits}
        return self._known[question]


def words(text: str) -> set[str]:
    """The telling words of a text: four letters or more, or digits, and none of the commonest."""
    found = re.findall(r"[a-z][a-z']{3,}|\d+", text.lower())
    return {word.removesuffix("'s") for word in found} - _OFTEN


def session_file(name: str, said: Sequence[Utterance], user: str) -> str:
    """One session as a recording of an agent's has it, with one of the people as the user."""
    rows: list[Mapping[str, Any]] = []
    for n, turn in enumerate(said):
        role = "user" if turn.speaker == user else "assistant"
        when = datetime.fromtimestamp(turn.at + n, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        content = turn.text if role == "user" else [{"type": "text", "text": turn.text}]
        rows.append(
            {
                "type": role,
                "uuid": f"{name}-{n}",
                "parentUuid": f"{name}-{n - 1}" if n else None,
                "timestamp": when,
                "sessionId": name,
                "cwd": "/work",
                "message": {"role": role, "id": f"{name}-m{n}", "content": content},
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows)
