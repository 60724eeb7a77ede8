"""Loading models: which family a file or a folder holds, and the object made of it.

In: a name of the catalogue, a source, a path to a .gguf file or to a folder with safetensors. Out: a
`LanguageModel` or an `EmbeddingModel`, whose weights are on a device.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import webgrad as wg

from .decoder import Decoder
from .embedding import EmbeddingModel, load_embedding
from .gpt2 import GPT2
from .language import LanguageModel
from .llama import Llama
from .published_weights import Published
from .reader import read_json
from .settings import Settings, rows_of, settings_of_config, settings_of_gguf
from .store import locate
from .tokenizer import Tokenizer

__all__ = ["load"]

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model")
# architecture → the module of its family
DECODERS: Mapping[str, Any] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma3"), Llama),
    "gpt2": GPT2,
}


@wg.no_grad()
def load(
    name: str | os.PathLike[str],
    *,
    device: Any = None,
    context: int | None = None,
    cache_dtype: Any = None,
) -> LanguageModel | EmbeddingModel:
    """A published model: by its name in the catalogue, by a source, or by the path of a file or a folder.

    It is pulled if it is not here yet. `context` bounds how many tokens a text may have, up to what the model
    was made for. `cache_dtype` is what keys and values are kept in while a text is made: float16, or float32,
    which takes twice the memory and is what GPUs without 16-bit floats have by default.
    """
    path, where = locate(name), wg.empty(0, device=device).device
    if path.suffix == ".onnx":
        raise wg.ModelFileError(f"{name} is an ONNX model: wg.onnx.load({os.fspath(name)!r}) loads it")
    if path.is_dir() and not (path / "config.json").exists():
        path = _only_gguf(path)
    if path.is_dir():
        config = read_json(path / "config.json")
        if config.get("model_type") == "bert":
            return load_embedding(path, where)
        settings = settings_of_config(config, str(path / "config.json"))
        with wg.io.open(path) as weights:
            decoder = _decoder(settings, weights, where)
        has_tokens = any((path / each).is_file() for each in _TOKENIZERS)
        tokenizer = Tokenizer.from_folder(path) if has_tokens else None
        return LanguageModel(decoder, tokenizer, context, where, cache_dtype)
    with wg.io.open(path) as weights:
        if weights.kind != "gguf":
            raise wg.ModelFileError(
                f"{path}: a {weights.kind} file has weights alone; load the folder with its config.json"
            )
        metadata = weights.metadata
        if metadata.get("general.architecture") == "bert":
            return load_embedding(path, where)
        settings = settings_of_gguf(metadata, rows_of(weights), str(path))
        decoder = _decoder(settings, weights, where)
    has_tokens = "tokenizer.ggml.tokens" in metadata
    tokenizer = Tokenizer.from_gguf(metadata) if has_tokens else None
    return LanguageModel(decoder, tokenizer, context, where, cache_dtype)


def _decoder(settings: Settings, weights: wg.io.Weights, device: Any) -> Decoder:
    published = Published(weights, settings, device)
    decoder: Decoder = DECODERS[settings.architecture](settings, published)
    published.check_all_taken()
    return decoder


def _only_gguf(folder: Path) -> Path:
    """The one .gguf file of a folder that says nothing else of what it is, or the first part of one."""
    files = sorted(folder.glob("*.gguf"))
    if len(files) == 1 or (files and [each.name for each in files] == wg.io.part_names(files[0].name)):
        return files[0]
    if files:
        names = ", ".join(each.name for each in files[:8])
        raise wg.ModelFileError(f"{folder} has {len(files)} .gguf files: give the path of one: {names}")
    raise wg.ModelFileError(f"{folder}: there is no config.json, which says what model this is, and no .gguf")
