"""The methods of torch.Tensor that are no functions: conversions, devices, questions, and in-place writes.

In: nothing. Out: `Tensor` with these, and with the methods of all tables of this folder. Importing this
module adds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from . import (
    creation,
    indexing,
    matrices,
    native,
    neural,
    orders,
    pointwise,
    products,
    random,
    reductions,
    shaping,
    special,
    spectra,
)
from .binding import bind, methods
from .devices import device as Device
from .devices import place
from .promotion import cast
from .tensor import Array, Tensor, adopt
from .typed import NAMES

__all__ = ["FAMILIES", "functions"]

FAMILIES = (
    pointwise,
    reductions,
    orders,
    shaping,
    indexing,
    products,
    creation,
    random,
    special,
    spectra,
    matrices,
    native,
    neural,
)
ROWS = """
[method]
to(input, *targets, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None) =
    moved(input, targets, dtype, device, copy)
type_as(input, other) = cast(input, other.dtype)
cpu(input, memory_format=None) = input.to_device("cpu")
cuda xpu(input, device=None, non_blocking=False, memory_format=None) = input.to_device(place(device or
    "cuda"))
contiguous(input, memory_format=None) = wg.Tensor.contiguous(input)
requires_grad_(input, requires_grad=True) = wg.Tensor.requires_grad_(input, requires_grad)
pin_memory share_memory_ coalesce(input) = input
copy_(input, src, non_blocking=False) = wg.Tensor.copy_(input, src)
set_(input, source) = replaced(input, source)
squeeze_(input, dim=None) = replaced(input, input.squeeze(dim) if dim is not None else input.squeeze())
unsqueeze_(input, dim) = replaced(input, input.unsqueeze(dim))
transpose_ swapaxes_ swapdims_(input, dim0, dim1) = replaced(input, input.transpose(dim0, dim1))
t_(input) = replaced(input, input.t())
as_strided_(input, size, stride, storage_offset=None) = replaced(input, input.as_strided(size, stride,
    storage_offset))
is_coalesced is_sparse_csr(input) = False
is_set_to(input, tensor) = wg.memory_layout(input) == wg.memory_layout(tensor)
to_dense(input, dtype=None, *, masked_grad=True) = cast(input, dtype)
fill_diagonal_(input, fill_value, wrap=False) = diagonal_filled(input, fill_value)
relu(input) = wg.relu(input)
relu_(input) = written(input, wg.relu(input))
prelu(input, weight) = wg.prelu(input, weight)
hardshrink(input, lambd=0.5) = wg.hardshrink(input, lambd)
sum_to_size(input, *size) = summed_to(input, size)
element_size(input) = input.dtype.itemsize
nelement numel(input) = int(input.size)
ndimension dim(input) = input.ndim
is_contiguous(input, memory_format=None) = strides(input, None) == in_order(input.shape)
is_pinned is_shared(input) = False
get_device(input) = -1 if input.device.name == "cpu" else int(input.device.name.partition(":")[2])
data_ptr(input) = id(input.node)
stride(input, dim=None) = strides(input, dim)
storage_offset(input) = wg.memory_layout(input).offset
apply_(input, callable) = written(input, wg.asarray([callable(each) for each in input.reshape(-1).tolist()],
    dtype=input.dtype).reshape(tuple(input.shape)))
map_(input, other, callable) = written(input, wg.asarray([callable(*each) for each in
    zip(input.reshape(-1).tolist(), other.reshape(-1).tolist())],
    dtype=input.dtype).reshape(tuple(input.shape)))
where(input, condition, other) = choose(condition, input, other)
type(input, dtype=None, non_blocking=False) = typed(input, dtype)

