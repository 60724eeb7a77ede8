"""Python values that captured functions must not take for fixed: a rate that a schedule changes, a mode.

In: functions that give such values. Out: the values, or tensors of them. A captured function's Python code
runs once, so libraries whose objects hold settings ask for them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from .. import dtypes
from ..errors import ArgumentError
from ..graph.node import scalar
from ..graph.trace import current_trace, suspended
from ..runtime.device import DeviceLike, instead_while, open_device
from ..tensor import Tensor

Value = TypeVar("Value")


def watch(get: Callable[[], Value], version: Callable[[], object] | None = None) -> Value:
    """What `get` gives; a function that `webgrad.jit` captures is captured anew where it gives another.

    For settings that Python code branches on, such as whether a model is in training. Values are compared
    by identity, then by ==. Where many are watched, a `version` saves asking each at every call: a function
    that gives another object once one of them has changed. They are asked only then. A `get` whose object is
    gone raises ReferenceError: an object that the function itself made is then watched no longer.

    >>> mode = {"training": True}
    >>> @wg.jit
    ... def scaled(x):
    ...     return x * 2 if wg.watch(lambda: mode["training"]) else x
    >>> scaled(wg.ones(2)).tolist()
    [2.0, 2.0]
    >>> mode["training"] = False
    >>> scaled(wg.ones(2)).tolist()
    [1.0, 1.0]
    """
    value = get()
    trace = current_trace()
    if trace is not None:
        if version is None:
            trace.watched.append((get, value))
        else:
            trace.versioned.setdefault(version, []).append((get, value))
    return value


def is_captured() -> bool:
    """Whether the code that runs is that of a function which `webgrad.jit` captures.

    >>> wg.is_captured(), wg.jit(lambda: wg.ones(1) if wg.is_captured() else wg.zeros(1))().item()
    (False, 1.0)
    """
    return current_trace() is not None


@contextmanager
def at_capture() -> Iterator[None]:
    """A block that computes at once, and can read what it computes, while `webgrad.jit` captures a function.

    For tables and sizes that depend on shapes and fixed numbers. What is read is a constant of the capture;
    to read what hangs on the function's arguments is an error, since they have no values yet. Elsewhere, the
    block is as any other code.

    >>> @wg.jit
    ... def tail(x):
    ...     with wg.at_capture():
    ...         half = int(wg.asarray(x.shape[0]) // 2)
    ...     return x[half:]
    >>> tail(wg.arange(4)).tolist()
    [2, 3]
    """
    with suspended(), instead_while(None):
        yield


def fresh(get: Callable[[], Any], device: DeviceLike = None, dtype: Any = None) -> Any:
    """The number that `get` gives as a 0-d tensor, or a tuple of them for a tuple of numbers.

    In a function that `webgrad.jit` captures `get` is called anew at every call, and kernels take what it
    gives as parameters. Floats become float32, or another `dtype` of floats, and whole numbers int32.

    >>> settings = {"rate": 0.5}
    >>> @wg.jit
    ... def step(x):
    ...     return x - wg.fresh(lambda: settings["rate"])
    >>> step(wg.ones(1)).item()
    0.5
    >>> settings["rate"] = 0.25
    >>> step(wg.ones(1)).item()
    0.75
    """
    where = open_device(device)
    floats = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    several = False

    def draw() -> Sequence[int | float]:
        nonlocal several
        found = get()
        several = isinstance(found, tuple | list)
        numbers = tuple(found) if several else (found,)
        for each in numbers:
            _check_number(each)
        return numbers

    trace = current_trace()
    numbers = draw() if trace is None else trace.drawn(draw)
    tensors = tuple(
        Tensor(scalar(each, floats if isinstance(each, float) else dtypes.int32, where)) for each in numbers
    )
    return tensors if several else tensors[0]


def _check_number(value: Any) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31
    if not whole and not isinstance(value, float):
        raise ArgumentError(
            f"fresh: the function gave {value!r}: floats and whole numbers that int32 holds, or a tuple"
        )
