"""The base of transforms of random variables, and transforms that are made of others.

In: a tensor. Out: another, and `log_abs_det_jacobian(x, y)`, which changes a density by the transform.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .utils import sum_rightmost

__all__ = [
    "CatTransform", "ComposeTransform", "IndependentTransform", "ReshapeTransform", "StackTransform",
    "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """A transform: `_call`, `_inverse` and `log_abs_det_jacobian` are what a class defines.

    With `cache_size=1` the last value is kept, so that the inverse of a result is what it was made of.
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)
        self._inverse_of: Any = None

    @property
    def event_dim(self) -> int:
        """The dimensions of what is transformed at once."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse."""
        found = None if self._inverse_of is None else self._inverse_of()
        if found is None:
            found = _Inverse(self)
            self._inverse_of = weakref.ref(found)
        return found

    @property
    def sign(self) -> Any:
        """1 where the transform rises, -1 where it falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same, which keeps its last value."""
        if self._cache_size == cache_size:
            return self
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        Transform.__init__(new, cache_size)
        return new

    def __call__(self, x: Any) -> Any:
        if self._cache_size and x is self._last[0]:
            return self._last[1]
        y = self._call(x)
        self._last = (x, y) if self._cache_size else self._last
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size and y is self._last[1]:
            return self._last[0]
        x = self._inverse(y)
        self._last = (x, y) if self._cache_size else self._last
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """log |dy/dx|."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """The shape of what is made of this one."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of what this one is made of."""
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other) and not _parameters(self) and not _parameters(other)
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _parameters(transform: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(transform).items() if not name.startswith("_")}


class _Inverse(Transform):
    """A transform the other way round."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self.transform = transform

    @property
    def domain(self) -> Any:
        return self.transform.codomain

    @property
    def codomain(self) -> Any:
        return self.transform.domain

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return self.transform.bijective

    @property
    def sign(self) -> Any:
        return self.transform.sign

    @property
    def inv(self) -> Any:
        return self.transform

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.transform.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self.transform == other.transform

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        return self.transform._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self.transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.transform.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self.transform!r})"


class ComposeTransform(Transform):
    """Transforms one after another."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [each.with_cache(cache_size) for each in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        found, dims = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for each in reversed(self.parts):
            dims = max(dims + each.domain.event_dim - each.codomain.event_dim, each.domain.event_dim)
        return found if dims == found.event_dim else constraints.independent(found, dims - found.event_dim)

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        found, dims = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for each in self.parts:
            dims = max(dims + each.codomain.event_dim - each.domain.event_dim, each.codomain.event_dim)
        return found if dims == found.event_dim else constraints.independent(found, dims - found.event_dim)

    @property
    def bijective(self) -> Any:  # type: ignore[override]
        return all(each.bijective for each in self.parts)

    @property
    def sign(self) -> Any:
        found: Any = 1
        for each in self.parts:
            found = found * each.sign
        return found

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def _call(self, x: Any) -> Any:
        for each in self.parts:
            x = each(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for each in reversed(self.parts):
            y = each.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return torch.zeros_like(x)
        values = [x]
        for each in self.parts[:-1]:
            values.append(each(values[-1]))
        values.append(y)
        total: Any = 0
        dims = self.domain.event_dim
        for each, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            term = each.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(term, dims - each.domain.event_dim)
            dims += each.codomain.event_dim - each.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for each in self.parts:
            shape = each.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for each in reversed(self.parts):
            shape = each.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions count as part of a value."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.domain, self.codomain = (
            constraints.independent(each, reinterpreted_batch_ndims)
            for each in (base_transform.domain, base_transform.codomain)
        )
        self.bijective = base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """The last dimensions in another shape."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _swapped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _swapped(shape, self.out_shape, self.in_shape)


def _swapped(shape: Any, old: Any, new: Any) -> Any:
    kept = len(shape) - len(old)
    if kept < 0 or tuple(shape[kept:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {tuple(shape)} to end in {tuple(old)}")
    return Size((*shape[:kept], *new))


class _Parts(Transform):
    """Transforms of the parts of one dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [each.with_cache(cache_size) for each in tseq], dim
        self.bijective = all(each.bijective for each in self.transforms)

    def _cut(self, value: Any) -> Any:
        raise NotImplementedError

    def _joined(self, values: Any) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        return self._joined([each(part) for each, part in zip(self.transforms, self._cut(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._joined(
            [each.inv(part) for each, part in zip(self.transforms, self._cut(y), strict=True)]
        )

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        triples = zip(self.transforms, self._cut(x), self._cut(y), strict=True)
        return self._joined([each.log_abs_det_jacobian(before, after) for each, before, after in triples])


class CatTransform(_Parts):
    """Transforms of parts of a dimension, by their lengths."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.domain = constraints.cat([each.domain for each in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([each.codomain for each in self.transforms], dim, self.lengths)

    def _cut(self, value: Any) -> Any:
        return value.split(self.lengths, self.dim)

    def _joined(self, values: Any) -> Any:
        return torch.cat(values, self.dim)


class StackTransform(_Parts):
    """A transform for each entry of a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.domain = constraints.stack([each.domain for each in self.transforms], dim)
        self.codomain = constraints.stack([each.codomain for each in self.transforms], dim)

    def _cut(self, value: Any) -> Any:
        return value.unbind(self.dim)

    def _joined(self, values: Any) -> Any:
        return torch.stack(values, self.dim)
