"""A pipeline as a folder of diffusers, which `load` and diffusers read.

In: a pipeline of parts without texts, and a folder. Out: model_index.json, and a folder for each part with
its settings and weights. The invariant: what could not be read again as it is is refused by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import webgrad as wg
from webgrad import nn

from .parts import PARTS
from .pipelines.unconditional import Unconditional
from .quantised import QuantisedConv2d, QuantisedLinear
from .schedulers import BY_CLASS, DDIM

__all__ = ["save"]

WEIGHTS = "diffusion_pytorch_model.safetensors"


def save(pipe: Unconditional, path: str | os.PathLike[str]) -> Path:
    """Write a pipeline to a folder in diffusers' format, and give the folder's path.

    >>> import tempfile
    >>> config = wg.diffusion.UNet2DConfig(
    ...     block_out_channels=(8, 16), norm_num_groups=4, num_class_embeds=3,
    ...     down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2,
    ... )
    >>> pipe = wg.diffusion.Unconditional(wg.diffusion.UNet2D(config), labels=["cat", "dog"])
    >>> folder = wg.diffusion.save(pipe, tempfile.mkdtemp())
    >>> wg.diffusion.load(folder).labels
    {0: 'cat', 1: 'dog'}
    """
    if not isinstance(pipe, Unconditional):
        raise wg.ArgumentError(f"save writes pipelines of the class Unconditional, not {type(pipe).__name__}")
    folder = Path(path)
    name = "DDIMPipeline" if isinstance(pipe.scheduler, DDIM) else "DDPMPipeline"
    index: dict[str, Any] = {"_class_name": name}
    if pipe.labels:
        index["id2label"] = {str(number): label for number, label in pipe.labels.items()}
    index["scheduler"] = ["diffusers", _save_scheduler(pipe.scheduler, folder / "scheduler")]
    index["unet"] = ["diffusers", _save_part(pipe.unet, folder / "unet")]
    _write(folder / "model_index.json", index)
    return folder


def _save_scheduler(scheduler: Any, folder: Path) -> str:
    name = next(name for name, kind in BY_CLASS.items() if kind is type(scheduler))
    _write(folder / "scheduler_config.json", {"_class_name": name, **_settings(scheduler)})
    return name


def _save_part(module: nn.Module, folder: Path) -> str:
    name = next((name for name, row in PARTS.items() if row.module is type(module)), None)
    if name is None:
        raise wg.ArgumentError(
            f"save writes networks that diffusers has, and {type(module).__name__} is none"
        )
    others = [each.name for each in sorted(folder.glob("*.safetensors")) if each.name != WEIGHTS]
    if others:
        raise wg.ModelFileError(f"{folder} has other weights already, which would be read too: {others[0]}")
    if any(isinstance(each, QuantisedLinear | QuantisedConv2d) for each in module.modules()):
        raise wg.ArgumentError(
            "weights in blocks are not written: load the model without blocks, and save it"
        )
    _write(folder / "config.json", {"_class_name": name, **_settings(module.config)})
    wg.io.save(folder / WEIGHTS, module.state_dict(), {"format": "pt"})
    return name


def _settings(record: Any) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with wg.io.replacing(path) as aside:
            aside.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise wg.ModelFileError(f"{path} cannot be written: {error.strerror or error}") from None
