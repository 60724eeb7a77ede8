"""Continuous stand-ins for choices, through which gradients go; and normal shares of one.

In: chances or logits, and a temperature: the lower it is, the closer to 0 and 1 are the samples.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .compound import TransformedDistribution
from .continuous import Normal
from .discrete import Chances, Choices
from .distribution import ExponentialFamily
from .transforms import ExpTransform, SigmoidTransform, StickBreakingTransform
from .utils import rules, unit

__all__ = [
    "ContinuousBernoulli", "ExpRelaxedCategorical", "LogisticNormal", "LogitRelaxedBernoulli",
    "RelaxedBernoulli", "RelaxedOneHotCategorical",
]  # fmt: skip


class LogitRelaxedBernoulli(Chances):
    """The logits of relaxed events."""

    arg_constraints = rules(probs=constraints.unit_interval, logits=constraints.real)
    support = constraints.real

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take_chances(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = unit(self._extended_shape(sample_shape), self.logits)
        return (noise.log() - torch.log1p(-noise) + self.logits) / self.temperature

    def log_prob(self, value: Any) -> Any:
        part = self.logits - self._checked(value) * self.temperature
        return torch.log(torch.as_tensor(self.temperature)) + part - 2 * torch.nn.functional.softplus(part)


class _Relaxed(TransformedDistribution):
    """What has the temperature and the chances of its base."""

    has_rsample = True
    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1 that stand for events."""

    arg_constraints = rules(probs=constraints.unit_interval, logits=constraints.real)
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(Choices):
    """Logarithms of relaxed choices."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = -torch.log(-torch.log(unit(self._extended_shape(sample_shape), self.logits)))
        return torch.log_softmax((self.logits + noise) / self.temperature, -1)

    def log_prob(self, value: Any) -> Any:
        count = self._event_shape[0]
        score = self.logits - self._checked(value) * self.temperature
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        scale = (count - 1) * torch.log(torch.as_tensor(self.temperature)) + math.lgamma(count)
        return score + scale


class RelaxedOneHotCategorical(_Relaxed):
    """Shares of one that stand for a choice."""

    arg_constraints = rules(probs=constraints.simplex, logits=constraints.real_vector)
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args)


class ContinuousBernoulli(Chances, ExponentialFamily):
    """Numbers from 0 to 1 whose density is that of an event's chance, made to be one in all.

    Near a chance of 1/2 the formulas divide by nothing: there, within `lims`, Taylor's series stand for them.
    """

    arg_constraints = rules(probs=constraints.unit_interval, logits=constraints.real)
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        self._take_chances(probs, logits, validate_args)

    def _parts(self) -> tuple[Any, Any, Any]:
        """Chances away from 1/2, whether they were near it, and how far from it they were."""
        eps = torch.finfo(self.probs.dtype).eps
        probs = self.probs.clamp(min=eps, max=1 - eps)
        near = (probs > self._lims[0]) & (probs <= self._lims[1])
        return torch.where(near, self._lims[0], probs), near, probs - 0.5

    def _log_constant(self) -> Any:
        probs, near, x = self._parts()
        logs = torch.log(torch.abs(torch.log1p(-probs) - probs.log()))
        far = logs - torch.log(torch.abs(1 - 2 * probs))
        return torch.where(near, math.log(2) + (4 / 3 + 104 / 45 * x**2) * x**2, far)

    @property
    def mean(self) -> Any:
        probs, near, x = self._parts()
        far = probs / (2 * probs - 1) + 1 / (torch.log1p(-probs) - probs.log())
        return torch.where(near, 0.5 + (1 / 3 + 16 / 45 * x**2) * x, far)

    @property
    def variance(self) -> Any:
        probs, near, x = self._parts()
        far = probs * (probs - 1) / (1 - 2 * probs) ** 2 + 1 / (torch.log1p(-probs) - probs.log()) ** 2
        return torch.where(near, 1 / 12 - (1 / 15 - 128 / 945 * x**2) * x**2, far)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.icdf(unit(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Any) -> Any:
        logits = self.logits
        chance = self._checked(value) * logits - torch.nn.functional.softplus(logits)
        return chance + self._log_constant()

    def cdf(self, value: Any) -> Any:
        probs, near, _ = self._parts()
        value = self._checked(value)
        far = (probs**value * (1 - probs) ** (1 - value) + probs - 1) / (2 * probs - 1)
        return torch.where(value <= 0, 0.0, torch.where(value >= 1, 1.0, torch.where(near, value, far)))

    def icdf(self, value: Any) -> Any:
        probs, near, _ = self._parts()
        inner = torch.log1p(-probs + value * (2 * probs - 1)) - torch.log1p(-probs)
        return torch.where(near, value, inner / (probs.log() - torch.log1p(-probs)))

    def entropy(self) -> Any:
        low, high = torch.log1p(-self.probs), self.probs.log()
        return self.mean * (low - high) - self._log_constant() - low


class LogisticNormal(TransformedDistribution):
    """Shares of one, made of normal numbers by breaking a stick."""

    arg_constraints = rules(loc=constraints.real, scale=constraints.positive)
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)
