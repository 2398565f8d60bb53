from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reverie.errors import ProviderError
from reverie.transcript import AssistantMessage, text_block
from reverie.wire import native_block
from tests.providers.test_anthropic import SHORT, model
from tests.providers.wire import HEAD, JSON, Answer, ask, talk, wire

pytestmark = pytest.mark.spec("14")


async def test_options_reach_the_place_they_belong_to() -> None:
    options = (
        '{"max_tokens":1.0e2,"betas":["b-1","b-2"],"openai":{"seed":1},"prompt_cache_key":"k",'
        '"stream":false,"context_management":{"edits":[{"type":"clear_thinking_20251015",'
        '"keep":{"type":"thinking_turns","value":1.0}}]},"thinking":{"type":"adaptive"}}'
    )
    conversation = talk(replace(HEAD, model="claude-sonnet-4-5[1m]", options=options))
    async with wire(SHORT) as server:
        made = model(server)
        await ask(made, conversation.request())
        await ask(made, conversation.request())
        await made.aclose()
    first, second = (json.loads(a.body) for a in server.asked)
    assert server.asked[0].path == "/v1/messages"
    assert server.asked[0].headers["anthropic-beta"].split(",") == [
        "b-1",
        "b-2",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
    ]
    assert first["model"] == "claude-sonnet-4-5"
    assert list(first) == [
        *("model", "max_tokens", "context_management", "thinking"),
        *("system", "tools", "messages", "diagnostics", "stream"),
    ]
    assert first["diagnostics"] == {"previous_message_id": None}
    assert second["diagnostics"] == {"previous_message_id": "msg_1"}
    assert b'"max_tokens":1.0e2' in server.asked[0].body
    marks = [b for m in first["messages"] for b in m["content"] if "cache_control" in b]
    assert first["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "5m"}
    assert marks[-1]["cache_control"]["ttl"] == "5m"


async def test_a_limit_of_output_is_set_where_none_is() -> None:
    async with wire(SHORT) as server:
        made = model(server)
        await ask(made, talk(replace(HEAD, options="{}")).request())
        await made.aclose()
    assert json.loads(server.asked[0].body)["max_tokens"] == 32_000


@pytest.mark.parametrize(
    ("options", "blocks", "beta"),
    [
        ('{"compaction":{"type":"summarize"}}', (), "compact-2026-09-04"),
        ("{}", ({"type": "compaction", "content": "s"},), "compact-2026-09-04"),
        (
            '{"thinking":{"type":"adaptive","block_binding":{}}}',
            (),
            "thinking-binding-controls-2026-08-01",
        ),
    ],
)
async def test_a_beta_goes_with_what_needs_it(
    options: str, blocks: tuple[dict[str, object], ...], beta: str
) -> None:
    conversation = talk(replace(HEAD, options=options))
    for one in blocks:
        conversation.say(one)
    async with wire(SHORT) as server:
        made = model(server)
        await ask(made, conversation.request())
        await made.aclose()
    assert server.asked[0].headers["anthropic-beta"] == beta


async def test_blocks_of_other_providers_are_left_out_and_marks_stay() -> None:
    texts = (text_block("said"),)
    foreign = native_block("openai-responses", "gpt-5", texts, ['{"type":"reasoning"}'], {})
    mixed, plain = talk(), talk()
    mixed.add(AssistantMessage((*texts, foreign))).say("next")
    plain.add(AssistantMessage(texts)).say("next")
    async with wire(SHORT) as server:
        made = model(server)
        await ask(made, mixed.request())
        await made.aclose()
    assert server.asked[0].body.decode().startswith(plain.request().body()[:-1])


async def test_tokens_are_counted() -> None:
    count = Answer(b'{"input_tokens": 2095}', kind=JSON)
    options = '{"max_tokens":5,"temperature":1,"thinking":{"type":"adaptive"},"betas":["b"]}'
    async with wire(count, Answer(b"{}", kind=JSON)) as server:
        made = model(server)
        request = talk(replace(HEAD, options=options)).request()
        assert await made.count_tokens(request) == 2095
        with pytest.raises(ProviderError, match="no number"):
            await made.count_tokens(request)
        await made.aclose()
    assert server.asked[0].path == "/v1/messages/count_tokens"
    assert server.asked[0].headers["anthropic-beta"] == "b,token-counting-2024-11-01"
    assert list(json.loads(server.asked[0].body)) == [
        *("model", "thinking", "system", "tools", "messages")
    ]
