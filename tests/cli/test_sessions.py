from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.session import open_session
from reverie.transcript import Boundary, Replaced, Stand, text_block
from reverie.wire import Request, user
from tests.cli.conftest import ESCAPES, Run, assert_private, claude_row, library, reply

pytestmark = pytest.mark.spec("18")


# --- list


def test_nothing_is_made_by_looking(run: Run, home: Path) -> None:
    assert run("sessions", "list", "--json").json()["sessions"] == []
    assert "No sessions yet" in run("sessions", "list").out
    assert "No sessions yet" in run("sessions", "list", "--all").out
    run("sessions", "show", "ab", code=2)
    run("sessions", "prune", "--yes", code=0)
    run("sessions", "export", "--all", "--out", f"{home}-out/", code=0)
    assert not home.exists()


def test_a_session_in_a_line(run: Run, made: str, project: Path, home: Path) -> None:
    found = run("sessions", "list", "--json").json()
    (row,) = found["sessions"]
    keys = {"id", "title", "at", "size", "messages", "turns", "tokens", "faults", "agents"}
    assert set(row) == keys | {"project", "path", "error"}
    assert (row["id"], row["messages"], row["turns"], row["faults"]) == (made, 7, 1, 0)
    assert run("sessions", "list", "--all", "--json").json()["sessions"] == [row]
    human = run("sessions", "list").out
    assert made in human
    assert "\x1b" not in human
    assert "\u202e" not in human
    assert_private(home)


