"""Tensor: operators as NumPy's, what is weak and what is not, in place, values out, protocols, copies."""

from __future__ import annotations

import asyncio
import copy
import operator
import pickle
import sys
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad
from webgrad import dtypes
from webgrad.errors import ArgumentError, DTypeError, ShapeError
from webgrad.functions.array.creation import arange, asarray, full, ones, zeros
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]
NUMBERS = [
    dtypes.int8,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint32,
    dtypes.float16,
    dtypes.float32,
]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
COMPARISON = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.imod, operator.ipow]


def tensor(value: Any, dtype: Any = None) -> Tensor:
    return asarray(value, dtype, device="cpu")


def same(x: Any, expected: Any) -> None:
    assert isinstance(x, Tensor)
    wanted = np.asarray(expected)
    assert x.shape == wanted.shape
    assert x.dtype.numpy == wanted.dtype
    array = x.numpy()
    assert array.shape == wanted.shape
    np.testing.assert_array_equal(array, wanted)


# Operators


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_arithmetic(op: Callable[[Any, Any], Any], dtype: dtypes.DType) -> None:
    a = np.array([[1, 2, 3], [100, 5, 60]]).astype(dtype.numpy)
    b = np.array([7, 2, 5]).astype(dtype.numpy)
    with np.errstate(over="ignore"):
        same(op(tensor(a), tensor(b)), op(a, b))
        same(op(tensor(a), 3), op(a, 3))
        same(op(100, tensor(a)), op(100, a))


@pytest.mark.parametrize("op", COMPARISON, ids=lambda op: op.__name__)
def test_comparison(op: Callable[[Any, Any], Any]) -> None:
    a = np.array([1.0, np.nan, -np.inf, 3.0], np.float32)
    b = np.array([1.0, np.nan, np.inf, -3.0], np.float32)
    same(op(tensor(a), tensor(b)), op(a, b))
    same(op(tensor(a), 1), op(a, 1))
    same(op(1, tensor(a)), op(1, a))
    same(op(tensor([True, False]), tensor([True, True])), op(np.array([True, False]), np.array([True, True])))


@pytest.mark.parametrize("op", BITS, ids=lambda op: op.__name__)
def test_bits(op: Callable[[Any, Any], Any]) -> None:
    a, b = np.array([0b1100, -7, 5], np.int32), np.array([0b1010, 3, 1], np.int32)
    same(op(tensor(a), tensor(b)), op(a, b))
    same(op(tensor(a), 2), op(a, 2))
    same(op(2, tensor(b)), op(np.int32(2), b))


def test_unary() -> None:
    a = np.array([-3, 0, 5], np.int32)
    same(-tensor(a), -a)
    same(+tensor(a), a)
    same(abs(tensor(a)), abs(a))
    same(~tensor(a), ~a)
    same(~tensor([True, False]), [False, True])


def test_division_of_integers_is_float32() -> None:
    same(tensor([1, 2, 3]) / tensor([2, 2, 2]), np.array([0.5, 1, 1.5], np.float32))
    same(tensor([1, 2]) / 4, np.array([0.25, 0.5], np.float32))
    same(1 / tensor([2, 4]), np.array([0.5, 0.25], np.float32))
    same(tensor([True, False]) / 2, np.array([0.5, 0], np.float32))
    same(tensor([1.0, 0.0, -1.0]) / 0, np.array([np.inf, np.nan, -np.inf], np.float32))
    half = tensor([1.0], dtypes.float16)
    assert (half / 2).dtype is dtypes.float16
    assert (tensor([4]) / half).dtype is dtypes.float16


def test_powers() -> None:
    a = np.array([1.5, -2.0, 0.0, np.inf, np.nan], np.float32)
    same(tensor(a) ** 2, a * a)
    same(tensor(a) ** 2.0, a * a)
    same(tensor([2, 3, -4]) ** 2, np.array([4, 9, 16], np.int32))
    same(tensor([2, 3]) ** tensor([3, 4]), np.array([8, 81], np.int32))
    same(2 ** tensor([3, 4]), np.array([8, 16], np.int32))
    np.testing.assert_allclose((tensor([4, 9]) ** 0.5).numpy(), [2, 3], rtol=1e-6)
    with pytest.raises(DTypeError, match=r"int32 to the power of -1.*astype"):
        tensor([1, 2]) ** -1
    with pytest.raises(DTypeError, match="power is not offered for bool"):
        tensor([True]) ** tensor([True])


