"""New tensors: from values, of one number, of ranges, like another tensor.

In: values, sizes one by one or as a sequence, and torch's options: `dtype`, `device`, `requires_grad`;
layout, pinned memory and memory formats are taken and mean nothing here. Out: tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import webgrad as wg

from .binding import bind
from .defaults import dtype_of, float_dtype, integer_of
from .devices import place
from .promotion import wrapped
from .tensor import Array, Tensor, adopt

__all__ = ["OPTIONS", "factory", "functions", "made", "sizes", "tensor"]

OPTIONS = {
    "$like": "dtype=None, layout=None, device=None, requires_grad=False, memory_format=None",
    "$options": "dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False",
}
ROWS = """
[function]
full_like(input, fill_value, *, $like) = full(input.shape, fill_value, dtype=dtype or input.dtype,
    device=place(device) or input.device, requires_grad=requires_grad)
zeros_like(input, *, $like) = made(wg.zeros_like(input, dtype=dtype, device=place(device)), requires_grad)
ones_like(input, *, $like) = made(wg.ones_like(input, dtype=dtype, device=place(device)), requires_grad)
empty_like(input, *, $like) = made(wg.empty_like(input, dtype=dtype, device=place(device)), requires_grad)
full(size, fill_value, *, $options, names=None, out=None) = given(out, made(wg.full(tuple(size),
    turned(fill_value, dtype), dtype=dtype or kind_of(fill_value, device), device=place(device)),
    requires_grad))
arange(start, end=None, step=1, *, $options, out=None) = given(out, made(ranged(start, end, step, dtype,
    place(device)), requires_grad))
range(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False) =
    made(wg.arange(*closed(start, end, step), step, dtype=dtype or float_dtype(), device=place(device)),
    requires_grad)
linspace(start, end, steps, *, $options, out=None) = given(out, made(spaced(start, end, steps, dtype,
    place(device)), requires_grad))
logspace(start, end, steps, base=10.0, *, $options, out=None) = given(out, made(powers(start, end, steps,
    base, dtype, place(device)), requires_grad))
empty_strided(size, stride, *, $options) = made(empty(sizes((size,)), dtype or float_dtype(), place(device)),
    requires_grad)
empty_permuted(size, physical_layout, *, $options) = made(empty(sizes((size,)), dtype or float_dtype(),
    place(device)), requires_grad)
tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None) = wg.tril_indices(row, col, offset,
    device=place(device)).astype(dtype or integer_of(place(device)))
triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None) = wg.triu_indices(row, col, offset,
    device=place(device)).astype(dtype or integer_of(place(device)))
eye(n, m=None, *, $options, out=None) = given(out, made(wg.eye(n, m, dtype=dtype or float_dtype(),
    device=place(device)), requires_grad))
as_tensor asarray(data, dtype=None, device=None, copy=None, requires_grad=False) = shared(data, dtype,
    place(device), requires_grad)
from_numpy(ndarray) = array_shared(ndarray)
from_dlpack(ext_tensor) = wg.from_dlpack(ext_tensor)
frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) = made(wg.asarray(np.frombuffer(buffer,
    wg.as_dtype(dtype).numpy, count, offset)), requires_grad)
scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False) =
    made(wg.asarray(s, dtype=dtype or float_dtype(), device=place(device)), requires_grad)
complex(real, imag, *, out=None) = given(out, wg.complex(real, imag))

[method]
new_tensor(input, data, *, $options) = tensor(data, dtype=dtype or input.dtype, device=place(device) or
    input.device, requires_grad=requires_grad)
new_full(input, size, fill_value, *, $options) = full(size, fill_value, dtype=dtype or input.dtype,
    device=place(device) or input.device, requires_grad=requires_grad)
new_zeros(input, *size, $options) = full(sizes(size), 0, dtype=dtype or input.dtype, device=place(device) or
    input.device, requires_grad=requires_grad)
new_ones(input, *size, $options) = full(sizes(size), 1, dtype=dtype or input.dtype, device=place(device) or
    input.device, requires_grad=requires_grad)
