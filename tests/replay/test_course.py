"""The course of a recorded session, and the names its steps need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.apps.replay import (
    TOOL_TOKENS,
    TOOLS,
    identifiers,
    needs,
    of_entries,
    of_lines,
    stand_in,
    tokens,
)
from reverie.errors import ImportFailed
from reverie.transcript import (
    AssistantMessage,
    Entry,
    HeadSet,
    Record,
    ResultDecided,
    Rewound,
    Started,
    UserMessage,
    block_of,
    dump,
    head_blocks,
    text_block,
)
from tests.proxy.clients import assistant, gave, text, user

from .courses import Bench, course, recorded, row, session, thought, use

pytestmark = pytest.mark.spec("B14")


def shape(found) -> list[tuple[str, list[str], float]]:
    return [(s.role, [b.type for b in s.blocks], s.gap) for s in found.steps]


def test_rows_become_steps_with_the_pauses_between_them():
    found = course(
        row("user", "go", 0),
        row("assistant", [thought("hm")], 5, uuid="a1"),
        row("assistant", [text("I look"), use("t1", path="a")], 7, uuid="a2"),
        row("user", [gave("t1", "one")], 9),
        row("assistant", [text("done")], 12),
    )
    assert shape(found) == [
        ("user", ["text"], 3.0),
        ("assistant", ["thinking", "text", "tool_use"], 5.0),
        ("tool", ["tool_result"], 2.0),
        ("assistant", ["text"], 3.0),
    ]
    told = (found.session, found.program, found.rounds, found.thinking)
    assert told == ("s-1", "claude-code", 2, 1)


def test_only_what_belongs_together_stays():
    """Calls without results, results without calls, the same id twice, words beside results."""
    found = course(
        row("assistant", [text("before anybody spoke")], 0),
        row("user", "go", 1),
        row("assistant", [use("t1"), use("never")], 2),
        row("user", [gave("t1", None), text("and mind docs/style_guide.md")], 3),
        row("user", [gave("t1", "again"), gave("unasked", "x")], 4, uuid="again"),
        row("assistant", [use("t1"), text("and")], 5),
        row("user", "stop", 6),
        row("assistant", [text("stopped")], 7),
        row("user", "nobody answers", 8),
    )
    assert [(s.role, [b.type for b in s.blocks]) for s in found.steps] == [
        ("user", ["text"]),
        ("assistant", ["tool_use"]),
        ("tool", ["tool_result", "text"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
        ("assistant", ["text"]),
    ]
    assert found.steps[2].blocks[0].get("content") == "(no output)"
    assert "docs/style_guide.md" in found.facts


def test_a_user_who_cuts_in_behind_results_is_answered_in_between():
    found = course(
        row("user", "go", 0),
        row("assistant", [use("t1")], 1),
        row("user", [gave("t1", "x")], 2),
        row("user", "wait", 3, uuid="w"),
        row("assistant", [text("yes")], 4),
    )
    roles = [s.role for s in found.steps]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


def test_rows_of_others_are_no_part_of_it():
    found = course(
        row("user", "go", 0),
        row("assistant", [text("a sub-agent speaks")], 1, isSidechain=True),
        row("user", "This session is continued from …", 2, isCompactSummary=True),
        row("assistant", [text("done")], 3),
        row("assistant", [text("done")], 3),
        "not json",
    )
    assert len(found.steps) == 2
    assert len(found.steps[1].blocks) == 1
    assert found.notes != ()


def test_pictures_become_a_note():
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    found = course(
        row("user", [shown], 0),
        row("assistant", [use("t1")], 1),
        row("user", [gave("t1", [text("seen"), shown])], 2),
        row("assistant", [text("done")], 3),
    )
    assert found.steps[0].blocks[0].get("text") == "[image]"
    assert found.steps[2].blocks[0].get("content") == "seen\n[image]"


@pytest.mark.parametrize("lines", [[], ["x"], ['{"type":"other"}'], [row("user", "alone", 0)]])
def test_what_cannot_be_replayed_is_refused(lines: list[str]):
    with pytest.raises(ImportFailed):
        of_lines(lines, "a file")


def test_pi_sessions_have_a_course():
    said = [
        user("go"),
        assistant({"type": "toolCall", "id": "c1", "name": "bash", "arguments": {}}),
        {"role": "toolResult", "toolCallId": "c1", "content": [text("out")]},
        assistant(text("done")),
    ]
    begun = {"type": "session", "id": "p-1", "cwd": "/p"}
    rows = [begun, *({"type": "message", "message": one} for one in said)]
    found = of_lines([json.dumps(r) for r in rows], "pi")
    assert (found.session, found.program) == ("p-1", "pi")
    assert [s.role for s in found.steps] == ["user", "assistant", "tool", "assistant"]
    assert found.steps[2].blocks[0].get("content") == "out"


# --- our own


def ours(*records: Record) -> list[Entry]:
    out: list[Entry] = []
    leaf = ""
    for n, record in enumerate(records):
        parent = "e2" if isinstance(record, Rewound) else leaf
        out.append(Entry(f"e{n}", parent, 100.0 + n, record))
        leaf = out[-1].id if out[-1].on_chain else leaf
    return out


def test_a_session_of_ours_is_replayed_from_what_was_stored():
    """Stored results whole, the branch that was left left out, the head as it was sent."""
    preview = dump("the beginning …")
    head = HeadSet("m", '[{"type":"text","text":"Be brief."}]')
    entries = ours(
        Started("s-2", "/p", "/p", "1"),
        head,
        UserMessage((text_block("go"),)),
        AssistantMessage((text_block("a wrong turn"),)),
        Rewound(),
        AssistantMessage((block_of(use("t1")),)),
        ResultDecided("t1", "stored", "large", preview, "tool-results/t1.txt", 9, "x"),
        UserMessage((block_of(gave("t1", "the beginning …")),), "tool"),
        AssistantMessage((text_block("done"),)),
    )
    files = {"tool-results/t1.txt": b"the beginning and the end"}
    found = of_entries(entries, files.get)
    assert [s.role for s in found.steps] == ["user", "assistant", "tool", "assistant"]
    assert found.steps[2].blocks[0].get("content") == "the beginning and the end"
    assert (found.session, found.program, found.head, found.notes) == ("s-2", "reverie", head, ())
    gone = of_entries(entries, lambda key: None)
    assert gone.steps[2].blocks[0].get("content") == "the beginning …"
    assert "tool-results/t1.txt is gone" in gone.notes[0]


def test_an_empty_head_of_ours_stays_empty_and_only_an_unrecorded_one_is_stood_in_for():
    """A client of the proxy may send neither a system prompt nor tools."""
    said = (UserMessage((text_block("go"),)), AssistantMessage((text_block("done"),)))
    begun = Started("s-3", "/p", "/p", "1")
    assert of_entries(ours(begun, HeadSet("m"), *said), lambda key: None).head == HeadSet("m")
    assert of_entries(ours(begun, *said), lambda key: None).head == stand_in()


def test_the_head_no_file_records_is_as_large_as_a_coding_agents():
    head = stand_in()
    assert [tokens(b) for b in head_blocks(head.system)] == [6_695]
    sizes = [tokens(b) for b in head_blocks(head.tools)]
    assert sizes == [TOOL_TOKENS] * len(TOOLS)


# --- names


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("see src/a/b.py.", ["src/a/b.py"]),
        ("see src/billing/ledger.py.", ["src/billing/ledger.py"]),
        ("call resolve_cursor_lease now", ["resolve_cursor_lease"]),
        ("the parseConfigFile method", ["parseConfigFile"]),
        ("an extraordinarily ordinary word", []),
        ("commit a1b2c3d4e5f6 here", ["a1b2c3d4e5f6"]),
        ("--dry-run-only flag", ["dry-run-only"]),
        ("short_one", []),
        ("", []),
    ],
)
def test_names_a_model_could_not_guess(said: str, found: list[str]):
    assert identifiers(said) == found


def test_a_need_is_what_a_call_repeats_of_what_was_given():
    steps = [
        (False, [text_block("read docs/style_guide.md")]),
        (True, [block_of(use("t", path="docs/style_guide.md", other="never_given_name"))]),
        (False, [block_of(gave("t", "names resolve_cursor_lease"))]),
        (True, [text_block("resolve_cursor_lease, and its_own_idea in words alone")]),
        (True, [block_of(use("u", a="resolve_cursor_lease\ndocs/style_guide.md its_own_idea"))]),
    ]
    found = needs(steps)
    assert [(n.name, n.seen, n.given) for n in found[1]] == [("docs/style_guide.md", 0, 0)]
    assert [(n.name, n.seen, n.given) for n in found[4]] == [
        ("docs/style_guide.md", 1, 0),
        ("resolve_cursor_lease", 3, 2),
    ]
    assert 3 not in found


def test_the_longest_unseen_names_count():
    given = " ".join(f"name_number_{n:02d}" for n in range(30))
    steps = [(False, [text_block(given)]), (True, [block_of(use("t", command=given))])]
    assert len(needs(steps)[1]) == 12


def test_courses_and_needs_are_those_of_the_shared_bench(shared: Path, scale):
    """Over recorded sessions: the same steps, pauses, names and needs."""
    bench = Bench(shared)
    paths = sorted((shared / "data" / "sessions_dev").glob("[0-9a-f]*.jsonl.gz"))
    for path in paths[:: scale.pick(8, 1)]:
        ours, theirs = recorded(path), bench.trace(path)
        mine = [s for s in ours.steps if s.blocks != (text_block("[image]"),)]
        if len(mine) != len(ours.steps):
            continue  # the bench leaves pictures out
        assert [s.role for s in mine] == [s["role"] for s in theirs["steps"]], path.name
        for a, b in zip(mine, theirs["steps"], strict=True):
            assert a.gap == pytest.approx(b["gap"], abs=1e-3)
        wanted = bench.replays.needs(theirs["steps"])
        found = {at: [(n.name, n.seen, n.given) for n in ns] for at, ns in ours.needs.items()}
        assert found == wanted, path.name
        assert set(theirs["facts"]) <= set(ours.facts)


def test_a_session_of_many_rounds_is_one_course():
    found = course(*session(5))
    assert found.rounds == 6
    assert found.facts == ("config/guarded_settings.toml",)
