"""Functions of frequent nodes for arrays that are not half floats: NumPy's own, called with nothing around.

In: a node's signature. Out: a function of arrays, which makes only what is asked for: movement gives views,
and a fold to one number gives one of NumPy's scalars. They do what the table's rows do, in a fraction of the
time: of small arrays, calls are all the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter, methodcaller
from typing import Any

from ..arrays import Array, np
from ..graph.node import Signature
from .attention import attention

__all__ = ["DIRECT"]

Function = Callable[..., Any]


def _slice(sig: Signature) -> Function:
    return itemgetter(tuple([slice(*each) for each in sig.attributes[0]]))


def _flip(sig: Signature) -> Function:
    back, whole = slice(None, None, -1), slice(None)
    return itemgetter(tuple([back if axis in sig.attributes[0] else whole for axis in range(len(sig.shape))]))


def _expand(sig: Signature) -> Function:
    shape, rank = sig.shape, len(sig.shape)

    def expand(x: Array) -> Array:
        if not (x.flags.c_contiguous and x.size):
            return np.broadcast_to(x, shape)
        steps = [0 if size == 1 else step for size, step in zip(x.shape, x.strides, strict=True)]
        return np.ndarray(shape, x.dtype, x, 0, (*[0] * (rank - len(steps)), *steps))

    return expand


def _pad(sig: Signature) -> Function:
    shape, dtype = sig.shape, sig.dtype.numpy
    ends = [(before, size - after) for (before, after), size in zip(sig.attributes[0], shape, strict=True)]
    inside = tuple([slice(*each) for each in ends])

    def pad(x: Array, value: Any) -> Array:
        result = np.empty(shape, dtype)
        result.fill(value)
        result[inside] = x
        return result

    return pad


def _take(sig: Signature) -> Function:
    (axis,) = sig.attributes

    def take(x: Array, index: Array) -> Any:
        if index.dtype.kind == "u" or not x.shape[axis]:
            return sig.op.numpy(sig, x, index)
        return x.take(index, axis, mode="clip")

    return take


def _sum(sig: Signature) -> Function:
    """Sums of float32 are made in float64: NumPy adds up one after another, except along the last axis."""
    dtype = sig.dtype.numpy
    if dtype != np.float32:
        return partial(np.add.reduce, axis=sig.attributes[0], dtype=dtype)
    add = partial(np.add.reduce, axis=sig.attributes[0], dtype=np.float64)
    return lambda x: add(x).astype(dtype)


def _extreme(fold: Any) -> Callable[[Signature], Function]:
    def make(sig: Signature) -> Function:
        start = sig.op.identity(sig.dtype.numpy)  # type: ignore[misc]
        return partial(fold.reduce, axis=sig.attributes[0], initial=start)

    return make


def _concat(sig: Signature) -> Function:
    (axis,) = sig.attributes
    return lambda *xs: np.concatenate(xs, axis)


DIRECT: dict[str, Callable[[Signature], Function]] = {
    "reshape": lambda sig: methodcaller("reshape", sig.shape),
    "permute": lambda sig: methodcaller("transpose", sig.attributes[0]),
    "slice": _slice,
    "flip": _flip,
    "expand": _expand,
    "pad": _pad,
    "take": _take,
    "iota": lambda sig: partial(np.arange, sig.shape[0], dtype=sig.dtype.numpy),
    "concat": _concat,
    "cast": lambda sig: partial(sig.op.numpy, sig),
    "sum": _sum,
    "max": _extreme(np.maximum),
    "min": _extreme(np.minimum),
    "attention": attention,
    "matmul": lambda sig: np.matmul,
    "where": lambda sig: np.where,
}
