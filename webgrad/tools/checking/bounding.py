"""What a value must be, and by how much a right kernel may miss it: a running analysis of rounding errors.

In: a node's signature and its inputs as `Bounded`. Out: the node's own: its value by NumPy, floats in
float64, and a bound for what devices may differ by. How ill-conditioned a value is comes out by computing it
again from inputs moved by their bounds. The invariant: where nothing was rounded nothing may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ...dtypes import DType
from ...graph.node import Signature

__all__ = ["Bounded", "bounded", "exact", "unknown"]

Array = np.ndarray[Any, Any]

TINY = float(np.finfo(np.float32).tiny)  # below it drivers may read and write zeros
SINGLE = float(np.finfo(np.float32).eps)
DOUBLE_FUNCTION = 1e-12  # relative: what functions of float64 keep to
RUN = 64  # elements that kernels add one after another, before sums of sums


class Bounded(NamedTuple):
    """A value and its bound: of floats by how much, of whole numbers too, of bools where it may be the other.

    None is a bound of nothing; infinity says that any value may be right.
    """

    value: Array
    error: Array | None = None


def exact(array: Array) -> Bounded:
    """A value that both devices have, to the bit; what is denormal may be read as 0."""
    if array.dtype.kind not in "fV" or array.dtype.itemsize == 8 or not array.size:
        return Bounded(array)
    size = np.abs(array.astype(np.float32, copy=False))
    small = (size < TINY) & (size > 0)
    return Bounded(array, np.where(small, size, 0.0).astype(np.float64)) if small.any() else Bounded(array)


def unknown(value: Array) -> Bounded:
    """A value of which nothing can be said."""
    if value.dtype.kind == "b":
        return Bounded(value, np.ones(value.shape, np.bool_))
    return Bounded(value, np.full(value.shape, np.inf))


def bounded(sig: Signature, inputs: Sequence[Bounded]) -> Bounded:
    """A node's value and bound, from those of its inputs."""
    with np.errstate(all="ignore"):
        return _RULES.get(sig.op.name, _KINDS.get(sig.kind, _opaque))(sig, list(inputs))


# Parts of rules


def _wide(array: Array) -> Array:
    """Floats as float64."""
    return array.astype(np.float64, copy=False) if array.dtype.kind in "fV" else array


def _errors(x: Bounded) -> Array:
    return np.broadcast_to(np.float64(0), x.value.shape) if x.error is None else x.error


def _apply(sig: Signature, values: Sequence[Array]) -> Array:
    """An op by NumPy: floats stay float64, whole numbers have the result's dtype."""
    made = sig.op.numpy(*values) if sig.kind == "map" else sig.op.numpy(sig, *values)
    result = np.asarray(made)
    if sig.dtype.kind == "f":
        return _wide(result).reshape(sig.shape)
    return result.astype(sig.dtype.numpy, copy=False).reshape(sig.shape)


def _distance(a: Array, b: Array) -> Array:
    """How far two results are from each other: 0 for equal ones, NaN and infinities too; never NaN."""
    if a.dtype.kind == "b":
        return np.asarray(np.not_equal(a, b))
    a, b = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
    far = np.abs(a - b)
    odd = ~np.isfinite(far)
    if odd.any():
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        far = np.where(odd, np.where(same, 0.0, np.inf), far)
    return np.asarray(far)


@cache
def _limits(dtype: DType) -> tuple[float, float, float]:
    """A float's distance from 1 to the next, the largest, and the smallest above 0."""
    finfo: Any = ml_dtypes.finfo  # has no types
    info = finfo(dtype.numpy)
    return float(info.eps), float(info.max), float(info.smallest_subnormal)


