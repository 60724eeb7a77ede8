"""The way in and out: NumPy's and DLPack's protocols, devices that lack a dtype, pickles from elsewhere."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from webgrad import dtypes
from webgrad.errors import ArgumentError, BufferError, DeviceError, DTypeError, NoAdapterError
from webgrad.functions.array import interop
from webgrad.functions.array.creation import asarray, zeros
from webgrad.functions.array.interop import from_dlpack, from_numpy, place, restore
from webgrad.ops.host_arrays import check_dtype
from webgrad.runtime.device import open_device


class Elsewhere:
    """An array on a GPU of another library, as DLPack describes it."""

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError("not asked for")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class Strange:
    """A library that cannot export its array."""

    def __dlpack__(self, **options: Any) -> Any:
        raise RuntimeError("no such type")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Lacking:
    """A device without 64-bit types."""

    name = "webgpu:7"

    class info:
        name = "Small GPU"
        features: frozenset[str] = frozenset({"f16"})


def test_array_protocol() -> None:
    x = asarray([[1, 2], [3, 4]], device="cpu")
    assert np.asarray(x).dtype == np.int32
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x, copy=True).tolist() == [[1, 2], [3, 4]]
    assert np.sum(np.asarray(x)) == 10
    with pytest.raises(BufferError, match="copy=False is impossible"):
        np.array(x, copy=False)


@pytest.mark.parametrize(
    "dtype", [each for each in dtypes.REAL if each is not dtypes.bfloat16], ids=lambda dtype: dtype.name
)
def test_dlpack_out_and_in(dtype: dtypes.DType) -> None:
    x = asarray([[0, 1], [1, 1]], dtype, device="cpu")
    assert x.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(x)
    assert array.dtype == dtype.numpy
    assert array.astype(np.int32).tolist() == [[0, 1], [1, 1]]
    again = from_dlpack(array, device="cpu")
    assert again.dtype is dtype
    np.testing.assert_array_equal(again.numpy(), array)


def test_dlpack_is_a_copy() -> None:
    host = np.arange(3.0)
    x = from_dlpack(host, device="cpu")
    host[0] = 9
    assert x.tolist() == [0.0, 1.0, 2.0]
    shared = from_dlpack(host, device="cpu", copy=False)
    assert np.shares_memory(shared.node.storage, host)
    assert from_dlpack(x).node is x.node


def test_dlpack_refusals() -> None:
    x = asarray([1.0], device="cpu")
    with pytest.raises(builtins.BufferError, match=r"bfloat16 cannot be exported.*astype"):
        x.astype(dtypes.bfloat16).__dlpack__()
    with pytest.raises(ArgumentError, match="no streams, and stream=1"):
        x.__dlpack__(stream=1)
    with pytest.raises(builtins.BufferError, match="host memory only"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(DeviceError, match=r"Elsewhere is in the memory of another library's device.*kind 2"):
        from_dlpack(Elsewhere(), device="cpu")
    with pytest.raises(DTypeError, match="cannot read this Strange by DLPack: no such type"):
        from_dlpack(Strange(), device="cpu")
    with pytest.raises(AttributeError, match=r"a list has no __dlpack__: use webgrad\.asarray"):
        from_dlpack([1], device="cpu")


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (2, 0)])
def test_dlpack_without_a_copy(version: tuple[int, int] | None) -> None:
    x = asarray([1.0, 2.0], device="cpu") + 1

    class Lent:
        """x as an old consumer, or a new one, would ask for it."""

        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__(max_version=version, copy=False)

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()

    array = np.from_dlpack(Lent())
    assert np.shares_memory(array, x.node.storage)
    assert not array.flags.writeable  # told so, or, by the old protocol, NumPy's caution
    assert array.tolist() == [2.0, 3.0]


@pytest.mark.gpu
def test_dlpack_between_devices() -> None:
    x = asarray([1.0, 2.0], device="webgpu:0")
    assert from_dlpack(x).device == "webgpu:0"
    there = from_dlpack(x, device="cpu")
    assert there.device == "cpu"
    assert there.tolist() == [1.0, 2.0]
    with pytest.raises(builtins.BufferError, match="from webgpu:0 to cpu: values must be copied"):
        from_dlpack(x, device="cpu", copy=False)
    with pytest.raises(builtins.BufferError, match="copy=False is impossible for a tensor on webgpu:0"):
        x.__dlpack__(copy=False)
    assert from_dlpack(np.ones(2)).device == "cpu"  # where it was
    assert from_dlpack(np.ones(2, np.float32), device="webgpu:0").device == "webgpu:0"


def test_from_numpy() -> None:
    host = np.arange(4, dtype=np.uint16)[::2]
    x = from_numpy(host, "cpu")
    host[:] = 0
    assert x.dtype is dtypes.uint16
    assert x.tolist() == [0, 2]
    with pytest.raises(DTypeError, match="from_numpy takes a NumPy array, not a list"):
        from_numpy([1], "cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "narrow"),
    [(dtypes.float64, "float32"), (dtypes.int64, "int32"), (dtypes.uint64, "int32")],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_device_without_64_bits_says_so(dtype: dtypes.DType, narrow: str) -> None:
    with pytest.raises(
        DTypeError,
        match=rf"asarray: webgpu:7 \(Small GPU\) has no {dtype.name}: pass dtype=webgrad\.{narrow}, or",
    ):
        check_dtype("asarray", dtype, Lacking())  # type: ignore[arg-type]
    check_dtype("asarray", dtypes.float32, Lacking())  # type: ignore[arg-type]
    check_dtype("asarray", dtype, open_device("cpu"))


def test_a_pickle_of_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: Any) -> Any:
        if name == "webgpu:9":
            raise NoAdapterError("none")
        return open_device("cpu")

    monkeypatch.setattr(interop, "open_device", opened)
    x = restore(np.array([1, 2], np.int8), "webgpu:9")
    assert (x.device.name, x.dtype, x.tolist()) == ("cpu", dtypes.int8, [1, 2])


def test_placed_arrays_are_in_row_order() -> None:
    x = place("test", np.asfortranarray([[1, 2], [3, 4]]), open_device("cpu"))
    assert x.node.storage.flags.c_contiguous
    assert place("test", np.array(3.0), open_device("cpu")).shape == ()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "dtype",
    [each for each in dtypes.REAL if not each.feature],
    ids=lambda dtype: dtype.name,
)
def test_there_and_back(dtype: dtypes.DType) -> None:
    for shape in ((), (0,), (3, 5), (7,)):
        host = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype.numpy)
        there = asarray(host, device="webgpu")
        assert there.device is open_device("webgpu")
        np.testing.assert_array_equal(there.numpy(), host)
        back = there.to_device("cpu")
        assert (back.device.name, back.dtype, back.shape) == ("cpu", dtype, shape)
        np.testing.assert_array_equal(back.to("webgpu").numpy(), host)
        np.asarray(there)[...] = 0
        np.testing.assert_array_equal(there.numpy(), host)


@pytest.mark.gpu
def test_nothing_is_shared_with_a_gpu() -> None:
    with pytest.raises(BufferError, match="copy=False is impossible on webgpu"):
        asarray(np.zeros(3, np.float32), device="webgpu", copy=False)
    with pytest.raises(DeviceError, match=r"add: one operand is on cpu, another on webgpu.*to_device"):
        zeros(3, device="cpu") + zeros(3, device="webgpu")
