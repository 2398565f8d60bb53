"""MemoryCode: a mentor gives coding rules over many sessions, changes some, and talks of other
things; what does the memory say at the end? Needs the dialogues (`REVERIE_SHARED`).

Every dialogue is learned in a fresh home by the command that people have, `reverie memory learn`,
one session file after the other, with the embedded model. Then the memory folder is read as text.
The judge knows the rules alone (an object and a pattern) and nothing of the product: a rule holds
where one sentence of a memory names its literal part and, there or in the memory's head, its
object. A sentence's words behind "instead of", "no longer" and the like are told as old.

    python -m bench run memorycode
    python -m bench.memorycode --most 72 --show
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reverie
from bench.figures import ROOT_SHARED, Figure, Row, at_least, at_most

Rule = tuple[str, str]
"""An object and what is asked of it: a pattern of names, a decorator or module, or ""."""


def rule_of(thing: str, pattern: Any) -> Rule:
    if isinstance(pattern, list):
        return thing, str(pattern[0])
    return thing, "" if pattern is True else str(pattern)


CAMEL = r"^[A-Z][a-z0-9]*((\d|[a-z])[A-Z\d]*[a-z0-9]*)*$"
UPPER = r"\b[A-Z][A-Z0-9_]*\b"
SNAKE = "^[a-z0-9_]*$"
TOPICS: Sequence[tuple[str, str, str]] = (
    (r"always start (?P<o>.+) names with '(?P<p>.+)'", "{o}", "^{p}.*"),
    (r"always end (?P<o>.+) names with '(?P<p>.+)'", "{o}", ".*{p}$"),
    (r"always include a single digit in (?P<o>.+) names", "{o}", r".*\d$"),
    (r"always include the string '(?P<p>.+)' in (?P<o>.+) names", "{o}", ".*{p}.*"),
    (r"always add the '@(?P<p>\w+)' .* to all (?P<o>class|function|method)(?:es|s)",
     "{o} decorator", "{p}"),
    (r"always import the '(?P<p>\w+)' module.*", "import", "{p}"),
    (r"always use docstrings in (?P<o>\w+)s", "{o} docstring", ""),
    (r"always use annotations for (?P<o>\w+)s", "{o} annotation", ""),
    (r"always include (?P<p>assert|try) statements in (?P<o>\w+)s", "{o} {p}", ""),
    (r"always add comments in your code", "comment", ""),
    (r"always use CamelCase for class names", "class", CAMEL),
    (r"always use all UPPERCASE for class names", "class", UPPER),
    (r"always use snake_case for class names", "class", SNAKE),
)  # fmt: skip
CASES = {
    CAMEL: r"camel[ _-]?case",
    UPPER: r"upper[ _-]?case|all caps|capital letters",
    SNAKE: r"snake[ _-]?case",
}
OBJECTS = {
    "function": r"\bfunctions?\b(?!['’]?s?'? (?:arguments?|parameters?))",
    "function argument": r"\b(?:arguments?|parameters?|args?)\b",
    "method": r"\bmethods?\b",
    "attribute": r"\battributes?\b",
    "variable": r"\bvariables?\b",
    "class": r"\bclass(?:es)?\b",
    "import": r"\bimport",
    "comment": r"\bcod(?:e|ing)\b|\badd\b|\bwrit",
}
WORDS = {
    "docstring": r"\bdoc[- ]?strings?\b",
    "annotation": r"\bannotat|\btype hints?\b",
    "assert": r"\bassert",
    "try": r"\btry['’`\"]?(?:[-/ ](?:except|catch|statements?|blocks?|clauses?)|, )|'try'|`try`",
    "comment": r"\bcomment(?:s|ed|ing)?\b",
}


def told(topic: str) -> Rule | None:
    """The rule that a topic's text gives."""
    for pattern, thing, what in TOPICS:
        if found := re.fullmatch(pattern, topic):
            known = found.groupdict()
            return thing.replace("{o}", known.get("o", "")).replace("{p}", known.get("p", "")), (
                what.replace("{p}", known.get("p", ""))
            )
    return None