def test_numbers_are_weak() -> None:
    half = tensor([1.0], dtypes.bfloat16)
    for number in (2, 2.5, True, np.float64(2.5), np.int64(2), np.float32(2.5)):
        assert (half * number).dtype is dtypes.bfloat16
        assert (number * half).dtype is dtypes.bfloat16
    assert (tensor([1]) * 2.5).dtype is dtypes.float32
    assert (tensor([1], dtypes.int8) * 2).dtype is dtypes.int8
    assert (tensor([True]) + 1).dtype is dtypes.int32


def test_arrays_are_operands() -> None:
    a: Any = np.array([[1.0, 2.0]], np.float32)
    x = tensor([3.0, 4.0])
    for result in (a + x, x + a):
        same(result, np.array([[4, 6]], np.float32))
    same(a - x, np.array([[-2, -2]], np.float32))
    same(a < x, [[True, True]])
    assert (a.astype(np.float64) * x).dtype is dtypes.float64


def test_matrix_products() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    same(tensor(a) @ tensor(b), a @ b)
    same(tensor(a) @ b, a @ b)
    same(a @ tensor(b), a @ b)
    x = tensor(np.eye(3, dtype=np.float32))
    x @= tensor(np.diag([1.0, 2.0, 3.0]).astype(np.float32))
    same(x, np.diag([1.0, 2.0, 3.0]).astype(np.float32))
    with pytest.raises(ShapeError, match=r"matmul: 2 is a number.*\*"):
        tensor(a) @ 2


def test_divmod() -> None:
    a = np.array([7, -7, 5], np.int32)
    for ours, numpys in zip(divmod(tensor(a), 3), divmod(a, 3), strict=True):
        same(ours, numpys)
    for ours, numpys in zip(divmod(100, tensor(a)), divmod(100, a), strict=True):
        same(ours, numpys)


def test_what_other_classes_know_is_left_to_them() -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "added"

    assert tensor([1]) + Other() == "added"
    with pytest.raises(TypeError, match="unsupported operand"):
        tensor([1]) + "text"
    with pytest.raises(TypeError, match="unsupported operand"):
        tensor([1]) + None
    assert operator.eq(tensor([1]), None) is False
    assert operator.ne(tensor([1]), "text") is True


@pytest.mark.parametrize("value", [[1, 2], (1, 2)])
def test_lists_are_refused(value: Any) -> None:
    for op in (operator.add, operator.mul, operator.eq, operator.matmul):
        for pair in ((tensor([1, 2]), value), (value, tensor([1, 2]))):
            with pytest.raises(DTypeError, match=r"cannot be an operand of a tensor.*webgrad\.asarray"):
                op(*pair)


# In place


@pytest.mark.parametrize("op", IN_PLACE, ids=lambda op: op.__name__)
def test_in_place(op: Callable[[Any, Any], Any]) -> None:
    a = np.array([4, 9, -5], np.int32)
    x = tensor(a)
    alias, view, copied = x, x[0], x[0].clone()
    changed = op(x, 2)
    assert changed is x
    assert alias is x
    same(x, op(a.copy(), 2))
    same(view, op(a.copy(), 2)[0])
    same(copied, np.int32(4))


def test_in_place_keeps_shape_and_dtype() -> None:
    x = tensor([1.0, 2.0], dtypes.float16)
    x += tensor([1.0, 1.0], dtypes.float32)
    same(x, np.array([2, 3], np.float16))
    x /= 2
    same(x, np.array([1, 1.5], np.float16))
    counts = tensor([1, 2], dtypes.int8)
    counts += tensor([1, 300], dtypes.int32)
    same(counts, np.array([2, np.int32(302).astype(np.int8)], np.int8))
    with pytest.raises(DTypeError, match=r"add in place: the result is float32.*int8.*write x = x"):
        counts += 0.5
    with pytest.raises(DTypeError, match="divide in place"):
        counts /= 2
    with pytest.raises(ShapeError, match=r"add in place: the result has shape \(3, 2\).*\(2,\)"):
        x += zeros((3, 2), device="cpu")
    flags = tensor([True, False])
    flags |= tensor([False, True])
    same(flags, [True, True])
    same(x, np.array([1, 1.5], np.float16))


