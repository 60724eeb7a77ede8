"""Kullback and Leibler's divergence: a table of formulas by the classes of two distributions.

In: two distributions. Out: E_p[log p - log q], for each part of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import webgrad.torch as torch

from .compound import Independent, TransformedDistribution
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Normal, Uniform
from .derived import HalfNormal, LogNormal, Pareto
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .gammas import Beta, Dirichlet, Gamma
from .multivariate import LowRankMultivariateNormal, MultivariateNormal
from .relaxed import ContinuousBernoulli
from .utils import euler_constant, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]
_FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """A decorator for the formula of two classes, which holds for their subclasses too."""

    def registered(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return registered


def kl_divergence(p: Any, q: Any) -> Any:
    """The divergence of p from q.

    >>> from webgrad.torch.distributions import Normal, kl_divergence
    >>> round(kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item(), 3)
    0.5
    """
    ways = [
        (type(p).__mro__.index(first) + type(q).__mro__.index(second), formula)
        for (first, second), formula in _FORMULAS.items()
        if isinstance(p, first) and isinstance(q, second)
    ]
    if not ways:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}: "
            "register_kl adds a formula"
        )
    return min(ways, key=lambda way: way[0])[1](p, q)


def _where_infinite(outside: Any, value: Any) -> Any:
    """Infinite where p has values that q never has."""
    return torch.where(outside, math.inf, value)


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio, far = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + far - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, far = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + far / q.scale + ratio * torch.exp(-far / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, far = p.scale / q.scale, (q.loc - p.loc) / q.scale
    inner = torch.exp(far + torch.lgamma(1 + ratio))
    return -ratio.log() - far + ratio * euler_constant + inner - (1 + euler_constant)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return _where_infinite((q.low > p.low) | (q.high < p.high), found)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    spread = ((p.mean - q.loc) ** 2 + p.variance) / (2 * q.scale**2)
    return spread + 0.5 * (2 * math.pi * q.scale**2).log() - p.entropy()


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _where_infinite(p.scale < q.scale, found)


@register_kl(HalfNormal, HalfNormal)
@register_kl(LogNormal, LogNormal)
def _of_bases(p: Any, q: Any) -> Any:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    rates = q.concentration * (p.rate / q.rate).log()
    shapes = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    moved = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    return rates + shapes + moved + (q.rate - p.rate) * p.concentration / p.rate


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    a = q.concentration
    return -a * ratio.log() + ratio + torch.lgamma(a) + a * euler_constant - (1 + euler_constant)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    return _shares(p.concentration, q.concentration)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _shares(*(torch.stack([each.concentration1, each.concentration0], -1) for each in (p, q)))


def _shares(p: Any, q: Any) -> Any:
    total = p.sum(-1)
    constant = torch.lgamma(total) - torch.lgamma(q.sum(-1)) + (torch.lgamma(q) - torch.lgamma(p)).sum(-1)
    return constant + ((p - q) * (torch.digamma(p) - torch.digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = torch.nn.functional.softplus
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    none = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    found = torch.where(p.probs == 0, 0.0, one) + torch.where(p.probs == 1, 0.0, none)
    return _where_infinite(((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1)), found)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    found = p.total_count * (p.probs * (p.logits - q.logits) + torch.log1p(-p.probs) - torch.log1p(-q.probs))
    return _where_infinite(p.total_count > q.total_count, found)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    constants = p._log_constant() + torch.log1p(-p.probs) - torch.log1p(-q.probs) - q._log_constant()
    return p.mean * (p.logits - q.logits) + constants


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return torch.xlogy(p.rate, p.rate) - torch.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = _where_infinite((q.probs == 0).expand(terms.shape), terms)
    return torch.where((p.probs == 0).expand(terms.shape), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    size = p.event_shape[0]
    batch = torch.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    mine, its = (each.scale_tril.expand((*batch, size, size)) for each in (p, q))
    far = (q.loc - p.loc).expand((*batch, size)).unsqueeze(-1)
    both = torch.linalg.solve_triangular(its, torch.cat([mine, far], -1), upper=False)
    volumes = (its.diagonal(dim1=-2, dim2=-1).log() - mine.diagonal(dim1=-2, dim2=-1).log()).sum(-1)
    return volumes + 0.5 * ((both**2).sum((-2, -1)) - size)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independents of different reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between differently transformed distributions")
    return kl_divergence(p.base_dist, q.base_dist)
