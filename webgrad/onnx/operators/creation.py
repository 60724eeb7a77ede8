"""Operators that make values: constants, ranges, matrices with a diagonal, random numbers."""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from ...arrays import np
from ..types import code_of, type_of
from .table import Call, operator
from .values import bounded, stored

__all__: list[str] = []

SMALL = 1024  # elements: constants that may be shapes stay on the host


@operator("Constant")
def constant(
    *,
    value: Any = None,
    value_float: float | None = None,
    value_floats: Any = None,
    value_int: int | None = None,
    value_ints: Any = None,
    value_string: Any = None,
    value_strings: Any = None,
    sparse_value: Any = None,
) -> Any:
    given = [
        (value, None), (sparse_value, None), (value_float, np.float32), (value_floats, np.float32),
        (value_int, np.int64), (value_ints, np.int64), (value_string, object), (value_strings, object),
    ]  # fmt: skip
    found = [np.asarray(each, dtype) for each, dtype in given if each is not None]
    if len(found) != 1:
        raise wg.ArgumentError(f"Constant has one value, not {len(found)}")
    return found[0]


@operator("ConstantOfShape", 9, host="shape", folds=False)
def constant_of_shape(shape: Any, *, value: Any = None, call: Call) -> Any:
    sizes = tuple(int(each) for each in shape)
    one = np.zeros(1, np.float32) if value is None else np.asarray(value).reshape(1)
    if math.prod(sizes) <= SMALL or one.dtype == object:
        bounded(*sizes, 1)
        return np.full(sizes, one[0], one.dtype)
    return wg.full(sizes, one.item(), dtype=stored(one.dtype.name, call.device), device=call.device)


@operator("Range", 11, host="start limit delta")
def range_of_numbers(start: Any, limit: Any, delta: Any, *, stash_type: int = 1) -> Any:
    """Each number is start + index × delta; halves are computed as float32."""
    kept = start.dtype
    wide = np.dtype(np.float32) if kept.itemsize == 2 and kept.kind in "fV" else kept
    first, end, step = (each.astype(wide).reshape(())[()] for each in (start, limit, delta))
    if step == 0:
        raise wg.ArgumentError("Range has steps of 0")
    count = max(math.ceil((end.item() - first.item()) / step.item()), 0)
    return (first + np.arange(bounded(count)).astype(wide) * step).astype(kept)


@operator("EyeLike", 9, known="x")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0, call: Call) -> Any:
    if len(x.shape) != 2:
        raise wg.ShapeError(f"EyeLike takes a matrix, not {tuple(x.shape)}")
    kept = stored(type_of(dtype or code_of(x.dtype)).name, call.device)
    return wg.eye(*x.shape, k=k, dtype=kept, device=call.device)


# Random numbers: of a seed from a stream of its own, in which a captured model goes on


def _stream(seed: float | None) -> Any:
    return wg.random if seed is None else wg.random.Generator(hash(float(seed)) % (1 << 64))


@operator("RandomNormal", folds=False)
def normal(
    *,
    shape: Any,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    call: Call,
) -> Any:
    kept = type_of(dtype).webgrad
    return _stream(seed).normal(tuple(shape), mean=mean, std=scale, dtype=kept, device=call.device)


@operator("RandomUniform", folds=False)
def uniform(
    *, shape: Any, dtype: int = 1, low: float = 0.0, high: float = 1.0, seed: float | None = None, call: Call
) -> Any:
    kept = type_of(dtype).webgrad
    return _stream(seed).uniform(tuple(shape), low=low, high=high, dtype=kept, device=call.device)


@operator("RandomNormalLike", known="x", folds=False)
def normal_like(
    x: Any,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    call: Call,
) -> Any:
    kept = dtype or code_of(x.dtype)
    return normal(shape=x.shape, dtype=kept, mean=mean, scale=scale, seed=seed, call=call)


@operator("RandomUniformLike", known="x", folds=False)
def uniform_like(
    x: Any,
    *,
    dtype: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
    call: Call,
) -> Any:
    return uniform(shape=x.shape, dtype=dtype or code_of(x.dtype), low=low, high=high, seed=seed, call=call)


@operator("Bernoulli", 15, folds=False)
def bernoulli(x: Any, *, dtype: int | None = None, seed: float | None = None) -> Any:
    kept = x.dtype if dtype is None else stored(type_of(dtype).name, x.device)
    return _stream(seed).bernoulli(x.astype(wg.float32)).astype(kept)


@operator("Multinomial", 7, folds=False)
def multinomial(x: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Any:
    """Draws from rows of logarithms of chances, which need not add up to 1."""
    chances = wg.softmax(x.astype(wg.float32), axis=-1)
    generator = None if seed is None else _stream(seed)
    found = wg.multinomial(chances, sample_size, replacement=True, generator=generator)
    return found.astype(stored(type_of(dtype).name, x.device))
