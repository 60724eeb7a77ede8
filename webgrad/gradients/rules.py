"""The functions that gradient rules in the table's rows call.

A rule is text over these functions and webgrad's own; g is the gradient of the result y, and a, b, c are the
inputs. In: tensors. Out: tensors of an input's shape. All are made of ops that have rules themselves, so
derivatives go to any order.
"""

# ruff: noqa: F401  (what is imported and used nowhere here is named in rows)

from __future__ import annotations

import math

from ..functions.array.elementwise import (
    cos,
    cosh,
    erfc,
    exp,
    floor_divide,
    log,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    where,
)
from ..functions.array.reductions import fold
from ..functions.array.reshaping import axis_slice
from ..functions.convolution.windows import cropped_or_padded
from ..functions.fourier.transform import half_of_real, half_weighted, real_from_half, transformed
from ..graph.op import SCALAR
from ..graph.trace import is_runtime
from ..ops import primitives
from ..ops.references import GELU_CUBIC, GELU_SCALE
from ..tensor import Tensor
from .attention import attended
from .order import (
    kept_rows,
    largest_base,
    largest_update,
    last_rows,
    others_product,
    rows_of,
    running_extreme,
    running_product,
    sum_to_come,
    untaken,
    untaken_along,
)

LOG_2, LOG_10 = math.log(2), math.log(10)
TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
Shape = tuple[int, ...]
Axes = tuple[int, ...]


# Maps


def summed_to(g: Tensor, shape: Shape) -> Tensor:
    """The sum over what was repeated to get from `shape` to g's."""
    if g.shape == shape:
        return g
    more = g.ndim - len(shape)
    axes = (*range(more), *(more + at for at, size in enumerate(shape) if size == 1 != g.shape[more + at]))
    return Tensor(primitives.reshape(fold("sum", g, axes).node, shape))


def _is_number(x: Tensor) -> bool:
    """Whether it is a scalar that the host knows, and no gradient of it is wanted."""
    return x.node.sig.op is SCALAR and x.node.history is None


