"""Recall by meaning: the model there is for it, and vectors kept up with memories and turns.

A model in this process (the extra `semantic`) is used wherever recall looks, unless the setting
`embeddingModel` names another or says `off`. One behind an endpoint is used where somebody waits
for `reverie recall`: what goes there is the beginning of memories that have no vector yet, and the
words that are looked for; nothing goes anywhere unless the setting names a model.

A text gets its vector once for each of its states. Bounded: many get theirs over several looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from anyio import to_thread

from reverie.errors import ProviderError
from reverie.memory.recall.gate import sentences
from reverie.memory.recall.meaning import Embeddings, LocalModel, Meaning
from reverie.settings import Settings
from reverie.store.recall.index import HitKind, RecallIndex
from reverie.world import Notice, Say

if TYPE_CHECKING:
    from reverie.providers.embeddings import EndpointEmbeddings

OFF = "off"
AT_ONCE = 256
"""Memories that are taken at a time: what was paid for is kept before more is asked for."""
MAX = 4_096
"""Memories that get their vectors in one look."""
LOCAL_AT_ONCE = 16
LOCAL_MAX = 64
"""Texts that a model in this process gives their vectors beside one look: about a second."""
QUERY_TOKENS = 40
"""Of a message, for its sentences together: what fits into the time a request waits."""
MIN_TOKENS = 12


def embeddings_by(settings: Settings, environ: Mapping[str, str]) -> EndpointEmbeddings | None:
    """The model behind an endpoint that the setting names; None where it names none."""
    if not settings.embedding_model or settings.embedding_model == OFF:
        return None
    from reverie.providers.embeddings import embeddings_for

    return embeddings_for(settings.embedding_model, environ)


def local_model(settings: Settings, say: Say) -> LocalModel | None:
    """The model in this process, where it is installed and the setting names no other."""
    if settings.embedding_model:
        return None
    from reverie.providers.minilm import minilm

    try:
        return minilm()
    except ProviderError as error:
        say(Notice("recall", f"searched by words only: {error}", "warning"))
        return None


def meanings(model: LocalModel, text: str, now: float) -> list[Meaning]:
    """What the sentences of a message mean, in their order."""
    asked = [query.text for query in sentences(text, now)]
    most = max(QUERY_TOKENS // len(asked), MIN_TOKENS)
    return [Meaning(model.name, vector) for vector in model.encode(asked, most)]


def fill(
    index: RecallIndex,
    model: LocalModel,
    kinds: Sequence[HitKind] = ("memory",),
    most: int = LOCAL_MAX,
) -> int:
    """Give texts that lack a vector theirs, the newest first; gives how many were kept."""
    done = 0
    for kind in kinds:
        while done < most:
            missing = index.without_vector(model.name, LOCAL_AT_ONCE, kind)
            if not missing:
                break
            vectors = model.encode([text for _, text in missing])
            found = [(ident, vector) for (ident, _), vector in zip(missing, vectors, strict=True)]
            kept = index.put_vectors(model.name, found, kind)
            if not kept:
                break
            done += kept
    return done


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
