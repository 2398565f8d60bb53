from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

import pytest

from reverie.errors import ProviderError
from reverie.providers import (
    LIFETIMES,
    TABLE,
    anthropic_model,
    merge_model_info,
    openai_model,
    table_capabilities,
)
from reverie.settings import Settings
from reverie.wire import reasons
from reverie.world import Capabilities
from tests.providers.wire import JSON, Answer, ask, patient, talk, wire

PAGE = b"<html></html>"


@pytest.mark.spec("14")
@pytest.mark.parametrize(
    ("model", "minimum", "compaction", "window"),
    [
        ("claude-opus-5-5", 512, True, 1_000_000),
        ("anthropic/claude-opus-5", 512, True, 1_000_000),
        ("claude-fable-5-2", 512, True, 1_000_000),
        ("claude-mythos-preview", 512, True, None),
        ("claude-sonnet-5", 1024, True, 1_000_000),
        ("claude-haiku-5-5", 1024, True, 1_000_000),
        ("claude-opus-4-8", 1024, True, None),
        ("claude-sonnet-4-6", 1024, True, None),
        ("claude-opus-4-7", 2048, True, None),
        ("claude-opus-4-6", 4096, True, None),
        ("claude-sonnet-4-5-20250929", 1024, False, None),
        ("claude-opus-4-5", 4096, False, 200_000),
        ("claude-haiku-4-5", 4096, False, 200_000),
        ("claude-unheard-of", 4096, False, None),
        ("gpt-5-mini", 1024, False, 272_000),
        ("gpt-5.1-codex", 1024, False, 272_000),
        ("gpt-5.5", 1024, False, 272_000),
        ("gpt-5.6-sol", 1024, False, None),
        ("gpt-4.1-nano", 1024, False, 1_047_576),
        ("gpt-4o", 1024, False, 128_000),
        ("o3", 1024, False, 200_000),
        ("llama3", 1024, False, None),
    ],
)
def test_the_table(model: str, minimum: int, compaction: bool, window: int | None) -> None:
    known = table_capabilities(model)
    assert (known.min_cacheable, known.compaction, known.window) == (minimum, compaction, window)
    claude = "claude" in model
    assert known.marks == (4 if claude else 0)
    assert known.lifetimes == (LIFETIMES if claude else ())
    assert known.thinking_binding is known.diagnostics is claude
    assert not known.cache_edits


@pytest.mark.spec("14")
def test_another_model_behind_the_same_api_is_asked_for_nothing_special() -> None:
    known = anthropic_model("qwen3", retries=patient(), base_url="http://l.test").capabilities
    assert known.marks == 4
    assert (known.diagnostics, known.compaction, known.context_management) == (False,) * 3


@pytest.mark.spec("14")
def test_every_row_has_its_sources() -> None:
    from reverie.providers import capabilities as module

    named = {word for row in TABLE for word in row.sources.split()}
    assert all(row.sources for row in TABLE)
    assert all(f"\n  {word} " in str(module.__doc__) for word in named)


@pytest.mark.spec("2")
@pytest.mark.parametrize(
    ("info", "window", "output"),
    [
        ({"max_input_tokens": 5, "max_tokens": 3}, 5, 3),
        ({"max_model_len": 4096}, 4096, None),
        ({"context_length": 7}, 7, None),
        ({"max_input_tokens": -1, "max_tokens": True}, None, None),
        ({"max_input_tokens": "9"}, None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_what_a_models_endpoint_says(info: object, window: int | None, output: int | None) -> None:
    found = merge_model_info(Capabilities(), info)  # type: ignore[arg-type]
    assert (found.window, found.max_output) == (window, output)


@pytest.mark.spec("14")
def test_a_server_may_say_what_else_it_can() -> None:
    said = {"cache_edits": {"supported": True}, "compaction": {"supported": False}}
    found = merge_model_info(table_capabilities("claude-opus-5"), {"capabilities": said})  # type: ignore[dict-item]
    assert found.cache_edits
    assert not found.compaction
    assert found.context_management


@pytest.mark.spec("2")
def test_the_window_in_the_order_of_the_specification() -> None:
    def window(name: str, limit: int | None = None, **settings: int) -> int | None:
        made = anthropic_model(
            name, retries=patient(), key="k", settings=replace(Settings(), **settings)
        )
        made.limit = limit
        return made.capabilities.window

    assert window("claude-haiku-4-5[1m]") == 1_000_000
    assert window("claude-haiku-4-5", context_window=50_000) == 200_000
    assert window("claude-new", context_window=50_000) == 50_000
    assert window("claude-new") == 200_000
    assert window("claude-haiku-4-5[1m]", limit=150_000) == 150_000


@pytest.mark.spec("B10")
async def test_a_limit_that_was_told_caps_the_window() -> None:
    long = b'{"error":{"message":"prompt is too long: 9 tokens > 7 maximum"}}'
    async with wire(Answer(long, 400, JSON)) as server:
        for made in (
            anthropic_model("claude-opus-5", retries=patient(), base_url=server.url),
            openai_model("gpt-5", retries=patient(), base_url=server.url),
        ):
            async with aclosing(made):
                with pytest.raises(ProviderError):
                    await ask(made, talk().request())
            assert made.capabilities.window == 7


@pytest.mark.spec("2")
async def test_a_local_server_that_only_lists_its_models() -> None:
    listed = b'{"object":"list","data":[{"id":"other"},{"id":"Q/q","max_model_len":4096}]}'
    missing = Answer(b"{}", 404, JSON)
    async with wire(missing, Answer(listed, 200, JSON)) as server:
        made = openai_model("Q/q", retries=patient(), base_url=server.url)
        async with aclosing(made):
            assert (await made.look_up()).window == 4096
            assert (await made.look_up()).window == 4096
    assert [a.path for a in server.asked] == ["/models/Q%2Fq", "/models"]


@pytest.mark.spec("2")
@pytest.mark.parametrize("answer", [Answer(b"{}", 500, JSON), Answer(PAGE, 200, "text/html")])
async def test_a_models_endpoint_that_is_silent_changes_nothing(answer: Answer) -> None:
    async with wire(answer) as server:
        made = anthropic_model("claude-haiku-4-5", retries=patient(), base_url=server.url)
        async with aclosing(made):
            assert (await made.look_up()).window == 200_000


def test_which_models_reason() -> None:
    assert all(map(reasons, ("gpt-5", "gpt-5.6-sol", "gpt-6-astra", "o3", "o4-mini")))
    assert not any(map(reasons, ("gpt-4o", "gpt-4.1", "llama3", "omega")))
