"""torch.distributions: what has a density or a chance, samples, moments, entropies and divergences.

In: parameters, numbers or tensors. Out: distributions. Samples of those with `has_rsample` carry gradients to
the parameters (`rsample`). The modules are those of torch, by name, as far as programs import from them.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from . import (
    circular,
    compound,
    constraint_registry,
    constraints,
    continuous,
    derived,
    discrete,
    distribution,
    gammas,
    kl,
    multivariate,
    relaxed,
    transforms,
    utils,
)

_FAMILIES = (
    distribution, continuous, derived, gammas, circular, discrete, multivariate, relaxed, compound,
    transforms,
)  # fmt: skip
_NAMES: dict[str, Any] = {name: getattr(family, name) for family in _FAMILIES for name in family.__all__}
_NAMES |= {name: getattr(constraint_registry, name) for name in ("biject_to", "transform_to")}
_NAMES |= {name: getattr(kl, name) for name in kl.__all__}
globals().update(_NAMES)
__all__ = ["constraint_registry", "constraints", "distribution", "kl", "transforms", "utils", *_NAMES]

# torch's modules, and what they have
_MODULES = """
bernoulli Bernoulli
beta Beta
binomial Binomial
categorical Categorical
cauchy Cauchy
chi2 Chi2
continuous_bernoulli ContinuousBernoulli
dirichlet Dirichlet
exp_family ExponentialFamily
exponential Exponential
fishersnedecor FisherSnedecor
gamma Gamma
geometric Geometric
gumbel Gumbel
half_cauchy HalfCauchy
half_normal HalfNormal
independent Independent
inverse_gamma InverseGamma
kumaraswamy Kumaraswamy
laplace Laplace
log_normal LogNormal
logistic_normal LogisticNormal
lowrank_multivariate_normal LowRankMultivariateNormal
mixture_same_family MixtureSameFamily
multinomial Multinomial
multivariate_normal MultivariateNormal
negative_binomial NegativeBinomial
normal Normal
one_hot_categorical OneHotCategorical OneHotCategoricalStraightThrough
pareto Pareto
poisson Poisson
relaxed_bernoulli LogitRelaxedBernoulli RelaxedBernoulli
relaxed_categorical ExpRelaxedCategorical RelaxedOneHotCategorical
studentT StudentT
transformed_distribution TransformedDistribution
uniform Uniform
von_mises VonMises
weibull Weibull
"""


def _module(name: str, members: list[str]) -> ModuleType:
    """A module of torch's name whose members are the classes."""
    made = ModuleType(f"{__name__}.{name}", f"torch.distributions.{name}: {', '.join(members)}.")
    made.__dict__.update({each: _NAMES[each] for each in members})
    sys.modules[made.__name__] = made
    return made


for _line in _MODULES.split("\n")[1:-1]:
    _first, *_members = _line.split()
    globals()[_first] = _module(_first, _members)
