"""Draws of distributions that are made of uniform and normal numbers: gamma, beta, Poisson, binomial.

In: parameters, numbers or tensors, and a generator's uniform and normal numbers. Out: lazy tensors, by the
algorithms of `rejection.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..dtypes import as_dtype
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops.host_arrays import check_dtype
from ..ops.shapes import broadcast
from ..runtime.device import DeviceLike, open_device
from ..tensor import Tensor
from .array import maps, reductions
from .array.creation import as_shape, asarray

__all__ = ["Sampling"]

Shape = int | Sequence[int] | None


class Sampling:
    """The distributions of `Generator` that are composed of others."""

    uniform: Callable[..., Tensor]
    normal: Callable[..., Tensor]

    def exponential(
        self, rate: Any = 1.0, shape: Shape = None, dtype: Any = None, device: DeviceLike = None
    ) -> Tensor:
        """Waiting times of events that come `rate` times in a unit; gradients go to the rate.

        >>> wg.random.exponential(wg.asarray([1.0, 10.0])).shape
        (2,)
        """
        (scale,), sizes, wanted = _parameters("exponential", (rate,), shape, dtype, device)
        unit = self.uniform(sizes, dtype=scale.dtype, device=scale.device)
        return (-maps.log1p(-unit) / scale).astype(wanted)

    def gamma(
        self, concentration: Any, shape: Shape = None, dtype: Any = None, device: DeviceLike = None
    ) -> Tensor:
        """Numbers of the gamma distribution of a concentration and rate 1, by Marsaglia and Tsang's method.

        Gradients go to the concentration: how the number of one draw changes with it, by the derivative of
        the cumulative distribution.

        >>> bool((wg.random.gamma(wg.asarray([0.5, 3.0])) > 0).all())
        True
        """
        (alpha,), sizes, wanted = _parameters("gamma", (concentration,), shape, dtype, device)
        return maps.exp(_rejection().log_gamma(self, alpha, sizes)).astype(wanted)

    def beta(
        self, a: Any, b: Any, shape: Shape = None, dtype: Any = None, device: DeviceLike = None
    ) -> Tensor:
        """Numbers of the beta distribution, from 0 to 1; gradients go to both parameters.

        >>> x = wg.random.beta(2.0, wg.asarray([3.0, 4.0]))
        >>> bool(((x > 0) & (x < 1)).all())
        True
        """
        (first, second), sizes, wanted = _parameters("beta", (a, b), shape, dtype, device)
        return maps.sigmoid(
            _rejection().log_gamma(self, first, sizes) - _rejection().log_gamma(self, second, sizes)
        ).astype(wanted)

    def dirichlet(
        self, concentration: Any, shape: Shape = (), dtype: Any = None, device: DeviceLike = None
    ) -> Tensor:
        """Probabilities along the last axis of the concentrations; `shape` is what comes before theirs.

        >>> round(wg.random.dirichlet(wg.asarray([1.0, 2.0, 3.0])).sum().item(), 4)
        1.0
        """
        (alpha,), own, wanted = _parameters("dirichlet", (concentration,), None, dtype, device)
        sizes = (*as_shape("random.dirichlet", () if shape is None else shape), *own)
        logs = _rejection().log_gamma(self, alpha, sizes)
        shares = maps.exp(logs - reductions.max(logs, axis=-1, keepdims=True).detach())
        return (shares / reductions.sum(shares, axis=-1, keepdims=True)).astype(wanted)

    def poisson(self, rate: Any, shape: Shape = None, dtype: Any = None, device: DeviceLike = None) -> Tensor:
        """Counts of events of which `rate` are expected, as floats of the rate's dtype.

        >>> wg.random.poisson(wg.asarray([0.0, 0.0])).tolist()
        [0.0, 0.0]
        """
        (mean,), sizes, wanted = _parameters("poisson", (rate,), shape, dtype, device)
        counts: Tensor = _rejection().poisson(self, mean.detach(), sizes)
        return counts.astype(wanted)

    def binomial(
        self, total: Any, p: Any, shape: Shape = None, dtype: Any = None, device: DeviceLike = None
    ) -> Tensor:
        """How many of `total` trials succeed, each with probability p, as floats.

        >>> wg.random.binomial(5, wg.asarray([0.0, 1.0])).tolist()
        [0.0, 5.0]
        """
        (n, chance), sizes, wanted = _parameters("binomial", (total, p), shape, dtype, device)
        counts: Tensor = _rejection().binomial(self, n.detach(), chance.detach(), sizes)
        return counts.astype(wanted)


def _rejection() -> Any:
    from . import rejection  # here: few programs draw such numbers

    return rejection


def _parameters(
    op: str, values: Sequence[Any], shape: Shape, dtype: Any, device: DeviceLike
) -> tuple[list[Tensor], tuple[int, ...], Any]:
    """Parameters as tensors of float32 or float64, the shape of the draws, and the dtype that they get."""
    name = f"random.{op}"
    tensors = [each for each in values if isinstance(each, Tensor)]
    for each in values:
        if not isinstance(each, Tensor) and not (math.isfinite(each) and each >= 0):
            raise ArgumentError(
                f"{name}: a parameter must be a finite number that is not negative, not {each}"
            )
    where = tensors[0].device if tensors else open_device(device)
    floats = [each.dtype for each in tensors if each.dtype.kind == "f"]
    if any(each.dtype.kind == "c" for each in tensors):
        raise DTypeError(f"{name}: parameters are real numbers, not complex ones")
    widest = dtypes.float32 if not floats else functools.reduce(dtypes.promote, floats)
    wanted = widest if dtype is None else as_dtype(dtype)
    check_dtype(name, wanted, where)
    if wanted.kind != "f":
        raise DTypeError(f"{name} gives floats, not {wanted.name}: use astype")
    computed = dtypes.float64 if dtypes.float64 in (widest, wanted) else dtypes.float32
    made = [
        each.astype(computed) if isinstance(each, Tensor) else asarray(float(each), computed, device=where)
        for each in values
    ]
    together = broadcast(name, [each.shape for each in made])
    sizes = together if shape is None else as_shape(name, shape)
    if broadcast(name, [together, sizes]) != sizes:
        raise ShapeError(f"{name}: parameters of shape {together} do not broadcast to {sizes}")
    return made, sizes, wanted
