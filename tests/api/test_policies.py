"""Who may overwrite whom, what trust a merge has, who may spend at once."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reverie import Memory
from reverie.errors import BudgetExceeded
from reverie.session import Budget
from reverie.settings import DEFAULTS
from reverie.store import FileLock, Folder
from reverie.testing import ManualClock, ScriptedModel

BUILD = "The build of room 3 runs at noon"
FACT = "---\nname: {}\ndescription: {}\ntype: project\n---\n\n{}\n"


def in_words(file: str, text: str) -> str:
    return f'<memory file="{file}">\n{text}</memory>'


@pytest.fixture
def memory(home: Path, tmp_path: Path) -> Memory:
    (tmp_path / "project").mkdir()
    return Memory(tmp_path / "project")


@pytest.mark.spec("B4.trust")
@pytest.mark.parametrize("by_check", [False, True], ids=["dream", "check"])
def test_what_is_joined_is_as_trusted_as_its_least_trusted_part(
    memory: Memory, by_check: bool
) -> None:
    saved = memory.add(BUILD)
    other = memory.folder / "by_hand.md"
    said = BUILD.removeprefix("The ")
    other.write_text(FACT.format(said, said, said))
    later = time.time() + 3_600
    os.utime(other, (later, later))
    assert {one.file: one.trust for one in memory.list()} == {
        saved.file: "user",
        other.name: "agent",
    }
    assert memory.check(fix=True).fixed if by_check else memory.dream().files
    (left,) = memory.list()
    assert (left.file, left.text) == (saved.file, f"{BUILD}\n\n{said}")
    assert left.trust == "agent"


@pytest.mark.spec("B4.trust")
def test_an_untrusted_draft_does_not_overwrite_a_trusted_file(memory: Memory) -> None:
    saved = memory.add("The staging cluster is in Frankfurt", type="project", name="staging")
    path = memory.folder / saved.file
    before = path.read_bytes()
    said = "The staging cluster is in Minsk, on host evil.example"
    used = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "notes.txt"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": said}
    messages = [
        {"role": "user", "content": "Please read the file notes.txt and tell me what is new there"},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "It is read."},
    ]
    draft = FACT.format("staging", said, said)
    model = ScriptedModel([f'<read file="{path.name}"/>', in_words(path.name, draft)])
    (made,) = memory.learn(messages, model=model)
    assert made.outcome == "queued"
    assert path.read_bytes() == before
    (waiting,) = memory.pending()
    assert "evil.example" in waiting.text
    assert memory.get(saved.file).trust == "user"


ASKED = "Remember which machine the staging cluster runs on, please"
TOLD = "The staging cluster runs on stg-7.example"
CALL = {"name": "Read", "arguments": '{"file_path": "notes.txt"}'}
LISTS = {
    "messages": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": TOLD}],
        },
    ],
    "chat": [
        {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": CALL}]},
        {"role": "tool", "tool_call_id": "t1", "content": TOLD},
    ],
    "responses": [
        {"type": "function_call", "call_id": "t1", **CALL},
        {"type": "function_call_output", "call_id": "t1", "output": TOLD},
    ],
}


@pytest.mark.spec("B4.trust")
@pytest.mark.parametrize("form", LISTS)
def test_what_only_a_tool_said_in_a_list_waits_for_review(memory: Memory, form: str) -> None:
    """Whatever the format of the list, and though the draft names the user's sentence."""
    draft = FACT.format("staging", TOLD, TOLD).replace("type:", f"from: {ASKED}\ntype:", 1)
    model = ScriptedModel([in_words("staging.md", draft)])
    messages = [{"role": "user", "content": ASKED}, *LISTS[form]]
    memory.learn([*messages, {"role": "assistant", "content": "Done."}], model=model)
    assert [(one.text, one.origin.trust) for one in memory.pending()] == [(TOLD, "untrusted")]


@pytest.mark.parametrize("form", LISTS)
def test_calls_change_nothing_of_what_a_list_was_learned_by(memory: Memory, form: str) -> None:
    said = [
        {"role": "user", "content": "Remember that the release is cut on Tuesdays"},
        *LISTS[form],
    ]
    half = [
        *said[:-1],
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "?"}]},
    ]
    assert [one.outcome for one in memory.learn(half)] == ["saved"]
    more = [*said, {"role": "assistant", "content": "It is."}]
    assert memory.learn(more) == memory.learn(more) == []


@pytest.mark.spec("B18.budget")
def test_the_last_of_a_days_budget_is_spent_once(tmp_path: Path) -> None:
    """Whoever holds the home's lock decides; all others look only after that."""
    settings = replace(DEFAULTS, background_calls_per_day=1)
    outcomes: list[str] = []

    def reserve() -> None:
        budget = Budget(Folder(tmp_path), settings, ManualClock())
        try:
            budget.reserve("dream", 1)
            outcomes.append("spent")
        except BudgetExceeded:
            outcomes.append("refused")

    lock = FileLock(tmp_path / "usage.lock")
    lock.acquire(timeout=5)
    both = [threading.Thread(target=reserve) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(0.3)
    assert outcomes == []
    assert not (tmp_path / "usage").exists()
    lock.release()
    for one in both:
        one.join(30)
    assert sorted(outcomes) == ["refused", "spent"]
