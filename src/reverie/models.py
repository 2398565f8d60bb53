"""Models to hand in: `Memory.learn(model=)`, `Fitter(summarizer=)`, `Session.open(model=)`.

A model is made and nothing is asked: its client connects when it is first used. Keys and addresses
come from the environment, as for the command line. What is missing is said when it is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from reverie.errors import InvalidInput, PromptTooLong, ProviderError, ReverieError
from reverie.providers.capabilities import LIKE_CLAUDE, PLAIN, in_force, table_capabilities
from reverie.settings.catalog import DEFAULTS, Settings
from reverie.wire.failures import ProviderWords, from_status, parse_error_body, quote_line
from reverie.wire.reply import FINAL, as_reply
from reverie.wire.request import UNSTREAMED, Request
from reverie.world import Capabilities, Event, Model

__all__ = ["anthropic", "embedded", "named", "openai"]


def named(name: str, *, settings: Settings | None = None) -> Model:
    """The model of a name, such as `claude-opus-5-5`, `cli:claude` or `embedded`."""
    from reverie.providers.selection import AGENT, model_for
    from reverie.settings.sources import environment

    if name.startswith(AGENT):
        from reverie.providers.cli import CliModel, parse_name
        from reverie.store.agent_ledger import AgentLedger
        from reverie.store.home import home

        environ, given = environment(), settings or DEFAULTS
        return CliModel(*parse_name(name), AgentLedger(home(environ)), environ, given)
    found = model_for(name, environment(), settings or DEFAULTS)
    return embedded(settings=settings) if found is None else found


def anthropic(name: str, *, settings: Settings | None = None) -> Model:
    """A model of Anthropic's."""
    return named(f"anthropic:{name}", settings=settings)


def openai(name: str, *, settings: Settings | None = None) -> Model:
    """A model of OpenAI's, or of a server that speaks like it."""
    return named(f"openai:{name}", settings=settings)


def embedded(*, settings: Settings | None = None) -> Model:
    """The rules that need no model: free, and on this machine alone."""
    from reverie.embedded.model import EmbeddedModel

    return EmbeddedModel() if settings is None else EmbeddedModel(settings)


# --- the caller's own client
#
# One of Anthropic's or OpenAI's, sync or async, or any function that takes a request and gives
# what came back. It is known by what it can do: no SDK is imported for it. What it raises in the
# caller's own `ask` is left as it is; behind a session it becomes an error of ours, so that the
# work can fail alone.

Way: TypeAlias = Literal["anthropic", "chat", "responses", "function"]
OPENAI = "api.openai.com"
WAYS: dict[str, Way] = {"openai-chat": "chat", "openai-responses": "responses"}
"""Which call of an OpenAI client an answer came from."""


@dataclass
class ClientModel:
    """A `Model` that asks through the caller's client, in the API that the caller uses."""

    client: Any
    name: str
    way: Way
    settings: Settings = DEFAULTS
    learned: int | None = None
    known: Capabilities = field(init=False)

    def __post_init__(self) -> None:
        self.known = table_capabilities(
            self.name, LIKE_CLAUDE if self.way == "anthropic" else PLAIN
        )

    @classmethod
    def of(cls, client: object, name: str, settings: Settings = DEFAULTS) -> ClientModel:
        if not name:
            do = 'Say model="claude-opus-5-5", or whatever your client knows'
            raise InvalidInput("a client was given, but no model's name", do=do)
        return cls(client, name, _way(client), settings)

    @property
    def capabilities(self) -> Capabilities:
        return in_force(self.name, self.known, self.settings, learned=self.learned)

    @property
    def limit(self) -> int:
        """Output tokens of a request that names none; 0 leaves it to the provider."""
        return output_limit(self.capabilities, self.settings)

    def heard(self, provider: str) -> None:
        """The caller's own answers come from this API: its prompt cache is the one to share."""
        if self.way in ("chat", "responses"):
            self.way = WAYS.get(provider, self.way)

    async def send(self, request: Request) -> object:
        """What came back, as the client gives it; what it raises, untouched."""
        sent = request if request.limit else replace(request, limit=self.limit)
        if self.way == "function":
            return await whole_answer(await call_result(partial(self.client, sent)))
        if self.way == "anthropic":
            create, given = self.client.messages.create, sent.anthropic()
            if given["max_tokens"] > UNSTREAMED:  # the client would refuse to wait
                given["stream"] = True
        elif self.way == "responses":
            create, given = self.client.responses.create, sent.responses()
        else:
            create = self.client.chat.completions.create
            given = sent.chat(official=OPENAI in str(getattr(self.client, "base_url", OPENAI)))
        return await whole_answer(await call_result(partial(create, **given)))

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        try:
            answer = await self.send(request)
        except ReverieError:
            raise
        except Exception as error:
            raise failure(error, self.name) from error
        yield as_reply(answer, request)