# Values


def test_what_it_is() -> None:
    x = tensor(np.zeros((2, 3, 4), np.int16))
    assert (x.shape, x.ndim, x.size, x.nbytes, len(x)) == ((2, 3, 4), 3, 24, 48, 2)
    assert x.dtype is dtypes.int16
    assert x.device.name == "cpu"
    assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert x.__array_namespace__() is webgrad
    assert x.__array_namespace__(api_version=webgrad.__array_api_version__) is webgrad
    with pytest.raises(ArgumentError, match=r"up to 2025\.12, and api_version='2031\.12' was requested"):
        x.__array_namespace__(api_version="2031.12")


def test_what_numpy_gives_is_not_written_to_by_mistake() -> None:
    x = tensor([1.0, 2.0])
    for array in (x.numpy(), x[:].numpy(), (x + 0).numpy()):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 9
    same(x, np.array([1, 2], np.float32))


def test_copies_in_numpy_can_be_written_to() -> None:
    x = tensor([1.0, 2.0])
    for array in (x.numpy().copy(), np.asarray(x), np.array(x), np.asarray(x[:])):
        array[:] = 9
    same(x, np.array([1, 2], np.float32))
    same(x + 0, np.array([1, 2], np.float32))


def test_item_and_tolist() -> None:
    assert tensor([[2.5]]).item() == 2.5
    assert type(tensor(3).item()) is int
    assert type(tensor(True).item()) is bool
    assert tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert tensor(1.5).tolist() == 1.5
    assert zeros((0, 3), device="cpu").tolist() == []
    assert tensor([1.5], dtypes.bfloat16).tolist() == [1.5]
    with pytest.raises(ShapeError, match=r"item\(\) needs a tensor of one element.*shape \(2,\)"):
        tensor([1, 2]).item()


def test_python_numbers() -> None:
    assert float(tensor([2.5])) == 2.5
    assert int(tensor(2.9)) == 2
    assert complex(tensor(2.5)) == 2.5 + 0j
    assert [10, 20, 30][tensor(1)] == 20
    assert bool(tensor([0.0])) is False
    assert bool(tensor(np.nan)) is True
    with pytest.raises(ShapeError, match=r"bool\(\) needs a tensor of one element.*any\(\), all\(\)"):
        bool(tensor([True, False]))
    with pytest.raises(ShapeError, match=r"bool\(\).*has 0"):
        bool(zeros(0, device="cpu"))
    with pytest.raises(DTypeError, match="float32 tensor is not an index"):
        operator.index(tensor(1.0))


def test_iteration() -> None:
    x = tensor([[1, 2], [3, 4]])
    assert [each.tolist() for each in x] == [[1, 2], [3, 4]]
    assert list(zeros((0, 2), device="cpu")) == []
    assert 3 in x
    assert 5 not in x
    with pytest.raises(TypeError, match="0-d tensor"):
        iter(tensor(1))
    with pytest.raises(TypeError, match="0-d tensor"):
        len(tensor(1))


def test_numpy_async() -> None:
    array = asyncio.run((tensor([1, 2]) + 1).numpy_async())
    assert array.tolist() == [2, 3]
    assert not array.flags.writeable


def test_hash_is_identity() -> None:
    x, y = tensor([1]), tensor([1])
    assert {x: 1, y: 2}[x] == 1
    assert hash(x) != hash(y)


# Elsewhere, or otherwise


def test_astype() -> None:
    x = tensor([1.9, -1.9, np.nan, np.inf, -1e20])
    assert x.astype(dtypes.int32).tolist() == [1, -1, 0, 2**31 - 1, -(2**31)]
    assert x.astype("uint8").tolist() == [1, 0, 0, 255, 0]
    assert tensor([300, -1]).astype(np.uint8).tolist() == [44, 255]
    assert tensor([0.5, 0.0, np.nan]).astype(bool).tolist() == [True, False, True]
    assert x.astype(dtypes.float32, copy=False) is x
    assert x.astype(dtypes.float32) is not x


