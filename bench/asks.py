"""Turns that plainly ask to keep something, and turns that must not be kept: what is saved?

`asks.jsonl` was written by hand, as people type, before any rule was made for it, by somebody who
had not read the rules. A turn counts as saved where the embedded extraction writes a memory that
holds the words without which the fact is lost. Half of the turns are held back, by the sha256 of
their id: whoever changes a rule looks at the others alone.

    python -m bench run asks
    python -m bench.asks          # and the turns of the dev half that went wrong
    python -m bench.asks --rows   # right of fired, by row of the table of cues, the held half
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.extraction import Outcome, one_case, share
from bench.figures import HERE, Figure, Row, at_least, at_most
from reverie.embedded import Sentence, find_cue, find_facts, user_turn

ASKS = HERE / "asks.jsonl"
SAVED = 0.9
WRONG = 0.05
TIME = 1_790_000_000.0
ANSWER = "All right."
HALVES = {"dev": False, "held": True}


def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ASKS.read_text(encoding="utf-8").splitlines()]


def outcomes(rows: Sequence[Mapping[str, Any]]) -> dict[str, Outcome]:
    return {row["id"]: one_case({"time": TIME, "after": ANSWER, **row}) for row in rows}


def keeps(row: Mapping[str, Any], found: Outcome) -> bool:
    """Whether one of the memories written holds every word that the fact needs."""
    needed = [word.lower() for word in row["expect"]["words"]]
    return any(all(word in body(text).lower() for word in needed) for text in found.texts)


def body(text: str) -> str:
    """What stands below a memory's head."""
    return text.split("---\n", 2)[-1] if text.startswith("---\n") else text


def judged(rows: Sequence[dict[str, Any]], found: Mapping[str, Outcome]) -> Iterator[Row]:
    yield from figures("all", rows, found, bar=True)
    for name, held in HALVES.items():
        here = [row for row in rows if row["held"] is held]
        yield from figures(name, here, found, bar=False)


def figures(
    what: str, rows: Sequence[dict[str, Any]], found: Mapping[str, Outcome], *, bar: bool
) -> Iterator[Row]:
    asks = [row for row in rows if row["save"]]
    english = [row for row in asks if row["language"] == "en"]
    others = [row for row in asks if row["language"] != "en"]
    kept = sum(keeps(row, found[row["id"]]) for row in english)
    limit, met = (f"{SAVED:.2f}", kept >= SAVED * len(english)) if bar else ("", None)
    yield f"{what}: plain asks saved, English", share(kept, len(english)), limit, met
    abroad = sum(keeps(row, found[row["id"]]) for row in others)
    yield (
        f"{what}: plain asks saved, German, Chinese, Spanish",
        share(abroad, len(others)),
        "",
        None,
    )
    right = [row for row in asks if keeps(row, found[row["id"]])]
    typed = sum(row["expect"]["type"] in found[row["id"]].types for row in right)
    yield f"{what}: of the saved, type as expected", share(typed, len(right)), "", None
    wrong = [row for row in rows if not row["save"] and found[row["id"]].types]
    saves = sum(bool(found[row["id"]].types) for row in rows)
    limit, met = (f"{WRONG:.2f}", len(wrong) <= WRONG * saves) if bar else ("", None)
    yield f"{what}: saves that must not be", share(len(wrong), saves), limit, met


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    rows = cases()
    found = outcomes(rows)
    english = [row for row in rows if row["save"] and row["language"] == "en"]
    saved = [row for row in rows if found[row["id"]].types]
    shares = {
        "asks.saved": ("plain requests to remember that are kept, English", english, SAVED),
        "asks.saved.held": (
            "the same, the half that was held back",
            [row for row in english if row["held"]],
            SAVED,
        ),
    }
    for key, (what, of, bound) in shares.items():
        kept = sum(keeps(row, found[row["id"]]) for row in of) / len(of)
        why = "requests worded in ways that no rule of the embedded model knows; a model reads them"
        yield at_least(key, what, kept, bound, "share", len(of), why)
    wrong = sum(not row["save"] for row in saved) / len(saved)
    what = "saves of what must not be kept, among all saves"
    yield at_most("asks.wrong", what, wrong, WRONG, "share", len(saved))
    yield from judged(rows, found)


def by_row(rows: Sequence[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """For each row of the table of cues: the turns it saved rightly, and all that it saved. The
    column `held` of `embedded/data/cues.tsv` is this, of the held half."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        turn = user_turn("said", row["text"], TIME)
        for fact in find_facts([turn]):
            hit = find_cue(Sentence(fact.said, fact.said))
            if hit is not None:
                counts.setdefault(hit.cue.phrase, []).append(int(row["save"]))
    return {phrase: (sum(right), len(right)) for phrase, right in counts.items()}


def main() -> None:
    rows = cases()
    if "--rows" in sys.argv:
        for phrase, (right, fired) in by_row([row for row in rows if row["held"]]).items():
            print(f"{right}/{fired}\t{phrase}")
        return
    found = outcomes(rows)
    for what, got, limit, met in judged(rows, found):
        print(f"{what} | {got} | {limit} | {'' if met is None else met}")
    for row in rows:
        if not row["held"]:
            saved = found[row["id"]]
            if row["save"] and not keeps(row, saved):
                print("missed" if not saved.types else "words lost", row["id"], row["text"])
            elif not row["save"] and saved.types:
                print("wrong", row["id"], row["text"])


if __name__ == "__main__":
    main()
