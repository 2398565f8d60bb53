"""`reverie chat` in pipes: prompts in, answers out, exit codes, and what is never done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spec("18.chat"), pytest.mark.usefixtures("welcomed")]


def reverie(
    folder: Path, *args: str, given: str | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reverie.apps.cli", *args]
    stdin: dict[str, Any] = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, **stdin, **options
    )


def sessions(home: Path) -> list[Path]:
    return sorted((home / "projects").glob("*/*.jsonl"))


# --- one prompt


def test_one_prompt_runs_tools_and_gives_the_answer_alone(project: Path) -> None:
    ran = reverie(project, "-p", "read notes.txt")
    assert ran.returncode == 0, ran.stderr
    assert "the code word is heron" in ran.stdout
    assert ran.stderr == ""


def test_json_and_stream_json_are_whole(project: Path) -> None:
    ran = reverie(project, "-p", "read notes.txt", "--output-format", "json")
    value = json.loads(ran.stdout)
    assert (value["type"], value["outcome"], value["rounds"]) == ("result", "completed", 2)
    assert (value["model"], value["usage"]["output"] > 0) == ("embedded", True)
    again = reverie(project, "-p", "read notes.txt", "--json", "--resume", value["session_id"][:8])
    assert json.loads(again.stdout)["session_id"] == value["session_id"]
    ran = reverie(project, "-p", "read notes.txt", "--output-format", "stream-json")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    kinds = [line["type"] for line in lines if line["type"] != "delta"]
    assert kinds == ["reply", "tool_started", "tool_ended", "reply", "result"]
    assert "heron" in lines[-1]["text"]


def test_a_pipe_is_a_prompt_and_joins_one(project: Path) -> None:
    ran = reverie(project, given="read notes.txt\n")
    assert "heron" in ran.stdout
    ran = reverie(project, "-p", "what did I ask first?", "--continue", given="")
    assert "read notes.txt" in ran.stdout
    ran = reverie(project, "--output-format", "json", "-p", "first part", given="second part")
    path = next(p for p in sessions(project.parent / "home") if "second part" in p.read_text())
    assert '"text":"first part\\n\\nsecond part"' in path.read_text()
    assert json.loads(ran.stdout)["session_id"] == path.stem


def test_continue_goes_on_with_the_newest_session(project: Path, home: Path) -> None:
    reverie(project, "-p", "read notes.txt")
    reverie(project, "-p", "hello", "--continue")
    (only,) = sessions(home)
    assert only.read_text().count('"read notes.txt"') == 1
    assert '"text":"hello"' in only.read_text()


# --- how it ends


def test_what_cannot_be_done_says_so_and_has_an_exit_code(project: Path, home: Path) -> None:
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
        ran = reverie(project, *args, given=given)
        assert (ran.returncode, said in ran.stderr) == (code, True), (args, ran)
        assert "Traceback" not in ran.stderr


def test_an_error_is_json_where_json_was_asked_for(project: Path) -> None:
    args = ("-p", "x", "--model", "claude-opus-5-5", "--output-format")
    ran = reverie(project, *args, "stream-json")
    value = json.loads(ran.stdout)
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
def test_broken_settings_are_said_and_the_prompt_runs(project: Path, home: Path, text: str) -> None:
    (home / "settings.json").write_text(text)
    ran = reverie(project, "-p", "read notes.txt")
    assert ran.returncode == 0
    assert "heron" in ran.stdout
    assert "settings.json" in ran.stderr
    assert "Traceback" not in ran.stderr


# --- permission, privacy, hooks


def test_a_pipe_is_asked_nothing_and_permitted_nothing(project: Path) -> None:
    ran = reverie(project, "-p", "run touch made.txt", "--output-format", "stream-json")
    assert "nobody can be asked" in ran.stdout
    assert not (project / "made.txt").exists()
    ran = reverie(project, "-p", "run touch made.txt", "--permission-mode", "allow")
    assert ran.returncode == 0
    assert (project / "made.txt").exists()


def test_private_records_nothing_that_was_said(project: Path, home: Path) -> None:
    (home / ".reverie-welcomed").unlink()
    ran = reverie(project, "-p", "my word is zebrafinch", "--private")
    assert ran.returncode == 0
    files = [p for p in home.rglob("*") if p.is_file()]
    assert not [p for p in files if b"zebrafinch" in p.read_bytes()]
    assert sessions(home) == []
    assert not (home / ".reverie-welcomed").exists()


@pytest.mark.spec("13.hooks")
def test_hooks_of_the_user_run_those_of_the_repository_do_not(project: Path, home: Path) -> None:
    def hook(command: str) -> str:
        return json.dumps({"hooks": {"UserPromptSubmit": [{"command": command}]}})

    (home / "settings.json").write_text(hook("echo 'not today' >&2; exit 2"))
    own = project / ".reverie"
    own.mkdir()
    (own / "settings.json").write_text(hook(f"touch {project}/owned"))
    ran = reverie(project, "-p", "hello")
    assert ran.returncode == 1
    assert "a hook blocked the prompt: not today" in ran.stderr
    assert "cannot run commands" in ran.stderr
    assert not (project / "owned").exists()
    assert reverie(project, "-p", "hello", "--bare").returncode == 0


# --- the first run


@pytest.mark.spec("18.first-run")
def test_the_first_run_says_what_is_stored_and_what_runs_once(project: Path, home: Path) -> None:
    (home / ".reverie-welcomed").unlink()
    first = reverie(project, "-p", "hello")
    for word in (str(home)[-20:], "recall", "dream", "2,000,000", "--private", "--bare", "flags"):
        assert word in first.stderr
    lines = first.stderr.splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) <= 80
    assert "first run" not in first.stdout
    assert reverie(project, "-p", "hello").stderr == ""
    assert oct(os.stat(home / ".reverie-welcomed").st_mode)[-3:] == "600"
