"""Documents in other words, by operators in two halves: `OPEN` may be looked at by whoever sets a
detector's limits, `HELD` may not. The words they swap stand in `planted.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from bench.figures import HERE

TABLES: dict[str, Any] = json.loads((HERE / "planted.json").read_text(encoding="utf-8"))
Reword = Callable[[str, Random], str]


def _swap(pairs: Mapping[str, str]) -> Reword:
    names = "|".join(sorted(map(re.escape, pairs), key=len, reverse=True))
    pattern = re.compile(rf"(?<![`\w/.-])({names})(?![`\w/-])", re.IGNORECASE)

    def swapped(found: re.Match[str]) -> str:
        other = pairs[found[1].lower()]
        return other[0].upper() + other[1:] if found[1][0].isupper() else other

    return lambda text, _: pattern.sub(swapped, text)


def _passive(text: str, _: Random) -> str:
    verbs = {"uses": "used", "employs": "employed", "handles": "handled", "creates": "created"}
    verbs |= {"returns": "returned", "provides": "provided", "supplies": "supplied"}
    verbs |= {"contains": "contained", "holds": "held", "calls": "called", "reads": "read"}
    pattern = rf"(The [\w`. ()-]{{3,50}}?) ({'|'.join(verbs)}) (.+?)([.:]?)"
    found = re.fullmatch(pattern, text)
    if found is None or len(found[3].split()) > 14:
        return text
    what = found[3][0].upper() + found[3][1:]
    return f"{what} is {verbs[found[2]]} by {found[1][0].lower()}{found[1][1:]}{found[4]}"


def _reordered(text: str, _: Random) -> str:
    parts = re.split(r"; | — ", text.rstrip("."))
    if len(parts) != 2 or "`" in text[:1]:
        return text
    return f"{parts[1][0].upper()}{parts[1][1:]}; {parts[0][0].lower()}{parts[0][1:]}."


def _fronted(text: str, _: Random) -> str:
    found = re.fullmatch(r"(When|If|After|Before|Once) ([^,`]{6,80}), (.{8,}?)\.", text)
    if found is None:
        return text
    return f"{found[3][0].upper()}{found[3][1:]} {found[1].lower()} {found[2]}."


def _agentless(text: str, _: Random) -> str:
    found = re.fullmatch(r"(Use|Run|Call|Add|Read|Create|Execute|Invoke) (`[^`]+`)(.*)", text)
    if found is None:
        return text
    done = {"Use": "used", "Run": "run", "Call": "called", "Add": "added", "Read": "read"}
    done |= {"Create": "created", "Execute": "executed", "Invoke": "invoked"}
    return f"{found[2]} is to be {done[found[1]]}{found[3]}"


def _introduced(text: str, chance: Random) -> str:
    if chance.random() < 0.8 or not re.match(r"[A-Z][a-z]+ ", text):
        return text
    start = chance.choice(("In short, ", "As a rule, ", "In practice, ", "Put simply, "))
    return start + text[0].lower() + text[1:]


OPEN: tuple[Reword, ...] = (_swap(TABLES["open"]), _passive, _reordered)
HELD: tuple[Reword, ...] = (_swap(TABLES["held"]), _fronted, _agentless, _introduced)
HALVES: dict[str, tuple[Reword, ...]] = {"open": OPEN, "held": HELD}


def reworded(text: str, how: Sequence[Reword], chance: Random) -> str:
    for operator in how:
        text = operator(text, chance)
    return text


def reworded_body(body: str, how: Sequence[Reword], chance: Random, *, code: bool) -> str:
    """A document in other words: sections and list items in another order, each one reworded."""
    fences = re.split(r"(```.*?```)", body, flags=re.DOTALL)
    texts = [part if code or n % 2 == 0 else "" for n, part in enumerate(fences)]
    sections = re.split(r"(?m)^(?=## )", "".join(texts))
    head, rest = sections[0], sections[1:]
    chance.shuffle(rest)
    return "".join(_section(one, how, chance) for one in (head, *rest))


def _section(text: str, how: Sequence[Reword], chance: Random) -> str:
    out: list[str] = []
    inside = False
    for line in text.splitlines():
        inside = inside != line.lstrip().startswith("```")
        plain = (
            line.lstrip().startswith(("#", "|", "```", "<", "    ")) or inside or not line.strip()
        )
        if plain:
            out.append(line)
            continue
        mark = re.match(r"\s*(?:[-*] |\d+\. )?", line)
        start = mark[0] if mark else ""
        said = re.split(r"(?<=[.!?])\s+(?=[A-Z`])", line[len(start) :])
        out.append(start + " ".join(reworded(one, how, chance) for one in said))
    return "\n".join(_bullets(out, chance)) + "\n"


def _bullets(lines: list[str], chance: Random) -> list[str]:
    """Runs of top-level bullets in another order."""
    out: list[str] = []
    run: list[str] = []
    for line in [*lines, ""]:
        if re.match(r"- \S", line):
            run.append(line)
            continue
        chance.shuffle(run)
        out += [*run, line]
        run = []
    return out[:-1]
