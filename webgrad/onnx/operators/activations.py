"""Activations, element by element or along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from .table import Call, operator

__all__ = ["axes_from"]

# ONNX's name, the version, and webgrad's function of x
_SAME = """
Relu 1 relu, Sigmoid 1 sigmoid, Softsign 1 softsign, Mish 18 mish, HardSwish 14 hardswish
"""

for _row in _SAME.replace("\n", " ").split(","):
    _name, _since, _function = _row.split()
    operator(_name, int(_since))(getattr(wg, _function))


@operator("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    return wg.leaky_relu(x, alpha)


@operator("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    """The slope broadcasts to x; before version 7 one number for each channel did so by itself."""
    if slope.ndim == 1 and slope.size not in (1, x.shape[-1]):
        slope = slope.reshape((-1, *[1] * (x.ndim - 2)))
    return wg.where(x < 0, x * slope, x)


@operator("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    return wg.elu(x, alpha)


@operator("Selu")
def selu(x: Any, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Any:
    return wg.elu(x, alpha) * gamma


@operator("Celu", 12)
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    return wg.celu(x, alpha)


@operator("Gelu", 20)
def gelu(x: Any, *, approximate: str = "none") -> Any:
    return wg.gelu(x, approximate)


@operator("Swish", 24)
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return wg.silu(x) if alpha == 1 else x * wg.sigmoid(x * alpha)


@operator("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return wg.clip(x * alpha + beta, 0.0, 1.0)


@operator("Softplus")
def softplus(x: Any) -> Any:
    return wg.softplus(x, threshold=37.0)  # from there on log(1 + exp(x)) is x in float64 too


@operator("Shrink", 9)
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    wide = x if x.dtype.kind == "f" else x.astype(wg.float32)
    kept = wg.where(wide > lambd, wide - bias, 0.0)
    return wg.where(wide < -lambd, wide + bias, kept).astype(x.dtype)


@operator("ThresholdedRelu", 10)
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    return wg.where(x > alpha, x, 0.0)


# Along an axis


def axes_from(x: Any, axis: int) -> tuple[int, ...]:
    """An axis and all later ones, which are taken as one."""
    return tuple(range(axis % x.ndim if x.ndim else 0, x.ndim))


def _enter_softmax(name: str, function: Callable[..., Any]) -> None:
    """Before version 13 over all axes from one on; since then over one axis."""

    @operator(name)
    def flattened(x: Any, *, axis: int = 1) -> Any:
        return function(x, axis=axes_from(x, axis))

    @operator(name, 13)
    def along(x: Any, *, axis: int = -1) -> Any:
        return function(x, axis=axis)


_enter_softmax("Softmax", wg.softmax)
_enter_softmax("LogSoftmax", wg.log_softmax)


@operator("SwiGLU", 27)
def swiglu(gate: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return swish(gate, alpha=alpha) * x


# Elements dropped by chance


@operator("Dropout", 12, host="ratio training_mode")
def dropout(
    x: Any, ratio: Any = None, training_mode: Any = None, *, seed: int | None = None, call: Call
) -> Any:
    """Numbers are those of webgrad's generator: a seed is only what others would draw with."""
    p = 0.5 if ratio is None else float(ratio)
    if training_mode is None or not training_mode or p == 0:
        return _with_mask(x, wg.bool, call)
    kept = wg.random.bernoulli(1.0 - p, x.shape, device=x.device)
    return wg.where(kept, x * (1.0 / (1.0 - p)) if p < 1 else x, 0.0), kept


def _with_mask(x: Any, dtype: Any, call: Call) -> Any:
    """x as it is, and where it is wanted the mask that keeps all of it."""
    return x if call.outputs < 2 else (x, wg.ones(x.shape, dtype, device=x.device))


@operator("Dropout", 10)
def inferred_dropout(x: Any, *, ratio: float = 0.5, call: Call) -> Any:
    return _with_mask(x, wg.bool, call)


@operator("Dropout")
def old_dropout(
    x: Any, *, consumed_inputs: Any = (), is_test: int = 0, ratio: float = 0.5, call: Call
) -> Any:
    """Its mask has the type of x."""
    return _with_mask(x, x.dtype, call)
