"""The model of meaning: its words, its arithmetic on small weights, and what broken ones do."""

from __future__ import annotations

import importlib.util
import json
import math
import random
from array import array
from pathlib import Path

import pytest

from reverie.errors import ProviderError
from reverie.providers import MAX_TOKENS, MiniLM, embeddings

pytestmark = pytest.mark.spec("B2.local_meaning")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "de", "##ploy", "##ing", "stag", "strasse", "!", "数"]
WIDTH, WIDE = 24, 48


@pytest.fixture(autouse=True)
def _numpy() -> None:
    if importlib.util.find_spec("numpy") is None:
        pytest.skip("needs numpy: it comes with the extra `semantic`")


def weights() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (MAX_TOKENS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for n in range(6):
        layer = f"encoder.layer.{n}."
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
        inner = ("attention.self.query", "attention.self.key", "attention.self.value")
        for name in (*inner, "attention.output.dense"):
            shapes[f"{layer}{name}.weight"] = (WIDTH, WIDTH)
            shapes[f"{layer}{name}.bias"] = (WIDTH,)
        shapes[f"{layer}intermediate.dense.weight"] = (WIDE, WIDTH)
        shapes[f"{layer}intermediate.dense.bias"] = (WIDE,)
        shapes[f"{layer}output.dense.weight"] = (WIDTH, WIDE)
        shapes[f"{layer}output.dense.bias"] = (WIDTH,)
    for name in norms:
        shapes |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    return shapes


def put(folder: Path) -> Path:
    """A model of the same form and a hundredth of the size."""
    chance, at = random.Random(7), 0
    head: dict[str, object] = {"__metadata__": {"format": "pt"}}
    numbers = array("f")
    for name, shape in weights().items():
        count = math.prod(shape)
        numbers.extend(chance.uniform(-0.5, 0.5) for _ in range(count))
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * count]}
        at += 4 * count
    text = json.dumps(head).encode()
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    data = len(text).to_bytes(8, "little") + text + numbers.tobytes()
    (folder / "model.safetensors").write_bytes(data)
    return folder


def test_words_are_taken_apart_as_the_vocabulary_has_them(tmp_path: Path) -> None:
    model = MiniLM.load(put(tmp_path / "m"))

    def pieces(text: str) -> list[str]:
        return [WORDS[n] for n in model._tokens(text)]

    assert pieces("Deploying!") == ["[CLS]", "de", "##ploy", "##ing", "!", "[SEP]"]
    assert pieces("Straße 数数") == ["[CLS]", "[UNK]", "数", "数", "[SEP]"]
    assert pieces("strasse zebra\0") == ["[CLS]", "strasse", "[UNK]", "[SEP]"]
    assert pieces("") == ["[CLS]", "[SEP]"]
    assert len(model._tokens("stag " * 500)) == MAX_TOKENS
    assert len(model._tokens("stag " * 500, 12)) == 12
    assert pieces("x" * 10_000) == ["[CLS]", "[UNK]", "[SEP]"]


def test_a_text_has_the_same_vector_alone_and_among_others(tmp_path: Path) -> None:
    model = MiniLM.load(put(tmp_path / "m"))
    texts = ["stag", "deploying", "strasse strasse !", "", "stag " * 40]
    together = model.encode(texts)
    for text, vector in zip(texts, together, strict=True):
        assert model.encode([text])[0] == pytest.approx(vector, abs=1e-5)
        assert math.dist(vector, [0.0] * WIDTH) == pytest.approx(1.0, abs=1e-5)
    assert model.encode([]) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:4_000],
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data.replace(b"position_embeddings", b"position_embeddingz"),
        lambda data: data.replace(b'"data_offsets": [0', b'"data_offsets": [-9'),
    ],
)
def test_weights_that_cannot_be_read_are_said_to_be(tmp_path: Path, damage: object) -> None:
    folder = put(tmp_path / "m")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(damage(data))  # type: ignore[operator]
    with pytest.raises(ProviderError) as error:
        MiniLM.load(folder)
    assert str(folder) in str(error.value)


def test_without_the_weights_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "PACKAGE", "no_such_package_of_weights")
    assert embeddings.find_model() is None
