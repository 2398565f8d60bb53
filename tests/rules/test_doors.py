"""Rules at the doors: the hook, one's own loop, the check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.apps.hook import before_call
from reverie.consolidation import CheckInput, check
from reverie.memory import set_level
from reverie.rules import FOLDER
from reverie.store import MemoryStore, Project, RuleStore
from reverie.testing import ScriptedModel, call, reply
from reverie.wire import ToolCall
from tests.rules.stage import USER, memories_in, project_of, push_rule

MAIN = {"command": "git push origin main"}


# --- the hook


def hook(tmp: Path, given: Any, **event: Any) -> tuple[str, str]:
    """The decision of the hook and its reason; nothing where the call goes its way."""
    told = {"session_id": "s1", "cwd": str(project_of(tmp)), "tool_name": "Bash", **event}
    environ = {"REVERIE_HOME": str(tmp / "home"), "HOME": str(tmp)}
    ran = subprocess.run(
        [sys.executable, "-I", "-S", before_call.__file__],
        input=json.dumps({**told, "tool_input": given}).encode(),
        capture_output=True,
        env=environ,
        check=True,
    )
    if not ran.stdout:
        return "", ran.stderr.decode()
    answer = json.loads(ran.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PreToolUse"
    return answer["permissionDecision"], answer["permissionDecisionReason"]


@pytest.fixture
def ruled(tmp_path: Path) -> Path:
    """A project with one rule; its memory is closed, and so compiled."""
    with memories_in(tmp_path) as memories:
        push_rule(memories)
    return tmp_path


@pytest.mark.spec("B20.hook")
def test_the_hook_holds_once_and_counts(ruled: Path) -> None:
    first, reason = hook(ruled, MAIN)
    assert (first, "> Never push to main: it deploys." in reason) == ("deny", True)
    assert hook(ruled, MAIN) == ("", "")
    assert hook(ruled, {"command": "git push origin fix"}) == ("", "")
    assert hook(ruled, MAIN, session_id="s2")[0] == "deny"
    with memories_in(ruled) as memories:
        counts = RuleStore(memories, project_of(ruled)).counts()["push.md"]
    assert dict(counts.total) == {"matched": 3, "held": 2, "broken": 1}


RESULT = '{"type":"user","message":{"content":[{"type":"tool_result"}]},"uuid":"other"}\n'
TURNS: dict[str, list[Any]] = {  # what is written down, and what the calls behind it get
    "it holds anew when the user has spoken": [
        (["push", RESULT], ["deny", ""]),
        (["again"], ["deny"]),
    ],
    "words written down late are no other turn": [
        ([], ["deny"]),
        (["push"], [""]),
        (["again"], ["deny"]),
    ],
    "a call made again passes though only older words stood there": [
        (["hello"], ["deny"]),  # of the turn before
        (["push"], ["", ""]),  # what this turn began with
        (["again"], ["deny"]),
    ],
}


@pytest.mark.spec("B20.hook")
@pytest.mark.parametrize("name", TURNS)
def test_the_hook_holds_once_a_turn(ruled: Path, name: str) -> None:
    transcript = ruled / "transcript.jsonl"
    row = '{"type":"user","message":{"content":"%s"},"uuid":"%s"}\n'
    told = {"transcript_path": str(transcript)}
    for number, (written, decisions) in enumerate(TURNS[name]):
        for one in written:
            with transcript.open("a") as file:
                file.write(one if one == RESULT else row % (one, str(number) * 36))
        assert [hook(ruled, MAIN, **told)[0] for _ in decisions] == decisions


@pytest.mark.spec("B20.hook")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("trap", ["a pipe", "an endless file", "not registered"])
def test_a_folder_that_claims_to_be_a_worktree_has_no_rules_of_others(
    ruled: Path, trap: str
) -> None:
    """An archive may hold a `.git` that leads into a repository of the user's, or nowhere good."""
    project, unpacked = project_of(ruled), ruled / "unpacked"
    tree = project / ".git" / "worktrees" / "t"
    tree.mkdir(parents=True)
    (tree / "commondir").write_text("../..\n")
    (tree / "gitdir").write_text(f"{ruled}/elsewhere/.git\n")
    (unpacked / "far").mkdir(parents=True)
    far = unpacked / "far" / "commondir"
    if trap == "a pipe":
        os.mkfifo(far)
    elif trap == "an endless file":
        far.symlink_to("/dev/zero")
    else:
        far = tree / "commondir"
    (unpacked / ".git").write_text(f"gitdir: {far.parent}\n")
    os.mkfifo(ruled / "transcript")  # and no transcript is waited for either
    where = {"cwd": str(unpacked), "transcript_path": str(ruled / "transcript")}
    assert hook(ruled, MAIN, **where) == ("", "")


