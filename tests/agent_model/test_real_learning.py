"""Real sessions of Claude Code whose own program learns from them, on loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie.providers.cli_programs import HEADER, MARK
from reverie.simulator import Engine, serving
from tests.agent_model.place import Place
from tests.agent_model.test_dream import PARSER, reason, shorter
from tests.agent_model.test_learning import PASSING, YES, is_of
from tests.api.talks import LEARNED
from tests.mcp.client import claude_code
from tests.processes import running

pytestmark = [
    pytest.mark.spec("B23"),
    pytest.mark.integration,
    pytest.mark.needs("git"),
]
VERSIONS = ("2.1.325", "2.1.197")


class Provider:
    """A provider on loopback; background work is answered apart, one after the other or not."""

    def __init__(self) -> None:
        self.engine = Engine(answerer=self.answer)
        self.answers: list[str] = []
        self.seconds = 0.0
        self.prompts: list[str] = []
        self.now = self.at_once = 0

    async def answer(self, body: Any) -> str:
        prompt = json.dumps(body["messages"], ensure_ascii=False)
        if MARK not in prompt:
            return "All is well."
        self.prompts.append(prompt)
        self.now += 1
        self.at_once = max(self.at_once, self.now)
        try:
            await anyio.sleep(self.seconds)
        finally:
            self.now -= 1
        return self.answers.pop(0) if self.answers else "nothing to keep"


class RealPlace(Place):
    """A user of Claude Code with the plugin."""

    def session(self, prompt: str) -> None:
        line = [self.program, "-p", prompt, "--model", "claude-sonnet-4-5"]
        subprocess.run(
            line, cwd=self.repo, env=self.environ, check=True, timeout=120, capture_output=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def reverie(self, *words: str) -> None:
        line = [sys.executable, "-m", "reverie.apps.cli", *words]
        subprocess.run(line, cwd=self.repo, env=self.environ, check=True, capture_output=True)

    def worker(self) -> int:
        """The process of the worker, once it has started an agent."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            for path in Path("/proc").glob("[0-9]*"):
                try:
                    line = (path / "cmdline").read_bytes()
                    if b"reverie.clients.background" in line and is_of(self, path):
                        return int(path.name)
                except OSError:
                    continue
            time.sleep(0.02)
        raise AssertionError("no worker started")


@pytest.fixture
def provider() -> Iterator[tuple[Provider, str]]:
    made = Provider()
    with serving(made.engine) as url:
        yield made, url


def placed(folder: Path, version: str, url: str, **environ: str) -> RealPlace:
    given = {
        **YES,
        "ANTHROPIC_API_KEY": "sk-ant-fake-0000",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "REVERIE_FLAG_EXTRACT_NONINTERACTIVE": "1",  # nobody is there in a test
        **environ,
    }
    place = RealPlace(folder, claude_code(version), given)
    subprocess.run(["git", "init", "-q", str(place.repo)], check=True)
    place.reverie("install", "claude-code", "--plugin", "--yes")
    return place


@pytest.mark.parametrize("version", VERSIONS)
def test_t7_a_session_teaches_and_the_next_one_knows(
    provider: tuple[Provider, str], tmp_path: Path, version: str
) -> None:
    served, url = provider
    place = placed(tmp_path, version, url)
    served.answers = [LEARNED]
    place.session(PASSING)
    place.rest()
    (prompt,) = served.prompts
    assert PASSING in prompt
    (kept,) = place.memory.list()
    assert "linter" in kept.text
    served.answers = [f'<read file="{kept.file}"/>', "nothing to keep"]
    place.session("What has to be happy before I commit, the linter or the tests?")
    place.rest()
    asked = [json.loads(one.body) for one in served.engine.log if one.status == 200]
    told = json.dumps([one for one in asked if one["tools"]][-1], ensure_ascii=False)
    assert kept.file in told
    assert place.alive() == []
    sessions = list(place.user.glob(".claude/projects/*/*.jsonl"))
    assert len(sessions) == 2  # none of the background work


def test_t7_a_file_that_is_asked_for_is_shown_in_a_second_run(
    provider: tuple[Provider, str], tmp_path: Path
) -> None:
    served, url = provider
    place = placed(tmp_path, VERSIONS[0], url)
    kept = place.memory.add("The linter runs in CI alone", name="Linter")
    changed = LEARNED.replace("feedback_linter.md", kept.file)
    served.answers = [f'<read file="{kept.file}"/>', changed]
    place.session(PASSING)
    place.rest()
    assert len(served.prompts) == 2
    assert "runs in CI alone" in served.prompts[1]
    assert "before you commit" in place.memory.get(kept.file).text


