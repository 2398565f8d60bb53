"""What a model is shown by a context manager, judged request by request.

The judge reads requests as they leave and the session as it was; of our own code it shares
nothing. Beside the shared bench's figures it counts: whether a request with references says
what they are, whether each opens, whether every answer of the assistant can be had, whether
the one the user replies to stands whole, whether the user's words inside results are there
verbatim, names that the assistant itself coined, whether failed calls still show as failed and
recent errors stand verbatim, and how much of the results was shown, in tokens. Any manager of
the shared bench can be judged.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

Trace: TypeAlias = "dict[str, Any]"
Step: TypeAlias = "dict[str, Any]"

FAR = 20  # steps, as the shared bench has it
ERROR = 200  # characters of a line that names an error
EVERY = 8  # requests between two looks at all answers and words
KEYS = ("explained", "references", "answers", "replied", "words", "coined", "failures", "errors")
EXAMPLE = "r:abc123"  # as explanations have it
_REFERENCE = re.compile(r"(?<![\w:])r:[0-9a-z]{6}(?!\w)")
_REJECTED = re.compile(r"(?s)\AThe user doesn't want to proceed.{0,250}?the user said:\n(.+)\Z")
_CLARIFY = "The user wants to clarify these questions"
_ANSWERED = re.compile(r'="((?:[^"]|"(?!,|\.|$))+)"')
_NOT_TYPED = re.compile(r"\s*<(task-notification|local-command-|command-|bash-|system-reminder)")
_WORD = re.compile(r"[^\W\d_]{5,}")
_EXIT_CODE = re.compile(r"\AExit code [1-9]|\[exit code -?[1-9]\d*\]\s*\Z")
_ERROR = re.compile(r"Error\b|Exception\b|\b(?:error|fatal|panic):|\bFAIL|not found|denied|cannot ")
_FAILED = re.compile(r"(?m)^[^\n]*?\bFailed: (.+?)\.(?: |$)")
_TIMES = re.compile(r" \((\d+)\)$| others$")


def marked(trace: Trace, path: Path) -> Trace:
    """The trace with the marks of failed results, which the shared loader leaves out."""
    failed: set[str] = set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if '"is_error":true' not in line.replace(" ", ""):
                continue
            content = json.loads(line).get("message", {}).get("content")
            for block in content if isinstance(content, list) else ():
                if block.get("type") == "tool_result" and block.get("is_error") is True:
                    failed.add(block["tool_use_id"])
    for step in trace["steps"]:
        for block in step["blocks"]:
            if block["type"] == "tool_result" and block["tool_use_id"] in failed:
                block["is_error"] = True
    return trace


def said_in_results(step: Step, tools: dict[str, str]) -> Iterator[str]:
    """The user's own words in a step's results: refusals with words, answers to questions."""
    for block in step["blocks"]:
        if block["type"] != "tool_result" or not isinstance(block["content"], str):
            continue
        text = block["content"]
        found = _REJECTED.match(text)
        if found and not found[1].startswith(_CLARIFY):
            yield found[1].strip()
        elif tools.get(block["tool_use_id"]) == "AskUserQuestion":
            yield from _ANSWERED.findall(text)


def coined(steps: list[Step], identifiers: Callable[[str], list[str]]) -> dict[int, list[str]]:
    """What each step's calls repeat of names that nobody but the assistant had used, and that
    it used last in the steps near by."""
    given: set[str] = set()
    last: dict[str, int] = {}
    out: dict[int, list[str]] = {}
    for at, step in enumerate(steps):
        names = list(dict.fromkeys(identifiers(_inputs(step)))) if step["blocks"] else []
        if step["role"] == "assistant":
            near = [n for n in names if n in last and n not in given and at - last[n] <= FAR]
            if near:
                out[at] = near
            for name in identifiers(_inputs(step) + "\n" + "\n".join(texts(step))):
                last[name] = at
        else:
            given.update(identifiers("\n".join(_content(b) for b in step["blocks"])))
    return out


def failed_calls(step: Step) -> Iterator[tuple[str, str]]:
    """The results of a step that say they failed: the call, and the line that names the error."""
    for block in step["blocks"]:
        if block["type"] != "tool_result":
            continue
        text = _content(block)
        if not (block.get("is_error") or _EXIT_CODE.search(text)):
            continue
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        named = [line for line in lines if _ERROR.search(line)]
        yield block["tool_use_id"], (named or lines[:1] or [""])[-1][:ERROR]


def listed_failures(ours: str) -> int:
    """How many failed calls the lists of failures in the sealed part count."""
    count = 0
    for row in _FAILED.findall(ours):
        for one in row.split(", "):
            times = _TIMES.search(one)
            others = re.match(r"(\d+) others$", one)
            count += int(others[1]) if others else int(times[1]) if times and times[1] else 1
    return count


def texts(step: Step) -> list[str]:
    return [b["text"].strip() for b in step["blocks"] if b["type"] == "text" and b["text"].strip()]


def _inputs(step: Step) -> str:
    """What calls were given; the parameters' own names stand in the tools' definitions."""
    return "\n".join(_values([b["input"] for b in step["blocks"] if b["type"] == "tool_use"]))


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _values(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _values(one)


def _content(block: dict[str, Any]) -> str:
    if block["type"] == "text":
        return block["text"]
    if block["type"] == "tool_use":
        return json.dumps(block["input"], ensure_ascii=False).replace("\\n", "\n")
    content = block.get("content") or ""
    return content if isinstance(content, str) else "\n".join(map(_content, content))


class Judge:
    """The judge, to be joined with the shared bench's `Run`, which lives outside the project."""

    identifiers: Callable[[str], list[str]]
    trace: Trace
    manager: Any
    requests: int

    def __init__(self, trace: Trace, manager: Any, window: int | None = 200_000) -> None:
        super().__init__(trace, watched(manager), window)  # pyright: ignore[reportCallIssue]
        steps = trace["steps"]
        self.coined_at = coined(steps, self.identifiers)
        self.tools = {b["id"]: b["name"] for s in steps for b in s["blocks"] if "name" in b}
        self.sent: dict[str, Any] | None = None
        self.last_sent: dict[str, Any] = {"messages": []}
        self.found: dict[str, list[int]] = {key: [0, 0] for key in KEYS}
        self.tokens = [0, 0]
        self.holders: dict[str, list[str]] = {}

    def request(self) -> dict[str, Any]:
        sent: dict[str, Any] = super().request()  # pyright: ignore[reportAttributeAccessIssue]
        self.sent = sent
        return sent

    def add(self, usage: Any, summary: bool = False) -> None:
        super().add(usage, summary)  # pyright: ignore[reportAttributeAccessIssue]
        if not summary and self.sent is not None:
            sent, self.sent = self.sent, None
            self.last_sent = sent
            self.look(sent, self.manager.steps_seen)

    def count(self, key: str, good: bool) -> None:
        row = self.found[key]
        row[0] += good
        row[1] += 1

    def look(self, sent: dict[str, Any], at: int) -> None:
        ours, context = shown(sent)
        refs = references(ours)
        if refs:
            self.count("explained", explains(ours))
        for name in self.coined_at.get(at, ()):
            self.count("coined", name in context)
        answer = self.replied_to(at)
        if answer:
            self.count("replied", all(text in context for text in answer))
        if self.requests % EVERY == 0:
            self.look_back(context, refs, at)
            self.look_at_failures(sent, ours, context, at)

    def look_at_failures(self, sent: dict[str, Any], ours: str, context: str, at: int) -> None:
        """Whether each failed call shows as one, and the lines of the newest errors stand."""
        live = {b.get("tool_use_id") for m in sent["messages"] for b in blocks_of(m)}
        hidden = total = 0
        for n, step in enumerate(self.trace["steps"][:at]):
            for call, line in failed_calls(step):
                total += 1
                hidden += call not in live and not self.marked_failed(call, ours)
                if at - n <= FAR:
                    self.count("errors", line in context)
        row = self.found["failures"]
        row[0] += total - max(0, hidden - listed_failures(ours))
        row[1] += total

    def marked_failed(self, call: str, ours: str) -> bool:
        """Whether a sealed call's line is followed by that of an error."""
        named = getattr(self.manager, "reference_of", None)
        ref = named(call) if named else ""
        place = ours.find(f" {ref}\n") if ref else -1
        return place >= 0 and ours[place + len(ref) + 2 :].startswith("  !")

    def look_back(self, context: str, refs: set[str], at: int) -> None:
        store = dict(self.manager.store.items())
        for ref in refs:
            self.count("references", bool(store.get(ref)))
        for step in self.trace["steps"][:at]:
            if step["role"] == "assistant":
                for text in texts(step):
                    self.count("answers", self.reachable(text, context, refs, store))
            for words in said_in_results(step, self.tools):
                self.count("words", words in context)

    def reachable(self, text: str, context: str, refs: set[str], store: dict[str, str]) -> bool:
        if text in context:
            return True
        known = self.holders.get(text, ())
        if not any(ref in refs for ref in known):  # references come with every fold
            known = self.holders[text] = [ref for ref, whole in store.items() if text in whole]
        return any(ref in refs for ref in known)

    def replied_to(self, at: int) -> list[str]:
        """The answer before the user's newest words."""
        steps = self.trace["steps"]
        said = max((n for n in range(at) if steps[n]["role"] == "user"), default=0)
        before = steps[said - 1] if said else None
        return texts(before) if before and before["role"] == "assistant" else []

    def exposure(self, blocks: list[dict[str, Any]]) -> None:
        super().exposure(blocks)  # pyright: ignore[reportAttributeAccessIssue]
        now = {
            b["tool_use_id"]: len(_content(b))
            for m in self.last_sent["messages"]
            for b in (m["content"] if isinstance(m["content"], list) else ())
            if b["type"] == "tool_result"
        }
        for block in blocks:
            whole = len(_content(block))
            self.tokens[1] += whole
            self.tokens[0] += min(whole, now.get(block["tool_use_id"], 0))

    def report(self, last: Any, cpu: float, unit: float) -> dict[str, Any]:
        row = super().report(last, cpu, unit)  # pyright: ignore[reportAttributeAccessIssue]
        ours, context = shown(self.last_sent)
        steps = self.trace["steps"]
        self.look_back(context, references(ours), self.manager.steps_seen - 1)
        typed = [
            t for s in steps if s["role"] == "user" for t in texts(s) if not _NOT_TYPED.match(t)
        ]
        facts = dict.fromkeys(f for t in typed for f in self.identifiers(t)[:8])
        here = [f in context for f in facts]
        row |= {key: list(value) for key, value in self.found.items()}
        row |= {"shown_tokens": list(self.tokens), "typed": [sum(here), len(here)]}
        row["said"] = words_left(steps, context)
        return row


