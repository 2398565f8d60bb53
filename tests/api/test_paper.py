"""The programs of the API's design, as they stand there, run with the real SDKs.

What they leave open (a client, the caller's own tools) is handed in; nothing of ours is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import reverie
from reverie import models, testing
from reverie.topics import Origin, Trust

pytestmark = [pytest.mark.spec("18.paper"), pytest.mark.integration]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MINE: Any = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.fixture
def programs(shared: Path) -> dict[str, str]:
    """The blocks by the number of their section; a second one of a section has a `b`."""
    text = (shared / "PUBLIC_API.md").read_text(encoding="utf-8")
    out: dict[str, str] = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        for n, block in enumerate(PROGRAM.findall(part.partition("\n## ")[0])):
            out[part.split()[0] + ("b" if n else "")] = block
    return out


def run(code: str, known: dict[str, Any]) -> dict[str, Any]:
    exec(compile(code, "the API's design", "exec"), known)
    return known


def test_memory_in_three_lines(home: Path, programs: Mapping[str, str], capsys: Any) -> None:
    made = run(programs["1.1"], {})
    assert "a mocked migration broke in March" in made["prompt"]
    assert "a mocked migration broke in March" in capsys.readouterr().out


def result(n: int) -> str:
    rows = [f"line {row} of src/module_{n}/part.py" for row in range(140)]
    return "\n".join([*rows, f"needle {n}", *rows])


class Worker:
    """Calls a tool round after round, then reads the first result back, then is done."""

    def __init__(self) -> None:
        self.asked = 0
        self.found = False

    def __call__(self, body: Mapping[str, Any]) -> Any:
        self.asked += 1
        told = str(body)
        if self.asked <= 40:
            return [testing.call("run", f"toolu_number_{self.asked:03d}", n=self.asked)]
        if self.asked == 41:
            ref = re.search(r"> run 1 (r:\w{6})", told)
            assert ref is not None
            return [testing.call("read_back", "toolu_reads", reference=ref[1], query="needle 1")]
        self.found = "needle 1" in told
        return "Done."


def test_context_management_over_a_list_one_already_has(programs: Mapping[str, str]) -> None:
    def run_mine(call: Any) -> Any:
        n = int(re.findall(r"\d+", call.function.arguments)[0])
        return {"role": "tool", "tool_call_id": call.id, "content": result(n)}

    worker = Worker()
    with (
        testing.provider(worker) as p,
        openai.OpenAI(base_url=p.openai_url, api_key="x", max_retries=0) as client,
    ):
        tool = {"type": "function", "function": {"name": "run", "parameters": MINE}}
        messages: list[Any] = [{"role": "user", "content": "go"}]
        known = {"client": client, "my_tools": [tool], "run_mine": run_mine, "messages": messages}
        made = run(f"import reverie\n{programs['1.3']}", known)
        assert {one.status for one in p.requests} == {200}
        assert p.requests[1].extends(p.requests[0])
    assert made["reply"].content == "Done."
    assert worker.found
    assert made["sent"].saved > made["sent"].tokens


def test_a_fitter_with_everything(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: Mapping[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    memory = reverie.Memory(tmp_path)
    memory.add("The zebra build fails on node 18, because openssl moved", name="zebra build")
    known: dict[str, Any] = {
        "reverie": reverie,
        "memory": memory,
        "model": models.embedded(),
        "messages": [{"role": "user", "content": "Why does the zebra build fail?"}],
    }
    made = run(programs["1.3b"], known)
    assert "openssl moved" in str(made["sent"][1])


def test_undo_provenance_forgetting(
    home: Path, programs: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    from reverie.session import lend_memory
    from reverie.world import say_nothing

    memory = reverie.Memory("shop")
    (session,) = re.findall(r'session="(.*?)"', programs["1.8"])
    with lend_memory(memory.__project__, say_nothing) as one:
        origin = Origin("extract", Trust.AGENT, agent="main", session=session)
        one.store.remember("Said in a session", origin)
    assert len(memory.list()) == 1
    run(programs["1.8"], {"memory": memory})
    told = capsys.readouterr().out
    assert "save · user" in told
    assert told.endswith("True\n")
    assert memory.list() == []


def test_own_tool_names(home: Path, programs: Mapping[str, str]) -> None:
    first = programs["1.11"].splitlines()[0]
    made = run(first, {"reverie": reverie, "memory": reverie.Memory("shop")})
    assert made["kit"].names == ("fetch_result", "lookup", "remember")


def test_own_layer(programs: Mapping[str, str]) -> None:
    from tests.api.rounds import rounds

    made = run(programs["1.12"], {"reverie": reverie})
    fitter = made["fitter"]
    sent = fitter.fit(rounds(12, lines=30, names="screenshot build"))
    assert sum(one.startswith("cleared") for one in sent.changes) == 4


class ReadingAgent:
    """Somebody's agent, with a loop of its own."""

    def run(self, client: Any) -> None:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        tool = {"type": "function", "function": {"name": "read_file", "parameters": schema}}
        messages: list[Any] = [{"role": "user", "content": "Change a.py. " * 800}]
        with client:
            while True:
                made = client.chat.completions.create(
                    model="gpt-5.6", messages=messages, tools=[tool]
                )
                reply = made.choices[0].message
                messages.append(reply)
                if not reply.tool_calls:
                    break
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": "x = 1"}
                    for call in reply.tool_calls
                ]


def test_testing_ones_own_agent(programs: Mapping[str, str]) -> None:
    made = run(programs["1.13"], {"my_agent": ReadingAgent(), "OpenAI": openai.OpenAI})
    made["test_it_reads_before_it_writes"]()


def test_the_provider_speaks_all_three_and_tells_a_broken_prefix() -> None:
    words = "Tell me about the build. " * 400
    with testing.provider(["one", "two", "three", "four"]) as p:
        with anthropic.Anthropic(base_url=p.anthropic_url, api_key="x") as client:
            block: Any = {"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}
            said = [
                client.messages.create(
                    model="claude-opus-5-5",
                    max_tokens=100,
                    messages=[{"role": "user", "content": [block]}],
                )
                for _ in range(2)
            ]
        assert said[1].content[0].text == "two"  # pyright: ignore[reportAttributeAccessIssue]
        assert p.bill.hit_rate > 0.9
        with openai.OpenAI(base_url=p.openai_url, api_key="x") as other:
            assert other.responses.create(model="gpt-5.6", input=words).output_text == "three"
            assert other.responses.create(model="gpt-5.6", input="x" + words).output_text == "four"
        assert not p.requests[3].extends(p.requests[2])
        assert p.requests[1].extends(p.requests[0])
        assert p.bill.hit_rate < 0.5
        assert [one.status for one in p.requests] == [200] * 4
