"""Embedding models: texts in, one vector each out, as the sentence-transformers package would give them.

In: a folder (config.json, safetensors, tokenizer.json, and modules.json, which says how tokens are pooled) or
a GGUF file of the architecture bert. Out: an `EmbeddingModel`. A text's vector does not depend on the texts
beside it: they are sorted by length, padded to one of a few lengths, and what is padded is hidden.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import webgrad as wg
from webgrad import Tensor
from webgrad.errors import ArgumentError, ModelFileError

from ..arrays import np
from .bert import Bert
from .published_weights import Published
from .reader import Reader, read_json
from .settings import Settings, rows_of, settings_of_config, settings_of_gguf
from .tokenizer import Tokenizer

__all__ = ["EmbeddingModel", "EmbeddingSettings", "load_embedding", "load_encoder"]

# Lengths that batches are padded to: few, so that what was captured for one is found again.
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
GGUF_POOLINGS = {1: "mean", 2: "cls", 3: "last"}  # 0 is none, 4 ranks pairs of texts


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """What is computed: the encoder's sizes, how tokens become one vector, and how long texts may be."""

    encoder: Settings
    poolings: tuple[str, ...]
    normalise: bool
    longest: int
    lower_case: bool = False

    @property
    def columns(self) -> int:
        """How long a vector is."""
        return self.encoder.width * len(self.poolings)


class EmbeddingModel:
    """A model that gives texts vectors, made by `wg.models.load`: near texts, near vectors."""

    def __init__(self, settings: EmbeddingSettings, encoder: Bert, tokenizer: Tokenizer) -> None:
        self.settings, self.tokenizer, self.device = settings, tokenizer, encoder.device

        def pooled(ids: Tensor, lengths: Tensor) -> Tensor:
            vectors = _pooled(encoder(ids, lengths), lengths, settings.poolings)
            return _normalised(vectors) if settings.normalise else vectors

        self.encoder = encoder
        self.pooled = pooled  # ids (count, length) and lengths (count,) → vectors
        self._pooled = wg.jit(pooled)

    def __repr__(self) -> str:
        encoder = self.settings.encoder
        return f"EmbeddingModel({encoder.layers} layers, {self.settings.columns} columns, {self.device.name})"

    if not TYPE_CHECKING:  # where it would hide misspelt names

        def __getattr__(self, name: str) -> Any:
            writes = name in ("chat", "generate", "generate_ids", "logits")
            hint = ": this model embeds texts; one that writes is smollm2:135m" if writes else ""
            raise AttributeError(f"EmbeddingModel has no attribute {name!r}{hint}", name=name, obj=self)

    def embed(self, texts: Sequence[str], batch_size: int = 32) -> Tensor:
        """The vectors of texts, (n, columns), normalised if the model says so.

        Texts longer than the model takes are cut off, as sentence-transformers does; an empty one has the
        vector of the tokens that begin and end every text.
        """
        if not _is_whole(batch_size) or batch_size < 1:
            raise ArgumentError(f"embed: batch_size is {batch_size!r}, and must be an integer above 0")
        rows = [self._encoded(text) for text in _checked(texts)]
        order = sorted(range(len(rows)), key=lambda number: -len(rows[number]))
        parts = [
            (numbers, self._pooled(*self._batch([rows[number] for number in numbers], batch_size)))
            for numbers in _runs(order, batch_size)
        ]
        # Read only now: the device computes while later batches are put together.
        result = np.empty((len(rows), self.settings.columns), np.float32)
        for numbers, vectors in parts:
            result[numbers] = vectors.numpy()[: len(numbers)]
        return wg.asarray(result, device=self.device)

    def _encoded(self, text: str) -> list[int]:
        """A text's tokens, cut off before the one that ends every text."""
        text = text.lower() if self.settings.lower_case else text
        ids: list[int] = self.tokenizer.encode(text)
        longest = self.settings.longest
        if not ids:
            raise ArgumentError(f"embed: the text {text!r} has no tokens, and this model adds none")
        if max(ids) >= self.settings.encoder.vocabulary:
            raise ArgumentError(
                f"embed: the tokenizer gives the id {max(ids)}, and the model's vocabulary has "
                f"{self.settings.encoder.vocabulary} tokens: they do not belong together"
            )
        if len(ids) <= longest:
            return ids
        last = len(ids) - 1 if self.tokenizer.encode("")[-1:] == ids[-1:] else longest - 1
        return [*ids[: longest - 1], ids[last]]

    def _batch(self, rows: list[list[int]], batch_size: int) -> tuple[Tensor, Tensor]:
        """Ids (count, length) and lengths (count,); rows of one token fill up to a power of two."""
        count = min(batch_size, 1 << (len(rows) - 1).bit_length())
        longest = max(len(row) for row in rows)
        length = longest if longest > LENGTHS[-1] else LENGTHS[bisect.bisect_left(LENGTHS, longest)]
        length = min(length, self.settings.longest)
        ids, lengths = np.zeros((count, length), np.int32), np.ones(count, np.int32)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            lengths[number] = len(row)
        return wg.asarray(ids, device=self.device), wg.asarray(lengths, device=self.device)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked(texts: Any) -> list[str]:
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise ArgumentError(f"embed takes a list of texts, not a {type(texts).__name__}: write embed([text])")
    if not texts:
        raise ArgumentError("embed: the list of texts is empty; give one text or more")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ArgumentError(f"embed takes texts, and number {number} is a {type(text).__name__}")
    return list(texts)


def _runs(order: list[int], count: int) -> Iterator[list[int]]:
    for start in range(0, len(order), count):
        yield order[start : start + count]


