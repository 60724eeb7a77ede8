"""Sets: the distinct elements of a tensor, and which elements are in a set.

In: tensors of any dtype. Out: tensors on the same device. Elements are sorted there, and equal neighbours are
one element: NaN, which equals nothing, is distinct each time, and -0.0 is 0.0. How many there are is the
result's shape, so `unique_*` compute and read one number: they synchronise, and cannot be captured.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ... import dtypes
from ...graph.node import Node
from ...ops import primitives
from ...ops.primitives import elementwise
from ...ops.shapes import check_kind, normalise_axis
from ...ops.table import TABLE
from ...tensor import Tensor
from ..complex.parts import imag, real
from .creation import arange, as_tensor, zeros
from .elementwise import equal, logical_not, not_equal
from .indexing import nonzero, take
from .manipulation import concat
from .masks import true_indices
from .reductions import any as any_of
from .reshaping import flatten, moveaxis, part, reshape
from .rows import operands
from .scans import cumulative_sum
from .scatters import index_set
from .sorting import argsort, searchsorted, sort


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


class _Groups:
    """A tensor's elements in sorted order, where runs of equal ones begin, and the results, computed lazily.

    Without `with_indices` the elements themselves are sorted, which is faster on the cpu.
    """

    def __init__(self, op: str, x: Tensor, with_indices: bool, consecutive: bool = False) -> None:
        self.x = as_tensor(op, x)
        self.flat = flatten(self.x)
        if consecutive:
            self.order, self.sorted = arange(self.flat.size, device=self.x.device), self.flat
        elif not with_indices and self.flat.dtype.kind != "c":
            self.sorted = sort(self.flat)
        else:
            self.order = _order(self.flat)
            self.sorted = take(self.flat, self.order)
        self.first = _beginnings(self.sorted)
        self.starts = true_indices(self.first)  # where its length, one number, is read

    @property
    def values(self) -> Tensor:
        return take(self.sorted, self.starts)

    @property
    def indices(self) -> Tensor:
        return take(self.order, self.starts)  # sorting is stable: the first of equal ones comes first

    @property
    def inverse_indices(self) -> Tensor:
        group = cumulative_sum(self.first, axis=0, dtype=dtypes.int32) - 1
        there = index_set(zeros((self.length,), dtypes.int32, device=self.x.device), self.order, group)
        return there if self.flat.ndim == 2 else reshape(there, self.x.shape)

    @property
    def length(self) -> int:
        return self.flat.size

    @property
    def counts(self) -> Tensor:
        end = Tensor(
            primitives.reshape(primitives.constant("unique", self.length, dtypes.int32, self.x.device), (1,))
        )
        ends = concat([part(self.starts, 0, 1, self.starts.size), end]) if self.starts.size else self.starts
        return ends - self.starts


class _Rows(_Groups):
    """The same of slices along an axis, as rows in the order of their first elements, then of the next."""

    def __init__(self, op: str, x: Tensor, axis: int, consecutive: bool = False) -> None:
        self.x = as_tensor(op, x)
        self.axis = normalise_axis(op, axis, self.x.ndim)
        check_kind(op, "biuf", self.x.dtype)
        first = moveaxis(self.x, self.axis, 0)
        self.rest = tuple(first.shape[1:])
        self.flat = reshape(first, (first.shape[0], math.prod(self.rest)))
        if consecutive:
            self.order, self.sorted = arange(self.length, device=self.x.device), self.flat
        else:
            self.order = _order_of_rows(self.flat)
            self.sorted = take(self.flat, self.order, axis=0)
        self.first = _beginnings(self.sorted)
        self.starts = true_indices(self.first)

    @property
    def values(self) -> Tensor:
        rows = take(self.sorted, self.starts, axis=0)
        return moveaxis(reshape(rows, (rows.shape[0], *self.rest)), 0, self.axis)

    @property
    def length(self) -> int:
        return int(self.flat.shape[0])


def _order_of_rows(rows: Tensor) -> Tensor:
    """The stable order of rows: sorted by each column, from the last to the first."""
    order = arange(rows.shape[0], device=rows.device)
    for column in reversed(range(rows.shape[1])):
        order = take(order, argsort(take(rows[:, column], order)))
    return order


def _order(flat: Tensor) -> Tensor:
    """The stable order of the elements; complex numbers by their real parts, then by the imaginary ones."""
    if flat.dtype.kind != "c":
        return argsort(flat)
    by_imaginary = argsort(imag(flat))
    return take(by_imaginary, argsort(take(real(flat), by_imaginary)))


def _beginnings(line: Tensor) -> Tensor:
    """Whether an element differs from the one before it; the first does."""
    count = line.shape[0]
    if count < 2:
        return Tensor(primitives.expand(_true(line), (count,)))
    changes = not_equal(part(line, 0, 1, count), part(line, 0, 0, count - 1))
    changes = any_of(changes, axis=1) if line.ndim == 2 else changes
    return concat([Tensor(primitives.expand(_true(line), (1,))), changes])


def _true(like: Tensor) -> Node:
    return primitives.constant("unique", True, dtypes.bool, like.device)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements in order, the index of the first of each, the inverse indices, and the counts.

    Computes x and reads how many there are: it synchronises.

    >>> [each.tolist() for each in wg.unique_all(wg.asarray([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    found = _Groups("unique_all", x, with_indices=True)
    return UniqueAll(found.values, found.indices, found.inverse_indices, found.counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements in order, and how often each occurs; computes x, and synchronises.

    >>> wg.unique_counts(wg.asarray([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    found = _Groups("unique_counts", x, with_indices=False)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements in order, and the index in them of each element of x; synchronises.

    >>> wg.unique_inverse(wg.asarray([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    found = _Groups("unique_inverse", x, with_indices=True)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements in order; computes x, and synchronises.

    >>> wg.unique_values(wg.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return _Groups("unique_values", x, with_indices=False).values


def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The distinct elements in order, or the distinct slices along an axis; synchronises.

    With `return_index`, `return_inverse` or `return_counts` a tuple, with the index of the first of each,
    the index in the result of each element of x, and how often each occurs.

    >>> wg.unique(wg.asarray([[1, 2], [1, 2], [0, 5]]), axis=0).tolist()
    [[0, 5], [1, 2]]
    """
    if axis is not None:
        found: _Groups = _Rows("unique", x, axis)
    else:
        found = _Groups("unique", x, with_indices=return_index or return_inverse)
    asked = {"indices": return_index, "inverse_indices": return_inverse, "counts": return_counts}
    more = tuple(getattr(found, name) for name, wanted in asked.items() if wanted)
    return (found.values, *more) if more else found.values


