"""Lines of numbers, by NumPy's names: `interp`, `convolve`, `polyval`, `unwrap`, windows.

In: tensors of one dimension; `unwrap` and `interp` take any number of points. Out: tensors.
"""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..errors import ArgumentError, ShapeError
from ..ops.shapes import check_kind
from ..tensor import Tensor
from .array.creation import arange, as_tensor, asarray
from .array.elementwise import abs as absolute
from .array.elementwise import clip, where
from .array.indexing import take
from .array.manipulation import concat
from .array.pieces import beside
from .array.products import dot, matmul, tensordot
from .array.reshaping import expand_dims, flatten, flip, part, reshape
from .array.scans import cumsum, diff
from .array.sorting import argsort, searchsorted
from .complex.parts import complex as of_parts
from .complex.parts import conj, imag, real
from .convolution.convolution import conv1d

MODES = ("full", "same", "valid")


def interp(
    x: Any,
    xp: Tensor,
    fp: Tensor,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> Tensor:
    """The values at x of the line through points (xp, fp), whose xp increase; beyond them `left` and `right`.

    Those are the first and the last value if they are not given. With a `period` the points repeat, and may
    be in any order.

    >>> wg.interp(wg.asarray([0.5, 5.0]), wg.asarray([0.0, 1.0]), wg.asarray([10.0, 20.0])).tolist()
    [15.0, 20.0]
    """
    xp, fp = _line("interp", xp), _line("interp", fp)
    if xp.shape != fp.shape or not xp.size:
        raise ShapeError(f"interp: points of shapes {xp.shape} and {fp.shape}: as many of both, one at least")
    x, xp, fp = (
        each if each.dtype.kind == "f" else each.astype(dtypes.float32) for each in (beside(xp, x), xp, fp)
    )
    if period is not None:
        x, xp = x % period, xp % period
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
    last = xp.shape[0] - 1
    place = clip(searchsorted(xp, x, side="right") - 1, 0, max(last - 1, 0))
    after = clip(place + 1, 0, last)
    start, width = take(xp, place), take(xp, after) - take(xp, place)
    low, high = take(fp, place), take(fp, after)
    share = where(width > 0, (x - start) / where(width > 0, width, 1), 0)
    found = low + clip(share, 0, 1) * (high - low)
    found = where(x < xp[0], fp[0] if left is None else left, found)
    found = where(x > xp[last], fp[last] if right is None else right, found)
    return where(x == x, found, x)  # NaN stays


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The number, int32, of the bin between edges in which each element lies; 0 is before the first edge.

    A bin has its lower edge, or with `right` its upper one. The edges increase or decrease.

    >>> wg.digitize(wg.asarray([0.5, 1.0, 9.0]), [0.0, 1.0, 2.0]).tolist()
    [1, 2, 3]
    """
    edges = bins if isinstance(bins, Tensor) else asarray(bins, device=getattr(x, "device", None))
    edges, x = _line("digitize", edges), beside(edges, x)
    side = "left" if right else "right"
    count = edges.shape[0]
    upwards = searchsorted(edges, x, side=side)
    if count < 2:
        return upwards
    return where(edges[0] <= edges[-1], upwards, count - searchsorted(flip(edges, 0), x, side=side))


def convolve(a: Tensor, v: Tensor, mode: str = "full") -> Tensor:
    """The sums of products of two lines, one of them reversed and moved along the other.

    `mode`: "full" wherever they meet, "same" as many as the longer one has, "valid" where they lie on each
    other.

    >>> wg.convolve(wg.asarray([1, 2, 3]), wg.asarray([0, 1, 0.5])).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    return _slid("convolve", a, v, mode, swapped=False)


def correlate(a: Tensor, v: Tensor, mode: str = "valid") -> Tensor:
    """The sums of products of two lines, one of them, conjugated, moved along the other.

    >>> wg.correlate(wg.asarray([1, 2, 3]), wg.asarray([0, 1, 0.5])).tolist()
    [3.5]
    """
    return _slid("correlate", a, conj(flip(_line("correlate", v), 0)), mode, swapped=True)


def _slid(op: str, a: Any, v: Any, mode: str, *, swapped: bool) -> Tensor:
    long, short = _line(op, a), _line(op, v)
    if mode not in MODES:
        raise ArgumentError(f"{op}: mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    if not long.size or not short.size:
        raise ShapeError(f"{op} of shapes {long.shape} and {short.shape}: neither may be empty")
    exchanged = short.size > long.size
    if exchanged:
        long, short = short, long
    count = short.size - 1
    found = _full(long, short)
    if mode == "full":
        return found
    if mode == "valid":
        return found[count : found.shape[0] - count]
    first = count - count // 2 if swapped and exchanged else count // 2
    return found[first : first + long.size]


def _full(long: Tensor, short: Tensor) -> Tensor:
    """All sums of products that there are."""
    if "c" in (long.dtype.kind, short.dtype.kind):
        a, b, c, d = real(long), imag(long), real(short), imag(short)
        return of_parts(_full(a, c) - _full(b, d), _full(a, d) + _full(b, c))
    kind = (long[:1] * short[:1]).dtype
    line, weights = (reshape(each.astype(kind), (1, 1, -1)) for each in (long, flip(short, 0)))
    return reshape(conv1d(line, weights, padding=short.size - 1), (-1,))


def unwrap(x: Tensor, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """Angles along an axis without jumps: where one is larger than half a period, periods are added.

    >>> print(wg.unwrap(wg.asarray([0.0, 3.0, -3.0])).numpy().round(4))
    [0.     3.     3.2832]
    """
    x = as_tensor("unwrap", x)
    check_kind("unwrap", "biuf", x.dtype)
    x = x if x.dtype.kind == "f" else x.astype(dtypes.float32)
    if x.shape[axis] < 2:
        return +x
    steps, half = diff(x, axis=axis), period / 2
    short = (steps + half) % period - half
    short = where((short == -half) & (steps > 0), half, short)
    added = where(absolute(steps) < max(half, discont or 0), 0.0, short - steps)
    first = part(x, axis % x.ndim, 0, 1)
    return concat([first, part(x, axis % x.ndim, 1, x.shape[axis]) + cumsum(added, axis)], axis)


def polyval(p: Any, x: Any) -> Tensor:
    """The values of a polynomial, whose coefficients begin with that of the highest power.

    >>> wg.polyval([1, 0, -1], wg.asarray([2.0, 3.0])).tolist()
    [3.0, 8.0]
    """
    like = p if isinstance(p, Tensor) else as_tensor("polyval", x)
    factors, x = beside(like, p), beside(like, x)
    found: Tensor = x * 0
    for each in range(factors.shape[0]):
        found = found * x + factors[each]
    return found


def polyder(p: Any, m: int = 1) -> Tensor:
    """The coefficients of a polynomial's derivative.

    >>> wg.polyder(wg.asarray([1.0, 0.0, -1.0, 5.0])).tolist()
    [3.0, 0.0, -1.0]
    """
    found = _line("polyder", p)
    for _ in range(m):
        count = found.shape[0]
        found = (found * flip(arange(count, device=found.device), 0))[: max(count - 1, 0)]
    return found


def polyint(p: Any, m: int = 1, k: float = 0.0) -> Tensor:
    """The coefficients of a polynomial whose derivative this is; the last one is k.

    >>> wg.polyint(wg.asarray([3.0, 0.0, -1.0])).tolist()
    [1.0, 0.0, -1.0, 0.0]
    """
    found = _line("polyint", p)
    for _ in range(m):
        raised = found / flip(arange(1, found.shape[0] + 1, device=found.device), 0)
        found = concat([raised, asarray([k], raised.dtype, device=found.device)])
    return found


def polyadd(a: Tensor, b: Tensor) -> Tensor:
    """The coefficients of the sum of two polynomials.

    >>> wg.polyadd(wg.asarray([1, 2]), wg.asarray([1, 0, 0])).tolist()
    [1, 1, 2]
    """
    first, second = _line("polyadd", a), _line("polyadd", b)
    count = max(first.size, second.size)
    wide = [
        concat([each[:0].astype(each.dtype), _zeros(count - each.size, each), each])
        for each in (first, second)
    ]
    return wide[0] + wide[1]


def polymul(a: Tensor, b: Tensor) -> Tensor:
    """The coefficients of the product of two polynomials.

    >>> wg.polymul(wg.asarray([1, 1]), wg.asarray([1, -1])).tolist()
    [1, 0, -1]
    """
    return convolve(a, b)


def _zeros(count: int, like: Tensor) -> Tensor:
    return asarray([0] * count, like.dtype, device=like.device)


def _line(op: str, x: Any) -> Tensor:
    line = as_tensor(op, x)
    if line.ndim != 1:
        raise ShapeError(f"{op} takes tensors of one dimension, not of shape {line.shape}")
    return line


# Products by NumPy's names


def inner(a: Tensor, b: Tensor) -> Tensor:
    """The sums of products along the last axes of two tensors.

    >>> wg.inner(wg.asarray([[1, 2], [3, 4]]), wg.asarray([1, 10])).tolist()
    [21, 43]
    """
    first, second = as_tensor("inner", a), as_tensor("inner", b)
    return first * second if not first.ndim or not second.ndim else tensordot(first, second, ([-1], [-1]))


def vdot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of products of two flattened tensors, the first one conjugated.

    >>> wg.vdot(wg.asarray([[1, 2]]), wg.asarray([3, 4])).item()
    11
    """
    return dot(conj(flatten(as_tensor("vdot", a))), flatten(as_tensor("vdot", b)))


def matvec(a: Tensor, v: Tensor) -> Tensor:
    """The products of matrices and vectors; what is before their axes broadcasts.

    >>> wg.matvec(wg.asarray([[1, 2], [3, 4]]), wg.asarray([1, 10])).tolist()
    [21, 43]
    """
    return matmul(a, expand_dims(as_tensor("matvec", v), -1))[..., 0]


def vecmat(v: Tensor, a: Tensor) -> Tensor:
    """The products of vectors, conjugated, and matrices; what is before their axes broadcasts.

    >>> wg.vecmat(wg.asarray([1, 10]), wg.asarray([[1, 2], [3, 4]])).tolist()
    [31, 42]
    """
    return matmul(expand_dims(conj(as_tensor("vecmat", v)), -2), a)[..., 0, :]


def ediff1d(x: Tensor) -> Tensor:
    """The differences of neighbours of the flattened tensor.

    >>> wg.ediff1d(wg.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    return diff(flatten(as_tensor("ediff1d", x)))
