"""Break detection against the simulated provider: what it bills is what is judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from reverie.simulator import Engine, SimulatedModel, call, script
from reverie.transcript import (
    EMPTY,
    Entry,
    HeadSet,
    Item,
    Record,
    Replaced,
    Sent,
    Stand,
    Trail,
    UserMessage,
    View,
    apply,
    block_of,
    dump,
    members,
    message,
    text_block,
)
from reverie.wire import CacheBreak, CacheBreakDetector, Request, render, watch_entries
from reverie.world import complete

pytestmark = [pytest.mark.spec("14"), pytest.mark.spec("B13")]

SYSTEM = dump([{"type": "text", "text": "You help. " * 900}])
TOOL = {"name": "Read", "description": "reads " * 400, "input_schema": {"type": "object"}}
HEAD = HeadSet(
    "claude-opus-5-5",
    SYSTEM,
    dump([TOOL, {**TOOL, "name": "Bash"}]),
    "[]",
    '{"max_tokens":1000,"thinking":{"type":"adaptive"},"betas":["extended-cache-ttl-2025-04-11"]}',
)


@dataclass
class Run:
    """A session of tool rounds on the simulated provider, watched as it goes."""

    now: float = 1_000.0
    view: View = EMPTY
    entries: list[Entry] = field(default_factory=list)
    watch: CacheBreakDetector = field(default_factory=CacheBreakDetector)
    breaks: list[CacheBreak] = field(default_factory=list)
    answered: str = ""
    edits: dict[int, str] = field(default_factory=dict)  # a block to send with other words

    def __post_init__(self) -> None:
        answers = script(
            *([[{"type": "text", "text": "I look."}, call_value(n)] for n in range(99)])
        )
        self.model = SimulatedModel(Engine(answers, clock=lambda: self.now))
        self.put(HEAD)
        self.put(UserMessage((text_block("Fix the failing test, please. " * 40),)))

    def put(self, record: Record) -> None:
        entry = Entry(f"n{len(self.entries)}", self.view.leaf, self.now, record)
        self.entries.append(entry)
        self.view = apply(self.view, entry)

    async def round(self) -> CacheBreak | None:
        """One request, its answer and the result of its call."""
        request = self.edited(render(self.view))
        moved = self.view.moved
        self.put(Sent("main", self.view.leaf, request.parts(), request.marks))
        self.watch = self.watch.sent(request, self.now, moved)
        reply = await complete(self.model, asking(request, self.answered))
        self.answered = reply.message_id
        self.watch, found = self.watch.answered(reply.usage, reply.diagnostics, reply.applied_edits)
        self.put(reply.record())
        self.breaks += [found] if found else []
        results = [
            block_of({"type": "tool_result", "tool_use_id": c.id, "content": "a line\n" * 400})
            for c in reply.tool_calls
        ]
        self.put(UserMessage(tuple(results), "tool"))
        self.now += 20.0
        return found

    def edited(self, request: Request) -> Request:
        if not self.edits:
            return request
        out: list = []
        for one in request.messages():
            pieces = tuple(
                replace(p, block=text_block(self.edits[one.start + n]))
                if one.start + n in self.edits
                else p
                for n, p in enumerate(one.pieces)
            )
            out.append(message([Item("x", one.role, pieces)], out[-1] if out else None))
        return replace(request, closed=Trail(out), tail=())


def call_value(number: int) -> dict:
    return dict(call("Read", {"file_path": f"f{number}.py"}, f"toolu_{number:04d}").value)


def asking(request: Request, previous: str) -> Request:
    """The same request with the provider's diagnosis asked for; no part of the prefix."""
    asked = {"previous_message_id": previous or None}
    options = {k: v for k, (_, v) in members(request.head.options).items()}
    return replace(
        request, head=replace(request.head, options=dump({**options, "diagnostics": asked}))
    )


async def run(rounds: int = 8) -> Run:
    started = Run()
    for _ in range(rounds):
        assert await started.round() is None
    return started


async def test_silent_on_sixty_rounds():
    done = await run(60)
    assert done.breaks == []
    assert watch_entries(done.entries) == []
    assert done.watch.left is not None
    assert done.watch.left.tokens > 40_000


OTHER = dump([{**TOOL, "description": "reads slowly"}, {**TOOL, "name": "Bash"}])


