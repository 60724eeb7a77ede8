"""Transforms from real numbers to what a constraint allows: for parameters that are optimised.

In: a constraint. Out: a transform; `biject_to` gives one that has an inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Any]


class ConstraintRegistry:
    """Factories of transforms by the names, or the classes, of constraints."""

    def __init__(self, factories: dict[Any, Factory]) -> None:
        self._factories = factories

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Add a factory for the constraints of a class, or those like this one; without it a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        self._factories[_key(constraint)] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform to a constraint."""
        factory = self._factories.get(_key(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints: {constraint!r}"
            )
        return factory(constraint)


def _key(constraint: Any) -> Any:
    if isinstance(constraint, type):
        return constraint
    return getattr(constraint, "name", type(constraint))


def _above(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


def _registry(simplex: Factory) -> ConstraintRegistry:
    def independent(constraint: Any) -> Any:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    def of_parts(kind: Any, *names: str) -> Factory:
        def made(constraint: Any) -> Any:
            options = {name: getattr(constraint, name) for name in names}
            return kind([registry(each) for each in constraint.cseq], **options)

        return made

    registry = ConstraintRegistry(
        {
            "Real": lambda _: transforms.identity_transform,
            "GreaterThan": lambda each: transforms.ExpTransform() if each.lower_bound == 0 else _above(each),
            "GreaterThanEq": lambda each: (
                transforms.ExpTransform() if each.lower_bound == 0 else _above(each)
            ),
            "LessThan": _below,
            "Interval": _between,
            "HalfOpenInterval": _between,
            "Simplex": simplex,
            "LowerCholesky": lambda _: transforms.LowerCholeskyTransform(),
            "PositiveDefinite": lambda _: transforms.PositiveDefiniteTransform(),
            "PositiveSemidefinite": lambda _: transforms.PositiveDefiniteTransform(),
            constraints.independent: independent,
            constraints.cat: of_parts(transforms.CatTransform, "dim", "lengths"),
            constraints.stack: of_parts(transforms.StackTransform, "dim"),
        }
    )
    return registry


biject_to = _registry(lambda _: transforms.StickBreakingTransform())
transform_to = _registry(lambda _: transforms.SoftmaxTransform())
