"""Vectors from an endpoint of OpenAI's kind and from a function of the caller's."""

from __future__ import annotations

import json

import pytest

from reverie.errors import AuthFailed, ProviderError
from reverie.providers import BATCH, LocalEmbeddings, endpoint_embeddings
from tests.providers.wire import JSON, Answer, wire

pytestmark = pytest.mark.spec("B2.meaning")


def said(*vectors: list[float], shuffled: bool = False) -> Answer:
    rows = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    body = {"object": "list", "data": rows[::-1] if shuffled else rows, "model": "m"}
    return Answer(json.dumps(body).encode(), kind=JSON)


async def test_texts_go_out_and_vectors_come_back_in_order() -> None:
    async with wire(said([1.0, 0.0], [0.0, 1.0], shuffled=True)) as server:
        model = endpoint_embeddings("small", key="k", base_url=server.url)
        assert await model.embed(["a", "b"]) == [[1.0, 0.0], [0.0, 1.0]]
        await model.aclose()
    (asked,) = server.asked
    assert asked.path.endswith("/embeddings")
    assert json.loads(asked.body) == {"model": "small", "input": ["a", "b"]}
    assert asked.headers["authorization"] == "Bearer k"


async def test_many_texts_go_out_in_parts() -> None:
    one = [1.0, 2.0]
    async with wire(said(*[one] * BATCH), said(one)) as server:
        model = endpoint_embeddings("small", base_url=server.url)
        assert await model.embed(["t"] * (BATCH + 1)) == [one] * (BATCH + 1)
        assert await model.embed([]) == []
        await model.aclose()
    assert [len(json.loads(asked.body)["input"]) for asked in server.asked] == [BATCH, 1]


@pytest.mark.parametrize("body", ["[]", "{", '{"data": 3}', '{"data": [{"index": 0}]}', ""])
async def test_an_answer_that_makes_no_sense_is_an_error(body: str) -> None:
    async with wire(Answer(body.encode(), kind=JSON)) as server:
        model = endpoint_embeddings("small", base_url=server.url)
        with pytest.raises(ProviderError):
            await model.embed(["a", "b"])
        await model.aclose()


async def test_a_refusal_is_the_provider_s_own() -> None:
    refused = Answer(b'{"error": {"message": "bad key"}}', status=401, kind=JSON)
    async with wire(refused) as server:
        model = endpoint_embeddings("small", base_url=server.url)
        with pytest.raises(AuthFailed):
            await model.embed(["a"])
        await model.aclose()


async def test_a_local_model_is_a_function() -> None:
    model = LocalEmbeddings("mine", lambda texts: [(len(text), 1) for text in texts])
    assert await model.embed(["a", "bcd"]) == [[1.0, 1.0], [3.0, 1.0]]
    with pytest.raises(ProviderError):
        await LocalEmbeddings("mine", lambda _: []).embed(["a"])
