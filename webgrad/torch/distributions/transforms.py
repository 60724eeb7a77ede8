"""Transforms of random variables: functions with an inverse and the logarithm of their derivative.

In: a tensor. Out: another, and `log_abs_det_jacobian(x, y)`, which changes a density by the transform.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
import webgrad.torch.nn.functional as F
from webgrad.torch import Size

from . import constraints
from .transform import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    StackTransform,
    Transform,
    identity_transform,
)
from .utils import sum_rightmost

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CumulativeDistributionTransform",
    "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
    "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform",
    "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class ExpTransform(Transform):
    """y = exp(x)."""

    codomain = constraints.positive
    bijective, sign = True, 1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = torch.as_tensor(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval
    bijective, sign = True, 1

    def _call(self, x: Any) -> Any:
        least = torch.finfo(x.dtype)
        return torch.sigmoid(x).clamp(min=least.tiny, max=1 - least.eps)

    def _inverse(self, y: Any) -> Any:
        least = torch.finfo(y.dtype)
        inner = y.clamp(min=least.tiny, max=1 - least.eps)
        return inner.log() - torch.log1p(-inner)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    bijective, sign = True, 1

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return torch.log(-torch.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)
    bijective, sign = True, 1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2 * (math.log(2) - x - F.softplus(-2 * x))


class AbsTransform(Transform):
    """y = |x|, whose inverse is the positive one."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        self.domain = self.codomain = (
            constraints.real if not event_dim else constraints.independent(constraints.real, event_dim)
        )

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, torch.Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(bool(torch.as_tensor(a == b).all()) for a, b in pairs)

    __hash__ = object.__hash__

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, torch.Tensor):
            found = self.scale.abs().log()
        else:
            found = torch.full_like(x, math.log(abs(self.scale)))
        wide = found.expand(torch.broadcast_shapes(tuple(x.shape), tuple(found.shape)))
        return sum_rightmost(wide, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        own = [tuple(each.shape) for each in (self.loc, self.scale) if isinstance(each, torch.Tensor)]
        return Size(torch.broadcast_shapes(tuple(shape), *own))

    inverse_shape = forward_shape


class SoftmaxTransform(Transform):
    """y = softmax(x), which many x have: the inverse is one of them."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Any) -> Any:
        return torch.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(Transform):
    """Shares of one: each takes its part of what is left of a stick."""

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _offset(self, x: Any, count: int) -> Any:
        return torch.arange(count, 0, -1, device=x.device).to(x.dtype).log()

    def _call(self, x: Any) -> Any:
        part = torch.sigmoid(x - self._offset(x, x.shape[-1]))
        left = torch.cumprod(1 - part, -1)
        return F.pad(part, [0, 1], value=1.0) * F.pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Any) -> Any:
        share, left = y[..., :-1], 1 - torch.cumsum(y[..., :-1], -1)
        left = left.clamp(min=torch.finfo(y.dtype).tiny)
        return share.log() - left.log() + self._offset(y, share.shape[-1])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        moved = x - self._offset(x, x.shape[-1])
        return (-moved + F.logsigmoid(moved) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Lower triangular matrices whose diagonals are positive, by exp of those."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + torch.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + torch.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Transform):
    """Positive definite matrices, by their Cholesky factors."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution."""

    bijective, sign = True, 1
    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
