"""What tests of other libraries share: the libraries, where they run, and the comparison with NumPy's run.

In: what a library gave for tensors, and what it gave for the same values as NumPy arrays. A result that is no
tensor, or is on another device, is a failure: then the library went on with NumPy.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.missing import IN_CI

__all__ = ["EVERYWHERE", "FLOATS", "Array", "Place", "library", "same", "within", "without_numpy"]

Array = np.ndarray[Any, Any]
EVERYWHERE = pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ROUNDINGS = 500  # of the largest element: the libraries sum, divide and factorise a few dozen numbers


def library(name: str) -> Any:
    """A module of another library. In CI it is there; elsewhere tests that need it are skipped, loudly."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if IN_CI:
            raise
        pytest.skip(
            f"{name.split('.')[0]} IS NOT INSTALLED, so nothing here is tested: `make test` installs it",
            allow_module_level=True,
        )


class Place:
    """A device, and NumPy arrays put there."""

    def __init__(self, device: str, dtype: Any = np.float32) -> None:
        self.device = wg.open_device(device)
        if np.dtype(dtype) == np.float64 and "float64" not in _types(device):
            pytest.skip(f"{self.device.info.name} has no float64")

    def put(self, value: Any) -> Any:
        """An array as a tensor there; anything else as it is."""
        return wg.asarray(value, device=self.device) if isinstance(value, np.ndarray) else value


def _types(device: str) -> Any:
    return wg.__array_namespace_info__().dtypes(device=device)


@contextmanager
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No tensor becomes a NumPy array by itself in here: a library cannot silently go on with NumPy."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a tensor was converted to NumPy")

    with monkeypatch.context() as patch:
        patch.setattr(wg.Tensor, "__array__", refuse)
        patch.setattr(wg.Tensor, "__dlpack__", refuse)
        yield


def same(found: Any, expected: Any, place: Place, *, signs: bool = True, dtypes: bool = True) -> None:
    """Whether tensors have NumPy's values within rounding, its dtypes and the place's device.

    Without `signs` columns may have the other sign, as singular vectors may.
    """
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other, place, signs=signs, dtypes=dtypes)
        return
    expected = np.asarray(expected)
    assert isinstance(found, wg.Tensor), f"a {type(found).__name__} is not a tensor"
    assert found.device is place.device
    if dtypes:
        assert found.dtype.numpy == expected.dtype
    values = found.numpy()
    assert values.shape == expected.shape
    if not signs:
        values = np.copysign(1, np.sum(values * expected, 0)) * values
    within(values, expected)


def within(values: Any, expected: Any) -> None:
    """Equal but for rounding; integers are equal."""
    values, expected = np.asarray(values), np.asarray(expected)
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(values, expected)
        return
    eps = np.finfo(values.dtype).eps
    largest = np.max(np.abs(expected[np.isfinite(expected)]), initial=0)
    np.testing.assert_allclose(values, expected, rtol=0, atol=ROUNDINGS * eps * max(largest, 1e-30))
