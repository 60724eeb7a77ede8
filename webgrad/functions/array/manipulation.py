"""Tensors joined, cut, repeated, padded and masked.

In: tensors, axes and sizes as Python numbers. Out: tensors made of movement nodes and of conditions on
indices, which fuse with whatever reads them. Everything is checked at the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...arrays import has_numpy, np
from ...dtypes import DType, as_dtype
from ...errors import DTypeError, ShapeError
from ...evaluate.evaluate import read
from ...graph.node import Node
from ...ops import moves, primitives
from ...ops.known import known_arrays, node_of
from ...ops.shapes import check_kind, normalise_axis
from ...tensor import Tensor, view
from ...values import Values
from .creation import as_tensor, asarray
from .elementwise import abs as absolute
from .elementwise import clip, where
from .reshaping import expand_dims, flatten, moveaxis, part, reshape, squeeze, whole, wholes

MAX_CONCAT_INPUTS = 6  # of one concat: a kernel binds at most eight buffers on every device


def roll(x: Tensor, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """The elements shifted along axes, cyclically; without axes the flattened tensor is shifted.

    >>> wg.roll(wg.asarray([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """
    x = as_tensor("roll", x)
    shifts = wholes("roll", "a shift", shift)
    if axis is None:
        flat = _rolled_along(Tensor(primitives.reshape(x.node, (x.size,))), 0, sum(shifts))
        return Tensor(primitives.reshape(flat.node, x.shape))
    axes = [normalise_axis("roll", each, x.ndim) for each in wholes("roll", "an axis", axis)]
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll by {shift} along {axis}: give as many shifts as axes, or one of either")
    for each, steps in zip(axes, shifts, strict=True):
        x = _rolled_along(x, each, steps)
    return +x


def _rolled_along(x: Tensor, axis: int, shift: int) -> Tensor:
    size = x.shape[axis]
    cut = -shift % size if size else 0
    if cut == 0:
        return x
    tail, head = part(x, axis, cut, size), part(x, axis, 0, cut)
    return Tensor(primitives.concat([tail.node, head.node], axis))


# Joining and cutting


def _several(op: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor) or not isinstance(tensors, Sequence):
        raise DTypeError(f"{op} takes a list or tuple of tensors, not a {type(tensors).__name__}")
    if not tensors:
        raise ShapeError(f"{op} of no tensors: give at least one")
    return [as_tensor(op, each) for each in tensors]


def concat(arrays: Sequence[Tensor], axis: int | None = 0) -> Tensor:
    """Tensors joined along an existing axis; None flattens them first.

    >>> wg.concat([wg.asarray([1, 2]), wg.asarray([3])]).tolist()
    [1, 2, 3]
    """
    return _concatenated("concat", _several("concat", arrays), axis)


def _concatenated(op: str, tensors: list[Tensor], axis: int | None) -> Tensor:
    if axis is None:
        tensors, axis = [Tensor(primitives.reshape(each.node, (each.size,))) for each in tensors], 0
    first = tensors[0].shape
    place = normalise_axis(op, axis, len(first))
    for each in tensors:
        if each.ndim != len(first) or any(
            a != b for at, (a, b) in enumerate(zip(first, each.shape, strict=True)) if at != place
        ):
            raise ShapeError(
                f"{op} along axis {axis}: the shapes {first} and {each.shape} must be equal on every other "
                "axis"
            )
    return _joined(primitives.common(op, [each.node for each in tensors]), place)


def _joined(nodes: Sequence[Node], place: int) -> Tensor:
    """Nodes of one dtype along an axis; few elements that are known at once."""
    arrays = known_arrays(nodes)
    if arrays is not None:
        return Tensor(node_of(np.concatenate(arrays, place), nodes[0]))
    while len(nodes) > MAX_CONCAT_INPUTS:
        starts = range(0, len(nodes), MAX_CONCAT_INPUTS)
        nodes = [primitives.concat(nodes[start : start + MAX_CONCAT_INPUTS], place) for start in starts]
    return Tensor(primitives.concat(nodes, place))


def stack(arrays: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis.

    >>> wg.stack([wg.asarray([1, 2]), wg.asarray([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    found = _several("stack", arrays)
    first = found[0].shape
    for each in found:
        if each.shape != first:
            raise ShapeError(
                f"stack: the shapes {first} and {each.shape} differ; use concat, or pad one of them"
            )
    place = normalise_axis("stack", axis, len(first) + 1)
    nodes = primitives.common("stack", [each.node for each in found])
    known = known_arrays(nodes)
    if known is not None:
        return Tensor(node_of(np.stack(known, place), nodes[0]))
    apart = (*first[:place], 1, *first[place:])
    return _joined([primitives.reshape(each, apart) for each in nodes], place)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 1; vectors and numbers along axis 0.

    >>> wg.hstack([wg.asarray([1]), wg.asarray([2, 3])]).tolist()
    [1, 2, 3]
    """
    found = [flatten(each) if each.ndim == 0 else each for each in _several("hstack", tensors)]
    return _concatenated("hstack", found, 0 if found[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along axis 0; a vector is a row.

    >>> wg.vstack([wg.asarray([1, 2]), wg.asarray([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    found = _several("vstack", tensors)
    return _concatenated("vstack", [reshape(each, (1, -1)) if each.ndim < 2 else each for each in found], 0)


def split(x: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts along an axis: a number of equal parts, or cut at these indices, as in NumPy.

    >>> [each.tolist() for each in wg.split(wg.arange(5), [2, 3])]
    [[0, 1], [2], [3, 4]]
    """
    x = as_tensor("split", x)
    place = normalise_axis("split", axis, x.ndim)
    size = x.shape[place]
    if isinstance(indices_or_sections, (Sequence, np.ndarray)):
        cuts = [slice(0, each).indices(size)[1] for each in wholes("split", "an index", indices_or_sections)]
        return [part(x, place, a, max(a, b)) for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    count = whole("split", "the number of parts", indices_or_sections)
    if count < 1 or size % count:
        raise ShapeError(
            f"split: axis {axis} of shape {x.shape} has size {size}, which does not make {count} equal "
            "parts; use chunk, or give the indices to cut at"
        )
    length = size // count
    return [part(x, place, number * length, (number + 1) * length) for number in range(count)]


def chunk(x: Tensor, chunks: int, axis: int = 0) -> list[Tensor]:
    """At most `chunks` parts along an axis, all but the last of one size, as in PyTorch.

    >>> [each.tolist() for each in wg.chunk(wg.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = as_tensor("chunk", x)
    place = normalise_axis("chunk", axis, x.ndim)
    count = whole("chunk", "the number of parts", chunks)
    if count < 1:
        raise ShapeError(f"chunk: the number of parts must be 1 or more, not {count}")
    size = x.shape[place]
    length = -(-size // count)
    if length == 0:
        return [x] * count
    return [part(x, place, at, min(at + length, size)) for at in range(0, size, length)]


def unstack(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis.

    >>> [each.tolist() for each in wg.unstack(wg.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    x = as_tensor("unstack", x)
    place = normalise_axis("unstack", axis, x.ndim)
    return tuple(squeeze(part(x, place, at, at + 1), place) for at in range(x.shape[place]))


# Repeating


def repeat(x: Tensor, repeats: int | Sequence[int] | Tensor, axis: int | None = None) -> Tensor:
    """Each element of an axis repeated, by one number for all or one for each; without an axis, flattened.

    Numbers in a tensor are read first, since the result's shape depends on them.

    >>> wg.repeat(wg.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    >>> wg.repeat(wg.asarray([1, 2, 3]), [2, 0, 1]).tolist()
    [1, 1, 3]
    """
    x = as_tensor("repeat", x)
    if axis is None:
        return repeat(Tensor(primitives.reshape(x.node, (x.size,))), repeats, 0)
    place = normalise_axis("repeat", axis, x.ndim)
    size = x.shape[place]
    counts = _counts(read(repeats.node) if isinstance(repeats, Tensor) else repeats)
    least = min(counts, default=0)
    if least < 0:
        raise ShapeError(f"repeat: repeats must be 0 or more, not {least}")
    before, after = x.shape[:place], x.shape[place + 1 :]
    if len(counts) == 1:
        node = primitives.reshape(x.node, (*before, size, 1, *after))
        times = int(counts[0])
        node = primitives.expand(node, (*before, size, times, *after))
        return Tensor(primitives.reshape(node, (*before, size * times, *after)))
    if len(counts) != size:
        raise ShapeError(
            f"repeat: axis {axis} of shape {x.shape} has size {size}, and {len(counts)} repeats were given"
        )
    index = asarray(_repeated(counts), dtypes.int32, device=x.device)
    return Tensor(primitives.take(x.node, index.node, place))


def _counts(repeats: Any) -> Sequence[int]:
    """The repeats as a list; an array of integers is not checked one by one, since it may be long."""
    if isinstance(repeats, (np.ndarray, Values)) and repeats.dtype.kind in "iu" and repeats.ndim < 2:
        found: int | list[int] = repeats.tolist()
        return found if isinstance(found, list) else [found]
    return wholes("repeat", "a number of times", repeats)


def _repeated(counts: Sequence[int]) -> Any:
    """The indices to take: 0 repeated by the first count, 1 by the second, …"""
    if has_numpy():
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return [place for place, count in enumerate(counts) for _ in range(count)]


repeat_interleave = repeat


def tile(x: Tensor, repetitions: int | Sequence[int]) -> Tensor:
    """The tensor repeated along each axis.

    >>> wg.tile(wg.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = as_tensor("tile", x)
    counts = wholes("tile", "a number of times", repetitions)
    if any(count < 0 for count in counts):
        raise ShapeError(f"tile: repetitions must be 0 or more, not {min(counts)}")
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + x.shape
    node = primitives.reshape(x.node, tuple(each for size in sizes for each in (1, size)))
    paired = zip(counts, sizes, strict=True)
    node = primitives.expand(node, tuple(each for pair in paired for each in pair))
    return Tensor(
        primitives.reshape(node, tuple(count * size for count, size in zip(counts, sizes, strict=True)))
    )


# Padding


def pad(
    x: Tensor,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: str = "constant",
    constant_values: float = 0,
) -> Tensor:
    """Elements added before and after each axis: a constant, the edge repeated, or the tensor reflected.

    Widths as in NumPy: one number, (before, after) for every axis, or one such pair per axis.

    >>> wg.pad(wg.asarray([1, 2, 3]), (1, 2)).tolist()
    [0, 1, 2, 3, 0, 0]
    >>> wg.pad(wg.asarray([1, 2, 3]), 2, mode="reflect").tolist()
    [3, 2, 1, 2, 3, 2, 1]
    """
    x = as_tensor("pad", x)
    widths = _pad_widths(x, pad_width)
    if mode == "constant":
        return Tensor(primitives.pad(x.node, widths, constant_values))
    if mode not in ("edge", "reflect"):
        raise ShapeError(f'pad: mode must be one of "constant", "edge", "reflect", not {mode!r}')
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = _padded_from_own(x, axis, before, after, mode)
    return +x


def _pairs(given: Any, axes: int) -> list[tuple[Any, Any]]:
    """(before, after) for each axis; a ValueError where it is not clear."""
    several = isinstance(given, (list, tuple)) and any(isinstance(each, (list, tuple)) for each in given)
    pairs = [_pair(each) for each in (given if several else [given])]
    if several and not all(isinstance(each, (list, tuple)) for each in given):
        raise ValueError("numbers and pairs")
    if len(pairs) not in (1, axes):
        raise ValueError("neither one pair nor one for each axis")
    return pairs * axes if len(pairs) == 1 else pairs


def _pair(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, (list, tuple)):
        return given, given
    before, after = given if len(given) != 1 else (*given, *given)
    return before, after


def _pad_widths(x: Tensor, given: Any) -> tuple[tuple[int, int], ...]:
    try:
        pairs = _pairs(given.tolist() if hasattr(given, "tolist") else given, x.ndim)
    except ValueError:
        raise ShapeError(
            f"pad of a tensor of shape {x.shape} by {given!r}: give one width, (before, after), or such a "
            f"pair for each of the {x.ndim} axes"
        ) from None
    widths = tuple(
        (whole("pad", "a width", before), whole("pad", "a width", after)) for before, after in pairs
    )
    if any(width < 0 for pair in widths for width in pair):
        raise ShapeError(f"pad by {given!r}: widths are 0 or more; cut with x[1:-1]")
    return widths


def _padded_from_own(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """One axis padded: each new element repeats the edge or mirrors the axis."""
    size = x.shape[axis]
    if size == 0:
        raise ShapeError(f"pad: axis {axis} of shape {x.shape} is empty: there is no element to repeat")
    index = Tensor(primitives.iota(before + size + after, dtypes.int32, x.node.sig.device)) - before
    last = size - 1
    if mode == "edge" or last == 0:
        index = clip(index, 0, last)
    else:
        index = last - absolute(index % (2 * last) - last)
    return Tensor(primitives.take(x.node, index.node, axis))


# Triangles, diagonals, one-hot: conditions on the indices of an element


def _axis_indices(length: int, like: Tensor, axis: int = -1, dtype: DType = dtypes.int32) -> Tensor:
    """0, 1, 2, … along the last axis, or the last but one."""
    index = primitives.iota(length, dtype, like.node.sig.device)
    return Tensor(index if axis == -1 else primitives.reshape(index, (length, 1)))


def _zero(x: Tensor) -> int:
    return False if x.dtype is dtypes.bool else 0  # a plain 0 would make integers of bools


def _triangle(op: str, x: Any, k: int, lower: bool) -> Tensor:
    x = as_tensor(op, x)
    if x.ndim < 2:
        raise ShapeError(f"{op}: a tensor of shape {x.shape} is not a matrix; it needs two axes or more")
    k = whole(op, "the diagonal", k)
    rows, columns = _axis_indices(x.shape[-2], x, -2), _axis_indices(x.shape[-1], x)
    if k:
        rows = rows + k
    return where(columns <= rows if lower else columns >= rows, x, _zero(x))


def tril(x: Tensor, k: int = 0) -> Tensor:
    """The lower triangles of matrices, zeros above diagonal k.

    >>> wg.tril(wg.ones((2, 2), dtype=wg.int32)).tolist()
    [[1, 0], [1, 1]]
    """
    return _triangle("tril", x, k, lower=True)


def triu(x: Tensor, k: int = 0) -> Tensor:
    """The upper triangles of matrices, zeros below diagonal k.

    >>> wg.triu(wg.ones((2, 2), dtype=wg.int32)).tolist()
    [[1, 1], [0, 1]]
    """
    return _triangle("triu", x, k, lower=False)


def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonals of matrices, as the last axis of the result; a positive offset is above the main one.

    >>> wg.diagonal(wg.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    x = as_tensor("diagonal", x)
    first, second = (normalise_axis("diagonal", each, x.ndim) for each in (axis1, axis2))
    if first == second:
        raise ShapeError(
            f"diagonal: axis {axis1} and axis {axis2} of a tensor of shape {x.shape} are the same"
        )
    offset = whole("diagonal", "the offset", offset)
    matrices = moveaxis(x, (first, second), (-2, -1))
    rows, columns = matrices.shape[-2:]
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    # In a flat matrix the next element of a diagonal is one row and one column on.
    start = max(offset, 0) - min(offset, 0) * columns if length else 0
    stop = start + (length - 1) * (columns + 1) + 1 if length else 0
    return view(matrices, (moves.diagonal, (start, stop, columns + 1)))


def diag(x: Tensor, k: int = 0) -> Tensor:
    """The matrix that has a vector as its diagonal k, or the diagonal k of a matrix.

    >>> wg.diag(wg.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x = as_tensor("diag", x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag: a tensor of shape {x.shape} is neither a vector nor a matrix")
    k = whole("diag", "the diagonal", k)
    size = x.shape[0] + abs(k)
    padded = Tensor(primitives.pad(x.node, ((0, abs(k)),)))
    along = (
        reshape(padded, (size, 1)) if k >= 0 else padded
    )  # by row above the main diagonal, by column below
    return where(_axis_indices(size, x, -2) + k == _axis_indices(size, x), along, _zero(x))


def one_hot(x: Tensor, num_classes: int, *, dtype: Any = None) -> Tensor:
    """A new last axis with 1 at the index that each integer is, else 0; all 0 if it is out of range. int32.

    >>> wg.one_hot(wg.asarray([2, 0]), 3).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    x = as_tensor("one_hot", x)
    check_kind("one_hot", "iu", x.dtype)
    count = whole("one_hot", "the number of classes", num_classes)
    if count < 1:
        raise ShapeError(f"one_hot: num_classes must be 1 or more, not {count}")
    wide = x.dtype in (
        dtypes.uint32,
        dtypes.uint64,
        dtypes.int64,
    )  # these and int32 have no common 32-bit type
    places = _axis_indices(count, x, dtype=x.dtype if wide else dtypes.int32)
    hit = expand_dims(x, -1) == places
    return Tensor(primitives.cast(hit.node, dtypes.int32 if dtype is None else as_dtype(dtype)))
