"""A node's value by NumPy, and by how much a right kernel may miss it: a running analysis of rounding errors.

In: a node's signature and its inputs as `Bounded`. Out: its own, by the rule of its op, or of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...arrays import Array, np
from ...graph.node import Signature
from ...ops.packed import decoded_rows
from . import fold_bounds
from .rounding import (
    SINGLE,
    Bounded,
    applied,
    distance,
    errors_of,
    exact,
    moved,
    rounded,
    shifted,
    unknown,
    wide,
)

__all__ = ["bounded"]

NEAR_REFERENCE = 2.0**-16  # of a result's largest element: what a user's kernel may be off its reference


def bounded(sig: Signature, inputs: Sequence[Bounded]) -> Bounded:
    """A node's value and bound, from those of its inputs."""
    with np.errstate(all="ignore"):
        return _RULES.get(sig.op.name, _KINDS.get(sig.kind, _opaque))(sig, list(inputs))


# Ops by which integers that are near each other stay so, and those that keep them apart as they are
# unless they differ in a bit that is changed; of all others nothing is known where a number is not.
_NEAR = frozenset(
    [
        *("add", "subtract", "multiply", "negative", "abs", "sign", "maximum", "minimum", "floor_divide"),
        *("clamp_min", "clamp_max"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "right_shift"),
    ]
)
_BITWISE = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"))


def _map(sig: Signature, inputs: list[Bounded]) -> Bounded:
    result = applied(sig, [wide(each.value) for each in inputs])
    error = moved(sig, inputs, result)
    doubtful = [each for each in inputs if each.value.dtype.kind in "iu" and each.error is not None]
    if doubtful and sig.op.name not in _NEAR:
        safe = ~np.logical_or.reduce([np.broadcast_to(each.error != 0, sig.shape) for each in doubtful])
        if sig.op.name in _BITWISE and len(doubtful) == 1:
            safe = safe | _keeps_apart(sig, inputs)
        error = np.where(safe, 0.0 if error is None else error, np.inf)
    if sig.dtype.kind == "f":
        return rounded(sig.dtype, result, error, sig.op.tolerance)
    return Bounded(result, error)


def _keeps_apart(sig: Signature, inputs: list[Bounded]) -> Array:
    """Where both ends of what a number may be stay as far apart as they are: no bit between them is lost."""
    ends = []
    for sign in (1, -1):
        there = [each.value if each.error is None else shifted(each, sign) for each in inputs]
        given = next(at for at, each in enumerate(inputs) if each.error is not None)
        ends.append((there[given].astype(np.float64), applied(sig, there).astype(np.float64)))
    (high, above), (low, below) = ends
    return np.asarray(np.abs(above - below) == high - low)


def _choice(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """where: what is not chosen has no part in it."""
    condition, a, b = inputs
    result = np.broadcast_to(np.where(condition.value, a.value, b.value), sig.shape)
    error: Array | None = None
    if a.error is not None or b.error is not None:
        error = np.where(condition.value, errors_of(a), errors_of(b))
    if condition.error is not None:
        apart = np.where(condition.error, distance(wide(a.value), wide(b.value)), 0)
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
        return rounded(sig.dtype, x.value.astype(np.float64), error)
    result = applied(sig, [wide(x.value)])
    return Bounded(result, moved(sig, inputs, result))


def _halved(sig: Signature, x: Bounded) -> Bounded:
    """To half precision, which every device rounds to: most of what a value may be becomes one number."""
    assert x.error is not None
    result = x.value.astype(sig.dtype.numpy)
    ends = [shifted(x, sign).astype(sig.dtype.numpy) for sign in (1, -1)]
    apart = np.maximum(*(distance(wide(each), wide(result)) for each in ends))
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
    near = [shifted(x, sign).astype(f"f{width}") for sign in (1, -1)]
    middle = np.asarray(sig.op.numpy(sig, x.value.astype(f"f{width}")))
    ends = [np.asarray(sig.op.numpy(sig, each)) for each in near]
    apart = np.maximum(*(distance(each.astype(np.float64), middle.astype(np.float64)) for each in ends))
    lost = (np.signbit(near[0]) != np.signbit(near[1])) | ~np.isfinite(x.error)
    return Bounded(middle, np.where(lost, np.inf, np.where(x.error == 0, 0.0, apart + 1)))


def _source(sig: Signature, inputs: list[Bounded]) -> Bounded:
    return Bounded(np.asarray(sig.op.numpy(sig)).astype(sig.dtype.numpy).reshape(sig.shape))


def _move(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """Bounds go where their values go."""
    result = np.asarray(sig.op.numpy(sig, *[each.value for each in inputs])).reshape(sig.shape)
    if all(each.error is None for each in inputs):
        return Bounded(result)
    return Bounded(result, np.asarray(sig.op.numpy(sig, *map(errors_of, inputs))).reshape(sig.shape))


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
    return rounded(sig.dtype, result, _decoding(result))


def _decoding(weights: Array) -> Array:
    """A scale times a quant less an offset: each is rounded, and they may cancel within a block."""
    most = np.abs(wide(weights)).max(axis=-1, keepdims=True, initial=0)
    return np.broadcast_to(2 * SINGLE * most, weights.shape)


def _times_blocks(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """A product with quantised blocks, as the scheduler makes it."""
    a, words = inputs
    name, shape = sig.attributes
    weights = decoded_rows(words.value, name, shape, slice(0, shape[0]))
    return fold_bounds.contract(sig, [a, Bounded(weights.T, _decoding(weights).T)])


def _sort(sig: Signature, inputs: list[Bounded]) -> Bounded:
    result = np.asarray(sig.op.numpy(sig, *[each.value for each in inputs]))
    result = result.astype(sig.dtype.numpy, copy=False).reshape(sig.shape)
    if any(each.error is not None and each.error.any() for each in inputs):
        return unknown(result)
    return Bounded(result)


def _user_kernel(sig: Signature, inputs: list[Bounded]) -> Bounded:
    """A user's kernel by its reference, which may add up in another order: floats are near it."""
    result = applied(
        sig, [wide(each.value) if each.value.dtype.kind == "V" else each.value for each in inputs]
    )
    if sig.dtype.kind != "f":
        return Bounded(result)
    most = np.max(np.abs(result), where=np.isfinite(result), initial=0)
    return rounded(sig.dtype, result, np.full(sig.shape, NEAR_REFERENCE * most))


def _opaque(sig: Signature, inputs: list[Bounded]) -> Bounded:
    return unknown(applied(sig, [wide(each.value) for each in inputs]))


Rule = Callable[[Signature, list[Bounded]], Bounded]
_KINDS: dict[str, Rule] = {
    "map": _map,
    "cast": _cast,
    "iota": _source,
    "move": _move,
    "concat": _move,
    "gather": _gather,
    "decode": _decode,
    "reduce": fold_bounds.reduce,
    "scan": fold_bounds.scan,
    "contract": fold_bounds.contract,
    "attend": fold_bounds.attend,
    "scatter": fold_bounds.scatter,
    "fft": fold_bounds.transform,
    "sort": _sort,
    "kernel": _user_kernel,
}
_RULES: dict[str, Rule] = {"where": _choice, "bitcast": _bits, "matmul_blocks": _times_blocks}