def _rounded(dtype: DType, value: Array, error: Array | None, units: float = 0.0) -> Bounded:
    """A computed float with what its own rounding adds; `units` in the last place where it is a function.

    Where neither inputs nor result were rounded, compilers have no choice: nothing is added.
    """
    value = _wide(value)
    epsilon, largest, least = _limits(dtype)
    settled: Array | None = None
    if not units and dtype.itemsize < 8:
        stored = value.astype(dtype.numpy)
        settled = stored.astype(np.float64) == value
        if error is not None:
            settled &= error == 0
        elif np.all(settled | np.isnan(value)):
            return _flushed(dtype, stored, None)
    size = np.abs(value)
    if dtype.itemsize == 8:
        relative = max(2 * epsilon, DOUBLE_FUNCTION if units else 0.0)
    else:
        relative = 0.51 * epsilon + units * SINGLE
    finite = np.isfinite(size)
    grown = np.where(finite, np.maximum(relative * size, 0.51 * least), 0.0)
    if settled is not None:
        grown = np.where(settled, 0.0, grown)
    if error is not None:
        grown = grown + error
    end = largest * (1 + epsilon / 4)  # what is below is rounded to the largest
    reach = units * SINGLE * size + (0.0 if error is None else error)
    over = finite & (size + reach >= end)
    if over.any():
        grown = np.where(over, np.where(size - reach < end, np.inf, 0.0), grown)
        value = np.where(size >= end, np.copysign(np.inf, value), value)
    return _flushed(dtype, value, grown)


def _flushed(dtype: DType, value: Array, error: Array | None) -> Bounded:
    """The same, where results are so small that they may be written as zeros."""
    if dtype.itemsize == 8:
        return Bounded(value, error)
    size = np.abs(value)
    small = (size < TINY) & (size > 0)
    if small.any():
        error = (0.0 if error is None else error) + np.where(small, _wide(size), 0.0)
    return Bounded(value, error)


def _shifted(x: Bounded, sign: int) -> Array:
    """A value moved by its bound, as far as its dtype goes; what is unknown stays."""
    assert x.error is not None
    value = x.value
    if value.dtype.kind == "b":
        return np.asarray(np.logical_xor(value, x.error))
    error = np.where(np.isfinite(x.error), x.error, 0.0)
    if value.dtype.kind in "iu":
        ends = np.iinfo(value.dtype)
        moved = np.clip(value.astype(np.float64) + sign * error, float(ends.min), float(ends.max))
        return np.where(error == 0, value, moved.astype(value.dtype))
    wide = _wide(value)
    moved = wide + sign * error
    # Not to the other side of 0 by what only drivers do to denormals: what is squared is not negative.
    return np.where((np.abs(moved) < 4 * TINY) & (moved * wide <= 0), 0.0, moved)


def _moved(sig: Signature, inputs: list[Bounded], result: Array) -> Array | None:
    """How far a result moves where its inputs do, one after another, either way; None: not at all."""
    values = [_wide(each.value) for each in inputs]
    total: Array | None = None
    for at, each in enumerate(inputs):
        if each.error is None or not each.error.any():
            continue
        ways = (1,) if each.value.dtype.kind == "b" else (1, -1)
        others = [_apply(sig, [*values[:at], _shifted(each, sign), *values[at + 1 :]]) for sign in ways]
        far = [_distance(other, result) for other in others]
        most = far[0] if len(far) == 1 else np.maximum(far[0], far[1])
        lost = ~np.isfinite(each.error) if each.error.dtype.kind == "f" else None
        if lost is not None and lost.any():
            most = np.where(_reached(sig, lost), True if most.dtype.kind == "b" else np.inf, most)
        if total is None:
            total = most
        else:
            total = total | most if most.dtype.kind == "b" else total + most
    return total


def _reached(sig: Signature, lost: Array) -> Any:
    """The results that elements of which nothing is known have a part in."""
    if sig.kind in ("map", "cast"):
        return np.broadcast_to(lost, sig.shape)
    return np.any(lost, axis=sig.attributes[0]).reshape(sig.shape) if sig.kind == "reduce" else True


# Rules by kind