def test_to() -> None:
    x = tensor([1.0])
    assert x.to(dtypes.float16).dtype is dtypes.float16
    assert x.to("int32").dtype is dtypes.int32
    assert x.to("cpu") is x
    assert x.to("cpu", dtypes.int8).dtype is dtypes.int8
    assert x.to(tensor([1], dtypes.int64)).dtype is dtypes.int64
    assert x.to(device="cpu", dtype=float) is x
    assert x.to_device(x.device) is x
    with pytest.raises(DTypeError, match="not a data type"):
        x.to(3)


def test_copies_are_independent() -> None:
    x = tensor([1, 2])
    copies = [x.clone(), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x[:].clone(), x.astype(x.dtype)]
    shared = [x.detach(), copy.copy(x), x[:], x.data]
    x += 1
    for each in copies:
        assert each.device is x.device
        same(each, np.array([1, 2], np.int32))
    for each in shared:
        same(each, np.array([2, 3], np.int32))
    assert x.contiguous() is x


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=lambda dtype: dtype.name)
def test_pickling_keeps_every_dtype(dtype: dtypes.DType) -> None:
    x = pickle.loads(pickle.dumps(tensor([[0, 1], [1, 0]], dtype)))
    assert x.dtype is dtype
    assert x.astype(dtypes.int32).tolist() == [[0, 1], [1, 0]]
    assert pickle.loads(pickle.dumps(dtype)) is dtype


# Methods


def test_shapes_one_by_one_or_together() -> None:
    x = arange(24, device="cpu")
    a = np.arange(24, dtype=np.int32)
    same(x.reshape(2, 3, 4), a.reshape(2, 3, 4))
    same(x.reshape((2, -1)), a.reshape(2, -1))
    same(x.view(4, 6), a.reshape(4, 6))
    cube, box = x.reshape(2, 3, 4), a.reshape(2, 3, 4)
    same(cube.permute(2, 0, 1), box.transpose(2, 0, 1))
    same(cube.permute((2, 0, 1)), box.transpose(2, 0, 1))
    same(cube.transpose(), box.T)
    same(cube.transpose(1, 2), box.swapaxes(1, 2))
    same(cube.transpose(2, 0, 1), box.transpose(2, 0, 1))
    same(cube.transpose((1, 0, 2)), box.transpose(1, 0, 2))
    same(cube[:, :1].expand(-1, 3, 4), np.broadcast_to(box[:, :1], (2, 3, 4)))
    same(cube[:1].expand((5, 3, 4)), np.broadcast_to(box[:1], (5, 3, 4)))


def test_functions_are_methods() -> None:
    a = np.array([[1.0, 4.0], [9.0, 16.0]], np.float32)
    x = tensor(a)
    same(x.sum(axis=0), a.sum(0))
    same(x.max(), a.max())
    same(x.sqrt(), np.sqrt(a))
    same(x.clip(2, 10), a.clip(2, 10))
    same(x.flatten(), a.reshape(-1))
    same(x.squeeze(), a)
    same(x.unsqueeze(0), a[None])
    np.testing.assert_allclose(x.softmax(axis=-1).sum(axis=-1).numpy(), [1, 1], rtol=1e-6)
    assert x.any().item() is True
    assert Tensor.sum.__doc__


def test_every_method_is_there() -> None:
    missing = []
    for name in dir(Tensor):
        try:
            getattr(Tensor, name)
        except (AttributeError, ImportError) as error:
            missing.append(f"{name}: {error}")
    assert missing == []


def test_building_is_cheap() -> None:
    x, y = ones((4, 4), device="cpu"), full((4, 4), 2.0, device="cpu")
    seconds = min(timeit.repeat(lambda: x + y, number=1000, repeat=5)) / 1000
    assert seconds < 20e-6, "an operator only makes a node; about 2 µs on a quiet machine"
    frames = sys.getrefcount(x)
    for _ in range(100):
        x + y
    assert sys.getrefcount(x) == frames
