"""Writing programs of calls: from a seed a few calls, of which each means something when it is compared.

A call that rounding changes by a good part of what tests allow, or that decides between numbers that were
rounded, is not taken.
"""

from __future__ import annotations

import numpy as np

import webgrad as wg
from tests.properties.calls.drawer import (
    KINDS,
    MOST,
    TURNED,
    Calls,
    Drawer,
    Family,
    Pair,
    Refused,
    draw_values,
)
from tests.properties.calls.elements import ELEMENTS
from tests.properties.calls.folds import FOLDS
from tests.properties.calls.movement import MOVEMENT
from tests.properties.calls.windows import WINDOWS
from tests.properties.drawing import draw_shape
from tests.properties.helpers import Array, wide
from tests.properties.programs import Value, allowed
from webgrad.tensor import Tensor

__all__ = ["CALLS", "KINKS", "most_apart", "widest", "write_calls"]


# Every call by its name.
CALLS: Family = {**MOVEMENT, **ELEMENTS, **FOLDS, **WINDOWS}
# Where NumPy rounds nothing, no device does; a fold in any order neither.
ROUND_NOTHING = {
    *("transpose", "flip", "roll", "swapaxes", "reshape", "concat", "stack", "pad", "slice", "take", "clip"),
    *(
        "take_along_axis",
        "triangle",
        "diagonal",
        "repeat",
        "tile",
        "abs",
        "negative",
        "step",
        "where",
        "sort",
    ),
    *("extreme", "place", "argsort", "with number", "with other", "diff", "parts"),
    *("division", "fill", "searchsorted", "topk", "pool"),
}
KINKS = {
    "abs",
    "clip",
    "with number",
    "where",
    "extreme",
    "step",
    "division",
    "pool",
    "sort",
    "vector_norm",
}  # their gradients depend on a choice


def _value(dtype: wg.DType, array: Array, exact: Array) -> Value:
    return Value(dtype, array, exact)


def write_calls(seed: int, *, on_gpu: bool = False) -> Calls:
    """One to five calls; for a GPU, whose drivers compile slowly, up to three."""
    random = np.random.default_rng(seed)
    kinds = [each for each in KINDS if not (on_gpu and each is wg.float64)]
    weights = np.array([KINDS[each] for each in kinds])
    dtype = kinds[int(random.choice(len(kinds), p=weights / weights.sum()))]
    d = Drawer(random, dtype)
    start = draw_values(random, dtype, draw_shape(random))
    made = Calls(dtype, start, wanted=start, exact=widest(start))
    names = [name for name, (kinds_of, *_) in CALLS.items() if dtype.kind in kinds_of]
    shares = np.array([CALLS[name][1] for name in names])
    wanted = int(random.integers(1, 4 if on_gpu else 6))
    for _ in range(30):
        if len(made.steps) >= wanted or made.wanted.dtype.kind not in _kinds(dtype):
            break
        name = names[int(random.choice(len(names), p=shares / shares.sum()))]
        d.shape = made.wanted.shape
        try:
            _add(made, d, name)
        except Refused:
            continue
    return made if made.steps else write_calls(seed + 1_000_003, on_gpu=on_gpu)


def _kinds(dtype: wg.DType) -> str:
    return "fV" if dtype.kind == "f" else dtype.kind


def widest(array: Array) -> Array:
    return array.astype(np.complex128) if array.dtype.kind == "c" else wide(array)


def _add(made: Calls, d: Drawer, name: str) -> None:
    """A call, at times between two transposes, if its value may be compared."""
    build = CALLS[name][2]
    order = d.order() if len(d.shape) > 1 and d.chance(TURNED) else None
    shape = d.shape
    if order is not None:
        d.shape = tuple(shape[axis] for axis in order)
    webgrad, numpy = build(d)
    inner = d.shape
    array, exact = made.wanted, made.exact
    if order is not None:
        array, exact = array.transpose(order), exact.transpose(order)
    with np.errstate(all="ignore"):
        narrow = array.astype(np.float32) if array.dtype.kind in "fV" and array.dtype.itemsize == 2 else array
        result, exact = np.asarray(numpy(narrow)), np.asarray(numpy(exact))
        if result.dtype.kind == made.dtype.kind and made.dtype.kind != "i":
            result = result.astype(made.dtype.numpy)
    back = order is not None and result.shape == inner
    if back and order is not None:
        undo = tuple(int(each) for each in np.argsort(order))
        result, exact = result.transpose(undo), exact.transpose(undo)
    _refuse(result, exact, made.dtype)
    settled = d.settled and (name in ROUND_NOTHING or made.dtype.kind == "i")
    settled = settled and bool(np.array_equal(widest(result), exact))
    made.smooth = made.smooth and (d.settled or name not in KINKS)
    d.settled = settled
    made.steps.append(_turned(name, (webgrad, numpy), order, back))
    made.wanted, made.exact = result, exact


def _turned(name: str, pair: Pair, order: tuple[int, ...] | None, back: bool) -> tuple[str, Pair]:
    if order is None:
        return name, pair
    webgrad, numpy = pair
    undo = tuple(int(each) for each in np.argsort(order))

    def run(x: Tensor) -> Tensor:
        found: Tensor = webgrad(wg.permute_dims(x, order))
        return wg.permute_dims(found, undo) if back else found

    return f"{name} between {order}", (run, numpy)


def _refuse(result: Array, exact: Array, dtype: wg.DType) -> None:
    if result.size > MOST:
        raise Refused("large")
    if result.dtype.kind not in "fcV":
        return
    most = 1e4 if dtype.itemsize >= 4 else 200
    if not np.all(np.abs(exact) < most):
        raise Refused("range")
    if not np.all(np.abs(widest(result) - exact) <= 0.2 * most_apart(dtype, exact)):
        raise Refused("rounding")


def most_apart(dtype: wg.DType, exact: Array) -> Array:
    part = wg.float32 if dtype.kind == "c" else dtype
    return allowed(_value(part, np.zeros(exact.shape, np.float32), np.abs(exact)))
