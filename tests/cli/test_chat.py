"""`reverie chat` in pipes: prompts in, answers out, exit codes, and what is never done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = [pytest.mark.spec("18.chat"), pytest.mark.usefixtures("welcomed")]


def sessions(home: Path) -> list[Path]:
    return sorted((home / "projects").glob("*/*.jsonl"))


# --- one prompt


def test_one_prompt_runs_tools_and_gives_the_answer_alone(process: Run) -> None:
    ran = process("-p", "read notes.txt")
    assert ran.code == 0, ran.err
    assert "the code word is heron" in ran.out
    assert ran.err == ""


def test_json_and_stream_json_are_whole(process: Run) -> None:
    ran = process("-p", "read notes.txt", "--output-format", "json")
    value = json.loads(ran.out)
    assert (value["type"], value["outcome"], value["rounds"]) == ("result", "completed", 2)
    assert (value["model"], value["usage"]["output"] > 0) == ("embedded", True)
    again = process("-p", "read notes.txt", "--json", "--resume", value["session_id"][:8])
    assert json.loads(again.out)["session_id"] == value["session_id"]
    ran = process("-p", "read notes.txt", "--output-format", "stream-json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    kinds = [line["type"] for line in lines if line["type"] != "delta"]
    assert kinds == ["reply", "tool_started", "tool_ended", "reply", "result"]
    assert "heron" in lines[-1]["text"]


def test_a_pipe_is_a_prompt_and_joins_one(process: Run, project: Path) -> None:
    ran = process(input="read notes.txt\n")
    assert "heron" in ran.out
    ran = process("-p", "what did I ask first?", "--continue", input="")
    assert "read notes.txt" in ran.out
    ran = process("--output-format", "json", "-p", "first part", input="second part")
    path = next(p for p in sessions(project.parent / "home") if "second part" in p.read_text())
    assert '"text":"first part\\n\\nsecond part"' in path.read_text()
    assert json.loads(ran.out)["session_id"] == path.stem


def test_continue_goes_on_with_the_newest_session(process: Run, home: Path) -> None:
    process("-p", "read notes.txt")
    process("-p", "hello", "--continue")
    (only,) = sessions(home)
    assert only.read_text().count('"read notes.txt"') == 1
    assert '"text":"hello"' in only.read_text()


# --- how it ends


def test_what_cannot_be_done_says_so_and_has_an_exit_code(process: Run, home: Path) -> None:
    cases: list[tuple[tuple[str, ...], str, int, str]] = [
        (("-p", "  "), "", 2, "the prompt is empty"),
        ((), " \n", 2, "the prompt is empty"),
        (("-p", "x", "--resume", "0badcafe"), "", 2, "no such session"),
        (("-p", "x", "--continue"), "", 2, "no sessions yet"),
        (("-p", "x", "--continue", "--resume", "0badcafe"), "", 2, "cannot be used together"),
        (("-p", "x", "--model", "claude-opus-5-5"), "", 7, "key"),
        (("-p", "x", "--max-cost", "1"), "", 4, "stopped at a limit"),
        (("-p", "read notes.txt", "--max-rounds", "1"), "", 4, "1 round\n"),
    ]
    for args, given, code, said in cases:
        ran = process(*args, input=given)
        assert (ran.code, said in ran.err) == (code, True), (args, ran)
        assert "Traceback" not in ran.err


def test_an_error_is_json_where_json_was_asked_for(process: Run) -> None:
    args = ("-p", "x", "--model", "claude-opus-5-5", "--output-format")
    ran = process(*args, "stream-json")
    value = json.loads(ran.out)
    assert (value["type"], value["error"], value["exit_code"]) == ("error", "AuthFailed", 7)


def test_a_working_folder_that_is_gone(project: Path) -> None:
    code = "import os, sys; os.rmdir(os.getcwd()); sys.argv[1:] = ['-p', 'x']; "
    code += "from reverie.apps.cli import main; main()"
    gone = project / "gone"
    gone.mkdir()
    command = [sys.executable, "-c", code]
    ran = subprocess.run(
        command, cwd=gone, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert ran.returncode == 2
    assert "the working folder is not there" in ran.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"resultCharacters": "many", "colour": 1}'])
def test_broken_settings_are_said_and_the_prompt_runs(process: Run, home: Path, text: str) -> None:
    (home / "settings.json").write_text(text)
    ran = process("-p", "read notes.txt")
    assert ran.code == 0
    assert "heron" in ran.out
    assert "settings.json" in ran.err
    assert "Traceback" not in ran.err


# --- permission, privacy, hooks


def test_a_pipe_is_asked_nothing_and_permitted_nothing(process: Run, project: Path) -> None:
    ran = process("-p", "run touch made.txt", "--output-format", "stream-json")
    assert "nobody can be asked" in ran.out
    assert not (project / "made.txt").exists()
    ran = process("-p", "run touch made.txt", "--permission-mode", "allow")
    assert ran.code == 0
    assert (project / "made.txt").exists()


def test_private_records_nothing_that_was_said(process: Run, home: Path) -> None:
    (home / ".reverie-welcomed").unlink()
    ran = process("-p", "my word is zebrafinch", "--private")
    assert ran.code == 0
    files = [p for p in home.rglob("*") if p.is_file()]
    assert not [p for p in files if b"zebrafinch" in p.read_bytes()]
    assert sessions(home) == []
    assert not (home / ".reverie-welcomed").exists()


@pytest.mark.spec("13.hooks")
def test_hooks_of_the_user_run_those_of_the_repository_do_not(
    process: Run, project: Path, home: Path
) -> None:
    def hook(command: str) -> str:
        return json.dumps({"hooks": {"UserPromptSubmit": [{"command": command}]}})

    (home / "settings.json").write_text(hook("echo 'not today' >&2; exit 2"))
    own = project / ".reverie"
    own.mkdir()
    (own / "settings.json").write_text(hook(f"touch {project}/owned"))
    ran = process("-p", "hello")
    assert ran.code == 1
    assert "a hook blocked the prompt: not today" in ran.err
    assert "cannot run commands" in ran.err
    assert not (project / "owned").exists()
    assert process("-p", "hello", "--bare").code == 0


# --- the first run


@pytest.mark.spec("18.first-run")
def test_the_first_run_says_what_is_stored_and_what_runs_once(process: Run, home: Path) -> None:
    (home / ".reverie-welcomed").unlink()
    first = process("-p", "hello")
    for word in (str(home)[-20:], "recall", "dream", "2,000,000", "--private", "--bare", "flags"):
        assert word in first.err
    lines = first.err.splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) <= 80
    assert "first run" not in first.out
    assert process("-p", "hello").err == ""
    assert oct(os.stat(home / ".reverie-welcomed").st_mode)[-3:] == "600"
