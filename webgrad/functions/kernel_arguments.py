"""The arguments of a user's kernel, checked against its source: tensors, parameters, shapes of results.

In: a program, and the arguments of a call. Out: nodes, shapes and dtypes for a `KernelCall`. The invariant:
what does not fit the source is an error here, before anything is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import index
from typing import Any

from ..dtypes import DType, as_dtype, float32, int32, uint32
from ..errors import DTypeError, LaunchError, ShapeError
from ..graph.node import Node, make, scalar, signature
from ..graph.op import LEAF
from ..ops.shapes import check_binding, check_rank
from ..ops.table import TABLE
from ..tensor import Tensor
from ..wgsl import Binding, Program

Bound = tuple[Binding, Tensor | None]  # None: a result that is made
_NUMBERS: dict[str, DType] = {"f32": float32, "i32": int32, "u32": uint32}


def bound_tensors(program: Program, values: Sequence[Any]) -> list[Bound]:
    """Each binding with its tensor; a call gives tensors for the bindings it reads, or for all in order."""
    label, bindings = program.label, program.bindings
    for each in values:
        if each is not None and not isinstance(each, Tensor):
            raise LaunchError(
                f"{label}: a {type(each).__name__} is not a tensor: make one of it with webgrad.asarray"
            )
    reads = [each for each in bindings if each.access == "read"]
    if len(reads) == len(bindings):
        raise LaunchError(f"{label} has no results: declare what it writes as var<storage, read_write>")
    if len(values) not in (len(reads), len(bindings)):
        raise LaunchError(
            f"{label} takes {len(reads)} tensors ({listed(reads)}), or one for each binding "
            f"({listed(bindings)}) with None for results that are made, not {len(values)}; bindings that its "
            "entry point does not use are left out"
        )
    given = iter(values)
    whole = len(values) == len(bindings)
    found = [(each, next(given) if whole or each.access == "read" else None) for each in bindings]
    missing = [each for each, x in found if x is None and each.access == "read"]
    if missing:
        raise LaunchError(f"{label} reads {listed(missing)}: give a tensor, not None")
    return found


def listed(bindings: Sequence[Binding]) -> str:
    """The names of bindings."""
    return ", ".join(each.name for each in bindings) or "none"


def check_tensor(
    program: Program, binding: Binding, shape: tuple[int, ...], dtype: DType, device: Any, hint: str
) -> None:
    """Refuse a tensor, or a result, whose elements are not those that the source declares."""
    what = f"{program.label}: {binding.name} is {binding.type}"
    if dtype.kind == "c":
        raise DTypeError(
            f"{what}, and {dtype.name} has no type in WGSL: pass its parts, webgrad.view_as_real(x)"
        )
    declared = set(re.findall(r"\b[fiu](?:16|32|64)\b", binding.type))  # none of a struct: it may be anything
    packed = dtype.is_packed
    fits = {"u32"} if packed else {dtype.compute}
    if dtype.name == "float16":
        fits.add("f16")
    if declared and not declared <= fits:
        lie = f", {4 // dtype.itemsize} elements to a word" if packed else ""
        raise DTypeError(
            f"{what}, and {dtype.name} is stored as {' or '.join(sorted(fits))}{lie}: declare that, or {hint}"
        )
    if dtype.feature and device.is_gpu and dtype.feature not in device.features:
        raise DTypeError(f"{what}: {device.name} has no {dtype.name}")
    sig = signature(LEAF, shape, dtype, device)
    if not sig.size:
        raise LaunchError(
            f"{what}, and a tensor of shape {shape} is empty, which no GPU can bind: leave the call out"
        )
    check_size(program, binding, -(-sig.nbytes // 4) * 4)
    check_binding(program.label, sig)


def check_size(program: Program, binding: Binding, nbytes: int) -> None:
    """Refuse a buffer smaller than a binding needs, or not a multiple of 4 bytes."""
    step = min(binding.element_bytes, 4)
    if 0 < nbytes < binding.bytes or (step and nbytes % step):
        raise LaunchError(
            f"{program.label}: a buffer of {nbytes} bytes does not fit {binding.name}, which is "
            f"{binding.type}: {binding.bytes} bytes or more, a multiple of 4"
        )


def result_shapes(
    program: Program, written: Sequence[Bound], asked: Any, device: Any
) -> tuple[tuple[tuple[int, ...], DType], ...]:
    """The shape and dtype of each result: those of the tensor it is given, else those of `results=`."""
    label = program.label
    if not isinstance(asked, Sequence) or len(asked) != len(written):
        names = listed([binding for binding, _ in written])
        raise LaunchError(f"{label}: results= is a list of (shape, dtype) for ({names}), not {asked!r}")
    found = []
    for (binding, begun), each in zip(written, asked, strict=True):
        shape, dtype = _shape_and_dtype(label, each) if begun is None else (begun.shape, begun.dtype)
        check_tensor(program, binding, shape, dtype, device, "say in results= what it is")
        found.append((shape, dtype))
    return tuple(found)


def _shape_and_dtype(label: str, result: Any) -> tuple[tuple[int, ...], DType]:
    try:
        shape, dtype = result
        sizes = tuple(map(index, shape)) if isinstance(shape, Sequence) else (index(shape),)
    except (TypeError, ValueError):
        raise LaunchError(f"{label}: a result is a (shape, dtype), not {result!r}") from None
    if min(sizes, default=0) < 0:
        raise ShapeError(f"{label}: a result cannot have shape {sizes}: no size may be negative")
    check_rank(sizes)
    return sizes, as_dtype(dtype)


def stored_node(node: Node) -> Node:
    """A node that has a buffer once it is computed: a scalar that the host knows has none."""
    return make(TABLE["reshape"], (node,), ((),)) if node.sig.kind == "scalar" else node


def host_numbers(label: str, name: str, value: Any) -> Any:
    """The value of a parameter, or of a vector's elements; the host must know the value of a tensor."""
    if isinstance(value, tuple | list):
        return tuple(host_numbers(label, name, each) for each in value)
    if not isinstance(value, Tensor):
        return value
    if value.node.sig.kind != "scalar":
        raise LaunchError(
            f"{label}: param `{name}` is a tensor on the device: bind it as a storage buffer, or "
            "pass a number (x.item() waits for it); webgrad.fresh gives those that change under jit"
        )
    return value.node.storage


def numbers_of(program: Program, params: Mapping[str, Any], device: Any) -> Iterator[Node]:
    """The parameters as scalars, field by field: another number needs no other plan."""
    for field in program.params:
        dtype, value = _NUMBERS[field.type.removesuffix(">")[-3:]], params[field.name]
        for each in value if isinstance(value, Sequence) else (value,):
            if isinstance(each, Tensor):
                yield scalar(each.node.storage, each.node.sig.dtype, device)
            else:
                yield scalar(float(each) if dtype is float32 else index(each), dtype, device)