def power_base(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The gradient of a ** b for a; a number known to the host makes the simpler power."""
    if _is_number(b) and not is_runtime(b.node.storage):
        exponent = float(b.node.storage)
        return g * 0.0 if exponent == 0 else g * exponent * a ** (exponent - 1)
    return where(b == 0, 0.0, g * b * a ** where(b == 0, 1.0, b - 1))


def power_exponent(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The gradient of a ** b for b; 0 ** b is constant for b above 0."""
    level = (a == 0) & (b >= 0)
    return where(level, 0.0, g * y * log(where(level, 1.0, a)))


def larger(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The gradient of maximum(a, b) for a, and of minimum(b, a) for b; equal ones share it."""
    return where(a < b, 0.0, where(a == b, g * 0.5, g))


def remainder_divisor(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The gradient of a % b for b. Only an infinite remainder equals its divisor, then added once."""
    return where(y == b, g, -g * floor_divide(a, b))


def angle_slope(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """g / (a² + b²); at the origin, where there is no angle, 0."""
    square = a * a + b * b
    origin = square == 0
    return where(origin, 0.0, g / where(origin, 1.0, square))


def gelu_slope(x: Tensor) -> Tensor:
    """Φ(x) + x φ(x)."""
    return 0.5 * erfc(x * -math.sqrt(0.5)) + x * exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))


def gelu_tanh_slope(x: Tensor) -> Tensor:
    """The derivative of x sigmoid(u), u being twice what tanh is taken of."""
    share = sigmoid(GELU_SCALE * (x + GELU_CUBIC * x * x * x))
    return share + x * share * (1 - share) * (GELU_SCALE * (1 + 3 * GELU_CUBIC * x * x))


# Movement


def as_real(g: Tensor) -> Tensor:
    """Complex numbers as pairs."""
    return Tensor(primitives.as_real(g.node))


def as_complex(g: Tensor) -> Tensor:
    """Pairs as complex numbers."""
    return Tensor(primitives.as_complex(g.node))


def reshaped(g: Tensor, shape: Shape) -> Tensor:
    """The same elements in another shape."""
    return Tensor(primitives.reshape(g.node, shape))


def permuted_back(g: Tensor, axes: Axes) -> Tensor:
    """g with the axes permuted back."""
    return Tensor(primitives.permute(g.node, tuple(axes.index(each) for each in range(len(axes)))))


def unpadded(g: Tensor, widths: tuple[tuple[int, int], ...]) -> Tensor:
    """g without the padding."""
    return Tensor(cropped_or_padded(g.node, tuple((-before, -after) for before, after in widths)))


def padding_of(g: Tensor, widths: tuple[tuple[int, int], ...]) -> Tensor:
    """The sum over the padding."""
    return fold("sum", g, tuple(range(g.ndim))) - fold("sum", unpadded(g, widths), tuple(range(g.ndim)))


def unsliced(g: Tensor, shape: Shape, ranges: tuple[tuple[int, int, int], ...]) -> Tensor:
    """g where the slice was, zeros elsewhere."""
    for axis, (size, (start, _, step)) in enumerate(zip(shape, ranges, strict=True)):
        g = spread_out(g, axis, step)
        g = _padded(g, axis, start, size - start - g.shape[axis])
    return g


def spread_out(g: Tensor, axis: int, step: int) -> Tensor:
    """g with step - 1 zeros between the elements of an axis."""
    if step == 1 or g.shape[axis] == 0:
        return g
    count = g.shape[axis]
    g = reshaped(g, (*g.shape[: axis + 1], 1, *g.shape[axis + 1 :]))
    g = _padded(g, axis + 1, 0, step - 1)
    g = reshaped(g, (*g.shape[:axis], count * step, *g.shape[axis + 2 :]))
    return _padded(g, axis, 0, 1 - step)


def _padded(g: Tensor, axis: int, before: int, after: int) -> Tensor:
    """Zeros at both ends of an axis; with negative widths elements are cut off there."""
    widths = tuple((before, after) if at == axis else (0, 0) for at in range(g.ndim))
    return Tensor(cropped_or_padded(g.node, widths))


def flipped(g: Tensor, axes: Axes) -> Tensor:
    """g reversed along some axes."""
    return Tensor(primitives.flip(g.node, axes))


def unwindowed(g: Tensor, shape: Shape, axis: int, size: int, stride: int, dilation: int) -> Tensor:
    """The sum of all windows, each at its elements; `size` terms for an element, and nothing is stored.

    Windows that touch but do not overlap are the elements themselves. Else a window over the gradients, with
    zeros between the strides, has for the element u of it tap size - 1 - u: a diagonal.
    """
    count, length = g.shape[axis], shape[axis]
    last = g.ndim - 1
    order = (*range(axis + 1), last, *range(axis + 1, last))
    if stride == size and dilation == 1:
        g = Tensor(primitives.permute(g.node, order))
        g = reshaped(g, (*shape[:axis], count * size, *shape[axis + 1 :]))
        return _padded(g, axis, 0, length - count * size)
    g = spread_out(g, axis, stride)
    reach = dilation * (size - 1)
    g = _padded(g, axis, reach, length - g.shape[axis])
    backwards = primitives.flip(g.node, (last,))
    windows = primitives.window(backwards, axis, size, 1, dilation)  # (…, length, …, tap backwards, element)
    pairs = primitives.reshape(windows, (*windows.sig.shape[:-2], size * size))
    diagonal = primitives.slice_(
        pairs, (*((0, each, 1) for each in pairs.sig.shape[:-1]), (0, size * size, size + 1))
    )
    return fold("sum", Tensor(diagonal), (last,))


# Computed indices


def untaken_along_broadcast(g: Tensor, shape: Shape, index: Tensor, axis: int) -> Tensor:
    """The gradient of `take_along`, summed over the axes that were broadcast."""
    whole = (*g.shape[:axis], shape[axis], *g.shape[axis + 1 :])
    return summed_to(untaken_along(g, whole, index, axis), shape)


def part_of(g: Tensor, xs: tuple[Tensor, ...], axis: int, at: int) -> Tensor:
    """The part of a concatenation that input `at` is."""
    start = sum(each.shape[axis] for each in xs[:at])
    return Tensor(axis_slice(g.node, axis, start, start + xs[at].shape[axis]))


# Reductions


def unfolded(g: Tensor, shape: Shape, axes: Axes) -> Tensor:
    """A reduction's gradient, repeated for every element that it reduced."""
    sizes = tuple(1 if at in axes else size for at, size in enumerate(shape))
    return Tensor(primitives.expand(primitives.reshape(g.node, sizes), shape))


def extreme(g: Tensor, y: Tensor, a: Tensor, axes: Axes) -> Tensor:
    """A maximum's or minimum's gradient goes to the elements that equal it, in equal parts."""
    hit = a == unfolded(y, a.shape, axes)
    count = fold("sum", hit.astype(a.dtype), axes)
    return where(hit, unfolded(g / count, a.shape, axes), 0.0)


# Products


def first_factor(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The gradient of a @ b for a."""
    return summed_to(g @ b.mT, a.shape)


def second_factor(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The gradient of a @ b for b. Where all batches of a share b, their rows are one matrix."""
    if b.ndim == 2 and a.ndim > 2:
        rows = math.prod(a.shape[:-1])
        a, g = reshaped(a, (rows, a.shape[-1])), reshaped(g, (rows, g.shape[-1]))
    return summed_to(a.mT @ g, b.shape)
