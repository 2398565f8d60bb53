"""What a compaction keeps, on the compactions that recorded sessions went through.

Each recorded session is folded up to each of its compactions; the embedded model then writes
the summary through the product's own path (request with a task, reply, audit, keep-list) in
at most 1.5 times the tokens of the summary that was recorded. What the real continuation
needed of what went (the names in its calls, where it has ten calls or more, and the names
the user gave) is looked for in both: in the context alone, and with what references in it
read back. So are the plain words that it goes on to say (`plain_words`). A second compaction
stands on our first, as it would. Needs the recorded sessions and the shared bench
(`REVERIE_SHARED`); the pi agent's session, which the bars leave out, is
shown as a check on another program's tools.
"""

from __future__ import annotations

import gzip
import importlib
import os
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import anyio

from bench.adapter import bench_modules
from bench.figures import ROOT_SHARED, Figure, Row, against_peers, at_least, at_most
from reverie.embedded import ANSWERS, EmbeddedModel, answer_summary
from reverie.layers import read as layer_read
from reverie.layers import stand as layer_stand
from reverie.settings import DEFAULTS
from reverie.store import Folder
from reverie.toolbox import SealedCalls
from reverie.transcript import (
    EMPTY,
    REFERENCE,
    AssistantMessage,
    Audit,
    Entry,
    Item,
    Replaced,
    Stand,
    SummaryTask,
    UserMessage,
    View,
    apply,
    audit_replacement,
    estimate,
    read,
    text_block,
    widen_range,
)
from reverie.wire import render
from reverie.world import complete

LEAST = 5
_WORD = re.compile(r"(?<![\w./@#$-])[A-Za-z][a-z]{4,}(?![\w/@#$]|[-.]\w)")
_OFTEN = """
about above across actually after again against along already although always another anything
around because before begin being below better between check clear could create current directly
doing during either everything every exactly example found first following further getting given
going happen having here's however issue let's likely looking looks makes making might moved
needs never nothing other otherwise perfect place please possible probably properly ready really
right running same second seems should simple since something start started still successfully
their there these thing things think third those through together under until update updated
using want wants were what whether which while whole will within without working works would
write wrong yours great excellent
"""
_COMMON = frozenset(_OFTEN.split())


def plain_words(texts: Iterable[str]) -> set[str]:
    """The plain words of some texts, in small letters: of five letters or more without digits,
    signs or inner capitals, and none of the commonest. A continuation needs one where it says it
    and the conversation that went had said it too, in the user's or the assistant's own words."""
    found = {word.lower() for text in texts for word in _WORD.findall(text)}
    return {word for word in found if len(word) >= LEAST} - _COMMON


def plain_share(words: set[str], texts: Iterable[str]) -> float:
    """The share of words that stand in any of the texts."""
    if not words:
        return 1.0
    there = {word.lower() for text in texts for word in re.findall(r"[A-Za-z]+", text)}
    return len(words & there) / len(words)


ROOM = 1.5  # times the recorded summary's tokens
CALLS = 10  # a continuation of fewer calls needs too little to count
ANSWERS_READ = 40  # answers of a continuation whose words count
WORDS = 10  # plain words below which a continuation says too little to count
FACTS = 8  # names of one text of the user's that count
BETTER, REACHED = 0.80, 0.95
INSTRUCTION = "Summarise the conversation."
WHERE = "The conversation up to here was taken out of the context."