def judged(run: type, identifiers: Callable[[str], list[str]]) -> type:
    """The shared bench's `Run`, with the judge in it."""
    return type("Judged", (Judge, run), {"identifiers": staticmethod(identifiers)})


def watched(manager: Any) -> Any:
    """The manager, counting the steps it was told of."""
    manager.steps_seen = 0
    observe = manager.observe

    def counting(message: dict[str, Any]) -> None:
        manager.steps_seen += 1
        observe(message)

    manager.observe = counting
    return manager


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [] if isinstance(content, str) else content


def shown(sent: dict[str, Any]) -> tuple[str, str]:
    """The texts in the user's role, stubs included, that hold references; and all of it."""
    ours: list[str] = []
    every: list[str] = []
    for message in sent["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            text = _content(block)
            every.append(text)
            if message["role"] == "user" and block["type"] == "text":
                ours.append(text)
    return "\n".join(ours), "\n".join(every)


def references(text: str) -> set[str]:
    return set(_REFERENCE.findall(text)) - {EXAMPLE}


def explains(text: str) -> bool:
    """Whether a reader is told what the references are and by what they are opened."""
    return any(
        "ReadBack" in part and "reference" in part and "r:" in part for part in text.split("\n\n")
    )


def words_left(steps: list[Step], context: str) -> list[int]:
    """Plain words of the assistant's texts that the last request still holds, and all."""
    said = {
        w for s in steps if s["role"] == "assistant" for t in texts(s) for w in _WORD.findall(t)
    }
    here = set(_WORD.findall(context))
    return [len(said & here), len(said)]
