"""Vectors of texts from a model that the user has: behind an endpoint of OpenAI's kind, or here.

Nothing is downloaded and no key is looked for: an endpoint gets the address and key it is given,
a local model is a function that the caller already has. What goes to an endpoint is the text of
memories and queries, so one is used only where somebody configured it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio.to_thread

from reverie.errors import AuthFailed, InvalidInput, InvalidMessage, ProviderError
from reverie.light import dataclass
from reverie.providers.choose import Access, ollama_url
from reverie.providers.connection import NO_KEY, Connection, connect, whole
from reverie.providers.openai import BASE_URL
from reverie.transcript.blocks import Json, dump, parse
from reverie.transcript.tokens import family
from reverie.wire.failures import Setback

TIMEOUT = 30.0
BATCH = 64
"""Texts that are sent at a time."""


@dataclass(slots=True)
class EndpointEmbeddings:
    """A model behind `POST /embeddings`: OpenAI itself, Ollama, vLLM and the like."""

    name: str
    connection: Connection

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            found += await self._some(list(texts[start : start + BATCH]))
        return found

    async def _some(self, texts: list[str]) -> list[list[float]]:
        body = dump({"model": self.name, "input": texts}).encode()
        try:
            async with self.connection.post("/embeddings", body, {}) as response:
                text = await whole(response, self.connection.where)
        except Setback as setback:
            raise setback.error from setback
        return _vectors(text, len(texts), self.connection.where)

    async def aclose(self) -> None:
        await self.connection.close()


def endpoint_embeddings(
    name: str, *, key: str = "", base_url: str = BASE_URL, timeout: float = TIMEOUT
) -> EndpointEmbeddings:
    """The embeddings of a server that speaks OpenAI's format."""
    credentials = {"api_key": key or NO_KEY}
    connection = connect(
        "openai", "AsyncOpenAI", base_url=base_url, credentials=credentials, timeout=timeout
    )
    return EndpointEmbeddings(name, connection)


def embeddings_for(name: str, environ: Mapping[str, str]) -> EndpointEmbeddings:
    """The model that a setting names: `ollama:NAME` on this machine, else `NAME` or
    `openai:NAME` at OPENAI_BASE_URL where there is one, else at OpenAI."""
    access = Access.of(environ)
    provider, _, rest = name.strip().partition(":")
    if provider == "anthropic" or family(name.strip()).startswith("claude"):
        raise InvalidInput(
            "this provider gives no vectors", where=name, do="Name a model of OpenAI's or Ollama's"
        )
    if provider in ("openai", "ollama") and not rest:
        raise InvalidInput("a provider is named, but no model", where=name)
    if provider == "ollama":
        return endpoint_embeddings(rest, base_url=ollama_url(access))
    if not access.openai_key and not access.openai_url:
        raise AuthFailed(
            "no key for OpenAI is configured",
            where=name,
            do="Set OPENAI_API_KEY, or name a model as ollama:NAME",
        )
    model = rest if provider == "openai" else name.strip()
    return endpoint_embeddings(model, key=access.openai_key, base_url=access.openai_url or BASE_URL)


@dataclass(frozen=True, slots=True)
class LocalEmbeddings:
    """A model in this process: `encode` gives a vector for each text, and may take its time."""

    name: str
    encode: Callable[[list[str]], Iterable[Iterable[float]]]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        def work() -> list[list[float]]:
            return [[float(value) for value in vector] for vector in self.encode(list(texts))]

        found = await anyio.to_thread.run_sync(work)
        if len(found) != len(texts):
            raise _wrong(f"{len(found)} vectors for {len(texts)} texts", self.name)
        return found


def _vectors(text: str, count: int, where: str) -> list[list[float]]:
    """The vectors of an answer in the order of the texts."""
    try:
        value = parse(text)
    except InvalidMessage as error:
        raise _wrong(error.what, where) from error
    data = value.get("data") if isinstance(value, dict) else None
    rows = data if isinstance(data, list) else []
    found: dict[int, list[float]] = {}
    for n, row in enumerate(rows):
        if isinstance(row, dict):
            place = row.get("index", n)
            found[place if isinstance(place, int) else n] = _numbers(row.get("embedding"))
    if len(found) != count or not all(found.get(n) for n in range(count)):
        raise _wrong(f"{len(found)} vectors for {count} texts", where)
    return [found[n] for n in range(count)]


def _numbers(value: Json) -> list[float]:
    if not isinstance(value, list):
        return []
    return [float(one) for one in value if isinstance(one, int | float)]


def _wrong(why: str, where: str) -> ProviderError:
    return ProviderError(f"the embeddings make no sense: {why}", where=where)
