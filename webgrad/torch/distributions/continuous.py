"""Distributions of one real number that are a function of a uniform or a normal one.

In: locations, scales, bounds and shapes. Out: distributions whose samples carry gradients.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .utils import euler_constant, rules, unit

__all__ = [
    "Cauchy", "Exponential", "Gumbel", "Kumaraswamy", "Laplace", "Normal", "Uniform", "Weibull",
]  # fmt: skip

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class _Located(Distribution):
    """What has a location and a scale: a standard distribution, moved and stretched."""

    arg_constraints = rules(loc=constraints.real, scale=constraints.positive)
    support: Any = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    def _standard(self, value: Any) -> Any:
        return (self._checked(value) - self.loc) / self.scale

    loc: Any
    scale: Any


class Normal(_Located, ExponentialFamily):
    """The normal distribution."""

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value: Any) -> Any:
        return -0.5 * self._standard(value) ** 2 - self.scale.log() - _HALF_LOG_TAU

    def cdf(self, value: Any) -> Any:
        return 0.5 * (1 + torch.erf(self._standard(value) / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + _HALF_LOG_TAU + self.scale.log()


class Laplace(_Located):
    """The two-sided exponential distribution."""

    @property
    def variance(self) -> Any:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(unit(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        return -torch.abs(self._standard(value)) - torch.log(2 * self.scale)

    def cdf(self, value: Any) -> Any:
        part = self._standard(value)
        return 0.5 - 0.5 * part.sign() * torch.expm1(-part.abs())

    def icdf(self, value: Any) -> Any:
        side = value - 0.5
        return self.loc - self.scale * side.sign() * torch.log1p(-2 * side.abs())

    def entropy(self) -> Any:
        return 1 + torch.log(2 * self.scale)


class Cauchy(_Located):
    """The ratio of two normal numbers, moved and stretched: it has no mean."""

    @property
    def mean(self) -> Any:
        return torch.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Any:
        return torch.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(unit(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        return -math.log(math.pi) - self.scale.log() - torch.log1p(self._standard(value) ** 2)

    def cdf(self, value: Any) -> Any:
        return torch.atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * torch.tan(math.pi * (value - 0.5))

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_Located):
    """The limit of the largest of many numbers."""

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(unit(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        part = self._standard(value)
        return -part - torch.exp(-part) - self.scale.log()

    def cdf(self, value: Any) -> Any:
        return torch.exp(-torch.exp(-self._standard(value)))

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * torch.log(-torch.log(value))

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)


class Uniform(Distribution):
    """All numbers from `low` up to `high` alike."""

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, low=low, high=high)

    low: Any
    high: Any

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return torch.full_like(self.low, math.nan)

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / math.sqrt(12)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.low.dtype, device=self.low.device))

    def log_prob(self, value: Any) -> Any:
        inside = (self.low <= self._checked(value)) & (value < self.high)
        return torch.log(inside.to(self.low.dtype)) - torch.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Any:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Any:
        return torch.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """Waiting times of events that come `rate` times in a unit."""

    arg_constraints = rules(rate=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    rate: Any

    @property
    def mean(self) -> Any:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Any:
        return torch.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Any:
        return self.rate**-2

    def rsample(self, sample_shape: Any = ()) -> Any:
        return -torch.log(unit(self._extended_shape(sample_shape), self.rate)) / self.rate

    def log_prob(self, value: Any) -> Any:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Any) -> Any:
        return -torch.expm1(-self.rate * self._checked(value))

    def icdf(self, value: Any) -> Any:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1 - self.rate.log()


class Weibull(Distribution):
    """A power of an exponential number."""

    arg_constraints = rules(scale=constraints.positive, concentration=constraints.positive)
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, scale=scale, concentration=concentration)

    scale: Any
    concentration: Any

    def _moment(self, order: int) -> Any:
        return torch.exp(torch.lgamma(1 + order / self.concentration))

    @property
    def mean(self) -> Any:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Any:
        part = (self.concentration - 1) / self.concentration  # NaN where there is no peak
        return self.scale * part ** self.concentration.reciprocal()

    @property
    def variance(self) -> Any:
        return self.scale**2 * (self._moment(2) - self._moment(1) ** 2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        waited = -torch.log(unit(self._extended_shape(sample_shape), self.scale))
        return self.scale * waited ** self.concentration.reciprocal()

    def log_prob(self, value: Any) -> Any:
        part = torch.log(self._checked(value) / self.scale)
        k = self.concentration
        return torch.log(k / self.scale) + (k - 1) * part - torch.exp(k * part)

    def cdf(self, value: Any) -> Any:
        return -torch.expm1(-((self._checked(value) / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> Any:
        return self.scale * (-torch.log1p(-value)) ** self.concentration.reciprocal()

    def entropy(self) -> Any:
        k = self.concentration
        return euler_constant * (1 - k.reciprocal()) + torch.log(self.scale / k) + 1


class Kumaraswamy(Distribution):
    """Numbers from 0 to 1, much like those of a beta distribution."""

    arg_constraints = rules(concentration1=constraints.positive, concentration0=constraints.positive)
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration1=concentration1, concentration0=concentration0)

    concentration1: Any
    concentration0: Any

    def _moment(self, order: int) -> Any:
        a, b = self.concentration1, self.concentration0
        part = 1 + order / a
        return torch.exp(b.log() + torch.lgamma(part) + torch.lgamma(b) - torch.lgamma(part + b))

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        found = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return torch.where((a < 1) | (b < 1), math.nan, found)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self._moment(1) ** 2

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(unit(self._extended_shape(sample_shape), self.concentration1))

    def log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        logs = torch.log(self._checked(value))
        return torch.log(a * b) + (a - 1) * logs + (b - 1) * torch.log1p(-torch.exp(a * logs))

    def cdf(self, value: Any) -> Any:
        return 1 - (1 - self._checked(value) ** self.concentration1) ** self.concentration0

    def icdf(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return (-torch.expm1(torch.log1p(-value) / b)) ** a.reciprocal()

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - torch.log(a * b)