# One vector of many


def _pooled(x: Tensor, lengths: Tensor, poolings: Sequence[str]) -> Tensor:
    """x (batch, length, columns) → (batch, columns) for each pooling, side by side."""
    parts = [POOLINGS[name](x, lengths.reshape(-1, 1)) for name in poolings]
    return parts[0] if len(parts) == 1 else wg.concat(parts, axis=1)


def _seen(x: Tensor, lengths: Tensor) -> Tensor:
    return (wg.arange(x.shape[1], device=x.device) < lengths).reshape(*x.shape[:2], 1)


def _total(x: Tensor, lengths: Tensor) -> Tensor:
    return wg.where(_seen(x, lengths), x, 0.0).sum(axis=1)


def _last(x: Tensor, lengths: Tensor) -> Tensor:
    places = wg.arange(x.shape[1], device=x.device).reshape(1, -1, 1)
    return wg.where(places == lengths.reshape(-1, 1, 1) - 1, x, 0.0).sum(axis=1)


POOLINGS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": lambda x, lengths: x[:, 0],
    "max": lambda x, lengths: wg.where(_seen(x, lengths), x, -np.inf).max(axis=1),
    "mean": lambda x, lengths: _total(x, lengths) / lengths,
    "mean_sqrt_len": lambda x, lengths: _total(x, lengths) / wg.sqrt(lengths.astype(wg.float32)),
    "last": _last,
}


def _normalised(x: Tensor) -> Tensor:
    return x / wg.maximum(wg.sqrt((x * x).sum(axis=1, keepdims=True)), 1e-12)


# What a folder or a file says

# The options of sentence-transformers' pooling, in the order in which it puts their vectors side by side.
OPTIONS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "last",
}
MODES = {"lasttoken": "last"}  # what newer files call it: pooling_mode is a name, or several


def load_embedding(path: Path, device: Any = None) -> EmbeddingModel:
    """The embedding model of a folder with safetensors, or of a GGUF file of the architecture bert."""
    with wg.io.open(path) as weights:
        settings = _settings(path, weights)
        encoder = _encoder(weights, settings, device)
        is_gguf, metadata = weights.kind == "gguf", weights.metadata
    tokenizer = Tokenizer.from_gguf(metadata) if is_gguf else Tokenizer.from_folder(path)
    return EmbeddingModel(settings, encoder, tokenizer)


def load_encoder(path: Path, device: Any = None) -> Bert:
    """The encoder alone, which takes ids."""
    with wg.io.open(path) as weights:
        return _encoder(weights, _settings(path, weights), device)


def _encoder(weights: wg.io.Weights, settings: EmbeddingSettings, device: Any) -> Bert:
    where = wg.empty(0, device=device).device
    published = Published(weights, settings.encoder, where)
    with wg.no_grad():
        encoder = Bert(settings.encoder, published)
    published.check_all_taken()
    return encoder


def _settings(path: Path, weights: wg.io.Weights) -> EmbeddingSettings:
    return _of_weights(weights) if weights.kind == "gguf" else _of_folder(path)


def _of_weights(weights: wg.io.Weights) -> EmbeddingSettings:
    """The settings of a GGUF file; llama.cpp normalises what it embeds."""
    encoder = settings_of_gguf(weights.metadata, rows_of(weights), str(weights.path))
    told = Reader(weights.metadata, str(weights.path))
    number = told.whole("bert.pooling_type", default=1, least=0)
    if number not in GGUF_POOLINGS:
        raise ModelFileError(
            f"{weights.path}: bert.pooling_type={number!r} gives no vector of a text; offered are "
            + ", ".join(f"{each} ({name})" for each, name in GGUF_POOLINGS.items())
        )
    return EmbeddingSettings(encoder, (GGUF_POOLINGS[number],), True, encoder.context)


def _of_folder(folder: Path) -> EmbeddingSettings:
    """The settings of a folder; without modules.json those of sentence-transformers: mean, not normalised."""
    config = folder / "config.json"
    encoder = settings_of_config(read_json(config), str(config))
    pooling: tuple[str, ...] = ("mean",)
    normalise = False
    for module in read_json(folder / "modules.json", [], list):
        kind = str(module.get("type", "")) if isinstance(module, dict) else ""
        name = kind.rpartition(".")[2]
        if name == "Pooling":
            pooling = _pooling(folder / str(module.get("path", "")) / "config.json")
        elif name == "Normalize":
            normalise = True
        elif name != "Transformer":
            raise ModelFileError(
                f"{folder / 'modules.json'}: a module of type {kind!r:.80} is not offered; Transformer, "
                "Pooling and Normalize are"
            )
    limits = folder / "sentence_bert_config.json"
    told = Reader(read_json(limits, {}), str(limits))
    longest = told.whole("max_seq_length", default=encoder.context, least=2)
    lower_case = told.flag("do_lower_case", False)
    return EmbeddingSettings(encoder, pooling, normalise, min(longest, encoder.context), lower_case)


def _pooling(path: Path) -> tuple[str, ...]:
    config = read_json(path)
    modes = config.get("pooling_mode")
    if modes is None:
        names = [name for option, name in OPTIONS.items() if config.get(option)]
    else:
        given = modes if isinstance(modes, list) else [modes]
        names = [MODES.get(each, each) for each in map(str, given)]
    unknown = [name for name in names if name not in POOLINGS]
    if unknown or not names:
        raise ModelFileError(
            f"{path}: the pooling {', '.join(unknown)[:80] or '(none is named)'} is not offered; these are: "
            + ", ".join(POOLINGS)
        )
    return tuple(names)
