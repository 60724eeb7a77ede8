"""Initial values, by PyTorch's names: each function fills a tensor in place, and gives it back.

In: a tensor and a distribution's numbers. Out: the same tensor with new values. Nothing here is part of a
gradient. `fan_in` and `fan_out` are how many inputs an output has, and the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import webgrad as wg

from ..arrays import np

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "fan_in_and_fan_out",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_GAINS = {**dict.fromkeys((*_LINEAR, "sigmoid"), 1.0), "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """How much a layer before this nonlinearity is scaled, so that variances stay.

    >>> wg.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else float(param)
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        names = ", ".join((*_GAINS, "leaky_relu"))
        raise wg.ArgumentError(f"calculate_gain: nonlinearity must be one of {names}, not {nonlinearity!r}")
    return _GAINS[nonlinearity]


def fan_in_and_fan_out(tensor: wg.Tensor) -> tuple[int, int]:
    """How many inputs each output has, and how many outputs each input: of a weight (out, in, …).

    >>> wg.nn.init.fan_in_and_fan_out(wg.zeros((8, 4, 3, 3)))
    (36, 72)
    """
    if tensor.ndim < 2:
        raise wg.ShapeError(
            f"init: a tensor of shape {tensor.shape} has no inputs and outputs; a weight has two axes or more"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_skipped: ContextVar[bool] = ContextVar("skipped", default=False)


@contextmanager
def skipped() -> Iterator[None]:
    """Leaves tensors as they are where they would be filled, because they will be overwritten."""
    token = _skipped.set(True)
    try:
        yield
    finally:
        _skipped.reset(token)


def _fill(tensor: wg.Tensor, value: wg.Tensor | float) -> wg.Tensor:
    if _skipped.get():
        return tensor
    with wg.no_grad():
        tensor[...] = value
    return tensor


def uniform_(tensor: wg.Tensor, a: float = 0.0, b: float = 1.0) -> wg.Tensor:
    """Floats from a to b, all equally likely.

    >>> wg.nn.init.uniform_(wg.zeros(3), 2.0, 2.0).tolist()
    [2.0, 2.0, 2.0]
    """
    return _fill(
        tensor, wg.random.uniform(tensor.shape, low=a, high=b, dtype=tensor.dtype, device=tensor.device)
    )


def normal_(tensor: wg.Tensor, mean: float = 0.0, std: float = 1.0) -> wg.Tensor:
    """Floats of the normal distribution.

    >>> wg.nn.init.normal_(wg.zeros(2), mean=3.0, std=0.0).tolist()
    [3.0, 3.0]
    """
    return _fill(
        tensor, wg.random.normal(tensor.shape, mean=mean, std=std, dtype=tensor.dtype, device=tensor.device)
    )


def trunc_normal_(
    tensor: wg.Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> wg.Tensor:
    """Floats of the normal distribution, those outside of a … b drawn again.

    >>> bool((abs(wg.nn.init.trunc_normal_(wg.zeros(1000))) <= 2.0).all())
    True
    """
    if not a < b or std <= 0:
        raise wg.ArgumentError(f"trunc_normal_: a is below b, and std is positive; not {a}, {b}, {std}")
    # The normal distribution's inverse, at uniform places between those of a and b
    low, high = (math.erf((end - mean) / (std * math.sqrt(2))) for end in (a, b))
    place = wg.random.uniform(tensor.shape, low=low, high=high, device=tensor.device)
    drawn = _inverse_erf(place) * (std * math.sqrt(2)) + mean
    return _fill(tensor, wg.clip(drawn, a, b))


def _inverse_erf(y: wg.Tensor) -> wg.Tensor:
    """Winitzki's approximation, then Newton's method twice: to float32's last digits but one."""
    constant = 0.147
    y = wg.clip(y, -0.9999999, 0.9999999)
    logarithm = wg.log1p(-y * y)
    half = logarithm / 2 + 2 / (math.pi * constant)
    x = wg.sign(y) * wg.sqrt(wg.sqrt(half * half - logarithm / constant) - half)
    for _ in range(2):
        x = x - (wg.erf(x) - y) * (math.sqrt(math.pi) / 2) * wg.exp(x * x)
    return x


def constant_(tensor: wg.Tensor, val: float) -> wg.Tensor:
    """One number everywhere.

    >>> wg.nn.init.constant_(wg.zeros(2), 5.0).tolist()
    [5.0, 5.0]
    """
    return _fill(tensor, val)


def ones_(tensor: wg.Tensor) -> wg.Tensor:
    """Ones.

    >>> wg.nn.init.ones_(wg.empty(2)).tolist()
    [1.0, 1.0]
    """
    return _fill(tensor, 1.0)


def zeros_(tensor: wg.Tensor) -> wg.Tensor:
    """Zeros.

    >>> wg.nn.init.zeros_(wg.empty(2)).tolist()
    [0.0, 0.0]
    """
    return _fill(tensor, 0.0)


def eye_(tensor: wg.Tensor) -> wg.Tensor:
    """Ones on the diagonal of a matrix.

    >>> wg.nn.init.eye_(wg.zeros((2, 3))).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    _check_axes("eye_", tensor, 2, 2)
    return _fill(tensor, wg.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: wg.Tensor, groups: int = 1) -> wg.Tensor:
    """Weights of a convolution (out, in, …) that gives its input back, as far as there are channels.

    >>> wg.nn.init.dirac_(wg.zeros((1, 1, 3))).tolist()
    [[[0.0, 1.0, 0.0]]]
    """
    _check_axes("dirac_", tensor, 3, 5)
    outputs, inputs, *kernel = tensor.shape
    if groups < 1 or outputs % groups:
        raise wg.ArgumentError(f"dirac_: {outputs} output channels do not make {groups} equal groups")
    each = outputs // groups
    channels = wg.tile(wg.eye(each, inputs, dtype=tensor.dtype, device=tensor.device), (groups, 1))
    values = channels.reshape((outputs, inputs, *[1] * len(kernel)))
    widths = [(size // 2, size - size // 2 - 1) for size in kernel]
    return _fill(tensor, wg.pad(values, [(0, 0), (0, 0), *widths]))


def xavier_uniform_(tensor: wg.Tensor, gain: float = 1.0) -> wg.Tensor:
    """Uniform within ± gain √(6 / (fan_in + fan_out)).

    >>> bool((abs(wg.nn.init.xavier_uniform_(wg.zeros((3, 3)))) <= 1.0).all())
    True
    """
    bound = gain * math.sqrt(6 / sum(fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: wg.Tensor, gain: float = 1.0) -> wg.Tensor:
    """Normal with a standard deviation of gain √(2 / (fan_in + fan_out)).

    >>> wg.nn.init.xavier_normal_(wg.empty((64, 32))).shape
    (64, 32)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fan_in_and_fan_out(tensor))))


