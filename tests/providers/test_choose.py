from __future__ import annotations

import sys

import pytest

from reverie.errors import AuthFailed, InvalidInput, NotAvailable, ReverieError
from reverie.providers import (
    DEFAULT_ANTHROPIC,
    DEFAULT_OPENAI,
    AnthropicModel,
    OpenAIModel,
    model_for,
    price_of,
    table_capabilities,
)
from reverie.world import Model
from tests.processes import loaded

KEY = {"ANTHROPIC_API_KEY": "sk-a"}
OPENAI = {"OPENAI_API_KEY": "sk-o"}
LOCAL = {"OPENAI_BASE_URL": "http://localhost:8000/v1"}


@pytest.mark.spec("15")
@pytest.mark.parametrize("name", ["", "embedded"])
def test_with_nothing_configured_the_embedded_one_is_meant(name: str) -> None:
    assert model_for(name, {}) is None
    assert model_for(name, {"ANTHROPIC_API_KEY": "  "}) is None


@pytest.mark.spec("15")
@pytest.mark.parametrize(
    ("name", "environ", "kind", "model", "where"),
    [
        ("", KEY, AnthropicModel, "claude-sonnet-5", "api.anthropic.com"),
        ("", {"ANTHROPIC_AUTH_TOKEN": "t"}, AnthropicModel, "claude-sonnet-5", "api.anthropic.com"),
        ("", OPENAI, OpenAIModel, "gpt-5.5", "api.openai.com"),
        ("", {**KEY, **OPENAI}, AnthropicModel, "claude-sonnet-5", "api.anthropic.com"),
        ("claude-opus-5[1m]", KEY, AnthropicModel, "claude-opus-5[1m]", "api.anthropic.com"),
        ("gpt-5", {**KEY, **OPENAI}, OpenAIModel, "gpt-5", "api.openai.com"),
        ("Qwen/Qwen3-8B", LOCAL, OpenAIModel, "Qwen/Qwen3-8B", "localhost:8000"),
        ("ollama:qwen3:8b", {}, OpenAIModel, "qwen3:8b", "localhost:11434"),
        ("ollama:q", {"OLLAMA_HOST": "box:9"}, OpenAIModel, "q", "box:9"),
        (
            "claude-x",
            {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"},
            AnthropicModel,
            "claude-x",
            "127.0.0.1:1",
        ),
        ("openai:claude-x", {**KEY, **LOCAL}, OpenAIModel, "claude-x", "localhost:8000"),
    ],
)
def test_the_name_and_the_keys_decide(
    name: str, environ: dict[str, str], kind: type[Model], model: str, where: str
) -> None:
    found = model_for(name, environ)
    assert isinstance(found, kind)
    assert found.name == model
    assert found.connection.where == where


@pytest.mark.spec("15")
@pytest.mark.parametrize(
    ("name", "environ", "style"),
    [
        ("gpt-5", OPENAI, "responses"),
        ("openai-chat:gpt-5", OPENAI, "chat"),
        ("llama", LOCAL, "chat"),
        ("openai-responses:gpt-oss", LOCAL, "responses"),
        ("ollama:llama", {}, "chat"),
    ],
)
def test_which_format(name: str, environ: dict[str, str], style: str) -> None:
    found = model_for(name, environ)
    assert isinstance(found, OpenAIModel)
    assert found.format == style


@pytest.mark.spec("15")
@pytest.mark.parametrize(
    ("name", "environ", "kind"),
    [
        ("claude-opus-5", OPENAI, AuthFailed),
        ("gpt-5", KEY, AuthFailed),
        ("", LOCAL, InvalidInput),
        ("openai:", OPENAI, InvalidInput),
        ("claude-x", {"ANTHROPIC_BASE_URL": "not a url"}, InvalidInput),
        ("claude-x", {"ANTHROPIC_BASE_URL": "ftp://x"}, InvalidInput),
        ("claude-x", {"ANTHROPIC_BASE_URL": "http://u:secret@[bad"}, InvalidInput),
        ("x", {"OPENAI_BASE_URL": "http://host:99999"}, InvalidInput),
    ],
)
def test_what_cannot_work_is_said_at_once(
    name: str, environ: dict[str, str], kind: type[ReverieError]
) -> None:
    with pytest.raises(kind) as caught:
        model_for(name, environ)
    text = str(caught.value)
    assert "\n" not in text
    assert "secret" not in text
    assert caught.value.exit_code in (2, 7)


@pytest.mark.spec("15")
@pytest.mark.parametrize("name", [DEFAULT_ANTHROPIC, DEFAULT_OPENAI])
def test_the_defaults_are_models_we_know(name: str) -> None:
    assert table_capabilities(name).window
    assert price_of(name)


@pytest.mark.spec("15")
def test_a_key_goes_to_its_own_provider_alone() -> None:
    keys = {**KEY, **OPENAI}
    made = [model_for(name, keys) for name in ("ollama:x", "gpt-5", "claude-x")]
    assert [one.connection.secret for one in made if one] == ["no-key", "sk-o", "sk-a"]


@pytest.mark.spec("15")
@pytest.mark.parametrize("sdk", ["anthropic", "openai"])
def test_a_missing_sdk_is_named(sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, sdk, None)
    with pytest.raises(NotAvailable, match=rf"{sys.executable} -m pip install 'reverie\[{sdk}\]'"):
        model_for(f"{sdk}:x", {**KEY, **OPENAI})


@pytest.mark.spec("15")
def test_no_sdk_is_imported_before_it_is_needed() -> None:
    names = loaded("import reverie.providers.selection as c; assert c.model_for('', {}) is None")
    assert not names & {"anthropic", "openai", "httpx2"}
