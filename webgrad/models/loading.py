"""Loading models: which family a file or a folder holds, and the object made of it.

In: a name of the catalogue, a source, a path to a .gguf file or to a folder with safetensors. Out: a
`LanguageModel` or an `EmbeddingModel`, whose weights are on a device.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import webgrad as wg

from .decoding import Decoder
from .language import LanguageModel
from .llama import Llama
from .published import Published
from .settings import Settings, settings_of_config, settings_of_gguf
from .store import locate
from .tokenizer import Tokenizer

__all__ = ["load"]

_MOST_CONFIG = 1 << 24  # bytes of a config.json
# architecture → the module of its family
DECODERS: Mapping[str, Any] = {
    "llama": Llama,
    "mistral": Llama,
    "qwen2": Llama,
    "qwen3": Llama,
    "gemma3": Llama,
}


@wg.no_grad()
def load(name: Any, *, device: Any = None, context: int | None = None) -> LanguageModel:
    """A published model by its name in the catalogue, by a source, or by its path."""
    path = locate(name)
    where = _device(device)
    if path.is_dir():
        config = read_config(path)
        settings = settings_of_config(config, str(path / "config.json"))
        with wg.io.open(path) as weights:
            decoder = _decoder(settings, Published(weights, settings, where))
        tokenizer = Tokenizer.from_folder(path) if (path / "tokenizer.json").is_file() else None
        return LanguageModel(decoder, tokenizer, context, where)
    with wg.io.open(path) as weights:
        if weights.kind != "gguf":
            raise wg.ModelFileError(
                f"{path}: a {weights.kind} file has weights alone; load the folder with its config.json"
            )
        settings = settings_of_gguf(weights.metadata, tied="output.weight" not in weights, source=path.name)
        decoder = _decoder(settings, Published(weights, settings, where))
        tokens = "tokenizer.ggml.tokens" in weights.metadata
        tokenizer = Tokenizer.from_gguf(weights.metadata) if tokens else None
    return LanguageModel(decoder, tokenizer, context, where)


def read_config(folder: Path) -> dict[str, Any]:
    """The config.json of a folder."""
    path = folder / "config.json"
    if not path.is_file():
        raise wg.ModelFileError(f"{folder}: there is no config.json, which says what model this is")
    try:
        if path.stat().st_size > _MOST_CONFIG:
            raise wg.ModelFileError(f"{path} is too large to be a model's settings")
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise wg.ModelFileError(f"{path} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise wg.ModelFileError(f"{path} holds no settings")
    return config


def _decoder(settings: Settings, published: Published) -> Decoder:
    decoder: Decoder = DECODERS[settings.architecture](settings, published)
    return decoder


def _device(device: Any) -> Any:
    return wg.zeros(1, device=device).device
