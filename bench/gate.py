"""The gate: what is injected unasked, where nothing should be and where something should.

The folder is that of another project (`memory_docs_dev`). What people typed in recorded sessions
has nothing to do with it: whatever is injected is wrong. Short orders must never inject. Right
injections are asked for with the situations that the documents' authors wrote, bare and with
words of other people's prompts around them. Everything goes through a session of its own, and
what is in the request is judged by its text: a document counts where a line of its own is there.

Real related prompts: the folder is that of the sessions' own project, one memory for each commit
(its subject as name and description, its message and files as body), since no memory of that
project is public. A prompt is what a person typed in the session that a commit came from; it is
right where a memory of one of the session's commits is injected. Prompts that no commit's words
could answer ("yes", "go on") are left out by length alone: below 60 characters.

    python -m bench run gate
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from bench.figures import ROOT_SHARED, Figure, Row, at_least, at_most
from bench.labels import typed
from bench.prepared import Home, Note

DATA = ROOT_SHARED / "data"
FALSE = 0.05
BARE, WITH_20, WITH_40 = 0.55, 0.35, 0.25
RELATED = 0.17
"""Twice what it was when this was first measured (10 of 118)."""
SITUATIONS = 240
PROMPTS = 400
LENGTHS = {"below 60": (0, 60), "60 to 200": (60, 200), "above 200": (200, 10**9)}
LONGEST = 4_000
"""Characters of a prompt that are asked: some are whole pasted files."""
ORDERS = (
    "commit and push",
    "run the tests",
    "ok",
    "continue",
    "yes please",
    "go ahead",
    "try again",
    "fix it",
    "looks good, commit it",
    "run the linter and fix what it finds",
    "please push",
    "create a pull request",
    "undo that",
    "rebase on main",
    "show me the diff",
    "run it again",
    "now update the docs",
    "thanks, that works",
    "stop",
    "what's next?",
)


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    if not (DATA / "memory_docs_dev.jsonl.gz").is_file():
        yield "documents and prompts", f"not found under {ROOT_SHARED.name}", "", None
        return
    with tempfile.TemporaryDirectory() as name:
        foreign = Folder(Home(Path(name)), documents())
        yield from false_rows(foreign)
        yield from right_rows(foreign)
    with tempfile.TemporaryDirectory() as name:
        yield from related_rows(Folder(Home(Path(name)), commits()))


# Asking


class Folder:
    """A memory folder, and which of its memories a text brings into the request."""

    def __init__(self, home: Home, notes: Sequence[Note]) -> None:
        self.home = home
        home.save(notes)
        self.lines = {one.file: telling_line(one.body) for one in notes}

    def injected(self, texts: Sequence[str]) -> list[set[str]]:
        return anyio.run(self._injected, texts)

    async def _injected(self, texts: Sequence[str]) -> list[set[str]]:
        with self.home.memories() as memories:
            return [
                self.seen(await self.home.session_request(memories, text), text) for text in texts
            ]

    def seen(self, request: str, text: str) -> set[str]:
        joined = request.replace(text, "")
        return {file for file, line in self.lines.items() if line in joined}


def telling_line(body: str) -> str:
    """A line near a body's beginning, by which it is known: the longest."""
    return max((line.strip() for line in body[:1_000].splitlines()[:12]), key=len, default="")


# The folders


def documents() -> list[Note]:
    found: dict[str, Note] = {}
    for one in rows("memory_docs_dev.jsonl.gz"):
        line = telling_line(one["body"])
        if len(line) > 40 and line not in found:
            key = file_of(one["path"])
            title = " ".join(str(one["title"] or one["path"]).split())[:100]
            found[line] = Note(key, "reference", title, title, one["body"])
    return list(found.values())


def file_of(path: str) -> str:
    stem = path.removeprefix("docs/learned/").removesuffix(".md").replace("/", "_")
    return f"{stem}-{hashlib.sha256(path.encode()).hexdigest()[:6]}.md"


def commits() -> list[Note]:
    out: list[Note] = []
    for one in labels():
        name = " ".join(one["query"].split())
        body = f"{name} ({one['date'][:10]}).\n\n{one['body']}\n\nFiles: {', '.join(one['files'])}"
        out.append(Note(f"{one['commit'][:12]}.md", "project", name[:100], name, body))
    return out


def rows(name: str) -> Iterator[Any]:
    yield from map(json.loads, gzip.decompress((DATA / name).read_bytes()).splitlines())


def labels() -> list[Any]:
    return json.loads(gzip.decompress((DATA / "commit_labels_dev.json.gz").read_bytes()))


