"""Indexing: x[key] and x[key] = value with NumPy's keys and shapes, take, take_along_axis, nonzero.

In: a tensor and a key. Out: a tensor. A key is read once into a `Selection`: spans of the axes, which become
movement, and index arrays, which become one gather or scatter over the axes they index, merged.
Indices the host knows are checked here; those in tensors count from the end when negative, and are clamped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index as whole
from typing import Any

from .. import dtypes
from ..arrays import Array, has_numpy, np
from ..dtypes import DType
from ..errors import DeviceError, DTypeError, IndexingError, ShapeError
from ..evaluate.evaluate import read
from ..graph.node import Node, scalar
from ..runtime.device import CpuDevice
from ..tensor import Tensor, view
from ..values import Values, packed, values_of
from . import primitives, shapes
from .creation import as_tensor
from .interop import converted, host_array, place
from .primitives import elementwise
from .table import TABLE
from .views import Move, spread

__all__ = ["nonzero", "take", "take_along_axis"]

FEW_FLAGS = 1 << 14  # bools: to read so many takes no longer than to read how many of them are true
Span = tuple[int, int, int]  # of an axis: the first index, how many, the step, which may be negative
Indices = Array | Values | Node  # of the host, or of the device


@dataclass(frozen=True, slots=True)
class Selection:
    """What a key selects: spans of every axis, seen in a shape; then, of some axes, what arrays index."""

    spans: tuple[Span, ...]
    shape: tuple[int, ...]  # without the axes of single indices, with the new axes
    axes: tuple[int, ...]  # the axes of `shape` that are indexed by arrays
    arrays: tuple[Indices, ...]
    apart: bool  # something stands between the arrays: their axes then come first in the result

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
        """Where the arrays' axes are in the result."""
        return 0 if self.apart else self.axes[0]


# Reading a key


def select(x: Tensor, key: Any) -> Selection:
    """Read a key."""
    return _selected([_entry(x, each) for each in (key if isinstance(key, tuple) else (key,))], x.shape)


def _selected(entries: list[Any], shape: tuple[int, ...]) -> Selection:
    """What the entries of a key select from a shape."""
    rank = len(shape)
    if not any(each is Ellipsis for each in entries):
        entries.append(Ellipsis)
    elif sum(each is Ellipsis for each in entries) > 1:
        raise IndexingError("x[…]: an index can have only one ellipsis (...)")
    used = sum(map(_axes_used, entries))
    if used > rank:
        raise IndexingError(f"x[…]: {used} indices for a tensor of {rank} dimensions (shape {shape})")
    if any(map(_is_array, entries)):  # beside arrays, a single index is one too
        entries = [_listed(each) if isinstance(each, int) else each for each in entries]
    return _walk(entries, shape, rank - used)


def _entry(x: Tensor, each: Any) -> Any:
    """One part of a key as None, Ellipsis, a slice, an int, or an array of ints or bools."""
    if each is None or each is Ellipsis or each.__class__ is slice:
        return each
    if isinstance(each, Tensor):
        return _tensor_entry(x, each)
    if isinstance(each, (list, tuple, np.ndarray, bool, np.bool_)):
        return _array_entry(each)
    try:
        return whole(each)
    except TypeError:
        raise IndexingError(
            f"x[…]: {each!r} is no index: use whole numbers, slices, None, ..., or lists and tensors of "
            "whole numbers or bools"
        ) from None


def _tensor_entry(x: Tensor, each: Tensor) -> Any:
    if each.dtype.kind == "b":
        if each.device is x.device and not _is_read(each):
            return each.node
        return read(each.node)  # how many it selects is the result's shape, so it must be known now
    return _index_node("x[…]", each, x)


