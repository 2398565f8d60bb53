from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.apps.cli import CHAT_OPTIONS, COMMANDS, LazyCommand, inert, json_text
from reverie.apps.cli.chat import chat
from reverie.text import age, clean, line, size
from tests.cli.conftest import Run
from tests.processes import loaded

pytestmark = pytest.mark.spec("18")

HEAVY = ("click", "rich", "anyio", "anthropic", "openai", "starlette", "uvicorn", "httpx2")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with commands of this test's own, put into the list."""
    text = """
import click
from reverie.errors import Held

@click.command()
@click.option("-p", "prompt", default="")
def chat(prompt):
    print(f"chat said {prompt!r}")

@click.command()
@click.option("--json", is_flag=True)
def held(json):
    raise Held("In use by \\x1b[31mnobody", where="x", do="Wait")

@click.command()
def stopped():
    raise KeyboardInterrupt

@click.command()
def broken():
    import no_such_module_at_all

@click.command()
def refused():
    open("/no/such/file")
"""
    (tmp_path / "own_commands.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("chat", "held", "stopped", "broken", "refused"):
        monkeypatch.setitem(COMMANDS, name, LazyCommand(f"own_commands:{name}", "of a test"))
    return tmp_path


def test_importing_the_program_imports_nothing_heavy() -> None:
    assert not loaded("import reverie.apps.cli") & {*HEAVY, "reverie.apps.cli.app"}


def test_help_imports_no_command(home: Path) -> None:
    names = loaded(
        "import contextlib\nfrom reverie.apps.cli.app import run\n"
        "with contextlib.suppress(SystemExit): run(['--help'])"
    )
    found = {name for name in names if name.startswith(("reverie.apps.cli.", "anthropic"))}
    assert found == {"reverie.apps.cli.app"}


def test_help_names_every_command_that_is_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "ghost", LazyCommand("reverie.apps.cli.ghost:ghost", "not there"))
    shown = run("--help", code=0).out
    for name in ("sessions", "config", "flags", "doctor", "simulate"):
        assert re.search(rf"^  {name} +\w", shown, re.MULTILINE)
    assert "ghost" not in shown
    assert "\x1b" not in shown
    assert run("ghost").code == 6


def test_help_shows_the_options_of_the_default_command(run: Run) -> None:
    shown = run("--help", code=0).out
    context = click.Context(chat)
    records = dict(filter(None, (option.get_help_record(context) for option in chat.params)))
    for name, about in CHAT_OPTIONS:
        assert records[name] == about
        assert re.search(rf"^  {re.escape(name)}  +{re.escape(about)}$", shown, re.MULTILINE)


def test_help_by_other_names(run: Run) -> None:
    assert run("-h", code=0).out == run("help", code=0).out == run("--help", code=0).out
    whole = run("sessions", "list", "--help", code=0).out
    assert "Usage: reverie sessions list" in whole
    assert run("help", "sessions", "list", code=0).out == whole
    assert run("sessions", "list", "-h", code=0).out == whole
    assert run("help", "sesions", code=2).out == ""


def test_version(process: Run) -> None:
    import reverie

    assert process("--version").out == f"reverie {reverie.__version__}\n"


@pytest.mark.parametrize(
    ("args", "said"), [([], ""), (["-p", "hello"], "hello"), (["chat", "-p", "x"], "x")]
)
def test_without_a_command_it_is_chat(run: Run, own: Path, args: list[str], said: str) -> None:
    assert run(*args, code=0).out == f"chat said {said!r}\n"


def test_an_unknown_command_is_named_with_what_may_be_meant(run: Run) -> None:
    done = run("sesions", code=2)
    assert done.out == ""
    assert "Did you mean 'sessions'?" in done.err
    assert run("sesions", "--json", code=2).error["exit_code"] == 2
    assert "Did you mean 'memory search'?" in run("search", "printer", code=2).err
    assert "Did you mean 'memory import' or 'sessions import'?" in run("import", code=2).err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["memory", "search", ""], ["nothing to search for", "Give a word"]),
        (["memory", "search", " ", " "], ["nothing to search for"]),
        (["memory", "list", "--project", "gone"], ["'gone' does not exist"]),
        (["memory", "list", "--project", "latin.txt"], ["'latin.txt' is a file"]),
        (["replay", "empty"], ["no session file in this folder (empty)", ".jsonl"]),
        (["sessions", "import", "empty"], ["no session file in this folder (empty)", ".jsonl"]),
        (["sessions", "import", "gone.jsonl"], ["No such file or directory (gone.jsonl)"]),
        (["simulate", "--script", "gone.json"], ["No such file or directory (gone.json)"]),
        (["simulate", "--script", "latin.txt"], ["no JSON", "(latin.txt)", "list of answers"]),
        (["cache", "zzz"], ["(zzz)", "`reverie sessions list`"]),
        (["flags", "set", "nope", "on"], ["(nope)", "`reverie flags`"]),
        (["config", "set", "retentionDays", "abc"], ["(retentionDays)", "It must be a number"]),
    ],
)
def test_a_wrong_command_is_told_what_is_wrong_and_what_to_do(
    run: Run, project: Path, args: list[str], said: list[str]
) -> None:
    (project / "empty").mkdir()
    (project / "latin.txt").write_bytes(b"caf\xe9 is the codename")
    done = run(*args)
    assert done.code != 0
    assert [one for one in said if one not in done.err] == []
    assert "Errno" not in done.err


