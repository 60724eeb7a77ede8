"""Distributions of counts and choices.

In: chances or logits, rates, totals. Out: distributions whose samples carry no gradients, but for
`OneHotCategoricalStraightThrough`.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
import webgrad.torch.nn.functional as F
from webgrad.torch import Size

from ..random import choices
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .utils import (
    broadcast_all,
    draw,
    lazy_property,
    logits_to_probs,
    picked,
    probs_to_logits,
    rules,
    unit,
)  # fmt: skip

__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "NegativeBinomial",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Poisson",
]  # fmt: skip


class Chances(Distribution):
    """What has chances of single events, given as such or as logits."""

    def _take_chances(self, probs: Any, logits: Any, validate_args: bool | None, **others: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name = "logits" if probs is None else "probs"
        self._given = name
        self._take(validate_args, **others, **{name: logits if probs is None else probs})

    @lazy_property
    def logits(self) -> Any:
        """The logarithms of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """The chances."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self.__dict__[self._given].shape


class Bernoulli(Chances, ExponentialFamily):
    """1 with a chance, else 0."""

    arg_constraints = rules(probs=constraints.unit_interval, logits=constraints.real)
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_chances(probs, logits, validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        found = (self.probs >= 0.5).to(self.probs.dtype)
        return torch.where(self.probs == 0.5, math.nan, found)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -F.binary_cross_entropy_with_logits(logits, value.to(logits.dtype), reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = torch.arange(2, device=self.probs.device).to(self.probs.dtype)
        values = values.reshape((2, *[1] * len(self._batch_shape)))
        return values.expand((2, *self._batch_shape)) if expand else values


class Geometric(Chances):
    """How many trials fail before the first that succeeds."""

    arg_constraints = rules(probs=constraints.unit_interval, logits=constraints.real)
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take_chances(probs, logits, validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) "
                f"of distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Any:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Any:
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            number = unit(self._extended_shape(sample_shape), self.probs)
            return (number.log() / torch.log1p(-self.probs)).floor()

    def log_prob(self, value: Any) -> Any:
        value, probs = broadcast_all(self._checked(value), self.probs)
        return torch.special.xlog1py(value.to(probs.dtype), -probs) + probs.log()

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Binomial(Chances):
    """How many of `total_count` trials succeed."""

    arg_constraints = rules(
        total_count=constraints.nonnegative_integer, probs=constraints.unit_interval, logits=constraints.real
    )
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_chances(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self.__dict__[self._given].dtype)

    total_count: Any

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return draw("binomial", self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        n, value = self.total_count, self._checked(value)
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return ways + value * self.logits - n * F.softplus(self.logits)

    def entropy(self) -> Any:
        values = self.enumerate_support(False)
        logs = self.log_prob(values) if not self._validate_args else self._unchecked_log_prob(values)
        return -(torch.exp(logs) * logs).sum(0)

    def _unchecked_log_prob(self, value: Any) -> Any:
        return Binomial(self.total_count, logits=self.logits, validate_args=False).log_prob(value)

    def enumerate_support(self, expand: bool = True) -> Any:
        most = int(self.total_count.max())
        if not bool((self.total_count == most).all()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(most + 1, device=self.total_count.device).to(self.total_count.dtype)
        values = values.reshape((most + 1, *[1] * len(self._batch_shape)))
        return values.expand((most + 1, *self._batch_shape)) if expand else values


class NegativeBinomial(Chances):
    """How many trials succeed before `total_count` have failed."""

    arg_constraints = rules(
        total_count=constraints.greater_than_eq(0),
        probs=constraints.half_open_interval(0.0, 1.0),
        logits=constraints.real,
    )
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_chances(probs, logits, validate_args, total_count=total_count)
        self.total_count = self.total_count.to(self.__dict__[self._given].dtype)

    total_count: Any

    @property
    def mean(self) -> Any:
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.mean / torch.sigmoid(-self.logits)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            rate = draw("gamma", self.total_count.expand(shape)) * torch.exp(self.logits)
            return draw("poisson", rate)

    def log_prob(self, value: Any) -> Any:
        n, value = self.total_count, self._checked(value)
        chance = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = torch.lgamma(n + value) - torch.lgamma(1 + value) - torch.lgamma(n)
        return chance + torch.where(n + value == 0, 0.0, ways)


class Poisson(ExponentialFamily):
    """Counts of events of which `rate` are expected."""

    arg_constraints = rules(rate=constraints.nonnegative)
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, rate=rate)

    rate: Any

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return draw("poisson", self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        rate, value = broadcast_all(self.rate, self._checked(value))
        value = value.to(rate.dtype)
        return torch.xlogy(value, rate) - rate - torch.lgamma(value + 1)


class Categorical(Distribution):
    """One of several, by chances or logits along the last dimension."""

    arg_constraints = rules(probs=constraints.simplex, logits=constraints.real_vector)
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "logits" if probs is None else "probs"
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events, self._not_normalised = given.shape[-1], given
        super().__init__(given.shape[:-1], validate_args=validate_args)
        del self._not_normalised

    def _check_parameters(self) -> None:
        """By what was given: nothing is computed for that. What fails it is checked as others are."""
        rule = constraints.odds if self._given == "logits" else constraints.shares
        if not constraints.holds(rule, self._not_normalised):
            super()._check_parameters()

    @lazy_property
    def logits(self) -> Any:
        """Logarithms of the chances."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The chances."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self.__dict__[self._given].shape

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Any:
        return torch.full(self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = Size(sample_shape)
        return torch.adopt(choices(self.probs.detach(), shape.numel(), tuple(self._extended_shape(shape))))

    def log_prob(self, value: Any) -> Any:
        return torch.adopt(picked(self.logits, self._checked(value)))

    def entropy(self) -> Any:
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = torch.arange(self._num_events, device=self.probs.device)
        values = values.reshape((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values


class Choices(Distribution):
    """What is made of choices: an event is a row of numbers, one for each that could be chosen."""

    arg_constraints = rules(probs=constraints.simplex, logits=constraints.real_vector)

    def __init__(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def _expanded_parts(self, shape: Size) -> dict[str, Any]:
        return {"_categorical": self._categorical.expand(shape)}

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)


class OneHotCategorical(Choices):
    """A row with a one in the place that was chosen."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return F.one_hot(self.probs.argmax(-1), self._event_shape[0]).to(self.probs.dtype)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        chosen = self._categorical.sample(sample_shape)
        return F.one_hot(chosen, self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._event_shape[0]
        values = torch.eye(count, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape((count, *[1] * len(self._batch_shape), count))
        return values.expand((count, *self._batch_shape, count)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, with the gradient of the chances."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Choices):
    """How often each of several was chosen in `total_count` draws."""

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        chosen = self._categorical.sample((self.total_count, *sample_shape))
        return F.one_hot(chosen, self._event_shape[0]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        logits, value = broadcast_all(self.logits, self._checked(value))
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        inner = torch.where((value == 0) & (logits == -math.inf), 0.0, value * logits)
        return ways + inner.sum(-1)

    def entropy(self) -> Any:
        n = torch.tensor(float(self.total_count), device=self.probs.device)
        counts = Binomial(self.total_count, self.probs, validate_args=False)
        values = counts.enumerate_support(False)[1:]
        weight = torch.exp(counts.log_prob(values)) * torch.lgamma(values + 1)
        return self.total_count * self._categorical.entropy() - torch.lgamma(n + 1) + weight.sum((0, -1))