def kaiming_uniform_(
    tensor: wg.Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> wg.Tensor:
    """Uniform within ± gain √(3 / fan); a is the slope of the leaky relu that follows.

    >>> bool((abs(wg.nn.init.kaiming_uniform_(wg.zeros((2, 6)))) <= 1.0).all())
    True
    """
    bound = math.sqrt(3) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: wg.Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> wg.Tensor:
    """Normal with a standard deviation of gain / √fan.

    >>> wg.nn.init.kaiming_normal_(wg.empty((64, 32))).shape
    (64, 32)
    """
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity))


def _kaiming_deviation(tensor: wg.Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fans = dict(zip(("fan_in", "fan_out"), fan_in_and_fan_out(tensor), strict=True))
    if mode not in fans:
        raise wg.ArgumentError(f'init: mode must be one of "fan_in", "fan_out", not {mode!r}')
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fans[mode], 1))


def orthogonal_(tensor: wg.Tensor, gain: float = 1.0) -> wg.Tensor:
    """A matrix (the later axes taken as one) of orthogonal rows, or columns where there are fewer of them.

    >>> w = wg.nn.init.orthogonal_(wg.zeros((2, 4)))
    >>> np.allclose((w @ w.T).numpy(), np.eye(2), atol=1e-5)
    True
    """
    _check_axes("orthogonal_", tensor, 2, None)
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    drawn = wg.random.normal((max(rows, columns), min(rows, columns)), device=tensor.device)
    q, r = np.linalg.qr(drawn.numpy())
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # the signs make all orthogonal matrices equally likely
    matrix = (q if rows >= columns else q.T) * gain
    return _fill(tensor, wg.asarray(matrix.reshape(tensor.shape), dtype=tensor.dtype, device=tensor.device))


def sparse_(tensor: wg.Tensor, sparsity: float, std: float = 0.01) -> wg.Tensor:
    """A matrix of which each column has this share of zeros; the others are normal.

    >>> int((wg.nn.init.sparse_(wg.zeros((10, 3)), 0.2) == 0).sum())
    6
    """
    _check_axes("sparse_", tensor, 2, 2)
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    order = wg.argsort(wg.random.uniform((rows, columns), device=tensor.device), axis=0)
    rank = wg.argsort(order, axis=0)
    drawn = wg.random.normal((rows, columns), mean=0.0, std=std, device=tensor.device)
    return _fill(tensor, wg.where(rank < zeros, 0.0, drawn))


def _check_axes(name: str, tensor: wg.Tensor, least: int, most: int | None) -> None:
    if tensor.ndim < least or (most is not None and tensor.ndim > most):
        wanted = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
        raise wg.ShapeError(f"{name} fills tensors of {wanted} axes, not {tensor.shape}")
