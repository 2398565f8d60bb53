"""A model of meaning from a folder: read, asked and refused, on a small one made here."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from reverie.errors import ProviderError
from reverie.providers import OnnxModel
from reverie.session import MemoryIndex, embeddings_by, local_model
from reverie.settings import Settings
from reverie.topics import new
from reverie.world import say_nothing

pytestmark = pytest.mark.spec("B2.meaning")

WORDS = ["[UNK]", "query", ":", "deploy", "ausrollen", "invoice"]
VECTORS = [[0.0, 0, 1], [0, 0, 1], [0, 0, 1], [1, 0, 0], [1, 0.1, 0], [0, 1, 0]]


def field(number: int, value: int | bytes) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def info(name: str, kind: int, dims: int) -> bytes:
    shape = b"".join(field(1, field(2, b"n%d" % n)) for n in range(dims))
    return field(1, name.encode()) + field(2, field(1, field(1, kind) + field(2, shape)))


def graph() -> bytes:
    """A table of vectors, and each token's row of it."""
    numbers = b"".join(struct.pack("<f", one) for row in VECTORS for one in row)
    table = field(1, len(VECTORS)) + field(1, 3) + field(2, 1) + field(8, b"table")
    node = field(1, b"table") + field(1, b"input_ids") + field(2, b"out") + field(4, b"Gather")
    whole = field(1, node) + field(2, b"g") + field(5, table + field(9, numbers))
    whole += field(11, info("input_ids", 7, 2)) + field(12, info("out", 1, 3))
    return field(1, 8) + field(7, whole) + field(8, field(2, 13))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "small-e5"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(graph())
    words = {word: n for n, word in enumerate(WORDS)}
    tokenizer = {
        "version": "1.0",
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


@pytest.fixture
def runtime() -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: it is not installed")
    pytest.importorskip("tokenizers", reason="needs tokenizers: it is not installed")


@pytest.mark.usefixtures("runtime")
def test_a_folder_gives_vectors_in_the_words_of_its_own_table(model: Path) -> None:
    found = OnnxModel.load(model)
    assert found.prefix == "query: "
    (vector,) = found.encode(["deploy deploy"])
    assert vector == pytest.approx([0.5, 0, 0.5])
    assert found.encode(["deploy " * 9], tokens=4)[0] == pytest.approx([0.5, 0, 0.5])


@pytest.mark.usefixtures("runtime")
def test_the_first_token_stands_for_a_text_where_the_folder_says_so(model: Path) -> None:
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    prompts = {"prompts": {"query": ""}}
    (model / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    assert OnnxModel.load(model).encode(["invoice deploy"]) == [[0.0, 1.0, 0.0]]


@pytest.mark.usefixtures("runtime")
def test_a_turn_finds_by_it_what_shares_no_word(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    for key, text in (("a.md", "ausrollen"), ("b.md", "invoice")):
        made = new(key, name=text, description=text, type="project", body=text)
        (folder / key).write_bytes(made.data)
    settings = Settings(embedding_model=str(model))
    index = MemoryIndex(folder, tmp_path / "kept", settings=settings)
    try:
        assert not index.look("deploy", 0.0).hits
        index.settle()
        assert index.look("deploy", 0.0).hits[0].file == "a.md"
    finally:
        index.close()
    assert embeddings_by(settings, {}) is None


def test_a_folder_that_is_no_model_is_named_and_words_count(model: Path) -> None:
    (model / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ProviderError) as error:
        OnnxModel.load(model)
    assert error.value.where == str(model)
    said: list[object] = []
    assert local_model(Settings(embedding_model=str(model)), said.append) is None
    assert len(said) == 1
    assert local_model(Settings(embedding_model="off"), say_nothing) is None
