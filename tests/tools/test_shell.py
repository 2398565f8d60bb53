"""Bash, its limits, and that nothing is left running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from reverie.toolbox import Command, OutputBuffer, Toolbox
from reverie.toolbox import run as run_process
from tests.tools.kit import Place, call, processes_with, result, use

pytestmark = pytest.mark.spec("13")

DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1)
        time.sleep(97)
        print("{mark}")
"""
LEFT_BEHIND = {
    "background": "sh -c 'sleep 97; : {mark}' & echo started",
    "nohup": "nohup sh -c 'sleep 97; : {mark}' >/dev/null 2>&1 & echo started",
    "setsid": "setsid sh -c 'sleep 97; : {mark}' >/dev/null 2>&1 & sleep 0.2; echo started",
    "daemon": "{python} -c '%s' && echo started" % DAEMON,
    "many": (
        "for n in 1 2 3 4 5; do setsid sh -c 'sleep 97 & sleep 97; : {mark}' & done;"
        " sleep 0.2; echo started"
    ),
    "closed": "sh -c 'exec <&- >&- 2>&-; sleep 97; : {mark}' & echo started",
}


async def until(done: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not done():  # noqa: ASYNC110 - nothing tells but the system
            await anyio.sleep(0.02)


async def heard(box: Toolbox, name: str, text: str) -> str:
    """Ask until a text was said; every answer is bounded."""
    with anyio.fail_after(30):
        while True:
            found = await use(box, "BashOutput", id=name)
            assert len(found.text) < 1_100_000
            if text in found.text:
                return found.text
            await anyio.sleep(0.02)


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid4().hex}"


async def test_output_errors_and_exit_code(place: Place) -> None:
    box = place.box()
    assert (await use(box, "Bash", command="echo a; echo b >&2")).text == "a\nb"
    assert (await use(box, "Bash", command="true")).text == "(no output)"
    failed = await use(box, "Bash", command="echo no; exit 3")
    assert failed.is_error
    assert failed.text == "no\n[exit code 3]"
    assert "exit code 137" in (await use(box, "Bash", command="kill -9 $$")).text
    assert (await use(box, "Bash", command="pwd")).text == str(place.root)
    assert (await use(box, "Bash", command="cat; echo end")).text == "end"
    assert (await use(box, "Bash", command="printf 'a\\0b\\377'")).text == "a\ufffdb\ufffd"
    assert (await use(box, "Bash", command="a\0b")).is_error
    assert (await use(box, "Bash", command="  ")).is_error


async def test_the_time_limit_keeps_what_was_said(place: Place, mark: str) -> None:
    place.settings = replace(place.settings, tool_seconds=1.0)
    found = await use(place.box(), "Bash", command=f"echo first; sleep 97; : {mark}")
    assert found.is_error
    assert re.match(r"first\n\[ended after \d(?:\.\d)? s", found.text)  # on a busy machine more
    assert not processes_with(mark)
    # a longer wish does not move the limit
    again = await use(place.box(), "Bash", command=f"sleep 97; : {mark}", timeout=500)
    assert re.search(r"ended after \d(?:\.\d)? s", again.text)


@pytest.mark.parametrize("how", LEFT_BEHIND)
async def test_a_command_that_ends_leaves_nothing_running(
    place: Place, mark: str, how: str
) -> None:
    line = LEFT_BEHIND[how].replace("{mark}", mark).replace("{python}", sys.executable)
    found = await use(place.box(), "Bash", command=line)
    assert found.text == "started"
    assert not processes_with(mark)


@pytest.mark.parametrize("how", LEFT_BEHIND)
async def test_cancelling_leaves_nothing_running(place: Place, mark: str, how: str) -> None:
    line = LEFT_BEHIND[how].replace("{mark}", mark).replace("{python}", sys.executable)
    ready = place.root / "ready"
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            box = place.box()
            group.start_soon(box.run, call("Bash", command=f"{line}\ntouch ready; sleep 97"))
            await until(ready.exists)
            assert processes_with(mark)
            scope.cancel()
    assert scope.cancelled_caught
    assert not processes_with(mark)


@pytest.mark.parametrize("how", ["background", "setsid", "daemon"])
async def test_kill_9_of_the_agent_leaves_nothing_running(
    place: Place, mark: str, how: str
) -> None:
    """Three calls at once, one of them with children that hide; then the process dies."""
    line = LEFT_BEHIND[how].replace("{mark}", mark).replace("{python}", sys.executable)
    script = f"""
import anyio
from pathlib import Path
from tests.tools.kit import Place, use
async def main():
    async with Place(Path({str(place.base)!r})).box() as box:
        await use(box, "Bash", command="sleep 97; : {mark}", run_in_background=True)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: use(box, "Bash", command="sleep 97; : {mark} two"))
            await use(box, "Bash", command={line!r} + "\\ntouch ready; sleep 97")
anyio.run(main)
"""
    agent = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
        [sys.executable, "-c", script], stderr=subprocess.DEVNULL
    )
    try:
        await until((place.root / "ready").exists)
        assert processes_with(mark)
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        await until(lambda: not processes_with(mark))
    finally:
        agent.kill()
        agent.wait()