def test_all_projects(run: Run, made: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert run("sessions", "list", "--project", other, "--json").json()["sessions"] == []
    rows = run("sessions", "list", "--project", other, "--all", "--json").json()["sessions"]
    assert [row["project"] for row in rows] == [str(tmp_path / "project")]


# --- show


def test_a_conversation_with_what_was_decided(run: Run, made: str, home: Path) -> None:
    found = run("sessions", "show", made[:8], "--json").json()
    kinds = [step["kind"] for step in found["steps"]]
    assert kinds.count("user") == 4
    (stored,) = [step["facts"] for step in found["steps"] if step["kind"] == "stored"]
    path = Path(stored["path"])
    assert path.stat().st_size == stored["size"]
    assert (stored["tool"], stored["call"]) == ("Bash", "toolu_1")
    (failed,) = [step["facts"] for step in found["steps"] if step["kind"] == "failed"]
    assert failed["layer"] == "notes"
    (moved,) = [step["facts"]["reasons"] for step in found["steps"] if step["kind"] == "moved"]
    assert moved == ["rewound", "model"]
    states = {step["parts"][0]["text"]: step["state"] for step in found["steps"] if step["parts"]}
    assert states["Never mind"] == "left"
    assert states["Count them"] == "sent"


def test_what_people_see_obeys_nobody(run: Run, made: str, terminal: Any) -> None:
    for args in (("show", made), ("show", made, "--full"), ("export", made, "--format", "md")):
        shown = run("sessions", *args, code=0).out
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(shown)
    shown = run("sessions", "show", made).out
    assert "stored: result of Bash (toolu_1)" in shown
    assert "prefix moved: rewound, model" in shown
    assert "you · " in shown
    assert "left behind" in shown
    seen = terminal("sessions", "show", made)
    assert "]52;" not in seen
    assert "\x9b" not in seen
    assert "]52;" not in terminal("sessions", "list").replace("\\u001b]52;", "")


def test_colour_is_for_a_terminal_that_wants_it(run: Run, made: str, terminal: Any) -> None:
    colour = re.compile(r"\x1b\[[0-9;]*3[0-9]m")
    assert colour.search(terminal("sessions", "show", made))
    assert not colour.search(terminal("sessions", "show", made, env={"NO_COLOR": "1"}))
    assert "\x1b" not in run("sessions", "show", made).out


async def _shortened(project: Path) -> str:
    """Five rounds: one sealed, one snipped, the first part compacted, then the end of it."""
    async with open_session(project, model="test-model") as session:
        for n in range(5):
            await session.add(user(f"Wish {n}"))
            await session.prepare()
            await session.observe(reply(f"Answer {n}"))
            await session.end_turn()
        ids = [item.id for item in session.view.items if item.kind == "message"]
        lost = ("src/a.py", f"b{ESCAPES}", "c", "d", "e", "f")
        auto = Boundary("auto", 168_000, 21_400, fidelity=0.98, missing=lost, calls=2)
        asked = Boundary("manual", 21_500, 9_000, kept=(ids[0], ids[7], ""), fidelity=None)

        async def put(first: str, last: str, reason: str, **more: Any) -> None:
            stand = (Stand("user", (text_block(f"instead: {reason}"),)),)
            await session.append(Replaced(first, last, stand, reason, **more))

        await put(ids[2], ids[3], "snip", why="2 messages, as asked")
        await put(ids[4], ids[5], "collapse", why="the cache was cold")
        await put(ids[0], ids[5], "compaction", boundary=auto, why="auto, up to")
        await put(ids[8], ids[9], "session_memory", boundary=asked, why="manual, from")
        return session.id


def test_where_and_how_the_context_was_made_smaller(run: Run, project: Path, home: Path) -> None:
    made = anyio.run(_shortened, project)
    steps = run("sessions", "show", made, "--json").json()["steps"]
    snip, seal, first, last = [step for step in steps if step["kind"] == "replaced"]
    assert [step["state"] for step in (snip, seal, first, last)] == [
        *["replaced"] * 2,
        "sent",
        "sent",
    ]
    sides = ("messages", "before", "behind")
    assert [snip["facts"][side] for side in sides] == [2, 2, 6]
    assert [first["facts"][side] for side in sides] == [4, 0, 4]
    assert [last["facts"][side] for side in sides] == [2, 3, 0]
    assert "trigger" not in seal["facts"]
    known = {name: first["facts"][name] for name in ("trigger", "fidelity", "calls")}
    assert known == {"trigger": "auto", "fidelity": 0.98, "calls": 2}
    assert (first["facts"]["tokens_before"], first["facts"]["tokens_after"]) == (168_000, 21_400)
    assert len(first["facts"]["missing"]) == 6
    assert last["facts"]["kept"]["tail"] == ""
    shown = run("sessions", "show", made).out
    assert (
        "▪ snipped: 2 messages, as asked, 2 messages replaced (2 before and 6 behind stay)" in shown
    )
    assert "▪ sealed: the cache was cold, 2 messages replaced" in shown
    assert "▪ compacted automatically: 168,000 → 21,400 tokens, 2 calls to a model" in shown
    assert "fidelity 98%, 6 names missing: src/a.py, b" in shown
    assert "e and 1 more, 4 messages replaced (4 behind stay); the summary · " in shown
    assert "▪ compacted as asked: 21,500 → 9,000 tokens, 2 messages replaced (3 before" in shown
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    assert "d, e, f, 4 messages" in run("sessions", "show", made, "--full").out
    page = run("sessions", "export", made, "--format", "md").out
    assert "## The notes\n\n*compacted as asked: 21,500 → 9,000 tokens" in page


def test_the_request_byte_for_byte(run: Run, made: str, project: Path) -> None:
    async def prepared() -> Request:
        async with open_session(project, resume=made) as session:
            return await session.prepare()

    request = anyio.run(prepared)
    assert run("sessions", "show", made, "--request").out == request.body() + "\n"
    found = run("sessions", "show", made, "--request", "--json").json()
    assert found["request"] == json.loads(request.body())
    assert found["sendable"]


def test_the_lines_as_they_lie(run: Run, made: str) -> None:
    lies = library().folder.read(f"{made}.jsonl").decode()
    assert run("sessions", "show", made, "--raw").out == lies
    assert run("sessions", "show", made, "--raw", "--json").json()["lines"] == lies.splitlines()


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "",
        "*",
        "zz",
        "a/b",
        "%2e%2e",
        "x" * 5000,
        "\x1b[1m",
    ],
)
@pytest.mark.parametrize("command", ["show", "export"])
def test_a_hostile_id_is_refused(run: Run, name: str, command: str) -> None:
    done = run("sessions", command, "--", name, code=2)
    assert "not a session id" in done.err or "Give a session id" in done.err
    assert "\x1b" not in done.err


def test_a_beginning_must_be_of_one_session(run: Run, tmp_path: Path) -> None:
    for end in ("0", "1"):
        text = claude_row(f"3f2a0000-0000-4000-8000-00000000000{end}")
        (tmp_path / f"{end}.jsonl").write_text(text)
    run("sessions", "import", tmp_path / "0.jsonl", tmp_path / "1.jsonl", code=0)
    assert (
        "Several sessions have ids that begin like this"
        in run("sessions", "show", "3f2a", code=2).err
    )
    full = "3f2a0000-0000-4000-8000-000000000001"
    assert run("sessions", "show", full, "--json").json()["id"] == full
    assert run("sessions", "show", full.upper()[:36], "--json").json()["id"] == full


# --- torn and garbage


