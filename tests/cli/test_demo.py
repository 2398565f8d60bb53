"""`reverie demo`: real sessions, every layer at work, and numbers that the disk bears out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spec("18.demo")


def demo(tmp: Path, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reverie.apps.cli", "demo", *args]
    env = {**os.environ, "TMPDIR": str(tmp), **environ}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


class Kept:
    """A demo that was kept: what it says of itself, and what it left on the disk."""

    def __init__(self, tmp: Path) -> None:
        ran = demo(tmp, "--json", "--keep")
        self.tmp = tmp
        assert ran.returncode == 0, ran.stderr
        self.value: Any = json.loads(ran.stdout)
        (self.project,) = (Path(self.value["folder"]) / "home" / "projects").iterdir()
        found = [p.read_text("utf-8").splitlines() for p in self.project.glob("*.jsonl")]
        read = [[json.loads(row) for row in rows] for rows in found]
        self.sessions: list[list[Any]] = sorted(read, key=lambda records: records[0]["at"])

    def layer(self, name: str) -> Any:
        return self.value["layers"][name]

    def records(self, kind: str) -> list[Any]:
        return [r for records in self.sessions for r in records if r["type"] == kind]

    def session_with(self, kind: str) -> list[Any]:
        (found,) = [s for s in self.sessions if any(r["type"] == kind for r in s)]
        return found

    def forks(self, source: str) -> list[Any]:
        session = self.session_with("notes")
        return [r for r in session if r["type"] == "fork" and r["source"] == source]

    def memory(self, key: str) -> str:
        return (self.project / "memory" / key).read_text("utf-8")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("kept"))


def said(record: Any) -> str:
    return " ".join(b.get("text", "") for b in record["blocks"])


def read_share(forks: list[Any]) -> float:
    used = [r["usage"] for r in forks]
    read = sum(u.get("read", 0) for u in used)
    given = sum(u.get(k, 0) for u in used for k in ("uncached", "read", "written"))
    return read / given


def test_each_check_of_the_run_holds_and_every_layer_has_a_count(kept: Kept) -> None:
    value = kept.value
    assert all(value["checks"].values())
    assert value["scripted"] is True
    assert 0 < value["cost"] < value["naive_cost"]
    assert value["fork"]["hit_rate"] > 0.9
    counts = {name: layer["count"] for name, layer in value["layers"].items()}
    assert len(counts) == 9
    assert all(count > 0 for count in counts.values()), counts
    assert "ORDERS" not in value["answer_without_memory"]
    assert "ORDERS" in value["answer_with_memory"]


def test_stored_results_lie_in_the_first_session_folder(kept: Kept) -> None:
    layer = kept.layer("tool_results")
    assert layer["over_their_own_limit"] >= 1
    assert layer["over_their_message"] >= 1
    assert layer["count"] == layer["over_their_own_limit"] + layer["over_their_message"]
    assert layer["read_back"] == 2
    first = kept.sessions[0][0]["session"]
    stored = list((kept.project / first / "tool-results").iterdir())
    assert len(stored) == layer["count"]
    assert sum(len(p.read_text()) for p in stored) == layer["characters"]
    assert kept.layer("microcompaction")["count"] >= 1


def test_the_notes_are_counted_as_the_transcript_has_them(kept: Kept) -> None:
    layer, session = kept.layer("session_memory"), kept.session_with("notes")
    taken = [r for r in session if r["type"] == "notes"]
    assert layer["updates"] == len(taken) >= 1
    forks = kept.forks("session_memory")
    assert layer["requests"] == sum(r["requests"] for r in forks)
    assert layer["hit_rate"] == pytest.approx(read_share(forks), abs=0.001)
    assert layer["hit_rate"] > 0.8
    messages = [r["id"] for r in session if r["type"] in ("user", "assistant")]
    assert layer["messages"] == len(messages)
    assert layer["covered"] == messages.index(taken[-1]["last"]) + 1
    notes = kept.project / session[0]["session"] / "session-memory" / "summary.md"
    assert notes.stat().st_size > 0


def test_a_full_window_is_compacted_by_the_notes_alone(kept: Kept) -> None:
    layer = kept.layer("compaction")
    found = [r["boundary"] for r in kept.session_with("notes") if r["type"] == "replaced"]
    assert layer["count"] == len(found) == 2
    by_notes, asked_for = layer["by_notes"], layer["asked_for"]
    for told, boundary in zip((by_notes, asked_for), found, strict=True):
        assert told["tokens_before"] == boundary["tokens_before"]
        assert told["tokens_after"] == boundary["tokens_after"] < told["tokens_before"]
        assert told["fidelity"] == boundary["fidelity"]
        assert told["calls"] == boundary.get("calls", 0)
    assert by_notes["calls"] == 0
    assert asked_for["calls"] == sum(r["requests"] for r in kept.forks("compact")) == 1
    assert by_notes["tokens_after"] < kept.value["window"] <= 1.2 * by_notes["tokens_before"]


def test_what_the_user_said_is_in_the_memories_that_were_written(kept: Kept) -> None:
    layer, session = kept.layer("extraction"), kept.session_with("notes")
    written = [f for r in session if r["type"] == "extracted" for f in r.get("written", ())]
    assert layer["files"] == written
    assert layer["count"] == len(written) >= 2
    forks = kept.forks("extract_memories")
    assert layer["requests"] == sum(r["requests"] for r in forks)
    assert layer["hit_rate"] == pytest.approx(read_share(forks), abs=0.001)
    words = [said(r) for r in session if r["type"] == "user"]
    for key in written:
        body = kept.memory(key).rpartition("---")[2].strip().splitlines()[0]
        assert any(text.rstrip(".").endswith(body.rstrip(".”")[-25:]) for text in words), key


def test_a_later_session_is_sent_what_an_earlier_one_saved(kept: Kept) -> None:
    layer = kept.layer("recall")
    assert set(layer["head"]) == set(kept.layer("extraction")["files"])
    assert (layer["joined"], layer["files"]) == (0, [])  # what stands in the head is not sent twice
    spoken = ("user", "assistant")
    (asked,) = [
        s
        for s in kept.sessions
        if any(r["type"] in spoken and "Where are bugs tracked" in said(r) for r in s)
    ]
    assert asked[0]["session"] != kept.session_with("notes")[0]["session"]
    (key,) = [key for key in layer["head"] if "bugs" in key]
    fact = kept.memory(key).rpartition("---")[2].strip()
    assert any(fact in said(r) and key in said(r) for r in asked if r["type"] == "assistant")


def test_old_rounds_become_lines_under_collapse(kept: Kept) -> None:
    layer = kept.layer("collapse")
    sealed = [r for r in kept.records("replaced") if not r.get("boundary")]
    assert layer["count"] == len(sealed) >= 1
    assert layer["messages"] > 1
    assert 0 < layer["tokens_after"] < layer["tokens_before"]


def test_a_dream_joins_twins_and_can_be_taken_back(kept: Kept) -> None:
    layer = kept.layer("dreaming")
    (path,) = kept.project.glob("dreams/*/dream.json")
    dream = json.loads(path.read_text("utf-8"))
    assert dream["status"] == "undone"
    assert dream["trigger"] == layer["trigger"] == "auto"
    assert layer["changed"] == dream["changed"]
    assert layer["requests"] == dream["requests"]
    memories = {p.name for p in (kept.project / "memory").glob("*.md")} - {"MEMORY.md"}
    assert layer["memories_before"] == len(memories)
    assert layer["memories_after"] < layer["memories_before"]
    assert layer["undone"] is True
    touched = [key for key in layer["changed"] if key in memories]
    assert len(touched) == layer["memories_before"] - layer["memories_after"]  # its equal stays
    bodies = [kept.memory(key).rpartition("---")[2].strip(" \n.”").lower() for key in memories]
    facts = [body.rpartition("“")[2] for body in bodies]
    assert len(set(facts)) == layer["memories_after"]


def test_people_read_what_happened_and_nothing_is_left(tmp_path: Path) -> None:
    home = tmp_path / "real-home"
    ran = demo(tmp_path, REVERIE_HOME=str(home), REVERIE_RESULT_CHARACTERS="10")
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) <= 40
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert ran.stdout.startswith("Before and after")
    assert "no rule for that" not in ran.stdout
    table = ran.stdout.partition("What each layer did")[2]
    names = ("tool-result storage", "microcompaction", "collapse", "session memory", "compaction")
    for name in (*names, "memory extraction", "recall", "dreaming", "fork"):
        assert name in table
    assert "✗" not in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_every_layer_as_it_happens_behind_verbose(tmp_path: Path) -> None:
    ran = demo(tmp_path, "--verbose")
    assert ran.returncode == 0, ran.stderr
    assert "scripted" in ran.stdout
    assert "window is set to" in ran.stdout
    assert "no rule for that" not in ran.stdout


def test_two_runs_cost_the_same(kept: Kept) -> None:
    """Ids, folders and clocks differ; what is sent and what it costs hardly does."""
    again = Kept(kept.tmp).value
    assert again["layers"] == kept.value["layers"]
    assert again["cost"] == pytest.approx(kept.value["cost"], rel=0.01)
