"""The primitive ops, one row each: what they are called, take and give, and how NumPy and WGSL say them.

Documentation, property tests and both backends are made from these rows; everything else is composed of them.
Adding a map op is adding a row to `ops/maps.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal

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
    side = x.shape[sig.attributes[0]]
    return np.take(x, _inside(index, side), axis=sig.attributes[0])


def _take_along(sig: Signature, x: Array, index: Array) -> Array:
    axis = sig.attributes[0]
    full = (*sig.shape[:axis], x.shape[axis], *sig.shape[axis + 1 :])
    return np.take_along_axis(
        np.broadcast_to(x, full), np.broadcast_to(_inside(index, x.shape[axis]), sig.shape), axis
    )


def _inside(index: Array, side: int) -> Array:
    """Out-of-range indices are clamped, as on a GPU: a check would have to wait for them."""
    return np.clip(index.astype(np.int64), 0, max(side - 1, 0))


def _scatter(how: str) -> Any:
    def scatter(sig: Signature, base: Array, index: Array, updates: Array) -> Array:
        result = base.copy()
        rows = _inside(index, base.shape[0])
        if how == "set":
            result[rows] = updates  # the last of several to one row stays
        else:
            {"add": np.add, "max": np.maximum}[how].at(result, rows, updates)
        return result

    return scatter


def _sort(sig: Signature, keys: Array) -> Array:
    return np.argsort(keys, axis=-1, kind="stable")


def _attention(
    sig: Signature, q: Array, k: Array, v: Array, scale: Array, length: Array, *mask: Array
) -> Any:
    """With every score in memory, as it is defined. Queries that see no key give 0."""
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
        return attrgetter(fold)(np)(x, axis=sig.attributes[0])  # totals of chunks say nothing new

    return scan


def lowest(dtype: Any) -> Any:
    """The value of a dtype, ours or NumPy's, that is never larger than another: where a maximum starts."""
    if dtype.kind == "b":
        return False
    return as_dtype(dtype).limits[0] if dtype.kind in "iu" else -math.inf


def highest(dtype: Any) -> Any:
    """The value that is never smaller than another: where a minimum starts."""
    if dtype.kind == "b":
        return True
    return as_dtype(dtype).limits[1] if dtype.kind in "iu" else math.inf


def _convert(sig: Signature, x: Array) -> Array:
    """As kernels convert: integers wrap; floats out of an integer's range stop at its ends, NaN becomes 0."""
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
_FOLDS: dict[Any, tuple[Any, Any]] = {
    "reduce": (_reduce, shapes.reduced),
    "scan": (_scan, shapes.scanned),
}


def _zero(dtype: Any) -> int:
    return 0


def _one(dtype: Any) -> int:
    return 1


def _fold(
    kind: Literal["reduce", "scan"],
    name: str,
    by: str,
    identity: Callable[[Any], Any],
    gradient: str,
    types: str = "biuf",
    numpy: str = "",
    **more: Any,
) -> Op:
    """Axes folded by a map op, or the running totals along one; `numpy` is what NumPy calls it."""
    reference, rule = _FOLDS[kind]
    infer = rule(name, types)
    return Op(
        name,
        kind,
        1,
        reference(numpy or name),
        by,
        types,
        infer=infer,
        identity=identity,
        gradient=(gradient,),
        **more,
    )


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
    # Folds: the kind, the name, and the map op that folds two values
    _fold("reduce", "sum", "add", _zero, "unfolded(g, a.shape, *attributes)", "iuf", domain=(-10, 10)),
    _fold("reduce", "prod", "multiply", _one, "others_product(g, a, *attributes)", "iuf", domain=(0.5, 1.5)),
    _fold("reduce", "max", "maximum", lowest, "extreme(g, y, a, *attributes)"),
    _fold("reduce", "min", "minimum", highest, "extreme(g, y, a, *attributes)"),
    _fold("scan", "cumulative_sum", "add", _zero, "sum_to_come(g, *attributes)", "iuf", "cumsum"),
    _fold(
        *("scan", "cumulative_prod", "multiply", _one, "running_product(g, y, a, *attributes)"),
        *("iuf", "cumprod"),
        domain=(0.5, 1.5),
    ),
    _fold(
        *("scan", "cumulative_max", "maximum", lowest, "running_extreme(g, y, a, *attributes)"),
        numpy="maximum.accumulate",
    ),
    _fold(
        *("scan", "cumulative_min", "minimum", highest, "running_extreme(g, y, a, *attributes)"),
        numpy="minimum.accumulate",
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