@dataclass(frozen=True, slots=True)
class Outcome:
    """One compaction: shares of what was needed, and sizes."""

    name: str
    needed: int
    facts: int
    ours: float
    recorded: float
    reached: float
    tokens: int
    room: int
    audit: Audit
    words: int = 0  # plain words that the continuation says again
    worded: float = 1.0  # of these, in our context
    worded_recorded: float = 1.0

    @property
    def better(self) -> bool:
        return self.ours > self.recorded or self.ours == self.recorded == 1.0

    def row(self) -> Row:
        got = (
            f"{self.ours:.0%} here (recorded {self.recorded:.0%}), {self.reached:.0%} reached; "
            f"{self.tokens:,} tokens; fidelity {self.audit.fidelity:.0%}; of "
            f"{self.words} plain words {self.worded:.0%} (recorded {self.worded_recorded:.0%})"
        )
        what = f"{self.name}: {self.needed} names needed, {self.facts} of the user's"
        return what, got, f"{self.room:,} tokens", None


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    folder = ROOT_SHARED / "data" / "sessions_dev"
    if not folder.is_dir() or not (ROOT_SHARED / "bench" / "context").is_dir():
        yield "recorded sessions", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    bench_modules(ROOT_SHARED)
    counted: list[Outcome] = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        found = read(lines, path.name)
        for outcome in compactions(path.name[:8], found.entries):
            if found.program == "claude-code":
                counted.append(outcome)
            yield outcome.row()
    yield from bars(counted)


def bars(found: Sequence[Outcome]) -> Iterator[Figure]:
    judged = [o for o in found if o.needed + o.facts]
    better = sum(o.better for o in judged) / max(1, len(judged))
    what = "compactions with more of the names in context than recorded, or all of them in both"
    yield at_least("compaction.ahead", what, better, BETTER, "share", len(judged))
    weights = sum(o.needed + o.facts for o in judged)

    def share_of(name: str) -> float:
        return sum(getattr(o, name) * (o.needed + o.facts) for o in judged) / max(1, weights)

    theirs = {"the agent's own summary": share_of("recorded")}
    what = f"names that {len(judged)} recorded continuations need, in our summary without a model"
    yield against_peers(
        "compaction.names",
        what,
        share_of("ours"),
        theirs,
        better="higher",
        unit="share",
        n=weights,
    )
    what = "the same, with what its references read back"
    yield at_least("compaction.reached", what, share_of("reached"), REACHED, "share", weights)
    widest = max((o.tokens / (o.room / ROOM) for o in found), default=0.0)
    what = "tokens of our summary, in those of the recorded one, at most"
    yield at_most("compaction.tokens", what, widest, ROOM, "x", len(found))
    worded = [o for o in found if o.words >= WORDS]
    total = max(1, sum(o.words for o in worded))
    ours = sum(o.worded * o.words for o in worded) / total
    recorded = sum(o.worded_recorded * o.words for o in worded) / total
    what = "plain words that the continuations say again, in our summary"
    yield against_peers(
        "compaction.words",
        what,
        ours,
        {"the agent's own summary": recorded},
        better="higher",
        unit="share",
        n=total,
    )


# --- one session


def compactions(name: str, entries: Sequence[Entry]) -> Iterator[Outcome]:
    view = EMPTY
    cuts = [n for n, e in enumerate(entries) if isinstance(e.record, Replaced)]
    wanted = Wanted(entries)
    for at, entry in enumerate(entries):
        record = entry.record
        if not isinstance(record, Replaced):
            view = apply(view, entry)
            continue
        bounds = widen_range(view, record.first, record.last)
        if bounds is None:
            continue
        gone = list(view.items)[bounds[0] : bounds[1] + 1]
        recorded = "\n".join(b.text for stand in record.by for b in stand.blocks)
        room = int(sum(b.tokens for stand in record.by for b in stand.blocks) * ROOM)
        text, found = anyio.run(summarised, view, gone, room)
        by = (Stand("user", (text_block(text),)),)
        view = apply(
            view,
            Entry(
                entry.id, view.leaf, entry.at, Replaced(gone[0].id, gone[-1].id, by, "compaction")
            ),
        )
        kept = "\n".join(p.block.text for i in list(view.items)[bounds[0] + 1 :] for p in i.pieces)
        end = next((cut for cut in cuts if cut > at), len(entries))
        names, facts = wanted.between(at, end)
        every = [*names, *facts]
        read_back = anyio.run(readable, view, text)
        yield Outcome(
            f"{name} {cuts.index(at) + 1}",
            len(names),
            len(facts),
            share(every, [text, kept]),
            share(every, [recorded, kept]),
            share(every, [text, kept, *read_back]),
            estimate(text),
            room,
            found,
            *worded(entries, at, end, gone, (text, kept), (recorded, kept)),
        )