def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    """The elements, or slices along an axis, without those that equal the one before; synchronises.

    With `return_inverse` or `return_counts` a tuple, with the index in the result of each element of x, and
    how many it stands for.

    >>> wg.unique_consecutive(wg.asarray([1, 1, 2, 1]), return_counts=True)[1].tolist()
    [2, 1, 1]
    """
    found: _Groups
    if axis is None:
        found = _Groups("unique_consecutive", x, with_indices=True, consecutive=True)
    else:
        found = _Rows("unique_consecutive", x, axis, consecutive=True)
    more = [found.inverse_indices] if return_inverse else []
    more += [found.counts] if return_counts else []
    return (found.values, *more) if more else found.values


def isin(x1: Any, x2: Any, /, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element of x1 is in x2; with `invert` whether it is not. One of them may be a number.

    `assume_unique` is accepted as in NumPy and changes nothing: x2 is sorted and searched.

    >>> wg.isin(wg.asarray([1, 2, 3]), wg.asarray([3, 1])).tolist()
    [True, False, True]
    """
    wanted, among = (Tensor(each) for each in primitives.common("isin", operands("isin", x1, x2)))
    found = _search(wanted, flatten(among))
    return logical_not(found) if invert else found


def _search(wanted: Tensor, line: Tensor) -> Tensor:
    if (
        line.size <= MAX_COMPARED_ONE_BY_ONE or line.dtype.kind == "c"
    ):  # complex numbers have no order to search in
        return any_of(equal(reshape(wanted, (*wanted.shape, 1)), line), axis=-1)
    ordered = sort(line)
    place = searchsorted(ordered, wanted)
    last = elementwise(
        TABLE["minimum"], place.node, line.size - 1
    )  # clamped: what is larger than all is found nowhere
    return equal(take(ordered, Tensor(last)), wanted)


MAX_COMPARED_ONE_BY_ONE = 8  # so many are compared one by one


def union1d(x1: Tensor, x2: Tensor) -> Tensor:
    """The distinct elements of two tensors in order; synchronises.

    >>> wg.union1d(wg.asarray([3, 1]), wg.asarray([2, 3])).tolist()
    [1, 2, 3]
    """
    return unique_values(concat([flatten(as_tensor("union1d", each)) for each in (x1, x2)]))


def intersect1d(x1: Tensor, x2: Tensor) -> Tensor:
    """The distinct elements that are in both of two tensors, in order; synchronises.

    >>> wg.intersect1d(wg.asarray([3, 1, 3]), wg.asarray([2, 3])).tolist()
    [3]
    """
    found = unique_values(as_tensor("intersect1d", x1))
    return _chosen(found, isin(found, x2))


def setdiff1d(x1: Tensor, x2: Tensor) -> Tensor:
    """The distinct elements of one tensor that are not in another, in order; synchronises.

    >>> wg.setdiff1d(wg.asarray([3, 1, 4]), wg.asarray([2, 3])).tolist()
    [1, 4]
    """
    found = unique_values(as_tensor("setdiff1d", x1))
    return _chosen(found, isin(found, x2, invert=True))


def setxor1d(x1: Tensor, x2: Tensor) -> Tensor:
    """The distinct elements that are in one of two tensors alone, in order; synchronises.

    >>> wg.setxor1d(wg.asarray([3, 1]), wg.asarray([2, 3])).tolist()
    [1, 2]
    """
    return union1d(setdiff1d(x1, x2), setdiff1d(x2, x1))


def _chosen(line: Tensor, flags: Tensor) -> Tensor:
    return take(line, nonzero(flags)[0])
