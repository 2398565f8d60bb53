"""Turns with a judgement each: worth a memory or not, and which.

The labels are in bench/labels and hold no text; it is looked up in the shared data when
asked for (`REVERIE_SHARED`). A label whose turn is not in the data is an error, never left
out; `unlabelled` names the turns of the recorded sessions that have no label.

    python -m bench.labels
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figures import HERE, ROOT_SHARED
from reverie.transcript import AssistantMessage, Block, Entry, RecordedSession, UserMessage, read

LABELS = HERE / "labels"
HALVES = ("tune", "test")

# What the client adds around, or sends in place of, what a person typed.
AROUND = re.compile(r"<(ide_opened_file|ide_selection|system-reminder)>.*?</\1>", re.DOTALL)
CLIENT = re.compile(
    r"<(command-name|command-message|local-command|bash-input|bash-stdout|task-notification)"
    r"|\[Request interrupted by user|Operation stopped by hook:|This session is being continued"
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """One turn and its label; `type`, `kind` and `gist` where it is saved, else `why`."""

    id: str
    half: str
    save: bool
    type: str
    kind: str
    gist: str
    why: str
    text: str
    before: str  # what was said to the person just before
    session: str
    speaker: str
    time: float  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as the data has it."""

    text: str
    before: str
    session: str
    speaker: str
    time: float


def sessions(shared: Path = ROOT_SHARED) -> list[Labelled]:
    """Every turn that a person typed in the recorded sessions."""
    return _joined("sessions", typed(shared))


def locomo(shared: Path = ROOT_SHARED) -> list[Labelled]:
    """The chosen turns of LoCoMo; the speaker is the user."""
    return _joined("locomo", spoken(shared))


def unlabelled(shared: Path = ROOT_SHARED) -> list[str]:
    """Turns typed by a person that no label speaks of. Words said at a permission prompt are
    turns of their own since the labels were made, and have none."""
    known = {row["id"] for row in _rows("sessions")}
    return sorted(one for one in set(typed(shared)) - known if not one.endswith(":said"))


def recorded(shared: Path = ROOT_SHARED) -> Iterator[tuple[str, RecordedSession]]:
    """The sessions, by the name that a label's id begins with."""
    folder = shared / "data" / "sessions_dev"
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield path.name.removesuffix(".jsonl.gz"), read(lines, path.name)


def typed(shared: Path = ROOT_SHARED) -> dict[str, Turn]:
    """What people typed, by id. An entry of tool results may carry typed text too."""
    found: dict[str, Turn] = {}
    for name, one in recorded(shared):
        before = ""
        for entry in one.entries:
            if isinstance(entry.record, AssistantMessage):
                before = _text(entry.record.blocks) or before
            elif text := _typed(entry):
                found[f"{name}:{entry.id}"] = Turn(text, before, name, "user", entry.at)
    return found


def spoken(shared: Path = ROOT_SHARED) -> dict[str, Turn]:
    """What the speakers of LoCoMo said, by dialogue and turn."""
    found: dict[str, Turn] = {}
    for dialogue in _dialogues(shared):
        talk = dialogue["conversation"]
        for name in (key for key in talk if re.fullmatch(r"session_\d+", key)):
            session = f"{dialogue['sample_id']}:{name}"
            time = _time(talk[f"{name}_date_time"])
            before = ""
            for said in talk[name]:
                turn = Turn(said["text"], before, session, said["speaker"], time)
                found[f"{dialogue['sample_id']}:{said['dia_id']}"] = turn
                before = said["text"]
    return found


def _typed(entry: Entry) -> str:
    record = entry.record
    if not isinstance(record, UserMessage) or record.origin not in ("user", "tool"):
        return ""
    text = AROUND.sub("", _text(record.blocks)).strip()
    return "" if CLIENT.match(text) else text


def _text(blocks: tuple[Block, ...]) -> str:
    return "\n".join(block.get("text") for block in blocks if block.type == "text")


def _dialogues(shared: Path) -> list[dict[str, Any]]:
    with gzip.open(shared / "data" / "locomo_dev.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def _time(text: str) -> float:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()


def _rows(name: str) -> list[dict[str, Any]]:
    lines = (LABELS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _joined(name: str, turns: dict[str, Turn]) -> list[Labelled]:
    rows = _rows(name)
    if lost := [row["id"] for row in rows if row["id"] not in turns]:
        raise LookupError(
            f"{len(lost)} labels of {name}.jsonl name turns that the data lacks, first {lost[0]}: "
            "set REVERIE_SHARED to the data they were made from"
        )
    return [_labelled(row, turns[row["id"]]) for row in rows]


def _labelled(row: dict[str, Any], turn: Turn) -> Labelled:
    label = {key: str(row.get(key, "")) for key in ("type", "kind", "gist", "why")}
    return Labelled(
        id=row["id"],
        half=row["half"],
        save=row["save"],
        **label,
        text=turn.text,
        before=turn.before,
        session=turn.session,
        speaker=turn.speaker,
        time=turn.time,
    )


def main() -> None:
    for name, labels in (("sessions", sessions()), ("locomo", locomo())):
        for half in HALVES:
            here = [one for one in labels if one.half == half]
            kept = Counter(one.kind for one in here if one.save)
            left = Counter(one.why for one in here if not one.save)
            print(f"{name} {half}: {len(here)} turns, {kept.total()} saved")
            print(f"  saved: {dict(kept.most_common())}")
            print(f"  not saved: {dict(left.most_common())}")
    print(f"typed turns without a label: {len(unlabelled())}")


if __name__ == "__main__":
    main()