new_empty(input, *size, $options) = full(sizes(size), 0, dtype=dtype or input.dtype, device=place(device) or
    input.device, requires_grad=requires_grad)
new_empty_strided(input, size, stride, $options) = full(sizes((size,)), 0, dtype=dtype or input.dtype,
    device=place(device) or input.device, requires_grad=requires_grad)
new(input, *data, device=None) = Tensor(*data, device=place(device) or input.device).to(input.dtype)
"""


_NUMBERS = {bool, int, float, complex}


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Any:
    """A new tensor of values: integers are int64, floats of the default dtype, arrays keep theirs."""
    if isinstance(data, Array):
        values = data.detach().clone().to(place(device) or data.device, dtype or data.dtype)
        return made(values, requires_grad)
    where = place(device)
    if dtype is None:
        dtype = None if isinstance(data, np.ndarray | np.generic) else _dtype_within(data, where)
    if isinstance(data, list | tuple) and _has_tensors(data):
        data = _values_of(data)
    return made(wg.asarray(data, dtype=dtype, device=where), requires_grad)


def _dtype_within(data: Any, device: Any) -> Any:
    """The dtype of nested lists: what that of all numbers, arrays and tensors in them is promoted to."""
    dtypes = {dtype_of(each, device) if isinstance(each, type) else each for each in _kinds_within(data)}
    return functools.reduce(wg.promote, dtypes) if dtypes else float_dtype()


def _kinds_within(data: Any) -> set[Any]:
    """The types of Python's numbers in nested lists, and the dtypes of arrays and tensors."""
    if not isinstance(data, list | tuple):
        if hasattr(data, "dtype"):
            return {wg.as_dtype(data.dtype)}
        return {type(data)} & _NUMBERS
    found = set(map(type, data))
    return found if found <= _NUMBERS else set().union(*map(_kinds_within, data))


def _has_tensors(data: Any) -> bool:
    return any(
        isinstance(each, Array) or (isinstance(each, list | tuple) and _has_tensors(each)) for each in data
    )


def _values_of(data: Any) -> Any:
    """Nested lists with numbers in the place of tensors."""
    if isinstance(data, list | tuple):
        return [_values_of(each) for each in data]
    if not isinstance(data, Array):
        return data
    if data.numel() != 1:
        raise ValueError(
            "only one element tensors can be converted to Python scalars: torch.stack joins larger ones"
        )
    return data.item()


def made(x: Any, requires_grad: bool = False) -> Any:
    """torch's tensor, which requires a gradient if that is asked for."""
    adopt(x)
    return x.requires_grad_() if requires_grad else x


def given(out: Any, x: Any) -> Any:
    """The values in `out`, where that is given."""
    if out is None:
        return x
    out.data = x.to(out.dtype)
    return out


def sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes one by one, or as one sequence."""
    if len(size) == 1 and isinstance(size[0], tuple | list):
        size = tuple(size[0])
    return tuple(int(each) for each in size)


def kind_of(value: Any, device: Any) -> Any:
    """The dtype of a number."""
    if isinstance(value, Array):
        return value.dtype
    if isinstance(value, np.generic):
        return wg.as_dtype(value.dtype)
    return dtype_of(type(value), place(device))


def bounds(start: Any, end: Any) -> tuple[Any, Any]:
    """arange(end) or arange(start, end)."""
    return (0, start) if end is None else (start, end)


def stepped(*numbers: Any, device: Any) -> Any:
    """The dtype of a range: integers, unless one of its numbers is a float."""
    floats = any(
        each.dtype.kind == "f" if isinstance(each, Array) else isinstance(each, float | np.floating)
        for each in numbers
    )
    return float_dtype() if floats else integer_of(place(device))


def closed(start: Any, end: Any, step: Any) -> tuple[Any, Any]:
    """The bounds of a range that has its end in it."""
    start, end = bounds(start, end)
    return start, end + step / 2


def turned(value: Any, dtype: Any) -> Any:
    """A number below 0 as integers without a sign hold it."""
    below = value.__class__ is int and value < 0 and dtype is not None and wg.as_dtype(dtype).kind == "u"
    return wrapped(value, wg.as_dtype(dtype)) if below else value


def ranged(start: Any, end: Any, step: Any, dtype: Any, device: Any) -> Any:
    """Numbers from start to end by steps; as integers both begin as integers."""
    start, end = bounds(start, end)
    first, last, apart = (each.item() if isinstance(each, Array) else each for each in (start, end, step))
    if not apart or (last - first) / apart < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = dtype is not None and wg.as_dtype(dtype).kind in "iu"
    if not (whole and any(isinstance(each, float) for each in (first, last, apart))):
        kind = dtype or stepped(start, end, step, device=device)
        return wg.arange(first, last, apart, dtype=kind, device=device)
    if wg.as_dtype(dtype) is wg.int64:
        first, last, apart = int(first), int(last), int(apart)
    count = max(math.ceil((last - first) / apart), 0)
    return wg.arange(count, dtype=dtype, device=device) * int(apart) + int(first)


def spaced(start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:
    """Numbers in equal distances."""
    first, last = (each.item() if isinstance(each, Array) else each for each in (start, end))
    if dtype is not None and wg.as_dtype(dtype).kind in "iu":
        return wg.asarray(whole_steps(first, last, steps), dtype=dtype, device=device)
    return wg.linspace(first, last, steps, dtype=dtype or float_dtype(), device=device)


def whole_steps(start: Any, end: Any, steps: int, base: Any = None) -> Any:
    """Numbers in equal distances from one integer to another, or powers by them, truncated."""
    first, last = int(start), int(end)
    at = np.arange(steps, dtype=np.float64)
    step = (last - first) / max(steps - 1, 1)
    values = np.where(at < steps / 2, first + step * at, last - step * (steps - 1 - at))
    return np.trunc(values if base is None else float(base) ** values).astype(np.int64)


def powers(start: Any, end: Any, steps: int, base: Any, dtype: Any, device: Any) -> Any:
    """Powers of a base in equal distances of their exponents."""
    first, last, by = (each.item() if isinstance(each, Array) else each for each in (start, end, base))
    if dtype is not None and wg.as_dtype(dtype).kind in "iu":
        return wg.asarray(whole_steps(first, last, steps, by), dtype=dtype, device=device)
    return by ** spaced(first, last, steps, dtype, device)


def shared(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    """The same tensor where nothing has to change."""
    if isinstance(data, Array):
        return made(data.to(device or data.device, dtype or data.dtype), requires_grad)
    return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def array_shared(array: Any) -> Any:
    """A NumPy array as a tensor; the values are copied, since a tensor's values never change."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return wg.asarray(array)


def factory(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function of sizes: zeros(2, 3), zeros((2, 3)), zeros(size=(2, 3))."""

    def function(
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        out: Any = None,
        layout: Any = None,
        pin_memory: bool = False,
        memory_format: Any = None,
        names: Any = None,
        generator: Any = None,
        **other: Any,
    ) -> Any:
        shape = sizes(size if "size" not in other else (other.pop("size"),))
        if other:
            raise TypeError(f"{make.__name__}() got an unexpected keyword argument {next(iter(other))!r}")
        options = {} if generator is None else {"generator": generator}
        x = made(make(shape, dtype or float_dtype(), place(device), **options), requires_grad)
        return given(out, x)

    function.__name__ = function.__qualname__ = make.__name__
    return function


def zeros(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return wg.zeros(shape, dtype=dtype, device=device)


def ones(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return wg.ones(shape, dtype=dtype, device=device)


def empty(shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return wg.empty(shape, dtype=dtype, device=device)


_bound = bind(ROWS, globals(), OPTIONS)
full = _bound["full"]
functions = _bound | {each.__name__: factory(each) for each in (zeros, ones, empty)} | {"tensor": tensor}
