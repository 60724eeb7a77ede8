"""Activations: the functions between layers, with PyTorch's names, arguments and results at NaN and infinity.

In: a tensor of floats. Out: one of the same shape and dtype. 16-bit floats are computed in float32 and
rounded once. Everything here is map ops; softmax and log_softmax have two reductions too: one kernel each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import DType
from ...errors import ArgumentError, ShapeError
from ...gradients.own import own_gradient
from ...ops import primitives
from ...ops.shapes import check_kind, normalise_axes, normalise_axis
from ...ops.table import TABLE
from ...tensor import Tensor
from ..array.creation import as_tensor
from ..array.elementwise import abs as absolute
from ..array.elementwise import exp, expm1, log, log1p, minimum, sigmoid, sign, tanh, where
from ..array.reductions import converted, floating, fold, shift_of
from ..array.reshaping import part
from ..pure import pure

# "Self-Normalizing Neural Networks", Klambauer et al. 2017: the fixed point with mean 0 and variance 1
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def _applied(op: str, x: Any, function: Callable[[Tensor], Tensor], kinds: str = "f") -> Tensor:
    """A function of floats, computed wide and converted back to x's dtype."""
    x = as_tensor(op, x)
    return converted(function(floating(op, x, kinds)), x.dtype)


def _up_to(x: Tensor, most: float) -> Tensor:
    """x, and 0 above a bound, where the exponential is not used: it would overflow, and gradients be NaN."""
    return where(x > most, 0.0, x)


def within(x: Tensor, low: float | None, high: float | None) -> Tensor:
    """x between two bounds, as `clip`; but at a bound, as outside of it, the gradient is 0."""
    node = x.node
    for row, bound in (("clamp_min", low), ("clamp_max", high)):
        if bound is not None:
            node = primitives.elementwise(TABLE[row], bound, node)
    return Tensor(node)


