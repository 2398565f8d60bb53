from __future__ import annotations

import json

import pytest

from reverie.errors import AuthFailed, Overloaded, PromptTooLong, ProviderError, UnknownModel
from reverie.transcript import Json
from reverie.wire import from_event, from_status, parse_error_body

pytestmark = pytest.mark.spec("2")


def body(message: str, kind: str = "invalid_request_error", **more: object) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, **more}})


PAGE = "<html><head><title>502 Bad\n Gateway</title></head><body>nginx</body></html>"


@pytest.mark.parametrize(
    ("status", "text", "kind", "retry"),
    [
        (400, body("max_tokens: required"), ProviderError, False),
        (401, body("invalid x-api-key", "authentication_error"), AuthFailed, False),
        (403, body("no access", "permission_error"), AuthFailed, False),
        (404, body("model: claude-x", "not_found_error"), UnknownModel, False),
        (404, body("The model `x` does not exist", code="model_not_found"), UnknownModel, False),
        (404, '{"detail":"Not Found"}', ProviderError, False),
        (404, 'model "llama9" not found, try pulling it first', UnknownModel, False),
        (408, "", ProviderError, True),
        (409, body("conflict"), ProviderError, True),
        (413, body("too big", "request_too_large"), PromptTooLong, False),
        (422, body("no"), ProviderError, False),
        (429, body("slow down", "rate_limit_error"), Overloaded, True),
        (429, body("no money", code="insufficient_quota"), Overloaded, False),
        (500, body("oops", "api_error"), ProviderError, True),
        (502, PAGE, ProviderError, True),
        (200, PAGE, ProviderError, False),
        (503, "upstream", Overloaded, True),
        (529, body("busy", "overloaded_error"), Overloaded, True),
        (418, "\x1b[31mred\x07" + "x" * 5000, ProviderError, False),
        (500, "[1, 2]", ProviderError, True),
        (400, '{"error":"plain words"}', ProviderError, False),
    ],
)
def test_each_refusal_has_its_error(
    status: int, text: str, kind: type[ProviderError], retry: bool
) -> None:
    setback = from_status(status, parse_error_body(text), {"retry-after": "3"}, "api.test")
    assert type(setback.error) is kind
    assert setback.retry is retry
    assert setback.after == "3"
    sentence = str(setback.error)
    assert "api.test" in sentence
    assert sentence.isprintable()
    assert len(sentence) < 600


def test_a_page_is_named_and_its_title_told() -> None:
    text = str(from_status(502, parse_error_body(PAGE), {}, "x").error)
    assert "web page" in text
    assert "502 Bad Gateway" in text
    assert "nginx" not in text


def test_the_provider_may_say_whether_to_try_again() -> None:
    assert not from_status(529, parse_error_body(""), {"x-should-retry": "false"}, "x").retry
    assert from_status(400, parse_error_body(""), {"x-should-retry": "true"}, "x").retry


@pytest.mark.spec("B10")
@pytest.mark.parametrize(
    ("status", "message", "needed", "allowed"),
    [
        (400, "prompt is too long: 208310 tokens > 200000 maximum", 208310, 200000),
        (400, "Prompt Is Too Long: 208,310 tokens > 200,000 maximum", 208310, 200000),
        (413, "Prompt is too long", None, None),
        (413, "", None, None),
        (
            400,
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, cut it",
            209573,
            200000,
        ),
        (400, "Input is too long for requested model", None, None),
        (
            400,
            "maximum context length is 128000 tokens. However, your messages resulted in 130512",
            130512,
            128000,
        ),
        (
            400,
            "maximum context length is 4097 tokens, however you requested 5000 tokens (4000 in it)",
            5000,
            4097,
        ),
        (400, "Your input exceeds the context window of this model.", None, None),
        (500, "the request exceeds the available context size (4096 tokens)", None, 4096),
        (400, "request (9000 tokens) exceeds the available context size (4096 tokens)", 9000, 4096),
        (
            400,
            "input token count (1200000) exceeds the maximum number of tokens allowed (1048576)",
            1200000,
            1048576,
        ),
    ],
)
def test_a_prompt_too_long_says_by_how_much(
    status: int, message: str, needed: int | None, allowed: int | None
) -> None:
    error = from_status(status, parse_error_body(body(message)), {}, "x").error
    assert isinstance(error, PromptTooLong)
    assert (error.needed, error.allowed) == (needed, allowed)
    only_a_code = parse_error_body(body("nope", code="context_length_exceeded"))
    assert isinstance(from_status(400, only_a_code, {}, "x").error, PromptTooLong)


@pytest.mark.parametrize(
    ("kind", "error", "retry"),
    [
        ("overloaded_error", Overloaded, True),
        ("rate_limit_error", Overloaded, True),
        ("api_error", ProviderError, True),
        ("authentication_error", AuthFailed, False),
        ("invalid_request_error", ProviderError, False),
        ("never_heard_of", ProviderError, True),
    ],
)
def test_an_error_inside_a_stream(kind: str, error: type[ProviderError], retry: bool) -> None:
    setback = from_event({"type": "error", "error": {"type": kind, "message": "m"}}, "x")
    assert type(setback.error) is error
    assert setback.retry is retry


@pytest.mark.parametrize("value", [None, [], "x", {"error": None}, {"error": 3}, {"error": {}}])
def test_any_error_event_is_understood(value: Json) -> None:
    assert from_event(value, "x").retry
