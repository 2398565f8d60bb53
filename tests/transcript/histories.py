"""Transcripts of every shape, for properties: a list of small steps, built into entries.

Steps are plain tuples, so that hypothesis shrinks a failure to a few of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

from reverie.transcript import (
    EMPTY,
    AssistantMessage,
    Attached,
    Boundary,
    Candidate,
    Entry,
    Extracted,
    Failed,
    ForkEnded,
    HeadSet,
    NotesTaken,
    Recalled,
    Record,
    Replaced,
    ResultDecided,
    Rewound,
    Sent,
    Stand,
    Started,
    Strip,
    TurnEnded,
    Unknown,
    Usage,
    UserMessage,
    View,
    WordsRemoved,
    apply,
    block,
    block_of,
    text_block,
)
from reverie.wire import Request, render

STRANGE = '{"type":"mystery","zeta":1e3,"alpha":[1.0,-0,{"b":2,"a":1E+2}],"text":"\\u00e9"}'
HEADS = [
    HeadSet(
        "m1", '[{"type":"text","text":"system"}]', '[{"name":"Read"}]', "[]", '{"max_tokens":9}'
    ),
    HeadSet("m1", '[{"type":"text","text":"other"}]', "[]", '[{"type":"text","text":"ctx"}]'),
    HeadSet("m2", "[]", '[{"name":"Read"},{"name":"Bash"}]', '[{"type":"text","text":"two"}]'),
]

small = st.integers(0, 40)
step = st.one_of(
    st.tuples(st.just("user"), small),
    st.tuples(st.just("assistant"), st.integers(0, 3), small),
    st.tuples(st.just("results"), st.integers(0, 7), small),
    st.tuples(st.just("send")),
    st.tuples(st.just("attach"), small),
    st.tuples(st.just("decide"), small, st.sampled_from(["kept", "stored", "cleared"])),
    st.tuples(st.just("replace"), small, small, st.integers(0, 2)),
    st.tuples(st.just("rewind"), small),
    st.tuples(st.just("head"), st.integers(0, 2)),
    st.tuples(st.just("other"), st.integers(0, 9)),
)
rounds = st.tuples(st.just("round"), st.integers(0, 4), small)
histories = st.lists(st.one_of(step, rounds), max_size=30)


@dataclass
class Builder:
    """Turns steps into entries, folding as it goes and rendering at each send."""

    view: View = EMPTY
    entries: list[Entry] = field(default_factory=list)
    requests: list[tuple[Request, tuple[str, ...]]] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)  # requests that got an answer
    calls: int = 0

    def append(self, record: Record, parent: str | None = None) -> None:
        leaf = self.view.leaf if parent is None else parent
        entry = Entry(f"e{len(self.entries)}", leaf, float(len(self.entries)), record)
        self.entries.append(entry)
        self.view = apply(self.view, entry)

    def messages(self) -> list[str]:
        kinds = (UserMessage, AssistantMessage)
        return [e.id for e in self.entries if isinstance(e.record, kinds)]

    def pick(self, number: int) -> str:
        ids = self.messages()
        return ids[number % len(ids)] if ids else "nothing"

    def do(self, name: str, *args: int | str) -> None:
        getattr(self, "do_" + name)(*args)

    def do_round(self, calls: int, number: int) -> None:
        self.do_user(number)
        self.do_send()
        self.do_assistant(calls, number)
        self.do_results(0, number)

    def do_user(self, number: int) -> None:
        blocks = [text_block(f"words {number}")]
        if number % 5 == 0:
            blocks.append(block(STRANGE))
        if number % 7 == 0:
            blocks.insert(0, text_block("  "))
        self.append(UserMessage(tuple(blocks)))

    def do_assistant(self, calls: int, number: int) -> None:
        blocks = [text_block(f"answer {number}")]
        if number % 2:
            thinking = {"type": "thinking", "thinking": "hm", "signature": f"s{number}"}
            blocks.insert(0, block_of(thinking))
        for n in range(calls):
            self.calls += 1
            again = number % 11 == 0 and n == 0 and self.calls > 1
            name = f"t{self.calls - 1}" if again else f"t{self.calls}"
            blocks.append(
                block('{"type":"tool_use","id":"%s","name":"Read","input":{"n":1.50}}' % name)
            )
        usage = Usage(number, 2, 3, 4) if number % 3 else None
        if self.requests:
            self.answered.append(len(self.requests) - 1)
        self.append(AssistantMessage(tuple(blocks), "m1", "sim", f"msg{number}", usage=usage))

    def do_results(self, skip: int, number: int) -> None:
        names = list(self.view.open_calls) or ["t1"]
        kept = [n for i, n in enumerate(names) if not (skip >> i) & 1]
        if number % 9 == 0:
            kept.append("orphan")
        blocks = [
            block_of({"type": "tool_result", "tool_use_id": n, "content": f"out {n} " * number})
            for n in (reversed(kept) if number % 2 else kept)
        ]
        if blocks:
            self.append(UserMessage(tuple(blocks), "tool"))

    def do_send(self) -> None:
        if not len(self.view.items):
            return
        request = render(self.view)
        self.requests.append((request, self.view.moved))
        self.append(Sent("main", self.view.leaf, request.parts(), request.marks))

    def do_attach(self, number: int) -> None:
        self.append(Attached((text_block(f"reminder {number}"),), "recall"))

    def do_decide(self, number: int, action: str) -> None:
        call = f"t{number % (self.calls + 1)}"
        content = "" if action == "kept" else json.dumps(f"[{action}]")
        strips = (Strip(self.pick(number), 0),) if number % 13 == 0 and action == "cleared" else ()
        self.append(ResultDecided(call, action, "test", content, strips=strips))  # pyright: ignore[reportArgumentType]

    def do_replace(self, a: int, b: int, kind: int) -> None:
        first, last = sorted((a, b))
        by = (Stand("user", (text_block(f"summary {a} {b}"),)),)
        if kind == 1:
            by = (*by, Stand("assistant", (text_block("understood"),)))
        if kind == 2:
            by = ()
        boundary = Boundary("manual", 10, 5, ("Read",), ("a", "b", "c"), 0.5) if kind else None
        strips = (Strip(self.pick(a + b), 0),) if kind == 1 else ()
        record = Replaced(
            self.pick(first), self.pick(last), by, "test", kind == 1, strips, boundary
        )
        self.append(record)

    def do_rewind(self, number: int) -> None:
        if self.messages():
            self.append(Rewound("test"), parent=self.pick(number))

    def do_head(self, which: int) -> None:
        self.append(HEADS[which])

    def do_other(self, which: int) -> None:
        records: list[Record] = [
            Started("s1", "/p", "/p", "1"),
            Failed("layer", "broke"),
            TurnEnded(),
            WordsRemoved(1, (Strip(self.pick(which), 0),)),
            ForkEnded("session_memory", "a1", Usage(1, 2, 3, 4), 1, "completed"),
            Unknown("later", '{"v":9,"id":"x","type":"later","extra":1e3}'),
            Failed("compaction", "refused"),
            NotesTaken(self.pick(which), 12_000, "ab" * 32),
            Extracted(self.pick(which), "written", ("user/role.md",), "two"),
            Recalled(
                self.pick(which), 9, (Candidate("a.md", 0.5, "injected", "terms", 40),), why="gate"
            ),
        ]
        self.append(records[which])


def build(steps: list[tuple[str, *tuple[int | str, ...]]]) -> Builder:
    builder = Builder()
    for name, *args in steps:
        builder.do(name, *args)
    return builder
