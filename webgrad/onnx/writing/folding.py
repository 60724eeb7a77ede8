"""Rows of primitives that fold elements: reductions, scans, products, attention, transforms, blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import webgrad as wg

from ...arrays import np
from .builder import Builder, Value
from .elementwise import larger, like, smaller
from .movement import inside, places, reshaped, sortable, transposed
from .sizes import Size
from .table import Site, primitive

_REDUCE = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}


@primitive("sum prod max min")
def reduce(site: Site) -> Value:
    b, (axes,), (x,) = site.b, site.attributes, site.inputs
    if not axes:
        return x
    if site.node.op in ("max", "min") and 0 in [site.sources[0].shape[axis] for axis in axes]:
        return b.op("Expand", b.constant(_start(site), site.dtype), b.shape(site.shape))
    found = b.op(_REDUCE[site.node.op], x, b.constant(axes), keepdims=0)
    return _with_nan(b, x, axes, found) if site.node.op in ("max", "min") and "float" in x.dtype else found


def _with_nan(b: Builder, x: Value, axes: Any, found: Value) -> Value:
    """NaN where one was folded: onnxruntime's ReduceMax and ReduceMin look for it no more than C does."""
    flags = b.cast(b.op("IsNaN", x), "int32")
    has_nan = b.cast(b.op("ReduceMax", flags, b.constant(axes), keepdims=0), "bool")
    return b.op("Where", has_nan, like(b, math.nan, x), found)


def _start(site: Site) -> Any:
    """What no elements give, and what changes none."""
    name, dtype = site.node.op.removeprefix("cumulative_"), site.dtype
    if name in ("sum", "prod"):
        return int(name == "prod")
    is_low = name == "max"
    if dtype == "bool":
        return not is_low
    if "float" in dtype:
        return -math.inf if is_low else math.inf
    limits = wg.iinfo(site.node.dtype)
    return limits.min if is_low else limits.max


# Scans


@primitive("cumulative_sum")
def cumulative_sum(site: Site) -> Value:
    return site.b.op("CumSum", site.inputs[0], site.b.constant(site.attributes[0]))


_FOLD: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "cumulative_prod": lambda b, x, y: b.op("Mul", x, y),
    "cumulative_max": larger,
    "cumulative_min": smaller,
}


@primitive("cumulative_prod cumulative_max cumulative_min")
def scan(site: Site) -> Value:
    """Each element with those 1, then 2, then 4 … places before it."""
    b, axis, shape = site.b, site.attributes[0], site.shape
    length = shape[axis]
    if not isinstance(length, int):
        site.refuse("the length of the scan is open, and ONNX has no operator for it")
    found = b.cast(site.inputs[0], "int32") if site.dtype == "bool" else site.inputs[0]
    start = b.constant(_start(site), found.dtype)
    reach = 1
    while reach < length:
        widths = [0] * (2 * len(shape))
        widths[axis] = reach
        padded = b.op("Pad", found, b.constant(widths), start)
        before = b.op("Slice", padded, b.constant([0]), b.constant([length]), b.constant([axis]))
        found = _FOLD[site.node.op](b, before, found)
        reach *= 2
    return b.cast(found, site.dtype)


# Products


@primitive("matmul")
def matmul(site: Site) -> Value:
    return site.b.op("MatMul", *site.inputs)


@primitive("attention")
def attention(site: Site) -> Value:
    """softmax(q kᵀ scale + mask) v; where a query sees no key its weights are 0."""
    b, (causal, reach, from_end, _) = site.b, site.attributes
    q, k, v, scale, count = site.inputs[:5]
    queries, keys = site.sources[0].shape[2], site.sources[1].shape[2]
    k, v = (_repeated(site, at) for at in (1, 2))
    wide = "float64" if q.dtype == "float64" else "float32"
    q, k, v = (b.cast(each, wide) for each in (q, k, v))
    scores = b.op("MatMul", b.op("Mul", q, scale), transposed(b, k, (0, 1, 3, 2)))
    if len(site.inputs) > 5:
        scores = b.op("Add", scores, site.inputs[5])
    is_whole = site.number(4) == keys
    seen = None if is_whole else b.op("Less", places(b, keys), b.cast(count, "int64"))
    if causal:
        seen = _both(b, seen, _seen_before(site, queries, keys, reach, from_end))
    if seen is not None:
        scores = b.op("Where", seen, scores, like(b, -math.inf, scores))
        v = v if is_whole else _without_hidden(site, v, count)
    weights = b.op("Softmax", scores, axis=-1)
    if seen is not None or len(site.inputs) > 5:
        largest = b.op("ReduceMax", scores, b.constant([-1]), keepdims=1)
        is_blind = b.op("Equal", largest, like(b, -math.inf, scores))
        weights = b.op("Where", is_blind, like(b, 0, scores), weights)
    return b.cast(b.op("MatMul", weights, v), site.dtype)


