"""Parametrisations that are there: weights by length and direction, or divided by their largest stretch.

In: a module and the name of a weight. Out: the module, with the weight computed each time it is looked at.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..module import Module
from .parametrize import register_parametrization
from .weights import as_matrix, length_of, refined

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, length: wg.Tensor, way: wg.Tensor) -> wg.Tensor:
        """The weight."""
        return way * (length / length_of(way, self.dim))

    def right_inverse(self, weight: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        """Its length and its direction."""
        return length_of(weight, self.dim), weight


class _SpectralNorm(Module):
    def __init__(self, weight: wg.Tensor, times: int, dim: int, eps: float) -> None:
        super().__init__()
        self.n_power_iterations, self.dim, self.eps = times, dim, eps
        if weight.ndim > 1:
            matrix = as_matrix(weight.detach(), dim)
            drawn = [
                wg.random.randn(size, device=weight.device).astype(weight.dtype, copy=False)
                for size in matrix.shape
            ]
            u, v = (wg.normalize(each, 2.0, 0, eps) for each in drawn)
            u, v = refined(matrix, u, v, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: wg.Tensor) -> wg.Tensor:
        """The weight over its largest singular value."""
        if weight.ndim == 1:
            return wg.normalize(weight, 2.0, 0, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            with wg.no_grad():
                better = refined(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
                for old, new in zip((self._u, self._v), better, strict=True):
                    old[...] = new
        u, v = self._u.detach().clone(), self._v.detach().clone()
        return weight / wg.sum(u * (matrix @ v))

    def right_inverse(self, value: wg.Tensor) -> wg.Tensor:
        """A value, taken as it is."""
        return value


MODULES = (_WeightNorm, _SpectralNorm)  # that compute


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """A weight as its length, for each index of `dim`, and its direction (Salimans and Kingma, 2016).

    >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    return register_parametrization(module, name, _WeightNorm(None if dim == -1 else dim), unsafe=True)


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """A weight divided by an estimate of its largest singular value, refined in training (Miyato, 2018).

    >>> layer = wg.nn.utils.parametrizations.spectral_norm(wg.nn.Linear(3, 2))
    >>> round(wg.linalg.svdvals(layer.weight)[0].item(), 2)
    1.0
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, wg.Tensor):
        raise wg.ArgumentError(f"module {type(module).__name__} has no parameter or buffer {name!r}")
    if n_power_iterations < 1:
        raise wg.ArgumentError(f"spectral_norm: n_power_iterations is 1 or more, not {n_power_iterations!r}")
    if dim is None:
        dim = 1 if "Transpose" in type(module).__name__ else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
