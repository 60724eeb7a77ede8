"""A folder of diffusers as a pipeline.

In: a folder with model_index.json, which names a class for the whole and one for each part. Out: the pipeline
with all parts loaded. A class of pipelines is a row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import webgrad as wg

from .graphs import is_graph, load_graph
from .lora import loras_of
from .parts import PARTS, load_part, read_settings
from .pipelines import class_conditional, pixart, stable, unconditional, wuerstchen
from .pipelines.terrain import Terrain, is_terrain
from .prompts import Prompts
from .schedulers import BY_CLASS, scheduler_of
from .weights import precision_of

__all__ = ["load"]

Make = Callable[[Mapping[str, Any], Mapping[str, Any], str], Any]
PIPELINES: Mapping[str, Make] = {
    "StableDiffusionPipeline": stable.from_parts,
    "StableDiffusionImg2ImgPipeline": stable.from_parts,
    "StableDiffusionInpaintPipeline": stable.from_parts,
    "StableDiffusionXLPipeline": stable.from_parts,
    "LatentConsistencyModelPipeline": stable.from_parts,
    "WuerstchenCombinedPipeline": wuerstchen.combined,
    "WuerstchenDecoderPipeline": wuerstchen.decoder_alone,
    "WuerstchenPriorPipeline": wuerstchen.prior_alone,
    "PixArtAlphaPipeline": pixart.from_parts,
    "PixArtSigmaPipeline": pixart.from_parts,
    "DiTPipeline": class_conditional.from_parts,
    "DDPMPipeline": unconditional.from_parts,
    "DDIMPipeline": unconditional.from_parts,
}
# How many tokens a text has, where the pipeline says so and not its tokenizer
LENGTHS: Mapping[str, int] = {"PixArtAlphaPipeline": 120, "PixArtSigmaPipeline": 300}
# Parts that judge pictures or look at them, of which nothing is computed
IDLE = frozenset({"safety_checker", "feature_extractor", "image_encoder"})
KNOWN = ("terrain",)  # names of the catalogue that are diffusion models


def load(
    path: str | os.PathLike[str],
    *,
    prior: str | os.PathLike[str] | None = None,
    device: Any = None,
    dtype: Any = None,
    lora: Any = None,
) -> Any:
    """The pipeline that a folder of diffusers describes, or a graph model of TensorFlow.js.

    `dtype` is what weights are kept in: as they are stored where none is given; with "q8_0", "q4_0" or "q4_1"
    those of layers in blocks of 8 or 4 bits. `lora` is a file of changes that are added to the weights, a
    pair of a file and how much it counts, or a list of either. `prior` is the folder of the first stage, for
    a decoder that is published apart from it.
    """
    if prior is not None:
        return _of_two_folders(prior, path, device, dtype, lora)
    folder = Path(path)
    if str(path) in wg.models.catalogue() or folder.suffix == ".onnx":
        return _of_onnx(path, device, dtype, lora)
    if is_graph(folder):
        return _of_graph(folder, device, dtype, lora)
    return _of_folder(folder, device, dtype, lora)


def _of_two_folders(prior: Any, decoder: Any, device: Any, dtype: Any, lora: Any) -> wuerstchen.Wuerstchen:
    """Both stages of a model, each out of a folder; that they are these is seen before either is loaded."""
    for path, wanted in ((prior, "WuerstchenPriorPipeline"), (decoder, "WuerstchenDecoderPipeline")):
        source = Path(path) / "model_index.json"
        name = read_settings(source).get("_class_name")
        if name != wanted:
            raise wg.ModelFileError(f"{source} is of {name!r:.80}, and with prior= it is to be of {wanted}")
    first = load(prior, device=device, dtype=dtype)
    second = load(decoder, device=device, dtype=dtype, lora=lora)
    return wuerstchen.of_stages(first, second, f"{prior} and {decoder}")


def _of_onnx(path: str | os.PathLike[str], device: Any, dtype: Any, lora: Any) -> Terrain:
    """The pipeline of an ONNX model, of which there is one kind."""
    for name, given in (("dtype", dtype), ("lora", lora)):
        if given is not None:
            raise wg.ArgumentError(f"{path}: an ONNX model has the types and weights of its file: no {name}=")
    if str(path) in wg.models.catalogue() and str(path) not in KNOWN:
        known = ", ".join(KNOWN)
        raise wg.ArgumentError(f"{path} is no diffusion model: of the catalogue only {known} makes pictures")
    model = wg.onnx.load(path, device)
    if not is_terrain(model):
        given = ", ".join(map(str, model.inputs))
        raise wg.ModelFileError(f"{path} is no diffusion model that webgrad knows: it takes {given}")
    return Terrain(model)


def _of_graph(folder: Path, device: Any, dtype: Any, lora: Any) -> Any:
    """The pipeline of a graph of TensorFlow.js."""
    if lora is not None:
        raise wg.ArgumentError(f"{folder}: a graph has no names of layers, which changes of lora= are for")
    return load_graph(folder, device=device, dtype=dtype)


def _of_folder(folder: Path, device: Any, dtype: Any, lora: Any) -> Any:
    """The pipeline of a folder of diffusers."""
    source = folder / "model_index.json"
    settings = read_settings(source)
    name = str(settings.get("_class_name"))
    if name not in PIPELINES:
        raise wg.ModelFileError(f"{source}: there is no pipeline {name}, only {', '.join(PIPELINES)}")
    precision_of(dtype)  # a mistake is told before anything is read
    loras = loras_of(lora)
    options = {"device": wg.empty(0, device=device).device, "dtype": dtype, "loras": loras}
    parts = {
        key: _part(folder, key, str(value[1]), options, LENGTHS.get(name))
        for key, value in settings.items()
        if isinstance(value, list) and len(value) == 2 and value[1] is not None and key not in IDLE
    }
    for each in loras:
        each.check_all_taken()
    try:
        return PIPELINES[name](parts, settings, str(folder))
    except KeyError as error:
        raise wg.ModelFileError(f"{source}: there is no part {error}, which {name} needs") from None


def _part(home: Path, key: str, name: str, options: Mapping[str, Any], length: int | None) -> Any:
    folder = home / key
    try:
        is_inside = folder.resolve().parent == home.resolve()
    except (OSError, ValueError, RuntimeError):
        is_inside = False
    if not is_inside:
        raise wg.ModelFileError(f"{folder} is not in the model's folder")
    if name in PARTS:
        return load_part(folder, name, key=key, **options)
    if name in BY_CLASS:
        path = folder / "scheduler_config.json"
        return scheduler_of({**read_settings(path), "_class_name": name}, str(path))
    if "Tokenizer" in name:
        return Prompts.from_folder(folder, length)
    known = ", ".join([*PARTS, *BY_CLASS])
    raise wg.ModelFileError(f"{folder}: there is no part {name}, only {known} and tokenizers")
