"""Distributions made of others: independent parts as one value, mixtures, transformed variables.

In: distributions. Out: distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .discrete import Categorical
from .distribution import Distribution
from .transform import ComposeTransform, Transform
from .utils import rules, sum_rightmost

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution whose last batch dimensions are one value."""

    arg_constraints = rules()

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def _expanded_parts(self, shape: Size) -> dict[str, Any]:
        own = self.base_dist.batch_shape[len(self._batch_shape) :]
        return {"base_dist": self.base_dist.expand(shape + own)}

    @property
    def has_rsample(self) -> Any:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> Any:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        count = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, count) if count else self.base_dist.support

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """One of several distributions of a family, each with its chance."""

    arg_constraints = rules()

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions.Distribution"
            )
        batch = component_distribution.batch_shape
        count = mixture_distribution.logits.shape[-1]
        for own, other in zip(reversed(mixture_distribution.batch_shape), reversed(batch[:-1]), strict=False):
            if own != 1 and other != 1 and own != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not "
                    f"compatible with `component_distribution.batch_shape`({batch})"
                )
        if count != batch[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({batch[-1]})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _expanded_parts(self, shape: Size) -> dict[str, Any]:
        wide = self._component_distribution.expand((*shape, self._component_distribution.batch_shape[-1]))
        return {
            "_component_distribution": wide,
            "_mixture_distribution": self._mixture_distribution.expand(shape),
        }

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def _chances(self) -> Any:
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * len(self._event_shape)))

    @property
    def _axis(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Any:
        return (self._chances * self._component_distribution.mean).sum(self._axis)

    @property
    def variance(self) -> Any:
        inner, chances = self._component_distribution, self._chances
        far = (inner.mean - self.mean.unsqueeze(self._axis)) ** 2
        return (chances * (inner.variance + far)).sum(self._axis)

    def cdf(self, value: Any) -> Any:
        inner = self._component_distribution.cdf(self._checked(value).unsqueeze(self._axis))
        return (inner * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> Any:
        inner = self._component_distribution.log_prob(self._checked(value).unsqueeze(self._axis))
        return torch.logsumexp(inner + torch.log_softmax(self._mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            axis = values.dim() + self._axis
            where = chosen.reshape((*chosen.shape, *[1] * (1 + len(self._event_shape))))
            shape = (*values.shape[:axis], 1, *values.shape[axis + 1 :])
            return torch.gather(values, axis, where.expand(shape)).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution!r},\n  {self._component_distribution!r})"


class TransformedDistribution(Distribution):
    """A variable of another distribution, transformed."""

    arg_constraints = rules()

    def __init__(
        self,
        base_distribution: Any,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(each, Transform) for each in self.transforms):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        whole = ComposeTransform(self.transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        dims = whole.domain.event_dim
        if len(shape) < dims:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {dims}, but got {shape}."
            )
        made = whole.forward_shape(shape)
        base = base_distribution.expand(
            whole.inverse_shape(made)[: len(whole.inverse_shape(made)) - len(base_distribution.event_shape)]
        )
        more = dims - len(base.event_shape)
        self.base_dist: Any = Independent(base, more) if more > 0 else base
        event = whole.codomain.event_dim + max(len(base.event_shape) - dims, 0)
        cut = len(made) - event
        super().__init__(made[:cut], made[cut:], validate_args)

    def _expanded_parts(self, shape: Size) -> dict[str, Any]:
        inner = ComposeTransform(self.transforms).inverse_shape(shape + self._event_shape)
        cut = len(inner) - len(self.base_dist.event_shape)
        return {"base_dist": self.base_dist.expand(inner[:cut])}

    @property
    def has_rsample(self) -> Any:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self._event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Any) -> Any:
        for each in self.transforms:
            x = each(x)
        return x

    def log_prob(self, value: Any) -> Any:
        y, dims = self._checked(value), len(self._event_shape)
        total: Any = 0
        for each in reversed(self.transforms):
            x = each.inv(y)
            dims += each.domain.event_dim - each.codomain.event_dim
            total = total - sum_rightmost(each.log_abs_det_jacobian(x, y), dims - each.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _turned(self, value: Any) -> Any:
        """cdf of the base as that of the result, or back: 1 - it where the transforms fall."""
        sign: Any = 1
        for each in self.transforms:
            sign = sign * each.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        y = self._checked(value)
        for each in reversed(self.transforms):
            y = each.inv(y)
        return self._turned(self.base_dist.cdf(y))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._turned(value)))
