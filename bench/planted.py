"""Memories made from real documents, with faults planted in them by a seed.

A document becomes a memory: its title the name, its first sentence the description, its type
reference. Then faults go in: duplicates in other words, contradictions by value, denial or date,
dates that say nothing without the day they were written on, deadlines that have passed, and
pointers and links that lead nowhere, heads and headings that are wrong, junk, and near twins: two
facts that differ by a name, a noun, a number in words, a weekday, a denial. Each fault is
kept with what a check should find, what a repair should leave, and which facts must survive it.

It shares no code with what looks for such faults. `paraphrase` has the operators that reword.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from bench.paraphrase import HALVES, TABLES, reworded, reworded_body

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
INDEX = "MEMORY.md"
FOLDER = "docs/learned/"


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    kind: str
    half: str
    file: str
    with_file: str = ""
    line: str = ""  # the text that is at fault
    wanted: tuple[str, ...] = ()  # texts that a repair must leave somewhere
    gone: tuple[str, ...] = ()  # texts that a repair must take away from `file`


@dataclass
class Planted:
    """A memory folder with its faults. `facts` are planted statements that must never be lost."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    times: dict[str, float] = field(default_factory=dict[str, float])
    faults: list[Fault] = field(default_factory=list[Fault])
    facts: list[str] = field(default_factory=list[str])


# -- documents as memories -----------------------------------------------------------


