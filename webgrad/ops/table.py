"""The primitive ops, one row each: their names, inputs and results, and their NumPy and WGSL.

Documentation, property tests and both backends use these rows; everything else is composed of them.
Adding a map op is adding a row to `ops/maps.py`.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

from ..arrays import Array, np
from ..dtypes import as_dtype
from ..graph.node import Signature
from ..graph.op import LEAF, SCALAR, Op
from . import shapes
from .maps import MAPS
from .ordered import ORDERED
from .packed import PACKED
from .transforms import TRANSFORMS

__all__ = ["TABLE"]


# Movement, index and scan ops, as NumPy does them: from the result's signature and the arrays.


def _pad(sig: Signature, x: Array, value: Array) -> Any:
    return np.pad(x, sig.attributes[0], constant_values=value.item())


def _slice(sig: Signature, x: Array) -> Array:
    return x[tuple(slice(*each) for each in sig.attributes[0])]


def _window(sig: Signature, x: Array) -> Array:
    axis, size, stride, dilation = sig.attributes
    span = np.lib.stride_tricks.sliding_window_view(x, dilation * (size - 1) + 1, axis)
    return span[(*[slice(None)] * axis, slice(None, None, stride))][..., ::dilation]


def _take(sig: Signature, x: Array, index: Array) -> Array:
    size = x.shape[sig.attributes[0]]
    return np.take(x, _clamped(index, size), axis=sig.attributes[0])


def _take_along(sig: Signature, x: Array, index: Array) -> Array:
    axis = sig.attributes[0]
    full = (*sig.shape[:axis], x.shape[axis], *sig.shape[axis + 1 :])
    return np.take_along_axis(
        np.broadcast_to(x, full), np.broadcast_to(_clamped(index, x.shape[axis]), sig.shape), axis
    )


def _clamped(index: Array, size: int) -> Array:
    """Out-of-range indices are clamped, as on a GPU: a check would have to wait for them."""
    return np.clip(index.astype(np.int64), 0, max(size - 1, 0))


def _scatter(how: str) -> Any:
    def scatter(sig: Signature, base: Array, index: Array, updates: Array) -> Array:
        result = base.copy()
        rows = _clamped(index, base.shape[0])
        if how == "set":
            result[rows] = updates  # of several updates of one row the last stays
        else:
            {"add": np.add, "max": np.maximum}[how].at(result, rows, updates)
        return result

    return scatter


def _sort(sig: Signature, keys: Array) -> Array:
    return np.argsort(keys, axis=-1, kind="stable")


def _attention(
    sig: Signature, q: Array, k: Array, v: Array, scale: Array, length: Array, *mask: Array
) -> Any:
    """Attention by its definition, with every score in memory. Queries that see no key give 0."""
    causal, window, from_end, _ = sig.attributes
    queries, keys = q.shape[2], k.shape[2]
    count = min(max(int(length), 0), keys)
    k, v = (np.repeat(each, q.shape[1] // each.shape[1], axis=1) for each in (k, v))
    scores = q @ np.swapaxes(k, 2, 3) * scale
    if mask:
        scores = scores + mask[0]
    key, place = np.arange(keys), np.arange(queries)[:, None] + (count - queries if from_end else 0)
    seen = np.broadcast_to(key < count, (queries, keys))
    if causal:
        seen = seen & (key <= place) & (key > place - (window or keys + queries))
    scores = np.where(seen, scores, -np.inf)
    largest = scores.max(axis=3, keepdims=True, initial=np.finfo(scores.dtype).min)
    weights = np.where(seen, np.exp(scores - largest), 0)
    return (
        weights @ np.where(key[:, None] < count, v, 0) / np.maximum(weights.sum(axis=3, keepdims=True), 0.5)
    )


def _reduce(fold: str) -> Any:
    def reduce(sig: Signature, x: Array) -> Any:
        start = _LEAST.get(fold)
        more = {"initial": start(x.dtype)} if start else {"dtype": x.dtype}
        return getattr(np, fold)(x, axis=sig.attributes[0], **more)

    return reduce


def _scan(fold: str) -> Any:
    def scan(sig: Signature, x: Array, *totals: Array) -> Any:
        return attrgetter(fold)(np)(x, axis=sig.attributes[0])  # the totals of chunks are not needed

    return scan


def lowest(dtype: Any) -> Any:
    """The value of a dtype, ours or NumPy's, below or equal to all others: the start value of a maximum."""
    if dtype.kind == "b":
        return False
    return as_dtype(dtype).limits[0] if dtype.kind in "iu" else -math.inf


