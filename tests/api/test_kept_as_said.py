"""Rules without a model: they keep every fact, and the words of the user as they were said."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reverie import Memory

pytestmark = pytest.mark.spec("B6")

TUESDAY = datetime(2026, 11, 17, 9, tzinfo=UTC)

GROUPS: dict[str, tuple[str, ...]] = {
    "rooms": tuple(f"Room {n} has the broken projector" for n in (3, 5, 8)),
    "tickets": tuple(f"Ticket {n} waits for the answer of legal" for n in (4711, 4712, 4713)),
    "customers": tuple(f"Customer {n} pays by invoice within 30 days" for n in (12, 21)),
    "servers": tuple(f"Server db-{n} is backed up at 03:00 to Oslo" for n in (1, 2, 3)),
    "nodes": ("Node a7 runs the scheduler for Rosa", "Node a8 runs the scheduler for Rosa"),
    "sprints": tuple(f"Sprint {n} ends with a demo for the board" for n in (14, 15)),
    "number words": (
        "Crane one lifts 40 tonnes at the north quay",
        "Crane two lifts 60 tonnes at the north quay",
    ),
    "ordinals": (
        "The first shift cleans the mixer before it leaves",
        "The second shift cleans the mixer before it leaves",
    ),
    "versions": (
        "Version 1.2 of the client needs the old certificate",
        "Version 1.12 of the client needs the old certificate",
    ),
    "signs": ("Prefer C for the drivers of the scales", "Prefer C++ for the drivers of the scales"),
    "flags": (
        "Old branches go with git branch -d here",
        "Old branches go with git branch -D here",
    ),
    "names": (
        "Rosa Delgado approves every release of the portal",
        "Pavel Novak approves every release of the portal",
    ),
    "letters": ("Plan A needs two welders", "Plan B needs two welders", "Plan needs two welders"),
    "denial": (
        "Guests may upload files to the archive",
        "Guests may not upload files to the archive",
        "Guests may never upload files to the archive",
    ),
    "amounts": ("The limit for guests is 25 MB", "The limit for guests is 40 MB"),
    "directions": (
        "Backups are copied from Oslo to Bergen at night",
        "Backups are copied to Oslo from Bergen at night",
    ),
    "word order": ("The dog bit the man on the ward", "The man bit the dog on the ward"),
    "German rooms": tuple(f"In Raum {n} ist der Beamer kaputt" for n in (3, 5, 8)),
    "German ordinals": (
        "Die erste Schicht reinigt die Anlage vor der Übergabe",
        "Die zweite Schicht reinigt die Anlage vor der Übergabe",
    ),
    "German denial": (
        "Der Kunde darf die Rechnung ändern",
        "Der Kunde darf die Rechnung nicht ändern",
    ),
    "Chinese rooms": tuple(f"{n}号会议室的投影仪坏了" for n in (3, 5, 8)),
    "Chinese number words": ("一号起重机能吊四十吨货物", "二号起重机能吊六十吨货物"),
    "Chinese denial": ("客人可以上传文件到档案库", "客人不可以上传文件到档案库"),
    "Spanish rooms": tuple(f"La sala {n} tiene el proyector roto" for n in (3, 5, 8)),
    "Spanish ordinals": (
        "El primer turno limpia la mezcladora antes de salir",
        "El segundo turno limpia la mezcladora antes de salir",
    ),
    "dates": (
        "The audit is due by 2026-04-05 and Rosa leads it",
        "Rosa moved the ledger yesterday to the cellar",
        "Next Friday the lift is out of order",
    ),
    "junk": ("TBD", "Currently debugging the parser of the importer"),
}


@pytest.fixture
def memory(home: Path, tmp_path: Path) -> Memory:
    (tmp_path / "project").mkdir()
    return Memory(tmp_path / "project")


def aged(memory: Memory, *texts: str) -> None:
    """Memories that were added on as many days, the first the oldest."""
    for text in texts:
        memory.add(text)
    for days, path in enumerate(sorted(memory.folder.glob("[!M]*.md"))):
        at = 1_780_000_000 + 86_400 * days
        os.utime(path, (at, at))


def everything(memory: Memory) -> str:
    return "\n".join(one.text for one in memory.list())


@pytest.mark.parametrize("by_check", [False, True], ids=["dream", "check"])
@pytest.mark.parametrize("texts", GROUPS.values(), ids=GROUPS)
def test_near_twins_stay_word_for_word_through_two_dreams(
    memory: Memory, texts: tuple[str, ...], by_check: bool
) -> None:
    aged(memory, *texts)
    before = sorted(one.text for one in memory.list())
    assert len(before) == len(texts)
    for _ in range(2):
        if by_check:
            memory.check(fix=True)
        else:
            assert memory.dream().status == "completed"
        assert sorted(one.text for one in memory.list()) == before


def test_all_of_them_in_one_folder_lose_nothing(memory: Memory) -> None:
    facts = [text for texts in GROUPS.values() for text in texts]
    aged(memory, *facts)
    for _ in range(2):
        memory.dream()
        kept = [one.text for one in memory.list()]
        assert [text for text in facts if text not in kept] == []


EQUAL = (
    ("Room 3 has the broken projector", "room 3 has the broken projector."),
    ("Room 3 has the broken projector", "ROOM 3 HAS THE BROKEN PROJECTOR"),
    ("Rosa owns CI", "Rosa owns CI!"),
    ("3号会议室的投影仪坏了", "3号会议室的投影仪坏了。"),
    ("La sala 3 tiene el proyector roto", "la sala 3 tiene el proyector roto."),
)


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_what_is_equal_becomes_one(memory: Memory, one: str, other: str) -> None:
    aged(memory, one, other)
    assert len(memory.list()) == 2
    assert memory.dream().status == "completed"
    (left,) = memory.list()
    assert left.text in (one, other)
    assert memory.dream().files == ()


@pytest.mark.parametrize(
    "texts",
    [
        ("The build of room 3 runs at noon", "Build of room 3 runs at noon"),
        ("Guests pay 5 euros. Staff pays 3.", "Staff pays 3. Guests pay 5 euros."),
    ],
    ids=["an article", "the order of sentences"],
)
def test_what_is_equal_in_other_wording_becomes_one_with_both(
    memory: Memory, texts: tuple[str, ...]
) -> None:
    aged(memory, *texts)
    memory.dream()
    (left,) = memory.list()
    assert all(text.rstrip(".") in left.text for text in texts)
    assert memory.dream().files == ()


def test_the_same_text_on_two_things_or_in_other_steps_stays_two(memory: Memory) -> None:
    bodies = {
        "room 3": "The projector is broken, ask Rosa",
        "room 5": "The projector is broken, ask Rosa",
        "valve": "1. Stop the pump\n2. Open the valve",
        "Valve": "1. Open the valve\n2. Stop the pump",
    }
    memory.add("Anything else")
    for n, (name, body) in enumerate(bodies.items()):
        head = f"---\nname: {name}\ntype: project\n---\n\n"
        (memory.folder / f"{n}.md").write_text(f"{head}{body}\n")
    for _ in range(2):
        memory.dream()
        assert len(memory.list()) == 5


def test_sections_are_joined_only_under_the_same_heading(memory: Memory) -> None:
    text = "## C\n\nFor drivers.\n\n## C++\n\nFor games.\n\n## C#\n\nFor forms."
    aged(memory, text)
    memory.dream()
    assert memory.list()[0].text == text


# What the user said


SAID = {
    "Remember: no deploys on Friday.": "",
    "Remember that the release is tomorrow.": "2026-11-18",
    "Remember: the audit begins next Monday.": "2026-11-23",
    "Please remember that Rosa left yesterday.": "2026-11-16",
    "Remember that the freeze starts in two weeks.": "2026-12-01",
    "Remember: the demo for the board is on Friday.": "",
    "Remember that the contract ends next month.": "2026-12",
    "Remember that the lift was mended last week.": "2026-11-09",
    "Remember: invoices go out at the end of the month.": "",
    "Remember that Pavel is on leave until March 5.": "",
    "From now on, no merges on Friday or on Monday.": "",
    "Always ask Rosa before you deploy today's build.": "",
    "请记住：明天发布新版本。": "2026-11-18",
    "请记住：周五不要部署。": "",
    "Merk dir: morgen ist die Abnahme in Raum 3.": "",
    "Bitte merke dir: am Freitag wird nicht ausgeliefert.": "",
    "Recuerda que mañana se cierra la oficina de Lima.": "",
    "Recuerda que el viernes no se despliega nada.": "",
}


def recorded(path: Path, said: str) -> Path:
    rows: list[str] = []
    for n, text in enumerate((said, "All right.")):
        kind = ("user", "assistant")[n]
        content = text if kind == "user" else [{"type": "text", "text": text}]
        base = {"type": kind, "uuid": f"r{n}", "parentUuid": f"r{n - 1}" if n else None}
        message = {"role": kind, "content": content, "id": f"m{n}"}
        at = TUESDAY.isoformat().replace("+00:00", "Z")
        rows.append(json.dumps({**base, "sessionId": "cc-1", "timestamp": at, "message": message}))
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.spec("7.embedded")
@pytest.mark.parametrize(("said", "meant"), SAID.items())
def test_no_date_is_put_into_what_the_user_said(
    memory: Memory, tmp_path: Path, said: str, meant: str
) -> None:
    memory.learn_recorded(recorded(tmp_path / "past.jsonl", said))
    (one,) = (*memory.list(), *memory.pending())
    words = said.rstrip(".。")
    about = words.partition(": ")[2] or words.partition("：")[2] or words.rpartition(" that ")[2]
    assert about in one.text
    outside = one.text.replace(words, "")
    assert outside.count("2026-11-17") <= 1
    assert "said on 2026-11-17, Tuesday" in outside
    assert meant in outside
    assert outside.count("2026") == (2 if meant else 1)
    before = [found.text for found in memory.list()]
    for _ in range(2):
        memory.dream()
        memory.check(fix=True)
    assert [found.text for found in memory.list()] == before
