"""The parts that a folder of diffusers may have: for each class that settings name, what is made of it.

In: a folder with config.json and weights. Out: a module in evaluation mode, with the weights of the folder. A
class is a row; published weights of several ages differ in names, which rows of `_RENAMED` bring together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import webgrad as wg
from webgrad import nn

from .autoencoders import (
    AutoencoderKL,
    AutoencoderKLConfig,
    AutoencoderTiny,
    AutoencoderTinyConfig,
    VQModel,
    VQModelConfig,
)
from .configs import read_config, read_text
from .paella import PaellaVQ, PaellaVQConfig
from .text_encoders import CLIPText, CLIPTextConfig, T5Encoder, T5EncoderConfig
from .transformers import (
    DiTTransformer,
    DiTTransformerConfig,
    PixArtTransformer,
    PixArtTransformerConfig,
    Transformer2DConfig,
    transformer_2d,
)
from .unets import UNet2D, UNet2DCondition, UNet2DConditionConfig, UNet2DConfig
from .wuerstchen import DiffNeXt, DiffNeXtConfig, Prior, PriorConfig

__all__ = ["Part", "load_part", "read_settings"]

LARGEST = 4 << 20  # bytes of a file of settings


@dataclass(frozen=True)
class Part:
    """One row: the module of a class, and its settings."""

    module: Any
    config: Any
    options: Mapping[str, Any] = field(default_factory=dict)


PARTS: Mapping[str, Part] = {
    "UNet2DModel": Part(UNet2D, UNet2DConfig),
    "UNet2DConditionModel": Part(UNet2DCondition, UNet2DConditionConfig),
    "DiTTransformer2DModel": Part(DiTTransformer, DiTTransformerConfig),
    "PixArtTransformer2DModel": Part(PixArtTransformer, PixArtTransformerConfig),
    "Transformer2DModel": Part(transformer_2d, Transformer2DConfig),
    "AutoencoderKL": Part(AutoencoderKL, AutoencoderKLConfig),
    "VQModel": Part(VQModel, VQModelConfig),
    "AutoencoderTiny": Part(AutoencoderTiny, AutoencoderTinyConfig),
    "PaellaVQModel": Part(PaellaVQ, PaellaVQConfig),
    "WuerstchenPrior": Part(Prior, PriorConfig),
    "WuerstchenDiffNeXt": Part(DiffNeXt, DiffNeXtConfig),
    "CLIPTextModel": Part(CLIPText, CLIPTextConfig),
    "CLIPTextModelWithProjection": Part(CLIPText, CLIPTextConfig, options={"projects": True}),
    "T5EncoderModel": Part(T5Encoder, T5EncoderConfig),
}

# What weights are called in files of other ages, and here
_RENAMED: dict[str, tuple[tuple[str, str], ...]] = {
    "AutoencoderKL": (
        (r"\.query\.", ".to_q."),
        (r"\.key\.", ".to_k."),
        (r"\.value\.", ".to_v."),
        (r"\.proj_attn\.", ".to_out.0."),
    ),
    "UNet2DModel": (
        (r"\.query\.", ".to_q."),
        (r"\.key\.", ".to_k."),
        (r"\.value\.", ".to_v."),
        (r"\.proj_attn\.", ".to_out.0."),
        (r"\.Conv2d_0\.", ".conv."),
    ),
    "CLIPTextModel": ((r"^(?=embeddings|encoder|final_layer_norm)", "text_model."),),
    "CLIPTextModelWithProjection": ((r"^(?=embeddings|encoder|final_layer_norm)", "text_model."),),
    "T5EncoderModel": ((r"^encoder\.embed_tokens\.", "shared."),),
}
_RENAMED["VQModel"] = _RENAMED["AutoencoderKL"]
# Buffers that old files have, and that are computed
_COMPUTED = re.compile(r"\.position_ids$|^pos_embed\.pos_embed$")


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a file."""
    try:
        found = json.loads(read_text(path, LARGEST))
    except (ValueError, RecursionError) as error:
        raise wg.ModelFileError(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise wg.ModelFileError(f"{path} has no settings: it is a {type(found).__name__}")
    return found


@wg.no_grad()
def load_part(folder: Path, name: str, *, device: Any = None, dtype: Any = None) -> nn.Module:
    """The module of a class of diffusers or transformers, with a folder's settings and weights.

    Weights stay as they are stored, in half precision too, unless a dtype is given.
    """
    if name not in PARTS:
        raise wg.ModelFileError(f"{folder}: there is no part {name}, only {', '.join(PARTS)}")
    row = PARTS[name]
    source = folder / "config.json"
    settings = read_settings(source)
    config = _config(row, settings, str(source))
    try:
        module: nn.Module = row.module(config, **row.options).eval()
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        raise wg.ModelFileError(f"{source} describes no {name}: {error}") from None
    with ExitStack() as stack:
        weights: dict[str, Any] = {}
        for path in weight_files(folder):
            opened = stack.enter_context(wg.io.open(path))
            weights |= dict(_renamed(opened, name, dtype))
        try:
            module.load_state_dict(weights)
        except wg.WebgradError as error:
            raise wg.ModelFileError(f"{folder}: {error}") from None
        return module.to(device=device)


def _config(row: Part, settings: Mapping[str, Any], source: str) -> Any:
    idle = getattr(row.config, "idle", None)
    if idle is not None:
        return read_config(row.config, settings, source, idle)
    # Of text encoders transformers writes many settings, most of them for other uses.
    known = {each.name for each in fields(row.config)}
    given = {name: value for name, value in settings.items() if name in known}
    return read_config(row.config, given, source, {})


def weight_files(folder: Path) -> list[Path]:
    """The files with a part's weights: of full precision where there are both."""
    files = sorted(each for each in folder.glob("*.safetensors") if each.is_file())
    plain = [each for each in files if not re.search(r"\.(fp16|bf16|non_ema)\b", each.name)]
    chosen = plain or [each for each in files if ".non_ema" not in each.name]
    if not chosen:
        others = ", ".join(sorted(each.name for each in folder.glob("*.bin"))) or "nothing"
        raise wg.ModelFileError(
            f"{folder} has no .safetensors file (there is {others}); weights in other formats are not read"
        )
    return chosen


def _renamed(weights: wg.io.Weights, kind: str, dtype: Any) -> Iterator[tuple[str, Any]]:
    for name in weights:
        ours = _own_name(name, _RENAMED.get(kind, ()))
        if _COMPUTED.search(ours):
            continue
        value = weights[name]
        if isinstance(value, wg.Tensor) and ours.endswith(_FORMER_PRODUCTS) and value.ndim == 4:
            value = value.reshape(value.shape[:2])
        yield ours, value if dtype is None or not isinstance(value, wg.Tensor) else value.astype(dtype)


_FORMER_PRODUCTS = (".to_q.weight", ".to_k.weight", ".to_v.weight", ".to_out.0.weight")


def _own_name(name: str, rules: Iterable[tuple[str, str]]) -> str:
    for pattern, ours in rules:
        name = re.sub(pattern, ours, name)
    return name
