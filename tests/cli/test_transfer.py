from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.store import seal
from reverie.transcript import fold_entries, read
from reverie.wire import render
from tests.cli.conftest import Run, assert_private, claude_row, library

pytestmark = pytest.mark.spec("18")

SMALL = ("9b76", "9d44", "3de1", "bc3b", "6dd5")  # the last has rows on a branch that was left
ROW = {"file", "program", "recorded", "session", "written", "entries", "rows", "on_chain", "off"}


# --- export


def test_exported_and_imported_it_sends_the_same(
    run: Run, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text(run("sessions", "export", made).out)
    request = run("sessions", "show", made, "--request").out
    stored = library().folder.read(f"{made}/tool-results/toolu_1.txt")
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "second"))
    (row,) = run("sessions", "import", out, "--json").json()["imported"]
    assert (row["program"], row["session"], row["faults"]) == ("reverie", made, [])
    assert run("sessions", "show", made, "--request").out == request
    assert library().folder.read(f"{made}/tool-results/toolu_1.txt") == stored
    assert_private(tmp_path / "second")


def test_exports_for_programs_and_for_people(run: Run, made: str) -> None:
    value = run("sessions", "export", made, "--format", "json").json()
    keys = {"id", "title", "project", "model", "messages", "turns", "tokens", "open_calls"}
    assert set(value) == keys | {"faults", "entries", "files"}
    heads = [entry for entry in value["entries"] if entry["type"] == "head"]
    assert heads[0]["system"] == [{"type": "text", "text": "Be brief."}]
    assert "tool-results/toolu_1.txt" in value["files"]
    page = run("sessions", "export", made, "--format", "md").out
    assert "## You" in page
    assert "→ Bash" in page


@pytest.mark.parametrize("linked", ["tool-results/toolu_1.txt", ""], ids=["file", "transcript"])
@pytest.mark.parametrize("how", [["--format", "json"], ["--format", "jsonl"], ["--out", "folder"]])
def test_nothing_is_exported_through_a_hard_link(
    run: Run, made: str, tmp_path: Path, linked: str, how: list[str]
) -> None:
    place = library().path / (f"{made}/{linked}" if linked else f"{made}.jsonl")
    os.link(place, tmp_path / "elsewhere")
    arguments = [f"{tmp_path}/copy/" if one == "folder" else one for one in how]
    told = run("sessions", "export", made, *arguments)
    assert told.code != 0
    assert place.name in told.err
    assert "toolu_1" not in told.out


def test_a_page_holds_no_html(run: Run, tmp_path: Path) -> None:
    said = "<script>alert(1)</script>\n```html\n<b>code</b>\n<img src=x onerror=y>"
    name = "11110000-0000-4000-8000-000000000000"
    (tmp_path / "x.jsonl").write_text(claude_row(name, said))
    run("sessions", "import", tmp_path / "x.jsonl", code=0)
    page = run("sessions", "export", "1111", "--format", "md").out
    assert "<script" not in page
    assert "&lt;script>" in page
    assert [text for text in page.splitlines() if text.startswith("```")] == ["```html", "```"]


def test_an_export_is_private_and_replaces_nothing(run: Run, made: str, tmp_path: Path) -> None:
    out = tmp_path / "exports" / "one.md"
    run("sessions", "export", made, "--format", "md", "--out", out, code=0)
    assert_private(out.parent)
    first = out.read_text()
    run("sessions", "export", made, "--format", "json", "--out", out, code=1)
    assert out.read_text() == first
    run("sessions", "export", made, "--format", "json", "--out", out, "--force", code=0)
    assert json.loads(out.read_text())["id"] == made


def test_one_command_exports_everything(run: Run, made: str, tmp_path: Path) -> None:
    out = tmp_path / "all"
    done = run("sessions", "export", "--all", "--out", f"{out}/", "--json").json()
    assert done["sessions"] == [made]
    here = library().folder
    keys = [f"{made}.jsonl", *here.list(made)]
    assert done["files"] == len(keys)
    assert any("/blobs/" in key for key in keys)
    assert any("/tool-results/" in key for key in keys)
    assert all((out / key).read_bytes() == here.read(key) for key in keys)
    assert_private(out)
    run("sessions", "export", "--all", code=2)
    run("sessions", "export", made, "--all", code=2)


# --- import


def test_recorded_sessions_come_in_whole(
    run: Run, recorded: Callable[[str], Path], home: Path, scale: Any, shared: Path
) -> None:
    every = sorted((shared / "data" / "sessions_dev").glob("*.jsonl.gz"))
    files = scale.pick([*map(recorded, SMALL), recorded("pi")], every)
    found = run("sessions", "import", *files, "--json").json()
    assert found["failed"] == []
    assert len(found["imported"]) == len(files)
    for row, file in zip(found["imported"], files, strict=True):
        assert set(row) == ROW | {"faults"}
        assert row["on_chain"] + len(row["off"]) == row["rows"]
        lost = [one for one in row["off"] if not one["why"].startswith("a row of")]
        assert len(lost) <= 0.03 * row["rows"]  # the rest are the client's own, and say nothing
        assert all(one["why"] for one in row["off"])
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            entries = read(lines).entries
        shown = run("sessions", "show", row["session"], "--request").out
        assert shown == render(fold_entries(entries)).body() + "\n"
        ids = {entry.id for entry in library().read(row["session"]).entries}
        assert ids >= {entry.id for entry in entries}
    rows = run("sessions", "list", "--json").json()["sessions"]
    assert all(one["turns"] > 0 and one["faults"] == 0 for one in rows)
    assert_private(home)