# Ops by which whole numbers that are near each other stay so, and those that keep them apart as they are
# unless they differ in a bit that is changed; of all others nothing is known where a number is not.
_NEAR = frozenset(
    [
        *("add", "subtract", "multiply", "negative", "abs", "sign", "maximum", "minimum", "floor_divide"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "right_shift"),
    ]
)
_BITWISE = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"))


def _map(sig: Signature, inputs: list[Bounded]) -> Bounded:
    result = _apply(sig, [_wide(each.value) for each in inputs])
    error = _moved(sig, inputs, result)
    doubtful = [each for each in inputs if each.value.dtype.kind in "iu" and each.error is not None]
    if doubtful and sig.op.name not in _NEAR:
        safe = ~np.logical_or.reduce([np.broadcast_to(each.error != 0, sig.shape) for each in doubtful])
        if sig.op.name in _BITWISE and len(doubtful) == 1:
            safe = safe | _keeps_apart(sig, inputs)
        error = np.where(safe, 0.0 if error is None else error, np.inf)
    if sig.dtype.kind == "f":
        return _rounded(sig.dtype, result, error, sig.op.tolerance)
    return Bounded(result, error)


def _keeps_apart(sig: Signature, inputs: list[Bounded]) -> Array:
    """Where both ends of what a number may be stay as far apart as they are: no bit between them is lost."""
    ends = []
    for sign in (1, -1):
        moved = [each.value if each.error is None else _shifted(each, sign) for each in inputs]
        given = next(at for at, each in enumerate(inputs) if each.error is not None)
        ends.append((moved[given].astype(np.float64), _apply(sig, moved).astype(np.float64)))
    (high, above), (low, below) = ends
    return np.asarray(np.abs(above - below) == high - low)


