"""Sorts and searches of elements, of any dtype, and counts between edges become what GPUs have: sorts of
unsigned keys, gathers and scatters.

In: a `Snapshot`, rewritten in place. Out: none of the rows of `ops/ordered.py` is left. Keys have the
elements' width and order: -0 and +0 are equal, and NaN is the largest. Where few indices are wanted, only
parts are sorted. Node ids stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import dtypes
from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.ordered import sorts_whole
from ..ops.table import TABLE
from .legalise import cast

_INFINITIES = {
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float32": 0x7F800000,
    "float64": 0x7FF0000000000000,
}


def sort_by_keys(graph: Snapshot) -> None:
    """Rewrite the rows of order in a graph, in place."""
    for number in graph.order():
        rewrite = _REWRITINGS.get(graph.sigs[number].op.name)
        if rewrite is not None:
            before = len(graph)
            graph.replace(number, rewrite(graph, number))
            origin = graph.origins.get(number, number)
            graph.origins.update(dict.fromkeys(range(before, len(graph)), origin))


def _sort_places(graph: Snapshot, number: int) -> int:
    descending, count = graph.sigs[number].attributes
    keys = _keys(graph, *graph.inputs[number])
    if descending:
        keys = graph.make(TABLE["bitwise_invert"], (keys,))
    return _first_places(graph, keys, count)


def _search_places(graph: Snapshot, number: int) -> int:
    line, x = graph.inputs[number]
    (side,) = graph.sigs[number].attributes
    return _searched(graph, line, x, side)


def _bin_places(graph: Snapshot, number: int) -> int:
    (even,) = graph.sigs[number].attributes
    return (_evenly if even else _between)(graph, *graph.inputs[number])


def _counts_between(graph: Snapshot, number: int) -> int:
    """Ones added up in the bins, of which one more is for what is outside."""
    sig = graph.sigs[number]
    elements = graph.sigs[graph.inputs[number][0]].size
    zero, one = (graph.number(each, dtypes.int32, sig.device) for each in (0, 1))
    if not elements:
        return graph.make(TABLE["expand"], (zero,), (sig.shape,))
    start = graph.make(TABLE["expand"], (zero,), ((sig.size + 1, 1),))
    ones = graph.make(TABLE["expand"], (one,), ((elements, 1),))
    counts = graph.make(TABLE["scatter_add"], (start, _bin_places(graph, number), ones))
    counts = graph.make(TABLE["reshape"], (counts,), ((sig.size + 1,),))
    return graph.make(TABLE["slice"], (counts,), (((0, sig.size, 1),),))


_REWRITINGS: dict[str, Callable[[Snapshot, int], int]] = {
    "sort_places": _sort_places,
    "search_places": _search_places,
    "bin_places": _bin_places,
    "counts_between": _counts_between,
}


def _number_like(graph: Snapshot, value: float, x: int) -> int:
    return graph.number(value, graph.sigs[x].dtype, graph.sigs[x].device)


def _with_number(graph: Snapshot, op: str, x: int, value: float) -> int:
    """A map op of a value and a number of its dtype."""
    return graph.make(TABLE[op], (x, _number_like(graph, value, x)))


# Searches


def _searched(graph: Snapshot, line: int, x: int, side: str) -> int:
    """How many keys are less than each wanted one (or not more): a bit of the count a round."""
    keys, wanted = _keys(graph, line), _keys(graph, x)
    compare = TABLE["less" if side == "left" else "less_equal"]
    length = graph.sigs[keys].shape[0]
    zero = graph.number(0, dtypes.int32, graph.sigs[x].device)
    found = graph.make(TABLE["expand"], (zero,), (graph.sigs[x].shape,))
    for bit in reversed(range(length.bit_length())):  # the highest first
        step = 1 << bit
        key = graph.make(TABLE["take"], (keys, _with_number(graph, "add", found, step - 1)), (0,))
        # take clamps what is outside, so that the last key is looked at instead
        before = graph.make(compare, (key, wanted))
        inside = _with_number(graph, "less_equal", found, length - step)
        both = graph.make(TABLE["logical_and"], (before, inside))
        found = graph.make(TABLE["where"], (both, _with_number(graph, "add", found, step), found))
    return found


def _between(graph: Snapshot, x: int, edges: int) -> int:
    """Which bin elements are in; what is in none has the number after the last."""
    bins = graph.sigs[edges].size - 1
    found = _with_number(graph, "subtract", _searched(graph, edges, x, "right"), 1)
    at_the_end = graph.make(TABLE["equal"], (x, _element(graph, edges, bins)))
    found = graph.make(TABLE["where"], (at_the_end, _number_like(graph, bins - 1, found), found))
    before = _with_number(graph, "less", found, 0)
    return graph.make(TABLE["where"], (before, _number_like(graph, bins, found), found))


def _evenly(graph: Snapshot, x: int, edges: int) -> int:
    """The same by a division, which may be one bin off, so that the edges are asked too."""
    bins = graph.sigs[edges].size - 1
    low, high = _element(graph, edges, 0), _element(graph, edges, bins)
    width = graph.make(TABLE["subtract"], (high, low))
    share = graph.make(TABLE["divide"], (_number_like(graph, float(bins), x), width))
    offset = graph.make(TABLE["subtract"], (x, low))
    found = graph.make(TABLE["floor"], (graph.make(TABLE["multiply"], (offset, share)),))
    found = _with_number(graph, "clamp_max", _with_number(graph, "clamp_min", found, 0.0), bins - 1.0)
    found = cast(graph, found, dtypes.int32)
    below = graph.make(TABLE["less"], (x, graph.make(TABLE["take"], (edges, found), (0,))))
    found = graph.make(TABLE["subtract"], (found, cast(graph, below, dtypes.int32)))
    end = graph.make(TABLE["take"], (edges, _with_number(graph, "add", found, 1)), (0,))
    beyond = graph.make(TABLE["greater_equal"], (x, end))
    beyond = graph.make(TABLE["logical_and"], (beyond, _with_number(graph, "less", found, bins - 1)))
    found = graph.make(TABLE["add"], (found, cast(graph, beyond, dtypes.int32)))
    inside = graph.make(
        TABLE["logical_and"],
        (graph.make(TABLE["greater_equal"], (x, low)), graph.make(TABLE["less_equal"], (x, high))),
    )
    return graph.make(TABLE["where"], (inside, found, _number_like(graph, bins, found)))


def _element(graph: Snapshot, line: int, at: int) -> int:
    return graph.make(TABLE["reshape"], (graph.make(TABLE["slice"], (line,), (((at, at + 1, 1),),)),), ((),))


# Places


def _first_places(graph: Snapshot, keys: int, count: int) -> int:
    """The places of the `count` smallest keys along the last axis, in order.

    They lie in the `count` blocks with the smallest minima: were one in another block, the minima of those
    blocks would come before it, and they are `count` already.
    """
    sig = graph.sigs[keys]
    *rows, length = sig.shape
    last = len(rows)
    if sorts_whole(length, count):
        places = _sorted_places(graph, keys)
        ranges = (*((0, size, 1) for size in rows), (0, count, 1))
        return places if count == length else graph.make(TABLE["slice"], (places,), (ranges,))
    block = 1 << round(math.log2(length / count) / 2)
    blocks = -(-length // block)
    if blocks * block != length:  # what is behind all loses every draw
        ends = (*((0, 0) for _ in rows), (0, blocks * block - length))
        largest = _number_like(graph, sig.dtype.limits[1], keys)
        keys = graph.make(TABLE["pad"], (keys, largest), (ends,))
    apart = graph.make(TABLE["reshape"], (keys,), ((*rows, blocks, block),))
    chosen = _first_places(graph, graph.make(TABLE["min"], (apart,), ((last + 1,),)), count)
    rising = graph.make(TABLE["sort_order"], (cast(graph, chosen, dtypes.uint32),))  # ties stay in order
    chosen = graph.make(TABLE["take_along"], (chosen, rising), (last,))
    chosen = graph.make(TABLE["reshape"], (chosen,), ((*rows, count, 1),))
    inside = graph.add(signature(TABLE["iota"], (block,), dtypes.int32, sig.device), ())
    places = graph.make(TABLE["add"], (_with_number(graph, "multiply", chosen, block), inside))
    places = graph.make(TABLE["reshape"], (places,), ((*rows, count * block),))
    best = _first_places(graph, graph.make(TABLE["take_along"], (keys, places), (last,)), count)
    return graph.make(TABLE["take_along"], (places, best), (last,))


def _sorted_places(graph: Snapshot, keys: int) -> int:
    """The order of keys along the last axis. Kernels sort 32 bits: wider keys in two rounds."""
    sig = graph.sigs[keys]
    if sig.dtype is not dtypes.uint64:
        return graph.make(TABLE["sort_order"], (keys,))
    last = len(sig.shape) - 1
    low = cast(graph, _with_number(graph, "bitwise_and", keys, 0xFFFFFFFF), dtypes.uint32)
    high = cast(graph, _with_number(graph, "right_shift", keys, 32), dtypes.uint32)
    by_low = graph.make(TABLE["sort_order"], (low,))
    moved = graph.make(TABLE["take_along"], (high, by_low), (last,))
    by_high = graph.make(TABLE["sort_order"], (moved,))
    return graph.make(TABLE["take_along"], (by_low, by_high), (last,))


# Keys


def _keys(graph: Snapshot, x: int) -> int:
    """Unsigned numbers of the same width, in the order of the elements."""
    dtype = graph.sigs[x].dtype
    unsigned = dtypes.as_dtype(f"uint{dtype.bits}")
    if dtype.kind in "bu":
        return cast(graph, x, unsigned)
    bits = graph.make(TABLE["bitcast"], (x,), (unsigned,))
    top = 1 << (dtype.bits - 1)
    if dtype.kind == "i":
        return _with_number(graph, "bitwise_xor", bits, top)
    return _float_keys(graph, bits, top, _INFINITIES[dtype.name])


def _float_keys(graph: Snapshot, bits: int, top: int, infinity: int) -> int:
    """Negative floats are ordered backwards by their bits; -0 becomes +0, and each NaN the largest key."""
    backwards = graph.make(TABLE["bitwise_invert"], (bits,))
    upwards = _with_number(graph, "bitwise_or", bits, top)
    negative = _with_number(graph, "greater", bits, top)  # top itself is -0
    keys = graph.make(TABLE["where"], (negative, backwards, upwards))
    magnitude = _with_number(graph, "bitwise_and", bits, top - 1)
    largest = _number_like(graph, graph.sigs[bits].dtype.limits[1], bits)
    unknown = _with_number(graph, "greater", magnitude, infinity)
    return graph.make(TABLE["where"], (unknown, largest, keys))