def documents(shared: Path) -> list[dict[str, Any]]:
    with gzip.open(shared / "data" / "memory_docs_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [one | {"title": one["title"] or Path(one["path"]).stem} for one in found]


def first_sentence(body: str) -> str:
    text = re.sub(r"```.*?```", "", body, flags=re.DOTALL)
    for block in text.split("\n\n"):
        one = " ".join(block.split())
        if one and one[0] not in "#|>-*!<[":
            return re.split(r"(?<=[.!?])\s", one)[0][:280]
    return ""


def memory(title: str, about: str, body: str, kind: str = "reference") -> bytes:
    name, description = (json.dumps(text, ensure_ascii=False) for text in (title, about))
    head = f"---\nname: {name}\ndescription: {description}\ntype: {kind}\n---\n"
    return f"{head}\n{body.strip()}\n".encode()


def key_of(document: dict[str, Any]) -> str:
    return str(document["path"]).removeprefix(FOLDER)


def pointer(key: str, title: str, about: str) -> str:
    plain = " ".join(title.replace("[", "(").replace("]", ")").split())
    start = f"- [{plain[:70]}]({key})"
    room = 148 - len(start) - 3
    hook = about if len(about) <= room else about[: max(room - 1, 12)].rsplit(" ", 1)[0] + "…"
    return f"{start} — {hook}" if hook and len(start) < 118 else start


def untouched(docs: Sequence[dict[str, Any]], seed: int = 0) -> Planted:
    """The documents as memories, each with its pointer and a time, and no fault added."""
    chance = Random(seed)
    made = Planted()
    rows = ["# Memory", ""]
    for doc in docs:
        key, title = key_of(doc), str(doc["title"])
        about = first_sentence(doc["body"])
        made.files[key] = memory(title, about, doc["body"])
        days = chance.randrange(60, 500)
        made.times[key] = (NOW - timedelta(days, chance.randrange(86_400))).timestamp()
        rows.append(pointer(key, title, about))
    made.files[INDEX] = ("\n".join(rows) + "\n").encode()
    made.times[INDEX] = NOW.timestamp()
    return made


# -- planting ------------------------------------------------------------------------

_PEOPLE = ("Amara Okafor", "Jonas Lindqvist", "Mei-Ling Chou", "Pavel Novák", "Rosa Delgado")
_THINGS = ("rollout", "migration", "clean-up", "audit", "hand-over", "freeze", "review")
_UNIT = re.compile(r"(?<![\w#.`/-])(\d{1,5}) (?=[a-z]{3,}\b)")
_AUX = re.compile(r"\b(is|are|can|must|should|will|does|do) (?!not\b|n't)(?=[a-z]{3,})")
_LABELS = re.compile(r"(?i)\b(?:steps?|phases?|layers?|lines?|prs?|tiers?|levels?|parts?) \d")
_WHEN = re.compile(
    r"\s*\b(?:yesterday|tomorrow|two weeks ago|last week|next week|next month|3 days ago"
    r"|the day after|last year|last Monday)\b"
)
_SYSTEMS = ("Halvard", "Brisk", "Quill", "Tarn", "Osier")
_TWINS: Sequence[tuple[str, str, Sequence[tuple[str, str]]]] = TABLES["twins"]
_JUNK: Sequence[str] = TABLES["junk"]


class _Planter:
    def __init__(self, docs: Sequence[dict[str, Any]], seed: int) -> None:
        self.chance = Random(seed)
        self.made = untouched(docs, seed)
        self.docs = {key_of(doc): doc for doc in docs}
        names = {"index.md", "tripwires.md", "tripwires-index.md"}  # generated pages
        self.free = [k for k, d in self.docs.items() if Path(k).name not in names]
        self.free = [k for k in self.free if len(self.docs[k]["body"]) > 1_200]
        self.chance.shuffle(self.free)
        self.rows = self.made.files[INDEX].decode().splitlines()

    def take(self) -> str:
        return self.free.pop()

    def text(self, key: str) -> str:
        return self.made.files[key].decode()

    def append(self, key: str, sentence: str) -> None:
        self.made.files[key] = f"{self.text(key).rstrip()}\n\n{sentence}\n".encode()

    def add(self, key: str, title: str, body: str, when: float) -> None:
        about = first_sentence(body) or title
        self.made.files[key] = memory(title, about, body)
        self.made.times[key] = when
        self.rows.append(pointer(key, title, about))

    def later(self) -> float:
        """A time after that of every document."""
        return (NOW - timedelta(self.chance.randrange(2, 50))).timestamp()

    def done(self) -> Planted:
        self.made.files[INDEX] = ("\n".join(self.rows) + "\n").encode()
        return self.made

    # Duplicates

    def duplicate(self, half: str) -> None:
        key = self.take()
        doc = self.docs[key]
        code = self.chance.random() < 0.5
        body = reworded_body(doc["body"], HALVES[half], self.chance, code=code)
        title = reworded(str(doc["title"]), HALVES[half], self.chance)
        body = re.sub(r"\A\s*# .*\n", f"# {title}\n", body)
        who, number = self.chance.choice(_PEOPLE), self.chance.randrange(1000, 9999)
        extra = f"Questions about {doc['title']} go to {who}, extension {number}."
        twin = f"{key.removesuffix('.md')}-notes.md"
        self.add(twin, title, f"{body.rstrip()}\n\n{extra}\n", self.later())
        self.made.facts.append(extra)
        self.made.faults.append(Fault("duplicate", half, twin, key, "", (extra,)))

    # Contradictions

    def _sentences(self, key: str) -> list[str]:
        text = re.sub(r"```.*?```", "", self.docs[key]["body"], flags=re.DOTALL)
        found: list[str] = []
        for block in re.split(r"\n\s*\n|\n(?=\s*[-*] |\s*\d+\. )", text):
            one = " ".join(block.split())
            if one and one[0] not in "#|>!<-*[" and not re.match(r"\d+\. ", one):
                found += re.split(r"(?<=[.!?])\s+(?=[A-Z`])", one)
        every = [one for one in found if 8 <= len(one.split()) <= 30 and one.endswith(".")]
        return [one for one in every if one in self.text(key)]

    def _update(self, key: str, old: str, new: str, kind: str, half: str) -> None:
        said = new if self.chance.random() < 0.5 else reworded(new, HALVES[half], self.chance)
        name = f"{key.removesuffix('.md')}-update.md"
        self.add(name, f"Update: {self.docs[key]['title']}", said, self.later())
        self.made.facts.append(said)
        self.made.faults.append(Fault(kind, half, key, name, old, (said,), (old,)))

    def value(self, half: str) -> None:
        while True:
            key = self.take()
            fits = [s for s in self._sentences(key) if _UNIT.search(s) and not _LABELS.search(s)]
            if fits:
                break
        old = self.chance.choice(fits)
        found = _UNIT.search(old)
        assert found is not None
        other = str(int(found[1]) * 2 + self.chance.randrange(3, 9))
        new = old[: found.start(1)] + other + old[found.end(1) :]
        self._update(key, old, new, "contradiction-value", half)

    def denial(self, half: str) -> None:
        while True:
            key = self.take()
            fits = [s for s in self._sentences(key) if _AUX.search(s)]
            fits = [s for s in fits if not re.search(r"(?i)\b(?:not|no|never|without)\b|n't", s)]
            if fits:
                break
        old = self.chance.choice(fits)
        new = _AUX.sub(lambda found: f"{found[1]} not ", old, count=1)
        self._update(key, old, new, "contradiction-denial", half)

    def date(self, half: str) -> None:
        key = self.take()
        day = NOW + timedelta(self.chance.randrange(20, 200))
        other = day + timedelta(self.chance.randrange(3, 40))
        what = self.chance.choice(_THINGS)
        start = f"The {what} of {self.docs[key]['title']} happens on"
        old, new = (f"{start} {one:%Y-%m-%d} with the whole team." for one in (day, other))
        self.append(key, old)
        self._update(key, old, new, "contradiction-date", half)

    # Dates

    def relative(self, number: int) -> None:
        key = self.take()
        base = datetime.fromtimestamp(self.made.times[key], UTC).date()
        monday = base - timedelta(base.weekday())
        month = base.month % 12 + 1
        words: list[tuple[str, str]] = [
            ("{} decided yesterday to keep this for {}.", str(base - timedelta(1))),
            ("{} moves {} tomorrow.", str(base + timedelta(1))),
            ("{} reviewed {} two weeks ago.", str(base - timedelta(14))),
            ("{} finished {} last week.", str(monday - timedelta(7))),
            ("{} begins {} next week.", str(monday + timedelta(7))),
            ("{} takes over {} next month.", f"{base.year + (base.month == 12)}-{month:02d}"),
            ("{} measured {} 3 days ago.", str(base - timedelta(3))),
            ("{} presents {} the day after tomorrow.", str(base + timedelta(2))),
            ("{} first wrote {} last year.", str(base.year - 1)),
            ("{} met about {} last Monday.", str(monday - timedelta(0 if base.weekday() else 7))),
        ]
        form, wanted = words[number % len(words)]
        said = form.format(self.chance.choice(_PEOPLE), f"“{self.docs[key]['title']}”".strip("“”"))
        self.append(key, said)
        self.made.facts.append(_WHEN.sub("", said))  # who and what it is about has to survive
        self.made.faults.append(Fault("stale-relative", "open", key, "", said, (wanted,)))

    def deadline(self, number: int) -> None:
        key = self.take()
        day = NOW - timedelta(self.chance.randrange(20, 400))
        title = self.docs[key]["title"]
        forms = (
            f"The deadline for {title} is {day:%Y-%m-%d}.",
            f"{title} has to be finished by {day:%B} {day.day}, {day.year}.",
            f"The exception for {title} expires on {day:%Y-%m-%d}.",
            f"{title} is due on {day.day} {day:%B} {day.year}.",
        )
        said = forms[number % len(forms)]
        self.append(key, said)
        self.made.facts.append(said.rstrip("."))
        self.made.faults.append(Fault("stale-deadline", "open", key, "", said))

    # Near twins: two facts that must both stay, and what of them is at odds

    def twins(self) -> None:
        """Two short files that differ by one thing in the same place, of each kind."""
        for number, (kind, form, pairs) in enumerate(_TWINS):
            one, other = self.chance.choice(pairs)
            what = f"{self.chance.choice(_SYSTEMS)}{self.chance.randrange(100, 999)}"
            texts = [form.format(part, what=what) for part in (one, other)]
            names = [f"twin-{number}-{what}-{n}.md" for n in (1, 2)]
            for at, (name, text) in enumerate(zip(names, texts, strict=True)):
                when = (NOW - timedelta(40 - 10 * at, number)).timestamp()
                self.add(name, f"Note {number}{'ab'[at]} on {what}", text, when)
            if kind == "value":  # the newer holds, and the older has a tombstone
                self.made.facts.append(texts[1])
                fault = Fault(
                    "contradiction-words",
                    "open",
                    names[0],
                    names[1],
                    texts[0],
                    (texts[1],),
                    (texts[0],),
                )
                self.made.faults.append(fault)
                continue
            self.made.facts += texts[kind == "turned" :]  # what is denied later may give way
            if kind in ("name", "weekday"):
                fault = Fault(
                    f"contradiction-{kind}", "open", names[0], names[1], texts[0], tuple(texts)
                )
                self.made.faults.append(fault)

    # Form and junk

    def misspelt(self) -> None:
        key = self.take()
        wrong = self.chance.choice(("refrence", "References", "referense", "reference_"))
        text = self.text(key).replace("\ntype: reference\n", f"\ntype: {wrong}\n", 1)
        self.made.files[key] = text.encode()
        self.made.faults.append(Fault("form-type", "open", key, "", f"type: {wrong}"))

    def unclosed(self) -> None:
        key = self.take()
        head, _, body = self.text(key).partition("\n---\n")
        self.made.files[key] = f"{head}\n{body}".encode()
        self.made.faults.append(Fault("form-head", "open", key, "", "---"))

    def doubled(self) -> None:
        while True:
            key = self.take()
            fits = [s for s in self._sentences(key) if f"\n{s}\n" in self.text(key)]
            if fits:
                break
        row = self.chance.choice(fits)
        self.made.files[key] = self.text(key).replace(f"\n{row}\n", f"\n{row}\n{row}\n", 1).encode()
        self.made.faults.append(Fault("form-doubled", "open", key, "", row))

    def heading(self) -> None:
        while True:
            key = self.take()
            found = re.findall(r"(?m)^## [^\n#]+$", re.sub(r"(?s)```.*?```", "", self.text(key)))
            if len(found) >= 2 and len(set(found)) == len(found):
                break
        who = self.chance.choice(_PEOPLE)
        extra = f"{who} wrote {self.chance.randrange(100, 999)} lines of it."
        self.append(key, f"{found[0]}\n\n{extra}")
        self.made.facts.append(extra)
        self.made.faults.append(Fault("form-heading", "open", key, "", found[0], (extra,)))

    def conflict(self) -> None:
        key = self.take()
        ours = f"{self.chance.choice(_PEOPLE)} keeps {self.chance.randrange(100, 999)} of them."
        theirs = f"{self.chance.choice(_PEOPLE)} keeps {self.chance.randrange(100, 999)} of them."
        self.append(key, f"<<<<<<< HEAD\n{ours}\n=======\n{theirs}\n>>>>>>> other")
        self.made.facts += [ours, theirs]
        self.made.faults.append(Fault("form-conflict", "open", key, "", "<<<<<<< HEAD"))

    def junk(self, number: int) -> None:
        form = _JUNK[number % len(_JUNK)]
        word = "".join(self.chance.choice("bcdfghklmnprst") for _ in range(7))
        text = form.format(
            word=word, a=self.chance.randrange(2, 9), b=self.chance.randrange(10, 40)
        )
        self.add(f"junk-{word}.md", f"Notes {word}", text, self.later())
        self.made.faults.append(Fault("junk", "open", f"junk-{word}.md"))

    # Pointers

    def missing(self) -> None:
        word = "".join(self.chance.choice("bcdfghklmnprst") for _ in range(7))
        name = f"{word}.md"
        at = self.chance.randrange(2, len(self.rows))
        self.rows.insert(at, f"- [{word.title()}]({name}) — see there")
        self.made.faults.append(Fault("pointer-missing", "open", INDEX, name, self.rows[at]))

    def _row(self, key: str) -> int:
        return next(n for n, row in enumerate(self.rows) if f"]({key})" in row)

    def unlisted(self) -> None:
        key = self.take()
        del self.rows[self._row(key)]
        self.made.faults.append(Fault("pointer-unlisted", "open", key))

    def twice(self) -> None:
        key = self.take()
        self.rows.append(self.rows[self._row(key)])
        self.made.faults.append(Fault("pointer-twice", "open", INDEX, key, self.rows[-1]))

    def long(self) -> None:
        key = self.take()
        at = self._row(key)
        who, number = self.chance.choice(_PEOPLE), self.chance.randrange(100, 999)
        extra = f"{who} keeps the list of its {number} open points"
        row = f"- [{self.docs[key]['title']}]({key}) — {first_sentence(self.docs[key]['body'])}"
        self.rows[at] = (
            row + " " * (len(row) < 1) + f" {extra}, sorted by age and by owner, with links"
        )
        self.rows[at] += " to each and a short note on what has been tried before"
        self.made.facts.append(extra)
        self.made.faults.append(Fault("pointer-long", "open", INDEX, key, self.rows[at], (extra,)))

    def link(self) -> None:
        while True:
            key = self.take()
            text = self.text(key)
            found = [
                one
                for one in re.finditer(r"\]\(([\w/.-]+\.md)\)", text)
                if self._target(key, one[1]) in self.made.files
            ]
            found = [one for one in found if self._alone(one[1])]
            if found:
                break
        one = self.chance.choice(found)
        moved = f"](moved-away/{Path(one[1]).name})"
        self.made.files[key] = (text[: one.start()] + moved + text[one.end() :]).encode()
        self.made.faults.append(Fault("link", "open", key, self._target(key, one[1]), moved[2:-1]))

    def _alone(self, target: str) -> bool:
        name = Path(target).name
        return sum(Path(key).name == name for key in self.made.files) == 1

    @staticmethod
    def _target(key: str, target: str) -> str:
        names: list[str] = key.split("/")[:-1]
        for part in target.split("/"):
            if part == "..":
                names = names[:-1]
            elif part != ".":
                names.append(part)
        return "/".join(names)


def planted(docs: Sequence[dict[str, Any]], seed: int, share: float = 1.0) -> Planted:
    """The documents as memories with some 280 faults, or a share of them; 500 documents give
    room. Near twins of every kind of difference are among them."""
    plant = _Planter(docs, seed)
    for number in range(round(20 * share)):
        for half in HALVES:
            plant.duplicate(half)
            if number < 10 * share:
                plant.value(half)
                plant.denial(half)
                plant.date(half)
        plant.relative(number)
        plant.deadline(number)
    for number in range(round(14 * share)):
        plant.missing()
        plant.unlisted()
        plant.twice()
        plant.long()
        if number < 12 * share:
            plant.link()
    for number in range(round(8 * share)):
        plant.misspelt()
        plant.unclosed()
        plant.doubled()
        plant.heading()
        plant.conflict()
        plant.junk(number)
    for _ in range(max(1, round(2 * share))):
        plant.twins()
    return plant.done()
