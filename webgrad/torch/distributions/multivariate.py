"""Normal vectors.

In: a mean and a covariance, by itself, its inverse, its Cholesky factor, or a factor of low rank. Out:
distributions of vectors whose samples carry gradients.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .distribution import Distribution
from .utils import lazy_property, rules

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


def _whitened(factor: Any, difference: Any) -> Any:
    """The solution of factor @ y = difference, by the last dimension."""
    return torch.linalg.solve_triangular(factor, difference.unsqueeze(-1), upper=False).squeeze(-1)


def _log_diagonal(factor: Any) -> Any:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class _Normal(Distribution):
    """What the two have in common."""

    support = constraints.real_vector
    has_rsample = True
    loc: Any

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    def _standard(self, shape: Any) -> Any:
        return torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)


class MultivariateNormal(_Normal):
    """Normal vectors of a covariance matrix, or of its inverse, or of its Cholesky factor."""

    arg_constraints = rules(
        loc=constraints.real_vector,
        covariance_matrix=constraints.positive_definite,
        precision_matrix=constraints.positive_definite,
        scale_tril=constraints.lower_cholesky,
    )

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        ways = {
            "covariance_matrix": covariance_matrix,
            "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }
        given = {name: value for name, value in ways.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        [(name, matrix)] = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = torch.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        self.__dict__[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        self._unbroadcasted_scale_tril = _factor(name, matrix)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        size = self._event_shape[0]
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, size, size))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return torch.cholesky_inverse(self.scale_tril)

    @property
    def variance(self) -> Any:
        found = (self._unbroadcasted_scale_tril**2).sum(-1)
        return found.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        normal = self._standard(self._extended_shape(sample_shape))
        return self.loc + (self._unbroadcasted_scale_tril @ normal.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Any) -> Any:
        factor = self._unbroadcasted_scale_tril
        difference = self._checked(value) - self.loc
        batch = torch.broadcast_shapes(tuple(difference.shape[:-1]), tuple(factor.shape[:-2]))
        size = self._event_shape[0]
        part = _whitened(factor.expand((*batch, size, size)), difference.expand((*batch, size)))
        return -0.5 * ((part**2).sum(-1) + size * math.log(2 * math.pi)) - _log_diagonal(factor)

    def entropy(self) -> Any:
        constant = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (constant + _log_diagonal(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


def _factor(name: str, matrix: Any) -> Any:
    """The Cholesky factor of a covariance that is given in one of three ways."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return torch.linalg.cholesky(matrix)
    upper = torch.linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1)).mT  # upper.mT @ upper is the inverse
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device).expand(matrix.shape)
    return torch.linalg.solve_triangular(upper, eye, upper=False)


class LowRankMultivariateNormal(_Normal):
    """Normal vectors whose covariance is W @ W.T plus a diagonal."""

    arg_constraints = rules(
        loc=constraints.real_vector,
        cov_factor=constraints.independent(constraints.real, 2),
        cov_diag=constraints.independent(constraints.positive, 1),
    )

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1 or cov_factor.dim() < 2:
            raise ValueError("loc must be at least one-dimensional, and cov_factor at least two-dimensional.")
        size = loc.shape[-1]
        if cov_factor.shape[-2] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size} x m")
        if cov_diag.shape[-1] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {size}")
        batch = torch.broadcast_shapes(
            tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1])
        )
        self.loc, self.cov_diag = (each.expand((*batch, size)) for each in (loc, cov_diag))
        self.cov_factor = cov_factor.expand((*batch, size, cov_factor.shape[-1]))
        super().__init__(batch, (size,), validate_args)

    @property
    def _capacitance(self) -> Any:
        """The Cholesky factor of 1 + W.T @ D^-1 @ W."""
        factor = self.cov_factor
        inner = factor.mT @ (factor / self.cov_diag.unsqueeze(-1))
        eye = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        return torch.linalg.cholesky(inner + eye)

    @property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + torch.diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Any:
        """Its Cholesky factor."""
        return torch.linalg.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Any:
        """Its inverse."""
        part = torch.linalg.solve_triangular(
            self._capacitance, self.cov_factor.mT / self.cov_diag.unsqueeze(-2), upper=False
        )
        return torch.diag_embed(self.cov_diag.reciprocal()) - part.mT @ part

    @property
    def variance(self) -> Any:
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        few = self._standard((*shape[:-1], self.cov_factor.shape[-1], 1))
        return self.loc + (self.cov_factor @ few).squeeze(-1) + self.cov_diag.sqrt() * self._standard(shape)

    def _log_determinant(self) -> Any:
        return 2 * _log_diagonal(self._capacitance) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        difference = self._checked(value) - self.loc
        scaled = difference / self.cov_diag
        inner = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        factor = self._capacitance.expand((*inner.shape[:-1], *self._capacitance.shape[-2:]))
        square = (difference * scaled).sum(-1) - (_whitened(factor, inner) ** 2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_determinant() + square)

    def entropy(self) -> Any:
        return 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_determinant())
