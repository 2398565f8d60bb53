"""Rules on calls: how many of the calls that break a rule are found, and how many others are held.

The table (`tests/fixtures/rules`) was written by somebody who did not write the matcher: rules as
people word them, what each speaks of, calls that break it and calls that follow it. The judge
writes what a rule speaks of into the head of a memory file, as a person would, asks the product
what it holds, and counts. It shares no code with the matcher.

    python -m bench rules
    python -m bench.rules FILE [--missed]     one table; names what was missed
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reverie.memory.rules.book import RuleBook

Row = tuple[str, str, str, bool | None]
HERE = Path(__file__).resolve().parent
TABLES = HERE.parent / "tests" / "fixtures" / "rules"
ROOT = "/home/dev/project"
FOUND, FALSE, SENTENCE, FOREIGN = 0.90, 0.02, 0.5, 0.001


def head_of(applies: dict[str, Any]) -> str:
    """What a rule speaks of, as lines of a head."""
    lines = ["applies_to:"]
    for key, value in applies.items():
        if isinstance(value, dict):
            lines.append(f"  {key}:")
            for name, given in value.items():
                lines += listed(name, given, "    ")
        else:
            lines += listed(key, value, "  ")
    return "\n".join(lines)


def listed(key: str, value: Any, indent: str) -> list[str]:
    many = value if isinstance(value, list) else [value]
    return [f"{indent}{key}:", *(f"{indent}- {json.dumps(v, ensure_ascii=False)}" for v in many)]


def memory(row: dict[str, Any], *, told: bool) -> bytes:
    """A memory file that says what the row says."""
    head = head_of(row["applies_to"]) + "\n" if told and row["applies_to"] else ""
    says = json.dumps(row["says"], ensure_ascii=False)
    return (
        f"---\nname: {row['id']}\ndescription: {says}\ntype: feedback\n{head}---\n\n{row['says']}\n"
    ).encode()


def held(data: bytes, call: dict[str, Any]) -> bool:
    book = RuleBook.of([("rule.md", data)])
    return bool(book.look(call["tool"], call["input"], cwd=ROOT, root=ROOT))


def judged(rows: list[dict[str, Any]], *, told: bool) -> dict[str, Any]:
    """Of the calls that break a rule those found, of the others those held, and which."""
    counts: dict[str, Any] = {"broken": 0, "found": 0, "fine": 0, "false": 0, "missed": []}
    counts |= {"literal": 0, "compiled": 0}
    for row in rows:
        data = memory(row, told=told)
        hits = [held(data, call) for call in row["breaks"]]
        wrong = [held(data, call) for call in row["follows"]]
        if told or row["literal"]:
            counts["broken"] += len(hits)
            counts["found"] += sum(hits)
        counts["fine"] += len(wrong)
        counts["false"] += sum(wrong)
        if row["literal"] and row["applies_to"]:
            counts["literal"] += 1
            counts["compiled"] += any(hits)
        for call, hit in zip(row["breaks"], hits, strict=True):
            if not hit:
                counts["missed"].append(("missed", row["id"], row["says"], call))
        for call, hit in zip(row["follows"], wrong, strict=True):
            if hit:
                counts["missed"].append(("false", row["id"], row["says"], call))
    return counts


def figures(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    return judged([r for r in rows if r["applies_to"]], told=True), judged(rows, told=False)


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# --- calls of other projects


def calls(folder: Path) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """Every tool call of the recorded sessions: session, tool, input, working folder."""
    from reverie.transcript.recorded import read

    for path in sorted(folder.rglob("*.jsonl*")):
        yield from _calls_of(path, read)


def _calls_of(path: Path, read: Any) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    raise NotImplementedError


if __name__ == "__main__":
    told, alone = figures(Path(sys.argv[1]))
    for name, one in (("given", told), ("sentence", alone)):
        print(name, f"found {one['found']}/{one['broken']}", f"= {share(one['found'], one['broken']):.3f}",
              f"false {one['false']}/{one['fine']} = {share(one['false'], one['fine']):.4f}",
              f"rules compiled {one['compiled']}/{one['literal']} = {share(one['compiled'], one['literal']):.3f}")
        if "--missed" in sys.argv:
            for row in one["missed"]:
                print("  ", *row[:3], json.dumps(row[3], ensure_ascii=False)[:200])