def signs(rule: Rule) -> tuple[str, str]:
    """Patterns for a rule's object, and for its literal part."""
    thing, pattern = rule
    base, _, rest = thing.rpartition(" ")
    if rest in WORDS:
        return OBJECTS[base or rest], WORDS[rest]
    if rest == "decorator":
        return OBJECTS[base], rf"(?<!\w)@?{re.escape(pattern)}(?!\w)"
    if thing == "import":
        return OBJECTS[thing], rf"(?<!\w){re.escape(pattern)}(?!\w)"
    if pattern in CASES:
        return OBJECTS[thing], CASES[pattern]
    if pattern == r".*\d$":
        return OBJECTS[thing], r"\bdigits?\b|\bnumbers?\b|\bnumerals?\b"
    literal = pattern.removeprefix("^").removeprefix(".*").removesuffix("$").removesuffix(".*")
    return OBJECTS[thing], rf"(?<![A-Za-z0-9_]){re.escape(literal)}(?![A-Za-z0-9_])"


# The judge

OLD = re.compile(
    r"\b(?:instead of|rather than|no longer|formerly|previously|until now|used to|not any ?more"
    r"|replac(?:es|ed|ing)(?! by)|supersed(?:es|ing)|in place of|and not|, not)\b",
    re.IGNORECASE,
)
GONE = re.compile(
    r"\b(?:is|are|was|were) (?:no longer|superseded|outdated|dropped|replaced)\b", re.IGNORECASE
)
BY = re.compile(r"\b(?:replaced|superseded) (?:by|with)\b", re.IGNORECASE)
DEAD = re.compile(r"(?im)^(?:status|superseded[\w ]*|replaced[\w ]*):\s*\S+")
END = re.compile(r"(?<=[.!?;])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Page:
    """A memory file: its head, and sentences that it tells as current."""

    key: str
    head: str
    current: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, key: str, text: str) -> Page:
        _, head, body = text.split("---\n", 2) if text.startswith("---\n") else ("", "", text)
        if DEAD.search(head):
            return cls(key, "", (), text)
        parts = [now(part) for part in END.split(f"{head}\n{body}")]
        about = " ".join(re.findall(r"(?m)^(?:name|description):(.*)$", head))
        return cls(key, about, tuple(filter(None, parts)), text)

    def states(self, rule: Rule) -> bool:
        thing, literal = signs(rule)
        return any(
            re.search(literal, part, re.IGNORECASE)
            and (
                re.search(thing, part, re.IGNORECASE) or re.search(thing, self.head, re.IGNORECASE)
            )
            for part in self.current
        )


def now(sentence: str) -> str:
    """What a sentence tells as current."""
    if by := BY.search(sentence):
        return sentence[by.end() :]
    if GONE.search(sentence):
        return ""
    old = OLD.search(sentence)
    return sentence[: old.start()] if old else sentence


_SMALL = "a always an and as at by for in is it never of on only or the their to use with your"
SMALL = frozenset(re.findall(r"\w+", _SMALL))
STEM = 5


def speaks_of(page: Page, topic: str) -> bool:
    """Whether most content words of a topic stand in a page, by their beginnings."""
    words = {word[:STEM] for word in re.findall(r"[a-z0-9]+", topic.lower()) if word not in SMALL}
    known = {word[:STEM] for word in re.findall(r"[a-z0-9]+", page.text.lower())}
    return len(words & known) >= 0.7 * len(words)


# Dialogues


DATA = ROOT_SHARED / "data" / "memorycode_dev.jsonl.gz"
HOLDS = 0.60
REPLACED = 0.02
MOST = 54
"""Dialogues that are played unless more are asked for: those of up to 30 sessions."""
HALVES = ("dev", "held")
HALF = {"dev": "half that was worked on", "held": "half that was held back"}
TOP = 10


@dataclass(frozen=True, slots=True)
class Dialogue:
    id: str
    sessions: list[Any]

    @property
    def half(self) -> str:
        return HALVES[hashlib.sha256(self.id.encode()).digest()[0] % 2]

    @property
    def final(self) -> list[Rule]:
        return [rule_of(*one) for one in self.sessions[-1]["rules"]]

    @property
    def replaced(self) -> list[Rule]:
        """Rules that were given and no longer hold at the end."""
        given = [told(topic) for topic in self.topics("instruction")]
        return [one for one in dict.fromkeys(given) if one and one not in self.final]

    def topics(self, kind: str) -> list[str]:
        return [
            topic
            for session in self.sessions
            for type_, topic in zip(session["type"], session["topic"], strict=True)
            if type_.startswith(kind)
        ]


@functools.cache
def dialogues() -> list[Dialogue]:
    rows = gzip.decompress(DATA.read_bytes()).splitlines()
    found = [Dialogue(row["id"], row["sessions"]) for row in map(json.loads, rows)]
    return sorted(found, key=lambda one: (len(one.sessions), one.id))


