"""The real agent programs on loopback: nothing of the user's goes along, nothing stays behind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from reverie import errors
from reverie.providers.cli import agent_facts
from reverie.providers.cli_programs import MARK, PROGRAMS
from reverie.settings import Settings
from reverie.simulator import Engine, FaultPlan, SimulatedAnswer, serving
from reverie.simulator.faults import from_json
from reverie.transcript import text_block
from reverie.world import complete
from tests.agent_model.place import Place, request
from tests.mcp.client import claude_code

pytestmark = [pytest.mark.spec("B23"), pytest.mark.integration]
AGENTS = ("claude-2.1.325", "claude-2.1.197", "codex")
KEY = "sk-ant-fake-0000"


class Agent(Place):
    """A real program whose provider is on loopback, in a home full of what must stay out."""

    engine: Engine
    name: str

    def __init__(self, folder: Path, which: str, url: str, engine: Engine) -> None:
        self.engine, self.name = engine, f"cli:{which.partition('-')[0]}"
        if which == "codex":
            found = shutil.which("codex")
            if found is None:
                pytest.skip("needs codex: `make integration` installs it")
        else:
            found = claude_code(which.removeprefix("claude-"))
        super().__init__(folder, found)
        self.furnish(url)

    def furnish(self, url: str) -> None:
        ran = f"touch {self.folder / 'ran'}"
        hook = [{"matcher": "*", "hooks": [{"type": "command", "command": ran}]}]
        claude = {
            "env": {"ANTHROPIC_BASE_URL": url},
            "hooks": dict.fromkeys(("SessionStart", "UserPromptSubmit", "Stop"), hook),
            "permissions": {"allow": ["Bash", "Read", "Write"], "defaultMode": "bypassPermissions"},
        }
        server = {"command": "/bin/sh", "args": ["-c", ran]}
        texts = {
            ".claude/settings.json": json.dumps(claude),
            ".claude/CLAUDE.md": "MINE-CLAUDE-MD",
            ".claude/skills/own/SKILL.md": "---\nname: own\ndescription: MINE-SKILL\n---\nMINE",
            ".claude.json": json.dumps({"mcpServers": {"own": server}}),
            ".codex/config.toml": (
                f'model = "gpt-5.5"\nopenai_base_url = "{url}/v1"\n'
                '[mcp_servers.own]\ncommand = "/bin/sh"\n'
                f"args = {json.dumps(server['args'])}\n"
            ),
        }
        texts[".codex/auth.json"] = json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "fake"})
        for name, text in texts.items():
            path = self.user / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def ask(self, text: str, **settings: Any) -> str:
        return anyio.run(complete, self.model(self.name, **settings), request(text)).text

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The requests that asked for an answer."""
        return [json.loads(one.body) for one in self.engine.log if one.status == 200]


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    yield from agents(request.param, tmp_path)


