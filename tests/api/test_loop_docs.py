"""The loops of docs/loop.md and docs/wrap.md run as they stand, with the real clients."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import reverie
from reverie.simulator import call
from tests.api.talks import TOOLS, is_background, serve

pytestmark = pytest.mark.spec("18.loop-docs")
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "loop.md").read_text(encoding="utf-8")
WRAP = (ROOT / "docs" / "wrap.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


EXAMPLES = [
    *((f"docs/loop.md, block {n}", code) for n, code in enumerate(blocks(PAGE))),
    *((f"docs/wrap.md, block {n}", code) for n, code in enumerate(blocks(WRAP))),
]


class Provider:
    def __init__(self) -> None:
        self.bodies: list[Any] = []

    def __call__(self, body: Any) -> Any:
        if is_background(body):
            return "Nothing."
        self.bodies.append(body)
        first = not any("tool_result" in json.dumps(m) for m in body["messages"])
        if first and body.get("tools"):
            return [call("run", '{"n": 1}', f"toolu_number_{len(self.bodies):03d}")]
        return "Done."


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("The code word is heron.\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "code"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
async def test_an_example_runs_as_it_stands(
    name: str,
    code: str,
    home: Path,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[dict[str, Any]] = []

    async def run(tool: str, arguments: dict[str, Any]) -> str:
        assert tool == "run"
        ran.append(arguments)
        return "ran"

    provider = Provider()
    with serve(provider) as (url, sim):
        for key, value in (("ANTHROPIC", url), ("OPENAI", f"{url}/v1")):
            monkeypatch.setenv(f"{key}_BASE_URL", value)
            monkeypatch.setenv(f"{key}_API_KEY", "k")

        async def send(request: reverie.Request) -> Any:
            import anthropic

            async with anthropic.AsyncAnthropic() as client:
                return await client.messages.create(**request.anthropic())

        typed = iter(["Hello there", "And once more", ""])
        space: dict[str, Any] = {"TOOLS": TOOLS["messages"], "run": run, "send": send}
        space["input"] = lambda _: next(typed)
        done = eval(compiled(code, name), space)
        if inspect.isawaitable(done):
            await done
        client = space.get("client")
        if client is not None:
            ended = client.close()
            if inspect.isawaitable(ended):
                await ended
    assert {e.status for e in sim.log} <= {200}
    if "run(call.name" in code:
        assert ran == [{"n": 1}]
        assert space["reply"].text == "Done."
    if 'run("read notes.txt")' in code:
        assert "heron" in capsys.readouterr().out


def compiled(code: str, name: str) -> CodeType:
    return compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_the_page_names_every_verb_of_a_session() -> None:
    for name in vars(reverie.Session):
        assert name.startswith("_") or f"{name}" in PAGE, name
    for name in vars(reverie.Agent):
        assert name.startswith("_") or f"{name}" in PAGE, name
