"""Indexing: x[key] and x[key] = value with NumPy's keys and shapes, take, take_along_axis, nonzero.

In: a tensor and a key. Out: a tensor. A key is read once (`keys.py`): spans of the axes become movement, and
index arrays become one gather or scatter over the axes they index, merged.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from typing import Any

from ... import dtypes
from ...arrays import Array, np
from ...dtypes import DType
from ...errors import DeviceError, DTypeError, IndexingError, ShapeError
from ...graph.node import Node, scalar
from ...ops import primitives, shapes
from ...ops.host_arrays import converted, host_array
from ...ops.known import FEW, known_array, node_of
from ...ops.moves import Move, spread
from ...ops.primitives import elementwise
from ...ops.table import TABLE
from ...ops.views import share
from ...tensor import Tensor, view
from ...values import Values
from .creation import as_tensor
from .interop import place
from .keys import Selection, Span, checked, clamped, index_dtype, index_node, select, selected
from .masks import nonzero as nonzero

# Reading by a selection


def get_item(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    basic = _basic(key)
    if basic is not None:
        moves, count = _basic_moves(x.node.sig.shape, basic)
        array = known_array(x.node) if count <= FEW else None
        if array is None:
            return view(x, *moves)
        part = Tensor(node_of(array[key], x.node))
        share(x, part, "view", moves)
        return part
    if (one := _one_of_axis(key)) is not None:
        moves, _ = _basic_moves(x.node.sig.shape, one)
        return Tensor(reduce(lambda node, move: move[0](node, move[1]), moves, x.node))
    selection = select(x, key)
    if not selection.arrays:
        return view(x, *_moves(selection))
    return Tensor(_gather(_block(x.node, selection), selection))


def _basic(key: Any) -> tuple[Any, ...] | None:
    """A key of ints, slices, None and ... as a hashable tuple; None for any other key."""
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


def _one_of_axis(key: Any) -> tuple[Any, ...] | None:
    """A key of slices and a list of one int, as `x[:, [-1]]`, with this int and a new axis instead: what it
    selects is a copy all the same. None for any other key.
    """
    entries = key if key.__class__ is tuple else (key,)
    lists = [each for each in entries if each.__class__ is list]
    if len(lists) != 1 or len(lists[0]) != 1 or lists[0][0].__class__ is not int:
        return None
    if any(each.__class__ is int for each in entries):  # next to a list it is an array too
        return None
    at = next(place for place, each in enumerate(entries) if each is lists[0])
    return _basic((*entries[:at], lists[0][0], None, *entries[at + 1 :]))


@lru_cache(4096)
def _basic_moves(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[tuple[Move, ...], int]:
    """The moves of a basic key on a tensor of some shape, and how many elements it selects."""
    found = selected([slice(*each) if each.__class__ is tuple else each for each in key], shape)
    return _moves(found), math.prod(found.shape)


_SLICED = frozenset((int, type(None)))
_BASIC = frozenset((int, type(None), type(Ellipsis)))


def _moves(selection: Selection) -> tuple[Move, ...]:
    """The moves from a tensor to the elements in the spans, in the selection's shape."""
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
    sizes = [selection.shape[axis] for axis in selection.axes]
    index_shape(selection)  # raises where they do not broadcast
    dtype = index_dtype(math.prod(sizes))
    known: list[Array] = []
    nodes: list[Node] = []
    for at, each in enumerate(selection.arrays):
        stride = math.prod(sizes[at + 1 :])
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
    """Host indices on a device."""
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
    """x after x[key] = value."""
    known = _written_at_once(x.node, key, value)
    if known is not None:
        return Tensor(known)
    new = _value(x, value)
    masked = _by_mask(x, key, new)
    if masked is not None:
        return Tensor(masked)
    selection = select(x, key)
    if selection.arrays:
        new = _scattered(_block(x.node, selection), selection, new)
    return Tensor(_written(x.node, selection, _filling(new, selection.shape)))