def test_t7_a_dream_that_is_due_sends_faults_back_and_its_changes_are_kept(
    provider: tuple[Provider, str], tmp_path: Path
) -> None:
    served, url = provider
    place = placed(tmp_path, VERSIONS[0], url, REVERIE_DREAM_SESSIONS="1")
    kept = place.memory.add(PARSER, name="Parser")
    short = shorter(place, kept.file)
    served.answers = [LEARNED, short, f"{short}\n{reason(kept.file)}"]
    place.session(PASSING)
    place.rest()
    assert len(served.prompts) == 3
    assert "cannot be used as they are" in served.prompts[2]
    assert place.memory.get(kept.file).text.strip() == "The parser is written by hand."
    assert place.ledger.state().dreams == 1
    assert len(list(place.user.glob(".claude/projects/*/*.jsonl"))) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_t3_with_plugin_and_proxy_one_turn_is_one_request_of_ours(
    provider: tuple[Provider, str], tmp_path: Path, version: str
) -> None:
    served, url = provider
    place = placed(tmp_path, version, url)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    del place.environ["ANTHROPIC_BASE_URL"]
    settings = place.user / ".claude" / "settings.json"
    settings.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": url}}))
    place.reverie("install", "claude-code", "--yes", "--port", port)
    line = [sys.executable, "-m", "reverie.apps.cli", "proxy", "--port", port, "--json"]
    with running(line, env=place.environ, cwd=place.repo) as proxy:
        assert proxy.stdout is not None
        assert proxy.stdout.readline()
        place.session(PASSING)
        until = time.monotonic() + 20
        while not served.prompts and time.monotonic() < until:
            time.sleep(0.1)
        proxy.send_signal(signal.SIGTERM)
        proxy.wait(30)
    place.rest()
    assert len(served.prompts) == 1
    ours = [one for one in served.engine.log if MARK in one.body]
    assert len(ours) == 1
    assert HEADER in ours[0].headers  # it came past the proxy, which takes these away
    kept = "".join(path.read_text() for path in place.home.glob("projects/**/*.jsonl"))
    assert MARK not in kept


def test_twenty_sessions_that_end_in_a_minute_are_each_learned_from_once(
    provider: tuple[Provider, str], tmp_path: Path
) -> None:
    served, url = provider
    place = placed(tmp_path, VERSIONS[0], url, REVERIE_FLAG_DREAM="0")
    served.seconds = 0.3
    talks = [place.transcript(f"s{n}", f"{PASSING} That is for part {n}.") for n in range(20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda talk: place.hook("SessionEnd", talk), talks))
    place.rest(120)
    check_learned_once(served, place, 20)
    assert len(served.prompts) == 20


def check_learned_once(served: Provider, place: Place, count: int) -> None:
    assert served.at_once == 1
    assert place.due == []
    seen = [n for n in range(count) if any(f"part {n}." in prompt for prompt in served.prompts)]
    assert seen == list(range(count))
    assert place.alive() == []


def test_t5_killed_workers_leave_nothing_and_the_next_one_goes_on(
    provider: tuple[Provider, str], tmp_path: Path
) -> None:
    served, url = provider
    place = placed(tmp_path, VERSIONS[0], url)
    served.seconds = 1.0
    talks = [place.transcript(f"s{n}", f"{PASSING} That is for part {n}.") for n in range(6)]
    for number, sign in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
        place.hook("SessionEnd", talks[number * 2])
        place.hook("SessionEnd", talks[number * 2 + 1])
        until = time.monotonic() + 30
        while len(served.prompts) <= number and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(place.worker(), sign)
        place.rest(10)
        while served.now:  # a request whose client is gone is answered all the same
            time.sleep(0.02)
    served.seconds = 0.0
    place.hook("SessionEnd", talks[0])
    place.rest(60)
    check_learned_once(served, place, 6)


def test_t5_a_session_that_is_killed_leaves_nothing(
    provider: tuple[Provider, str], tmp_path: Path
) -> None:
    served, url = provider
    place = placed(tmp_path, VERSIONS[0], url)
    served.answers, served.seconds = [LEARNED], 1.0
    line = [place.program, "-p", PASSING, "--model", "claude-sonnet-4-5"]
    with running(line, cwd=place.repo, env=place.environ, stdin=subprocess.DEVNULL) as session:
        until = time.monotonic() + 60
        while not served.prompts and time.monotonic() < until:
            time.sleep(0.02)
        session.terminate()
    place.rest(20)
    assert [one.file for one in place.memory.list()] == ["feedback_linter.md"]
