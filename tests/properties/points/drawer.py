"""What points are drawn by: arrays full of special values, and cases of what is computed from them.

In: a seed and a device. Out: `Points`, which a row of the family modules draws from, and the `Case`s that it
makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.drawing import draw_shape
from tests.properties.helpers import AnyDevice, Array, Case, Shape, place, specials
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.runtime.webgpu import Device
from webgrad.tensor import Tensor

__all__ = ["LENGTHS", "Cases", "Points"]

MOST = 600  # elements
MORE = (0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, 1e-30, -1e-20, 87.5, 88.5, -87.0)  # beside the special values
LENGTHS = (1, 2, 5, 9, 33, 70, 300, 1_000, 5_000)
Cases = Iterator[Case]


class Points:
    """Draws arrays that are full of special values, and makes cases of them."""

    def __init__(self, seed: int, device: AnyDevice) -> None:
        self.random, self.device = np.random.default_rng(seed), device
        self.on_gpu = device.name != "cpu"

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def dtype(self, kinds: str, most: int = 8) -> DType:
        """Of some kinds, that the device has."""
        having = [
            each
            for each in dtypes.REAL
            if each.kind in kinds
            and each.itemsize <= most
            and (
                not isinstance(self.device, Device)
                or not each.feature
                or each.feature in self.device.features
            )
        ]
        return self.one([*having, wg.float32]) if "f" in kinds else self.one(having)  # type: ignore[no-any-return]

    def shape(self) -> Shape:
        while True:
            shape = draw_shape(self.random)
            if math.prod(shape) <= MOST:
                return shape

    def array(self, dtype: DType, shape: Shape, most: int = 6) -> Array:
        """Some of the special values, or of these some among others: NaN would hide the rest of a row."""
        if dtype.kind == "b":
            return self.random.random(shape) < 0.5
        choices = specials(dtype)
        if dtype.kind == "f":
            choices = np.concatenate([choices, np.array(MORE).astype(dtype.numpy)])
        chosen = choices[self.random.permutation(len(choices))[: int(self.random.integers(1, most + 1))]]
        if dtype.kind == "f" and self.chance(0.5):
            often = np.array(self.one(((np.nan,), (np.inf,), (-np.inf,), (0.0, -0.0)))).astype(dtype.numpy)
            chosen = np.concatenate([chosen, often])
        drawn = np.asarray(chosen[self.random.integers(0, len(chosen), shape)])
        if self.chance(0.5):
            small = self.random.uniform(-2, 2, shape)
            plain = small if dtype.kind == "f" else self.random.integers(0, 5, shape)
            drawn = np.where(self.random.random(shape) < 0.8, plain.astype(dtype.numpy), drawn)
        return np.asarray(drawn)

    def tensor(self, array: Array) -> Tensor:
        return Tensor(place(array, self.device))

    def case(self, label: str, found: Tensor, wanted: Any, ulps: float = 0.0, slack: float = 0.0) -> Case:
        """A result, which must have the dtype that is wanted; floats may be wanted more exactly."""
        wanted = np.asarray(wanted)
        kinds = ("f", "V") if found.dtype.kind == "f" else (found.dtype.numpy.kind,)
        if wanted.dtype.kind not in kinds:
            raise AssertionError(f"{label}: the dtype is {found.dtype.name}, not {wanted.dtype}")
        return Case(label, found.node, (wanted,), ulps, slack)