def test_a_prompt_that_cannot_be_asked_is_told_why_and_what_to_do(process: Run) -> None:
    unknown = process("--resume", "12", "-p", "hi").err
    assert "(12). `reverie sessions list` shows the ids" in unknown
    keyless = process("--model", "nope", "-p", "hi").err
    assert [
        one for one in ("(nope)", "anthropic:NAME", "--model embedded") if one not in keyless
    ] == []


def test_a_text_that_is_no_utf_8_is_refused_and_not_saved_with_signs_lost(
    process: Run, project: Path
) -> None:
    (project / "latin.txt").write_bytes(b"caf\xe9 is the codename")
    with (project / "latin.txt").open("rb") as given:
        done = process("memory", "add", "-", stdin=given)
    assert done.code == 2
    assert "no UTF-8 text: byte 4 is 0xe9" in done.err
    assert "iconv" in done.err


def test_a_home_that_cannot_be_made_is_named_with_what_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_HOME", "/proc/reverie")
    said = run("memory", "add", "The printer is on floor 3", code=1).err
    assert "could not be made" in said
    assert "(/proc/reverie)" in said
    assert "REVERIE_HOME" in said


def test_an_error_is_one_sentence_and_its_own_exit_code(run: Run, own: Path) -> None:
    done = run("held", code=3)
    assert done.out == ""
    assert done.err == "reverie: In use by nobody (x). Wait\n"
    told = run("held", "--json", code=3).error
    assert told["type"] == "Held"
    assert (told["what"], told["where"], told["do"]) == ("In use by \x1b[31mnobody", "x", "Wait")


def test_a_traceback_is_shown_only_where_it_is_asked_for(
    run: Run, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Traceback" not in run("held").err
    monkeypatch.setenv("REVERIE_DEBUG", "1")
    assert "Traceback" in run("held", code=3).err


def test_interrupted_is_130(run: Run, own: Path) -> None:
    assert run("stopped", code=130).out == ""


def test_what_is_not_installed_is_named(run: Run, own: Path) -> None:
    (own / "own_missing.py").write_text("import no_such_module_at_all\n")
    COMMANDS["broken"] = LazyCommand("own_missing:broken", "of a test")
    done = run("broken", code=6)
    assert "no_such_module_at_all is not installed" in done.err


def test_the_systems_errors_are_sentences_too(run: Run, own: Path) -> None:
    done = run("refused", code=1)
    assert "/no/such/file" in done.err
    assert "Traceback" not in done.err


def test_nobody_reads_on(home: Path, project: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "reverie.apps.cli", "config", "list"],
        stdout=writes,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writes)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "at", "found"),
    [
        ("reverie se", 1, ["sessions"]),
        ("reverie sessions pr", 2, ["prune"]),
        ("reverie sessions list --al", 3, ["--all"]),
    ],
)
def test_the_shell_completes(process: Run, words: str, at: int, found: list[str]) -> None:
    env = {"_REVERIE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    assert process(env=env).out.split() == [f"plain,{name}" for name in found]


def test_completion_can_be_shown_and_installed(process: Run, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "SHELL": "/bin/zsh"}
    assert "_reverie_completion" in process("--show-completion", "bash", env=env).out
    assert "compdef" in process("--show-completion", env=env).out
    for _ in range(2):
        assert process("--install-completion", "bash", env=env).code == 0
    script = tmp_path / ".bash_completions" / "reverie.sh"
    assert "_REVERIE_COMPLETE" in script.read_text()
    assert (tmp_path / ".bashrc").read_text() == f"source '{script}'\n"
    assert process("--install-completion", "tcsh", env=env).code == 2
    unnamed = process("--install-completion", env=env | {"SHELL": ""})
    assert unnamed.code == 2
    assert "$SHELL" in unnamed.err


def test_colour_is_for_a_terminal(terminal: Any, process: Run) -> None:
    assert "\x1b[" in terminal("config", "list")
    assert "\x1b[1m" not in process("config", "list", env={"FORCE_COLOR": "1"}).out


# --- text of others

HOSTILE = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]52;c;cHduZWQ=\x07paste", "paste"),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x9b31mred", "red"),
    ("\x9d0;title\x9cafter", "after"),
    ("\x1bPdevice\x1b\\after", "after"),
    ("over\rwritten\x08\x07", "overwritten"),
    ("user\u202egnp.exe", "usergnp.exe"),
    ("lines\r\nand\ttabs\n", "lines\nand\ttabs\n"),
    ("unfinished \x1b[", "unfinished "),
    ("\x1bcreset", "reset"),
    ("half \ud83d a pair", "half \ufffd a pair"),
    ("日本語 ✓ é", "日本語 ✓ é"),
]


@pytest.mark.parametrize(("given", "shown"), HOSTILE)
def test_escapes_are_taken_out(given: str, shown: str) -> None:
    assert clean(given) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = clean(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert clean(shown) == shown
    shown.encode()


@given(st.text(st.characters(codec=None)))
def test_json_holds_the_same_text_in_a_harmless_spelling(text: str) -> None:
    written = json_text({"text": text})
    assert json.loads(written) == {"text": text}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", written)
    written.encode()
    assert json.loads(inert(json.dumps(text, ensure_ascii=False))) == text


def test_sizes_ages_and_lines() -> None:
    shown = [size(n) for n in (0, 999, 1_000, 12_345, 5 * 10**6)]
    assert shown == ["0 B", "999 B", "1.0 kB", "12 kB", "5.0 MB"]
    assert [age(n) for n in (-5, 59, 60, 7_200, 86_400 * 400)] == [
        "0 s",
        "59 s",
        "1 min",
        "2 h",
        "400 d",
    ]
    assert line("a\n b\x1b[1m  c", 4) == "a b…"
