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
    scheduler, network = _name_of_scheduler(pipe.scheduler), _name_of_network(pipe.unet)
    _check_alone(folder / "unet")
    name = "DDIMPipeline" if isinstance(pipe.scheduler, DDIM) else "DDPMPipeline"
    index: dict[str, Any] = {"_class_name": name}
    if pipe.labels:
        index["id2label"] = {str(number): label for number, label in pipe.labels.items()}
    index["scheduler"], index["unet"] = ["diffusers", scheduler], ["diffusers", network]
    _write(folder / "scheduler" / "scheduler_config.json", _settings(scheduler, pipe.scheduler))
    _write(folder / "unet" / "config.json", _settings(network, pipe.unet.config))
    wg.io.save(folder / "unet" / WEIGHTS, pipe.unet.state_dict(), {"format": "pt"})
    _write(folder / "model_index.json", index)
    return folder


def _name_of_scheduler(scheduler: Any) -> str:
    found = [name for name, kind in BY_CLASS.items() if kind is type(scheduler)]
    if not found:
        raise wg.ArgumentError(
            f"save writes schedulers that diffusers has, and {type(scheduler).__name__} is none"
        )
    return found[0]


def _name_of_network(module: nn.Module) -> str:
    found = [name for name, row in PARTS.items() if row.module is type(module)]
    if not found:
        raise wg.ArgumentError(
            f"save writes networks that diffusers has, and {type(module).__name__} is none"
        )
    if any(isinstance(each, QuantisedLinear | QuantisedConv2d) for each in module.modules()):
        raise wg.ArgumentError(
            "weights in blocks are not written: load the model without blocks, and save it"
        )
    return found[0]


def _check_alone(folder: Path) -> None:
    """Raise where other weights are that would be read too."""
    others = [each.name for each in sorted(folder.glob("*.safetensors")) if each.name != WEIGHTS]
    if others:
        raise wg.ModelFileError(f"{folder} has other weights already, which would be read too: {others[0]}")


def _settings(name: str, record: Any) -> dict[str, Any]:
    return {"_class_name": name, **{each.name: getattr(record, each.name) for each in fields(record)}}


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with wg.io.replacing(path) as aside:
            aside.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise wg.ModelFileError(f"{path} cannot be written: {error.strerror or error}") from None
