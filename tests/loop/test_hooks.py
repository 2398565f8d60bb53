"""User hooks: commands with time limits, from trusted files alone."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.session import (
    EVENTS,
    MAX_CONTEXT,
    MAX_OUTPUT,
    Attachments,
    Hook,
    HookEvent,
    Hooks,
    ToolEnded,
    TurnEvent,
    TurnLimits,
    hooks_for,
    load_hooks,
    run_turn,
)
from reverie.store import Project, decide
from reverie.transcript import Attached, UserMessage
from reverie.world import Notice
from tests.faults import open_files
from tests.loop.stage import SimpleTools, alive, calls, echo, gone, opened, simulated, until

pytestmark = pytest.mark.spec("13.hooks")
ECHO = SimpleTools(echo=echo)


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def hooked(tmp: Path, *hooks: Hook, seconds: float = 30.0) -> tuple[Hooks, list[Notice]]:
    heard: list[Notice] = []
    return Hooks(hooks, session="s", cwd=str(tmp), seconds=seconds, say=heard.append), heard


# --- what a hook is told and what it may say


async def test_plain_text_is_context_but_no_verdict_on_a_call(tmp_path: Path) -> None:
    hooks, heard = hooked(tmp_path, *(Hook(e, "echo 'two tests fail'") for e in EVENTS))
    for event in EVENTS:
        verdict = await hooks.run(event, tool_name="Bash")
        judges = event == "PreToolUse"
        assert verdict.blocked is judges
        assert verdict.context == (() if judges else ("two tests fail",))
    assert [one.text for one in heard] == [heard[0].text]
    assert "not JSON" in heard[0].text


async def test_a_hook_is_told_what_happens_as_json(tmp_path: Path) -> None:
    hooks, heard = hooked(tmp_path, Hook("PreToolUse", "cat > told.json"))
    said = await hooks.run("PreToolUse", tool_name="Bash", tool_input={"command": "é\u2028"})
    assert json.loads((tmp_path / "told.json").read_text()) == {
        "event": "PreToolUse",
        "session_id": "s",
        "cwd": str(tmp_path),
        "tool_name": "Bash",
        "tool_input": {"command": "é\u2028"},
    }
    assert (said.blocked, said.context, heard) == (False, (), [])


@pytest.mark.parametrize(
    ("command", "blocked", "reason", "context"),
    [
        ("true", False, "", ()),
        ("""echo '{"decision": "allow"}'""", False, "", ()),
        ("""echo '{"decision": "block", "reason": "no"}'""", True, "no", ()),
        ("""echo '{"additionalContext": "use tabs"}'""", False, "", ("use tabs",)),
        ("echo 'not here' >&2; exit 2", True, "not here", ()),
        ("exit 2", True, "a hook blocked this", ()),
    ],
)
async def test_what_a_hook_may_say(
    tmp_path: Path, command: str, blocked: bool, reason: str, context: tuple[str, ...]
) -> None:
    hooks, heard = hooked(tmp_path, Hook("Stop", command))
    said = await hooks.run("Stop")
    assert (said.blocked, said.reason, said.context, heard) == (blocked, reason, context, [])


async def test_several_hooks_are_heard_in_the_order_of_the_files(tmp_path: Path) -> None:
    """They run side by side: the first waits for what the second does."""
    wait = "while ! test -e there; do sleep 0.01; done;"
    hooks, _ = hooked(
        tmp_path,
        Hook("Stop", wait + """echo '{"additionalContext": "first"}'"""),
        Hook("Stop", """touch there; echo '{"additionalContext": "second"}'"""),
        Hook("PreToolUse", "exit 2"),
    )
    assert (await hooks.run("Stop")).context == ("first", "second")


async def test_a_matcher_chooses_tools_by_their_whole_name(tmp_path: Path) -> None:
    import re

    hooks, _ = hooked(tmp_path, Hook("PreToolUse", "exit 2", re.compile("Ba.*|Edit")))
    for tool, blocked in (("Bash", True), ("Edit", True), ("MultiEdit", False), ("Read", False)):
        assert (await hooks.run("PreToolUse", tool_name=tool)).blocked is blocked


# --- bad hooks


@pytest.mark.spec("13.hook-verdict")
@pytest.mark.parametrize(
    ("command", "seconds", "said"),
    [
        ("sleep 1000", 0.2, "took longer than 0.2 s"),
        ("trap '' TERM INT; sleep 1000; sleep 1000", 0.2, "took longer"),
        ("kill -SEGV $$", 30, "status"),
        ("exit 7", 30, "status 7"),
        ("no-such-command-anywhere", 30, "status 127"),
        ("head -c 3000000 /dev/zero", 30, "printed more than"),
        ("head -c 3000000 /dev/zero >&2", 30, "printed more than"),
        ("yes", 30, "printed more than"),
        ("echo '[1]'", 30, "not a JSON object"),
        ("""echo '{"decision": "maybe"}'""", 30, "decision must be"),
        ("python3 -c 'print(\"[\" * 100000)'", 30, "not used"),
        ("printf '\\377\\376'", 30, "not JSON"),
    ],
)
@pytest.mark.parametrize("event", ["PreToolUse", "Stop"])
async def test_a_bad_hook_is_reported_never_fatal_and_allows_no_call(
    tmp_path: Path, command: str, seconds: float, said: str, event: HookEvent
) -> None:
    hooks, heard = hooked(tmp_path, Hook(event, command), seconds=seconds)
    verdict = await hooks.run(event, tool_name="Bash")
    judges = event == "PreToolUse"
    assert verdict.blocked is judges
    assert (said in verdict.reason) is judges
    assert len(heard) == 1
    assert said in heard[0].text
    assert ("the call is blocked" if judges else "the session goes on") in heard[0].text


async def test_output_up_to_the_limit_is_read_and_context_is_bounded(tmp_path: Path) -> None:
    size = MAX_OUTPUT - 100
    text = f"""python3 -c 'print("{{\\"additionalContext\\": \\"" + "x" * {size} + "\\"}}")'"""
    hooks, heard = hooked(tmp_path, Hook("Stop", text))
    (context,) = (await hooks.run("Stop")).context
    assert heard == []
    assert context.startswith("x" * MAX_CONTEXT + "\n[cut")
    assert len(context) < MAX_CONTEXT + 50


async def test_a_hook_that_reads_nothing_of_a_large_event_is_fine(tmp_path: Path) -> None:
    hooks, heard = hooked(tmp_path, Hook("PostToolUse", "true"))
    await hooks.run("PostToolUse", tool_response="x" * 3_000_000)
    assert heard == []


async def test_a_hook_in_a_folder_that_is_gone_is_reported(tmp_path: Path) -> None:
    hooks, heard = hooked(tmp_path / "gone", Hook("Stop", "true"))
    assert not (await hooks.run("Stop")).blocked
    assert "could not be started" in heard[0].text


@pytest.mark.parametrize(
    "how", ["limit", "cancel", "leaves a child", "leaves a daemon", "leaves its session"]
)
async def test_nothing_of_a_hook_is_left(tmp_path: Path, how: str) -> None:
    marker = f"1000.{os.getpid()}{abs(hash(how)) % 10_000}"
    commands = {
        "leaves a child": f"sleep {marker} & true",
        "leaves its session": f"setsid sleep {marker} >/dev/null 2>&1 & sleep 0.2; true",
        "leaves a daemon": f"sh -c 'sleep {marker}' & sh -c 'sleep {marker}' & true",
    }
    command = commands.get(how, f"touch there; sleep {marker} | sleep {marker}")
    hooks, _ = hooked(tmp_path, Hook("Stop", command), seconds=0.3 if how == "limit" else 30)
    before = open_files()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(hooks.run, "Stop")
            if how == "cancel":
                await until((tmp_path / "there").exists)
                scope.cancel()
    await gone(marker)
    assert (open_files() or 0) <= (before or 0)


async def test_a_hook_ends_with_a_program_that_was_killed(tmp_path: Path) -> None:
    marker = f"1000.{os.getpid()}77"
    code = (
        "import anyio\n"
        "from reverie.session.hooks import Hook, Hooks\n"
        f"hooks = Hooks([Hook('Stop', 'sleep {marker} | sleep {marker}')], cwd='.')\n"
        "anyio.run(hooks.run, 'Stop')\n"
    )
    child = await anyio.open_process([sys.executable, "-c", code], cwd=tmp_path, stdin=None)
    await until(lambda: len(alive(marker)) > 3)  # our program, the shell, both of its children
    child.send_signal(signal.SIGKILL)
    await child.wait()
    await gone(marker)


# --- which files may name hooks


def hook_files(tmp: Path) -> dict[str, Path]:
    return {
        "policy": tmp / "policy.json",
        "local": tmp / "project" / ".reverie" / "settings.local.json",
        "project": tmp / "project" / ".reverie" / "settings.json",
        "user": tmp / "home" / "settings.json",
    }


def loaded(tmp: Path) -> tuple[list[str], list[str]]:
    found, problems = load_hooks(
        home=tmp / "home", root=tmp / "project", policy=tmp / "policy.json"
    )
    return [h.command for h in found], [str(p) for p in problems]


def test_only_files_that_a_repository_cannot_bring_may_name_hooks(tmp_path: Path) -> None:
    files = hook_files(tmp_path)
    for name, path in files.items():
        write(path, {"hooks": {"Stop": [{"command": f"from {name}"}]}})
    commands, problems = loaded(tmp_path)
    assert commands == ["from policy", "from user"]
    assert [
        f"{files[name]}: hooks: ignored" in problem
        for name, problem in zip(("local", "project"), problems, strict=True)
    ] == [True, True]
    assert all("cannot run commands" in problem for problem in problems)
    decide(tmp_path / "home", files["local"], files["local"].read_bytes(), trusted=True)
    commands, problems = loaded(tmp_path)
    assert commands == ["from policy", "from local", "from user"]
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ("echo", "must be an object"),
        ({"Sometimes": []}, "unknown; one of SessionStart"),
        ({"Stop": {"command": "x"}}, "must be a list"),
        ({"Stop": ["x"]}, "must be an object with a command"),
        ({"Stop": [{}]}, "command must be a text"),
        ({"Stop": [{"command": "  "}]}, "command must be a text"),
        ({"Stop": [{"command": "x\0y"}]}, "command must be a text"),
        ({"Stop": [{"command": "x", "matcher": 3}]}, "matcher must be a text"),
        ({"Stop": [{"command": "x", "matcher": "("}]}, "not a valid regular expression"),
        ({"Stop": [{"command": "x", "timeout": "5"}]}, "timeout must be a number"),
        ({"Stop": [{"command": "x", "timeout": True}]}, "timeout must be a number"),
        ({"Stop": [{"command": "x", "timeout": -1}]}, "between 0 and"),
        ({"Stop": [{"command": "x", "timeouts": 1}]}, "unknown key timeouts"),
    ],
)
def test_a_hook_that_cannot_be_read_is_named_and_the_others_hold(
    tmp_path: Path, hooks: Any, said: str
) -> None:
    write(tmp_path / "policy.json", {"hooks": hooks})
    write(tmp_path / "home" / "settings.json", {"hooks": {"Stop": [{"command": "good"}]}})
    commands, problems = loaded(tmp_path)
    assert commands == ["good"]
    assert len(problems) == 1
    assert said in problems[0]


def test_every_event_of_the_list_can_be_configured(tmp_path: Path) -> None:
    rows = [{"matcher": "Bash", "command": "x", "timeout": 5}]
    write(tmp_path / "home" / "settings.json", {"hooks": dict.fromkeys(EVENTS, rows)})
    assert loaded(tmp_path) == (["x"] * 7, [])


def test_simple_mode_has_no_hooks(tmp_path: Path) -> None:
    write(tmp_path / "home" / "settings.json", {"hooks": {"Stop": [{"command": "x"}]}})
    project = Project.at(tmp_path, home=tmp_path / "home", environ={})
    assert len(hooks_for("s", project)) == 1
    simple = replace(project, settings=replace(project.settings, simple=True))
    assert len(hooks_for("s", simple)) == 0


# --- in a turn


async def test_a_denied_call_does_not_run_and_the_model_is_told(tmp_path: Path) -> None:
    tools = SimpleTools(echo=echo)
    model = simulated(calls(("echo", {"text": "a"}), ("echo", {"text": "b"})), "done")
    deny_a = """grep -q '"text":"a"' && { echo 'not a' >&2; exit 2; } || true"""
    hooks, _ = hooked(tmp_path, Hook("PreToolUse", deny_a))
    seen: list[TurnEvent] = []
    async with opened(tmp_path, model) as session:
        await run_turn(session, model, tools, "go", hooks=hooks, on_event=seen.append)
    assert tools.ran == ["echo"]
    assert sorted((e.is_error, e.text) for e in seen if isinstance(e, ToolEnded)) == [
        (False, "echo b"),
        (True, "A hook of the user's denied this call. not a"),
    ]


async def test_what_a_hook_gives_stands_behind_what_is_attached(tmp_path: Path) -> None:
    write(tmp_path / ".reverie" / "plan.md", "1. ship\n")
    hooks, _ = hooked(tmp_path, Hook("UserPromptSubmit", "echo 'two tests fail'"))
    model, attachments = simulated("done"), Attachments(tmp_path, bytes_each=1_000)
    async with opened(tmp_path, model) as session:
        await run_turn(session, model, ECHO, "go", hooks=hooks, attachments=attachments)
        kinds = [e.record.kind for e in session.view.entries if isinstance(e.record, Attached)]
    assert kinds == ["plan", "hook"]
    body = model.engine.log[0].body
    assert body.index("1. ship") < body.index("two tests fail")


async def test_a_prompt_can_be_blocked_or_given_context(tmp_path: Path) -> None:
    model = simulated("fine")
    block = Hook("UserPromptSubmit", "grep -q secret && { echo 'no secrets' >&2; exit 2; }; true")
    add = Hook("UserPromptSubmit", """echo '{"additionalContext": "hi </hook-context> there"}'""")
    hooks, _ = hooked(tmp_path, block, add)
    async with opened(tmp_path, model) as session:
        before = len(session.view.entries)
        result = await run_turn(session, model, ECHO, "my secret", hooks=hooks)
        assert (result.outcome, result.reason) == ("blocked", "no secrets")
        assert len(session.view.entries) == before
        assert model.engine.log == []
        result = await run_turn(session, model, ECHO, "hello", hooks=hooks)
        assert result.outcome == "completed"
    assert model.engine.log[0].body.count("</hook-context>") == 1
    assert "hi &lt;/hook-context> there" in model.engine.log[0].body


async def test_what_a_hook_says_after_a_call_reaches_the_model(tmp_path: Path) -> None:
    model = simulated(calls(("echo", {"text": "a"})), "done")
    after = Hook(
        "PostToolUse",
        """grep -q '"tool_response":"echo a"' && echo "{\\"decision\\":"""
        """ \\"block\\", \\"reason\\": \\"lint failed\\"}" """,
    )
    hooks, heard = hooked(tmp_path, after)
    async with opened(tmp_path, model) as session:
        await run_turn(session, model, ECHO, "go", hooks=hooks)
        kinds = [e.record.kind for e in session.view.entries if isinstance(e.record, Attached)]
    assert heard == []
    assert kinds == ["hook"]
    assert "lint failed" in model.engine.log[1].body


async def test_a_stop_hook_may_ask_for_more_but_not_for_ever(tmp_path: Path) -> None:
    model = simulated(otherwise="done")
    more = Hook("Stop", """echo '{"decision": "block", "reason": "run the tests"}'""")
    hooks, _ = hooked(tmp_path, more)
    async with opened(tmp_path, model) as session:
        limits = TurnLimits(goes_on=2)
        result = await run_turn(session, model, ECHO, "go", hooks=hooks, limits=limits)
        asked = [
            e.record
            for e in session.view.entries
            if isinstance(e.record, UserMessage) and e.record.origin == "hook"
        ]
    assert (result.outcome, result.rounds, len(asked)) == ("completed", 3, 2)
