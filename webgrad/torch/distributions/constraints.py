"""Which values are allowed: of parameters, and in the support of a distribution.

In: a tensor. Out: a tensor of bools, one for each value; what is a value has `event_dim` dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import webgrad as wg
import webgrad.torch as torch

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
    "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
    "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack",
    "symmetric", "unit_interval",
]  # fmt: skip

Check = Callable[[Any], Any]
_FEW = 4096


class Constraint:
    """A rule that values follow or not."""

    is_discrete = False
    event_dim = 0
    takes_arrays = False  # whether `check` takes NumPy's arrays as well

    def check(self, value: Any) -> Any:
        """Which values follow it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_") + "()"


class _Rule(Constraint):
    """A constraint by its name, its check, and its bounds."""

    def __init__(
        self, name: str, check: Check, event_dim: int = 0, is_discrete: bool = False, **bounds: Any
    ) -> None:
        self.name, self._check, self.bounds = name, check, bounds
        self.event_dim, self.is_discrete = event_dim, is_discrete
        self.__dict__.update(bounds)

    @property
    def takes_arrays(self) -> bool:  # type: ignore[override]
        return self.event_dim < 2 and not any(isinstance(each, torch.Tensor) for each in self.bounds.values())

    def check(self, value: Any) -> Any:
        return self._check(value)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.bounds.items())})"