@pytest.mark.spec("B20.hook")
def test_the_hook_asks_and_blocks_as_the_user_set_it(ruled: Path) -> None:
    with memories_in(ruled) as memories:
        set_level(memories, "push.md", "ask", USER)
    assert [hook(ruled, MAIN)[0] for _ in range(2)] == ["ask", "ask"]
    with memories_in(ruled) as memories:
        set_level(memories, "push.md", "block", USER)
    assert [hook(ruled, MAIN)[0] for _ in range(3)] == ["deny"] * 3
    with memories_in(ruled) as memories:
        memories.remove("push.md", USER)
    assert hook(ruled, MAIN) == ("", "")


@pytest.mark.spec("B20.hook")
def test_a_worktree_has_the_rules_of_its_repository(ruled: Path) -> None:
    project = project_of(ruled)
    git = ["git", "-C", str(project), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    tree = str(ruled / "tree")
    for args in ("init -q", "commit -q --allow-empty -m x", f"worktree add -q {tree}"):
        subprocess.run([*git, *args.split()], check=True, capture_output=True)
    (ruled / "tree" / "src").mkdir()
    assert hook(ruled, MAIN, cwd=str(ruled / "tree" / "src"))[0] == "deny"


@pytest.mark.spec("B20.hook")
@pytest.mark.parametrize("damage", ["empty", "torn", "other", "folder"])
def test_a_hook_that_cannot_read_its_rules_holds_nothing(ruled: Path, damage: str) -> None:
    (path,) = (ruled / "home" / FOLDER).glob("*.rules")
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"empty": b"", "torn": path.read_bytes()[:40], "other": b"[]\n"}[damage])
    assert hook(ruled, MAIN)[0] == ""


@pytest.mark.spec("B20.hook")
def test_a_hook_is_not_led_astray_by_its_event(ruled: Path) -> None:
    for event in ({"session_id": "../../x"}, {"cwd": "/nowhere"}, {"tool_name": None}):
        hook(ruled, MAIN, **event)
    for given in (None, [], "git push origin main"):
        hook(ruled, given)
    assert not list(ruled.glob("x*"))


@pytest.mark.spec("B20.hook")
def test_the_hook_loads_leaves_and_no_engine(ruled: Path) -> None:
    code = (
        "import sys, runpy; sys.argv = ['x']; runpy.run_path(%r, run_name='hook')['answer_event']("
        "{'cwd': %r, 'tool_name': 'Bash', 'tool_input': %r}); "
        "print(sorted(n for n in sys.modules if n.startswith('reverie') or n == 'dataclasses'))"
    )
    line = code % (before_call.__file__, str(project_of(ruled)), MAIN)
    environ = {"REVERIE_HOME": str(ruled / "home"), "HOME": str(ruled)}
    argv = [sys.executable, "-I", "-S", "-c", line]
    ran = subprocess.run(argv, capture_output=True, env=environ, check=True)
    loaded = json.loads(ran.stdout.decode().replace("'", '"'))
    leaves = {"calls", "glob", "match", "rule_file", "shell", "shell_commands"}
    assert {name.rpartition(".")[2] for name in loaded} == leaves | {"reverie", "rules", "text"}


@pytest.mark.spec("B20.irrevocable")
def test_the_hook_holds_what_cannot_be_taken_back_after_three_others(ruled: Path) -> None:
    with memories_in(ruled) as memories:
        for n in range(4):
            text = f"---\ntype: feedback\napplies_to: {{command: tool{n}}}\n---\n\nNo.\n"
            memories.save(f"r{n}.md", text.encode(), USER)
    got = [hook(ruled, {"command": f"tool{n}"})[0] for n in range(4)]
    assert got == ["deny", "deny", "deny", ""]
    assert [hook(ruled, MAIN)[0] for _ in range(2)] == ["deny", ""]
    with memories_in(ruled) as memories:
        counts = RuleStore(memories, project_of(ruled)).counts()
    assert dict(counts["r3.md"].total) == {"matched": 1, "broken": 1}
    assert dict(counts["push.md"].total) == {"matched": 2, "held": 1, "broken": 1}


@pytest.mark.spec("B20.hook")
def test_calls_behind_a_held_one_wait_in_the_hook(ruled: Path) -> None:
    def answer(message: str, *ids: str) -> str:
        blocks = [[{"type": "tool_use", "id": one}] for one in ids]
        rows = [{"type": "assistant", "message": {"id": message, "content": b}} for b in blocks]
        return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)

    transcript = ruled / "transcript.jsonl"
    transcript.write_text(answer("m1", "a", "b", "c") + answer("m2", "d"))
    told = {"transcript_path": str(transcript)}
    fine = {"command": "git status"}
    assert hook(ruled, fine, tool_use_id="a", **told)[0] == ""
    assert hook(ruled, MAIN, tool_use_id="b", **told)[0] == "deny"
    decision, reason = hook(ruled, fine, tool_use_id="c", **told)
    assert (decision, "was held by a rule" in reason) == ("deny", True)
    assert hook(ruled, fine, tool_use_id="d", **told)[0] == ""