def _written_at_once(x: Node, key: Any, value: Any) -> Node | None:
    """x with a basic key replaced by a number or a tensor, where all have few elements that are known."""
    if isinstance(value, Tensor):
        node = value.node
        is_same = node.sig.dtype is x.sig.dtype and node.sig.device is x.sig.device
        new: Any = known_array(node, FEW) if is_same else None
    else:
        new = value if _fits(value, x.sig.dtype) else None
    basic = None if new is None else _basic(key)
    old = None if basic is None else known_array(x, FEW)
    if basic is None or old is None:
        return None
    moves, _ = _basic_moves(x.sig.shape, basic)
    if new is not value:
        _filling(node, moves[-1][1])
    result = old.copy()
    result[key] = new
    return node_of(result, x)


def _fits(value: Any, dtype: DType) -> bool:
    """Whether NumPy writes a number as it is; of others, and of what is refused, `_value` knows more."""
    kind, given = dtype.kind, value.__class__
    if given is int and kind in "iu":
        low, high = dtype.limits
        return bool(low <= value <= high)
    if kind == "f":
        return given in (int, float) and not dtype.is_half and bool(-1e38 < value < 1e38)
    return given is bool and kind == "b"


def _value(x: Tensor, value: Any) -> Node:
    """The assigned value, as a node of x's dtype on its device."""
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
    """The assigned value without surplus leading axes of size 1; it must broadcast to a shape."""
    sizes = value.sig.shape
    extra = max(0, len(sizes) - len(shape))
    fits = all(size in (1, target) for size, target in zip(sizes[extra:][::-1], shape[::-1], strict=False))
    if not fits or any(size != 1 for size in sizes[:extra]):
        raise ShapeError(
            f"x[…] = value: a value of shape {sizes} does not broadcast to the selection's shape {shape}"
        )
    return primitives.reshape(value, sizes[extra:])


def _by_mask(x: Tensor, key: Any, value: Node) -> Node | None:
    """x[mask] = value, where all selected rows get the same value: a select, so the mask is not read."""
    if isinstance(key, Tensor) and key.dtype.kind == "b" and key.ndim and key.device is x.device:
        mask = key.node
    elif isinstance(key, np.ndarray) and key.dtype.kind == "b" and key.ndim:
        mask = place("x[mask]", key, x.device).node
    else:
        return None
    rank = len(mask.sig.shape)
    row = x.shape[rank:]
    sizes = value.sig.shape
    if mask.sig.shape != x.shape[:rank] or math.prod(sizes[: max(0, len(sizes) - len(row))]) != 1:
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
    sizes, counts = x.sig.shape, selection.counts
    if not math.prod(counts):
        return x
    upward = tuple(_upward(span) for span in selection.spans)
    whole_axes = [each == (0, size, 1) for each, size in zip(upward, sizes, strict=True)]
    if value.sig.size == 1:
        placed = primitives.reshape(value, ())
    else:
        region = primitives.reshape(primitives.expand(value, selection.shape), counts)
        placed = spread(primitives.flip(region, _backward(selection)), upward, sizes)
    if all(whole_axes):
        return primitives.expand(placed, sizes)
    # The mask has size 1 where an axis is replaced from end to end.
    ranges = tuple((0, 1, 1) if each else span for each, span in zip(whole_axes, upward, strict=True))
    bounds = tuple(1 if each else size for each, size in zip(whole_axes, sizes, strict=True))
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
    at = 0 if axis is None else shapes.normalise_axis("take", axis, max(x.ndim, 1))
    source = primitives.reshape(x.node, (x.size,)) if axis is None or not x.shape else x.node
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
        return clamped(index_node(op, indices, x), axis, shape)
    try:
        array = host_array(op, indices)
    except DTypeError as error:
        raise IndexingError(f"{op}: {indices!r} holds no indices: {error}") from None
    if array.dtype.kind not in "iu" and array.size:
        raise IndexingError(f"{op}: {array.dtype} values are not indices: use integers")
    return place(op, converted(checked(op, array, axis, shape), index_dtype(shape[axis])), x.device).node


_ADD, _MULTIPLY = TABLE["add"], TABLE["multiply"]