def order(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def prompts() -> list[tuple[str, str]]:
    """What people typed, each text once, with its session; in an order of no meaning."""
    known: dict[str, str] = {}
    for turn in typed(ROOT_SHARED).values():
        known.setdefault(turn.text.strip()[:LONGEST], turn.session)
    return sorted(known.items(), key=lambda pair: order(pair[0]))


# Figures


def share(hits: int, of: int) -> str:
    return f"{hits}/{of} = {hits / of:.3f}" if of else "0/0"


def false_rows(folder: Folder) -> Iterator[Figure | Row]:
    asked = [text for text, _ in prompts()][:PROMPTS]
    wrong = [bool(found) for found in folder.injected(asked)]
    hits = sum(wrong)
    what = "prompts that people typed in another project: something is injected"
    rate = hits / len(asked)
    yield at_most("gate.false", what, rate, FALSE, "share", len(asked))
    rates: dict[str, float] = {}
    for name, (least, most) in LENGTHS.items():
        here = [bad for text, bad in zip(asked, wrong, strict=True) if least <= len(text) < most]
        rates[name] = sum(here) / len(here) if here else 0.0
        yield f"the same, {name} characters", share(sum(here), len(here)), "", None
    short, bound = rates["below 60"], 2 * max(rates["above 200"], FALSE / 2)
    what = "below 60 characters: at most twice the rate above 200 (or 0.05)"
    yield what, f"{short:.3f}", f"{bound:.3f}", short <= bound
    ordered = [text for text, found in zip(ORDERS, folder.injected(ORDERS), strict=True) if found]
    what = "short orders ('run the tests') that inject something"
    yield Figure("gate.orders", what, len(ordered), 0.0, "none", "lower", n=len(ORDERS))


def right_rows(folder: Folder) -> Iterator[Figure | Row]:
    pairs = situations(folder.lines)
    for words, least in ((0, BARE), (20, WITH_20), (40, WITH_40)):
        asked = [around(line, words) for line, _ in pairs]
        found = folder.injected(asked)
        hits = sum(key in keys for (_, key), keys in zip(pairs, found, strict=True))
        wrong = sum(len(keys - {key}) for (_, key), keys in zip(pairs, found, strict=True))
        what = "situations that inject their document, " + (
            f"with {words} words around" if words else "bare"
        )
        got = hits / len(pairs)
        key = f"gate.right.{words}"
        yield at_least(key, what, got, least, "share", len(pairs))
        yield "the same: other documents beside, each", f"{wrong / len(pairs):.2f}", "", None


def situations(known: Mapping[str, str]) -> list[tuple[str, str]]:
    found = [
        (line, file_of(one["path"]))
        for one in rows("memory_docs_dev.jsonl.gz")
        for line in one.get("read_when") or ()
        if file_of(one["path"]) in known
    ]
    return sorted(found, key=lambda pair: order(pair[0]))[:SITUATIONS]


def around(line: str, words: int) -> str:
    """A situation between two pieces of other people's prompts, so many words in all."""
    if not words:
        return line
    chance = random.Random(f"{words}:{line}")
    pieces = [piece(chance, words // 2) for _ in range(2)]
    return f"{pieces[0]}. {line}. {pieces[1]}"


def piece(chance: random.Random, words: int) -> str:
    sources = [text.split() for text, _ in prompts_of_words()]
    chosen = chance.choice(sources)
    start = chance.randrange(len(chosen) - words)
    return " ".join(chosen[start : start + words])


_LONG: list[tuple[str, str]] = []


def prompts_of_words() -> list[tuple[str, str]]:
    """Prompts long enough to take pieces from; pastes are left out."""
    if not _LONG:
        _LONG.extend(pair for pair in prompts() if 40 < len(pair[0].split()) < 200)
    return _LONG


def related_rows(folder: Folder) -> Iterator[Figure | Row]:
    made: dict[str, set[str]] = defaultdict(set)
    for one in labels():
        for session in one["relevant_sessions"]:
            made[session].add(f"{one['commit'][:12]}.md")
    pairs = [
        (text, made[session])
        for text, session in prompts()
        if session in made and len(text) >= LENGTHS["below 60"][1]
    ]
    found = folder.injected([text for text, _ in pairs])
    hits = sum(bool(keys & wanted) for (_, wanted), keys in zip(pairs, found, strict=True))
    some = sum(bool(keys) for keys in found)
    what = "prompts of the same project: a memory of the very work they led to is injected"
    yield at_least(
        "gate.related",
        what,
        hits / len(pairs),
        RELATED,
        "share",
        len(pairs),
        why="a prompt often shares no rare word with the commit it led to; more finds would"
        " also be more wrong ones",
    )
    yield "the same: anything injected", share(some, len(pairs)), "", None