@pure
def relu(x: Tensor) -> Tensor:
    """max(x, 0); NaN stays. Integers too.

    >>> wg.relu(wg.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return within(as_tensor("relu", x), 0, None)


@pure
def relu6(x: Tensor) -> Tensor:
    """x clamped between 0 and 6.

    >>> wg.relu6(wg.asarray([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """
    return within(as_tensor("relu6", x), 0, 6)


@pure
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else x * negative_slope.

    >>> wg.leaky_relu(wg.asarray([-2.0, 2.0]), 0.5).tolist()
    [-1.0, 2.0]
    """
    return _applied("leaky_relu", x, lambda x: where(x > 0, x, x * negative_slope))


@pure
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1).

    >>> wg.elu(wg.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return _applied("elu", x, lambda x: where(x > 0, x, expm1(_up_to(x, 0.0)) * alpha))


@pure
def selu(x: Tensor) -> Tensor:
    """`elu`, scaled so that means and variances settle at 0 and 1 from layer to layer.

    >>> wg.selu(wg.asarray([0.0, 1.0])).numpy().round(4).tolist()
    [0.0, 1.0506999492645264]
    """
    slope = _SELU_ALPHA * _SELU_SCALE
    return _applied("selu", x, lambda x: where(x > 0, x * _SELU_SCALE, expm1(_up_to(x, 0.0)) * slope))


@pure
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x / alpha) - 1).

    >>> wg.celu(wg.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    if alpha == 0:
        raise ArgumentError("celu: alpha must not be 0: x is divided by it")
    return _applied("celu", x, lambda x: where(x > 0, x, expm1(_up_to(x, 0.0) / alpha) * alpha))


@pure
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, else x * weight: one number, or one for each channel (axis 1).

    >>> wg.prelu(wg.asarray([-2.0, 2.0]), wg.asarray([0.5])).tolist()
    [-1.0, 2.0]
    """
    x, weight = as_tensor("prelu", x), as_tensor("prelu", weight)
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or weight.size not in (1, channels):
        raise ShapeError(
            f"prelu of x {x.shape} with weight {weight.shape}: the weight is one number, or one for each of "
            f"the {channels} channels along axis 1"
        )
    shape = (weight.size, *[1] * (x.ndim - 2)) if weight.size > 1 else ()
    slope = Tensor(primitives.reshape(floating("prelu (its weight)", weight).node, shape))
    return _applied("prelu", x, lambda x: where(x > 0, x, x * slope))


@pure
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x * Φ(x), Φ being the normal distribution; with "tanh" the usual approximation of it.

    >>> wg.gelu(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    rows = {"none": "gelu", "tanh": "gelu_tanh"}
    if approximate not in rows:
        raise ArgumentError(f'gelu: approximate must be one of "none", "tanh", not {approximate!r}')
    return Tensor(primitives.elementwise(TABLE[rows[approximate]], as_tensor("gelu", x).node))


@pure
def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x).

    >>> wg.silu(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return _applied("silu", x, lambda x: x * sigmoid(x) if x.dtype.kind == "f" else x / (exp(-x) + 1.0), "fc")


swish = silu


@pure
def mish(x: Tensor) -> Tensor:
    """x * tanh(log(1 + exp(x))).

    >>> wg.mish(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    return _applied("mish", x, lambda x: x * tanh(where(x > 20, x, log1p(exp(_up_to(x, 20.0))))))


@pure
def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    >>> wg.softplus(wg.asarray([-200.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    def curve(x: Tensor) -> Tensor:
        scaled = x if beta == 1 else x * beta
        soft = log1p(exp(_up_to(scaled, threshold)))
        return where(scaled > threshold, x, soft if beta == 1 else soft / beta)

    return _applied("softplus", x, curve)


@pure
def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow.

    >>> wg.logsigmoid(wg.asarray([-200.0, 200.0])).tolist()
    [-200.0, 0.0]
    """
    return _applied("logsigmoid", x, log_of_sigmoid)


def log_of_sigmoid(x: Tensor) -> Tensor:
    """The same of a float tensor in the dtype to compute in. Its formula has a corner at 0, it has none."""
    own = Tensor(x.node)
    return own_gradient(
        lambda: minimum(own, 0.0) - log1p(exp(-absolute(own))), (own, lambda g: g * sigmoid(-own))
    )


@pure
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|).

    >>> wg.softsign(wg.asarray([-1.0, 1.0])).tolist()
    [-0.5, 0.5]
    """
    return _applied("softsign", x, lambda x: x / (absolute(x) + 1.0), "fc")


@pure
def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x).

    >>> wg.tanhshrink(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 99.0]
    """
    return _applied("tanhshrink", x, lambda x: x - tanh(x), "fc")


@pure
def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and no further than 0.

    >>> wg.softshrink(wg.asarray([-2.0, 0.25, 2.0])).tolist()
    [-1.5, 0.0, 1.5]
    """
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambd must be 0 or more, not {lambd}")
    return _applied("softshrink", x, lambda x: where(absolute(x) <= lambd, 0.0, x - sign(x) * lambd))


@pure
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x where it is further than lambd from 0, else 0.

    >>> wg.hardshrink(wg.asarray([-2.0, 0.25, 2.0])).tolist()
    [-2.0, 0.0, 2.0]
    """
    return _applied("hardshrink", x, lambda x: where(absolute(x) <= lambd, 0.0, x))


@pure
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above a threshold, else a value.

    >>> wg.threshold(wg.asarray([0.5, 2.0]), 1.0, -1.0).tolist()
    [-1.0, 2.0]
    """
    x = as_tensor("threshold", x)
    return where(x <= threshold, value, x)


@pure
def hardsigmoid(x: Tensor) -> Tensor:
    """(x + 3) / 6, clamped between 0 and 1.

    >>> wg.hardsigmoid(wg.asarray([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return _applied("hardsigmoid", x, lambda x: within(x + 3.0, 0.0, 6.0) / 6.0)


@pure
def hardswish(x: Tensor) -> Tensor:
    """x * hardsigmoid(x).

    >>> wg.hardswish(wg.asarray([0.0, 3.0, 4.0])).tolist()
    [0.0, 3.0, 4.0]
    """
    return _applied("hardswish", x, lambda x: x * within(x + 3.0, 0.0, 6.0) / 6.0)


@pure
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x clamped between two values; integers stay integers.

    >>> wg.hardtanh(wg.asarray([-4.0, 0.5, 4.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val {min_val} is above max_val {max_val}; exchange them")
    x = as_tensor("hardtanh", x)
    check_kind("hardtanh", "iuf", x.dtype)
    if x.dtype.kind != "f":
        min_val, max_val = (_integer_bound(each, x.dtype) for each in (min_val, max_val))
    return within(x, min_val, max_val)


def _integer_bound(value: float, dtype: DType) -> int:
    """A bound of hardtanh for integers, none beyond their range."""
    low, high = dtype.limits
    inside = min(max(value, low), high)
    if inside % 1 != 0:  # of NaN too
        raise ArgumentError(
            f"hardtanh of {dtype.name}: a bound of {value} is not an integer; convert with "
            "x.astype(webgrad.float32)"
        )
    return int(inside)


@pure
def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of its second half.

    >>> wg.glu(wg.asarray([2.0, 0.0])).tolist()
    [1.0]
    """
    x = as_tensor("glu", x)
    place = normalise_axis("glu", axis, x.ndim)
    size = x.shape[place]
    if size % 2:
        raise ShapeError(
            f"glu: axis {axis} of shape {x.shape} has size {size}, which is odd and has no halves"
        )
    wide = floating("glu", x)
    return converted(part(wide, place, 0, size // 2) * sigmoid(part(wide, place, size // 2, size)), x.dtype)


def _shifted(op: str, x: Any, axis: int | Sequence[int]) -> tuple[Tensor, tuple[int, ...]]:
    """x minus its maximum over the axes, so that exponentials stay finite."""
    axes = normalise_axes(op, axis, x.ndim)
    wide = floating(op, x)
    return wide - shift_of(wide, axes), axes


@pure
def softmax(x: Tensor, axis: int | Sequence[int] = -1) -> Tensor:
    """exp(x) divided by its sum over an axis.

    >>> wg.softmax(wg.asarray([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    x = as_tensor("softmax", x)
    shifted, axes = _shifted("softmax", x, axis)
    powers = exp(shifted)
    return converted(powers / fold("sum", powers, axes, keepdims=True), x.dtype)


@pure
def log_softmax(x: Tensor, axis: int | Sequence[int] = -1) -> Tensor:
    """The logarithm of softmax, where softmax itself would be too small.

    >>> wg.log_softmax(wg.asarray([0.0, 1000.0])).tolist()
    [-1000.0, 0.0]
    """
    x = as_tensor("log_softmax", x)
    shifted, axes = _shifted("log_softmax", x, axis)
    return converted(shifted - log(fold("sum", exp(shifted), axes, keepdims=True)), x.dtype)


@pure
def softmin(x: Tensor, axis: int | Sequence[int] = -1) -> Tensor:
    """softmax of -x: the smallest has the largest share.

    >>> wg.softmin(wg.asarray([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    return softmax(-as_tensor("softmin", x), axis)
