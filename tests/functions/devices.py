"""Every kind of device that an op runs on: the cpu, and the test adapter as itself and as a discrete GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.properties.helpers import AnyDevice, gpu, on
from tests.properties.running import profiled
from webgrad.functions.array.creation import asarray
from webgrad.tensor import Tensor

__all__ = ["EVERYWHERE", "Array", "place"]

Array = np.ndarray[Any, Any]
EVERYWHERE = pytest.mark.parametrize(
    "kind",
    ["cpu", pytest.param("software", marks=pytest.mark.gpu), pytest.param("discrete", marks=pytest.mark.gpu)],
)


def device_of(kind: str) -> AnyDevice:
    """A device by its kind."""
    if kind == "cpu":
        return on("cpu")
    return gpu() if kind == "software" else profiled(kind="discrete", subgroup_size=0)


def place(kind: str, values: Any, dtype: Any = None) -> Tensor:
    """Values on a kind of device."""
    return asarray(values, dtype, device=device_of(kind))
