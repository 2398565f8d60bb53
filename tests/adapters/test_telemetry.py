"""What OpenTelemetry is told of a session, in memory: spans, metrics, and nothing that was said."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import reverie
from reverie import models, observer, testing
from reverie.adapters import enable
from reverie.errors import ProviderError

pytestmark = [pytest.mark.spec("B19")]
SECRET = "zebracorn"
BIG = "src/build.py: warning W1234\n" * 4_000


class Collected:
    """The providers of one test, and what they got."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.tracing = TracerProvider()
        self.tracing.add_span_processor(SimpleSpanProcessor(self.spans))
        self.reader = InMemoryMetricReader()
        self.metering = MeterProvider([self.reader])

    def main(self) -> list[ReadableSpan]:
        """The requests of the main agent."""
        return [s for s in self.named("chat") if (s.attributes or {})["reverie.source"] == "main"]

    def named(self, start: str) -> list[ReadableSpan]:
        return [s for s in self.spans.get_finished_spans() if s.name.startswith(start)]

    def points(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found.setdefault(metric.name, []).extend(metric.data.data_points)
        return found


@pytest.fixture
def collected(home: Path) -> Iterator[Collected]:
    made = Collected()
    watcher = enable(tracer_provider=made.tracing, meter_provider=made.metering)
    yield made
    watcher.disable()
    made.tracing.shutdown()


async def talk(model: Any, project: Path, turns: Sequence[str] = ("Look", "Go on")) -> None:
    """A session of one's own loop, whose tool gives a large result."""
    tool = testing.tool_definition("build", target={"type": "string"})
    async with reverie.Session.open(project, model=model, memory=True, tools=[tool]) as s:
        for text in turns:
            await s.add(f"{text} at the {SECRET}")
            while True:
                reply = await s.ask()
                if not reply.tool_calls:
                    break
                await s.add(*[call.result(BIG) for call in reply.tool_calls])
            await s.end_turn()


def model_of(*answers: Any) -> testing.ScriptedModel:
    rest = iter(answers)
    return testing.ScriptedModel(lambda _: next(rest, f"Done with {SECRET}"))


def looking() -> testing.ScriptedModel:
    call = {"type": "tool_use", "id": "toolu_1", "name": "build", "input": {"target": SECRET}}
    return model_of([call])


async def test_a_session_is_told_as_turns_with_their_requests(
    collected: Collected, tmp_path: Path
) -> None:
    await talk(looking(), tmp_path)
    turns = collected.named("invoke_agent reverie")
    outcomes = [t.attributes and t.attributes["reverie.turn.outcome"] for t in turns]
    assert outcomes == ["completed", "completed"]
    rounds = collected.main()
    assert len(rounds) == 3
    within = [r.parent.span_id for r in rounds if r.parent]
    first, second = (t.context.span_id for t in turns if t.context)
    assert within == [first, first, second]
    assert len({s.context.trace_id for s in (*turns[:1], *rounds[:2]) if s.context}) == 1
    about = dict(rounds[0].attributes or {})
    assert about["gen_ai.operation.name"] == "chat"
    assert about["gen_ai.provider.name"] == "scripted"
    assert about["gen_ai.response.finish_reasons"] == ("tool_use",)
    assert int(str(about["gen_ai.usage.input_tokens"])) > 0
    assert about["gen_ai.conversation.id"] == (turns[0].attributes or {})["gen_ai.conversation.id"]
    assert rounds[0].kind.name == "CLIENT"
    assert all(
        (s.end_time or 0) >= (s.start_time or 0) for s in collected.spans.get_finished_spans()
    )


async def test_spans_name_the_model_that_was_asked_and_the_tool_that_ran(
    collected: Collected, tmp_path: Path
) -> None:
    await talk(looking(), tmp_path, ["Look"])
    rounds = collected.main()
    assert {str((one.attributes or {})["gen_ai.request.model"]) for one in rounds} != {"unknown"}
    (ran,) = collected.named("execute_tool ")
    about = dict(ran.attributes or {})
    assert (ran.name, about["gen_ai.tool.name"]) == ("execute_tool build", "build")
    assert about["gen_ai.tool.call.id"] == "toolu_1"
    assert ran.parent == collected.named("invoke_agent reverie")[0].context
    assert (rounds[0].end_time or 0) <= (ran.start_time or 0) <= (ran.end_time or 0)


async def test_layers_and_background_work_are_spans_of_their_turn(
    collected: Collected, tmp_path: Path
) -> None:
    await talk(looking(), tmp_path)
    layers = collected.named("reverie.layer ")
    assert "reverie.layer tool_results" in {s.name for s in layers}
    turn = collected.named("invoke_agent reverie")[0]
    stored = next(s for s in layers if s.name == "reverie.layer tool_results")
    assert stored.parent is not None
    assert turn.context is not None
    assert stored.parent.span_id == turn.context.span_id
    jobs = collected.named("reverie.job ")
    assert jobs


async def test_an_agent_behind_a_session_is_a_span_with_its_requests(
    collected: Collected, tmp_path: Path
) -> None:
    words = [f"Remember that the {SECRET} build fails on node 18, because openssl moved", "Go on"]
    await talk(models.embedded(), tmp_path, words)
    forks = [s for s in collected.named("invoke_agent") if s.name != "invoke_agent reverie"]
    assert forks
    fork = forks[0]
    assert (fork.attributes or {})["gen_ai.agent.id"]
    asked = [s for s in collected.named("chat") if s.parent and s.parent == fork.context]
    assert asked
    assert (asked[0].attributes or {})["reverie.source"] == fork.name.removeprefix("invoke_agent ")


async def test_tokens_cost_and_hit_rate_are_measured(collected: Collected, tmp_path: Path) -> None:
    await talk(looking(), tmp_path)
    points = collected.points()
    tokens = points["gen_ai.client.token.usage"]
    kinds = {p.attributes["gen_ai.token.type"] for p in tokens}
    assert kinds == {"input", "output"}
    main = [p for p in tokens if p.attributes["reverie.source"] == "main"]
    used = [(s.attributes or {})["gen_ai.usage.input_tokens"] for s in collected.main()]
    sent = sum(int(str(tokens)) for tokens in used)
    counted = sum(p.sum for p in main if p.attributes["gen_ai.token.type"] == "input")
    assert counted == sent > 0
    assert sum(p.value for p in points["reverie.cost"]) > sent
    assert sum(p.count for p in points["reverie.cache.hit_rate"]) >= 3
    assert sum(p.count for p in points["gen_ai.client.operation.duration"]) >= 3


async def test_pollution_is_told_as_it_was_last_checked(
    collected: Collected, tmp_path: Path
) -> None:
    from reverie.apps.cli import open_memory
    from reverie.reports import project_stats
    from reverie.store import Project

    await talk(model_of(), tmp_path, ["Look"])
    assert "reverie.memory.pollution" not in collected.points()
    memory = reverie.Memory(tmp_path)
    memory.add("The build needs Java 21, because of records", name="one")
    memory.add("Which Java does it need?", name="two")
    project = Project.at(tmp_path)
    with open_memory(project) as memories:
        project_stats(project, memories, 1_780_000_000.0, everything=True)
    (point,) = collected.points()["reverie.memory.pollution"]
    assert point.value == 0.5


async def test_nothing_that_was_said_is_told_unless_it_is_asked_for(
    collected: Collected, tmp_path: Path
) -> None:
    await talk(looking(), tmp_path)
    told = "".join(s.to_json() for s in collected.spans.get_finished_spans())
    assert len(told) > 1_000
    assert SECRET not in told
    assert "W1234" not in told
    asked = Collected()
    watcher = enable(tracer_provider=asked.tracing, meter_provider=asked.metering, texts=True)
    await talk(looking(), tmp_path)
    watcher.disable()
    first = asked.named("chat")[0].attributes or {}
    said = json.loads(str(first["gen_ai.input.messages"]))
    assert {"type": "text", "content": f"Look at the {SECRET}"} in said[0]["parts"]
    answered = json.loads(str(first["gen_ai.output.messages"]))
    assert answered[0]["parts"][0]["arguments"] == {"target": SECRET}


class Raising(SpanProcessor, SpanExporter):
    """Raises wherever OpenTelemetry calls it."""

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        raise RuntimeError("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("on_end")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise RuntimeError("export")


@pytest.mark.parametrize("kind", ["processor", "exporter"])
async def test_what_raises_in_an_exporter_never_reaches_a_turn(
    home: Path, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    tracing = TracerProvider()
    bad = Raising()
    tracing.add_span_processor(bad if kind == "processor" else SimpleSpanProcessor(bad))
    watcher = enable(tracer_provider=tracing, meter_provider=MeterProvider([]))
    with caplog.at_level(logging.CRITICAL, "opentelemetry"):
        await talk(looking(), tmp_path)
    watcher.disable()
    listed = reverie.Memory(tmp_path).search(SECRET, kind="session")
    assert listed  # the session is whole on disk


async def test_off_means_nothing_is_told(home: Path, tmp_path: Path) -> None:
    made = Collected()
    enable(tracer_provider=made.tracing, meter_provider=made.metering).disable()
    assert not observer.is_watched()
    await talk(looking(), tmp_path)
    assert made.spans.get_finished_spans() == ()
    assert made.points() == {}


def test_off_costs_no_import(home: Path, tmp_path: Path) -> None:
    code = f"""
import sys, anyio, reverie
from reverie import models
async def main():
    async with reverie.Session.open({str(tmp_path)!r}, model=models.embedded(), memory=True) as s:
        await s.add("Look")
        await s.ask()
anyio.run(main)
print(sum(name.split(".")[0] == "opentelemetry" for name in sys.modules))
print(sum(name.startswith("reverie.adapters") for name in sys.modules))
"""
    run = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]


def test_names_are_those_of_the_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
    from opentelemetry.semconv.attributes import error_attributes

    from reverie.adapters import telemetry

    theirs = {**vars(gen_ai_attributes), **vars(gen_ai_metrics), **vars(error_attributes)}
    ours = {
        name: value
        for name, value in vars(telemetry).items()
        if name.startswith(("GEN_AI", "ERROR"))
    }
    assert len(ours) > 15
    assert {name: theirs[name] for name in ours} == ours


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_request_that_the_provider_refuses_has_a_span(
    collected: Collected, tmp_path: Path, goes_on: bool
) -> None:
    answers = [ProviderError("401: the key is wrong"), *(["Done."] if goes_on else [])]
    model = testing.ScriptedModel(answers)
    async with reverie.Session.open(tmp_path, model=model, memory=False) as s:
        await s.add("Look")
        with pytest.raises(ProviderError):
            await s.ask()
        if goes_on:
            assert (await s.ask()).text == "Done."
    refused, *others = collected.main()
    assert (refused.attributes or {})["error.type"] == "refused"
    assert refused.status.status_code is StatusCode.ERROR
    assert [one.status.is_ok for one in others] == [True] * goes_on
