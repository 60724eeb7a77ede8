"""Activations as modules: the functions between layers, by PyTorch's names.

In: a tensor of floats. Out: one of the same shape and dtype (`GLU` halves an axis). `inplace` is taken for
PyTorch's sake and changes nothing: where values lie is the compiler's business.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from . import functional as F
from .checks import check_sizes
from .function_modules import Applied
from .module import Module
from .parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class CELU(Applied):
    """y = max(x, 0) + min(0, alpha · (exp(x / alpha) - 1)).

    >>> wg.nn.CELU()(wg.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    function = staticmethod(F.celu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha)


class ELU(Applied):
    """y = x where it is positive, else alpha · (exp(x) - 1).

    >>> wg.nn.ELU()(wg.asarray([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    function = staticmethod(F.elu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha=alpha)


class GELU(Applied):
    """y = x · Φ(x), Φ being the normal distribution; approximate="tanh" is the usual approximation.

    >>> wg.nn.GELU()(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    function = staticmethod(F.gelu)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__(approximate=approximate)


class GLU(Applied):
    """y = a · sigmoid(b), a and b being the halves of x along dim.

    >>> wg.nn.GLU()(wg.asarray([2.0, 0.0])).tolist()
    [1.0]
    """

    function = staticmethod(wg.glu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Hardshrink(Applied):
    """y = x where it is further than lambd from 0, else 0.

    >>> wg.nn.Hardshrink()(wg.asarray([-2.0, 0.25])).tolist()
    [-2.0, 0.0]
    """

    function = staticmethod(F.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Hardsigmoid(Applied):
    """y = (x + 3) / 6, kept between 0 and 1.

    >>> wg.nn.Hardsigmoid()(wg.asarray([-4.0, 0.0])).tolist()
    [0.0, 0.5]
    """

    function = staticmethod(F.hardsigmoid)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class Hardswish(Applied):
    """y = x · hardsigmoid(x).

    >>> wg.nn.Hardswish()(wg.asarray([0.0, 3.0])).tolist()
    [0.0, 3.0]
    """

    function = staticmethod(F.hardswish)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class Hardtanh(Applied):
    """y = x kept between min_val and max_val.

    >>> wg.nn.Hardtanh()(wg.asarray([-4.0, 0.5])).tolist()
    [-1.0, 0.5]
    """

    function = staticmethod(F.hardtanh)

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(min_val=min_val, max_val=max_val)


class LeakyReLU(Applied):
    """y = x where it is positive, else x · negative_slope.

    >>> wg.nn.LeakyReLU(0.5)(wg.asarray([-2.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    function = staticmethod(F.leaky_relu)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope)


class LogSigmoid(Applied):
    """y = log(1 / (1 + exp(-x))).

    >>> wg.nn.LogSigmoid()(wg.asarray([-200.0])).tolist()
    [-200.0]
    """

    function = staticmethod(F.logsigmoid)


class LogSoftmax(Applied):
    """y = log(softmax(x)) along dim.

    >>> wg.nn.LogSoftmax(dim=0)(wg.asarray([0.0, 1000.0])).tolist()
    [-1000.0, 0.0]
    """

    function = staticmethod(wg.log_softmax)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Mish(Applied):
    """y = x · tanh(log(1 + exp(x))).

    >>> wg.nn.Mish()(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    function = staticmethod(F.mish)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class PReLU(Module):
    """y = x where it is positive, else x · weight, which is learned: one number, or one for each channel.

    >>> wg.nn.PReLU()(wg.asarray([-2.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        check_sizes("PReLU", num_parameters=num_parameters)
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(wg.full(num_parameters, float(init), dtype=dtype, device=device))

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (N, C, …) → the same shape."""
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(Applied):
    """y = x where it is positive, else x times a slope drawn from lower to upper; in `eval()` their mean.

    >>> wg.nn.RReLU(0.25, 0.75).eval()(wg.asarray([-2.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    function = staticmethod(F.rrelu)

    def __init__(self, lower: float = 0.125, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__(lower=lower, upper=upper)

    def forward(self, *inputs: Any) -> Any:
        """x (…) → the same shape."""
        return F.rrelu(inputs[0], self.lower, self.upper, self.training)


class ReLU(Applied):
    """y = max(x, 0).

    >>> wg.nn.ReLU()(wg.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    function = staticmethod(F.relu)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class ReLU6(Applied):
    """y = min(max(x, 0), 6).

    >>> wg.nn.ReLU6()(wg.asarray([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """

    function = staticmethod(F.relu6)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class SELU(Applied):
    """y = scale · (x where it is positive, else alpha · (exp(x) - 1)), for means of 0 and variances of 1.

    >>> wg.nn.SELU()(wg.asarray([0.0])).tolist()
    [0.0]
    """

    function = staticmethod(F.selu)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class Sigmoid(Applied):
    """y = 1 / (1 + exp(-x)).

    >>> wg.nn.Sigmoid()(wg.asarray([0.0, 100.0])).tolist()
    [0.5, 1.0]
    """

    function = staticmethod(F.sigmoid)


class SiLU(Applied):
    """y = x · sigmoid(x).

    >>> wg.nn.SiLU()(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """

    function = staticmethod(F.silu)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class Softmax(Applied):
    """y = exp(x) / Σ exp(x), the sum along dim.

    >>> wg.nn.Softmax(dim=0)(wg.asarray([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    function = staticmethod(wg.softmax)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Softmax2d(Module):
    """Softmax over the channels of x (N, C, H, W) or (C, H, W).

    >>> wg.nn.Softmax2d()(wg.zeros((1, 2, 1, 1))).flatten().tolist()
    [0.5, 0.5]
    """

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (N, C, H, W) → the same shape."""
        if x.ndim not in (3, 4):
            raise wg.ShapeError(f"Softmax2d takes x (N, C, H, W) or (C, H, W), not {x.shape}")
        return F.softmax(x, -3)


class Softmin(Applied):
    """y = softmax(-x) along dim.

    >>> wg.nn.Softmin(dim=0)(wg.asarray([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """

    function = staticmethod(wg.softmin)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim=dim)


class Softplus(Applied):
    """y = log(1 + exp(beta · x)) / beta; x itself where beta · x is above the threshold.

    >>> wg.nn.Softplus()(wg.asarray([100.0])).tolist()
    [100.0]
    """

    function = staticmethod(F.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Softshrink(Applied):
    """y = x moved towards 0 by lambd, and no further.

    >>> wg.nn.Softshrink()(wg.asarray([-2.0, 0.25])).tolist()
    [-1.5, 0.0]
    """

    function = staticmethod(F.softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=lambd)


class Softsign(Applied):
    """y = x / (1 + |x|).

    >>> wg.nn.Softsign()(wg.asarray([-1.0, 1.0])).tolist()
    [-0.5, 0.5]
    """

    function = staticmethod(F.softsign)


class Tanh(Applied):
    """y = tanh(x).

    >>> wg.nn.Tanh()(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 1.0]
    """

    function = staticmethod(F.tanh)


class Tanhshrink(Applied):
    """y = x - tanh(x).

    >>> wg.nn.Tanhshrink()(wg.asarray([0.0, 100.0])).tolist()
    [0.0, 99.0]
    """

    function = staticmethod(F.tanhshrink)


class Threshold(Applied):
    """y = x where it is above the threshold, else value.

    >>> wg.nn.Threshold(1.0, -1.0)(wg.asarray([0.5, 2.0])).tolist()
    [-1.0, 2.0]
    """

    function = staticmethod(F.threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(threshold=threshold, value=value)
