"""The gamma distribution and what is made of gamma numbers.

In: concentrations, rates, degrees of freedom. Out: distributions whose samples carry gradients
(`wg.random.gamma`).
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .compound import TransformedDistribution
from .distribution import Distribution, ExponentialFamily
from .transforms import PowerTransform
from .utils import draw, rules

__all__ = ["Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT"]


def _positive(x: Any) -> Any:
    """Numbers that did not vanish."""
    return x.clamp(min=torch.finfo(x.dtype).tiny)


class Gamma(ExponentialFamily):
    """The gamma distribution: the sum of `concentration` waiting times."""

    arg_constraints = rules(concentration=constraints.positive, rate=constraints.positive)
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration=concentration, rate=rate)

    concentration: Any
    rate: Any

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return _positive(draw("gamma", self.concentration.expand(shape)) / self.rate)

    def log_prob(self, value: Any) -> Any:
        a, b = self.concentration, self.rate
        return torch.xlogy(a, b) + torch.xlogy(a - 1, self._checked(value)) - b * value - torch.lgamma(a)

    def cdf(self, value: Any) -> Any:
        return torch.special.gammainc(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + torch.lgamma(a) + (1 - a) * torch.digamma(a)


class Chi2(Gamma):
    """The sum of `df` squared normal numbers."""

    arg_constraints = rules(df=constraints.positive)

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    def _expanded_parts(self, shape: Size) -> dict[str, Any]:
        return {"concentration": self.concentration.expand(shape), "rate": self.rate.expand(shape)}

    @property
    def df(self) -> Any:
        """Degrees of freedom."""
        return 2 * self.concentration


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma number."""

    arg_constraints = rules(concentration=constraints.positive, rate=constraints.positive)
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(base.rate.new_tensor(-1.0)), validate_args)

    @property
    def concentration(self) -> Any:
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        found = self.rate / (self.concentration - 1)
        return torch.where(self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = self.concentration
        return torch.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + torch.lgamma(a) - (1 + a) * torch.digamma(a)


class Dirichlet(ExponentialFamily):
    """Shares of one along the last dimension."""

    arg_constraints = rules(concentration=constraints.independent(constraints.positive, 1))
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def _total(self) -> Any:
        return self.concentration.sum(-1, keepdim=True)

    @property
    def mean(self) -> Any:
        return self.concentration / self._total

    @property
    def mode(self) -> Any:
        less = (self.concentration - 1).clamp(min=0)
        found = less / less.sum(-1, keepdim=True)
        top = torch.nn.functional.one_hot(self.concentration.argmax(-1), self.concentration.shape[-1])
        corner = (self.concentration < 1).all(-1, keepdim=True)
        return torch.where(corner, top.to(found.dtype), found)

    @property
    def variance(self) -> Any:
        total = self._total
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return draw("dirichlet", self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        a = self.concentration
        density = torch.xlogy(a - 1, self._checked(value)).sum(-1)
        return density + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    def entropy(self) -> Any:
        a, count = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        spread = (count - total) * torch.digamma(total) + ((a - 1) * torch.digamma(a)).sum(-1)
        return torch.lgamma(a).sum(-1) - torch.lgamma(total) - spread


class Beta(ExponentialFamily):
    """Numbers from 0 to 1: the first of two shares."""

    arg_constraints = rules(concentration1=constraints.positive, concentration0=constraints.positive)
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, concentration1=concentration1, concentration0=concentration0)

    concentration1: Any
    concentration0: Any

    @property
    def _shares(self) -> Dirichlet:
        return Dirichlet(torch.stack([self.concentration1, self.concentration0], -1), validate_args=False)

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._shares.mode[..., 0]

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return draw("beta", self.concentration1.expand(shape), self.concentration0.expand(shape))

    def log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        inner = torch.xlogy(a - 1, self._checked(value)) + torch.special.xlog1py(b - 1, -value)
        return inner + torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)

    def entropy(self) -> Any:
        return self._shares.entropy()


class StudentT(Distribution):
    """A normal number over the root of a gamma number: heavier tails for fewer degrees of freedom."""

    arg_constraints = rules(df=constraints.positive, loc=constraints.real, scale=constraints.positive)
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._take(validate_args, df=df, loc=loc, scale=scale)

    df: Any
    loc: Any
    scale: Any

    @property
    def mean(self) -> Any:
        return torch.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        found = self.scale**2 * self.df / (self.df - 2)
        return torch.where(self.df > 2, found, torch.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        normal = torch.randn(shape, dtype=self.df.dtype, device=self.df.device)
        squares = 2 * _positive(draw("gamma", (self.df / 2).expand(shape)))
        return self.loc + self.scale * normal * torch.rsqrt(squares / self.df)

    def log_prob(self, value: Any) -> Any:
        part = (self._checked(value) - self.loc) / self.scale
        rest = self.scale.log() + 0.5 * torch.log(math.pi * self.df)
        rest = rest + torch.lgamma(0.5 * self.df) - torch.lgamma(0.5 * (self.df + 1))
        return -0.5 * (self.df + 1) * torch.log1p(part**2 / self.df) - rest

    def entropy(self) -> Any:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = torch.lgamma(half) + math.lgamma(0.5) - torch.lgamma(more)
        return (
            self.scale.log() + more * (torch.digamma(more) - torch.digamma(half)) + 0.5 * self.df.log() + beta
        )


class FisherSnedecor(Distribution):
    """The ratio of two variances, by their degrees of freedom."""

    arg_constraints = rules(df1=constraints.positive, df2=constraints.positive)
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, df1=df1, df2=df2)

    df1: Any
    df2: Any

    @property
    def mean(self) -> Any:
        return torch.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Any:
        a, b = self.df1, self.df2
        found = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return torch.where(b > 4, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        above, below = (_positive(draw("gamma", (df / 2).expand(shape))) / df for df in (self.df1, self.df2))
        return _positive(above / below)

    def log_prob(self, value: Any) -> Any:
        a, b = self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        beta = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
        density = a * ratio.log() + (a - 1) * torch.log(self._checked(value))
        return beta + density - (a + b) * torch.log1p(ratio * value)
