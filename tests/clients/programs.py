"""The real clients, each as its users start it, away from every network but loopback."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SECONDS = 120
MODEL, GPT = "claude-sonnet-4-5", "gpt-5.6"
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Desk:
    """A user's home and project, and the address that the clients are given."""

    folder: Path
    url: str
    environ: dict[str, str] = field(default_factory=dict[str, str])
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        for name in ("home", "repo", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if not (self.repo / ".git").exists():
            git = ("git", "-C", str(self.repo))
            subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    def file(self, name: str, size: int = 12_000) -> Path:
        """A file of lines that can be told from all others."""
        lines = (f"{name} line {n}: {n * 7919 % 100_003} of {len(name) * n}" for n in range(10**6))
        text = ""
        for line in lines:
            text += line + "\n"
            if len(text) >= size:
                break
        path = self.repo / name
        path.write_text(text)
        return path

    def run(self, program: str, *args: str, **environ: str) -> str:
        """Run a client to its end; what it printed."""
        code, out = self.ended(program, *args, **environ)
        assert code == 0, f"{program} exit {code}: {out[-3000:]}"
        return out

    def ended(self, program: str, *args: str, **environ: str) -> tuple[int, str]:
        """Run a client to its end, whatever that is: its exit code and what it printed."""
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"needs {program}: `make integration` installs it")
        given = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1,localhost",
            **self.environ,
            **environ,
        }
        with subprocess.Popen(
            [found, *args],
            cwd=self.repo,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, _ = process.communicate(timeout=self.seconds)
            finally:  # with what the client has started: a shell, a server
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            return process.returncode, out


def claude(
    desk: Desk, prompt: str, *args: str, version: str = "", model: str = MODEL, **environ: str
) -> str:
    program = f"claude-{version}" if version else "claude"
    return desk.run(
        program, "-p", prompt, "--model", model, "--dangerously-skip-permissions", *args,
        ANTHROPIC_BASE_URL=desk.url, ANTHROPIC_API_KEY="sk-ant-fake-0000",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1", IS_SANDBOX="1",
        **environ,
    )  # fmt: skip


def codex(desk: Desk, prompt: str, *args: str) -> str:
    config = desk.home / ".codex" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    provider = f'name = "local"\nbase_url = "{desk.url}/v1"\nenv_key = "OPENAI_API_KEY"\n'
    config.write_text(
        f'model = "{GPT}"\nmodel_provider = "local"\n[model_providers.local]\n{provider}'
        'wire_api = "responses"\n'
    )
    return desk.run(
        "codex", "exec", *args, "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox", prompt, OPENAI_API_KEY="fake",
    )  # fmt: skip


def opencode(desk: Desk, prompt: str, *args: str) -> str:
    models = {MODEL: {"name": "s", "limit": {"context": 200_000, "output": 8_000}}}
    options = {"baseURL": f"{desk.url}/v1", "apiKey": "fake"}
    settings = {
        "model": f"anthropic/{MODEL}",
        "provider": {"anthropic": {"options": options, "models": models}},
    }
    (desk.repo / "opencode.json").write_text(json.dumps(settings))
    return desk.run(
        "opencode", "run", *args, prompt,
        OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1",
    )  # fmt: skip


def qwen(desk: Desk, prompt: str, *args: str) -> str:
    # by chat completions: as a client of the Messages API it asks for more thinking than output,
    # which the provider refuses, with a proxy or without
    return desk.run(
        "qwen", "--auth-type", "openai", "--yolo", *args, "-p", prompt,
        OPENAI_API_KEY="fake", OPENAI_BASE_URL=f"{desk.url}/v1", OPENAI_MODEL=GPT, HTTPS_PROXY="",
    )  # fmt: skip


def aider(desk: Desk, prompt: str, *args: str) -> str:
    return desk.run(
        "aider", "--model", f"anthropic/{MODEL}", "--yes-always", "--no-check-update",
        "--analytics-disable", "--no-show-model-warnings", "--no-auto-commits",
        "--message", prompt, *args,
        ANTHROPIC_API_KEY="fake", ANTHROPIC_BASE_URL=desk.url, ANTHROPIC_API_BASE=desk.url,
        LITELLM_LOCAL_MODEL_COST_MAP="True",
    )  # fmt: skip


def llm(desk: Desk, prompt: str, *args: str) -> str:
    return desk.run(
        "llm", "-m", "claude-sonnet-4.5", *args, prompt,
        ANTHROPIC_API_KEY="fake", ANTHROPIC_BASE_URL=desk.url,
        LLM_USER_PATH=str(desk.home / "llm"),
    )  # fmt: skip


PROGRAMS: Mapping[str, Callable[..., str]] = {
    "claude": claude,
    "codex": codex,
    "opencode": opencode,
    "qwen": qwen,
    "aider": aider,
    "llm": llm,
}