# What it comes to


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one dialogue came to."""

    dialogue: Dialogue
    pages: tuple[Page, ...]
    queued: int = 0
    found: tuple[frozenset[str], ...] = ()  # files that recall gives for each final rule's object

    @property
    def held(self) -> list[Rule]:
        return [
            rule for rule in self.dialogue.final if any(page.states(rule) for page in self.topics)
        ]

    @property
    def retrieved(self) -> list[Rule]:
        """Rules that a memory keeps, and that recall finds when their object is written of."""
        return [
            rule
            for rule, files in zip(self.dialogue.final, self.found, strict=True)
            if any(page.states(rule) for page in self.topics if page.key in files)
        ]

    @property
    def stale(self) -> list[Rule]:
        """Replaced rules that a file or the index tells as current."""
        return [
            rule for rule in self.dialogue.replaced if any(page.states(rule) for page in self.pages)
        ]

    @property
    def topics(self) -> tuple[Page, ...]:
        """Memories that tell something as current."""
        return tuple(page for page in self.pages if page.key != "MEMORY.md" and page.current)

    @property
    def others(self) -> list[Page]:
        """Saves that state none of the rules ever given."""
        rules = [*self.dialogue.final, *self.dialogue.replaced]
        return [one for one in self.topics if not any(one.states(rule) for rule in rules)]

    @property
    def orders(self) -> list[Page]:
        """Those among them that keep one of the mentor's orders that concern no code."""
        given = self.dialogue.topics("filler-instruction")
        return [one for one in self.others if any(speaks_of(one, topic) for topic in given)]


# Playing a dialogue


