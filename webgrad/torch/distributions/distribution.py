"""The base of all distributions: shapes, checks of parameters and values, and what follows from others.

In: parameters. Out: samples, logarithms of densities, moments. A sample's shape is what is asked for, then
the batch's, then an event's.
"""

from __future__ import annotations

import warnings
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .utils import broadcast_all, lazy_property

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution:
    """A distribution over a batch; each of its parts has a density of its own."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    arg_constraints: Any
    support: Any

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether parameters and values are checked where nobody says."""
        if value not in (True, False):
            raise ValueError(f"validate_args is True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _take(self, validate_args: bool | None, **parameters: Any) -> None:
        """Keep parameters, broadcast to the shape of the batch."""
        names, values = list(parameters), broadcast_all(*parameters.values())
        self.__dict__.update(zip(names, values, strict=True))
        Distribution.__init__(self, values[0].shape, validate_args=validate_args)

    def _check_parameters(self) -> None:
        try:
            rules = self.arg_constraints
        except (AttributeError, NotImplementedError):
            rules = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=2,
            )
        for name, rule in rules.items():
            computed = isinstance(getattr(type(self), name, None), lazy_property | property)
            if constraints.is_dependent(rule) or (computed and name not in self.__dict__):
                continue
            value = getattr(self, name)
            if not constraints.holds(rule, value):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {rule!r}, but found invalid values:\n"
                    f"{value}"
                )

    # Shapes

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution over a larger batch."""
        new = self._get_checked_instance(type(self), _instance)
        shape, own = Size(batch_shape), len(self._batch_shape)
        new.__dict__.update(self.__dict__)
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if isinstance(value, torch.Tensor):
                new.__dict__[name] = value.expand(shape + value.shape[own:])
        for name, value in self._expanded_parts(shape).items():
            new.__dict__[name] = value
        new._batch_shape = shape
        return new

    def _expanded_parts(self, shape: Size) -> dict[str, Any]:
        """What else an expanded distribution has other values of."""
        return {}

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    # Moments and functions; a distribution has those that it defines

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Values that need no gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Values through which gradients go to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """`sample((n,))`."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the chance, of a value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The chance of a value or a lesser one."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The value whose cdf is given."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values there are, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The expected value of -log_prob."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """exp(entropy)."""
        return torch.exp(self.entropy())

    # Checks

    def _checked(self, value: Any) -> Any:
        """A value whose chance is asked for, checked where that is wanted."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        first = value.dim() - len(self._event_shape)
        if value.shape[max(first, 0) :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for given, own in zip(reversed(value.shape), reversed(expected), strict=False):
            if given not in (1, own) and own != 1:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except (AttributeError, NotImplementedError):
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not constraints.holds(support, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
                f"within the support ({support!r}) of the distribution {self!r}, but found invalid "
                f"values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in getattr(self, "arg_constraints", {}) if name in self.__dict__]
        told = []
        for name in names:
            value = self.__dict__[name]
            told.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(told)})"


class ExponentialFamily(Distribution):
    """Distributions whose density is an exponential of a linear form of statistics."""
