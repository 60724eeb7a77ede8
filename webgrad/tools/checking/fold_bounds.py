"""Bounds of what adds up: sums, running totals, matrix products, attention, scatters, Fourier transforms.

In: a node's signature and its inputs as `Bounded`. Out: its own. What is lost goes by the sum of sizes and
grows with how many are added, since devices add in other orders; sums of integers lose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...arrays import Array, np
from ...graph.node import Signature
from ...lower.pull import BLOCK
from .rounding import (
    SINGLE,
    TINY,
    Bounded,
    applied,
    errors_of,
    limits_of,
    moved,
    rounded,
    unknown,
    wide,
)

__all__ = ["attend", "contract", "reduce", "scan", "scatter", "transform"]

SCAN_RUN = 2048  # of a running total that one thread has
MOST = 1 << 14  # additions one after another, of what is alike
SAMPLE = 4096  # elements that are looked at for that


def _is_alike(value: Array) -> bool:
    """Whether many elements are the same number: then roundings go the same way again and again."""
    sample = value.flat[:: max(1, value.size // SAMPLE)]
    return bool(2 * np.unique(sample).size < sample.size)


def _lost(count: float, alike: bool) -> float:
    """Units that so many additions, one after another, lose of the sum of sizes: a quarter each, or like a
    random walk, at five times its usual length.
    """
    return min(count, MOST) / 4 if alike else math.sqrt(count)


def _growth(length: int, alike: bool, run: int = BLOCK) -> float:
    """Units of the sum of sizes that adding so many floats may lose: in runs, and over the runs."""
    return 2 + _lost(min(length, run), alike) + _lost(length / run, alike)


def _total(
    sig: Signature, x: Bounded, fold: Callable[[Array], Array], length: int, run: int = BLOCK
) -> Bounded:
    """A sum by any function that adds: its terms' bounds are added too."""
    value = wide(x.value)
    result = fold(value)
    size = fold(np.abs(value))
    error = None if x.error is None else fold(x.error)
    if error is None and _is_whole(value) and _is_small(size):
        return rounded(sig.dtype, result, None)
    epsilon = 2 * limits_of(sig.dtype)[0] if sig.dtype.itemsize == 8 else SINGLE
    lost = _growth(length, _is_alike(value), run) * epsilon * size
    largest = limits_of(sig.dtype)[1]
    lost = np.where(np.isfinite(result), np.where(size > largest, np.inf, lost), 0.0)
    return rounded(sig.dtype, result, lost if error is None else error + lost)


def _is_whole(value: Array) -> bool:
    return bool(np.all(np.rint(value) == value))


def _is_small(size: Array) -> bool:
    """Whether integers up to these are all exact in float32."""
    return bool(np.all(size < 1 << 24))


