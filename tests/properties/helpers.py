"""Shared by the property tests: devices, special values, layouts, and comparison in units in the last place.

In: ops and dtypes of the table. Out: nodes beside the arrays they stand for, and a text for each difference.
The invariant: what is compared with is computed by NumPy from the same arrays, never by webgrad's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.evaluate.evaluate import evaluate, read
from webgrad.graph.node import Node, Signature, backlog, leaf, signature
from webgrad.graph.op import Op
from webgrad.ops import primitives
from webgrad.runtime.device import CpuDevice, open_device
from webgrad.runtime.webgpu import Device

__all__ = [
    "ALL_BUT_NONE",
    "LAYOUTS",
    "LEAST",
    "SHAPES",
    "AnyDevice",
    "Array",
    "Case",
    "Operand",
    "crossed",
    "differences",
    "draw",
    "flushed",
    "gpu",
    "on",
    "place",
    "sig_of",
    "slack_of",
    "specials",
    "unlimited_backlog",
    "wide",
]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Drawer = Callable[[Shape], Array]
AnyDevice = Device | CpuDevice


@cache
def gpu() -> Device:
    """The device that tests marked gpu run on."""
    device = open_device("webgpu")
    assert isinstance(device, Device)
    return device


def on(name: str) -> AnyDevice:
    """A device by the name that tests are parametrised with."""
    return gpu() if name == "webgpu" else open_device("cpu")


def place(array: Array, device: AnyDevice) -> Node:
    """An array as a leaf on a device."""
    storage = device.upload(np.ascontiguousarray(array)) if isinstance(device, Device) else array
    return leaf(storage, array.shape, dtypes.as_dtype(array.dtype), device)


def sig_of(op: Op, inputs: Sequence[Signature], attributes: tuple[Any, ...] = ()) -> Signature:
    """The signature of a result, without a node."""
    assert op.infer is not None
    shape, dtype = op.infer(tuple(inputs), attributes)
    return signature(op, shape, dtype, inputs[0].device, attributes)


@contextmanager
def unlimited_backlog() -> Iterator[None]:
    """Nothing is computed before it is asked for, however many nodes are made."""
    before = backlog.most, backlog.most_bytes
    backlog.most, backlog.most_bytes = 1 << 40, 1 << 60
    backlog.restart(backlog.waiting())
    try:
        yield
    finally:
        backlog.most, backlog.most_bytes = before
        backlog.restart(backlog.waiting())


# Data


def draw(
    generator: np.random.Generator, dtype: DType, shape: Shape, domain: tuple[float, float] = (-1e3, 1e3)
) -> Array:
    """Random elements: floats from a domain, integers small ones and any."""
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "f":
        return np.asarray(generator.uniform(*domain, shape)).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    anything = generator.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
    small = generator.integers(max(limits.min, -9), 40, shape).astype(dtype.numpy)
    return np.where(generator.integers(0, 2, shape) == 1, small, anything)


def specials(dtype: DType) -> Array:
    """The values at which ops go wrong: NaN, infinities, zeros, denormals and limits."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        info = _info(dtype)
        least = info.smallest_subnormal
        ends = [float(each) for each in (info.max, -info.max, info.tiny, least, -least)]
        return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, *ends]).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    numbers = {0, 1, 2, 7, 8, 31, 32, limits.max, limits.max - 1, limits.min, limits.min // 2}
    numbers |= {-1, -2, -7} if dtype.kind == "i" else set()
    return np.array(sorted(numbers), dtype.numpy)


def crossed(choices: Sequence[Array]) -> list[Array]:
    """One array per operand, so that every combination comes once."""
    rows = list(product(*[range(len(each)) for each in choices]))
    return [each[[row[at] for row in rows]] for at, each in enumerate(choices)]


def wide(array: Array) -> Array:
    """Floats as float64, in which references are computed."""
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def flushed(array: Array) -> Array:
    """Denormals of float32 as zeros: drivers may read them so."""
    if array.dtype.kind not in "fV":
        return array
    tiny = float(np.finfo(np.float32).tiny)
    return np.where(np.abs(wide(array)) < tiny, np.copysign(0.0, wide(array)).astype(array.dtype), array)


@cache
def _info(dtype: DType) -> Any:
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo  # has no types
    return finfo(dtype.numpy)


# Layouts: a node that is not a plain array in memory, and the array it stands for.


@dataclass(frozen=True, slots=True)
class Operand:
    """A node and its value."""

    node: Node
    value: Array


def _contiguous(drawer: Drawer, shape: Shape, device: AnyDevice, turn: int) -> Operand:
    value = drawer(shape)
    return Operand(place(value, device), value)


def _transposed(drawer: Drawer, shape: Shape, device: AnyDevice, turn: int) -> Operand:
    value = drawer(shape[::-1])
    axes = tuple(reversed(range(len(shape))))
    return Operand(primitives.permute(place(value, device), axes), value.transpose(axes))


def _sliced(drawer: Drawer, shape: Shape, device: AnyDevice, turn: int) -> Operand:
    """Every second row and third column of something larger, one axis backwards."""
    steps = [2 + (axis + turn) % 2 for axis in range(len(shape))]
    value = drawer(tuple(1 + step * size for size, step in zip(shape, steps, strict=True)))
    ranges = tuple((1, 1 + step * size, step) for size, step in zip(shape, steps, strict=True))
    axis = (len(shape) - 1 + turn) % len(shape)
    node = primitives.flip(primitives.slice_(place(value, device), ranges), (axis,))
    return Operand(node, np.flip(value[tuple(slice(*each) for each in ranges)], axis))


def _broadcast(drawer: Drawer, shape: Shape, device: AnyDevice, turn: int) -> Operand:
    """One size, in turns the first and the last, repeated."""
    lone = turn % len(shape)
    value = drawer(tuple(1 if axis == lone else size for axis, size in enumerate(shape)))
    return Operand(primitives.expand(place(value, device), shape), np.broadcast_to(value, shape))


LAYOUTS: dict[str, Callable[[Drawer, Shape, AnyDevice, int], Operand]] = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "sliced": _sliced,
    "broadcast": _broadcast,
}
# Rows of vectors of four, rows that share words, and a square, whose transpose has its shape.
SHAPES: tuple[Shape, ...] = ((5, 12), (3, 7), (4, 4))