[function method]
fill(input, value) = filled(input, value)
fill_(input, value) = wg.Tensor.fill_(input, creation.turned(value, input.dtype))
zero_(input) = wg.Tensor.fill_(input, 0)
detach_(input) = detached(input)
is_floating_point(input) = input.dtype.kind == "f"
is_complex(input) = input.dtype.kind == "c"
is_signed(input) = input.dtype.kind in "ifc"
is_same_size(input, other) = tuple(input.shape) == tuple(other.shape)
is_inference is_conj is_neg(input) = False
is_nonzero(input) = truth_of(input)
resize_as_(input, the_template, *, memory_format=None) = shaping.resized(input, tuple(the_template.shape))
"""

_CONVERSIONS = {
    "float": wg.float32, "double": wg.float64, "half": wg.float16, "bfloat16": wg.bfloat16, "int": wg.int32,
    "long": wg.int64, "short": wg.int16, "char": wg.int8, "byte": wg.uint8, "bool": wg.bool,
    "cfloat": wg.complex64, "cdouble": wg.complex128,
}  # fmt: skip


def choose(condition: Any, x: Any, other: Any) -> Any:
    """Elements of x where the condition holds."""
    return indexing.functions["where"](condition, x, other)


def moved(x: Any, targets: Any, dtype: Any, device: Any, copy: bool) -> Any:
    """To a device, a dtype, or another tensor's of both; itself where it is there already."""
    for each in targets:
        if isinstance(each, Array):
            device, dtype = each.device, each.dtype
        elif isinstance(each, str | int | Device) and not isinstance(each, bool):
            device = each
        elif each is not None and not isinstance(each, bool):
            dtype = each if not hasattr(each, "synchronize") else dtype
            device = each if hasattr(each, "synchronize") else device
    found = x if device is None else x.to_device(place(device))
    if dtype is not None:
        found = cast(found, wg.as_dtype(dtype))
    return x.clone() if copy and found is x else found


def typed(x: Any, dtype: Any) -> Any:
    """The name of its type, or the tensor in another one."""
    if dtype is None:
        gpu = "" if x.device.name == "cpu" else "cuda."
        return f"torch.{gpu}{NAMES.get(x.dtype, x.dtype.name)}Tensor"
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2].removesuffix("Tensor")
        dtype = next((each for each, known in NAMES.items() if known == name), dtype)
    return cast(x, getattr(dtype, "dtype", dtype))


def filled(x: Any, value: Any) -> Any:
    """A number, or a tensor of one, at all places."""
    return wg.masked_fill(x, wg.ones_like(x, dtype=wg.bool), value)


def truth_of(x: Any) -> bool:
    """Whether the only element is not zero."""
    if x.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(x.item())


def detached(x: Any) -> Any:
    """x without its history, in place."""
    x.data = x.detach()
    x.requires_grad = False
    return x


def replaced(x: Any, value: Any) -> Any:
    """x with the values and the shape of another tensor."""
    x.data = value.detach()
    return x


def diagonal_filled(x: Any, value: Any) -> Any:
    """One number along the diagonal of a matrix."""
    x.diagonal().fill_(value)
    return x


def summed_to(x: Any, size: Any) -> Any:
    """Summed along what was broadcast from a smaller shape."""
    shape = creation.sizes(size)
    if not shape:
        return wg.sum(reductions.counted(x, None))
    lead = x.ndim - len(shape)
    again = [lead + at for at, each in enumerate(shape) if each == 1 and x.shape[lead + at] != 1]
    gone = [*range(lead), *again]
    found = wg.sum(reductions.counted(x, None), gone, keepdims=True) if gone else x
    return wg.reshape(found, shape)


def strides(x: Any, dim: int | None) -> Any:
    """The distances of elements in memory, where views share it; what is computed is in order."""
    found = tuple(
        step if size > 1 else plain
        for step, size, plain in zip(wg.memory_layout(x).strides, x.shape, in_order(x.shape), strict=True)
    )
    return found if dim is None else found[dim]


def in_order(shape: Any) -> tuple[int, ...]:
    """The distances of elements that lie in order."""
    found, step = [], 1
    for size in reversed(tuple(shape)):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))


def _converted(name: str, dtype: Any) -> Callable[..., Any]:
    def method(input: Any, memory_format: Any = None) -> Any:
        return input if input.dtype is dtype else adopt(cast(input, dtype))

    method.__name__ = name
    return method


functions = bind(ROWS, globals())
_MEMBERS = methods(functions)
_MEMBERS |= {name: _converted(name, dtype) for name, dtype in _CONVERSIONS.items()}
for _family in FAMILIES:
    _MEMBERS |= methods(_family.functions)
for _name, _member in _MEMBERS.items():
    setattr(Tensor, _name, _member)


def _flag(answer: Callable[[Any], bool]) -> property:
    return property(answer)


Tensor.is_cuda = _flag(lambda x: x.device.name != "cpu")  # type: ignore[attr-defined]
Tensor.is_cpu = _flag(lambda x: x.device.name == "cpu")  # type: ignore[attr-defined]
for _name in ("is_sparse", "is_quantized", "is_mps", "is_xpu", "is_meta", "is_nested", "is_mkldnn"):
    setattr(Tensor, _name, _flag(lambda x: False))
Tensor.itemsize = property(lambda x: x.dtype.itemsize)  # type: ignore[attr-defined]