def _index_node(op: str, indices: Tensor, x: Tensor) -> Node:
    if indices.dtype.kind not in "iu":
        raise IndexingError(
            f"{op}: a {indices.dtype.name} tensor holds no indices: convert with astype(webgrad.int32)"
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
        raise IndexingError(f"x[…]: {each!r} is no array of indices") from None
    if not array.size and not isinstance(each, np.ndarray):
        return converted(array, dtypes.int64)  # an empty list has no type of its own
    if array.dtype.kind not in "biu":
        raise IndexingError(f"x[…]: {array.dtype} values are no indices: use whole numbers or bools")
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
    return len(_sides(entry)) if _is_mask(entry) else 1


def _sides(entry: Indices) -> tuple[int, ...]:
    return entry.sig.shape if isinstance(entry, Node) else entry.shape


def _walk(entries: list[Any], sides: tuple[int, ...], hidden: int) -> Selection:
    """From what the key is made of; `hidden` axes are under its ellipsis."""
    spans: list[Span] = []
    shape: list[int] = []
    axes: list[int] = []
    arrays: list[Indices] = []
    for entry in entries:
        new_spans, new_sides, indices = _read(entry, len(spans), sides, hidden)
        axes += range(len(shape), len(shape) + len(indices))
        arrays += indices
        spans += new_spans
        shape += new_sides
    return Selection(tuple(spans), tuple(shape), tuple(axes), tuple(arrays), _apart(entries))


def _read(
    entry: Any, axis: int, sides: tuple[int, ...], hidden: int
) -> tuple[list[Span], Sequence[int], list[Indices]]:
    """What an entry says of the axes from `axis` on: their spans, sides that are seen, and index arrays."""
    if entry is None:
        return [], [1], []
    if entry is Ellipsis:
        under = sides[axis : axis + hidden]
        return [(0, side, 1) for side in under], under, []
    if isinstance(entry, slice):
        span = _span(entry, sides[axis])
        return [span], [span[1]], []
    if isinstance(entry, int):
        side = sides[axis]
        if not -side <= entry < side:
            raise _outside("x[…]", entry, axis, sides)
        return [(entry % side, 1, 1)], [], []
    indices = _split(entry, axis, sides)
    indexed = sides[axis : axis + _axes_used(entry)]
    return [(0, side, 1) for side in indexed], indexed or [1], indices


def _apart(entries: list[Any]) -> bool:
    """Whether something stands between arrays."""
    are = list(map(_is_array, entries))
    return any(are) and not all(are[are.index(True) : len(are) - are[::-1].index(True)])


def _split(entry: Any, axis: int, sides: tuple[int, ...]) -> list[Indices]:
    """The index arrays of an entry, one for each axis it uses; a mask of no axes selects from a new one."""
    if not _is_mask(entry):
        if isinstance(entry, Node):
            return [_clamped(entry, axis, sides)]
        return [_checked("x[…]", entry, axis, sides)]
    own = _sides(entry)
    if not own:
        return [converted(_listed([0] if entry.tolist() else []), dtypes.int64)]
    covered = sides[axis : axis + len(own)]
    sides_agree = all(each in (0, side) for each, side in zip(own, covered, strict=False))
    if len(covered) < len(own) or not sides_agree:  # as in NumPy, a mask of no elements selects nothing
        raise IndexingError(
            f"x[mask]: the mask's shape {own} is not that of the axes it selects from, {covered}: "
            f"axis {axis} on of a tensor of shape {sides}"
        )
    if isinstance(entry, Node):  # on a GPU, where its places stay; how many there are is read
        return [each.node for each in nonzero(Tensor(entry))]
    return list(entry.nonzero())


def _span(entry: slice, side: int) -> Span:
    try:
        start, stop, step = entry.indices(side)
    except (TypeError, ValueError) as error:
        raise IndexingError(f"x[…]: {entry} is no slice of an axis of side {side}: {error}") from None
    count = len(range(start, stop, step))
    return (start, count, step if count > 1 else 1) if count else (0, 0, 1)


def _checked(op: str, indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    """Indices of the host, from 0 on; an error for those outside."""
    side = shape[axis]
    if isinstance(indices, Values):
        numbers = indices.numbers()
        for each in numbers:
            if not -side <= each < side:
                raise _outside(op, each, axis, shape)
        return packed([each % side for each in numbers], dtypes.int64, indices.shape)
    wide = indices.astype(np.int64)
    outside = (wide < -side) | (wide >= side)
    if outside.any():
        raise _outside(op, wide[outside].reshape(-1)[0], axis, shape)
    return np.where(wide < 0, wide + side, wide)


def _outside(op: str, index: int, axis: int, shape: tuple[int, ...]) -> IndexingError:
    return IndexingError(
        f"{op}: index {index} is out of range for axis {axis} of shape {shape}, whose side is {shape[axis]}"
    )


def _clamped(indices: Node, axis: int, shape: tuple[int, ...]) -> Node:
    """Indices of a tensor, from 0 on and inside."""
    side = shape[axis]
    if not side and indices.sig.size:
        raise IndexingError(f"indices into axis {axis} of shape {shape}, which is empty")
    dtype = indices.sig.dtype
    if side - 1 < 1 << (
        8 * dtype.itemsize - (dtype.kind == "i")
    ):  # clamped before it is cast, and could wrap
        indices = elementwise(_MINIMUM, indices, max(0, side - 1))
    result = primitives.cast(indices, _counter(side))
    if dtype.kind == "i":
        wrapped = elementwise(_ADD, result, side)
        result = primitives.choose(elementwise(_LESS, result, 0), wrapped, result)
        result = elementwise(_MAXIMUM, result, 0)
    return elementwise(_MINIMUM, result, max(0, side - 1))


def _counter(rows: int) -> DType:
    return dtypes.int32 if rows < 1 << 31 else dtypes.int64


# Reading by a selection


def get_item(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    basic = _basic(key)
    if basic is not None:
        return view(x, *_basic_moves(x.node.sig.shape, basic))
    selection = select(x, key)
    if not selection.arrays:
        return view(x, *_moves(selection))
    return Tensor(_gather(_block(x.node, selection), selection))


def _basic(key: Any) -> tuple[Any, ...] | None:
    """A key of ints, slices, None and ..., as something to compare with others; None for any other key."""
    found: list[Any] = []
    for each in key if key.__class__ is tuple else (key,):
        if each.__class__ is slice:
            each = (each.start, each.stop, each.step)
            if not _SLICED.issuperset(map(type, each)):
                return None
        elif each.__class__ not in _BASIC:
            return None
        found.append(each)
    return tuple(found)


@lru_cache(4096)
def _basic_moves(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[Move, ...]:
    """What a basic key does to a tensor of a shape."""
    return _moves(_selected([slice(*each) if each.__class__ is tuple else each for each in key], shape))


_SLICED = frozenset((int, type(None)))
_BASIC = frozenset((int, type(None), type(Ellipsis)))


def _moves(selection: Selection) -> tuple[Move, ...]:
    """What makes the elements in the spans, in the selection's shape, of a tensor."""
    cut = (primitives.slice_, tuple(_upward(span) for span in selection.spans))
    shaped = (primitives.reshape, selection.shape)
    backward = _backward(selection)
    return (cut, (primitives.flip, backward), shaped) if backward else (cut, shaped)


def _block(x: Node, selection: Selection) -> Node:
    for move, argument in _moves(selection):
        x = move(x, argument)
    return x


def _upward(span: Span) -> Span:
    """(start, stop, step) of the same elements from the lowest on."""
    start, count, step = span
    low = start if step > 0 else start + (count - 1) * step
    return low, low + max(0, (count - 1) * abs(step) + 1) if count else low, abs(step)


def _backward(selection: Selection) -> tuple[int, ...]:
    return tuple(axis for axis, (_, _, step) in enumerate(selection.spans) if step < 0)


def _gather(block: Node, selection: Selection) -> Node:
    rows, _ = _rows_at(selection.place, block, selection)
    index = _merged_index(selection, block.sig.device)
    return primitives.take(rows, index, selection.place)


def _rows_at(place: int, block: Node, selection: Selection) -> tuple[Node, tuple[int, ...]]:
    """The indexed axes brought together at `place` and merged to one; with the order of axes that did so."""
    others = selection.others
    order = (*others[:place], *selection.axes, *others[place:])
    merged = math.prod(selection.shape[axis] for axis in selection.axes)
    before, after = ([selection.shape[axis] for axis in part] for part in (others[:place], others[place:]))
    return primitives.reshape(primitives.permute(block, order), (*before, merged, *after)), order


def _merged_index(selection: Selection, device: Any) -> Node:
    """One index into the merged axes: each array times the stride of its axis."""
    sides = [selection.shape[axis] for axis in selection.axes]
    index_shape(selection)  # they must fit each other
    dtype = _counter(math.prod(sides))
    known: list[Array] = []
    nodes: list[Node] = []
    for at, each in enumerate(selection.arrays):
        stride = math.prod(sides[at + 1 :])
        if isinstance(each, Values):
            each = _index(each, dtype, device)
        if isinstance(each, Node):
            wide = primitives.cast(each, dtype)
            nodes.append(wide if stride == 1 else elementwise(_MULTIPLY, wide, stride))
        else:
            known.append(each * stride)
    if known:
        nodes.append(_index(np.asarray(sum(known), dtype.numpy), dtype, device))
    total = nodes[0]
    for each in nodes[1:]:
        total = elementwise(_ADD, total, each)
    return total


def _index(array: Any, dtype: DType, device: Any) -> Node:
    """Indices of the host on a device."""
    if not array.ndim:
        return scalar(array.tolist(), dtype, device)
    return place("x[…]", converted(array, dtype) if isinstance(array, Values) else array, device).node


def index_shape(selection: Selection) -> tuple[int, ...]:
    """The common shape of the index arrays."""
    found = [each.sig.shape if isinstance(each, Node) else each.shape for each in selection.arrays]
    try:
        return shapes.broadcast("x[…]", found)
    except ShapeError:
        raise IndexingError(
            f"x[…]: the index arrays have shapes {' and '.join(map(str, found))}, which do not broadcast"
        ) from None


# Writing by a selection


def set_item(x: Tensor, key: Any, value: Any) -> Tensor:
    """x with x[key] = value done."""
    new = _value(x, value)
    masked = _by_mask(x, key, new)
    if masked is not None:
        return Tensor(masked)
    selection = select(x, key)
    if selection.arrays:
        new = _scattered(_block(x.node, selection), selection, new)
    return Tensor(_written(x.node, selection, _filling(new, selection.shape)))


def _value(x: Tensor, value: Any) -> Node:
    """What is assigned, as a node of x's dtype on its device."""
    if isinstance(value, Tensor):
        if value.device is not x.device:
            raise DeviceError(
                f"x[…] = value: the value is on {value.device.name} and x on {x.device.name}: move it with "
                f"value.to_device({x.device.name!r})"
            )
        return primitives.cast(value.node, x.dtype)
    if isinstance(value, (bool, int, float)):
        return primitives.constant("x[…] = value", value, x.dtype, x.device)
    return place("x[…] = value", host_array("x[…] = value", value, x.dtype), x.device).node


def _filling(value: Node, shape: tuple[int, ...]) -> Node:
    """A value that is to fill a shape, without the leading axes of side 1 that are too many."""
    sides = value.sig.shape
    extra = max(0, len(sides) - len(shape))
    fits = all(side in (1, target) for side, target in zip(sides[extra:][::-1], shape[::-1], strict=False))
    if not fits or any(side != 1 for side in sides[:extra]):
        raise ShapeError(
            f"x[…] = value: a value of shape {sides} cannot fill the selected part, of shape {shape}"
        )
    return primitives.reshape(value, sides[extra:])


def _by_mask(x: Tensor, key: Any, value: Node) -> Node | None:
    """x[mask] = value, where all selected rows get the same: a choice, and the mask need not be read."""
    if isinstance(key, Tensor) and key.dtype.kind == "b" and key.ndim and key.device is x.device:
        mask = key.node
    elif isinstance(key, np.ndarray) and key.dtype.kind == "b" and key.ndim:
        mask = place("x[mask]", key, x.device).node
    else:
        return None
    rank = len(mask.sig.shape)
    row = x.shape[rank:]
    sides = value.sig.shape
    if mask.sig.shape != x.shape[:rank] or math.prod(sides[: max(0, len(sides) - len(row))]) != 1:
        return None
    chosen = primitives.reshape(mask, (*mask.sig.shape, *([1] * len(row))))
    return primitives.choose(chosen, _filling(value, row), x.node)


def _scattered(block: Node, selection: Selection, value: Node) -> Node:
    """The block with rows set to the value; the last of several values for one element stays."""
    found = index_shape(selection)
    at, others = selection.place, selection.others
    rest = tuple(selection.shape[axis] for axis in others)
    full = (*rest[:at], *found, *rest[at:])
    rows, order = _rows_at(0, block, selection)
    merged, count, columns = rows.sig.shape[0], math.prod(found), math.prod(rest)
    updates = primitives.expand(_filling(value, full), full)
    if not count * columns:
        return block
    ranks = range(len(full))
    inside = ranks[at : at + len(found)]
    updates = primitives.permute(updates, (*inside, *(axis for axis in ranks if axis not in inside)))
    index = primitives.expand(_merged_index(selection, block.sig.device), found)
    result = primitives.scatter(
        TABLE["scatter_set"],
        primitives.reshape(rows, (merged, columns)),
        primitives.reshape(index, (count,)),
        primitives.reshape(updates, (count, columns)),
    )
    permuted = primitives.reshape(result, tuple(selection.shape[axis] for axis in order))
    return primitives.permute(permuted, tuple(order.index(axis) for axis in range(len(order))))


def _written(x: Node, selection: Selection, value: Node) -> Node:
    """x with the spans of a selection replaced by a value that broadcasts to the selection's shape."""
    sides, counts = x.sig.shape, selection.counts
    if not math.prod(counts):
        return x
    upward = tuple(_upward(span) for span in selection.spans)
    whole_axes = [each == (0, side, 1) for each, side in zip(upward, sides, strict=True)]
    if value.sig.size == 1:
        placed = primitives.reshape(value, ())
    else:
        region = primitives.reshape(primitives.expand(value, selection.shape), counts)
        placed = spread(primitives.flip(region, _backward(selection)), upward, sides)
    if all(whole_axes):
        return primitives.expand(placed, sides)
    # The mask has side 1 where an axis is replaced from end to end.
    ranges = tuple((0, 1, 1) if each else span for each, span in zip(whole_axes, upward, strict=True))
    bounds = tuple(1 if each else side for each, side in zip(whole_axes, sides, strict=True))
    yes = scalar(True, dtypes.bool, x.sig.device)
    mask = spread(primitives.expand(yes, tuple(len(range(*each)) for each in ranges)), ranges, bounds)
    return primitives.choose(mask, placed, x)


# Functions


def take(x: Tensor, indices: Any, axis: int | None = None) -> Tensor:
    """Elements of an axis by index; without an axis, of the flattened tensor. The index may have any shape.

    >>> wg.take(wg.asarray([[1, 2, 3], [4, 5, 6]]), [2, 0], axis=1).tolist()
    [[3, 1], [6, 4]]
    """
    x = as_tensor("take", x)
    source = primitives.reshape(x.node, (x.size,)) if axis is None else x.node
    at = 0 if axis is None else shapes.normalise_axis("take", axis, x.ndim)
    return Tensor(primitives.take(source, _indices("take", x, indices, at, source.sig.shape), at))


def take_along_axis(x: Tensor, indices: Any, axis: int = -1) -> Tensor:
    """Elements of an axis by an index for each element of the result, as argsort and argmax give them.

    >>> wg.take_along_axis(wg.asarray([[1, 2], [3, 4]]), [[1], [0]], axis=1).tolist()
    [[2], [3]]
    """
    x = as_tensor("take_along_axis", x)
    at = shapes.normalise_axis("take_along_axis", axis, x.ndim)
    return Tensor(primitives.take_along(x.node, _indices("take_along_axis", x, indices, at, x.shape), at))


def _indices(op: str, x: Tensor, indices: Any, axis: int, shape: tuple[int, ...]) -> Node:
    """Indices into an axis, checked or clamped."""
    if isinstance(indices, Tensor):
        return _clamped(_index_node(op, indices, x), axis, shape)
    try:
        array = host_array(op, indices)
    except DTypeError as error:
        raise IndexingError(f"{op}: {indices!r} holds no indices: {error}") from None
    if array.dtype.kind not in "iu" and array.size:
        raise IndexingError(f"{op}: {array.dtype} values are no indices: use whole numbers")
    return place(op, converted(_checked(op, array, axis, shape), _counter(shape[axis])), x.device).node


def nonzero(x: Tensor) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, an int32 tensor for each axis.

    Computes x and reads how many there are, which is the shape of the result: it synchronises.

    >>> [each.tolist() for each in wg.nonzero(wg.asarray([[0, 5], [7, 0]]))]
    [[0, 1], [1, 0]]
    """
    x = as_tensor("nonzero", x)
    if not x.ndim:
        raise ShapeError("nonzero of a 0-d tensor: reshape it to (1,), or compare x.item() with 0")
    flags = x if x.dtype.kind == "b" else Tensor(elementwise(TABLE["not_equal"], x.node, 0))
    where = places_of_true(Tensor(primitives.reshape(flags.node, (x.size,)))).node
    found = []
    for side in reversed(x.shape[1:]):
        found.append(Tensor(elementwise(TABLE["remainder"], where, max(1, side))))
        where = elementwise(TABLE["floor_divide"], where, max(1, side))
    return (Tensor(where), *reversed(found))


def _is_read(flags: Tensor) -> bool:
    """Whether bools are read themselves, and not how many are true: on the cpu, and where they are few."""
    return isinstance(flags.device, CpuDevice) or flags.size <= FEW_FLAGS


def places_of_true(flags: Tensor) -> Tensor:
    """The places, int32, of what is true in bools of one dimension. Their number is read, so this waits."""
    if _is_read(flags):
        return place("nonzero", converted(read(flags.node).nonzero()[0], dtypes.int32), flags.device)
    from .sorting import searchsorted

    length = flags.size
    so_far = Tensor(primitives.scan(TABLE["cumulative_sum"], primitives.cast(flags.node, dtypes.int32), 0))
    count = int(so_far[length - 1])
    # The n-th true one is where the count becomes n.
    return searchsorted(
        so_far, Tensor(elementwise(_ADD, primitives.iota(count, dtypes.int32, flags.device), 1))
    )


_ADD, _MULTIPLY, _LESS = TABLE["add"], TABLE["multiply"], TABLE["less"]
_MAXIMUM, _MINIMUM = TABLE["maximum"], TABLE["minimum"]