@pytest.mark.parametrize(
    ("head", "part", "name", "byte", "reason"),
    [
        (replace(HEAD, model="claude-opus-5"), "model", "the model", 13, "model_changed"),
        (
            replace(HEAD, system=SYSTEM.replace("You help. ", "You hide. ", 1)),
            "system",
            "system block 0",
            len('{"type":"text","text":"You h'),
            "system_changed",
        ),
        (
            replace(HEAD, tools=OTHER),
            "tools",
            "tool Read",
            len('{"name":"Read","description":"reads '),
            "tools_changed",
        ),
        (
            replace(HEAD, context='[{"type":"text","text":"today"}]'),
            "messages",
            "user message 0, block 0 (text)",
            len('{"type":"text","text":"'),
            "messages_changed",
        ),
        (
            replace(HEAD, options=HEAD.options.replace("adaptive", "disabled")),
            "options",
            "thinking",
            len('{"type":"'),
            "unavailable",
        ),
    ],
)
async def test_a_changed_head_is_named_here_and_by_the_provider(
    head: HeadSet, part: str, name: str, byte: int, reason: str
):
    going = await run()
    going.put(head)
    found = await going.round()
    assert found is not None
    assert (found.cause, found.part) == ("changed", part)
    assert found.change is not None
    assert found.change.name == name
    assert found.change.place is not None
    assert found.change.place.byte == byte
    assert found.diagnosis is not None
    assert found.diagnosis.reason == reason
    assert found.diagnosis.part == (part if part != "options" else "")
    assert f"the provider says {reason}" in found.explanation
    assert await going.round() is None
    (again,) = watch_entries(going.entries)
    assert (again.change, again.expected, again.read) == (found.change, found.expected, found.read)
    said = await run()
    said.put(replace(head, reason="asked for"))
    await said.round()
    (asked_for,) = watch_entries(said.entries)
    assert asked_for.change == found.change


async def test_an_old_message_that_changed():
    going = await run()
    going.edits = {0: "Break the passing test."}
    found = await going.round()
    assert found is not None
    assert found.change is not None
    assert found.change.name == "user message 0, block 0 (text)"
    assert found.change.place is not None
    assert found.change.place.byte == len('{"type":"text","text":"')
    assert found.diagnosis is not None
    assert found.diagnosis.reason == "messages_changed"
    (again,) = watch_entries(going.entries)  # from digests: the fold renders other bytes
    assert again.cause == "changed"  # the provider said so: digests alone cannot


@pytest.mark.parametrize(
    ("sealed", "pause", "lifetime"),
    [(False, 301.0, "5m"), (True, 301.0, "5m"), (True, 3_601.0, "1h")],
)
async def test_an_expired_lifetime(sealed: bool, pause: float, lifetime: str):
    going = await run()
    if sealed:  # from here on the head is written for an hour, once its entry is gone
        lines = Stand("user", (text_block("> Read f0.py\n" * 300),))
        going.put(Replaced("n1", going.entries[-4].id, (lines,), "collapse"))
        going.now += 301.0
        for _ in range(8):
            await going.round()
    going.now += pause - 20.0
    found = await going.round()
    assert found is not None
    assert (found.cause, found.expired, found.change) == ("expired", lifetime, None)
    assert (found.read > 0) == (sealed and lifetime == "5m")
    again = watch_entries(going.entries)[-1]
    assert (again.cause, again.expired) == ("expired", lifetime)


async def test_at_the_edge_of_a_lifetime_nothing_breaks():
    going = await run()
    going.now += 279.0
    assert await going.round() is None


async def test_compaction_is_announced():
    going = await run()
    summary = Stand("user", (text_block("All so far, in short."),))
    going.put(Replaced("n1", going.entries[-4].id, (summary,), "compaction"))
    assert going.view.moved
    assert await going.round() is None
    assert await going.round() is None
    assert watch_entries(going.entries) == []


async def test_a_provider_that_forgot():
    going = await run()
    going.model = SimulatedModel(Engine(script("ok"), clock=lambda: going.now))
    found = await going.round()
    assert found is not None
    assert (found.cause, found.read) == ("provider", 0)
    assert found.diagnosis is not None
    assert found.diagnosis.reason == "previous_message_not_found"


async def test_a_resumed_session_knows_from_its_record():
    """A new process has the last `Sent` and its usage, and names the part."""
    going = await run()
    sent = [e for e in going.entries if isinstance(e.record, Sent)][-1]
    assert isinstance(sent.record, Sent)
    usage = going.view.usage
    going.watch, _ = CacheBreakDetector().sent(sent.record, sent.at).answered(usage)
    assert await going.round() is None
    going.watch, _ = CacheBreakDetector().sent(sent.record, sent.at).answered(usage)
    going.put(replace(HEAD, tools=OTHER))
    found = await going.round()
    assert found is not None
    assert (found.cause, found.part) == ("changed", "tools")