def session_file(dialogue: Dialogue, number: int) -> str:
    """One session as a recording of a coding agent's has it; a day lies between two."""
    rows: list[dict[str, Any]] = []
    name = f"{dialogue.id}-{number:03d}"
    for n, turn in enumerate(dialogue.sessions[number]["turns"]):
        day = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}"
        text = turn["text"]
        content = text if turn["role"] == "user" else [{"type": "text", "text": text}]
        rows.append(
            {
                "type": turn["role"],
                "uuid": f"{name}-{n}",
                "parentUuid": f"{name}-{n - 1}" if n else None,
                "timestamp": f"{day}T09:{n // 60:02d}:{n % 60:02d}Z",
                "sessionId": name,
                "cwd": "/work",
                "message": {"role": turn["role"], "id": f"{name}-m{n}", "content": content},
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows)


def played(dialogue: Dialogue) -> Outcome:
    """A dialogue learned session by session in a fresh home."""
    with tempfile.TemporaryDirectory() as name:
        home, project, talk = (Path(name) / part for part in ("home", "project", "talk"))
        for folder in (home, project, talk):
            folder.mkdir()
        files: list[str] = []
        for number in range(len(dialogue.sessions)):
            path = talk / f"{number:03d}.jsonl"
            path.write_text(session_file(dialogue, number), encoding="utf-8")
            files.append(str(path))
        done = learn(home, project, files)
        queued = sum(len(one["queued"]) for one in done["sessions"])
        texts = {path.name: path.read_text("utf-8") for path in sorted(memory_files(home))}
        with reverie.Memory(project, home=home) as memory:
            found = tuple(asked(memory, thing) for thing, _ in dialogue.final)
    return Outcome(dialogue, tuple(Page.of(*one) for one in texts.items()), queued, found)


def asked(memory: reverie.Memory, thing: str) -> frozenset[str]:
    """What recall gives to somebody who is about to write such a thing."""
    hits = memory.search(f"I am writing a {thing} in Python. How should it be?", limit=TOP)
    return frozenset(Path(hit.file).name for hit in hits)


def learn(home: Path, project: Path, files: Sequence[str]) -> Any:
    environ = {key: text for key, text in os.environ.items() if not key.startswith("REVERIE")}
    environ |= {"REVERIE_HOME": str(home), "HOME": str(home)}
    command = [sys.executable, "-m", "reverie.apps.cli", "memory", "learn", "--json"]
    line = [*command, "--model", "embedded", *files]
    return json.loads(subprocess.check_output(line, cwd=project, env=environ))


def memory_files(home: Path) -> Iterator[Path]:
    for path in home.rglob("memory/**/*.md"):
        if not any(part.startswith(".") for part in path.relative_to(home).parts):
            yield path


# Figures


def share(hits: int, of: int) -> str:
    return f"{hits}/{of} = {hits / of:.3f}" if of else "0/0"


def total(outcomes: Sequence[Outcome], counted: Callable[[Outcome], Sized]) -> int:
    return sum(len(counted(one)) for one in outcomes)


def figures(what: str, outcomes: Sequence[Outcome], *, bar: bool) -> Iterator[Row]:
    final, held = total(outcomes, lambda o: o.dialogue.final), total(outcomes, lambda o: o.held)
    gone, stale = total(outcomes, lambda o: o.dialogue.replaced), total(outcomes, lambda o: o.stale)
    for name, hits, of, limit, met in (
        ("the rule that holds is in memory", held, final, HOLDS, held >= HOLDS * final > 0),
        ("a replaced rule is told as current", stale, gone, REPLACED, stale <= REPLACED * gone),
    ):
        bound = f"{limit:.2f}" if bar else ""
        yield f"{what}: {name}", share(hits, of), bound, met if bar else None


def saves(what: str, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    topics, others = total(outcomes, lambda o: o.topics), total(outcomes, lambda o: o.others)
    orders, queued = total(outcomes, lambda o: o.orders), sum(one.queued for one in outcomes)
    yield f"{what}: files per dialogue", f"{topics / len(outcomes):.1f}", "", None
    yield f"{what}: files that state no coding rule", share(others, topics), "", None
    yield f"{what}: of those, orders that concern no code", share(orders, others), "", None
    yield f"{what}: files that keep neither", share(others - orders, topics), "", None
    yield f"{what}: waiting for review", str(queued), "", None


def rows_of(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    for half in HALVES:
        here = [one for one in outcomes if one.dialogue.half == half]
        if here:
            yield from figures(f"{half}, {len(here)} dialogues", here, bar=True)
            yield from saves(half, here)
    by_length: dict[int, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_length[len(one.dialogue.sessions)].append(one)
    for length, here in sorted(by_length.items()):
        yield from figures(f"{length} sessions", here, bar=False)


def play(chosen: Iterable[Dialogue]) -> list[Outcome]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(played, chosen))


def measure(out: Path, most: int = MOST) -> Iterator[Figure | Row]:
    del out
    if not DATA.is_file():
        yield "dialogues", f"not found under {ROOT_SHARED.name}", "", None
        return
    outcomes = play(dialogues()[:most])
    for half in HALVES:
        here = [one for one in outcomes if one.dialogue.half == half]
        yield from followed(here, half)
    yield from rows_of(outcomes)


def followed(outcomes: Sequence[Outcome], half: str) -> Iterator[Figure]:
    """Rules put in, stored and retrieved, counted apart."""
    final, held = total(outcomes, lambda o: o.dialogue.final), total(outcomes, lambda o: o.held)
    gone, stale = total(outcomes, lambda o: o.dialogue.replaced), total(outcomes, lambda o: o.stale)
    got, key = total(outcomes, lambda o: o.retrieved), f"memorycode.{half}"
    name = f"MemoryCode, {HALF[half]} ({len(outcomes)} dialogues)"
    what = f"{name}: rules that hold and are in memory (the rest is lost at writing)"
    yield at_least(f"{key}.stored", what, held / max(1, final), HOLDS, "share", final)
    what = f"{name}: of these, in the first {TOP} when such code is written (lost at recall)"
    why = "a question that names the object alone shares a common word with many"
    yield at_least(f"{key}.retrieved", what, got / max(1, held), 0.9, "share", held, why)
    what = f"{name}: replaced rules that are told as current"
    why = "two replaced rules were worded so that no sign tells them from their heirs"
    yield at_most(f"{key}.stale", what, stale / max(1, gone), REPLACED, "share", gone, why)


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn MemoryCode's dialogues and judge.")
    parser.add_argument("--most", type=int, default=MOST, help="how many, the shortest first")
    parser.add_argument("--show", action="store_true", help="which rules of the dev half missed")
    asked = parser.parse_args()
    outcomes = play(dialogues()[: asked.most])
    for what, got, limit, met in rows_of(outcomes):
        print(f"{what} | {got} | {limit} | {'' if met is None else met}")
    if asked.show:
        for one in (o for o in outcomes if o.dialogue.half == "dev"):
            missed = [rule for rule in one.dialogue.final if rule not in one.held]
            print(one.dialogue.id, "missed", missed, "stale", one.stale, len(one.others))


if __name__ == "__main__":
    main()