def _repeated(site: Site, place: int) -> Value:
    """Keys or values with as many heads as the queries: each shared by several."""
    b, x = site.b, site.inputs[place]
    batch, heads, *rest = site.sources[place].shape
    wanted = site.sources[0].shape[1]  # heads are of the weights: their number is never open
    if heads == wanted:
        return x
    apart = reshaped(b, x, (batch, heads, 1, *rest))
    every = b.op("Expand", apart, b.shape((batch, heads, wanted // heads, *rest)))
    return reshaped(b, every, (batch, wanted, *rest))


def _seen_before(site: Site, queries: int | Size, keys: int | Size, reach: int, from_end: bool) -> Value:
    """Which keys a query sees: up to its own place, and the last so many."""
    b = site.b
    place = reshaped(b, places(b, queries), (queries, 1))
    if from_end:
        first = b.op("Sub", b.cast(site.inputs[4], "int64"), b.number(queries))
        place = b.op("Add", place, first)
    key = places(b, keys)
    seen = b.op("LessOrEqual", key, place)
    if reach:
        seen = b.op("And", seen, b.op("Greater", key, b.op("Sub", place, b.constant(reach))))
    return seen


def _both(b: Builder, first: Value | None, second: Value) -> Value:
    return second if first is None else b.op("And", first, second)


def _without_hidden(site: Site, v: Value, count: Value) -> Value:
    """Values beyond the length as 0: what lies there may be NaN."""
    b, keys = site.b, site.sources[1].shape[2]
    place = reshaped(b, places(b, keys), (keys, 1))
    return b.op("Where", b.op("Less", place, b.cast(count, "int64")), v, like(b, 0, v))


# Fourier transforms: pairs along the last axis


def _transformed(site: Site, x: Value, axis: int, inverse: bool, scale: float, length: Any) -> Value:
    """DFT, whose inverse is divided by the length, with another scale."""
    b = site.b
    if not isinstance(length, int):
        site.refuse("the length of the transform is open")
    factor = scale * length if inverse else scale
    if b.opset >= 20:
        found = b.op("DFT", x, None, b.constant(axis), inverse=int(inverse))
    else:
        found = b.op("DFT", x, axis=axis, inverse=int(inverse))
    return found if factor == 1 else b.op("Mul", found, like(b, factor, found))


@primitive("fft")
def fft(site: Site) -> Value:
    inverse, scale, axis = site.attributes
    return _transformed(site, site.inputs[0], axis, bool(inverse), scale, site.shape[axis])


@primitive("rfft")
def rfft(site: Site) -> Value:
    b, shape = site.b, site.sources[0].shape
    pairs = b.op("Concat", *_with_zeros(b, site.inputs[0], (*shape, 1)), axis=-1)
    found = _transformed(site, pairs, len(shape) - 1, False, site.attributes[0], shape[-1])
    count = site.shape[-2]
    return b.op("Slice", found, b.constant([0]), b.shape([count]), b.constant([len(shape) - 1]))


def _with_zeros(b: Builder, x: Value, shape: Any) -> tuple[Value, Value]:
    real = reshaped(b, x, shape)
    return real, b.op("Mul", real, like(b, 0, real))


@primitive("irfft")
def irfft(site: Site) -> Value:
    """The other half is this one backwards, conjugated; of the ends' imaginary parts nothing is left."""
    b, (length, scale), (x,) = site.b, site.attributes, site.inputs
    axis = len(site.shape) - 1
    last = length - length // 2 - 1  # of the first half these have a partner
    bounds = [b.constant([each]) for each in (last, 0, axis, -1)]
    partners = b.op("Slice", x, *bounds)
    partners = b.op("Mul", partners, b.constant([1, -1], x.dtype))
    whole = b.op("Concat", x, partners, axis=axis) if last else x
    found = _transformed(site, whole, axis, True, scale, length)
    return b.op("Gather", found, b.constant(0), axis=-1)


# Quantised weights: written as floats, which every runtime reads


@primitive("decode")
def decode(site: Site) -> Value:
    return _decoded(site)


@primitive("decode_rows")
def decode_rows(site: Site) -> Value:
    size = site.attributes[1][0]
    return site.b.raw("Gather", [_decoded(site), inside(site, 1, size)], site.dtype)


@primitive("matmul_blocks")
def matmul_blocks(site: Site) -> Value:
    return site.b.op("MatMul", site.inputs[0], transposed(site.b, _decoded(site), (1, 0)))


def _decoded(site: Site) -> Value:
    if site.node.value is None:
        site.refuse("its quantised blocks are computed, and ONNX has none of this format")
    name = next((each.name for each in site.sources if each.op == "tensor" and each.name), "weight")
    return site.b.weight(name, np.ascontiguousarray(site.node.value.numpy()))


@primitive("sort_order")
def sort_order(site: Site) -> Value:
    b, x = site.b, sortable(site.b, site.inputs[0])
    return b.cast(b.op("TopK", x, b.shape([site.shape[-1]]), wanted=1, axis=-1, largest=0), site.dtype)


@primitive("kernel")
def kernel(site: Site) -> Value:
    site.refuse("it is a kernel that you wrote, which no other runtime has: use webgrad's functions there")
