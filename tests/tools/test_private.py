"""Files that may hold keys, git's own files, programs of the project and keys in the environment:
the same answer at every door."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from reverie.settings import DEFAULTS
from reverie.text import starts
from reverie.toolbox import (
    READING,
    SHELL,
    Guard,
    GuardLimits,
    PermissionRule,
    Sandbox,
    standard,
)
from tests.tools.kit import Place, use

pytestmark = pytest.mark.spec("7")

SECRETS = (
    ".env",
    "prod.env",
    ".env.local",
    "conf/server.key",
    "tls/cert.pem",
    "secrets.json",
    "secrets.yaml",
    "service-account-prod.json",
    "prod.tfvars",
    "prod.auto.tfvars.json",
    "terraform.tfstate",
    ".netrc",
    ".pgpass",
    "id_rsa",
    "id_work",
    "kubeconfig",
    ".kube/config",
    ".docker/config.json",
    "node_modules/pkg/.env",
    ".venv/lib/x.key",
    ".tox/py/.netrc",
    ".git/config",
    ".git/hooks/pre-push",
    "sub/.git/config",
    "Upper/PROD.ENV",
    "Upper/.GIT/config",
)
OPEN = (
    "keyboard.py",
    "id_map.py",
    "env.md",
    "docs/secrets.md",
    "src/env.py",
    "tokens.json",
)
SPOKEN = "hunter2hunter2"


@pytest.fixture
def filled(place: Place) -> Place:
    for name in (*SECRETS, *OPEN):
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{SPOKEN} in {name}\n")
    return place


def guard(place: Place, sandbox: Sandbox | None = None) -> Guard:
    limits = GuardLimits(READING | {SHELL}, (place.root,), (), (place.home,))
    environ = {"PATH": os.environ["PATH"]}
    context = replace(place.context(), environ=environ)
    return Guard(standard(), context, limits, sandbox or Sandbox("no-such-program"), "agent")


@pytest.mark.parametrize("name", SECRETS)
async def test_a_background_agent_reads_no_secret_by_any_door(filled: Place, name: str) -> None:
    agent = guard(filled)
    for tool, key in (("Read", "file_path"), ("Grep", "path")):
        value = {key: name, **({"pattern": "."} if tool == "Grep" else {})}
        found = await use(agent, tool, **value)
        assert found.is_error, tool
        assert SPOKEN not in found.text


@pytest.mark.parametrize("path", ["/nowhere", None], ids=["finder", "rg"])
@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
@pytest.mark.parametrize("below", [".", ".git", "node_modules", "sub"])
@pytest.mark.parametrize("who", ["main", "background"])
async def test_a_search_shows_no_secret(
    filled: Place, path: str | None, mode: str, below: str, who: str
) -> None:
    environ = {"PATH": path or os.environ["PATH"]}
    box = guard(filled) if who == "background" else filled.box(environ=environ)
    found = await use(box, "Grep", pattern=SPOKEN, output_mode=mode, path=below, glob="*")
    for name in SECRETS:
        assert f"{name}:" not in found.text + ":" or name in OPEN, name
        assert f"{SPOKEN} in {name}\n" not in found.text + "\n"
    if below == ".":
        assert all(f"{name}" in found.text for name in OPEN)


async def test_a_link_that_is_named_like_a_secret_is_refused_too(filled: Place) -> None:
    (filled.root / "prod.key").symlink_to("keyboard.py")
    assert (await use(guard(filled), "Read", file_path="prod.key")).is_error
    assert not (await use(guard(filled), "Read", file_path="keyboard.py")).is_error


@pytest.mark.parametrize("name", [".git/HEAD", ".git/logs/HEAD", "sub/.git/HEAD", ".git"])
async def test_a_background_agent_reads_nothing_of_gits(filled: Place, name: str) -> None:
    path = filled.root / name
    if not path.is_dir():
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{SPOKEN}\n")
    agent = guard(filled)
    for tool, value in {
        "Read": {"file_path": name},
        "Grep": {"path": name, "pattern": SPOKEN},
        "List": {"path": name},
    }.items():
        found = await use(agent, tool, **value)
        assert found.is_error
        assert "git's own files" in found.text


async def test_a_listing_for_a_background_agent_names_no_secret(filled: Place) -> None:
    agent = guard(filled)
    shown = [await use(agent, "Glob", pattern=p) for p in ("**/*", "**/.git/**", "node_modules/**")]
    shown.append(await use(agent, "List"))
    names = {line.split(" (")[0] for one in shown for line in one.text.splitlines()}
    for name in SECRETS:
        assert not {name, str(filled.root / name)} & names
    assert not names & {".env", "prod.env", ".git/", ".netrc", "id_rsa", "secrets.json"}
    assert set(OPEN) <= names


@pytest.mark.parametrize("name", SECRETS)
async def test_the_main_agent_asks_before_it_reads_a_secret(filled: Place, name: str) -> None:
    rules = (PermissionRule("Read"), PermissionRule("Grep"))
    policy = filled.policy("ask", rules)
    for tool, key in (("Read", "file_path"), ("Grep", "path")):
        found = standard().get(tool)
        assert found is not None
        judged = policy.judge(found, {key: name}, filled.context().files)
        assert (judged.verdict, judged.protected) == ("ask", True)


@pytest.mark.needs("bwrap")
async def test_the_shell_of_a_background_agent_sees_no_secret_and_no_git(filled: Place) -> None:
    agent = guard(filled, Sandbox())
    found = await use(agent, "Bash", command="grep -r hunter2 . 2>/dev/null")
    assert f"{SPOKEN} in keyboard.py" in found.text
    for name in SECRETS:
        assert f"{SPOKEN} in {name}\n" not in found.text + "\n"
    assert (await use(agent, "Bash", command="ls .git")).text == "(no output)"


@pytest.mark.needs("bwrap")
async def test_a_folder_of_others_code_that_is_too_large_is_masked_whole(
    filled: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reverie.toolbox.sandbox.LOOKED_AT_BELOW", 1)
    found = await use(guard(filled, Sandbox()), "Bash", command="find node_modules")
    assert found.text == "node_modules"


# -- programs and their environment ---------------------------------------------------------


def planted(place: Place, name: str) -> dict[str, str]:
    """A program in the project that PATH leads to first, and that says it ran."""
    path = place.root / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {place.outside}/ran-{name}\necho planted\n")
    path.chmod(0o755)
    link = place.base / "linked"
    if not link.exists():
        link.symlink_to(path.parent)
    return {"PATH": f"{path.parent}:bin:{link}:{os.environ['PATH']}"}


@pytest.mark.parametrize("name", ["rg", "bash"])
async def test_no_program_of_the_project_is_run_for_us(place: Place, name: str) -> None:
    environ = planted(place, name)
    (place.root / "a.txt").write_text("one\n")
    box = place.box(place.policy("allow"), environ=environ)
    await use(box, "Grep", pattern="one")
    found = await use(box, "Bash", command="echo done")
    assert found.text == "done"
    assert not (place.outside / f"ran-{name}").exists()


async def test_a_relative_folder_of_path_is_not_looked_in(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(place, "rg")
    (place.root / "bin").rename(place.outside / "bin")
    monkeypatch.chdir(place.outside)
    (place.root / "a.txt").write_text("one\n")
    await use(place.box(environ={"PATH": f"bin:{os.environ['PATH']}"}), "Grep", pattern="one")
    assert not (place.outside / "ran-rg").exists()


async def test_no_program_is_run_that_the_project_only_links_to(place: Place) -> None:
    environ = planted(place, "bash")
    (place.root / "bin" / "bash").rename(place.outside / "other")
    (place.root / "bin" / "bash").symlink_to(place.outside / "other")
    found = await use(place.box(place.policy("allow"), environ=environ), "Bash", command="echo it")
    assert found.text == "it"
    assert not (place.outside / "ran-bash").exists()


async def test_no_bubblewrap_of_the_project_is_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", planted(place, "bwrap")["PATH"])
    await use(guard(place, Sandbox()), "Bash", command="ls")
    assert not (place.outside / "ran-bwrap").exists()


async def test_a_command_gets_no_key_of_ours(place: Place) -> None:
    keys = dict.fromkeys(
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_ORG_ID",
            "OPENROUTER_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "HF_TOKEN",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "groq_api_key",
            "Anthropic_Custom_Headers",
        ),
        SPOKEN,
    )
    environ = {**keys, "PATH": os.environ["PATH"], "LANG": "C", "TOKENIZERS_PARALLELISM": "1"}
    box = place.box(place.policy("allow"), environ=environ)
    found = await use(box, "Bash", command="env")
    assert SPOKEN not in found.text
    assert {"LANG=C", "TOKENIZERS_PARALLELISM=1"} <= set(found.text.splitlines())
    async with box:
        await use(box, "Bash", command="env; sleep 0", run_in_background=True)
        shells = box.context.shells
        assert shells is not None
        while "running" in (said := shells.read("shell_1")) and "LANG" not in said:
            await anyio.lowlevel.checkpoint()
    assert SPOKEN not in said


# -- deny rules ------------------------------------------------------------------------------

SPELLINGS = (
    "rm x",
    "X=1 rm x",
    "X=1 Y='a b' rm x",
    "! rm x",
    "if true; then rm x; fi",
    "if true; then :; elif rm x; then :; fi",
    "if true; then :; else rm x; fi",
    "until rm x; do :; done",
    "coproc rm x",
    "for i in 1; do rm x; done",
    "while rm x; do :; done",
    "if rm x; then :; fi",
    "command rm x",
    "builtin command rm x",
    "env rm x",
    "env -i A=1 rm x",
    "sudo rm x",
    "sudo -u root rm x",
    "nohup rm x",
    "time rm x",
    "time -p rm x",
    "nice -n 5 rm x",
    "timeout 5 rm x",
    "xargs rm < list",
    "echo x | xargs -0 rm",
    "find . -exec rm {} +",
    "bash -c 'rm x'",
    'sh -c "cd /; rm x"',
    "bash -lc \"bash -c 'rm x'\"",
    "eval 'rm x'",
    "trap 'rm x' EXIT",
    "\\rm x",
    "r\\m x",
    "r\\\nm x",
    "'rm' x",
    'r"m" x',
    "$'rm' x",
    "/bin/rm x",
    "../../bin/rm x",
    "(rm x)",
    "{ rm x; }",
    "{rm,x}",
    "echo $(rm x)",
    "echo `rm x`",
    "cat <(rm x)",
    "true && rm x",
    "true;rm x",
    "exec rm x",
    "f() { rm x; }; f",
    "case a in a) rm x;; esac",
    "busybox rm x",
    "setsid nohup env A=1 rm x",
    "A=1 sudo -E /usr/bin/env -i \\rm x",
    "ls | rm x",
    "ls\nrm x",
    "; ".join(["true"] * 80 + ["rm x"]),
)
OTHERS = ("ls rm", "git commit -m 'rm old files'", "echo rm", "grep rm .", "rmdir x", "npm rm")


@pytest.mark.parametrize(
    ("line", "verdict"),
    [*((line, "deny") for line in SPELLINGS), *((line, "allow") for line in OTHERS)],
)
def test_a_rule_against_rm_sees_it_however_it_is_spelled_and_nothing_else(
    place: Place, line: str, verdict: str
) -> None:
    policy = place.policy("allow", (PermissionRule("Bash", "rm *", "deny"),))
    tool = standard().get("Bash")
    assert tool is not None
    assert policy.judge(tool, {"command": line}, place.context().files).verdict == verdict


RUNNERS = (
    "busybox chroot chrt doas env exec find flock ionice nice nohup parallel pkexec runuser script "
    "setpriv setsid stdbuf strace su sudo taskset time timeout toybox trap unbuffer unshare watch "
    "xargs ash bash dash eval fish ksh sh zsh"
)


@pytest.mark.parametrize("program", RUNNERS.split())
def test_a_program_that_runs_another_hides_nothing(program: str) -> None:
    assert ("rm", "x") in starts(f"{program} -o 1 rm x")


@pytest.mark.parametrize(
    "shell", ["ash", "bash", "dash", "eval", "fish", "ksh", "sh", "su", "trap", "zsh"]
)
def test_a_line_for_a_shell_is_read(shell: str) -> None:
    assert ("rm", "x") in starts(f"{shell} -c 'cd /; rm x'")


def test_a_hostile_line_is_read_in_bounded_time() -> None:
    assert ("rm",) in starts("sudo " * 20_000 + "rm")
    assert ("rm",) in starts("sudo x bash 'a b' " * 5_000 + "rm")
    assert len(starts("bash -c '" * 5_000)) < 20_000
    assert max(map(len, starts("echo " + "x " * 5_000))) <= 100


# -- times -----------------------------------------------------------------------------------


@pytest.mark.needs("bwrap")
async def test_the_guard_tells_the_time_that_was_really_waited(place: Place) -> None:
    (place.root / "big").write_text("x")
    found = await use(guard(place, Sandbox()), "Bash", command="tail -f big", timeout=1)
    assert "x" in found.text
    assert re.search(r"\[ended after \d(?:\.\d)? s, with everything it had started\]", found.text)


async def test_a_tool_that_times_itself_is_told_with_the_time_it_had(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reverie.toolbox import Input, Tool, ToolContext, ToolOutput, toolbox

    async def stuck(value: Input, context: ToolContext) -> ToolOutput:
        await anyio.sleep_forever()
        return ToolOutput("")

    monkeypatch.setattr(toolbox, "GRACE", 0.2)
    tool = Tool("Stuck", "", {"type": "object"}, stuck, times_itself=True)
    context = replace(place.context(), settings=replace(DEFAULTS, tool_seconds=0.1))
    found = await toolbox.run_within_time(tool, {}, context)
    assert "took longer than 0.3 s" in str(found.content)
