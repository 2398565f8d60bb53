"""The recorded course of a session, and what later steps needed.

The recorded course of a session: who said what, and how long it took.

A course is what happened before any management of the context: the user's words, the
assistant's steps and the results, each with the pause before it. Rows of one role in a row
are one step, and a call's results stand right behind it. Calls that never got a result and
results that no call asked for are left out, each named in the notes; summaries and what layers
attached are no part of it. A call answered while its message was still being written ends a
step, as it does in the file. Thinking is kept with its step, as recorded. Nothing here reads a
file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, TypeAlias, cast

from reverie.errors import ImportFailed
from reverie.transcript import recordings
from reverie.transcript.blocks import Block, Json, block_of, dump, parse, text_block, text_of
from reverie.transcript.claude_code import RecordedRow, rows_of, when
from reverie.transcript.fold import fold_entries
from reverie.transcript.records import AssistantMessage, Entry, HeadSet, ResultDecided, UserMessage
from reverie.transcript.view import View

Interface: TypeAlias = Literal["proxy", "session"]
StepRole: TypeAlias = Literal["user", "assistant", "tool"]
ReadStored: TypeAlias = Callable[[str], bytes | None]

OWN = "reverie"
READERS = ("ReadBack", "read_back")
UNTIMED = 3.0  # seconds, where a row has no time
INTERRUPTED = "(interrupted)"
NO_OUTPUT = "(no output)"
FACTS = 8  # names of one user text that count as facts
SYSTEM_TOKENS = 6_695  # of the stand-in for a coding agent's head, which no file records
TOOL_TOKENS = 978
TOOLS = ("Read", "Grep", "Edit", "Write", "Bash", "Glob")


@dataclass(frozen=True, slots=True)
class CourseStep:
    """One step of a course, and the seconds before it."""

    role: StepRole
    blocks: tuple[Block, ...]
    gap: float


@dataclass(frozen=True, slots=True)
class RecordedCourse:
    """A session as it went."""

    session: str
    program: str
    steps: tuple[CourseStep, ...]
    facts: tuple[str, ...]  # names the user gave, in order
    head: HeadSet
    needs: Mapping[int, tuple[NameNeed, ...]]  # what each step repeats of earlier ones
    notes: tuple[str, ...] = ()

    @property
    def interface(self) -> Interface:
        """What sends such a session's requests: another program's come through the proxy, and so
        do those that the proxy recorded, whose head has no tool of ours."""
        own = self.program == OWN and any(f'"{name}"' in self.head.tools for name in READERS)
        return "session" if own else "proxy"

    @property
    def rounds(self) -> int:
        return sum(step.role == "assistant" for step in self.steps)

    @property
    def thinking(self) -> int:
        return sum(b.thinking for step in self.steps for b in step.blocks)


@dataclass(frozen=True, slots=True)
class CourseMessage:
    """What one row or record says."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    at: float


def of_lines(lines: Iterable[str], name: str = "") -> RecordedCourse:
    """The course of a session file of Claude Code or pi."""
    rows, faults = rows_of(lines)
    if any("uuid" in row.value for row in rows):
        named = next((r.string("sessionId") for r in rows if r.string("sessionId")), "")
        return _course(named or name, "claude-code", list(_claude_code(rows)), tuple(faults), name)
    found = recordings.read([row.text for row in rows], name)
    said = [s for entry in found.entries if (s := _course_message(entry)) is not None]
    return _course(found.session or name, found.program, said, tuple(faults), name)


def of_entries(entries: Sequence[Entry], stored: ReadStored, name: str = "") -> RecordedCourse:
    """The course of a session of our own; `stored` gives the bytes of a stored result."""
    view = fold_entries(entries)
    held = frozenset[str]().union(*(item.covers | {item.id} for item in view.items))
    lost: list[str] = []
    said: list[CourseMessage] = []
    for entry in entries:
        found = _course_message(entry) if entry.id in held else None
        if found is not None:
            said.append(replace(found, blocks=tuple(_whole(view, found.blocks, stored, lost))))
    notes = tuple(f"the stored result {key} is gone: its preview stands for it" for key in lost)
    course = _course(view.session or name, OWN, said, notes, name)
    return course if view.head is None else replace(course, head=view.head)


def _whole(
    view: View, blocks: Iterable[Block], stored: ReadStored, lost: list[str]
) -> Iterator[Block]:
    """The blocks, each stored result as it was before it was stored."""
    for block in blocks:
        decision = view.decisions.get(block.get("tool_use_id"))
        if block.type != "tool_result" or decision is None or not decision.path:
            yield block
            continue
        data = stored(decision.path)
        if data is None:
            lost.append(decision.path)
            yield block
        else:
            yield _restore_result(block, decision, data)


def _restore_result(block: Block, decision: ResultDecided, data: bytes) -> Block:
    text = data.decode("utf-8", "replace")
    content = parse(text) if decision.path.endswith(".json") else text
    return block_of({**block.value, "content": content})


