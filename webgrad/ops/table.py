"""The primitive ops, one row each: their names, inputs and results, and their NumPy and WGSL.

Documentation, property tests and both backends use these rows; everything else is composed of them.
Adding a map op is adding a row to `ops/maps.py`.
"""

from __future__ import annotations

import math
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
    wide = index if index.dtype == np.uint64 else index.astype(np.int64)
    return np.clip(wide, 0, max(size - 1, 0)).astype(np.int64)


def _scatter(how: str, types: str, *gradient: str) -> Op:
    name = f"scatter_{how}"

    def scatter(sig: Signature, base: Array, index: Array, updates: Array) -> Array:
        result = base.copy()
        rows = _clamped(index, base.shape[0])
        if how == "set":
            result[rows] = updates  # of several updates of one row the last stays
        else:
            {"add": np.add, "max": np.maximum}[how].at(result, rows, updates)
        return result

    rule = shapes.scattered(name, types)
    return Op(name, "scatter", 3, scatter, types=types, infer=rule, gradient=gradient)


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


def _move(name: str, reference: Any, infer: Any, *gradient: str, form: Any = None) -> Op:
    return Op(name, "move", len(gradient), reference, infer=infer, gradient=gradient, form=form)


def _padded_by(attributes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([before + after for before, after in attributes[0]])


def _cut_to(attributes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([(stop - start, step) for start, stop, step in attributes[0]])


# Folding: `wgsl` names the map op that folds two values, of which `identity` changes none.


def _reduce(name: str, wgsl: str, types: str, identity: Any, gradient: str, **more: Any) -> Op:
    def reduce(sig: Signature, x: Array) -> Any:
        start = {"initial": identity(x.dtype)} if name in ("max", "min") else {"dtype": _sums(name, x)}
        return getattr(np, name)(x, axis=sig.attributes[0], **start)

    rule = shapes.reduced(name, types)
    return Op(
        name, "reduce", 1, reduce, wgsl, types, infer=rule, identity=identity, gradient=(gradient,), **more
    )


def _scan(name: str, wgsl: str, types: str, identity: Any, gradient: str, **more: Any) -> Op:
    def scan(sig: Signature, x: Array, *totals: Array) -> Any:  # totals of chunks say nothing new
        return getattr(np, wgsl).accumulate(x, axis=sig.attributes[0], dtype=_sums(name, x))

    rule = shapes.scanned(name, types)
    return Op(name, "scan", 1, scan, wgsl, types, infer=rule, identity=identity, gradient=(gradient,), **more)


def _sums(name: str, x: Array) -> Any:
    """The dtype of totals: NumPy adds up one after another, except along the last axis."""
    return np.float64 if name in ("sum", "cumulative_sum") and x.dtype == np.float32 else x.dtype


def _zero(dtype: Any) -> int:
    return 0


def _one(dtype: Any) -> int:
    return 1


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
    _move("reshape", lambda sig, x: x.reshape(sig.shape), shapes.reshaped, "reshaped(g, a.shape)"),
    _move(
        "permute",
        lambda sig, x: x.transpose(sig.attributes[0]),
        shapes.permuted,
        "permuted_back(g, *attributes)",
    ),
    _move("expand", lambda sig, x: np.broadcast_to(x, sig.shape), shapes.expanded, "summed_to(g, a.shape)"),
    _move(
        "pad",
        _pad,
        shapes.padded,
        "unpadded(g, *attributes)",
        "padding_of(g, *attributes)",
        form=_padded_by,
    ),
    _move("slice", _slice, shapes.sliced, "unsliced(g, a.shape, *attributes)", form=_cut_to),
    _move("flip", lambda sig, x: np.flip(x, sig.attributes[0]), shapes.same, "flipped(g, *attributes)"),
    _move("window", _window, shapes.windowed, "unwindowed(g, a.shape, *attributes)"),
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
    _scatter("set", "biuf", "kept_rows(g, b)", "0", "last_rows(g, b)"),
    _scatter("add", "iuf", "g", "0", "rows_of(g, b)"),
    _scatter("max", "biuf", "largest_base(g, y, a, b, c)", "0", "largest_update(g, y, a, b, c)"),
    Op(
        "concat",
        "concat",
        -1,
        lambda sig, *xs: np.concatenate(xs, sig.attributes[0]),
        infer=shapes.concat,
        gradient=("part_of(g, xs, *attributes, at)",),
    ),
    # Reductions; `wgsl` names the map op that combines two values
    _reduce("sum", "add", "iuf", _zero, "unfolded(g, a.shape, *attributes)", domain=(-10, 10)),
    _reduce("prod", "multiply", "iuf", _one, "others_product(g, a, *attributes)", domain=(0.5, 1.5)),
    _reduce("max", "maximum", "biuf", lowest, "extreme(g, y, a, *attributes)"),
    _reduce("min", "minimum", "biuf", highest, "extreme(g, y, a, *attributes)"),
    _scan("cumulative_sum", "add", "iuf", _zero, "sum_to_come(g, *attributes)"),
    _scan(
        "cumulative_prod", "multiply", "iuf", _one, "running_product(g, y, a, *attributes)", domain=(0.5, 1.5)
    ),
    _scan("cumulative_max", "maximum", "biuf", lowest, "running_extreme(g, y, a, *attributes)"),
    _scan("cumulative_min", "minimum", "biuf", highest, "running_extreme(g, y, a, *attributes)"),
    Op(
        "matmul",
        "contract",
        2,
        lambda sig, a, b: a @ b,
        types="iuf",
        infer=shapes.contract,
        domain=(-2, 2),
        gradient=("first_factor(g, a, b)", "second_factor(g, a, b)"),
    ),
    Op(
        "attention",
        "attend",
        -1,
        _attention,
        types="f",
        infer=shapes.attended,
        domain=(-2, 2),
        cost=24,
        gradient="attended(g, attributes, *xs)",
    ),
    Op(
        "sort_order",
        "sort",
        1,
        _sort,
        types="u",
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
