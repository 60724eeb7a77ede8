"""The rows of the table that are about the order of elements, of any dtype.

In: elements. Out: sorted values, their indices, or counts. Sorting is stable; NaN is the largest. The cpu has
them; for GPUs a pass makes sorts of unsigned keys (`sort_order`), searches and scatters of them
(`schedule/sorting.py`).
"""

from __future__ import annotations

from typing import Any

from ..arrays import Array, np
from ..dtypes import int32, uint32
from ..errors import DTypeError
from ..graph.node import Signature, signature
from ..graph.op import Op
from .shapes import check_binding, check_kind

MAX_SORTED_WHOLE = 8192  # elements: up to here GPUs sort all of them, whatever is wanted,
MIN_SELECTED_SHARE = 32  # and where more than one of so many is wanted

Sigs = tuple[Signature, ...]
Result = tuple[tuple[int, ...], Any]


def sorts_whole(length: int, count: int) -> bool:
    """Whether a kernel sorts all keys of a row to find the first so many."""
    return length <= MAX_SORTED_WHOLE or count * MIN_SELECTED_SHARE > length or not count


def _order(x: Array, descending: bool) -> Array:
    """A stable descending order is the stable ascending order of the reversed line, reversed."""
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    backwards: Array = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return np.asarray(x.shape[-1] - 1 - backwards)


def _values(sig: Signature, x: Array) -> Array:
    return np.take_along_axis(x, _order(x, *sig.attributes), -1)


def _indices(sig: Signature, x: Array) -> Array:
    descending, count = sig.attributes
    return _order(x, descending)[..., :count]


def _inside(x: Array, edges: Array) -> Array:
    """Whether each element is in each bin."""
    inside = (edges[:-1] <= x[:, None]) & (x[:, None] < edges[1:])
    inside[:, -1] |= x == edges[-1]
    return np.asarray(inside)


def _counts(sig: Signature, x: Array, edges: Array) -> Array:
    return np.asarray(_inside(x, edges).sum(axis=0))


def _bins(sig: Signature, x: Array, edges: Array) -> Array:
    inside = _inside(x, edges)
    return np.where(inside.any(axis=1), inside.argmax(axis=1), len(edges) - 1)


def _search(sig: Signature, line: Array, x: Array) -> Array:
    return np.searchsorted(line, x, side=sig.attributes[0])


def _sorted(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    (sig,) = sigs
    if sig.device.is_gpu:
        raise DTypeError(
            f"sort_values of {sig.dtype.name} is the cpu's: {sig.device.name} sorts keys, by sort_places"
        )
    return sig.shape, sig.dtype


def _placed(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    (sig,) = sigs
    count = attributes[1]
    if sorts_whole(sig.shape[-1], count):
        check_binding("sort", signature(sig.op, sig.shape, uint32, sig.device))  # its keys
    return (*sig.shape[:-1], count), int32


def _check_bins(name: str, sigs: Sigs) -> None:
    x, _ = sigs
    check_kind(name, "f", x.dtype)
    check_binding(name, signature(x.op, x.shape, int32, x.device))  # their places


def _bin_of_each(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    _check_bins("bin_places", sigs)
    return sigs[0].shape, int32


def _count_of_each(sigs: Sigs, attributes: tuple[Any, ...]) -> Result:
    _check_bins("counts_between", sigs)
    return (sigs[1].size - 1,), int32


ORDERED = (
    Op(
        "sort_values",
        "sort",
        1,
        _values,
        infer=_sorted,
        doc="The elements in order along the last axis, attributes = (descending,); what a pass of the cpu "
        "makes of their places.",
        gradient=(),
    ),
    Op(
        "sort_places",
        "sort",
        1,
        _indices,
        result="int32",
        infer=_placed,
        doc="The indices that sort the last axis, attributes = (descending, count of them).",
        gradient=(),
    ),
    Op(
        "search_places",
        "sort",
        2,
        _search,
        result="int32",
        infer=lambda sigs, attributes: (sigs[1].shape, int32),
        doc="Where elements belong in a sorted line, attributes = (side,).",
        gradient=(),
    ),
    Op(
        "bin_places",
        "sort",
        2,
        _bins,
        types="f",
        result="int32",
        infer=_bin_of_each,
        doc="Between which rising edges elements lie, the last one included; outside, the number of bins; "
        "attributes = (whether all bins have one width,).",
        gradient=(),
    ),
    Op(
        "counts_between",
        "sort",
        2,
        _counts,
        types="f",
        result="int32",
        infer=_count_of_each,
        doc="How many elements lie between rising edges, the last one included; attributes as of bin_places.",
        gradient=(),
    ),
)