class _Dependent(Constraint):
    """What depends on other values, so that nothing can be checked without them."""

    def __init__(self, *, is_discrete: Any = False, event_dim: Any = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: Any = False, event_dim: Any = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, Constraint):
    """A property that gives the constraint of an instance; of a class it is dependent."""

    def __init__(self, fn: Any = None, *, is_discrete: Any = False, event_dim: Any = 0) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> dependent_property:
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether it depends on other values."""
    return isinstance(constraint, _Dependent | dependent_property)


class independent(Constraint):
    """A constraint whose values have further dimensions, all of which must follow it."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims
        self.takes_arrays = base_constraint.takes_arrays

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        if found.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.ndim >= {self.event_dim} but got {value.ndim}")
        for _ in range(self.reinterpreted_batch_ndims):
            found = found.all(-1)
        return found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class cat(Constraint):
    """Constraints of parts of a dimension, by their lengths."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete = any(each.is_discrete for each in self.cseq)
        self.event_dim = max(each.event_dim for each in self.cseq)

    def check(self, value: Any) -> Any:
        parts = value.split(self.lengths, self.dim)
        return torch.cat([each.check(part) for each, part in zip(self.cseq, parts, strict=True)], self.dim)


class stack(Constraint):
    """Constraints of the entries of a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(each.is_discrete for each in self.cseq)
        self.event_dim = max(each.event_dim for each in self.cseq) + (dim < 0)

    def check(self, value: Any) -> Any:
        parts = value.unbind(self.dim)
        return torch.stack([each.check(part) for each, part in zip(self.cseq, parts, strict=True)], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: that of its components, all of which have the same."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.all(-1)


def holds(constraint: Constraint, value: Any) -> bool:
    """Whether all values follow a constraint: few values on the cpu are looked at by NumPy, at less cost."""
    if constraint.takes_arrays and value.numel() <= _FEW and value.device.name == "cpu":
        with np.errstate(all="ignore"):
            return bool(constraint.check(wg.Tensor.numpy(value)).all())
    return bool(constraint.check(value).all())


def _is_whole(value: Any) -> Any:
    return value % 1 == 0


def greater_than(lower_bound: Any) -> Constraint:
    """Above a bound."""
    return _Rule("GreaterThan", lambda value: lower_bound < value, lower_bound=lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """At a bound or above."""
    return _Rule("GreaterThanEq", lambda value: lower_bound <= value, lower_bound=lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Below a bound."""
    return _Rule("LessThan", lambda value: value < upper_bound, upper_bound=upper_bound)


def _between(
    name: str, check: Callable[[Any, Any, Any], Any], is_discrete: bool = False
) -> Callable[..., Any]:
    def made(lower_bound: Any, upper_bound: Any) -> Constraint:
        rule = _Rule(name, lambda value: check(value, lower_bound, upper_bound), is_discrete=is_discrete)
        rule.bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
        rule.__dict__.update(rule.bounds)
        return rule

    return made


def multinomial(upper_bound: Any) -> Constraint:
    """Counts along the last dimension whose sum is at most a bound."""
    return _Rule(
        "Multinomial",
        lambda value: (value >= 0).all(-1) & (value.sum(-1) <= upper_bound),
        event_dim=1,
        is_discrete=True,
        upper_bound=upper_bound,
    )


def _is_square(value: Any) -> Any:
    fits = value.shape[-2] == value.shape[-1]
    return torch.full(value.shape[:-2], fits, dtype=torch.bool, device=value.device)


def _is_symmetric(value: Any) -> Any:
    return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) & _is_square(value)


def _has_eigenvalues(least: Callable[[Any], Any]) -> Check:
    def check(value: Any) -> Any:
        found = _is_symmetric(value)
        return found & least(torch.linalg.eigvalsh(value)).all(-1) if bool(found.all()) else found

    return check


def _is_definite(value: Any) -> Any:
    found = _is_symmetric(value)
    return found & (torch.linalg.cholesky_ex(value).info == 0) if bool(found.all()) else found


def _is_lower(value: Any) -> Any:
    return (value.tril() == value).flatten(-2).all(-1)


def _is_simplex(value: Any) -> Any:
    return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


def _has_odds(value: Any) -> Any:
    return (value.sum(-1) < math.inf) & (value > -math.inf).any(-1)


def _is_one_hot(value: Any) -> Any:
    return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


def _is_cholesky(value: Any) -> Any:
    return _is_lower(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _is_corr_cholesky(value: Any) -> Any:
    tolerance = torch.finfo(value.dtype).eps * value.shape[-1] * 10
    lengths = torch.linalg.norm(value.detach(), dim=-1)
    return _is_cholesky(value) & ((lengths - 1).abs() <= tolerance).all(-1)


dependent = _Dependent()
interval = _between("Interval", lambda value, low, high: (low <= value) & (value <= high))
half_open_interval = _between("HalfOpenInterval", lambda value, low, high: (low <= value) & (value < high))
integer_interval = _between(
    "IntegerInterval", lambda value, low, high: _is_whole(value) & (low <= value) & (value <= high), True
)
boolean = _Rule("Boolean", lambda value: (value == 0) | (value == 1), is_discrete=True)
one_hot = _Rule("OneHot", _is_one_hot, 1, True)
nonnegative_integer = _Rule(
    "IntegerGreaterThan", lambda value: _is_whole(value) & (value >= 0), is_discrete=True, lower_bound=0
)
positive_integer = _Rule(
    "IntegerGreaterThan", lambda value: _is_whole(value) & (value >= 1), is_discrete=True, lower_bound=1
)
real = _Rule("Real", lambda value: value == value)  # what is not NaN
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _Rule("Simplex", _is_simplex, 1)
shares = _Rule("Shares", lambda value: _is_simplex(value / value.sum(-1)[..., None]), 1)  # once normalised
odds = _Rule("Odds", _has_odds, 1)  # logits of these
square = _Rule("Square", _is_square, 2)
symmetric = _Rule("Symmetric", _is_symmetric, 2)
lower_triangular = _Rule("LowerTriangular", _is_lower, 2)
lower_cholesky = _Rule("LowerCholesky", _is_cholesky, 2)
corr_cholesky = _Rule("CorrCholesky", _is_corr_cholesky, 2)
positive_semidefinite = _Rule("PositiveSemidefinite", _has_eigenvalues(lambda found: found >= 0), 2)
positive_definite = _Rule("PositiveDefinite", _is_definite, 2)