@pytest.mark.spec("B20.scope")
def test_the_hook_knows_the_users_own_rules_and_no_other_projects(ruled: Path) -> None:
    other = ruled / "other"
    (other / ".git").mkdir(parents=True)
    away = {"command": f"cd {other} && git push origin main"}
    assert hook(ruled, away)[0] == ""
    assert hook(ruled, MAIN, cwd=str(other))[0] == ""
    own = Project.personal(home=ruled / "home", environ={"HOME": str(ruled)})
    with MemoryStore.of(own, now=lambda: 1.0) as memories:
        push_rule(memories, key="own.md")
    assert "(personal/own.md)" in hook(ruled, MAIN, cwd=str(other))[1]
    with MemoryStore.of(own, now=lambda: 1.0) as memories:
        assert RuleStore(memories, own.root).counts()["own.md"].of("held") == 1
    (path,) = (ruled / "home" / FOLDER).glob("*personal*.rules")
    path.write_bytes(b"[]\n")  # what is damaged there keeps no rule of the project from holding
    assert hook(ruled, MAIN)[0] == "deny"


# --- one's own loop


@pytest.mark.spec("B20.api")
async def test_a_loop_of_ones_own_asks_which_rules_a_call_breaks(tmp_path: Path) -> None:
    with memories_in(tmp_path) as memories:
        push_rule(memories)
    model = ScriptedModel([reply(call("Bash", "c1", command="git push origin main"))])
    async with reverie.Session.open(
        project_of(tmp_path), model=model, memory=True, home=tmp_path / "home"
    ) as session:
        await session.add("Ship it")
        answer = await session.ask()
        (found,) = await session.rules(answer.tool_calls[0])
    assert (found.file, found.level, found.source) == ("push.md", "remind", "user")
    assert "Never push to main" in found.reason == str(found)


@pytest.mark.spec("B20.scope")
async def test_the_library_knows_the_users_own_rules_from_when_they_are_saved(
    tmp_path: Path,
) -> None:
    home, model = tmp_path / "home", ScriptedModel([])
    own = reverie.Memory.personal(home=home)
    own.add("Never run `terraform apply`.", type="feedback")
    apply, push = (
        ToolCall("c1", "Bash", json.dumps({"command": line}))
        for line in ("terraform apply", "docker push x")
    )
    async with reverie.Session.open(
        project_of(tmp_path), model=model, memory=True, home=home
    ) as session:
        (found,) = await session.rules(apply)
        assert (found.file.partition("/")[0], found.source) == ("personal", "user")
        assert await session.rules(push) == []
        own.add("Never run `docker push`.", type="feedback")
        assert len(await session.rules(push)) == 1


@pytest.mark.spec("B20.scope")
async def test_a_session_with_another_memory_leaves_the_projects_rules_to_the_hook(
    ruled: Path,
) -> None:
    home = ruled / "home"
    other = reverie.Memory(project_of(ruled), user="ann", home=home)
    other.add("Never run `terraform apply`.", type="feedback")
    line = ToolCall("c1", "Bash", json.dumps({"command": "terraform apply"}))
    async with reverie.Session.open(
        project_of(ruled), model=ScriptedModel([]), memory=other, home=home
    ) as session:
        assert len(await session.rules(line)) == 1
    assert hook(ruled, {"command": "terraform apply"})[0] == ""
    assert hook(ruled, MAIN)[0] == "deny"


# --- the check


@pytest.mark.spec("B20.check")
def test_the_check_tells_of_rules_that_never_or_always_hold_or_exclude_each_other() -> None:
    def rule(head: str) -> bytes:
        known = "name: x\ndescription: y\ntype: feedback"
        return f"---\n{known}\n{head}\n---\n\nA rule of ours.\n".encode()

    files = {
        "always.md": rule("applies_to: {tool: Bash}"),
        "never.md": rule("applies_to: {command: a -x, lacks: -x}"),
        "level.md": rule("level: shout"),
        "with.md": rule("applies_to: {command: go test, lacks: -race}"),
        "without.md": rule("applies_to: {command: go test, has: -race}"),
        "fine.md": rule("applies_to: {command: git push}"),
    }
    found = check(CheckInput(files)).findings
    told = {one.file: one.evidence for one in found if one.rule == "rule"}
    assert "every call" in told["always.md"]
    assert "never" in told["never.md"]
    assert "shout" in told["level.md"]
    assert "fine.md" not in told
    (odds,) = [one for one in found if one.rule == "calls"]
    assert {odds.file, odds.with_file} == {"with.md", "without.md"}


@pytest.mark.spec("B20.hook")
def test_a_save_compiles_what_it_wrote_and_reads_no_other_file(ruled: Path) -> None:
    with memories_in(ruled) as memories:
        for n in range(20):
            (memories.root / f"n{n}.md").write_text(
                f"---\ntype: feedback\n---\n\nNever run tool{n}.\n"
            )
        push_rule(memories, key="second.md")
        asked = list[str]()
        real = memories.folder.bytes_of
        memories.folder.bytes_of = lambda key, limit=None: asked.append(key) or real(key, limit)  # type: ignore[method-assign]
    assert {key for key in asked if not key.endswith("MEMORY.md")} == {"second.md"}
    (path,) = (ruled / "home" / FOLDER).glob("*.rules")
    assert path.read_bytes().count(b'"file":') == 2
