"""Keys of x[key]: what a key selects, read once into a `Selection`.

In: a tensor and a key of NumPy's kinds. Out: spans of the axes, which become movement, and index arrays.
Indices the host knows are checked here; those in tensors count from the end when negative, and are clamped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index as whole
from typing import Any

from ... import dtypes
from ...arrays import Array, has_numpy, np
from ...dtypes import DType
from ...errors import DeviceError, DTypeError, IndexingError
from ...evaluate.evaluate import read
from ...graph.node import Node
from ...ops import primitives
from ...ops.host_arrays import converted
from ...ops.primitives import elementwise
from ...ops.table import TABLE
from ...tensor import Tensor
from ...values import Values, packed, values_of
from .masks import is_read, nonzero

Span = tuple[int, int, int]  # of an axis: the first index, how many, the step, which may be negative
Indices = Array | Values | Node  # of the host, or of the device


@dataclass(frozen=True, slots=True)
class Selection:
    """What a key selects: a span of every axis, reshaped to `shape`; then index arrays for some axes."""

    spans: tuple[Span, ...]
    shape: tuple[int, ...]  # without the axes of single indices, with the new axes
    axes: tuple[int, ...]  # the axes of `shape` that are indexed by arrays
    arrays: tuple[Indices, ...]
    apart: bool  # a slice or None is between the arrays: their axes then come first in the result

    @property
    def counts(self) -> tuple[int, ...]:
        """How many elements of each axis of the tensor."""
        return tuple(count for _, count, _ in self.spans)

    @property
    def others(self) -> tuple[int, ...]:
        """The axes of `shape` that no array indexes."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.axes)

    @property
    def place(self) -> int:
        """The axis of the result at which the arrays' axes begin."""
        return 0 if self.apart else self.axes[0]


def select(x: Tensor, key: Any) -> Selection:
    """Read a key."""
    return selected([_entry(x, each) for each in (key if isinstance(key, tuple) else (key,))], x.shape)


def selected(entries: list[Any], shape: tuple[int, ...]) -> Selection:
    """What the entries of a key select from a shape."""
    rank = len(shape)
    if not any(each is Ellipsis for each in entries):
        entries.append(Ellipsis)
    elif sum(each is Ellipsis for each in entries) > 1:
        raise IndexingError("x[…]: an index can have only one ellipsis (...)")
    used = sum(map(_axes_used, entries))
    if used > rank:
        raise IndexingError(f"x[…]: {used} indices for a tensor of {rank} dimensions (shape {shape})")
    if any(map(_is_array, entries)):  # next to arrays, a single index is an array too
        entries = [_listed(each) if isinstance(each, int) else each for each in entries]
    return _walk(entries, shape, rank - used)


def _entry(x: Tensor, each: Any) -> Any:
    """One part of a key as None, Ellipsis, a slice, an int, or an array of ints or bools."""
    if each is None or each is Ellipsis or each.__class__ is slice:
        return each
    if isinstance(each, Tensor):
        return _tensor_entry(x, each)
    if isinstance(each, (list, tuple, range, np.ndarray, bool, np.bool_)):
        return _array_entry(each)
    try:
        return whole(each)
    except TypeError:
        raise IndexingError(
            f"x[…]: {each!r} is not an index: use integers, slices, None, ..., or lists and tensors of "
            "integers or bools"
        ) from None


def _tensor_entry(x: Tensor, each: Tensor) -> Any:
    if each.dtype.kind == "b":
        if each.device is x.device and not is_read(each):
            return each.node
        return read(each.node)  # the result's shape depends on how many are true, so it is read now
    return index_node("x[…]", each, x)


def index_node(op: str, indices: Tensor, x: Tensor) -> Node:
    """The node of a tensor of indices into x; an error where it does not hold indices."""
    if indices.dtype.kind not in "iu":
        raise IndexingError(
            f"{op}: a {indices.dtype.name} tensor cannot index: convert with astype(webgrad.int32)"
        )
    if indices.device is not x.device:
        raise DeviceError(
            f"{op}: the indices are on {indices.device.name} and the tensor on {x.device.name}: move them "
            f"with indices.to_device({x.device.name!r})"
        )
    return indices.node


def _array_entry(each: Any) -> Any:
    try:
        array = _listed(each)
    except (ValueError, DTypeError):
        raise IndexingError(f"x[…]: {each!r} is not an array of indices") from None
    if not array.size and not isinstance(each, np.ndarray):
        return converted(array, dtypes.int64)  # an empty list has no dtype
    if array.dtype.kind not in "biu":
        raise IndexingError(f"x[…]: {array.dtype} values are not indices: use integers or bools")
    return array


def _listed(value: Any) -> Any:
    return np.asarray(value) if has_numpy() else values_of("x[…]", value)


def _is_mask(entry: Any) -> bool:
    if isinstance(entry, Node):
        return bool(entry.sig.dtype.kind == "b")
    return isinstance(entry, (np.ndarray, Values)) and entry.dtype.kind == "b"


def _is_array(entry: Any) -> bool:
    return isinstance(entry, (np.ndarray, Values, Node))


