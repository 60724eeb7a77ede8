"""U-Nets that are graph models of TensorFlow.js: no settings, no names of layers, only nodes and weights.

In: a folder with model.json and its shards. Out: a network as the pipelines call it. A graph does not say how
it was trained: a scheduler_config.json of diffusers beside it does, or a row here for what is published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import np
from .parts import read_settings
from .pipelines.unconditional import Unconditional
from .schedulers import DDIM, scheduler_of
from .schedulers.noise_levels import cosine_betas
from .timesteps import time_of_each

__all__ = ["GraphUNet", "faces", "is_graph", "load_graph"]

MODEL, SCHEDULER = "model.json", "scheduler_config.json"


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """What a graph's inputs say of it."""

    in_channels: int
    sample_size: tuple[int, int]
    num_class_embeds: int | None = None


class GraphUNet:
    """A graph of pictures (N, H, W, C) and their time steps (N,), called with channels first."""

    class_embedding = None  # it knows no classes

    def __init__(self, model: wg.onnx.Model) -> None:
        shapes = {each.name: each.shape or () for each in model.inputs}
        pictures = [name for name, shape in shapes.items() if len(shape) == 4]
        times = [name for name, shape in shapes.items() if len(shape) == 1]
        sides = shapes[pictures[0]][1:] if pictures else ()
        if (len(pictures), len(times), len(shapes)) != (1, 1, 2) or len(model.outputs) != 1:
            given = ", ".join(map(str, model.inputs))
            raise wg.ModelFileError(
                f"{model.source} is no graph of pictures and time steps: it takes {given}"
            )
        if not all(isinstance(each, int) and each > 0 for each in sides):
            raise wg.ModelFileError(f"{model.source}: the pictures' size is not known, {model.inputs[0]}")
        height, width, channels = (int(str(each)) for each in sides)
        self.config = GraphConfig(channels, (height, width))
        self.model, self._picture, self._time = model, pictures[0], times[0]
        element = next(each.element for each in model.inputs if each.name == self._time)
        self._counts_steps = element is None or "int" in element.name  # times are whole numbers

    @property
    def device(self) -> Any:
        """Where its weights are."""
        return self.model.device

    def __call__(self, x: wg.Tensor, steps: Any, classes: Any = None) -> wg.Tensor:
        """What it predicts for x (n, channels, height, width) at a time step, or at one each."""
        times = time_of_each(x, steps).astype(wg.float32)
        if self._counts_steps:
            times = wg.round(times).astype(wg.int32)
        found = self.model(**{self._picture: wg.permute_dims(x, (0, 2, 3, 1)), self._time: times})[0]
        return wg.permute_dims(found, (0, 3, 1, 2))


def faces() -> DDIM:
    """github.com/wangjia184/diffusion_model, docs/64x64_cosin_300, as its worker.js samples."""
    betas = np.clip(cosine_betas(300, largest=1.0), 0.0001, 0.9999)
    return DDIM(num_train_timesteps=300, trained_betas=tuple(betas.tolist()), timestep_spacing="trailing")


# by the SHA-256 of model.json
PUBLISHED: Mapping[str, Callable[[], Any]] = {
    "64731edfca3682c4f017bd6f2a3efb4a5ec667af2c028a6f5233c5e8adff1af8": faces,
}


def is_graph(folder: Path) -> bool:
    """Whether a folder has a graph, and no settings of diffusers."""
    return (folder / MODEL).is_file() and not (folder / "model_index.json").exists()


def load_graph(folder: Path, *, device: Any = None, dtype: Any = None) -> Unconditional:
    """The pipeline of a graph's folder."""
    if dtype is not None and wg.as_dtype(dtype) != wg.float32:
        raise wg.ArgumentError(f"{folder}: a graph computes with float32, not {dtype}")
    scheduler = _scheduler(folder)
    try:
        return Unconditional(GraphUNet(wg.onnx.load(folder / MODEL, device, progress=False)), scheduler)
    except wg.ModelFileError as error:
        if str(folder) in str(error):
            raise
        raise wg.ModelFileError(f"{folder / MODEL}: {error}") from None  # of a node


def _scheduler(folder: Path) -> Any:
    given = folder / SCHEDULER
    if given.is_file():
        return scheduler_of(read_settings(given), str(given))
    known = PUBLISHED.get(hashlib.sha256((folder / MODEL).read_bytes()).hexdigest())
    if known is None:
        raise wg.ModelFileError(
            f"{folder} does not say how its model was trained: put a {SCHEDULER} beside {MODEL}, with "
            "diffusers' settings, _class_name among them"
        )
    return known()