def _claude_code(rows: Iterable[RecordedRow]) -> Iterator[CourseMessage]:
    """The rows of the main conversation, in the order they were written."""
    seen: set[str] = set()
    for row in rows:
        role = row.string("type")
        uuid = row.string("uuid")
        aside = row.value.get("isSidechain") or row.value.get("isCompactSummary")
        if role not in ("user", "assistant") or aside or (uuid and uuid in seen):
            continue
        seen.add(uuid)
        yield CourseMessage("user" if role == "user" else "assistant", row.blocks(), _time(row))


def _time(row: RecordedRow) -> float:
    return when(row.value.get("timestamp"))


def _course_message(entry: Entry) -> CourseMessage | None:
    match entry.record:
        case UserMessage(blocks=blocks, origin=origin) if origin != "interrupted":
            return CourseMessage("user", blocks, entry.at)
        case AssistantMessage(blocks=blocks):
            return CourseMessage("assistant", blocks, entry.at)
        case _:
            return None


def _course(
    session: str, program: str, said: Sequence[CourseMessage], notes: tuple[str, ...], name: str
) -> RecordedCourse:
    dropped: list[str] = []
    steps = tuple(_order_steps(_pair_calls(_rows(said), dropped)))
    if not steps:
        raise ImportFailed(
            "this session has nothing to replay", where=name, do="It needs a user and an answer"
        )
    facts = [word for step in steps for word in _facts(step)]
    wanted = needs([(step.role == "assistant", step.blocks) for step in steps])
    told = (*notes, *dropped)
    return RecordedCourse(
        session, program, steps, tuple(dict.fromkeys(facts)), stand_in(), wanted, told
    )


def _facts(step: CourseStep) -> Iterator[str]:
    if step.role != "assistant":
        for block in step.blocks:
            if block.type == "text":
                yield from identifiers(block.get("text"))[:FACTS]


def stand_in() -> HeadSet:
    """A head as large as a coding agent's: the files do not record theirs."""
    system = text_block("All of the work is done with care. " * 1000)
    text = system.get("text")[: SYSTEM_TOKENS * 4]
    tools = [_tool(name) for name in TOOLS]
    raw = block_of({"type": "text", "text": text}).raw
    return HeadSet("replayed", f"[{raw}]", f"[{','.join(tools)}]")


def _tool(name: str) -> str:
    empty = block_of({"name": name, "description": "", "input_schema": {"type": "object"}})
    # the estimate counts JSON with a space behind each colon and comma
    room = TOOL_TOKENS * 2 - len(empty.raw) - 6
    words = ("It takes a path and says what it did. " * 60)[:room]
    return empty.with_member("description", block_of({"t": words}).raw[5:-1]).raw


# --- from rows to steps


@dataclass(slots=True)
class _StepRow:
    """A step in the making."""

    role: StepRole
    blocks: list[Block]
    gap: float


def _rows(said: Sequence[CourseMessage]) -> Iterator[_StepRow]:
    """What was said, row by row, with the pause before each."""
    last = 0.0
    for one in said:
        gap = max(0.0, one.at - last) if one.at and last else UNTIMED
        last = one.at or last
        blocks = [b for found in one.blocks if (b := _plain(found)) is not None]
        if one.role == "assistant":
            yield _StepRow("assistant", blocks, gap)
        elif any(b.type == "tool_result" for b in blocks):
            yield _StepRow("tool", blocks, gap)
        elif blocks:
            yield _StepRow("user", blocks, gap)


def _plain(block: Block) -> Block | None:
    """A block in its plain form; None where it says nothing."""
    value = block.value
    match block.type:
        case "text":
            return None if block.blank else text_block(block.get("text"))
        case "tool_use":
            keys = ("type", "id", "name", "input")
            return block_of({key: value.get(key) for key in keys}) if block.get("id") else None
        case "tool_result":
            content = _text(value.get("content")) or NO_OUTPUT
            call = block.get("tool_use_id")
            failed: dict[str, Json] = {"is_error": True} if value.get("is_error") is True else {}
            told = {"type": "tool_result", "tool_use_id": call, "content": content}
            return block_of({**told, **failed})
        case "thinking" | "redacted_thinking":
            return block
        case "image" | "document":
            return text_block(f"[{block.type}]")
        case _:
            return None


