"""NumPy's functions beyond the array API, against NumPy: a row is a call and what it is called with.

On both kinds of devices; empties, ties, NaN, negative indices, sizes that do not divide.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import place

NAN, INF = np.nan, np.inf
LINE = np.array([3, -1, 4, -1, 5, 9], np.float32)
INTS = np.array([[5, 0, -7, 2], [3, 3, 0, 1], [-2, 8, 6, 0]], np.int32)
REALS = (INTS / 4).astype(np.float32)
GAPS = np.array([[1, NAN, 3, -2], [NAN, NAN, NAN, NAN], [-INF, 2, NAN, 2]], np.float32)
COMPLEX = (REALS + 1j * REALS[::-1]).astype(np.complex64)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
FLAGS = INTS > 1
BETWEEN = np.array([[-1, 0, 0.25], [1.5, 3, NAN]], np.float32)
ANGLES = np.array([[0, 4, 8, 1], [3, -3, 3, -3]], np.float32)

Call = Callable[..., Any]
# Called with the library, NumPy or webgrad, and with arrays or tensors
CALLS: list[tuple[Call, tuple[Any, ...]]] = [
    *((lambda xp, x, name=name, axis=axis: getattr(xp, name)(x, axis), (values,))
      for name in ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian"]
      for axis, values in ((0, GAPS), (1, GAPS), (None, GAPS), (1, INTS))),
    *((lambda xp, x, name=name: getattr(xp, name)(x, axis=1, keepdims=True), (GAPS,))
      for name in ["nansum", "nanmean", "nanstd", "nanmax", "nanmedian"]),
    (lambda xp, x: xp.nanvar(x, axis=1, ddof=1), (GAPS,)),
    (lambda xp, x: xp.nanmean(x, axis=0), (np.where(np.isnan(GAPS), NAN, COMPLEX),)),
    *((lambda xp, x, name=name: getattr(xp, name)(x[::2], axis=1), (GAPS,))
      for name in ("nanargmax", "nanargmin")),
    *((lambda xp, x, name=name: getattr(xp, name)(x[2]), (GAPS,)) for name in ("nanargmax", "nanargmin")),
    *((lambda xp, x, name=name: getattr(xp, name)(x, axis=1), (GAPS,))
      for name in ("nancumsum", "nancumprod")),
    (lambda xp, x: xp.average(x, axis=1), (INTS,)),
    (lambda xp, x, w: xp.average(x, axis=0, weights=w), (REALS, np.array([1, 2, 0.5], np.float32))),
    (lambda xp, x, w: xp.average(x, weights=w), (REALS, np.abs(REALS))),
    (lambda xp, x, w: xp.average(x, axis=1, weights=w, keepdims=True), (REALS, np.abs(REALS) + 1)),
    *((lambda xp, x, q=q: xp.percentile(x, q, axis=0), (REALS,)) for q in (0, 30, 100, [25, 75])),
    (lambda xp, x: xp.nanpercentile(x, [10, 50], axis=1), (GAPS[::2],)),
    (lambda xp, x: xp.ptp(x, axis=0), (INTS,)),
    (lambda xp, x: xp.ptp(x), (REALS,)),
    *((lambda xp, x, parts=parts, axis=axis: xp.array_split(x, parts, axis), (INTS,))
      for parts, axis in ((2, 0), (3, 1), (6, 1), ([1, 3], -1))),
    (lambda xp, x: xp.hsplit(x, 2), (INTS,)),
    (lambda xp, x: xp.hsplit(x, [1, 2]), (LINE,)),
    (lambda xp, x: xp.vsplit(x, 3), (INTS,)),
    (lambda xp, x: xp.dsplit(x, 2), (CUBE,)),
    *((lambda xp, x, name=name: getattr(xp, name)(x), (values,))
      for name in ("atleast_1d", "atleast_2d", "atleast_3d") for values in (np.float32(2), LINE, INTS, CUBE)),
    (lambda xp, x, y: xp.atleast_2d(x, y), (LINE, INTS)),
    *((lambda xp, x, y, name=name: getattr(xp, name)((x, y)), (values, -values))
      for name in ("dstack", "column_stack") for values in (LINE, INTS)),
    (lambda xp, x, y: xp.column_stack((x, y)), (INTS, LINE[:3])),
    (lambda xp, x: xp.fliplr(x), (CUBE,)),
    (lambda xp, x: xp.flipud(x), (LINE,)),
    (lambda xp, x, y: xp.append(x, y), (INTS, LINE)),
    (lambda xp, x, y: xp.append(x, y, axis=0), (INTS, INTS[:1])),
    (lambda xp, x: xp.append(x, [1.5, 2.5]), (LINE,)),
    *((lambda xp, x, at=at, axis=axis: xp.insert(x, at, 7, axis=axis), (INTS,))
      for at, axis in ((0, 0), (4, 1), (-1, 1), ([0, 2], 0), ([3, 1, 1], 1), (2, None), (slice(0, 3, 2), 1))),
    (lambda xp, x, y: xp.insert(x, 1, y, axis=1), (INTS, INTS[:, 0])),
    (lambda xp, x, y: xp.insert(x, [1, 3], y, axis=1), (INTS, INTS[:, :2])),
    (lambda xp, x: xp.insert(x, [1, 3], [10.0, 30.0]), (LINE,)),
    *((lambda xp, x, at=at, axis=axis: xp.delete(x, at, axis=axis), (INTS,))
      for at, axis in ((0, 0), (-1, 1), ([0, 2, 0], 1), (slice(None, None, 2), 1), (5, None), ([], 0),
                       ([True, False, True], 0))),
    *((lambda xp, x, trim=trim: xp.trim_zeros(x, trim), (values,))
      for trim in ("f", "b", "fb")
      for values in (np.array([0, 0, 1, 0, 2, 0]), np.zeros(3), np.ones(2), np.ones(0))),
    (lambda xp, x: xp.apply_along_axis(lambda line: line * 2, 0, x), (REALS,)),
    (lambda xp, x: xp.apply_along_axis(lambda line: line[:2], 1, x), (CUBE,)),
    (lambda xp, x: xp.apply_along_axis(lambda line: line.sum(), 1, x), (CUBE,)),
    (lambda xp, x: xp.apply_along_axis(lambda line: xp.outer(line, line), 1, x), (CUBE,)),
    (lambda xp: xp.indices((2, 3)), ()),
    (lambda xp: xp.indices((2, 3), sparse=True), ()),
    (lambda xp, x, i, j: x[xp.ix_(i, j)], (INTS, np.array([2, 0]), np.array([True, False, False, True]))),
    (lambda xp: xp.diag_indices(3), ()),
    (lambda xp, i: xp.unravel_index(i, (2, 3, 4)), (np.array([[0, 23], [7, 12]]),)),
    (lambda xp, i, j: xp.ravel_multi_index((i, j), (3, 4)), (np.array([0, 2, 1]), np.array([3, 0, 2]))),
    (lambda xp, x: xp.flatnonzero(x), (INTS,)),
    *((lambda xp, x: xp.argwhere(x), (values,)) for values in (INTS, LINE, np.zeros((2, 2)), np.float32(3))),
    (lambda xp, m, x: xp.extract(m, x), (FLAGS, REALS)),
    (lambda xp, x: xp.compress([True, False, True], x, axis=0), (INTS,)),
    (lambda xp, x: xp.compress([False, True, True], x), (INTS,)),
    (lambda xp, x: xp.select([x > 3, x > 0], [x, x * 10], -1), (INTS,)),
    (lambda xp, x, y: xp.select([x > 0], [y]), (INTS, REALS)),
    (lambda xp, i, x, y: xp.choose(i, [x, y]), (FLAGS.astype(np.int32), INTS, -INTS)),
    (lambda xp, i, x: xp.choose(i, [x, -x, x * 3], mode="wrap"), (INTS, INTS)),
    (lambda xp, i, x: xp.choose(i, [x, -x, x * 3], mode="clip"), (INTS, INTS)),
    (lambda xp, x: xp.trace(x), (INTS,)),
    (lambda xp, x: xp.trace(x, offset=1), (CUBE,)),
    (lambda xp, x: xp.trace(x, -1, 1, 2), (CUBE,)),
    *((lambda xp, x, k=k: xp.diagflat(x, k), (INTS[:2, :2],)) for k in (0, 2, -1)),
    *((lambda xp, sizes=sizes: xp.tri(*sizes), ()) for sizes in ((3,), (2, 4), (3, 2, -1), (2, 3, 1))),
    *((lambda xp, x, y, name=name: getattr(xp, name)(x, y), (np.array([3, 1, 4, 1, 5]), np.array(other)))
      for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d") for other in ([1, 9, 4], [0])),
    *((lambda xp, x, left=left: xp.interp(x, *points(xp, x), left, 9.0), (BETWEEN,))
      for left in (None, -5.0)),
    (lambda xp, x: xp.interp(x, *points(xp, x)), (np.array([-1, 2, 2.5, 7], np.float32),)),
    (lambda xp, x: xp.interp(x, *points(xp, x), period=4), (np.array([-5, -0.5, 3.5, 8, 9], np.float32),)),
    *((lambda xp, x, right=right, bins=bins: xp.digitize(x, bins, right), (LINE,))
      for right in (False, True) for bins in ([-1, 3, 5], [5, 3, -1], [3])),
    *((lambda xp, a, v, mode=mode, name=name: getattr(xp, name)(a, v, mode), pair)
      for mode in ("full", "same", "valid") for name in ("convolve", "correlate")
      for pair in ((LINE, LINE[:2]), (LINE, LINE[:3]), (LINE[:2], LINE), (LINE[:3], LINE),
                   (LINE[:4], LINE[1:5]))),
    (lambda xp, a, v: xp.convolve(a, v), (INTS[0], INTS[1])),
    (lambda xp, a, v: xp.correlate(a, v, "full"), (COMPLEX[0], COMPLEX[1, :2])),
    (lambda xp, a, v: xp.convolve(a, v), (COMPLEX[0], LINE)),
    *((lambda xp, x, axis=axis: xp.unwrap(x, axis=axis), (ANGLES,)) for axis in (0, 1)),
    (lambda xp, x: xp.unwrap(x, period=6), (np.array([0, 2, 5, 2, 8, 11], np.float32),)),
    (lambda xp, x: xp.unwrap(x, discont=5), (np.array([0, 4, 10, 1], np.float32),)),
    (lambda xp, p, x: xp.polyval(p, x), (LINE[:3], REALS)),
    (lambda xp, p: xp.polyder(p), (LINE,)),
    (lambda xp, p: xp.polyder(p, 2), (LINE[:2],)),
    (lambda xp, p: xp.polyint(p, 2), (LINE,)),
    (lambda xp, p, q: xp.polyadd(p, q), (LINE, LINE[:2])),
    (lambda xp, p, q: xp.polymul(p, q), (LINE, LINE[:2])),
    (lambda xp, a, b: xp.inner(a, b), (REALS, REALS[:2])),
    (lambda xp, a, b: xp.vdot(a, b), (COMPLEX, COMPLEX[::-1])),
    (lambda xp, x: xp.ediff1d(x), (INTS,)),
    *((lambda xp, name=name, m=m: getattr(xp, name)(m), ())
      for name in ("bartlett", "blackman", "hamming", "hanning") for m in (0, 1, 2, 7)),
    (lambda xp: xp.logspace(-1, 2, 7), ()),
    (lambda xp: xp.logspace(0, 3, 3, endpoint=False, base=2.0), ()),
    (lambda xp: xp.geomspace(1, 1000, 7), ()),
    (lambda xp: xp.geomspace(-2, -32, 4, endpoint=False), ()),
    (lambda xp: xp.geomspace(3, 5, 1), ()),
    *((lambda xp, x, d=d: xp.around(x, d), (values,))
      for d in (0, 1, -1) for values in (LINE * 1.37, INTS * 7)),
    (lambda xp, x: xp.cbrt(x), (np.array([8, -27, 0, INF], np.float32),)),
    (lambda xp, x: xp.divmod(x, 3), (INTS,)),
    (lambda xp, x: xp.modf(x), (np.array([1.5, -2.25, 3, INF, -INF, NAN], np.float32),)),
    (lambda xp, x: xp.float_power(x, -1), (np.array([1, 2, -4], np.int32),)),
    (lambda xp, x: xp.iscomplex(x), (np.array([1, 2j, 1 + 1j], np.complex64),)),
    (lambda xp, x: xp.iscomplex(x), (INTS,)),
    (lambda xp, x, y: xp.lexsort((x, y)), (LINE, np.array([1, 0, 1, 0, 0, 1]))),
    *((lambda xp, x, order=order, axis=axis: xp.packbits(x, axis=axis, bitorder=order), (FLAGS,))
      for order in ("big", "little") for axis in (None, 0, 1)),
    *((lambda xp, x, order=order, axis=axis: xp.unpackbits(x, axis=axis, bitorder=order), (values,))
      for order in ("big", "little") for axis, values in ((None, np.array([3, 200], np.uint8)),
                                                          (0, np.array([[1, 129]], np.uint8)))),
    (lambda xp, x: xp.unpackbits(x, count=5), (np.array([200], np.uint8),)),
    (lambda xp, x: xp.matvec(x, x[..., 0, :]), (CUBE,)),
    (lambda xp, x: xp.vecmat(x[..., 0], x), (CUBE,)),
]  # fmt: skip


NARROW = {"float64": np.float32, "int64": np.int32, "complex128": np.complex64}


def points(xp: Any, like: Any) -> tuple[Any, Any]:
    xs, ys = np.array([0, 1, 3], np.float32), np.array([10, 20, -10], np.float32)
    return (xs, ys) if xp is np else (wg.asarray(xs, device=like.device), wg.asarray(ys, device=like.device))


@pytest.mark.parametrize("row", range(len(CALLS)))
def test_values_are_numpys(row: int) -> None:
    check(row, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[pytest.mark.long] if row % 5 else []) for row in range(len(CALLS))],
)
def test_values_on_a_gpu_are_numpys(row: int) -> None:
    check(row, "discrete" if row % 2 else "software")


def check(row: int, kind: str) -> None:
    """The results of a row on a kind of device are NumPy's."""
    call, arguments = CALLS[row]
    narrow = [
        each.astype(np.float32) if each.dtype == np.float64 else each for each in map(np.asarray, arguments)
    ]
    narrow = [each.astype(np.int32) if each.dtype == np.int64 else each for each in narrow]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = call(np, *narrow)
    found = call(wg, *(place(kind, each) for each in narrow))
    several = isinstance(expected, (list, tuple))
    assert isinstance(found, (list, tuple)) == several
    pairs = zip(found, expected, strict=True) if several else [(found, expected)]
    for ours, theirs in pairs:
        assert ours.shape == np.shape(theirs)
        assert {ours.dtype.kind, np.asarray(theirs).dtype.kind} not in ({"f", "i"}, {"b", "f"}), ours.dtype
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=2e-5, atol=2e-5)