# Comparison

# Ops whose zeros have any sign: a difference of equals, or what is left of one.
UNSIGNED = frozenset({"gelu", "gelu_tanh"})
LEAST = float(np.finfo(np.float64).tiny)


def slack_of(op: Op) -> float:
    """An absolute bound that lets zeros have any sign, for such ops; none for others."""
    return LEAST if op.name in UNSIGNED else 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A node, the arrays it may be equal to, and by how much it may differ: in ulps, or absolutely."""

    label: str
    node: Node
    wanted: tuple[Array, ...]
    ulps: float = 0.0
    slack: Array | float = 0.0


ALL_BUT_NONE = "all cases together, but none alone"


def differences(build: Callable[[], Iterable[Case]], *, may_flush: bool = False) -> list[str]:
    """Compute all cases in one go; a line for each that is wrong. Where that fails, once more one by one."""
    cases = list(build())
    try:
        evaluate([case.node for case in cases])
    except Exception as error:
        return _failures(build(), may_flush) or [f"{ALL_BUT_NONE}: {error!r}"]
    found = [(case, _difference(case, read(case.node), may_flush)) for case in cases]
    return [f"{case.label} ({case.node.sig.dtype.name}): {text}" for case, text in found if text]


def _failures(cases: Iterable[Case], may_flush: bool) -> list[str]:
    lines = []
    for case in cases:
        try:
            text = _difference(case, read(case.node), may_flush)
        except Exception as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if text:
            lines.append(f"{case.label} ({case.node.sig.dtype.name}): {text}")
    return lines


def _difference(case: Case, actual: Array, may_flush: bool) -> str:
    dtype = dtypes.as_dtype(actual.dtype)
    first = case.wanted[0]
    if actual.shape != first.shape:
        return f"the shape is {actual.shape}, not {first.shape}"
    if not actual.size:
        return ""
    errors = np.min([_errors(actual, each, case, dtype, may_flush) for each in case.wanted], axis=0)
    worst = np.unravel_index(int(np.argmax(errors)), errors.shape)
    if errors[worst] == 0:
        return ""
    count = np.count_nonzero(errors)
    at = f"[{', '.join(map(str, worst))}]"
    return (
        f"{count} of {actual.size} are wrong; the worst is {at}: {actual[worst]!r}, not "
        f"{first[worst]!r}, {errors[worst]:.3g} units over the limit"
    )


def _errors(actual: Array, wanted: Array, case: Case, dtype: DType, may_flush: bool) -> Array:
    """By how much each element is beyond what is allowed; 0 where it is right."""
    if dtype.kind != "f":
        return np.asarray(actual != wanted, np.float64)
    with np.errstate(all="ignore"):
        a, b = wide(actual), wide(wanted)
        info = _info(dtype)
        end = np.inf if dtype.itemsize == 8 else 2.0 ** np.frexp(float(info.max))[1]
        near_a, near_b = np.clip(a, -end, end), np.clip(b, -end, end)
        scale = np.maximum(np.abs(near_b), float(info.tiny))
        unit = np.ldexp(float(info.eps), np.frexp(np.minimum(scale, float(info.max)))[1] - 1)
        distance = np.where(near_a == near_b, 0.0, np.abs(near_a - near_b))
        allowed = unit * _allowed_units(case.ulps, dtype) + case.slack
        if may_flush and dtype is not dtypes.float16:
            allowed = np.maximum(allowed, float(np.finfo(np.float32).tiny))
        errors = np.where(distance <= allowed, 0.0, (distance - allowed) / unit)
        errors = np.where(np.isnan(a) | np.isnan(b), np.where(np.isnan(a) & np.isnan(b), 0.0, np.inf), errors)
    if not np.any(case.slack) and _keeps_signs(case.node.sig.device):
        errors = np.where((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b)), 1.0, errors)
    return np.asarray(errors)


def _keeps_signs(device: AnyDevice) -> bool:
    """Whether zeros must have NumPy's signs: WGSL does not promise that, and real GPUs may not."""
    return device.profile.kind == "software" or not isinstance(device, Device)


def _allowed_units(ulps: float, dtype: DType) -> float:
    """What a bound for float32 means in another type: 16-bit floats are rounded once more, at the end."""
    if ulps == 0:
        return 0.0
    if dtype.itemsize == 2:
        return 0.5 + (ulps + 0.5) * float(np.finfo(np.float32).eps) / float(_info(dtype).eps)
    return ulps if dtype is dtypes.float32 else 1e-12 / float(_info(dtype).eps)
