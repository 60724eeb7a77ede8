"""Weights computed of others before each call: their length apart, or their largest stretch divided out.

In: a module and the name of a weight. Out: the module, with other parameters in its place, by PyTorch's names
and hooks. `parametrizations` has the same as modules.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..module import Module
from .computed import Computed

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


def length_of(weight: wg.Tensor, dim: int | None) -> wg.Tensor:
    """The norms of a weight over all axes but one, or all."""
    axes = None if dim is None else tuple(each for each in range(weight.ndim) if each != dim % weight.ndim)
    if axes == ():
        return wg.abs(weight)
    return wg.vector_norm(weight, axis=axes, keepdims=axes is not None)


class WeightNorm(Computed):
    """A weight as a length and a direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Any) -> wg.Tensor:
        """The weight."""
        length, way = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        weight: wg.Tensor = way * (length / length_of(way, self.dim))
        return weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """A weight as its length g, for each index of `dim`, and its direction v (Salimans and Kingma, 2016).

    >>> layer = wg.nn.utils.weight_norm(wg.nn.Linear(3, 2))
    >>> sorted(layer.state_dict()), layer.weight_g.shape
    (['bias', 'weight_g', 'weight_v'], (2, 1))
    """
    dim = None if dim == -1 else dim
    weight, hook = getattr(module, name), WeightNorm(name, dim)
    hook.put(module, g=length_of(weight.detach(), dim), v=weight.detach())
    hook.begin(module)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """The weight as a plain parameter again.

    >>> layer = wg.nn.utils.weight_norm(wg.nn.Linear(3, 2))
    >>> sorted(wg.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    return WeightNorm.taken_off(module, name, "g", "v")  # type: ignore[no-any-return]


def as_matrix(weight: wg.Tensor, dim: int) -> wg.Tensor:
    """A weight as a matrix whose rows are an axis."""
    return wg.moveaxis(weight, dim, 0).reshape((weight.shape[dim], -1))


def refined(
    matrix: wg.Tensor, u: wg.Tensor, v: wg.Tensor, times: int, eps: float
) -> tuple[wg.Tensor, wg.Tensor]:
    """Closer estimates of the vectors that a matrix stretches most."""
    for _ in range(times):
        v = wg.normalize(u @ matrix, 2.0, 0, eps)
        u = wg.normalize(matrix @ v, 2.0, 0, eps)
    return u, v


class SpectralNorm(Computed):
    """A weight divided by its largest singular value."""

    def __init__(self, name: str, times: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.times, self.eps, self.dim = times, eps, dim

    def compute(self, module: Any, refine: bool = False) -> wg.Tensor:
        """The weight; in a call of training the estimate becomes closer first."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = (getattr(module, f"{self.name}_{each}") for each in "uv")
        matrix = as_matrix(weight, self.dim)
        if refine:
            with wg.no_grad():
                better = refined(matrix.detach(), u, v, self.times, self.eps)
                for old, new in zip((u, v), better, strict=True):
                    old[...] = new
        u, v = u.detach().clone(), v.detach().clone()
        divided: wg.Tensor = weight / wg.sum(u * (matrix @ v))
        return divided

    def __call__(self, module: Any, inputs: Any) -> None:
        module.__dict__[self.name] = self.compute(module, module.training)


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """A weight divided by an estimate of its largest singular value, refined at each call (Miyato, 2018).

    >>> layer = wg.nn.utils.spectral_norm(wg.nn.Linear(3, 2), n_power_iterations=20)
    >>> _ = layer(wg.ones((1, 3)))
    >>> sorted(layer.state_dict()), round(wg.linalg.svdvals(layer.weight)[0].item(), 3)
    (['bias', 'weight_orig', 'weight_u', 'weight_v'], 1.0)
    """
    if n_power_iterations < 1:
        raise wg.ArgumentError(f"spectral_norm: n_power_iterations is 1 or more, not {n_power_iterations!r}")
    if dim is None:
        dim = 1 if "Transpose" in type(module).__name__ else 0
    weight = getattr(module, name).detach()
    hook = SpectralNorm(name, n_power_iterations, eps, dim)
    rows, columns = as_matrix(weight, dim).shape
    hook.put(module, orig=weight)
    for ending, size in (("u", rows), ("v", columns)):
        drawn = wg.random.randn(size, device=weight.device).astype(weight.dtype, copy=False)
        module.register_buffer(f"{name}_{ending}", wg.normalize(drawn, 2.0, 0, eps))
    hook.begin(module)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """The weight as a plain parameter again.

    >>> layer = wg.nn.utils.spectral_norm(wg.nn.Linear(3, 2))
    >>> sorted(wg.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    return SpectralNorm.taken_off(module, name, "orig", "u", "v")  # type: ignore[no-any-return]