def _axes_used(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return len(_shape_of(entry)) if _is_mask(entry) else 1


def _shape_of(entry: Indices) -> tuple[int, ...]:
    return entry.sig.shape if isinstance(entry, Node) else entry.shape


def _walk(entries: list[Any], sizes: tuple[int, ...], hidden: int) -> Selection:
    """The selection of a key's entries; its ellipsis stands for `hidden` axes."""
    spans: list[Span] = []
    shape: list[int] = []
    axes: list[int] = []
    arrays: list[Indices] = []
    for entry in entries:
        new_spans, new_sizes, indices = _read(entry, len(spans), sizes, hidden)
        axes += range(len(shape), len(shape) + len(indices))
        arrays += indices
        spans += new_spans
        shape += new_sizes
    return Selection(tuple(spans), tuple(shape), tuple(axes), tuple(arrays), _apart(entries))


def _read(
    entry: Any, axis: int, sizes: tuple[int, ...], hidden: int
) -> tuple[list[Span], Sequence[int], list[Indices]]:
    """What an entry selects of the axes from `axis` on: spans, the sizes that stay, and index arrays."""
    if entry is None:
        return [], [1], []
    if entry is Ellipsis:
        under = sizes[axis : axis + hidden]
        return [(0, size, 1) for size in under], under, []
    if isinstance(entry, slice):
        span = _span(entry, sizes[axis])
        return [span], [span[1]], []
    if isinstance(entry, int):
        size = sizes[axis]
        if not -size <= entry < size:
            raise _outside("x[…]", entry, axis, sizes)
        return [(entry % size, 1, 1)], [], []
    indices = _split(entry, axis, sizes)
    indexed = sizes[axis : axis + _axes_used(entry)]
    return [(0, size, 1) for size in indexed], indexed or [1], indices


def _apart(entries: list[Any]) -> bool:
    """Whether a slice or None is between two arrays."""
    are = list(map(_is_array, entries))
    return any(are) and not all(are[are.index(True) : len(are) - are[::-1].index(True)])


def _split(entry: Any, axis: int, sizes: tuple[int, ...]) -> list[Indices]:
    """The index arrays of an entry, one for each axis it uses; a mask of no axes selects from a new one."""
    if not _is_mask(entry):
        if isinstance(entry, Node):
            return [clamped(entry, axis, sizes)]
        return [checked("x[…]", entry, axis, sizes)]
    own = _shape_of(entry)
    if not own:
        return [converted(_listed([0] if entry.tolist() else []), dtypes.int64)]
    covered = sizes[axis : axis + len(own)]
    sizes_agree = all(each in (0, size) for each, size in zip(own, covered, strict=False))
    if len(covered) < len(own) or not sizes_agree:  # as in NumPy, a mask of no elements selects nothing
        raise IndexingError(
            f"x[mask]: the mask's shape {own} is not that of the axes it selects from, {covered}: "
            f"axis {axis} on of a tensor of shape {sizes}"
        )
    if isinstance(entry, Node):  # on a GPU, where its indices stay; only their number is read
        return [each.node for each in nonzero(Tensor(entry))]
    return list(entry.nonzero())


def _span(entry: slice, size: int) -> Span:
    try:
        start, stop, step = entry.indices(size)
    except (TypeError, ValueError) as error:
        raise IndexingError(f"x[…]: {entry} is not a slice of an axis of size {size}: {error}") from None
    count = len(range(start, stop, step))
    return (start, count, step if count > 1 else 1) if count else (0, 0, 1)


def checked(op: str, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Host indices, counted from 0; an error for those out of range."""
    size = shape[axis]
    if isinstance(indices, Values):
        numbers = indices.numbers()
        for each in numbers:
            if not -size <= each < size:
                raise _outside(op, each, axis, shape)
        return packed([each % size for each in numbers], dtypes.int64, indices.shape)
    wide = indices.astype(np.int64)
    outside = (wide < -size) | (wide >= size)
    if outside.any():
        raise _outside(op, wide[outside].reshape(-1)[0], axis, shape)
    return np.where(wide < 0, wide + size, wide)


def _outside(op: str, index: int, axis: int, shape: tuple[int, ...]) -> IndexingError:
    return IndexingError(
        f"{op}: index {index} is out of range for axis {axis} with size {shape[axis]} (shape {shape})"
    )


def clamped(indices: Node, axis: int, shape: tuple[int, ...]) -> Node:
    """Indices in a tensor, counted from 0 and clamped to the axis."""
    size = shape[axis]
    if not size and indices.sig.size:
        raise IndexingError(f"indices into axis {axis} of shape {shape}, which is empty")
    dtype = indices.sig.dtype
    if size - 1 <= dtype.limits[1]:  # clamped before the cast, which could wrap
        indices = elementwise(_MINIMUM, indices, max(0, size - 1))
    result = primitives.cast(indices, index_dtype(size))
    if dtype.kind == "i":
        wrapped = elementwise(_ADD, result, size)
        result = primitives.choose(elementwise(_LESS, result, 0), wrapped, result)
        result = elementwise(_MAXIMUM, result, 0)
    return elementwise(_MINIMUM, result, max(0, size - 1))


def index_dtype(rows: int) -> DType:
    """The integer dtype for indices into that many rows."""
    return dtypes.int32 if rows < 1 << 31 else dtypes.int64


_ADD, _LESS = TABLE["add"], TABLE["less"]
_MAXIMUM, _MINIMUM = TABLE["maximum"], TABLE["minimum"]
