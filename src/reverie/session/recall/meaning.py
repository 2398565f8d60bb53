"""Recall by meaning: the vectors that `embeddingModel` gives, kept up with the memories.

A memory gets its vector once for each of its states. What goes to the model is the beginning of
memories that have none yet, and the words that are looked for; nothing goes anywhere unless the
setting names a model. Bounded: many new memories get theirs over several looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anyio import to_thread

from reverie.memory.recall.meaning import Embeddings, Meaning
from reverie.settings import Settings
from reverie.store.recall.index import RecallIndex

if TYPE_CHECKING:
    from reverie.providers.embeddings import EndpointEmbeddings

AT_ONCE = 256
"""Memories that are taken at a time: what was paid for is kept before more is asked for."""
MAX = 4_096
"""Memories that get their vectors in one look."""


def embeddings_by(settings: Settings, environ: Mapping[str, str]) -> EndpointEmbeddings | None:
    """The model that the setting names; None where it names none, and words alone count."""
    if not settings.embedding_model:
        return None
    from reverie.providers.embeddings import embeddings_for

    return embeddings_for(settings.embedding_model, environ)


async def meaning(index: RecallIndex, model: Embeddings, text: str, most: int = MAX) -> Meaning:
    """What a text means to a model, once the memories that lack their vectors have them."""
    done = 0
    while done < most:
        kept = await _filled(index, model)
        if not kept:
            break
        done += kept
    (vector,) = await model.embed([text])
    return Meaning(model.name, vector)


async def _filled(index: RecallIndex, model: Embeddings) -> int:
    """Give some memories their vectors; gives how many were kept."""
    missing = await to_thread.run_sync(index.without_vector, model.name, AT_ONCE)
    if not missing:
        return 0
    vectors = await model.embed([text for _, text in missing])
    found = [(ident, vector) for (ident, _), vector in zip(missing, vectors, strict=True)]
    return await to_thread.run_sync(index.put_vectors, model.name, found)