def worded(
    entries: Sequence[Entry],
    at: int,
    end: int,
    gone: Sequence[Item],
    ours: Sequence[str],
    recorded: Sequence[str],
) -> tuple[int, float, float]:
    """How many plain words the continuation says again, and the shares of them in both."""
    later = [e.record for e in entries[at + 1 : end] if isinstance(e.record, AssistantMessage)]
    next_said = [b.text for r in later[:ANSWERS_READ] for b in r.blocks if b.type == "text"]
    before = [p.block.text for i in gone for p in i.pieces if p.block.type == "text"]
    words = plain_words(next_said) & plain_words(before)
    return len(words), plain_share(words, ours), plain_share(words, recorded)


async def summarised(view: View, gone: Sequence[Item], room: int) -> tuple[str, Audit]:
    """The text that will stand for the range: the embedded summary and its keep-list."""
    asked = UserMessage((text_block(INSTRUCTION),), "instruction")
    ahead = apply(view, Entry("instruction", view.leaf, 0.0, asked))
    frame = estimate(stand("", gone))
    task = SummaryTask(first=gone[0].id, last=gone[-1].id, tokens=room - frame)
    model = EmbeddedModel(answers={**ANSWERS, "compact": answer_summary})
    reply = await complete(model, render(ahead, "compact", task))
    text = layer_read(reply.text, sum(item.tokens for item in gone))
    left = min(room - estimate(stand(text, gone)) - 1, DEFAULTS.compact_keep_list_tokens)
    checked = audit_replacement(gone, stand(text, gone), keep_tokens=max(0, left))
    return stand(text, gone, checked.keep), checked


def stand(text: str, gone: Sequence[Item], keep: str = "") -> str:
    """The whole text that takes the place of the range, as the product words it."""
    return layer_stand(text, where=WHERE, gone=gone, left_out="", keep=keep, goes_on=True)


def share(names: Sequence[str], texts: Sequence[str]) -> float:
    """The share of names that stand in any of the texts."""
    if not names:
        return 1.0
    return sum(any(name in text for text in texts) for name in names) / len(names)


async def readable(view: View, text: str) -> list[str]:
    """What the references in a text read back, each at most as long as one answer may be."""
    limit = DEFAULTS.collapse_reference * DEFAULTS.text_bytes_per_token
    out: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        calls = SealedCalls(lambda: view, Folder(Path(folder)), "bench")
        for name in dict.fromkeys(REFERENCE.findall(text)):
            found = await calls.find(name)
            if found is not None:
                out.append(first_page(found.text, limit))
    return out


def first_page(text: str, limit: int) -> str:
    """The lines that one answer of ReadBack has room for, with their numbers."""
    rows: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        limit -= len(f"{number:6d}\t{line}".encode("utf-8", "replace")) + 1
        if limit < 0:
            break
        rows.append(line)
    return "\n".join(rows)


# --- what a continuation needs


