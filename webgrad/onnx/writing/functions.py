"""Rows of functions that are one operator of ONNX: convolution, pooling, normalisation, softmax.

What a row's condition does not allow is written by its primitives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...arrays import np
from .builder import Value
from .elementwise import like
from .movement import reshaped, transposed
from .sizes import is_fixed
from .table import Site, call

_Arguments = Mapping[str, Any]


def _axes_of(name: str) -> int:
    """How many axes a function of images is for: conv2d has 2."""
    return int(name[-2])


def _per_axis(value: Any, count: int) -> list[int]:
    found = [value] if isinstance(value, int) else [*value]
    return found * count if len(found) == 1 else found


def _is_float(arguments: _Arguments) -> bool:
    """Whether onnxruntime has kernels for it: no float64, no integers."""
    return all(
        each.dtype.name in ("float32", "float16", "bfloat16")
        for each in arguments.values()
        if hasattr(each, "dtype")
    )


def _is_batched(arguments: _Arguments, rank: int) -> bool:
    return bool(arguments["x"].ndim == rank)


# Convolution


def _convolves(arguments: _Arguments) -> bool:
    rank = arguments["weight"].ndim
    return _is_float(arguments) and _is_batched(arguments, rank) and 0 not in arguments["x"].shape


@call("conv1d conv2d conv3d", _convolves)
def conv(site: Site) -> Value:
    count, given = _axes_of(site.node.op), site.attributes
    kernel = [*site.sources[site.node.parameters.index("weight")].shape[2:]]
    dilations = _per_axis(given["dilation"], count)
    return site.b.op(
        "Conv",
        *site.inputs,
        kernel_shape=kernel,
        strides=_per_axis(given["stride"], count),
        dilations=dilations,
        group=given["groups"],
        pads=_pads(given["padding"], kernel, dilations),
    )


def _pads(padding: Any, kernel: list[int], dilations: list[int]) -> list[int]:
    if padding == "valid":
        return [0] * (2 * len(kernel))
    if padding == "same":
        total = [dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True)]
        return [*(each // 2 for each in total), *(each - each // 2 for each in total)]
    return _per_axis(padding, len(kernel)) * 2


@call("conv_transpose1d conv_transpose2d conv_transpose3d", _convolves)
def conv_transpose(site: Site) -> Value:
    count, given = _axes_of(site.node.op), site.attributes
    names = {"strides": "stride", "dilations": "dilation", "output_padding": "output_padding"}
    steps: dict[str, Any] = {name: _per_axis(given[key], count) for name, key in names.items()}
    return site.b.op(
        "ConvTranspose",
        *site.inputs,
        kernel_shape=[*site.sources[site.node.parameters.index("weight")].shape[2:]],
        group=given["groups"],
        pads=_per_axis(given["padding"], count) * 2,
        **steps,
    )


# Pooling


def _pools(arguments: _Arguments) -> bool:
    plain = not arguments.get("return_indices") and not arguments.get("divisor_override")
    ceil = arguments.get("ceil_mode")
    return plain and not ceil and _is_float(arguments) and 0 not in arguments["x"].shape


@call("max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d", _pools)
def pool(site: Site) -> Value:
    count, given = _axes_of(site.node.op), site.attributes
    kernel = _per_axis(given["kernel_size"], count)
    stride = given["stride"]
    more: dict[str, Any] = {"count_include_pad": int(given.get("count_include_pad", False))}
    if site.node.op.startswith("max"):
        more = {"dilations": _per_axis(given["dilation"], count)}
    shape = site.sources[0].shape
    x = site.inputs[0] if len(shape) == count + 2 else reshaped(site.b, site.inputs[0], (1, *shape))
    found = site.b.op(
        "MaxPool" if site.node.op.startswith("max") else "AveragePool",
        x,
        kernel_shape=kernel,
        strides=kernel if stride is None or stride in ((), []) else _per_axis(stride, count),
        pads=_per_axis(given["padding"], count) * 2,
        **more,
    )
    return found if len(shape) == count + 2 else reshaped(site.b, found, site.shape)


def _is_global(arguments: _Arguments) -> bool:
    size, x = arguments["output_size"], arguments["x"]
    return (
        _is_float(arguments)
        and all(each == 1 for each in (size if isinstance(size, tuple | list) else [size]))
        and 0 not in x.shape
    )


@call("adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d", _is_global)
def global_pool(site: Site) -> Value:
    axes = range(-_axes_of(site.node.op), 0)
    return site.b.op("ReduceMean", site.inputs[0], site.b.constant([*axes]), keepdims=1)


# Normalisation


def _weights(site: Site, count: Any) -> list[Value]:
    """A scale and a bias for each of so many: ones and zeros where there are none."""
    like_what = site.inputs[0].dtype
    found = []
    for name, start in (("weight", 1), ("bias", 0)):
        given = site.input(name)
        found.append(given if given is not None else site.b.constant(np.full(count, start), like_what))
    return found


def _has_statistics(arguments: _Arguments) -> bool:
    given = [arguments["running_mean"], arguments["running_var"]]
    return not arguments["training"] and None not in map(_none, given) and _is_even(arguments)


def _none(value: Any) -> Any:
    return None if value is None else True


def _is_even(arguments: _Arguments) -> bool:
    """Whether all tensors have one type, and are floats."""
    kinds = {each.dtype.name for each in arguments.values() if hasattr(each, "dtype")}
    return len(kinds) == 1 and kinds <= {"float32", "float64"} and 0 not in arguments["x"].shape


@call("batch_norm", _has_statistics)
def batch_norm(site: Site) -> Value:
    weights = _weights(site, site.shape[1])
    statistics = [site.input("running_mean"), site.input("running_var")]
    return site.b.op(
        "BatchNormalization", site.inputs[0], *weights, *statistics, epsilon=site.attributes["eps"]
    )


def _is_last(arguments: _Arguments) -> bool:
    axis = arguments["axis"]
    return _is_even(arguments) and (arguments["normalized_shape"] is not None or axis in (-1, (-1,), [-1]))


@call("layer_norm", _is_last)
def layer_norm(site: Site) -> Value:
    sizes = site.attributes["normalized_shape"]
    count = 1 if sizes is None or isinstance(sizes, int) else len(sizes)
    shape = site.shape[-count:]
    if not is_fixed(shape):
        site.refuse("the size that is normalised is open")
    inputs = [site.inputs[0], *_weights(site, shape)]
    return site.b.op("LayerNormalization", *inputs, axis=-count, epsilon=site.attributes["eps"])


@call("instance_norm", lambda arguments: bool(arguments["use_input_stats"]) and _is_even(arguments))
def instance_norm(site: Site) -> Value:
    weights = _weights(site, site.shape[1])
    return site.b.op("InstanceNormalization", site.inputs[0], *weights, epsilon=site.attributes["eps"])


# Products and softmax


def _is_plain_linear(arguments: _Arguments) -> bool:
    return arguments["x"].ndim > 1 and arguments["weight"].ndim == 2 and _is_even(arguments)


@call("linear", _is_plain_linear)
def linear(site: Site) -> Value:
    x, weight = site.inputs[:2]
    if len(site.sources[0].shape) == 2:
        return site.b.op("Gemm", *site.inputs, transB=1)
    found = site.b.op("MatMul", x, transposed(site.b, weight, (1, 0)))
    return found if len(site.inputs) < 3 else site.b.op("Add", found, site.inputs[2])


@call("softmax log_softmax", lambda arguments: isinstance(arguments["axis"], int) and _is_even(arguments))
def softmax(site: Site) -> Value:
    operator = "Softmax" if site.node.op == "softmax" else "LogSoftmax"
    return site.b.op(operator, site.inputs[0], axis=site.attributes["axis"])


def _is_mean(arguments: _Arguments) -> bool:
    x = arguments["x"]
    return x.dtype.kind == "f" and arguments["dtype"] is None and x.size > 0 and x.ndim > 0


@call("mean", _is_mean)
def mean(site: Site) -> Value:
    axis, keep = site.attributes["axis"], int(site.attributes["keepdims"])
    rank = len(site.sources[0].shape)
    axes = [*range(rank)] if axis is None else [axis] if isinstance(axis, int) else [*axis]
    x = site.inputs[0]
    return x if not axes else site.b.op("ReduceMean", x, site.b.constant(axes), keepdims=keep)


# Activations

_SAME = {"elu": "Elu", "celu": "Celu", "leaky_relu": "LeakyRelu"}
_FACTOR = {"elu": "alpha", "celu": "alpha", "leaky_relu": "negative_slope"}


@call("elu celu leaky_relu", _is_float)
def activation(site: Site) -> Value:
    name = site.node.op
    return site.b.op(_SAME[name], site.inputs[0], alpha=float(site.attributes[_FACTOR[name]]))


@call("hardsigmoid hardswish", _is_float)
def hard(site: Site) -> Value:
    (x,) = site.inputs
    found = site.b.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)
    return found if site.node.op == "hardsigmoid" else site.b.op("Mul", x, found)


@call("relu6", _is_float)
def relu6(site: Site) -> Value:
    (x,) = site.inputs
    return site.b.op("Clip", x, like(site.b, 0, x), like(site.b, 6, x))
