"""Hooks in Claude Code's own form and from its own files: a deny hook guards here as there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.session import Hooks, hooks_for, load_hooks
from reverie.settings import DEFAULTS, claude_settings
from reverie.store import Project, decide
from reverie.world import Notice
from tests.loop.test_hooks import write

pytestmark = pytest.mark.spec("13.claude-hooks")


class Place:
    def __init__(self, tmp: Path) -> None:
        self.home, self.top, self.user = tmp / "home", tmp / "repo", tmp / "user"
        self.top.mkdir()
        self.environ = {"HOME": str(self.user)}
        self.notices: list[Notice] = []

    def hooks(self) -> Hooks:
        none = self.home / "none"
        claude = claude_settings(self.home, self.top, self.environ, managed=none)
        return hooks_for(
            "s",
            Project.at(self.top, home=self.home, environ=self.environ, settings=DEFAULTS),
            say=self.notices.append,
            policy=none,
            claude=claude,
            transcript="/t.jsonl",
        )

    def write(self, **events: Any) -> Path:
        return write(self.user / ".claude" / "settings.json", {"hooks": events})

    @property
    def told(self) -> str:
        return "\n".join(one.text for one in self.notices)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def command(line: str, matcher: str | None = None, **more: Any) -> list[Any]:
    entry = {"hooks": [{"type": "command", "command": line, **more}]}
    return [entry if matcher is None else {"matcher": matcher, **entry}]


def answered(**value: Any) -> str:
    return f"echo '{json.dumps(value)}'"


async def test_a_deny_hook_of_the_users_guards_here_too(place: Place) -> None:
    """As its documentation has it: read the command, and say no by JSON or by status 2."""
    deny = "grep -q 'rm -rf' && { echo 'not that' >&2; exit 2; } || true"
    place.write(PreToolUse=command(deny, "Bash"))
    hooks = place.hooks()
    bad = await hooks.run("PreToolUse", tool_name="Bash", tool_input={"command": "rm -rf /"})
    assert (bad.blocked, bad.reason) == (True, "not that")
    good = await hooks.run("PreToolUse", tool_name="Bash", tool_input={"command": "ls"})
    assert not good.blocked
    assert not (await hooks.run("PreToolUse", tool_name="Read", tool_input={})).blocked


def judged(decision: str, why: str) -> dict[str, Any]:
    known = {"permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": known}


@pytest.mark.parametrize(
    ("answer", "blocked", "reason"),
    [
        (judged("deny", "no"), True, "no"),
        (judged("ask", "who?"), True, "who?"),
        (judged("allow", ""), False, ""),
        ({"decision": "block", "reason": "no"}, True, "no"),
        ({"decision": "approve"}, False, ""),
        ({"continue": False, "stopReason": "enough"}, True, "enough"),
        ({"suppressOutput": True}, False, ""),
    ],
)
async def test_its_answers_are_understood(
    place: Place, answer: dict[str, Any], blocked: bool, reason: str
) -> None:
    place.write(PreToolUse=command(answered(**answer), "*"))
    found = await place.hooks().run("PreToolUse", tool_name="Bash", tool_input={})
    assert (found.blocked, found.reason) == (blocked, reason)
    assert place.told == ""


@pytest.mark.parametrize("line", ["exit 1", "sleep 60", "echo '{broken'", "yes"])
async def test_one_without_a_verdict_still_blocks(place: Place, line: str) -> None:
    place.write(PreToolUse=command(line, timeout=0.5))
    assert (await place.hooks().run("PreToolUse", tool_name="Bash")).blocked


async def test_it_is_told_in_its_own_words_and_plain_text_is_context(place: Place) -> None:
    told = 'cat > "$CLAUDE_PROJECT_DIR/told.json"; echo three tests fail'
    place.write(UserPromptSubmit=command(told))
    found = await place.hooks().run("UserPromptSubmit", prompt="hello")
    assert found.context == ("three tests fail",)
    assert json.loads((place.top / "told.json").read_text()) == {
        "hook_event_name": "UserPromptSubmit",
        "transcript_path": "/t.jsonl",
        "session_id": "s",
        "cwd": str(place.top),
        "prompt": "hello",
    }
    added = answered(hookSpecificOutput={"additionalContext": "from within"})
    place.write(SessionStart=command(added, "startup|clear"))
    hooks = place.hooks()
    assert (await hooks.run("SessionStart", source="startup")).context == ("from within",)
    assert (await hooks.run("SessionStart", source="resume")).context == ()


async def test_what_a_repository_brings_runs_only_once_it_is_trusted(place: Place) -> None:
    value = {"hooks": {"PreToolUse": command("exit 2")}}
    for name in ("settings.json", "settings.local.json"):
        path = write(place.top / ".claude" / name, value)
        assert not (await place.hooks().run("PreToolUse", tool_name="Bash")).blocked
        assert "cannot run commands" in place.told
        decide(place.home, path, path.read_bytes(), trusted=True)
        assert (await place.hooks().run("PreToolUse", tool_name="Bash")).blocked
        decide(place.home, path, path.read_bytes(), trusted=False)
        place.notices.clear()
        assert len(place.hooks()) == 0
        assert place.told == ""
        path.unlink()


def test_our_own_settings_take_that_form_too_and_our_own_program_is_left_out(place: Place) -> None:
    both = [*command("true", "Bash"), {"command": "true"}]
    write(place.home / "settings.json", {"hooks": {"PreToolUse": both}})
    ours = (
        "/usr/bin/python3 -I -m reverie.apps.hook",
        "[ -x /a ] || exit 0; exec '/a b/reverie' hook",
    )
    place.write(
        Stop=[*command(ours[0]), *command(ours[1])],
        SessionEnd=command("true"),
        UserPromptSubmit=command("notify 'no reverie hook' here"),
    )
    assert len(place.hooks()) == 3
    assert place.told == ""


def test_what_cannot_be_run_is_named(place: Place) -> None:
    rows = [{"hooks": [{"type": "prompt", "prompt": "is it safe?"}, 5, {"type": "command"}]}]
    place.write(PreToolUse=rows)
    assert len(place.hooks()) == 0
    assert "type prompt is not run here" in place.told
    assert place.told.count("PreToolUse") == 3


def test_switched_off_there_they_are_off_here(place: Place) -> None:
    value = {"disableAllHooks": True, "hooks": {"PreToolUse": command("exit 2")}}
    write(place.user / ".claude" / "settings.json", value)
    claude = claude_settings(place.home, place.top, place.environ)
    assert load_hooks(home=place.home, root=None, claude=claude)[0] == ()