def test_the_same_session_comes_in_once(run: Run, recorded: Callable[[str], Path]) -> None:
    file = recorded("9b76")
    first = run("sessions", "import", file, "--json").json()["imported"][0]
    before = library().folder.read(f"{first['session']}.jsonl")
    second = run("sessions", "import", file, "--json").json()["imported"][0]
    assert (first["written"], second["written"]) == (True, False)
    assert "already here" in run("sessions", "import", file).out
    assert library().folder.read(f"{first['session']}.jsonl") == before
    third = run("sessions", "import", "--again", file, "--json").json()["imported"][0]
    assert third["session"] != first["session"]
    assert library().read(third["session"]).view.session == third["session"]


def test_a_dry_run_writes_nothing(run: Run, recorded: Callable[[str], Path], home: Path) -> None:
    done = run("sessions", "import", "--dry-run", recorded("6dd5"), code=0)
    assert "would be imported" in done.out
    assert "2 rows not: on a branch that was left (103, 104)" in done.out
    assert not home.exists()


@pytest.mark.parametrize(
    "body", [b"", b"\n\n", b"not json\n", b"[]\n", b'{"type":"x"}\n', b"\x1f\x8bbroken", b"\0" * 99]
)
def test_what_is_no_session_is_refused(run: Run, tmp_path: Path, home: Path, body: bytes) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(body)
    done = run("sessions", "import", file, code=2)
    assert str(file) in done.err
    (failed,) = json.loads(run("sessions", "import", file, "--json", code=2).out)["failed"]
    assert failed["file"] == str(file)
    assert not home.exists()


def test_one_bad_file_stops_no_other(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("garbage\n")
    (tmp_path / "b.jsonl").write_text(claude_row("22220000-0000-4000-8000-000000000000"))
    (tmp_path / "c.txt").write_text("not looked at")
    os.mkfifo(tmp_path / "d.jsonl")
    found = json.loads(run("sessions", "import", tmp_path, "--json", code=2).out)
    assert [Path(one["file"]).name for one in found["failed"]] == ["a.jsonl", "d.jsonl"]
    assert [Path(one["file"]).name for one in found["imported"]] == ["b.jsonl"]


def test_a_torn_file_gives_what_it_has(run: Run, tmp_path: Path) -> None:
    text = claude_row("33330000-0000-4000-8000-000000000000")
    data = gzip.compress(text.encode() + os.urandom(20_000))
    (tmp_path / "x.jsonl.gz").write_bytes(data[: len(data) // 2])
    (row,) = run("sessions", "import", tmp_path / "x.jsonl.gz", "--json").json()["imported"]
    assert row["on_chain"] >= 1
    assert row["faults"]


@pytest.mark.parametrize("name", ["../../evil", "/etc/x", "", "A" * 36, "\x1b[1m"])
def test_a_recorded_id_chooses_no_path(run: Run, tmp_path: Path, home: Path, name: str) -> None:
    (tmp_path / "x.jsonl").write_text(claude_row(name))
    (row,) = run("sessions", "import", tmp_path / "x.jsonl", "--json").json()["imported"]
    assert row["session"] != name
    assert [file.id for file in library().sessions()] == [row["session"]]
    assert_private(home)


@pytest.mark.parametrize(
    "key", ["../x", "/x", "blobs/../../x", "memory/MEMORY.md", "blobs", "tool-results/../x", ""]
)
def test_an_exported_file_chooses_no_path(run: Run, tmp_path: Path, home: Path, key: str) -> None:
    session = "44440000-0000-4000-8000-000000000000"
    started = {"v": 1, "id": "a", "parent": "", "type": "started", "session": session}
    started |= {"project": "/x", "cwd": "/x", "version": "1"}
    blocks = [{"type": "text", "text": "hello"}]
    said = {"v": 1, "id": "b", "parent": "", "type": "user", "blocks": blocks}
    file = {"v": 1, "id": "c", "parent": "", "type": "file", "key": key, "data": "evil"}
    lines = [seal(json.dumps(one, separators=(",", ":"))) for one in (started, said, file)]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    (row,) = run("sessions", "import", tmp_path / "x.jsonl", "--json").json()["imported"]
    assert "names a file that no session has" in row["faults"][0]
    assert row["session"] == session
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name == "x"]
    assert list(library().folder.list()) == [".reverie-root", f"{session}.jsonl"]
