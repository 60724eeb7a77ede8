"""What the namespace says about itself is true: arrays of every type it lists can be made on that device."""

from __future__ import annotations

import dataclasses

import pytest

import webgrad as wg
from webgrad.errors import ArgumentError, DeviceError
from webgrad.ops.shapes import most_axes
from webgrad.runtime.adapters import list_adapters

INFO = wg.__array_namespace_info__()
STANDARD = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
}


def test_the_cpu_has_every_type_of_the_standard() -> None:
    assert set(INFO.dtypes(device="cpu")) == STANDARD
    assert list(INFO.dtypes(device="cpu", kind=("bool", "complex floating"))) == [
        "bool",
        "complex64",
        "complex128",
    ]
    with pytest.raises(ArgumentError, match="'floats' is not a kind"):
        INFO.dtypes(device="cpu", kind="floats")


@pytest.mark.gpu
def test_a_gpu_has_the_types_that_it_lists() -> None:
    for name, dtype in INFO.dtypes(device="webgpu:0").items():
        assert wg.ones(2, dtype, device="webgpu:0").tolist() == [1, 1], name


@pytest.mark.gpu
def test_types_that_a_gpu_lacks_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    device = wg.open_device("webgpu:0")
    monkeypatch.setattr(device, "info", dataclasses.replace(device.info, features=frozenset()))
    missing = {"int64", "uint64", "float64", "complex128"}
    assert set(INFO.dtypes(device=device)) == STANDARD - missing
    assert not wg.can_cast(wg.zeros(1, wg.int32, device=device), wg.int64)


def test_devices_are_named_once_and_equal_their_names() -> None:
    names = INFO.devices()
    assert names[0] == "cpu"
    assert len(set(names)) == len(names) <= 1 + len(list_adapters())
    assert INFO.default_device() in names
    there = wg.zeros(1, device="cpu").device
    assert there in names
    assert there == "cpu"
    assert there != "webgpu:0"


def test_defaults() -> None:
    assert INFO.default_dtypes() == {
        "real floating": wg.float32,
        "complex floating": wg.complex64,
        "integral": wg.int32,
        "indexing": wg.int32,
    }
    assert wg.asarray([1j], device="cpu").dtype is wg.complex64
    assert wg.argmax(wg.asarray([1.0], device="cpu")).dtype is wg.int32
    with pytest.raises(DeviceError):
        INFO.default_dtypes(device="no such device")


@pytest.mark.parametrize("where", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
def test_as_many_dimensions_as_it_says(where: str) -> None:
    capabilities = INFO.capabilities()
    assert capabilities["boolean indexing"] is capabilities["data-dependent shapes"] is True
    dimensions = most_axes() - 1
    assert capabilities["max dimensions"] == dimensions
    for dtype, most in ((wg.float32, dimensions + 1), (wg.complex64, dimensions)):
        assert wg.zeros((1,) * most, dtype=dtype, device=where).numpy().ndim == most
        x = wg.zeros(1, dtype=dtype, device=where)
        for call in (wg.reshape, wg.broadcast_to):
            with pytest.raises(wg.ShapeError, match="tensors have at most"):
                call(x, (1,) * (most + 1))
    for value in (1.5, 1.5j):
        x = wg.asarray([[value, value]], device=where).reshape((2, *[1] * (dimensions - 1)))
        assert (x * x + x).sum(axis=0).numpy().ravel().tolist() == [2 * (value * value + value)]
