"""Heights of landscapes: a network that makes a picture of noise in one step, for how hard they are to walk.

In: an ONNX model of noisy heights, how much noise is in them, and a difficulty. Out: heights in metres, or as
shades of grey. The network knows heights by their inverse hyperbolic sine, so that small ones count too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from .denoising import last_of
from .latents import Preview
from .pictures import as_values, resized
from .requests import noise_of, strength_of, whole_of

__all__ = ["Terrain", "is_terrain"]

INPUTS = ("noisy", "sigma", "difficulty")
HIGHEST = 22.16864013671875  # metres
BEND = 0.1  # metres: around here a height's sine is no longer straight
LEAST_NOISE, MOST_NOISE = 0.002, 80.0
HARDEST = 100


def is_terrain(model: wg.onnx.Model) -> bool:
    """Whether a model has this kind's inputs: heights as pictures (n, 1, height, width) of a known size."""
    if tuple(each.name for each in model.inputs) != INPUTS:
        return False
    shape = model.inputs[0].shape or ()
    return len(shape) == 4 and shape[1] == 1 and all(type(each) is int and each > 0 for each in shape[2:])


class Terrain:
    """A consistency model of heights; difficulties are its classes, 1 to 100."""

    def __init__(self, model: wg.onnx.Model) -> None:
        self.model = model
        self.labels: dict[int, str] = {}
        self._step = wg.jit(self._made)

    @property
    def device(self) -> Any:
        """Where the network is."""
        return self.model.device

    @property
    def size(self) -> tuple[int, int]:
        """The height and width that it was trained for."""
        height, width = (self.model.inputs[0].shape or ())[2:]
        return int(str(height)), int(str(width))

    def steps(
        self,
        count: int = 1,
        *,
        classes: int | Sequence[int] | None = None,
        steps: int = 1,
        seed: int | None = None,
        picture: Any = None,
        strength: float | None = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """`count` landscapes after the only step; `classes` are difficulties, drawn where none are given.

        `picture` is one whose shades are heights to begin with; the closer `strength` is to 1, the less of
        it is left (0.8 if none is given).
        """
        count, share = whole_of(count, "count"), strength_of(strength, picture)
        if steps != 1:
            raise wg.ArgumentError(f"a consistency model of heights takes 1 step, not {steps}")
        generator = wg.random.Generator(seed)
        noise = noise_of(noise, (count, 1, *self.size), generator, self.device)
        sigma = MOST_NOISE
        noisy = noise * sigma
        if picture is not None:
            sigma = LEAST_NOISE * (MOST_NOISE / LEAST_NOISE) ** share
            noisy = noise * sigma + self._heights_of(picture)
        levels = self._levels(classes, count, generator)
        with wg.no_grad():
            found = self._step(noisy, sigma, levels)
        yield Preview(1, 1, found, self)

    def __call__(self, count: int = 1, **options: Any) -> Array:
        """Landscapes as shades of grey, from the lowest to the highest place: bytes (count, …, 1)."""
        return last_of(self.steps(count, **options)).pictures()

    def heights(self, latents: wg.Tensor) -> Array:
        """Metres above the lowest place, (n, height, width)."""
        unit = np.clip((latents.numpy()[:, 0].astype(np.float64) + 1) / 2, 0, 1)
        metres = BEND * np.sinh(unit * math.asinh(HIGHEST / BEND))
        found: Array = (metres - metres.min(axis=(1, 2), keepdims=True)).astype(np.float32)
        return found

    def decoded(self, latents: wg.Tensor) -> wg.Tensor:
        """Shades from -1, the lowest place, to 1, the highest."""
        metres = self.heights(latents)[:, None]
        most = np.maximum(metres.max(axis=(2, 3), keepdims=True), 1e-6)
        return wg.asarray((metres / most * 2 - 1).astype(np.float32), device=self.device)

    def _made(self, noisy: wg.Tensor, sigma: Any, levels: wg.Tensor) -> wg.Tensor:
        sigmas = wg.broadcast_to(wg.asarray(sigma, device=noisy.device), (noisy.shape[0],))
        found: wg.Tensor = self.model(noisy=noisy, sigma=sigmas.astype(wg.float32), difficulty=levels)[0]
        return found

    def _levels(self, classes: Any, count: int, generator: Any) -> wg.Tensor:
        """Difficulties from 0 to 1, one for each landscape."""
        given: list[Any]
        if classes is None:
            found = generator.uniform((count,), device="cpu").numpy()
            given = [1 + int(each * HARDEST) for each in found]
        else:
            given = list(classes) if isinstance(classes, list | tuple) else [classes] * count
        if len(given) != count or not all(type(each) is int and 1 <= each <= HARDEST for each in given):
            raise wg.ArgumentError(
                f"a difficulty is an integer from 1 to {HARDEST}, or {count} of them: {given}"
            )
        shares = [(each - 1) / (HARDEST - 1) for each in given]
        return wg.asarray(shares, dtype=wg.float32, device=self.device)

    def _heights_of(self, picture: Any) -> wg.Tensor:
        """A picture's shades as the network knows heights: white is the highest that it knows."""
        grey = wg.mean(as_values(picture, self.device), axis=1, keepdims=True)
        unit = (resized(grey, *self.size) + 1) / 2
        bent = wg.asinh(unit * (HIGHEST / BEND)) / math.asinh(HIGHEST / BEND)
        return bent * 2 - 1
