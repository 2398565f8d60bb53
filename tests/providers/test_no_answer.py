from __future__ import annotations

import json
import socket
from contextlib import aclosing
from dataclasses import replace

import pytest

from reverie.errors import AuthFailed, InvalidInput, ProviderError, Unreachable
from reverie.providers import anthropic_model, model_for, openai_model
from reverie.settings import DEFAULTS
from reverie.testing import ManualClock
from reverie.world import complete
from tests.providers.wire import HEAD, JSON, Answer, ask, patient, talk, wire

KEY = {"ANTHROPIC_API_KEY": "sk-a"}
OPENAI = {"OPENAI_API_KEY": "sk-o"}
LOCAL = {"OPENAI_BASE_URL": "http://localhost:8000/v1"}


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.spec("2")
@pytest.mark.parametrize("name", ["anthropic:claude-opus-5", "openai-chat:x", "openai-responses:x"])
@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
async def test_a_host_that_is_not_there(name: str, host: str) -> None:
    clock = ManualClock()
    url = f"http://{host}:{unused_port()}"
    environ = {**KEY, **OPENAI, "ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": url}
    made = model_for(name, environ, replace(DEFAULTS, provider_retries=2), clock=clock)
    assert made is not None
    async with aclosing(made):
        with pytest.raises(Unreachable) as caught:
            await complete(made, talk().request())
    assert len(clock.slept) == 2
    text = str(caught.value)
    assert host in text
    assert "sk-" not in text
    assert caught.value.exit_code == 8


PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


@pytest.mark.spec("2")
@pytest.mark.parametrize("name", ["anthropic:claude-opus-5", "openai-chat:x", "openai-responses:x"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(PAGE, 200, "text/html"), "web page"),
        (Answer(PAGE, 502, "text/html; charset=utf-8"), "HTTP 502: Sign in"),
        (Answer(PAGE, 407, "text/html"), "web page"),
        (Answer(b"Bad Gateway", 502, "text/html"), "web page"),
        (Answer(PAGE, 200, JSON), "web page"),
        (Answer(b"hello", 200, "text/html"), "web page"),
        (Answer(b"", 200), "broke off"),
        (Answer(b"", 200, JSON), "cannot be read"),
        (Answer(b"\xff\xfe", 200, JSON), "UTF-8"),
        (Answer(b"data: \xff\n\n", 200), "UTF-8"),
        (Answer(b"null", 200, JSON), "cannot be read"),
        (Answer(b'{"error":{"message":"no"}}', 200, JSON), "no"),
        (Answer(b"{}", 401, JSON), "does not accept the key"),
        (Answer(b"", 404, "text/plain"), "no model's API"),
    ],
)
async def test_an_answer_that_is_none(name: str, answer: Answer, said: str) -> None:
    clock = ManualClock()
    async with wire(answer) as server:
        environ = {**KEY, **OPENAI, "ANTHROPIC_BASE_URL": server.url, "OPENAI_BASE_URL": server.url}
        made = model_for(name, environ, replace(DEFAULTS, provider_retries=1), clock=clock)
        assert made is not None
        async with aclosing(made):
            with pytest.raises(ProviderError, match=said) as caught:
                await ask(made, talk().request())
    assert len(server.asked) == 1 + len(clock.slept) <= 2
    assert "\n" not in str(caught.value)


@pytest.mark.spec("2")
@pytest.mark.parametrize("after", ["", "-1", "1e300", "Fri, 31 Dec 9999 23:59:59 GMT", "later"])
async def test_an_odd_retry_after_bounds_nothing(after: str) -> None:
    headers = (("retry-after", after),) if after else ()
    clock = ManualClock()
    async with wire(Answer(b"{}", 429, JSON, headers)) as server:
        made = anthropic_model("claude-x", retries=patient(5, clock), base_url=server.url)
        async with aclosing(made):
            with pytest.raises(ProviderError):
                await ask(made, talk().request())
    assert len(server.asked) == 6
    assert len(clock.slept) == 5
    assert all(0 < wait <= 60 for wait in clock.slept)


@pytest.mark.spec("15")
async def test_how_a_key_is_sent_and_that_none_is_needed_locally() -> None:
    async with wire(Answer(b"{}", 400, JSON)) as server:
        made = [
            anthropic_model("m", retries=patient(), base_url=server.url),
            anthropic_model("m", retries=patient(), token="tok", base_url=server.url),
            openai_model("m", retries=patient(), base_url=server.url),
        ]
        for one in made:
            async with aclosing(one):
                with pytest.raises(ProviderError):
                    await ask(one, talk(HEAD).request())
    assert [a.headers.get("authorization") for a in server.asked] == [
        "Bearer no-key",
        "Bearer tok",
        "Bearer no-key",
    ]


@pytest.mark.spec("15")
@pytest.mark.parametrize("key", ["sk-s\u00e9cret", "sk-\nsecret", "sk-\x00secret"])
def test_a_key_that_cannot_be_one(key: str) -> None:
    with pytest.raises(AuthFailed) as caught:
        model_for("claude-x", {"ANTHROPIC_API_KEY": key})
    assert "cret" not in str(caught.value)


@pytest.mark.spec("15")
async def test_a_key_that_a_server_repeats_is_not_shown() -> None:
    async with wire(Answer(b'{"error":{"message":"bad key sk-secret!"}}', 401, JSON)) as server:
        made = anthropic_model("m", retries=patient(), key="sk-secret", base_url=server.url)
        async with aclosing(made):
            with pytest.raises(AuthFailed, match="bad key …!") as caught:
                await ask(made, talk().request())
    assert "sk-secret" not in str(caught.value)
    assert "sk-secret" not in repr(made)


@pytest.mark.spec("15")
@pytest.mark.parametrize("beta", ["b\r\nx-evil: 1", "b\u00e9"])
async def test_a_beta_that_is_no_header_is_refused(beta: str) -> None:
    request = talk(replace(HEAD, options=json.dumps({"betas": [beta]}))).request()
    async with wire(Answer(b"{}", 400, JSON)) as server:
        made = anthropic_model("m", retries=patient(), base_url=server.url)
        async with aclosing(made):
            with pytest.raises(InvalidInput, match="header"):
                await ask(made, request)
    assert not server.asked