def highest(dtype: Any) -> Any:
    """The value above or equal to all others: the start value of a minimum."""
    if dtype.kind == "b":
        return True
    return as_dtype(dtype).limits[1] if dtype.kind in "iu" else math.inf


def _convert(sig: Signature, x: Array) -> Array:
    """As kernels convert: integers wrap; floats are clamped to the integer's range, NaN becomes 0."""
    dtype = sig.dtype.numpy
    if x.dtype.kind not in "fV" or dtype.kind not in "iu":
        return x.astype(dtype)
    limits = np.iinfo(dtype)
    wide = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = np.clip(wide, limits.min, limits.max)
    result = np.where(wide >= limits.max, limits.min, inside).astype(dtype)  # float(max) may be max + 1
    return np.where(wide >= limits.max, dtype.type(limits.max), result)


def _bits_as(sig: Signature, x: Array) -> Any:
    return np.ascontiguousarray(x).view(sig.dtype.numpy).reshape(sig.shape)


def _converted(sigs: tuple[Signature, ...], attributes: tuple[Any, ...]) -> Any:
    return sigs[0].shape, attributes[0]


_LEAST = {"max": lowest, "min": highest}

ROWS = (
    LEAF,
    SCALAR,
    Op(
        "iota",
        "iota",
        0,
        lambda sig: np.arange(sig.shape[0]),
        doc="The index along the only axis.",
        gradient=(),
    ),
    Op(
        "cast",
        "cast",
        1,
        _convert,
        infer=_converted,
        doc="To attributes = (dtype,), by value.",
        gradient=("g.astype(a.dtype)",),
    ),
    Op(
        "bitcast",
        "cast",
        1,
        _bits_as,
        infer=_converted,
        doc="To a dtype of the same width, by bits.",
        gradient=(),
    ),
    # Complex numbers
    Op(
        "as_real",
        "view",
        1,
        _bits_as,
        types="c",
        infer=shapes.parted,
        doc="Complex numbers as pairs of floats, along a new last axis.",
        gradient=("as_complex(g)",),
    ),
    Op(
        "as_complex",
        "view",
        1,
        _bits_as,
        types="f",
        infer=shapes.paired,
        doc="Pairs of floats along the last axis as complex numbers.",
        gradient=("as_real(g)",),
    ),
    # Movement
    Op(
        "reshape",
        "move",
        1,
        lambda sig, x: x.reshape(sig.shape),
        infer=shapes.reshaped,
        gradient=("reshaped(g, a.shape)",),
    ),
    Op(
        "permute",
        "move",
        1,
        lambda sig, x: x.transpose(sig.attributes[0]),
        infer=shapes.permuted,
        gradient=("permuted_back(g, *attributes)",),
    ),
    Op(
        "expand",
        "move",
        1,
        lambda sig, x: np.broadcast_to(x, sig.shape),
        infer=shapes.expanded,
        gradient=("summed_to(g, a.shape)",),
    ),
    Op(
        "pad",
        "move",
        2,
        _pad,
        infer=shapes.padded,
        gradient=("unpadded(g, *attributes)", "padding_of(g, *attributes)"),
    ),
    Op("slice", "move", 1, _slice, infer=shapes.sliced, gradient=("unsliced(g, a.shape, *attributes)",)),
    Op(
        "flip",
        "move",
        1,
        lambda sig, x: np.flip(x, sig.attributes[0]),
        infer=shapes.same,
        gradient=("flipped(g, *attributes)",),
    ),
    Op(
        "window", "move", 1, _window, infer=shapes.windowed, gradient=("unwindowed(g, a.shape, *attributes)",)
    ),
    # Computed indices
    Op("take", "gather", 2, _take, infer=shapes.taken, gradient=("untaken(g, a.shape, b, *attributes)", "0")),
    Op(
        "take_along",
        "gather",
        2,
        _take_along,
        infer=shapes.taken_along,
        gradient=("untaken_along_broadcast(g, a.shape, b, *attributes)", "0"),
    ),
    Op(
        "scatter_set",
        "scatter",
        3,
        _scatter("set"),
        infer=shapes.scattered("scatter_set", "biuf"),
        gradient=("kept_rows(g, b)", "0", "last_rows(g, b)"),
    ),
    Op(
        "scatter_add",
        "scatter",
        3,
        _scatter("add"),
        types="iuf",
        infer=shapes.scattered("scatter_add", "iuf"),
        gradient=("g", "0", "rows_of(g, b)"),
    ),
    Op(
        "scatter_max",
        "scatter",
        3,
        _scatter("max"),
        infer=shapes.scattered("scatter_max", "biuf"),
        gradient=("largest_base(g, y, a, b, c)", "0", "largest_update(g, y, a, b, c)"),
    ),
    Op(
        "concat",
        "concat",
        -1,
        lambda sig, *xs: np.concatenate(xs, sig.attributes[0]),
        infer=shapes.concat,
        gradient=("part_of(g, xs, *attributes, at)",),
    ),
    # Reductions; `wgsl` names the map op that combines two values
    Op(
        "sum",
        "reduce",
        1,
        _reduce("sum"),
        "add",
        "iuf",
        infer=shapes.reduced("sum", "iuf"),
        identity=lambda dtype: 0,
        domain=(-10, 10),
        gradient=("unfolded(g, a.shape, *attributes)",),
    ),
    Op(
        "prod",
        "reduce",
        1,
        _reduce("prod"),
        "multiply",
        "iuf",
        infer=shapes.reduced("prod", "iuf"),
        identity=lambda dtype: 1,
        domain=(0.5, 1.5),
        gradient=("others_product(g, a, *attributes)",),
    ),
    Op(
        "max",
        "reduce",
        1,
        _reduce("max"),
        "maximum",
        infer=shapes.reduced("max", "biuf"),
        identity=lowest,
        gradient=("extreme(g, y, a, *attributes)",),
    ),
    Op(
        "min",
        "reduce",
        1,
        _reduce("min"),
        "minimum",
        infer=shapes.reduced("min", "biuf"),
        identity=highest,
        gradient=("extreme(g, y, a, *attributes)",),
    ),
    Op(
        "cumulative_sum",
        "scan",
        1,
        _scan("cumsum"),
        "add",
        "iuf",
        infer=shapes.scanned("cumulative_sum", "iuf"),
        identity=lambda dtype: 0,
        gradient=("sum_to_come(g, *attributes)",),
    ),
    Op(
        "cumulative_prod",
        "scan",
        1,
        _scan("cumprod"),
        "multiply",
        "iuf",
        infer=shapes.scanned("cumulative_prod", "iuf"),
        identity=lambda dtype: 1,
        domain=(0.5, 1.5),
        gradient=("running_product(g, y, a, *attributes)",),
    ),
    Op(
        "cumulative_max",
        "scan",
        1,
        _scan("maximum.accumulate"),
        "maximum",
        infer=shapes.scanned("cumulative_max", "biuf"),
        identity=lowest,
        gradient=("running_extreme(g, y, a, *attributes)",),
    ),
    Op(
        "cumulative_min",
        "scan",
        1,
        _scan("minimum.accumulate"),
        "minimum",
        infer=shapes.scanned("cumulative_min", "biuf"),
        identity=highest,
        gradient=("running_extreme(g, y, a, *attributes)",),
    ),
    Op(
        "matmul",
        "contract",
        2,
        lambda sig, a, b: a @ b,
        "",
        "iuf",
        infer=shapes.contract,
        domain=(-2, 2),
        gradient=("first_factor(g, a, b)", "second_factor(g, a, b)"),
    ),
    Op(
        "attention",
        "attend",
        -1,
        _attention,
        "",
        "f",
        infer=shapes.attended,
        domain=(-2, 2),
        cost=24,
        gradient="attended(g, y, attributes, *xs)",
    ),
    Op(
        "sort_order",
        "sort",
        1,
        _sort,
        "",
        "u",
        infer=shapes.sorting,
        doc="Stable, along the last axis.",
        gradient=(),
    ),
    *ORDERED,
    *PACKED,
    *TRANSFORMS,
    *MAPS,
)

TABLE: dict[str, Op] = {row.name: row for row in ROWS}
