"""Pieces joined, cut out and put in, by NumPy's names: `append`, `insert`, `delete`, `array_split` …

In: tensors, and indices that the host knows. Out: tensors. What stands where is decided on the host, so that
the elements move in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError, IndexingError, ShapeError
from ...ops.shapes import normalise_axis
from ...tensor import Tensor
from .creation import as_tensor, asarray
from .indexing import nonzero, take
from .manipulation import concat, split, stack
from .reshaping import broadcast_to, expand_dims, flatten, flip, moveaxis, reshape, whole


def beside(x: Tensor, value: Any) -> Tensor:
    """A tensor, or numbers and lists as one on the device of x."""
    return value if isinstance(value, Tensor) else asarray(value, device=x.device)


def array_split(x: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """`split` into a number of parts that need not be equal: the first ones have one element more.

    >>> [each.tolist() for each in wg.array_split(wg.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = as_tensor("array_split", x)
    if not hasattr(indices_or_sections, "__index__"):
        return split(x, indices_or_sections, axis)
    count = whole("array_split", "the number of parts", indices_or_sections)
    if count < 1:
        raise ArgumentError(f"array_split into {count} parts: there must be one at least")
    size, more = divmod(x.shape[normalise_axis("array_split", axis, x.ndim)], count)
    return split(x, [size * each + min(each, more) for each in range(1, count)], axis)


def hsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """`split` along the second axis; of one dimension along the only one.

    >>> [each.tolist() for each in wg.hsplit(wg.asarray([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    return _split("hsplit", x, indices_or_sections, 1)


def vsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """`split` along the first axis of two or more.

    >>> [each.tolist() for each in wg.vsplit(wg.asarray([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return _split("vsplit", x, indices_or_sections, 0)


def dsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """`split` along the third axis.

    >>> [each.shape for each in wg.dsplit(wg.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split("dsplit", x, indices_or_sections, 2)


def _split(op: str, x: Any, indices_or_sections: int | Sequence[int], axis: int) -> list[Tensor]:
    x = as_tensor(op, x)
    least = 1 if axis == 1 else max(axis + 1, 2)
    if x.ndim < least:
        raise ShapeError(f"{op} needs {least} dimensions or more, not the shape {x.shape}; use split")
    return split(x, indices_or_sections, min(axis, x.ndim - 1))


def atleast_1d(*tensors: Tensor) -> Any:
    """Tensors with one axis at least; of several a tuple.

    >>> wg.atleast_1d(wg.asarray(3)).shape
    (1,)
    """
    return _each("atleast_1d", lambda x: reshape(x, (1,)) if x.ndim < 1 else x, tensors)


def atleast_2d(*tensors: Tensor) -> Any:
    """Tensors with two axes at least: what has fewer is a row; of several a tuple.

    >>> wg.atleast_2d(wg.arange(3)).shape
    (1, 3)
    """
    return _each("atleast_2d", lambda x: reshape(x, (1, -1)) if x.ndim < 2 else x, tensors)


def atleast_3d(*tensors: Tensor) -> Any:
    """Tensors with three axes at least: a row gets one before and one after, a matrix one after.

    >>> wg.atleast_3d(wg.arange(3)).shape, wg.atleast_3d(wg.ones((2, 3))).shape
    ((1, 3, 1), (2, 3, 1))
    """
    return _each("atleast_3d", _with_depth, tensors)


def _with_depth(x: Tensor) -> Tensor:
    if x.ndim > 2:
        return x
    return expand_dims(x, 2) if x.ndim == 2 else reshape(x, (1, -1, 1))


def _each(op: str, change: Callable[[Tensor], Tensor], tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    found = tuple(change(as_tensor(op, each)) for each in tensors)
    return found[0] if len(found) == 1 else found


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors joined along the third axis.

    >>> wg.dstack([wg.asarray([1, 2]), wg.asarray([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat([_with_depth(as_tensor("dstack", each)) for each in tensors], 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors as columns, and matrices, side by side.

    >>> wg.column_stack([wg.asarray([1, 2]), wg.asarray([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    given = [as_tensor("column_stack", each) for each in tensors]
    return concat([reshape(each, (-1, 1)) if each.ndim < 2 else each for each in given], 1)


def fliplr(x: Tensor) -> Tensor:
    """The elements in reverse order along the second axis.

    >>> wg.fliplr(wg.asarray([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    return flip(x, 1)


def flipud(x: Tensor) -> Tensor:
    """The elements in reverse order along the first axis.

    >>> wg.flipud(wg.asarray([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    return flip(x, 0)


def append(x: Tensor, values: Any, axis: int | None = None) -> Tensor:
    """x with values behind it along an axis; without one both are flattened.

    >>> wg.append(wg.asarray([1, 2]), [3]).tolist()
    [1, 2, 3]
    """
    x = as_tensor("append", x)
    values = beside(x, values)
    return concat([flatten(x), flatten(values)]) if axis is None else concat([x, values], axis)


def insert(x: Tensor, index: Any, values: Any, axis: int | None = None) -> Tensor:
    """x with values put in before an index of an axis, or before several; without an axis x is flattened.

    >>> wg.insert(wg.asarray([1, 2, 3]), [1, 3], [10, 30]).tolist()
    [1, 10, 2, 3, 30]
    """
    x = as_tensor("insert", x)
    x, along = (flatten(x), 0) if axis is None else (x, normalise_axis("insert", axis, x.ndim))
    size, added = x.shape[along], beside(x, values)
    places = _places("insert", index, size, size + 1)
    if isinstance(places, int):
        added = reshape(added, (1,) * (x.ndim - added.ndim) + added.shape)
        added = moveaxis(added, 0, along)
        places = [places] * added.shape[along]
    added = broadcast_to(added, (*x.shape[:along], len(places), *x.shape[along + 1 :]))
    order: list[int] = []
    for before in range(size + 1):
        order += [size + number for number, place in enumerate(places) if place == before]
        order += [before] if before < size else []
    return take(concat([x, added], along), order, along)


def delete(x: Tensor, index: Any, axis: int | None = None) -> Tensor:
    """x without what is at an index of an axis, at several, in a slice or a mask; without an axis flattened.

    >>> wg.delete(wg.asarray([1, 2, 3, 4]), [0, 2]).tolist()
    [2, 4]
    """
    x = as_tensor("delete", x)
    x, along = (flatten(x), 0) if axis is None else (x, normalise_axis("delete", axis, x.ndim))
    places = _places("delete", index, x.shape[along], x.shape[along])
    gone = {places} if isinstance(places, int) else set(places)
    return take(
        x,
        asarray([each for each in range(x.shape[along]) if each not in gone], "int32", device=x.device),
        along,
    )


def _places(op: str, index: Any, size: int, limit: int) -> Any:
    """Indices counted from the front, or one index: what `size` elements have and is below `limit`."""
    if isinstance(index, slice):
        return list(range(*index.indices(size)))
    if hasattr(index, "tolist"):
        index = index.tolist()
    if isinstance(index, (list, tuple)):
        if index and all(isinstance(each, bool) for each in index):
            if len(index) != size:
                raise IndexingError(f"{op}: a mask of {len(index)} elements for an axis of {size}")
            return [place for place, chosen in enumerate(index) if chosen]
        return [_place(op, each, size, limit) for each in index]
    return _place(op, index, size, limit)


def _place(op: str, index: Any, size: int, limit: int) -> int:
    place = whole(op, "an index", index)
    if not -size <= place < limit:
        raise IndexingError(f"{op}: there is no index {place} in an axis of {size} elements")
    return place + size if place < 0 else place


def trim_zeros(x: Tensor, trim: str = "fb") -> Tensor:
    """A line without its zeros at the front ("f"), at the back ("b"), or both; it computes x, and waits.

    >>> wg.trim_zeros(wg.asarray([0, 0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    x = as_tensor("trim_zeros", x)
    if x.ndim != 1:
        raise ShapeError(f"trim_zeros takes a tensor of one dimension, not the shape {x.shape}")
    if not trim or set(trim.lower()) - {"f", "b"}:
        raise ArgumentError(f"trim_zeros: trim is made of 'f' and 'b', and is not {trim!r}")
    places = nonzero(x)[0].tolist()
    if not places:
        return x[:0]
    return x[places[0] if "f" in trim.lower() else 0 : places[-1] + 1 if "b" in trim.lower() else x.shape[0]]


def apply_along_axis(function: Callable[..., Any], axis: int, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A function of lines, called with each line along an axis; what it gives stands in place of the line.

    It is called once a line, which is slow for many: functions take `axis` themselves.

    >>> wg.apply_along_axis(lambda line: line.max() - line.min(), 1, wg.asarray([[1, 4], [2, 9]])).tolist()
    [3, 7]
    """
    x = as_tensor("apply_along_axis", x)
    along = normalise_axis("apply_along_axis", axis, x.ndim)
    lines = moveaxis(x, along, -1)
    rows = reshape(lines, (-1, lines.shape[-1]))
    if not rows.shape[0]:
        raise ShapeError(f"apply_along_axis: there are no lines along axis {axis} of the shape {x.shape}")
    found = stack([beside(x, function(rows[each], *args, **kwargs)) for each in range(rows.shape[0])])
    made = reshape(found, (*lines.shape[:-1], *found.shape[1:]))
    extra = found.ndim - 1
    order = [*range(along), *range(x.ndim - 1, x.ndim - 1 + extra), *range(along, x.ndim - 1)]
    return made.permute(*order)
