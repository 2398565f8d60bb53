"""A small fixed course with a real model: what it keeps, what comes back when it is needed, and
what that costs. Three sessions on three days, real tools in a folder of its own, a correction said
at a permission prompt, notes, extraction, recall, a dream and a collapsing context.

    python -m bench live                                     the recorded answers again
    python -m bench live --model NAME --budget TOKENS        a provider; keys as for `reverie`
                         [--url URL] [--record FILE]

The budget is in price-weighted tokens: one is the price of one input token. What is sent and
answered is written to `bench/out/live.requests.jsonl`, the answers alone, from which the course
can be run again, to FILE (`bench/out/live.answers.jsonl`). Only harmless commands are allowed to
the model. `python -m bench live --player` tells how a person can be the model.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from bench.figures import OUT, Figure, Row, at_most
from bench.live_course import (
    COURSE,
    DENIAL,
    FACTS,
    REMEMBERED,
    CourseSession,
    CourseTurn,
    Fact,
    lay_out,
)
from bench.live_record import (
    CourseTime,
    Exchange,
    Names,
    OneAtATime,
    RecordingModel,
    ReplayedModel,
    jobs_over,
)
from bench.prepared import ENVIRON, Home, words_of
from reverie.agent import Agent, AgentOptions, open_agent
from reverie.errors import ReverieError
from reverie.models import named
from reverie.providers import model_for
from reverie.providers.selection import AGENT
from reverie.session import run_turn, weight
from reverie.settings import DEFAULTS
from reverie.text import commands
from reverie.toolbox import PermissionAnswer, Question
from reverie.world import Model, Notice

RECORDED = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "live_course.jsonl"
BACKGROUND_SHARE = 0.30
BEFORE = "2026-02-16"  # the day of what was remembered before
BUDGET = 1_500_000.0
CHOOSING = {"REVERIE_YOUNG_TOKENS": "1000"}  # else so small a memory is sent whole
COLLAPSING = {"REVERIE_COLLAPSE_TAIL": "1000", "REVERIE_COLLAPSE_KEPT": "300"}
ALLOWED = frozenset({"python3", "python", "ls", "cat", "head", "tail", "grep", "rg", "wc", "diff"})
WRITES = frozenset({"Edit", "Write"})

PLAYER = """\
You are the model
=================
Requests of an agent arrive; you answer each as a good language model would, and you see nothing
but the requests: do not read this project's sources, docs or bench while you play.

Start, in two terminals (PORT is any free one):
  1   python model_bridge.py serve DIR --port PORT --wait 590
  2   python -m bench live --model claude-opus-5-5 --url http://127.0.0.1:PORT --budget 5000000
Play, in a third:
      python model_bridge.py next DIR                    the oldest request that waits
      python model_bridge.py say DIR N 'BLOCK' …         answers request N, shows the next
  Blocks:  t:TEXT                                        words
           'Bash {"command": "ls"}'                      a call of a tool the request offers
           @FILE                                         blocks from a file, one a line
  `show DIR N --full` prints a request whole; `--most 20000` shows more of long texts.

- Answer within nine minutes; later the same request comes again under a new number.
- Do what the request asks, with the tools it offers, in as few rounds as you would. Calls that do
  not depend on each other go into one answer. Be brief, as a model is told to be.
- Some requests come from behind the conversation (notes, memories, a dream). They end with an
  instruction of their own: follow that one, and no other.
