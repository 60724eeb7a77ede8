"""Operators that fold axes: sums, means, extremes, places of extremes; running sums; determinants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import webgrad as wg

from ...arrays import np
from .elementwise import divide
from .table import Call, operator
from .values import as_indices, axes_of, whole

__all__: list[str] = []

Axes = tuple[int, ...]
Fold = Callable[[Any, Axes, bool], Any]


def _sum(x: Any, axes: Axes, keepdims: bool) -> Any:
    return wg.sum(x, axes, dtype=x.dtype, keepdims=keepdims)


def _product(x: Any, axes: Axes, keepdims: bool) -> Any:
    return wg.prod(x, axes, dtype=x.dtype, keepdims=keepdims)


def _mean(x: Any, axes: Axes, keepdims: bool) -> Any:
    if x.dtype.kind == "f":
        return wg.mean(x, axes, keepdims=keepdims)
    return divide(_sum(x, axes, keepdims), math.prod(x.shape[each] for each in axes))


def _log_sum(x: Any, axes: Axes, keepdims: bool) -> Any:
    return _as(x, wg.log(_sum(x, axes, keepdims)))


def _log_sum_of_exponentials(x: Any, axes: Axes, keepdims: bool) -> Any:
    numbers = x if x.dtype.kind == "f" else x.astype(wg.float32)
    return _as(x, wg.logsumexp(numbers, axes, keepdims=keepdims))


def _root_of_squares(x: Any, axes: Axes, keepdims: bool) -> Any:
    return _as(x, wg.sqrt(_sum(x * x, axes, keepdims)))


def _as(x: Any, result: Any) -> Any:
    """A result of integers, which was computed as float, as integers."""
    return result.astype(x.dtype)


# ONNX's name, the fold, and its result where there is nothing to fold, but for those that know it
_FOLDS: dict[str, tuple[Fold, str]] = {
    "ReduceSum": (_sum, ""),
    "ReduceProd": (_product, ""),
    "ReduceMean": (_mean, ""),
    "ReduceMax": (lambda x, axes, keepdims: wg.max(x, axes, keepdims=keepdims), "lowest"),
    "ReduceMin": (lambda x, axes, keepdims: wg.min(x, axes, keepdims=keepdims), "highest"),
    "ReduceL1": (lambda x, axes, keepdims: _sum(wg.abs(x), axes, keepdims), ""),
    "ReduceL2": (_root_of_squares, ""),
    "ReduceSumSquare": (lambda x, axes, keepdims: _sum(x * x, axes, keepdims), ""),
    "ReduceLogSum": (_log_sum, ""),
    "ReduceLogSumExp": (_log_sum_of_exponentials, "lowest"),
}
_BY_INPUT = 18  # the version from which axes are an input
_SUM_BY_INPUT = 13


def _reduced(name: str, x: Any, axes: Any, keepdims: int, noop_with_empty_axes: int) -> Any:
    fold, identity = _FOLDS[name]
    if axes is None or not np.size(axes):
        chosen: Axes = () if noop_with_empty_axes else tuple(range(x.ndim))
    else:
        chosen = axes_of(axes, x.ndim)
    if identity and any(x.shape[each] == 0 for each in chosen):
        sides = [
            1 if at in chosen else each for at, each in enumerate(x.shape) if keepdims or at not in chosen
        ]
        return wg.full(sides, _bound(x.dtype, identity), dtype=x.dtype, device=x.device)
    if not chosen and name in ("ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin"):
        return x
    return fold(x, chosen, bool(keepdims))


def _bound(dtype: Any, which: str) -> Any:
    if dtype.kind == "f":
        return -math.inf if which == "lowest" else math.inf
    if dtype.kind == "b":
        return which == "highest"
    return dtype.limits[which == "highest"]


def _by_input(name: str) -> Callable[..., Any]:
    def reduce(x: Any, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        return _reduced(name, x, axes, keepdims, noop_with_empty_axes)

    return reduce


def _by_attribute(name: str) -> Callable[..., Any]:
    def reduce(x: Any, *, axes: Any = None, keepdims: int = 1) -> Any:
        return _reduced(name, x, axes, keepdims, 0)

    return reduce


for _name in _FOLDS:
    operator(_name, 1)(_by_attribute(_name))
    operator(_name, _SUM_BY_INPUT if _name == "ReduceSum" else _BY_INPUT, host="axes")(_by_input(_name))


@operator("ArgMax")
def place_of_largest(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    return _place(wg.argmax, x, axis, keepdims, select_last_index)


@operator("ArgMin")
def place_of_smallest(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    return _place(wg.argmin, x, axis, keepdims, select_last_index)


def _place(search: Callable[..., Any], x: Any, axis: int, keepdims: int, last: int) -> Any:
    found = search(wg.flip(x, axis) if last else x, axis=axis, keepdims=bool(keepdims))
    return as_indices(x.shape[axis] - 1 - found if last else found)


@operator("CumSum", 11, host="axis")
def running_sum(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _running(wg.cumsum, 0, x, whole(axis), exclusive, reverse)


@operator("CumProd", 26, host="axis")
def running_product(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _running(wg.cumprod, 1, x, whole(axis), exclusive, reverse)


def _running(scan: Callable[..., Any], start: int, x: Any, axis: int, exclusive: int, reverse: int) -> Any:
    """Exclusive: without the element itself, so that the first is the start."""
    x = wg.flip(x, axis) if reverse else x
    if exclusive and x.shape[axis]:
        widths = [(1, 0) if at == axis % x.ndim else (0, 0) for at in range(x.ndim)]
        without_last = [slice(0, -1) if at == axis % x.ndim else slice(None) for at in range(x.ndim)]
        x = wg.pad(x[tuple(without_last)], widths, constant_values=start)
    found = scan(x, axis=axis, dtype=x.dtype)
    return wg.flip(found, axis) if reverse else found


@operator("Det", 11)
def determinant(x: Any, *, call: Call) -> Any:
    call.host(x)  # determinants are computed there, so the model cannot be captured
    return wg.linalg.det(x)


@operator("Hardmax", 13)
def first_largest(x: Any, *, axis: int = -1) -> Any:
    """1 at the first of the largest elements of an axis, else 0."""
    places = wg.argmax(x, axis=axis, keepdims=True)
    sides = [-1 if at == axis % x.ndim else 1 for at in range(x.ndim)]
    steps = wg.reshape(wg.arange(x.shape[axis], dtype=places.dtype, device=x.device), sides)
    return (places == steps).astype(x.dtype)


@operator("Hardmax", 1)
def first_largest_of_matrix(x: Any, *, axis: int = 1) -> Any:
    """Of the matrix that a tensor is, all axes from one on taken together."""
    axis = axis % x.ndim
    flat = wg.reshape(x, (math.prod(x.shape[:axis]), -1))
    return wg.reshape(first_largest(flat), x.shape)