class Wanted:
    """The steps of a session in the shared bench's form, and what each of them needs."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.steps: list[dict[str, Any]] = []
        self.places: list[int] = []  # the entry each step begins with
        for n, entry in enumerate(entries):
            self._add(n, entry)
        self.needs = importlib.import_module("replay").needs(self.steps)
        self.identifiers = importlib.import_module("traces").identifiers

    def _add(self, n: int, entry: Entry) -> None:
        record = entry.record
        if isinstance(record, AssistantMessage):
            role = "assistant"
        elif isinstance(record, UserMessage):
            role = "tool" if record.origin == "tool" else "user"
        else:
            return
        known = ("text", "tool_use", "tool_result")
        blocks = [b.value for b in record.blocks if b.type in known]
        if self.steps and self.steps[-1]["role"] == role != "user":
            self.steps[-1]["blocks"] += blocks
        else:
            self.steps.append({"role": role, "blocks": blocks})
            self.places.append(n)

    def between(self, at: int, end: int) -> tuple[list[str], list[str]]:
        """Names that calls between two entries repeat of what stood before the first, and
        the names the user had given by then."""
        edge = next((n for n, place in enumerate(self.places) if place > at), len(self.steps))
        names: dict[str, None] = {}
        for step, found in self.needs.items():
            if at < self.places[step] < end:
                names.update((word, None) for word, seen, _ in found if seen < edge)
        texts = [
            str(block.get("text") or "")
            for step in self.steps[:edge]
            if step["role"] == "user"
            for block in step["blocks"]
        ]
        facts = dict.fromkeys(name for text in texts for name in self.identifiers(text)[:FACTS])
        return (list(names) if self._calls(at, end) >= CALLS else []), list(facts)

    def _calls(self, at: int, end: int) -> int:
        records = [entry.record for entry in self.entries[at + 1 : end]]
        return sum(
            block.type == "tool_use"
            for record in records
            if isinstance(record, AssistantMessage)
            for block in record.blocks
        )


# The canonical token count against what providers then reported


LANGUAGES = {
    ".go": "Go", ".md": "Markdown", ".ts": "TypeScript", ".sh": "shell script", ".toml": "TOML",
    ".json": "JSON", ".jsonl": "JSON", ".yml": "YAML", ".yaml": "YAML",
}  # fmt: skip


def measure_counts(out: Path) -> Iterator[Figure | Row]:
    del out
    folder = ROOT_SHARED / "data" / "sessions_dev"
    if not folder.is_dir():
        yield "recorded sessions", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    whole: list[float] = []
    parts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        count_session(read(lines, path.name).entries, whole, parts)
    whole.sort()
    median, high = statistics.median(whole), whole[int(len(whole) * 0.95)]
    for name, error, bound in (("median", median, 0.003), ("95th percentile", high, 0.03)):
        yield at_most(
            f"counts.{name.split()[0]}",
            f"token count against what the provider then reported: error, {name}",
            error,
            bound,
            "share",
            len(whole),
        )
    for language, pairs in sorted(parts.items(), key=lambda p: -len(p[1])):
        yield f"increments of {language}, {len(pairs):,}", count_errors(pairs), "", None


def count_errors(pairs: list[tuple[int, int]]) -> str:
    """Median relative error with its sign, and the sums' ratio."""
    errors = [(guess - real) / real for guess, real in pairs]
    total = sum(g for g, _ in pairs) / sum(r for _, r in pairs)
    return f"median {statistics.median(errors):+.0%}, sum {total:.2f} x the real"


def count_session(entries, whole: list[float], parts: dict[str, list[tuple[int, int]]]) -> None:
    view, replaced = EMPTY, False
    for entry in entries:
        record = entry.record
        replaced = replaced or isinstance(record, Replaced)
        if isinstance(record, AssistantMessage) and record.usage is not None:
            if view.usage is not None and not replaced:
                real = record.usage.input
                whole.append(abs(view.tokens - real) / real)
                added, grew = view.tokens - view.usage.total, real - view.usage.total
                if added > 0 and grew > 100:
                    parts[language(view)].append((added, grew))
            replaced = False
        view = apply(view, entry)


def language(view: View) -> str:
    """What the results since the last answer hold, if they agree on it."""
    found: set[str] = set()
    for item in view.unsent():
        for piece in item.pieces:
            if piece.block.type != "tool_result":
                found.add("prose of the user")
                continue
            found.add(of_call(view, piece.block.get("tool_use_id")))
    return found.pop() if len(found) == 1 else "several kinds"


def of_call(view: View, ident: str) -> str:
    known = view.calls.get(ident)
    if known is None:
        return "unknown"
    entry = view.entries.find(known.message)
    record = entry.record if entry else None
    for block in record.blocks if isinstance(record, AssistantMessage) else ():
        value = block.value.get("input")
        if block.get("id") == ident and isinstance(value, dict):
            path = str(value.get("file_path") or value.get("path") or "")
            suffix = PurePath(path).suffix
            if suffix in LANGUAGES and known.name.lower() == "read":
                return LANGUAGES[suffix]
    return f"{known.name.lower()} output"
