"""Distributions of one real number that is a function of another: its exp, or its absolute value.

In: the other's parameters. Out: distributions whose samples carry gradients.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .compound import TransformedDistribution
from .continuous import Cauchy, Exponential, Normal
from .transforms import AbsTransform, AffineTransform, ExpTransform
from .utils import broadcast_all, rules

__all__ = ["HalfCauchy", "HalfNormal", "LogNormal", "Pareto"]


class LogNormal(TransformedDistribution):
    """exp of a normal number."""

    arg_constraints = rules(loc=constraints.real, scale=constraints.positive)
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self) -> Any:
        return torch.expm1(self.scale**2) * (2 * self.loc + self.scale**2).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """The absolute value of what is symmetric about 0."""

    arg_constraints = rules(scale=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True
    whole: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self.whole(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def scale(self) -> Any:
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        return torch.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        found = self.base_dist.log_prob(self._checked(value)) + math.log(2)
        return torch.where(value >= 0, found, -math.inf)

    def cdf(self, value: Any) -> Any:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal number."""

    whole = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale**2 * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a number of Cauchy's distribution."""

    whole = Cauchy

    @property
    def mean(self) -> Any:
        return torch.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance


class Pareto(TransformedDistribution):
    """Incomes: a scale times exp of an exponential number."""

    arg_constraints = rules(alpha=constraints.positive, scale=constraints.positive)
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        parts = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args), parts, validate_args)

    def _expanded_parts(self, shape: Size) -> dict[str, Any]:
        wide = {"scale": self.scale.expand(shape), "alpha": self.alpha.expand(shape)}
        parts = [ExpTransform(), AffineTransform(0, wide["scale"])]
        return {"base_dist": self.base_dist.expand(shape), "transforms": parts, **wide}

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def entropy(self) -> Any:
        return torch.log(self.scale / self.alpha) + 1 + self.alpha.reciprocal()