def reduce(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """A fold along axes."""
    (x,) = inputs
    axes = sig.attributes[0]
    length = math.prod(x.value.shape[axis] for axis in axes)
    if sig.dtype.kind != "f" or sig.op.name in ("max", "min"):
        result = applied(sig, [x.value])
        return Bounded(result, moved(sig, inputs, result))

    def fold(array: Array) -> Array:
        return np.asarray(np.sum(array, axis=axes)).reshape(sig.shape)

    if sig.op.name == "sum":
        return _total(sig, x, fold, length)
    return _product(sig, x, lambda array: np.asarray(np.prod(array, axis=axes)).reshape(sig.shape), length)


def _product(sig: Signature, x: Bounded, fold: Callable[[Array], Array], length: int) -> Bounded:
    """Products: what all factors may be larger by; unknown where a part of it may overflow or vanish."""
    value = wide(x.value)
    result, size = fold(value), np.abs(value)
    error = np.abs(fold(size + errors_of(x)) - fold(size)) + length * SINGLE * np.abs(result)
    upper, lower = fold(np.maximum(size, 1)), fold(np.where(size > 0, np.minimum(size, 1), 1))
    odd = (upper > limits_of(sig.dtype)[1]) | (lower < TINY)
    return rounded(sig.dtype, result, np.where(odd, np.inf, np.where(np.isfinite(result), error, 0.0)))


def scan(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Running totals along an axis."""
    x, axis = inputs[0], sig.attributes[0]
    if sig.dtype.kind != "f" or sig.op.name in ("cumulative_max", "cumulative_min"):
        result = applied(sig, [x.value])
        return Bounded(result, moved(sig, inputs[:1], result))
    length = x.value.shape[axis]
    if sig.op.name == "cumulative_sum":
        return _total(sig, x, lambda array: np.cumsum(array, axis=axis), length, SCAN_RUN)
    return _product(sig, x, lambda array: np.cumprod(array, axis=axis), length)


def contract(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """A matrix product."""
    a, b = inputs
    if sig.dtype.kind != "f":
        result = np.matmul(a.value, b.value).astype(sig.dtype.numpy, copy=False)
        return Bounded(result, moved(sig, inputs, result))
    result = wide(a.value) @ wide(b.value)
    narrow = np.float64 if sig.dtype.itemsize == 8 else np.float32
    left, right = (np.abs(each.value).astype(narrow, copy=False) for each in inputs)
    size = np.matmul(left, right).astype(np.float64, copy=False)
    length = a.value.shape[-1]
    # Along k one after another, in registers.
    units = 4 + _lost(length, _is_alike(left) and _is_alike(right))
    error = units * (2 * limits_of(sig.dtype)[0] if sig.dtype.itemsize == 8 else SINGLE) * size
    if a.error is None and b.error is None and _is_whole(left) and _is_whole(right) and _is_small(size):
        return rounded(sig.dtype, result, None)
    if a.error is not None:
        error = error + a.error @ wide(np.abs(b.value) if b.error is None else right + b.error)
    if b.error is not None:
        error = error + wide(left) @ b.error
    return rounded(sig.dtype, result, np.where(np.isfinite(result), error, 0.0))


def attend(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Softmax moves a weight by at most twice the largest error of the scores, relatively."""
    if sig.attributes[3]:
        return unknown(np.zeros(sig.shape))  # a chunk's part, which only means something with the others
    q, k, v, scale, length, *mask = inputs
    values = [wide(each.value) for each in inputs]
    result = applied(sig, values)
    repeats = q.value.shape[1] // max(k.value.shape[1], 1)
    size_q, size_k = np.abs(values[0]), np.swapaxes(np.repeat(np.abs(values[1]), repeats, axis=1), 2, 3)
    factor = np.abs(values[3])
    alike = _is_alike(size_q) and _is_alike(size_k)
    scores = (4 + _lost(q.value.shape[-1], alike)) * SINGLE * (size_q @ size_k)
    if q.error is not None:
        scores = scores + q.error @ size_k
    if k.error is not None:
        scores = scores + size_q @ np.swapaxes(np.repeat(k.error, repeats, axis=1), 2, 3)
    scores = scores * factor
    if mask and mask[0].error is not None:
        scores = scores + mask[0].error
    count = min(max(int(length.value), 0), k.value.shape[2])
    worst = scores[..., :count].max(axis=3, keepdims=True, initial=0.0) + 8 * SINGLE
    sizes = [values[0], *values[1:2], np.abs(values[2]), *values[3:]]
    spread = np.abs(applied(sig, sizes))
    error = (np.expm1(2 * np.minimum(worst, 50)) + _growth(count, alike=True) * SINGLE) * spread
    if v.error is not None:
        error = error + np.abs(applied(sig, [*values[:2], v.error, *values[3:]]))
    if scale.error is not None or length.error is not None:
        return unknown(result)
    return rounded(sig.dtype, result, np.where(np.isfinite(result), error, 0.0))


def scatter(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Elements written, or added, to computed places."""
    base, index, updates = inputs
    values = [wide(base.value), index.value, wide(updates.value)]
    if index.error is not None and index.error.any():
        return unknown(np.asarray(sig.op.numpy(sig, *values)))
    result = applied(sig, values)
    if sig.op.name == "scatter_set":
        if base.error is None and updates.error is None:
            return Bounded(result)
        return Bounded(
            result, np.asarray(sig.op.numpy(sig, errors_of(base).copy(), index.value, errors_of(updates)))
        )
    if sig.dtype.kind != "f" or sig.op.name == "scatter_max":
        return Bounded(result, moved(sig, inputs, result))

    def fold(pairs: tuple[Array, Array]) -> Array:
        return np.asarray(sig.op.numpy(sig, pairs[0].copy(), index.value, pairs[1]))

    size = fold((np.abs(values[0]), np.abs(values[2])))
    ones = fold((np.ones_like(values[0]), np.ones_like(values[2])))  # how many are added
    whole = _is_whole(values[0]) and _is_whole(values[2]) and _is_small(size)
    if base.error is None and updates.error is None and whole:
        return rounded(sig.dtype, result, None)
    error = (2 + np.minimum(ones, 1024) / 4) * SINGLE * size + fold((errors_of(base), errors_of(updates)))
    return rounded(sig.dtype, result, np.where(np.isfinite(result), error, 0.0))


def transform(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Every result of a Fourier transform has its row's rounding: by the row's size, and few passes."""
    (x,) = inputs
    name, attributes = sig.op.name, sig.attributes
    scale = abs(float(attributes[1] if name != "rfft" else attributes[0]))
    axes = {"fft": (attributes[-1], -1), "rfft": (-1,), "irfft": (-2, -1)}[name]
    value = wide(x.value)
    length = attributes[0] if name == "irfft" else x.value.shape[axes[0]]
    result = wide(np.asarray(sig.op.numpy(sig, value)))
    epsilon = 2 * limits_of(sig.dtype)[0] if sig.dtype.itemsize == 8 else SINGLE
    size = np.sqrt(np.sum(np.square(value), axis=axes, keepdims=True))
    most = np.sum(errors_of(x), axis=axes, keepdims=True)
    error = scale * (epsilon * (4 + 2 * math.log2(max(length, 2))) * size + 2 * most)
    if name == "irfft":
        error = error[..., 0]
    elif name == "rfft":
        error = error[..., None]
    lost = np.where(np.isfinite(result), np.broadcast_to(error, result.shape), 0.0)
    return rounded(sig.dtype, result, lost)