async def test_a_fork_bomb_ends_with_its_time(place: Place, mark: str) -> None:
    place.settings = replace(place.settings, tool_seconds=1.0)
    line = f": {mark}; f() {{ sleep 97 & [ $1 -gt 0 ] && f $(($1-1)) & f $(($1-1)) & }}; f 5; wait"
    line = line.replace("[ $1 -gt 0 ] &&", "[ $1 -le 0 ] && return;")
    found = await use(place.box(), "Bash", command=line)
    assert "ended after" in found.text
    assert not processes_with(mark)


async def test_large_output_is_kept_whole_in_bounded_memory(place: Place) -> None:
    line = "echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end"
    found = await use(place.box(), "Bash", command=line)
    (kept,) = place.results.iterdir()
    assert kept.stat().st_size == 100_000_000 + 11
    assert str(kept) in found.text
    assert kept.stat().st_mode & 0o777 == 0o600
    assert len(found.text) < 50_000
    assert "\nbegin\n" in found.text
    assert found.text.endswith("\nend")


async def test_whole_output_up_to_the_cap_and_none_kept_in_a_private_session(
    place: Place,
) -> None:
    box = place.box(stored=None)
    found = await use(box, "Bash", command="head -c 9000000 /dev/zero | tr '\\0' x")
    assert found.text == "x" * 9_000_000
    found = await use(box, "Bash", command="echo begin; head -c 20000000 /dev/zero; echo end")
    assert "its middle was not kept" in found.text
    assert "begin" in found.text
    assert found.text.endswith("end")
    assert not place.results.exists()


async def test_a_disk_that_refuses_the_output(place: Place) -> None:
    place.results.parent.mkdir(parents=True)
    place.results.write_text("in the way")
    found = await use(place.box(), "Bash", command="head -c 20000000 /dev/zero; echo end")
    assert "its middle was not kept" in found.text
    assert found.text.endswith("end")


async def test_text_in_the_output_never_chooses_the_path(place: Place) -> None:
    box = place.box()
    odd = replace(call("Bash", command="head -c 11000000 /dev/zero"), id="../../evil")
    await box.run(odd)
    (kept,) = place.results.iterdir()
    assert kept.name.endswith("-whole.txt")
    assert ".." not in kept.name
    assert not list(place.base.rglob("evil*"))


async def test_background_commands(place: Place, mark: str) -> None:
    async with place.box() as box:
        wait = "until [ -e go ]; do sleep 0.02; done"
        line = f"echo one; {wait}; echo two; sleep 97; : {mark}"
        started = await use(box, "Bash", command=line, run_in_background=True)
        name = started.text.split()[2].rstrip(".")
        said = await heard(box, name, "one")
        assert "running" in said
        assert "(nothing new)" in (await use(box, "BashOutput", id=name)).text
        (place.root / "go").touch()
        said = await heard(box, name, "two")
        assert "one" not in said
        assert processes_with(mark)
        assert "killed" in (await use(box, "KillShell", id=name)).text
        assert not processes_with(mark)
        assert (await use(box, "BashOutput", id="nope")).is_error
        await use(box, "Bash", command=f"sleep 97; : {mark}", run_in_background=True)
        await until(lambda: bool(processes_with(mark)))
    assert not processes_with(mark)
    late = await use(box, "Bash", command="true", run_in_background=True)
    assert late.is_error


async def test_a_talkative_background_command_stays_bounded(place: Place) -> None:
    async with place.box() as box:
        await use(box, "Bash", command="head -c 5000000 /dev/zero", run_in_background=True)
        await heard(box, "shell_1", "exit code 0")


async def test_no_descriptor_is_left_open(place: Place) -> None:
    box = place.box()
    await use(box, "Bash", command="true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await use(box, "Bash", command="echo x; exit 1")
        await use(box, "Grep", pattern="x")
        await use(box, "Read", file_path="none")
        await use(box, "List")
    assert len(os.listdir("/proc/self/fd")) == before


async def test_no_shell_on_path(place: Place, tmp_path: Path) -> None:
    found = await use(place.box(environ={"PATH": str(tmp_path)}), "Bash", command="true")
    assert "no bash or sh" in found.text


async def test_results_are_messages(place: Place) -> None:
    one = call("Bash", command="echo hi")
    message = await place.box().run(one)
    assert message.origin == "tool"
    assert message.blocks[0].get("tool_use_id") == one.id
    assert result(message).text == "hi"


async def test_a_time_out_is_told_as_long_as_it_was(place: Place) -> None:
    command = Command(["/bin/sleep", "60"], place.root, {})
    ended = await run_process(command, OutputBuffer(10), 0.0)
    assert ended.cause == "time"
    assert 0.0 < ended.seconds < 60.0  # to start it took a while, whatever the limit was
    assert ended.waited == f"{round(ended.seconds, 1):g} s"