def _way(client: object) -> Way:
    if _has(client, "messages", "create"):
        return "anthropic"
    chat = _has(client, "chat", "completions", "create")
    official = OPENAI in str(getattr(client, "base_url", ""))
    if _has(client, "responses", "create") and (official or not chat):
        return "responses"
    if chat:
        return "chat"
    if callable(client):
        return "function"
    raise InvalidInput(
        "this is no client that is known",
        where=type(client).__name__,
        do="Give a client of Anthropic's or OpenAI's, or an async function of one request",
    )


def _has(client: object, *names: str) -> bool:
    for name in names:
        client = getattr(client, name, None)
    return callable(client)


def output_limit(known: Capabilities, settings: Settings) -> int:
    """Output tokens a request asks for; 0 where the provider knows better."""
    most = settings.max_output_tokens
    if known.max_output is None and most >= DEFAULTS.max_output_tokens and not known.marks:
        return 0
    return min(known.max_output or most, most)


# --- calls and streams of either kind


async def call_result(call: Callable[[], object]) -> object:
    """The result of a call, waited for; one that blocks is made in a worker thread."""
    import inspect

    from anyio import to_thread

    function: Callable[..., object] = getattr(call, "func", call)
    if inspect.iscoroutinefunction(inspect.unwrap(function)):
        result: Any = call()
    else:
        result = await to_thread.run_sync(call)
    return await result if inspect.isawaitable(result) else result


async def whole_answer(answer: object) -> object:
    """An answer once it is whole: a stream that still runs is read to its end."""
    for name in FINAL:
        final = getattr(answer, name, None)
        if callable(final):
            return await call_result(final)
    if hasattr(answer, "__aiter__") and not hasattr(answer, "model_dump"):
        stream: Any = answer
        return [event async for event in stream]
    if hasattr(answer, "__next__"):
        from anyio import to_thread

        events: Any = answer
        return await to_thread.run_sync(lambda: list(events))
    return answer


# --- failures


def failure(error: Exception, where: str) -> ProviderError:
    """What a client raised, as an error of ours."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return ProviderError(f"the client failed: {quote_line(str(error))}", where=where)
    response = getattr(error, "response", None)
    try:
        words = (
            parse_error_body(str(response.text))
            if response is not None
            else ProviderWords(str(error))
        )
    except Exception:  # noqa: BLE001 - a body that was never read
        words = ProviderWords(quote_line(str(error)))
    return from_status(status, words, {}, where).error


def too_long(error: Exception, where: str) -> PromptTooLong | None:
    """What a client raised, where it says that the request was too long."""
    found = error if isinstance(error, ProviderError) else failure(error, where)
    return found if isinstance(found, PromptTooLong) else None


# --- without a client


class BackgroundModel:
    """What works behind a session whose model is only a name: that model's window and ways, and
    the embedded rules for answers, loaded when one is due. Nothing is billed."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        known = replace(
            table_capabilities(name), compaction=False, cache_edits=False, free=True, rules=True
        )
        self.capabilities = in_force(name, known, settings)
        self._settings = settings

    def stream(self, request: Request) -> AsyncIterator[Event]:
        from reverie.embedded.model import EmbeddedModel

        return EmbeddedModel(self._settings).stream(request)
