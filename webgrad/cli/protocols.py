"""What the commands need of a model, and how they get one by its name.

In: a name of the catalogue, a source or a path. Out: a model, pulled first where it is not there, or an error
that says which command it is for. Tests hand in small models that keep to the same protocols.
"""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import webgrad as wg

__all__ = [
    "EmbeddingModel",
    "Generation",
    "LanguageModel",
    "Message",
    "Report",
    "Tokenizer",
    "embedding_model",
    "language_model",
    "load",
]

PACKAGES = ("tokenizers", "jinja2")  # without which there is no talking; also told of before a pull
Message = Mapping[str, str]  # role and content


class Report(Protocol):
    """How an answer went."""

    prompt_tokens: int
    cached_tokens: int
    tokens: int
    prefill_seconds: float
    decode_seconds: float
    stopped_by: str

    @property
    def prefill_speed(self) -> float: ...
    @property
    def decode_speed(self) -> float: ...


class Generation(Protocol):
    """An answer in pieces; the rest is known when it has ended."""

    @property
    def ids(self) -> Sequence[int]: ...
    @property
    def report(self) -> Report: ...
    def __iter__(self) -> Iterator[str]: ...


class Tokenizer(Protocol):
    """Text to numbers and back."""

    @property
    def has_chat(self) -> bool: ...
    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def encode_chat(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> list[int]: ...


class LanguageModel(Protocol):
    """A model that writes."""

    context: int

    @property
    def device(self) -> Any: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def generate(self, prompt: str, **settings: Any) -> Generation: ...
    def chat(self, messages: Sequence[Message], **settings: Any) -> Generation: ...
    def generate_ids(self, ids: Sequence[int], **settings: Any) -> Iterator[int]: ...


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors."""

    @property
    def device(self) -> Any: ...
    def embed(self, texts: Sequence[str], batch_size: int = 32) -> wg.Tensor: ...


def language_model(name: str, device: str | None, context: int | None = None) -> LanguageModel:
    """The model of that name, which must be one that writes."""
    found = load(name, device, context)
    if not hasattr(found, "generate"):
        raise wg.ArgumentError(
            f"{name} does not write: it embeds texts; try: webgrad embed {shlex.quote(name)} TEXT"
        )
    model: LanguageModel = found
    return model


def embedding_model(name: str, device: str | None) -> EmbeddingModel:
    """The model of that name, which must be one that embeds."""
    found = load(name, device)
    if not hasattr(found, "embed"):
        raise wg.ArgumentError(
            f"{name} does not embed texts: it writes; try: webgrad chat {shlex.quote(name)}"
        )
    model: EmbeddingModel = found
    return model


def load(name: str, device: str | None, context: int | None = None) -> Any:
    """A model of either kind."""
    wg.open_device(device)  # a device that is not there is told of before anything is pulled
    missing = [each for each in PACKAGES if importlib.util.find_spec(each) is None]
    if missing:
        raise wg.ArgumentError(
            f"language models need the package{'s' * (len(missing) > 1)} {' and '.join(missing)}, "
            f'not installed here: pip install "webgrad[lm]"'
        )
    return wg.models.load(name, device=device, context=context)
