"""Mixed precision: where products take float32 tensors in half precision. Public as `webgrad.amp.autocast`.

In: calls of the functions that are marked `in_half`. Out: the same calls with float32 inputs cast to the
dtype of the open `autocast` of this thread, their results float32 again. The casts fuse into the products'
loads and stores; gradients pass through them, so that parameters and their gradients stay float32.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ...dtypes import DType, as_dtype, float32
from ...errors import DTypeError
from ...graph.trace import current_trace
from ...tensor import Tensor

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class _Local(threading.local):
    dtype: DType | None = None
    is_inner: bool = False  # set inside of the function that is being captured, and so part of it


_local = _Local()


def autocast_dtype() -> DType | None:
    """What float32 inputs of products are cast to in this thread; None: nothing."""
    return _local.dtype


class autocast:
    """Inside, matrix products, linear, convolution and attention compute in half precision.

    They take float32 tensors as float16 (or bfloat16) and give float32; tensors of other dtypes do not
    change, nor does anything else: softmax, norms, losses, sums. It is a context, and decorates functions.

    >>> x, w = wg.ones((2, 3)), wg.full((3, 4), 0.1)
    >>> with wg.amp.autocast():
    ...     y = x @ w
    >>> y.dtype, (y == (x.astype(wg.float16) @ w.astype(wg.float16))).all().item()
    (webgrad.float32, True)
    """

    def __init__(self, dtype: Any = "float16", enabled: bool = True) -> None:
        if dtype in ("cuda", "cpu", "mps", "xpu"):
            raise DTypeError(
                f"autocast: {dtype!r} is a device; autocast() is for all of them, and takes a dtype"
            )
        chosen = as_dtype(dtype)
        if not chosen.is_half:
            raise DTypeError(f"autocast computes in float16 or bfloat16, not in {chosen.name}")
        self.dtype = chosen if enabled else None
        self._before: list[tuple[DType | None, bool]] = []

    def __enter__(self) -> autocast:
        self._before.append((_local.dtype, _local.is_inner))
        _local.dtype, _local.is_inner = self.dtype, current_trace() is not None
        return self

    def __exit__(self, *error: object) -> None:
        _local.dtype, _local.is_inner = self._before.pop()

    def __call__(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def decorated(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            with autocast(self.dtype or "float16", enabled=self.dtype is not None):
                return function(*args, **kwargs)

        return decorated


def in_half(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function that computes in half precision inside of `autocast`; its bias is added as it is."""
    names = list(inspect.signature(function).parameters)
    bias = names.index("bias") if "bias" in names else -1

    @functools.wraps(function)
    def chosen(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        dtype, is_inner = _local.dtype, _local.is_inner
        trace = current_trace()
        if trace is not None and not is_inner and (autocast_dtype, dtype) not in trace.watched:
            trace.watched.append((autocast_dtype, dtype))  # captured again if it changes
        if dtype is None:
            return function(*args, **kwargs)
        places = [each if at == bias else _halved(each, dtype) for at, each in enumerate(args)]
        named = {name: each if name == "bias" else _halved(each, dtype) for name, each in kwargs.items()}
        _local.dtype, _local.is_inner = (
            None,
            True,
        )  # the functions that it calls take their inputs as they are
        try:
            result = function(*places, **named)  # type: ignore[arg-type]
        finally:
            _local.dtype, _local.is_inner = dtype, is_inner
        return _widened(result, dtype)  # type: ignore[no-any-return]

    return chosen


def _halved(value: Any, dtype: DType) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_halved(each, dtype) for each in value)
    is_wide = isinstance(value, Tensor) and value.dtype is float32
    return value.astype(dtype) if is_wide else value


def _widened(result: Any, dtype: DType) -> Any:
    return result.astype(float32) if isinstance(result, Tensor) and result.dtype is dtype else result