def _choice(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """where: what is not chosen has no part in it."""
    condition, a, b = inputs
    result = np.broadcast_to(np.where(condition.value, a.value, b.value), sig.shape)
    error: Array | None = None
    if a.error is not None or b.error is not None:
        error = np.where(condition.value, _errors(a), _errors(b))
    if condition.error is not None:
        apart = np.where(condition.error, _distance(_wide(a.value), _wide(b.value)), 0)
        error = apart if error is None else error + apart
    if error is not None:
        error = np.broadcast_to(error, sig.shape)
        error = error.astype(np.bool_ if sig.dtype.kind == "b" else np.float64, copy=False)
    return Bounded(result, error)


def _cast(sig: Signature, inputs: list[Bounded]) -> Bounded:
    (x,) = inputs
    if sig.dtype.kind == "f":
        error = x.error
        if error is not None and x.value.dtype.kind == "b":
            error = error.astype(np.float64)
        if error is not None and sig.dtype.itemsize == 2:
            return _halved(sig, x)
        return _rounded(sig.dtype, x.value.astype(np.float64), error)
    result = _apply(sig, [_wide(x.value)])
    return Bounded(result, _moved(sig, inputs, result))


def _halved(sig: Signature, x: Bounded) -> Bounded:
    """To half precision, which every device rounds to: most of what a value may be becomes one number."""
    assert x.error is not None
    result = x.value.astype(sig.dtype.numpy)
    ends = [_shifted(x, sign).astype(sig.dtype.numpy) for sign in (1, -1)]
    apart = np.maximum(*(_distance(_wide(each), _wide(result)) for each in ends))
    error = np.where(np.isfinite(x.error), apart, np.inf)
    return Bounded(result, error) if error.any() else exact(result)


def _bits(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """The bits of a value, which needs it as it lies in memory; what was rounded has bits near its own."""
    (x,) = inputs
    if x.error is None or not x.error.any():
        return Bounded(np.asarray(sig.op.numpy(sig, x.value)))
    width = sig.dtype.itemsize
    if sig.dtype.kind not in "iu" or x.value.dtype.kind != "f" or width < 4:
        if x.value.dtype.itemsize != width:
            return unknown(np.zeros(sig.shape, sig.dtype.numpy))
        return Bounded(np.asarray(sig.op.numpy(sig, x.value)), np.where(x.error == 0, 0.0, np.inf))
    near = [_shifted(x, sign).astype(f"f{width}") for sign in (1, -1)]
    middle = np.asarray(sig.op.numpy(sig, x.value.astype(f"f{width}")))
    ends = [np.asarray(sig.op.numpy(sig, each)) for each in near]
    apart = np.maximum(*(_distance(each.astype(np.float64), middle.astype(np.float64)) for each in ends))
    lost = (np.signbit(near[0]) != np.signbit(near[1])) | ~np.isfinite(x.error)
    return Bounded(middle, np.where(lost, np.inf, np.where(x.error == 0, 0.0, apart + 1)))


def _source(sig: Signature, inputs: list[Bounded]) -> Bounded:
    return Bounded(np.asarray(sig.op.numpy(sig)).astype(sig.dtype.numpy).reshape(sig.shape))


def _move(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Bounds go where their values go."""
    result = np.asarray(sig.op.numpy(sig, *[each.value for each in inputs])).reshape(sig.shape)
    if all(each.error is None for each in inputs):
        return Bounded(result)
    return Bounded(result, np.asarray(sig.op.numpy(sig, *map(_errors, inputs))).reshape(sig.shape))


def _gather(sig: Signature, inputs: list[Bounded]) -> Bounded:
    x, index = inputs
    result = np.asarray(sig.op.numpy(sig, x.value, index.value)).reshape(sig.shape)
    if index.error is not None and index.error.any():
        return unknown(result)
    if x.error is None:
        return Bounded(result)
    return Bounded(result, np.asarray(sig.op.numpy(sig, x.error, index.value)).reshape(sig.shape))


def _decode(sig: Signature, inputs: list[Bounded]) -> Bounded:
    result = np.asarray(sig.op.numpy(sig, *[each.value for each in inputs])).reshape(sig.shape)
    if any(each.error is not None for each in inputs):
        return unknown(result)
    # A scale times a quant less an offset: each is rounded, and they may cancel within a block.
    size = np.abs(_wide(result))
    return _rounded(sig.dtype, result, 2 * SINGLE * size.max(axis=-1, keepdims=True, initial=0) + 0 * size)


def _growth(length: int) -> float:
    """Units of the sum of sizes that adding so many floats may lose: in runs, and runs of runs.

    Where all are alike every rounding goes the same way, a quarter of a unit each.
    """
    levels = max(1.0, math.log(max(length, 2), RUN))
    return 2 + min(length, RUN) / 4 * levels


def _total(
    sig: Signature, x: Bounded, fold: Callable[[Array], Array], length: int, growth: float | None = None
) -> Bounded:
    """A sum by any function that adds: its terms' bounds are added too."""
    value = _wide(x.value)
    result = fold(value)
    size = fold(np.abs(value))
    error = None if x.error is None else fold(x.error)
    if error is None and _is_whole(value) and _is_small(size):
        return _rounded(sig.dtype, result, None)
    epsilon = 2 * _limits(sig.dtype)[0] if sig.dtype.itemsize == 8 else SINGLE
    lost = (_growth(length) if growth is None else growth) * epsilon * size
    largest = _limits(sig.dtype)[1]
    lost = np.where(np.isfinite(result), np.where(size > largest, np.inf, lost), 0.0)
    return _rounded(sig.dtype, result, lost if error is None else error + lost)


def _is_whole(value: Array) -> bool:
    return bool(np.all(np.rint(value) == value))


def _is_small(size: Array) -> bool:
    """Whether whole numbers up to these are all exact in float32."""
    return bool(np.all(size < 1 << 24))


def _reduce(sig: Signature, inputs: list[Bounded]) -> Bounded:
    (x,) = inputs
    axes = sig.attributes[0]
    length = math.prod(x.value.shape[axis] for axis in axes)
    if sig.dtype.kind != "f" or sig.op.name in ("max", "min"):
        result = _apply(sig, [x.value])
        return Bounded(result, _moved(sig, inputs, result))

    def fold(array: Array) -> Array:
        return np.asarray(np.sum(array, axis=axes)).reshape(sig.shape)

    if sig.op.name == "sum":
        return _total(sig, x, fold, length)
    return _product(sig, x, lambda array: np.asarray(np.prod(array, axis=axes)).reshape(sig.shape), length)


def _product(sig: Signature, x: Bounded, fold: Callable[[Array], Array], length: int) -> Bounded:
    """Products: what all factors may be larger by; unknown where a part of it may overflow or vanish."""
    value = _wide(x.value)
    result, size = fold(value), np.abs(value)
    error = np.abs(fold(size + _errors(x)) - fold(size)) + length * SINGLE * np.abs(result)
    upper, lower = fold(np.maximum(size, 1)), fold(np.where(size > 0, np.minimum(size, 1), 1))
    odd = (upper > _limits(sig.dtype)[1]) | (lower < TINY)
    return _rounded(sig.dtype, result, np.where(odd, np.inf, np.where(np.isfinite(result), error, 0.0)))


def _scan(sig: Signature, inputs: list[Bounded]) -> Bounded:
    x, axis = inputs[0], sig.attributes[0]
    if sig.dtype.kind != "f" or sig.op.name in ("cumulative_max", "cumulative_min"):
        result = _apply(sig, [x.value])
        return Bounded(result, _moved(sig, inputs[:1], result))
    length = x.value.shape[axis]
    if sig.op.name == "cumulative_sum":
        # A thread goes along a row, or a chunk of it, without runs.
        return _total(sig, x, lambda array: np.cumsum(array, axis=axis), length, 4 + min(length, 2048) / 4)
    return _product(sig, x, lambda array: np.cumprod(array, axis=axis), length)


def _contract(sig: Signature, inputs: list[Bounded]) -> Bounded:
    a, b = inputs
    if sig.dtype.kind != "f":
        result = np.matmul(a.value, b.value).astype(sig.dtype.numpy, copy=False)
        return Bounded(result, _moved(sig, inputs, result))
    result = _wide(a.value) @ _wide(b.value)
    narrow = np.float64 if sig.dtype.itemsize == 8 else np.float32
    left, right = (np.abs(each.value).astype(narrow, copy=False) for each in inputs)
    size = np.matmul(left, right).astype(np.float64, copy=False)
    length = a.value.shape[-1]
    # Rows of k are added in registers, one after another.
    units = 4 + min(length / 4, 16 * math.sqrt(length))
    error = units * (2 * _limits(sig.dtype)[0] if sig.dtype.itemsize == 8 else SINGLE) * size
    if a.error is None and b.error is None and _is_whole(left) and _is_whole(right) and _is_small(size):
        return _rounded(sig.dtype, result, None)
    if a.error is not None:
        error = error + a.error @ _wide(np.abs(b.value) if b.error is None else right + b.error)
    if b.error is not None:
        error = error + _wide(left) @ b.error
    return _rounded(sig.dtype, result, np.where(np.isfinite(result), error, 0.0))


def _attend(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Softmax moves a weight by at most twice the largest error of the scores, relatively."""
    if sig.attributes[3]:
        return unknown(np.zeros(sig.shape))  # a chunk's part, which only means something with the others
    q, k, v, scale, length, *mask = inputs
    values = [_wide(each.value) for each in inputs]
    result = _apply(sig, values)
    repeats = q.value.shape[1] // max(k.value.shape[1], 1)
    size_q, size_k = np.abs(values[0]), np.swapaxes(np.repeat(np.abs(values[1]), repeats, axis=1), 2, 3)
    factor = np.abs(values[3])
    scores = (4 + q.value.shape[-1] / 4) * SINGLE * (size_q @ size_k)
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
    spread = np.abs(_apply(sig, sizes))
    error = (2 * np.expm1(2 * np.minimum(worst, 50)) + _growth(count) * SINGLE) * spread
    if v.error is not None:
        error = error + np.abs(_apply(sig, [*values[:2], v.error, *values[3:]]))
    if scale.error is not None or length.error is not None:
        return unknown(result)
    return _rounded(sig.dtype, result, np.where(np.isfinite(result), error, 0.0))


def _scatter(sig: Signature, inputs: list[Bounded]) -> Bounded:
    base, index, updates = inputs
    values = [_wide(base.value), index.value, _wide(updates.value)]
    if index.error is not None and index.error.any():
        return unknown(np.asarray(sig.op.numpy(sig, *values)))
    result = _apply(sig, values)
    if sig.op.name == "scatter_set":
        if base.error is None and updates.error is None:
            return Bounded(result)
        return Bounded(
            result, np.asarray(sig.op.numpy(sig, _errors(base).copy(), index.value, _errors(updates)))
        )
    if sig.dtype.kind != "f" or sig.op.name == "scatter_max":
        return Bounded(result, _moved(sig, inputs, result))

    def fold(pairs: tuple[Array, Array]) -> Array:
        return np.asarray(sig.op.numpy(sig, pairs[0].copy(), index.value, pairs[1]))

    size = fold((np.abs(values[0]), np.abs(values[2])))
    ones = fold((np.ones_like(values[0]), np.ones_like(values[2])))  # how many are added
    whole = _is_whole(values[0]) and _is_whole(values[2]) and _is_small(size)
    if base.error is None and updates.error is None and whole:
        return _rounded(sig.dtype, result, None)
    error = (2 + np.minimum(ones, 1024) / 4) * SINGLE * size + fold((_errors(base), _errors(updates)))
    return _rounded(sig.dtype, result, np.where(np.isfinite(result), error, 0.0))


def _transform(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Every result of a Fourier transform has its row's rounding: by the row's size, and few passes."""
    (x,) = inputs
    name, attributes = sig.op.name, sig.attributes
    scale = abs(float(attributes[1] if name != "rfft" else attributes[0]))
    axes = {"fft": (attributes[-1], -1), "rfft": (-1,), "irfft": (-2, -1)}[name]
    value = _wide(x.value)
    length = attributes[0] if name == "irfft" else x.value.shape[axes[0]]
    result = _wide(np.asarray(sig.op.numpy(sig, value)))
    epsilon = 2 * _limits(sig.dtype)[0] if sig.dtype.itemsize == 8 else SINGLE
    size = np.sqrt(np.sum(np.square(value), axis=axes, keepdims=True))
    most = np.sum(_errors(x), axis=axes, keepdims=True)
    error = scale * (epsilon * (8 + 4 * math.log2(max(length, 2))) * 2 * size + 2 * most)
    if name == "irfft":
        error = error[..., 0]
    elif name == "rfft":
        error = error[..., None]
    lost = np.where(np.isfinite(result), np.broadcast_to(error, result.shape), 0.0)
    return _rounded(sig.dtype, result, lost)


def _sort(sig: Signature, inputs: list[Bounded]) -> Bounded:
    result = np.asarray(sig.op.numpy(sig, *[each.value for each in inputs]))
    result = result.astype(sig.dtype.numpy, copy=False).reshape(sig.shape)
    if any(each.error is not None and each.error.any() for each in inputs):
        return unknown(result)
    return Bounded(result)


def _opaque(sig: Signature, inputs: list[Bounded]) -> Bounded:
    return unknown(_apply(sig, [_wide(each.value) for each in inputs]))


Rule = Callable[[Signature, list[Bounded]], Bounded]
_KINDS: dict[str, Rule] = {
    "map": _map,
    "cast": _cast,
    "iota": _source,
    "move": _move,
    "concat": _move,
    "gather": _gather,
    "decode": _decode,
    "reduce": _reduce,
    "scan": _scan,
    "contract": _contract,
    "attend": _attend,
    "scatter": _scatter,
    "fft": _transform,
    "sort": _sort,
}
_RULES: dict[str, Rule] = {"where": _choice, "bitcast": _bits}
