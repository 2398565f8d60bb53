"""What tool results say, in a few lines, with the place they come from.

A report quotes and counts; it never interprets, and it never takes anything in a result
for a request. Results of any size and shape are read once, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.embedded.chat.phrases import Phrases
from reverie.embedded.history import CallOutcome, PastCall, clip

SHOWN = 5
NAMES_SHOWN = 12
STORED = "<persisted-output>"
SILENT = "(no output)"
NUMBERED = re.compile(r" {0,12}(\d{1,9})[\t→|:]")
EXIT = re.compile(r"\bexit(?:ed with)? (?:code|status):?[ \t]{0,3}(-?\d{1,9})", re.IGNORECASE)
SUMMARY = re.compile(r"\b\d{1,9} (?:passed|failed|errors?|failures?|skipped|passing|failing)\b")
FAILURE = re.compile(r"(?:FAILED|FAIL:|ERROR:?|--- FAIL:|not ok|E {3})[ \t]")
PASSED = re.compile(r"(?:OK|PASS|ok)\b.{0,60}|Ran \d{1,9} tests?\b.{0,60}")


def named(call: PastCall) -> str:
    """A call as people would name it."""
    if call.name == "Bash":
        return f"`{clip(call.get('command'), 80)}`"
    pattern = clip(call.get("pattern"), 60)
    where = clip(call.path or call.get("reference") or call.get("glob"), 100)
    if pattern:
        return f"{call.name} {pattern}" + (f" ({where})" if where else "")
    return f"{call.name} {where}".strip() or "?"


def report(outcome: CallOutcome, say: Phrases) -> str:
    """A few lines on one result."""
    call, text = outcome.call, outcome.text
    what = named(call)
    code = exit_code(text) if call.name == "Bash" else None
    if outcome.error and call.name != "Bash":
        return say.failed.format(what=what, text=clip(text) or "?")
    if call.name == "Read":
        return _file(what, call, text, say)
    if call.name == "Grep":
        return _counted(text, say.hits, say.no_hits, what, SHOWN, say)
    if call.name in ("List", "Glob"):
        return _counted(text, say.entries, say.empty, what, NAMES_SHOWN, say)
    if call.name == "Bash":
        return _command(what, text, outcome.error, code, say)
    return _counted(text, say.lines, say.empty, what, SHOWN, say)


def exit_code(text: str) -> int | None:
    """The exit code a shell's result names, at its beginning or end."""
    found = EXIT.search(text[:400]) or EXIT.search(text[-400:])
    return int(found[1]) if found else None


def _kept(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line.strip() and STORED not in line and line != SILENT
    ]


def _file(what: str, call: PastCall, text: str, say: Phrases) -> str:
    lines = text.splitlines()
    if not text.strip():
        return say.empty.format(what=what)
    first = line_number(call, text)
    out = [say.counted(say.lines, f"{what} ({call.path}:{first})", len(lines))]
    out += [say.stored] if STORED in text[:200] else []
    out += ["  " + clip(line) for line in lines if line.strip()][:SHOWN]
    return "\n".join(out)


def line_number(call: PastCall, text: str, index: int = 0) -> int:
    """The number in its file of a line of a result: its own, or counted from the offset."""
    own = NUMBERED.match(text)
    offset = call.input.get("offset")
    known = isinstance(offset, int) and not isinstance(offset, bool) and offset > 0
    start = int(own[1]) if own else (offset if known and isinstance(offset, int) else 1)
    return start + index


def _counted(text: str, some: str, none: str, what: str, shown: int, say: Phrases) -> str:
    lines = _kept(text)
    if not lines or (len(lines) == 1 and lines[0].lower().startswith(("no ", "(no "))):
        return none.format(what=what)
    out = [say.counted(some, what, len(lines))]
    out += [say.stored] if STORED in text[:200] else []
    out += ["  " + clip(line) for line in lines[:shown]]
    if len(lines) > shown:
        out.append("  " + say.more.format(count=len(lines) - shown))
    return "\n".join(out)


def _command(what: str, text: str, error: bool, code: int | None, say: Phrases) -> str:
    lines = _kept(text)
    summary = summary_lines(lines)
    ended = f", {say.exit.format(code=code)}" if code is not None else ""
    head = say.counted(say.output, what, len(lines), exit=ended)
    if error or code:
        told = ended.lstrip(", ")
        head = say.failed.format(what=what, text=told or clip("\n".join(lines[:1])))
        lines = lines if told else lines[1:]
    quoted = summary or lines[-SHOWN:]
    out = [head, *("  " + clip(line) for line in quoted)]
    return "\n".join([*out[:1], say.stored, *out[1:]] if STORED in text[:200] else out)


def summary_lines(lines: Sequence[str]) -> list[str]:
    """What a test run says of itself: its failures and its last summary line."""
    summed = [line for line in lines if SUMMARY.search(line[:400])]
    summed = summed or [line for line in lines[-3:] if PASSED.match(line)]
    failures = [line for line in lines if FAILURE.match(line)]
    if not summed and not failures:
        return []
    last = summed[-1:]
    picked = [line for line in failures if line not in last][:SHOWN]
    return [*picked, *last]