- Do not invent results of tools: call them, and read what comes back.
- The course is over when `next` shows nothing for minutes and terminal 2 prints a table.
"""


@dataclass
class Course:
    """One run: its folder, its model, and what is seen on the way."""

    home: Home
    model: RecordingModel
    switch: Callable[[int], None]  # told which session begins
    denied: bool = False
    kept: dict[str, bool] = field(default_factory=dict[str, bool])
    needed: list[tuple[int, int, Fact]] = field(default_factory=list[tuple[int, int, Fact]])
    outcomes: list[str] = field(default_factory=list[str])
    notices: list[Notice] = field(default_factory=list[Notice])

    async def run(self) -> None:
        ids = count(1)
        for number, session in enumerate(COURSE, 1):
            self.switch(number)
            self.model.session, self.model.turn = number, 0
            await self._session(number, session, lambda: _ident(next(ids)))
            date_files(self.home.base, self.model.time.now())
            if number == 1:
                self.kept = self._facts_kept()

    async def _session(
        self, number: int, session: CourseSession, new_id: Callable[[], str]
    ) -> None:
        self.model.time.time = _noon(session.day)
        policy = {"REVERIE_CONTEXT_POLICY": session.policy}
        extra = COLLAPSING if session.policy == "collapse" else {}
        environ = {"HOME": str(self.home.base), "PATH": os.environ.get("PATH", "")}
        environ |= ENVIRON | CHOOSING | policy | extra
        wanted = AgentOptions(self.home.project, home=self.home.home, environ=environ)
        async with open_agent(
            wanted,
            self.model,
            asker=self._asked,
            say=self.notices.append,
            clock=self.model.time,
            new_id=new_id,
        ) as agent:
            self.model.names.session(agent.session.id, number)
            for at, turn in enumerate(session.turns, 1):
                await self._turn(agent, number, at, turn)
            if session.dreams:
                self.model.turn = 0
                await agent.session.dreams.start(agent.session)
                await jobs_over(agent.session)

    async def _turn(self, agent: Agent, number: int, at: int, turn: CourseTurn) -> None:
        self.model.turn = at
        self.needed += [(number, at, fact) for fact in turn.needs]
        done = await run_turn(
            OneAtATime(agent.session),
            self.model,
            agent.toolbox,
            turn.said,
            hooks=agent.hooks,
            attachments=agent.attachments,
            inbox=agent.inbox,
        )
        self.outcomes.append(done.outcome)
        await jobs_over(agent.session)
        date_files(self.home.base, self.model.time.now())

    async def _asked(self, question: Question) -> PermissionAnswer:
        """The person at the prompt: says no once, with words, then yes to what does no harm."""
        if question.tool in WRITES and not self.denied:
            self.denied = True
            return PermissionAnswer(False, words=DENIAL)
        if question.tool in WRITES:
            inside = question.subject.startswith(str(self.home.project.resolve()))
            return PermissionAnswer(inside, reason="" if inside else "it is outside the project")
        if question.tool == "Bash" and _harmless(question.subject):
            return PermissionAnswer(True)
        return PermissionAnswer(False, reason="this course allows reading, python3 and edits")

    def _facts_kept(self) -> dict[str, bool]:
        """Which facts one memory file or another holds; the index does not count."""
        with self.home.memories() as memories:
            before = {one.file for one in REMEMBERED}
            files = [one for one in Path(memories.root).rglob("*.md") if one.name not in before]
        texts = [one.read_text("utf-8") for one in files if one.name != "MEMORY.md"]
        return {fact.name: any(fact.stands_in(text) for text in texts) for fact in FACTS}


def date_files(root: Path, now: float) -> None:
    """Files are of the day on which the course wrote them."""
    for place in root.rglob("*"):
        if place.is_file() and place.stat().st_mtime > now:
            os.utime(place, (now, now))


def _noon(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC).timestamp()


def _ident(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def _harmless(line: str) -> bool:
    views = [view for one in commands(line) for view in one.views]
    return bool(views) and ">" not in line and all(view and view[0] in ALLOWED for view in views)


@contextmanager
def folder() -> Iterator[Home]:
    """A fresh folder with the project and the memory, gone afterwards."""
    root = Path(tempfile.gettempdir()).resolve() / f"reverie-live-{secrets.token_hex(6)}"
    home = Home(root)
    try:
        lay_out(home.project)
        home.save(REMEMBERED)
        date_files(root, _noon(BEFORE))
        yield home
    finally:
        shutil.rmtree(root, ignore_errors=True)


# --- figures


def in_the_turn(course: Course, session: int, turn: int) -> Iterator[Exchange]:
    for one in course.model.exchanges:
        if (one.session, one.turn, one.source) == (session, turn, "main"):
            yield one


def figures(course: Course) -> Iterator[Row]:
    """What came of a course."""
    done = course.model.exchanges
    ended = course.outcomes.count("completed")
    turns = sum(len(one.turns) for one in COURSE)
    yield "turns that came to their end", f"{ended} of {turns}", f"{turns}", ended == turns
    yield "said no at the permission prompt", "yes" if course.denied else "no", "yes", course.denied
    for name, kept in course.kept.items():
        yield f"in a memory file after the first session: {name}", _yes(kept), "yes", kept
    for session, turn, fact in course.needed:
        first = next(in_the_turn(course, session, turn), None)
        there = first is not None and fact.stands_in(words_of(first.request))
        yield (
            f"in the request that needs it, session {session}: {fact.name}",
            _yes(there),
            "yes",
            there,
        )
    yield from _read_backs(done)
    sealed = sum(
        "[Earlier rounds of this conversation, sealed" in one.request
        for one in done
        if one.source == "main"
    )
    yield "requests in which sealed lines stand for rounds", str(sealed), "1 or more", sealed > 0
    yield from _costs(done)


def _read_backs(done: Sequence[Exchange]) -> Iterator[Row]:
    stubs, reads, again = 0, 0, 0
    for session in range(1, len(COURSE) + 1):
        last = [one for one in done if one.session == session and one.source == "main"]
        calls: dict[str, str] = {}
        seen: set[str] = set()
        for block in (b for one in last for b in _blocks(one.request)):
            if block.get("type") == "tool_use":
                calls[block["id"]] = block["name"]
            if block.get("type") == "tool_result" and block["tool_use_id"] not in seen:
                seen.add(block["tool_use_id"])
                stub = "<persisted-output" in json.dumps(block)
                read = calls.get(block["tool_use_id"]) == "ReadBack"
                stubs, reads, again = stubs + stub, reads + read, again + (stub and read)
    yield "results that were stored, with a stub in their place", str(stubs), "1 or more", stubs > 0
    yield "calls that read back", str(reads), "1 or more", reads > 0
    yield "of these, answered with a stub again", str(again), "0", not again


def _blocks(request: str) -> Iterator[dict[str, Any]]:
    for message in json.loads(request)["messages"]:
        if not isinstance(message["content"], str):
            yield from message["content"]


def behind_share(done: Sequence[Exchange], sessions: frozenset[int] | None = None) -> float:
    """What runs behind the conversation, but for dreams, against it; in the classic sessions."""
    of = sessions or {n for n, one in enumerate(COURSE, 1) if one.policy == "classic"}
    here = [one for one in done if one.session in of]
    whole = _cost(one for one in here if one.source == "main")
    beside = _cost(one for one in here if one.source != "main" and not _dreams(one))
    return beside / whole if whole else 0.0


def _costs(done: Sequence[Exchange]) -> Iterator[Row]:
    classic = frozenset(n for n, one in enumerate(COURSE, 1) if one.policy == "classic")
    behind = [one for one in done if one.source != "main"]
    awake = [one for one in behind if not _dreams(one)]
    main = [one for one in done if one.source == "main"]
    for what, of in (("classic", classic), ("collapse", frozenset({3}))):
        share = behind_share(done, of)
        met = share <= BACKGROUND_SHARE if what == "classic" else None
        limit = f"{BACKGROUND_SHARE}" if what == "classic" else ""
        name = f"notes, extraction and recall against the conversation, {what}"
        yield name, f"{share:.2f}", limit, met
    for source in sorted({one.source for one in behind}):
        of = [one for one in behind if one.source == source]
        yield f"requests and cost of {source}", f"{len(of)}, {_cost(of):,.0f}", "", None
    used = [one.reply.usage for one in done if one.reply.usage]
    billed = sum(weight(one, DEFAULTS) for one in used)
    yield (
        "requests in all, and their cost as the provider counted",
        f"{len(done)}, {billed:,.0f}",
        "",
        None,
    )
    for what, of in (("conversation", main), ("background", awake)):
        sent, read = sum(one.sent for one in of), sum(one.read for one in of)
        yield (
            f"input read from the cache, {what}",
            f"{read / sent:.0%}" if sent else "none",
            "",
            None,
        )


def _dreams(one: Exchange) -> bool:
    return re.search("dream", one.source) is not None


def _cost(of: Iterable[Exchange]) -> float:
    return sum(one.cost for one in of)


def _yes(found: bool) -> str:
    return "yes" if found else "no"


# --- the two ways to run it


async def play(model: Model, home: Home, budget: float, switch: Callable[[int], None]) -> Course:
    """The course with a model, to its end or to the first error."""
    recording = RecordingModel(model, Names(home.base), CourseTime(), budget)
    course = Course(home, recording, switch)
    try:
        await course.run()
    except ReverieError as error:
        print(f"the course ended early: {error}", file=sys.stderr)
    return course


async def replay(lines: Iterable[str], home: Home) -> tuple[Course, int]:
    """The course from recorded answers, and how many of them were not asked for."""
    names = Names(home.base)
    model = ReplayedModel(iter(lines), names)

    def switch(number: int) -> None:
        model.session = number

    recording = RecordingModel(model, names, CourseTime(), float("inf"))
    course = Course(home, recording, switch)
    await course.run()
    return course, model.unused


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    with folder() as home:
        course, unused = anyio.run(replay, RECORDED.read_text("utf-8").splitlines(), home)
        rows = list(figures(course))
    done = course.model.exchanges
    limits = [met for _, _, _, met in rows if met is not None]
    yield Figure(
        "live.held",
        "recorded course with a person as the model: what must hold, does",
        sum(limits),
        len(limits),
        "all",
        "higher",
        n=len(done),
    )
    share = behind_share(done)
    what = "notes, extraction and recall, as a share of what the conversation cost"
    yield at_most("live.background", what, share, BACKGROUND_SHARE, "share")
    yield from rows
    yield "recorded answers that nobody asked for", str(unused), "0", not unused


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench live", description=__doc__)
    parser.add_argument("--model", default="", help="as `reverie --model` takes it")
    parser.add_argument("--budget", type=float, default=BUDGET, help="price-weighted tokens")
    parser.add_argument("--url", default="", help="a base URL in place of the provider's own")
    parser.add_argument("--record", type=Path, default=OUT / "live.answers.jsonl")
    parser.add_argument("--player", action="store_true", help="how a person can be the model")
    given = parser.parse_args(arguments)
    if given.player:
        print(PLAYER)
        return 0
    environ = dict(os.environ)
    if given.url:
        environ |= {"ANTHROPIC_BASE_URL": given.url, "OPENAI_BASE_URL": given.url}
    agent = given.model.startswith(AGENT)
    model = named(given.model) if agent else model_for(given.model, environ)
    if model is None:
        print("no model is configured: name one with --model, and set its key", file=sys.stderr)
        return 2
    with folder() as home:
        course = anyio.run(play, model, home, given.budget, lambda _: None)
        _write(course, given.record)
        rows = list(figures(course))
    lines = [f"| {what} | {got} | {limit} | {met} |" for what, got, limit, met in rows]
    page = "\n".join(["| what | measured | limit | met |", "|---|---|---|---|", *lines, ""])
    (OUT / "live.md").write_text(page, encoding="utf-8")
    print(page)
    for one in course.notices:
        if one.level != "info":
            print(f"said on the way, {one.layer}: {one.text}")
    return 1 if any(met is False for *_, met in rows) else 0


def _write(course: Course, record: Path) -> None:
    OUT.mkdir(exist_ok=True)
    record.write_text("\n".join(course.model.answers()) + "\n", encoding="utf-8")
    whole = OUT / "live.requests.jsonl"
    whole.write_text("\n".join(course.model.requests()) + "\n", encoding="utf-8")
