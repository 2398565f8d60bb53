"""The work that recall is measured on: dialogues, memory documents, commits with their sessions.

Read from `REVERIE_SHARED`, never copied here. Each is put into the product's own index as the
product would: documents as memory files on disk, dialogues and sessions as turns.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figures import ROOT_SHARED
from reverie.recall import Utterance, utterances
from reverie.store import RecallIndex
from reverie.topics import scalar
from reverie.transcript import AssistantMessage, Entry, UserMessage, read

DATA = ROOT_SHARED / "data"
NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
CATEGORIES = (1, 2, 3, 4)


def there() -> bool:
    return DATA.is_dir()


def _load(name: str) -> Any:
    return json.loads(gzip.decompress((DATA / name).read_bytes()))


# Dialogues


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Dialogue:
    id: str
    sessions: dict[str, list[Utterance]]
    questions: list[Question]

    def index(self, path: Path) -> RecallIndex:
        index = RecallIndex.open(path)
        for session, said in self.sessions.items():
            index.put_session(session, said)
        return index


@functools.cache
def dialogues() -> list[Dialogue]:
    return [_dialogue(one) for one in _load("locomo_dev.json.gz")]


def _dialogue(one: Any) -> Dialogue:
    talk = one["conversation"]
    sessions: dict[str, list[Utterance]] = {}
    for name in sorted(talk, key=lambda n: int(n.split("_")[1]) if "session" in n else 0):
        if re.fullmatch(r"session_\d+", name):
            at = _when(talk[f"{name}_date_time"])
            said = [Utterance(_said(t), t["speaker"], at, t["dia_id"]) for t in talk[name]]
            sessions[f"D{name.partition('_')[2]}"] = said
    known = {turn.message for said in sessions.values() for turn in said}
    questions: list[Question] = []
    for qa in one["qa"]:
        found = {
            f"D{int(session)}:{int(turn)}"
            for item in qa.get("evidence", [])
            for session, turn in re.findall(r"D:?(\d+):(\d+)", item)
        }
        if qa["category"] in CATEGORIES and found & known:
            questions.append(Question(qa["question"], qa["category"], frozenset(found & known)))
    return Dialogue(one["sample_id"], sessions, questions)


def _said(turn: Any) -> str:
    caption = turn.get("blip_caption")
    return turn["text"] + (f" [image: {caption}]" if caption else "")


def _when(text: str) -> float:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()


# Memory documents


@functools.cache
def documents() -> list[dict[str, Any]]:
    lines = gzip.decompress((DATA / "memory_docs_dev.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def key_of(document: dict[str, Any]) -> str:
    return str(document["path"]).removeprefix("docs/learned/")


def memory_folder(folder: Path) -> Path:
    """The documents as memory files; their title is the only frontmatter they have."""
    for one in documents():
        path = folder / key_of(one)
        path.parent.mkdir(parents=True, exist_ok=True)
        name = f"---\nname: {scalar(one['title'])}\n---\n" if one["title"] else ""
        path.write_text(name + one["body"], encoding="utf-8")
    return folder


def read_when() -> list[tuple[str, str]]:
    """A situation, and the key of the document that should be recalled in it."""
    return [(line, key_of(one)) for one in documents() for line in one.get("read_when") or ()]


# Commits


@functools.cache
def commits() -> list[tuple[str, frozenset[str]]]:
    found = [(one["query"], one["relevant_sessions"]) for one in _load("commit_labels_dev.json.gz")]
    return [(query, frozenset(sessions)) for query, sessions in found]


@functools.cache
def sessions() -> dict[str, list[Utterance]]:
    """The recorded sessions as turns, without the agent's own git commits."""
    out: dict[str, list[Utterance]] = {}
    for path in sorted((DATA / "sessions_dev").glob("*.jsonl.gz")):
        name = path.name.removesuffix(".jsonl.gz")
        if re.fullmatch(r"[0-9a-f-]{36}", name):
            lines = gzip.decompress(path.read_bytes()).decode().splitlines()
            out[name] = list(utterances(_without_commits(read(lines, name).entries)))
    return out


def _without_commits(entries: Any) -> Iterator[Entry]:
    gone: set[str] = set()
    for entry in entries:
        record = entry.record
        if isinstance(record, AssistantMessage):
            gone |= {block.get("id") for block in record.blocks if _is_commit(block)}
            record = replace(
                record, blocks=tuple(one for one in record.blocks if not _is_commit(one))
            )
        elif isinstance(record, UserMessage):
            left = [block for block in record.blocks if block.get("tool_use_id") not in gone]
            record = replace(record, blocks=tuple(left))
        yield replace(entry, record=record)


def _is_commit(block: Any) -> bool:
    if block.type != "tool_use":
        return False
    return re.search(r"\bgit\b[^|;&]*\bcommit\b", json.dumps(block.value.get("input"))) is not None
