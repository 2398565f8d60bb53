"""Which provider a model's name, the keys and the base URLs at hand lead to.

`model_for` returns None where nothing is configured: the caller then uses the embedded
model. A model that is named but cannot be reached for want of a key is an error, never
silently another model.

A name may begin with its provider: `anthropic:`, `openai:`, `openai-chat:`,
`openai-responses:`, `ollama:`. Without that, names that begin with `claude` are
Anthropic's; every other name goes to OPENAI_BASE_URL if there is one, else to OpenAI.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from reverie.errors import InvalidInput
from reverie.light import dataclass
from reverie.observer import SystemClock
from reverie.providers import anthropic, openai
from reverie.providers.anthropic import AnthropicModel, anthropic_model
from reverie.providers.connection import OVERLOAD_PATIENCE, Retries
from reverie.providers.openai import OpenAIModel, WireFormat, openai_model
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.transcript.messages import family
from reverie.world import Clock

EMBEDDED = "embedded"
AGENT = "cli:"
"""How the name of an agent program of the user's begins; `models.named` knows them."""
DEFAULT_ANTHROPIC = "claude-sonnet-5"
DEFAULT_OPENAI = "gpt-5.5"
OLLAMA = "http://localhost:11434"
PREFIXES = ("anthropic", "openai", "openai-chat", "openai-responses", "ollama")
_WIRES: Mapping[str, WireFormat] = {
    "ollama": "chat",
    "openai-chat": "chat",
    "openai-responses": "responses",
}


@dataclass(frozen=True, slots=True)
class ProviderKeys:
    """The keys and addresses an environment gives."""

    anthropic_key: str = ""
    anthropic_token: str = ""
    anthropic_url: str = ""
    openai_key: str = ""
    openai_url: str = ""
    ollama_url: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> ProviderKeys:
        """From the variables that the official clients read too."""
        return cls(
            environ.get("ANTHROPIC_API_KEY", "").strip(),
            environ.get("ANTHROPIC_AUTH_TOKEN", "").strip(),
            environ.get("ANTHROPIC_BASE_URL", "").strip(),
            environ.get("OPENAI_API_KEY", "").strip(),
            environ.get("OPENAI_BASE_URL", "").strip(),
            environ.get("OLLAMA_HOST", "").strip(),
        )

    @property
    def to_anthropic(self) -> bool:
        return bool(self.anthropic_key or self.anthropic_token or self.anthropic_url)


def model_for(
    name: str,
    environ: Mapping[str, str],
    settings: Settings = DEFAULTS,
    *,
    clock: Clock | None = None,
    chance: Callable[[], float] = random.random,
    streaming: bool = True,
    session: str = "",
) -> AnthropicModel | OpenAIModel | None:
    """The model of that name, or of no name the default; None = use the embedded one."""
    if name.startswith(AGENT):
        do = "Name it as background_model, or another model here"
        raise InvalidInput("an agent program works in the background alone", where=name, do=do)
    access = ProviderKeys.of(environ)
    limit = settings.provider_retries
    retries = Retries(limit, clock or SystemClock(), chance, OVERLOAD_PATIENCE)
    provider, model = _provider_and_name(name.strip(), access)
    if provider == EMBEDDED:
        return None
    if provider == "anthropic":
        return anthropic_model(
            model,
            retries=retries,
            key=access.anthropic_key,
            token=access.anthropic_token,
            base_url=access.anthropic_url or anthropic.BASE_URL,
            settings=settings,
            streaming=streaming,
        )
    local = provider == "ollama"
    return openai_model(
        model,
        retries=retries,
        key="" if local else access.openai_key,
        base_url=ollama_url(access) if local else access.openai_url or openai.BASE_URL,
        wire=_WIRES.get(provider),
        settings=settings,
        streaming=streaming,
        cache_key=session,
    )


def _provider_and_name(name: str, access: ProviderKeys) -> tuple[str, str]:
    """Provider and bare name of a model."""
    prefix, _, rest = name.partition(":")
    if prefix in PREFIXES:
        if not rest:
            raise InvalidInput("a provider is named, but no model", where=name)
        return prefix, rest
    if name == EMBEDDED:
        return EMBEDDED, ""
    if name:
        return ("anthropic" if family(name).startswith("claude") else "openai"), name
    if access.to_anthropic:
        return "anthropic", DEFAULT_ANTHROPIC
    if access.openai_url:
        raise InvalidInput(
            "a base URL is configured, but no model",
            where=access.openai_url.rpartition("@")[2],
            do="Name the model to use there",
        )
    return ("openai", DEFAULT_OPENAI) if access.openai_key else (EMBEDDED, "")


def ollama_url(access: ProviderKeys) -> str:
    """Where a server of Ollama's answers in OpenAI's format."""
    host = access.ollama_url or OLLAMA
    base = host if "://" in host else f"http://{host}"
    return base.rstrip("/") + "/v1"
