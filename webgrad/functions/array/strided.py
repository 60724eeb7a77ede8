"""Views that show elements at other distances: windows along an axis, and any strides.

In: a tensor. Out: views of it. A write is refused where an element is there several times.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ArgumentError, ShapeError
from ...ops import moves
from ...ops.shapes import normalise_axis
from ...ops.views import layout
from ...tensor import Tensor, view
from .creation import as_shape, as_tensor
from .reshaping import whole


def sliding_windows(x: Tensor, size: int, step: int = 1, axis: int = -1) -> Tensor:
    """Windows of `size` elements along an axis, `step` apart: the axis counts them, a last one has elements.

    >>> wg.sliding_windows(wg.asarray([1, 2, 3, 4, 5]), 3, 2).tolist()
    [[1, 2, 3], [3, 4, 5]]
    """
    x = as_tensor("sliding_windows", x)
    along = normalise_axis("sliding_windows", axis, x.ndim)
    size = whole("sliding_windows", "the size", size)
    step = whole("sliding_windows", "the step", step)
    if size < 0 or step < 1:
        raise ArgumentError(f"sliding_windows: size {size} and step {step}: they are 0 and 1 at least")
    if size > x.shape[along]:
        raise ShapeError(f"sliding_windows: {size} elements of axis {along} of {x.shape}, which has fewer")
    return view(x, (moves.windows, (along, size, step)))


def as_strided(x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor:
    """A view of x's elements, taken in order, by their distances along each axis, from `offset` on.

    Distances count elements, not bytes as in NumPy.

    >>> wg.as_strided(wg.arange(6), (2, 2), (3, 1), 1).tolist()
    [[1, 2], [4, 5]]
    """
    x = as_tensor("as_strided", x)
    sizes = as_shape("as_strided", tuple(shape))
    steps = tuple(whole("as_strided", "a stride", each) for each in strides)
    first = whole("as_strided", "the offset", offset)
    if len(sizes) != len(steps) or first < 0 or any(each < 0 for each in steps):
        raise ArgumentError(
            f"as_strided: {len(sizes)} sizes with the strides {steps} from {first}: give each a "
            "stride, 0 or more"
        )
    if not moves.is_dense(x.shape, layout(x).strides):
        raise ShapeError(
            f"as_strided of a view of shape {x.shape} whose elements are not in order in memory: take "
            "x.clone(), whose elements are"
        )
    last = first + sum(step * (size - 1) for size, step in zip(sizes, steps, strict=True))
    if 0 not in sizes and last >= x.size:
        raise ShapeError(
            f"as_strided: a tensor of {x.size} elements has none at {last}, which the shape {sizes} with the "
            f"strides {steps} from {first} reaches"
        )
    return view(x, (moves.strided, (sizes, steps, first)), kind="strict")