def _text(content: Json) -> str:
    """A result's content as text; what is no text becomes a short note."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = [cast("dict[str, Json]", p) if isinstance(p, dict) else {"text": str(p)} for p in parts]
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in found)


def _pair_calls(rows: Iterable[_StepRow], dropped: list[str]) -> list[_StepRow]:
    """Runs of one role as one row each; only calls and results that belong together. What is
    left out is named in `dropped`."""
    merged: list[_StepRow] = []
    for row in rows:
        if merged and merged[-1].role == row.role != "user":
            merged[-1].blocks += row.blocks
        else:
            merged.append(row)
    answered = {b.get("tool_use_id") for row in merged if row.role == "tool" for b in row.blocks}
    asked: set[str] = set()
    done: set[str] = set()
    for row in merged:
        kept: list[Block] = []
        for block in row.blocks:
            call = block.get("id" if block.type == "tool_use" else "tool_use_id")
            if block.type == "tool_use":
                if call not in answered or call in asked:
                    why = "it is there twice" if call in asked else "it never got a result"
                    dropped.append(f"the call {block.get('name')} {call} is left out: {why}")
                    continue
                asked.add(call)
            elif block.type == "tool_result":
                if call not in asked or call in done:
                    why = "it is there twice" if call in done else "no call asked for it"
                    dropped.append(f"the result of {call} is left out: {why}")
                    continue
                done.add(call)
            kept.append(block)
        row.blocks = kept
    return merged


def _order_steps(rows: Sequence[_StepRow]) -> list[CourseStep]:
    """Steps in strict turns: a user, then answers with the results of each behind it."""
    results = {
        b.get("tool_use_id"): (row, b)
        for row in rows
        if row.role == "tool"
        for b in row.blocks
        if b.type == "tool_result"
    }
    out: list[CourseStep] = []
    for row in rows:
        if row.role == "tool" or all(b.thinking for b in row.blocks):
            continue
        _push(out, CourseStep(row.role, tuple(row.blocks), row.gap))
        calls = [b.get("id") for b in row.blocks if b.type == "tool_use" and b.get("id") in results]
        if calls:
            out.append(_results(calls, results))
    while out and out[0].role != "user":
        out.pop(0)
    while out and out[-1].role != "assistant":
        out.pop()
    return out


def _push(out: list[CourseStep], step: CourseStep) -> None:
    """One more step; the same role again joins the last one."""
    if out and out[-1].role == step.role:
        out[-1] = replace(out[-1], blocks=(*out[-1].blocks, *step.blocks))
        return
    if out and out[-1].role == "tool" and step.role == "user":
        out.append(CourseStep("assistant", (text_block(INTERRUPTED),), 1.0))
    out.append(step)


def _results(calls: Sequence[str], results: dict[str, tuple[_StepRow, Block]]) -> CourseStep:
    """The results of one answer's calls, with the words that came along."""
    rows: list[_StepRow] = []
    for call in calls:
        row = results[call][0]
        if row not in rows:
            rows.append(row)
    texts = [b for row in rows for b in row.blocks if b.type == "text"]
    for row in rows:
        row.blocks = [b for b in row.blocks if b.type != "text"]
    return CourseStep("tool", (*(results[c][1] for c in calls), *texts), rows[0].gap)


# --- What later steps needed of what was said before: names, and where they came from.
#
# A need is a name that a call's input repeats and that the user or a tool had given before: a
# path, or a word no model could guess. Whether a policy still has it at hand when the step comes
# is what the replay counts. Pure functions over texts; nothing is judged here.


SHORTEST = 10
WANTED = 12  # names of one step that count, the longest unseen first
FAR = 20  # steps: a need last seen longer ago is far
_PART = r"[\w.\-]+"
_NAME = re.compile(rf"{_PART}(?:/{_PART})+|[A-Za-z_][A-Za-z0-9_\-]{{9,}}")
_JOINED = re.compile(r"[/_\-]|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class NameNeed:
    """A name a step uses, the step it was last seen in, and the one that gave it."""

    name: str
    seen: int
    given: int


def identifiers(text: str) -> list[str]:
    """Paths, joined words, and words of letters and digits, in the order they stand."""
    found = (word.strip(".-") for word in _NAME.findall(text))
    return [word for word in found if len(word) >= SHORTEST and _telling(word)]


def _telling(word: str) -> bool:
    if _JOINED.search(word):
        return True
    return any(c.isdigit() for c in word) and any(c.isalpha() for c in word)


def words(block: Block) -> str:
    """The text of a block in which names are looked for; thinking is not looked at."""
    match block.type:
        case "tool_use":
            return _input(block).replace("\\t", "\t")
        case "text" | "tool_result":
            return text_of(block.value)
        case _:
            return ""


def _input(block: Block) -> str:
    """What a call asks, line by line."""
    return dump(block.value.get("input")).replace("\\n", "\n")


def needs(steps: Sequence[tuple[bool, Sequence[Block]]]) -> dict[int, tuple[NameNeed, ...]]:
    """The needs of each step, by its number. A step is whether the assistant made it, and
    its blocks."""
    last: dict[str, int] = {}
    given: dict[str, int] = {}
    out: dict[int, tuple[NameNeed, ...]] = {}
    for at, (is_assistant, blocks) in enumerate(steps):
        if is_assistant:
            asked = " ".join(_input(b) for b in blocks if b.type == "tool_use")
            found = [w for w in dict.fromkeys(identifiers(asked)) if w in given]
            found.sort(key=lambda word: (last[word], word))
            if found:
                wanted = islice(found, WANTED)
                out[at] = tuple(NameNeed(word, last[word], given[word]) for word in wanted)
        for word in set(identifiers("\n".join(words(b) for b in blocks))):
            last[word] = at
            if not is_assistant:
                given[word] = at
    return out
