"""Every kind of device that an op runs on: the cpu, and the test adapter as itself and as a discrete GPU.

Drivers compile slowly, so in `make test` a test runs on one of the two GPUs, chosen by its name, and in
`make test-long` on both.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

from tests.properties.helpers import AnyDevice, gpu, on
from tests.properties.running import profiled
from webgrad.functions.array.creation import asarray
from webgrad.tensor import Tensor

__all__ = ["Array", "everywhere", "place"]

Array = np.ndarray[Any, Any]
Test = TypeVar("Test", bound=Callable[..., None])
GPUS = ("software", "discrete")


def everywhere(test: Test) -> Test:
    """The test for each kind of device, as its parameter `kind`."""
    often = GPUS[zlib.crc32(test.__name__.encode()) % 2]
    marks = {kind: [pytest.mark.gpu, *([] if kind == often else [pytest.mark.long])] for kind in GPUS}
    kinds = ["cpu", *[pytest.param(kind, marks=marks[kind]) for kind in GPUS]]
    made: Test = pytest.mark.parametrize("kind", kinds)(test)
    return made


def device_of(kind: str) -> AnyDevice:
    """A device by its kind."""
    if kind == "cpu":
        return on("cpu")
    return gpu() if kind == "software" else profiled(kind="discrete", subgroup_size=0)


def place(kind: str, values: Any, dtype: Any = None) -> Tensor:
    """Values on a kind of device."""
    return asarray(values, dtype, device=device_of(kind))