@pytest.fixture(params=AGENTS[:2])
def claude(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    yield from agents(request.param, tmp_path)


def agents(which: str, folder: Path) -> Iterator[Agent]:
    answer = json.dumps({"answer": "All is said."}) if which == "codex" else "All is said."
    engine = Engine(answerer=lambda _: answer)
    with serving(engine) as url:
        made = Agent(folder, which, url, engine)
        if which != "codex":
            made.environ["ANTHROPIC_API_KEY"] = KEY
        yield made


def test_t1_one_small_request_and_no_trace(agent: Agent) -> None:
    (agent.repo / "CLAUDE.md").write_text("MINE-PROJECT")
    os.chdir(agent.repo)
    assert agent.ask("hello") == "All is said."
    (body,) = agent.bodies
    text = json.dumps(body)
    assert "MINE" not in text
    assert "cache_control" not in text  # nothing would read it
    tools = {tool["name"] for tool in body["tools"]}  # codex cannot be told to leave these out
    assert tools <= (set() if agent.name == "cli:claude" else {"request_user_input", "apply_patch"})
    prompt = len(MARK) + len("hello")
    # codex 0.166 always sends the definition of apply_patch
    assert len(text) <= (2_500 if agent.name == "cli:claude" else 4_800) + prompt
    assert not (agent.folder / "ran").exists()
    assert not list(agent.user.glob(".claude/projects/**/*.jsonl"))
    assert not list(agent.user.glob(".codex/sessions/**/*.jsonl"))
    assert list((agent.folder / "tmp").glob("reverie-*")) == []
    assert agent.alive() == []
    assert agent.ledger.state().calls == 1


@pytest.mark.parametrize(
    "text", ['@"{path}" what?', "@{path} what?", "@secret.txt what?", "/clear", "/compact @{path}"]
)
def test_t2_no_file_is_attached_and_no_command_runs(agent: Agent, text: str) -> None:
    path = agent.folder / "secret.txt"
    path.write_text("THE-SECRET-WORDS")
    assert agent.ask(text.format(path=path)) == "All is said."
    (body,) = agent.bodies
    assert "THE-SECRET-WORDS" not in json.dumps(body)


FAULTS: dict[str, tuple[Any, type[errors.ReverieError]]] = {
    "401": ({"status": 401}, errors.AuthFailed),
    "429": ({"status": 429}, errors.Overloaded),
    "500": ({"status": 500}, errors.ProviderError),
    "529": ({"status": 529}, errors.ProviderError),
    "page": ({"page": 502}, errors.ProviderError),
}


@pytest.mark.parametrize("name", FAULTS)
def test_t4_errors_are_read_right_and_there_is_no_storm(agent: Agent, name: str) -> None:
    fault, error = FAULTS[name]
    made = from_json(fault)
    agent.engine.faults = FaultPlan(lambda _, __: made)
    with pytest.raises(error):
        agent.ask("hello", cli_timeout_seconds=60)
    assert 1 <= len(agent.engine.log) <= 2
    assert agent.ledger.state().failures == 1
    assert agent.alive() == []


@pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
def test_t4_what_is_no_whole_answer_is_a_failure(claude: Agent, stop: str) -> None:
    claude.engine.answerer = lambda _: SimulatedAnswer((text_block("half of"),), stop)
    with pytest.raises(errors.ProviderError):
        claude.ask("hello")
    assert claude.ledger.state().failures == 1


def test_t6_at_the_limit_no_process_starts(agent: Agent) -> None:
    with pytest.raises(errors.BudgetExceeded):
        agent.ask("hello", cli_daily_usd=0.01)
    with pytest.raises(errors.BudgetExceeded):
        agent.ask("hello", cli_daily_calls=0)
    assert agent.bodies == []


def test_t9_a_key_by_a_helper_works(claude: Agent) -> None:
    del claude.environ["ANTHROPIC_API_KEY"]
    path = claude.user / ".claude" / "settings.json"
    own = json.loads(path.read_text()) | {"apiKeyHelper": "echo sk-ant-of-the-helper"}
    path.write_text(json.dumps(own))
    claude.engine.keys = ["sk-ant-of-the-helper"]
    assert claude.ask("hello") == "All is said."


def test_t9_without_a_login_it_is_said_and_nothing_is_sent(agent: Agent) -> None:
    agent.environ.pop("ANTHROPIC_API_KEY", None)
    (agent.user / ".codex" / "auth.json").unlink()
    with pytest.raises(errors.AuthFailed):
        agent.ask("hello")
    assert agent.bodies == []
    assert not agent_facts(PROGRAMS[agent.name[4:]], agent.environ, Settings()).logged_in


def test_t10_the_flags_are_known_to_these_versions(agent: Agent) -> None:
    settings = Settings(cli_path=agent.program)
    facts = agent_facts(PROGRAMS[agent.name[4:]], agent.environ, settings)
    assert facts.missing == ()
    assert facts.version


def test_t10_an_unknown_option_is_named(claude: Agent) -> None:
    older = claude.folder / "older"
    older.write_text(
        '#!/bin/sh\ncase " $* " in *" --help "*) exec '
        f"{claude.program} --help | sed s/--safe-mode//;; "
        f'*" --safe-mode "*) exec {claude.program} --no-such-flag "$@";; '
        f'*) exec {claude.program} "$@";; esac\n'
    )
    older.chmod(0o755)
    claude.program = str(older)
    with pytest.raises(errors.NotAvailable, match="--safe-mode"):
        claude.ask("hello")
    assert claude.bodies == []
    assert "--safe-mode" in claude.ledger.paused()
