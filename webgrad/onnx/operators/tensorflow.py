"""TensorFlow's operators, for graph models of TensorFlow.js: a domain of its own, with its attributes' names.

Pictures have their channels last, (N, H, W, C), and filters are (H, W, in, out). What runs is a convolution
with channels first: the views around it are part of the kernels that read and write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import webgrad as wg

from ...arrays import np
from .resizing import resize
from .table import Call, operator
from .values import axes_of, whole
from .windows import padded, same_widths

__all__ = ["TENSORFLOW", "TYPES"]

TENSORFLOW = "tensorflow"

# TensorFlow's name, and webgrad's function of all its inputs
_SAME = """
Abs abs, Add add, AddV2 add, Ceil ceil, Cos cos, Div divide, Elu elu, Erf erf, Exp exp, Expm1 expm1,
Floor floor, FloorDiv floor_divide, FloorMod remainder, Log log, Log1p log1p, LogSoftmax log_softmax,
Maximum maximum, Minimum minimum, Mul multiply, Neg negative, Pow pow, RealDiv divide, Reciprocal reciprocal,
Relu relu, Relu6 relu6, Rsqrt rsqrt, Selu selu, Sigmoid sigmoid, Sin sin, Softmax softmax, Softplus softplus,
Sqrt sqrt, Square square, Sub subtract, Tanh tanh
"""
for _row in _SAME.replace("\n", " ").split(","):
    _name, _function = _row.split()
    operator(_name, domain=TENSORFLOW)(getattr(wg, _function, None) or getattr(wg.nn.functional, _function))

# What may be computed behind a sum of products, by its name in fused_ops
_ACTIVATIONS = {
    "Relu": wg.nn.functional.relu, "Relu6": wg.nn.functional.relu6, "Elu": wg.nn.functional.elu,
    "Sigmoid": wg.sigmoid, "Tanh": wg.tanh,
}  # fmt: skip
TYPES = {
    "DT_HALF": "float16", "DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_BOOL": "bool",
    "DT_UINT8": "uint8", "DT_INT8": "int8", "DT_INT32": "int32", "DT_INT64": "int64",
}  # fmt: skip


@operator("SquaredDifference", domain=TENSORFLOW)
def squared_difference(a: Any, b: Any) -> Any:
    return wg.square(a - b)


@operator("AddN", domain=TENSORFLOW)
def add_all(*x: Any) -> Any:
    return reduce(wg.add, x)


@operator("LeakyRelu", domain=TENSORFLOW)
def leaky_relu(x: Any, *, alpha: float = 0.2) -> Any:
    return wg.nn.functional.leaky_relu(x, alpha)


@operator("Cast", domain=TENSORFLOW)
def cast(x: Any, *, DstT: str) -> Any:
    if DstT not in TYPES:
        raise wg.ModelFileError(f"Cast to {DstT}, and there are {', '.join(TYPES)}")
    return x.astype(getattr(wg, TYPES[DstT]))


@operator("Identity StopGradient Snapshot", domain=TENSORFLOW, known="x")
def identity(x: Any) -> Any:
    return x


# Shapes and places


@operator("Shape", domain=TENSORFLOW, known="x")
def shape(x: Any) -> Any:
    return np.asarray(x.shape, np.int32)


@operator("Reshape", domain=TENSORFLOW, host="shape")
def reshape(x: Any, shape: Any) -> Any:
    return wg.reshape(x, tuple(map(int, shape)))


@operator("Transpose", domain=TENSORFLOW, host="order")
def transpose(x: Any, order: Any) -> Any:
    return wg.permute_dims(x, tuple(map(int, order)))


@operator("ExpandDims", domain=TENSORFLOW, host="axis")
def expand_dims(x: Any, axis: Any) -> Any:
    return wg.expand_dims(x, axis=whole(axis))


@operator("Squeeze", domain=TENSORFLOW)
def squeeze(x: Any, *, squeeze_dims: Sequence[int] = ()) -> Any:
    gone = axes_of(squeeze_dims, x.ndim) or [at for at, each in enumerate(x.shape) if each == 1]
    return wg.squeeze(x, axis=tuple(gone))


@operator("Pack", domain=TENSORFLOW)
def pack(*x: Any, axis: int = 0) -> Any:
    return wg.stack(x, axis=axis)


@operator("ConcatV2", domain=TENSORFLOW, known="x")
def concat(*x: Any, call: Call) -> Any:
    """The last input is the axis."""
    return wg.concat([call.tensor(each) for each in x[:-1]], axis=whole(call.host(x[-1])))


@operator("Pad PadV2", domain=TENSORFLOW, host="widths value")
def pad(x: Any, widths: Any, value: Any = 0) -> Any:
    return wg.pad(x, [tuple(map(int, each)) for each in widths], constant_values=float(value))


@operator("GatherV2", domain=TENSORFLOW, host="axis")
def gather(x: Any, indices: Any, axis: Any, *, batch_dims: int = 0) -> Any:
    if batch_dims:
        raise wg.ModelFileError(f"GatherV2 with batch_dims={batch_dims} is not there")
    return wg.take(x, indices, axis=whole(axis))


@operator("StridedSlice", domain=TENSORFLOW, host="begin end strides")
def strided_slice(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    *,
    begin_mask: int = 0,
    ellipsis_mask: int = 0,
    end_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Any:
    """A mask has a bit for each of the places that `begin` lists."""
    chosen: list[Any] = []
    for at, each in enumerate(zip(begin, end, strides, strict=True)):
        first, last, step = map(int, each)
        bit = 1 << at
        if ellipsis_mask & bit:
            chosen.append(...)
        elif new_axis_mask & bit:
            chosen.append(None)
        elif shrink_axis_mask & bit:
            chosen.append(first)
        else:
            chosen.append(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return x[tuple(chosen)]


# Folds


def _axes(x: Any, axes: Any) -> tuple[int, ...]:
    return axes_of(np.atleast_1d(axes), x.ndim)


@operator("Mean", domain=TENSORFLOW, host="axes")
def mean(x: Any, axes: Any, *, keep_dims: bool = False) -> Any:
    return wg.mean(x, _axes(x, axes), keepdims=bool(keep_dims))


@operator("Sum", domain=TENSORFLOW, host="axes")
def total(x: Any, axes: Any, *, keep_dims: bool = False) -> Any:
    return wg.sum(x, _axes(x, axes), dtype=x.dtype, keepdims=bool(keep_dims))


@operator("Prod", domain=TENSORFLOW, host="axes")
def product(x: Any, axes: Any, *, keep_dims: bool = False) -> Any:
    return wg.prod(x, _axes(x, axes), dtype=x.dtype, keepdims=bool(keep_dims))


@operator("Max", domain=TENSORFLOW, host="axes")
def largest(x: Any, axes: Any, *, keep_dims: bool = False) -> Any:
    return wg.max(x, _axes(x, axes), keepdims=bool(keep_dims))


@operator("Min", domain=TENSORFLOW, host="axes")
def smallest(x: Any, axes: Any, *, keep_dims: bool = False) -> Any:
    return wg.min(x, _axes(x, axes), keepdims=bool(keep_dims))


# Products


@operator("MatMul", domain=TENSORFLOW)
def matmul(a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return (a.mT if transpose_a else a) @ (b.mT if transpose_b else b)


@operator("BatchMatMul BatchMatMulV2", domain=TENSORFLOW)
def batched_matmul(a: Any, b: Any, *, adj_x: bool = False, adj_y: bool = False) -> Any:
    return matmul(a, b, transpose_a=adj_x, transpose_b=adj_y)


@operator("_FusedMatMul", domain=TENSORFLOW)
def fused_matmul(
    a: Any,
    b: Any,
    *rest: Any,
    epsilon: float = 0.0,
    fused_ops: Sequence[str] = (),
    leakyrelu_alpha: float = 0.2,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Any:
    bias, activation = _fused(fused_ops, rest, leakyrelu_alpha)
    y = matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return activation(y if bias is None else y + bias)


@operator("Einsum", domain=TENSORFLOW)
def einsum(*x: Any, equation: str) -> Any:
    return wg.einsum(equation, *x)


@operator("BiasAdd", domain=TENSORFLOW)
def bias_add(x: Any, bias: Any, *, data_format: str = "NHWC") -> Any:
    _check_format(data_format)
    return x + bias


def _fused(names: Sequence[str], rest: Sequence[Any], alpha: float) -> tuple[Any, Any]:
    """The bias, and the function of what comes behind it."""
    has_bias = "BiasAdd" in names
    others = [each for each in names if each != "BiasAdd"]
    if len(rest) != has_bias or len(others) > 1:
        raise wg.ModelFileError(f"fused_ops {tuple(names)} with {len(rest)} inputs is not there")
    known = {**_ACTIVATIONS, "LeakyRelu": lambda x: wg.nn.functional.leaky_relu(x, alpha)}
    if others and others[0] not in known:
        raise wg.ModelFileError(f"there is no {others[0]!r} behind a product, only {', '.join(known)}")
    return rest[0] if has_bias else None, known[others[0]] if others else identity


# Pictures


def _check_format(data_format: str) -> None:
    if data_format != "NHWC":
        raise wg.ModelFileError(f"data_format is NHWC here, not {data_format!r}")


def _inner(name: str, sizes: Sequence[int]) -> tuple[int, int]:
    """Of strides, dilations and the like those of height and width."""
    if len(sizes) != 4 or sizes[0] != 1 or sizes[3] != 1:
        raise wg.ModelFileError(f"{name} goes over height and width here, not {tuple(sizes)}")
    return int(sizes[1]), int(sizes[2])


def _widths(x: Any, spans: Sequence[int], steps: Sequence[int], padding: str, explicit: Sequence[int]) -> Any:
    """What is around height and width of (N, C, H, W), before and behind."""
    if padding == "VALID":
        return ((0, 0), (0, 0))
    if padding == "EXPLICIT" and len(explicit) == 8 and not any((*explicit[:2], *explicit[6:])):
        return tuple(explicit[2:4]), tuple(explicit[4:6])
    if padding != "SAME":
        raise wg.ModelFileError(f"padding is SAME, VALID or EXPLICIT, not {padding!r} {tuple(explicit)}")
    sizes = zip(x.shape[2:], spans, steps, strict=True)
    return same_widths([(-(-n // step) - 1) * step + span - n for n, span, step in sizes], "SAME_UPPER")


@operator("Conv2D", domain=TENSORFLOW)
def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    explicit_paddings: Sequence[int] = (),
    padding: str,
    strides: Sequence[int],
) -> Any:
    _check_format(data_format)
    steps, apart = _inner("strides", strides), _inner("dilations", dilations)
    moved = wg.moveaxis(x, -1, 1)
    spans = [(size - 1) * gap + 1 for size, gap in zip(weight.shape[:2], apart, strict=True)]
    widths = _widths(moved, spans, steps, padding, explicit_paddings)
    around = tuple(before for before, _ in widths)
    if any(before != after for before, after in widths):
        moved, around = padded(moved, widths), (0, 0)
    groups = moved.shape[1] // weight.shape[2]
    y = wg.conv2d(moved, wg.permute_dims(weight, (3, 2, 0, 1)), bias, steps, around, apart, groups)
    return wg.moveaxis(y, 1, -1)


@operator("_FusedConv2D", domain=TENSORFLOW)
def fused_conv(
    x: Any,
    weight: Any,
    *rest: Any,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    epsilon: float = 0.0,
    explicit_paddings: Sequence[int] = (),
    filter_format: str = "HWIO",
    fused_ops: Sequence[str] = (),
    leakyrelu_alpha: float = 0.2,
    padding: str,
    strides: Sequence[int],
) -> Any:
    if filter_format != "HWIO":
        raise wg.ModelFileError(f"filter_format is HWIO here, not {filter_format!r}")
    bias, activation = _fused(fused_ops, rest, leakyrelu_alpha)
    how = {"data_format": data_format, "dilations": dilations, "explicit_paddings": explicit_paddings}
    return activation(conv(x, weight, bias, padding=padding, strides=strides, **how))


@operator("ResizeNearestNeighbor", domain=TENSORFLOW, host="size")
def resize_nearest(
    x: Any, size: Any, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    if align_corners:
        raise wg.ModelFileError("ResizeNearestNeighbor with align_corners is not there")
    places = "tf_half_pixel_for_nn" if half_pixel_centers else "asymmetric"
    return resize(
        x,
        sizes=np.asarray(size),
        axes=(1, 2),
        coordinate_transformation_mode=places,
        mode="nearest",
        nearest_mode="floor",
    )
