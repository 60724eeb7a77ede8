"""torch.nn.functional: activations, softmax and its kin, dropout.

In: a tensor, and torch's arguments. Out: a tensor of the same shape; with `inplace` the tensor itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import webgrad as wg

from ..binding import bind
from ..pointwise import floats
from ..promotion import cast
from ..tensor import written

__all__ = ["functions"]

F = wg.nn.functional

ROWS = """
[function in_place]
relu(input, inplace=False) = kept(input, F.relu(input), inplace)
relu6(input, inplace=False) = kept(input, F.relu6(input), inplace)
elu(input, alpha=1.0, inplace=False) = kept(input, F.elu(input, alpha), inplace)
celu(input, alpha=1.0, inplace=False) = kept(input, F.celu(input, alpha), inplace)
selu(input, inplace=False) = kept(input, F.selu(input), inplace)
leaky_relu(input, negative_slope=0.01, inplace=False) = kept(input, F.leaky_relu(input, negative_slope),
    inplace)
hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False) = kept(input, hard_tanh(input, min_val, max_val),
    inplace)
threshold(input, threshold, value, inplace=False) = kept(input, F.threshold(input, threshold, value), inplace)
rrelu(input, lower=0.125, upper=1 / 3, training=False, inplace=False) = kept(input, F.rrelu(input, lower,
    upper, training), inplace)

[function]
silu(input, inplace=False) = kept(input, F.silu(input), inplace)
mish(input, inplace=False) = kept(input, F.mish(input), inplace)
hardsigmoid(input, inplace=False) = kept(input, F.hardsigmoid(input), inplace)
hardswish(input, inplace=False) = kept(input, F.hardswish(input), inplace)
gelu(input, *, approximate="none") = F.gelu(input, approximate)
glu(input, dim=-1) = F.glu(input, dim)
prelu(input, weight) = F.prelu(input, weight)
logsigmoid log_sigmoid(input) = F.logsigmoid(input)
softplus(input, beta=1, threshold=20) = F.softplus(input, beta, threshold)
hardshrink(input, lambd=0.5) = F.hardshrink(input, lambd)
softshrink(input, lambd=0.5) = F.softshrink(input, lambd)
softsign(input) = F.softsign(floats(input))
tanhshrink(input) = F.tanhshrink(floats(input))
sigmoid(input) = F.sigmoid(floats(input))
tanh(input) = F.tanh(floats(input))
softmax(input, dim=None, _stacklevel=3, dtype=None) = along(F.softmax, input, dim, dtype)
softmin(input, dim=None, _stacklevel=3, dtype=None) = along(F.softmin, input, dim, dtype)
log_softmax(input, dim=None, _stacklevel=3, dtype=None) = along(F.log_softmax, input, dim, dtype)
gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1) = F.gumbel_softmax(logits, tau, hard, dim)
normalize(input, p=2.0, dim=1, eps=1e-12, out=None) = stored(F.normalize(input, p, dim, eps), out)
dropout(input, p=0.5, training=True, inplace=False) = kept(input, F.dropout(input, p, training), inplace)
dropout1d(input, p=0.5, training=True, inplace=False) = kept(input, channels_dropped("dropout1d", 1, input, p,
    training), inplace)
dropout2d(input, p=0.5, training=True, inplace=False) = kept(input, channels_dropped("dropout2d", 2, input, p,
    training), inplace)
dropout3d(input, p=0.5, training=True, inplace=False) = kept(input, channels_dropped("dropout3d", 3, input, p,
    training), inplace)
alpha_dropout(input, p=0.5, training=False, inplace=False) = kept(input, F.alpha_dropout(input, p, training),
    inplace)
feature_alpha_dropout(input, p=0.5, training=False, inplace=False) = kept(input,
    F.feature_alpha_dropout(input, p, training) if training else input, inplace)
"""


def kept(x: Any, result: Any, inplace: bool) -> Any:
    """The result; or x with its values, where it is asked for in place."""
    return written(x, result) if inplace and result is not x else result


def stored(result: Any, out: Any) -> Any:
    """The result, written to `out` where there is one."""
    return result if out is None else written(out, result, True)


def along(function: Callable[..., Any], x: Any, dim: int | None, dtype: Any) -> Any:
    """A kind of softmax; without a dimension it is the one that torch takes."""
    if dim is None:
        dim = 0 if x.ndim in (0, 1, 3) else 1
    x = cast(x, dtype)
    if not x.ndim and dim in (0, -1):
        return function(wg.reshape(x, (1,)), 0).reshape(())
    return function(x, dim)


def hard_tanh(x: Any, least: Any, most: Any) -> Any:
    """x between two bounds, which are integers where x is."""
    if x.dtype.kind in "iu":
        least, most = int(least), int(most)
    return F.hardtanh(x, least, most)


def channels_dropped(name: str, axes: int, x: Any, p: float, training: bool) -> Any:
    """Dropout of the second dimension's slices; of other numbers of dimensions than there should be too."""
    if x.ndim == 3 and axes == 2:  # samples, channels, positions, as torch has it for now
        return F.dropout1d(x, p, training)
    if x.ndim in (axes + 1, axes + 2):
        return getattr(F, name)(x, p, training)
    warnings.warn(
        f"{name}: Received a {x.ndim}-D input to {name}, which is deprecated and will result in an error in "
        "a future release.",
        stacklevel=4,
    )
    if x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if not training or not p:
        return x
    return x * F.dropout(wg.ones((*x.shape[:2], *[1] * (x.ndim - 2)), x.dtype, device=x.device), p)


functions = bind(ROWS, globals())