@pytest.mark.parametrize(
    "tail", [b'{"v":1,"id":"x"', b"\0" * 40, b"garbage\n", b'{"v":1}\n', b"\xff\xfe\n", b"[1]\n"]
)
def test_garbage_is_reported_and_never_fatal(run: Run, made: str, tail: bytes) -> None:
    file = library().path / f"{made}.jsonl"
    before = run("sessions", "show", made, "--request").out
    with file.open("ab") as opened:
        opened.write(tail)
    (row,) = run("sessions", "list", "--json").json()["sessions"]
    assert row["faults"] == 1
    done = run("sessions", "show", made, code=0)
    assert "is skipped" in done.err
    assert run("sessions", "show", made, "--request").out == before
    assert len(run("sessions", "show", made, "--raw", "--json").json()["faults"]) == 1
    for form in ("jsonl", "json", "md"):
        run("sessions", "export", made, "--format", form, code=0)


def test_a_transcript_that_is_no_file_is_left_out(run: Run, made: str) -> None:
    folder = library().path
    os.mkfifo(folder / "00000000-0000-4000-8000-000000000000.jsonl")
    (folder / "10000000-0000-4000-8000-000000000000.jsonl").symlink_to("/etc/passwd")
    rows = run("sessions", "list", "--json").json()["sessions"]
    assert [row["id"] for row in rows] == [made]
    run("sessions", "show", "0000", code=2)
    run("sessions", "show", "1000", code=2)


# --- prune


def age_by(days: float, session: str) -> None:
    file = library().path / f"{session}.jsonl"
    old = file.stat().st_mtime - days * 86_400
    os.utime(file, (old, old))


def test_old_sessions_go_and_memory_stays(run: Run, made: str, home: Path) -> None:
    memory = library().project / "memory"
    memory.mkdir(0o700)
    (memory / "MEMORY.md").write_text("- kept")
    os.chmod(memory / "MEMORY.md", 0o600)
    age_by(91, made)
    dry = run("sessions", "prune", "--dry-run", "--json").json()
    assert (dry["would_remove"], dry["removed"], dry["days"]) == ([made], [], 90)
    assert run("sessions", "prune", input="n\n", code=1).err == "Cancelled: nothing was changed.\n"
    assert run("sessions", "prune", "--json", code=2).error["type"] == "InvalidInput"
    assert run("sessions", "prune", "--older-than", "92", "--yes", "--json").json()["removed"] == []
    assert library().sessions()
    assert "1 session removed" in run("sessions", "prune", input="y\n", code=0).out
    assert library().sessions() == []
    assert not (library().path / made).exists()
    assert (memory / "MEMORY.md").read_text() == "- kept"
    assert_private(home)


def test_a_session_without_files_goes_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(claude_row("55550000-0000-4000-8000-000000000000"))
    run("sessions", "import", tmp_path / "x.jsonl", code=0)
    assert len(run("sessions", "prune", "--older-than", "0", "-y", "--json").json()["removed"]) == 1


def test_a_session_in_use_is_left_and_said(run: Run, made: str) -> None:
    age_by(91, made)
    code = (
        "import sys; from pathlib import Path\n"
        "from reverie.store.files import Folder; from reverie.store.journal import Journal\n"
        f"log = Journal.open(Folder(Path({str(library().path)!r})), '{made}.jsonl')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        found = run("sessions", "prune", "--yes", "--json").json()
        assert found["removed"] == []
        assert found["left"][0]["id"] == made
        assert "in use by" in found["left"][0]["why"].lower()
        assert made in run("sessions", "prune", "--yes").err
        other.communicate("")
    assert library().read(made).entries
    assert run("sessions", "prune", "--yes", "--json").json()["removed"] == [made]


def test_a_file_of_someone_else_stays(run: Run, made: str) -> None:
    age_by(91, made)
    folder = library().path / made
    (folder / "tool-results" / "link").symlink_to("/etc/passwd")
    run("sessions", "prune", "--yes", code=0)
    assert (folder / "tool-results" / "link").is_symlink()
    assert [path.name for path in folder.iterdir()] == ["tool-results"]


# --- as a process


def test_the_whole_way_as_processes(process: Run, made: str, recorded: Any) -> None:
    assert process("sessions", "import", recorded("9b76")).code == 0
    rows = process("sessions", "list", "--json").json()["sessions"]
    assert {row["id"] for row in rows} > {made}
    env = {"_REVERIE_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    env["COMP_WORDS"] = f"reverie sessions show {made[:6]}"
    assert process(env=env).out.split() == [f"plain,{made}"]
    assert process("sessions", "show", made, "--request").out.startswith('{"model":"other-model"')
