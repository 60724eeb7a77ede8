"""torch.distributions: samples have the moments they say, densities are SciPy's, what is wrong is refused."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

import webgrad.torch as torch
from webgrad.torch.distributions import constraints

D: Any = torch.distributions
stats: Any = pytest.importorskip("scipy.stats")
Normal: Any = importlib.import_module("webgrad.torch.distributions.normal").Normal
MANY = 20_000
T = torch.tensor
SAMPLED: dict[str, Any] = {
    "Normal": lambda: D.Normal(T([1.0, -2.0]), T([0.5, 2.0])),
    "LogNormal": lambda: D.LogNormal(0.1, 0.3),
    "Laplace": lambda: D.Laplace(1.0, 0.5),
    "Gumbel": lambda: D.Gumbel(1.0, 0.5),
    "HalfNormal": lambda: D.HalfNormal(2.0),
    "Uniform": lambda: D.Uniform(-1.0, T([2.0, 5.0])),
    "Exponential": lambda: D.Exponential(2.0),
    "Weibull": lambda: D.Weibull(2.0, 1.5),
    "Pareto": lambda: D.Pareto(1.0, 6.0),
    "Kumaraswamy": lambda: D.Kumaraswamy(2.0, 3.0),
    "Gamma": lambda: D.Gamma(T([0.7, 3.0]), T([1.0, 2.0])),
    "Chi2": lambda: D.Chi2(T([3.0])),
    "InverseGamma": lambda: D.InverseGamma(7.0, 3.0),
    "Beta": lambda: D.Beta(2.0, 3.0),
    "Dirichlet": lambda: D.Dirichlet(T([0.5, 1.0, 2.0])),
    "StudentT": lambda: D.StudentT(9.0, 1.0, 2.0),
    "FisherSnedecor": lambda: D.FisherSnedecor(6.0, 20.0),
    "Bernoulli": lambda: D.Bernoulli(T([0.2, 0.9])),
    "ContinuousBernoulli": lambda: D.ContinuousBernoulli(T([0.2, 0.5])),
    "Geometric": lambda: D.Geometric(0.4),
    "Binomial": lambda: D.Binomial(8, T([0.2, 0.9])),
    "NegativeBinomial": lambda: D.NegativeBinomial(5.0, 0.4),
    "Poisson": lambda: D.Poisson(T([0.5, 30.0])),
    "OneHotCategorical": lambda: D.OneHotCategorical(T([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])),
    "Multinomial": lambda: D.Multinomial(6, T([0.2, 0.5, 0.3])),
    "MultivariateNormal": lambda: D.MultivariateNormal(T([1.0, 2.0]), T([[2.0, 0.5], [0.5, 1.0]])),
    "LowRank": lambda: D.LowRankMultivariateNormal(T([1.0, 2.0]), T([[1.0], [0.5]]), T([0.3, 2.0])),
    "Mixture": lambda: D.MixtureSameFamily(
        D.Categorical(T([0.3, 0.7])), D.Normal(T([-2.0, 1.0]), T([0.5, 1.0]))
    ),
    "Independent": lambda: D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_samples_have_the_mean_and_variance_that_is_said(name: str) -> None:
    torch.manual_seed(4)
    distribution = SAMPLED[name]()
    x = distribution.sample((MANY,))
    assert x.shape == (MANY, *distribution.batch_shape, *distribution.event_shape)
    assert not x.requires_grad
    numbers = x.numpy().astype(np.float64)
    spread, fourth = numbers.std(0), ((numbers - numbers.mean(0)) ** 4).mean(0)
    mean, variance = (
        np.broadcast_to(each.numpy(), numbers.shape[1:])
        for each in (distribution.mean, distribution.variance)
    )
    assert (abs(numbers.mean(0) - mean) < 5 * spread / MANY**0.5 + 1e-6).all()
    assert (abs(spread**2 - variance) < 6 * ((fourth - spread**4) / MANY) ** 0.5 + 1e-6).all()
    assert np.isfinite(distribution.log_prob(x).numpy()).all()  # all of them are in the support, too


DENSITIES: list[tuple[Any, Any, list[float]]] = [
    (lambda: D.Normal(1.0, 2.0), stats.norm(1, 2), [-1.0, 0.5, 4.0]),
    (lambda: D.Cauchy(1.0, 2.0), stats.cauchy(1, 2), [-1.0, 0.5, 4.0]),
    (lambda: D.HalfCauchy(2.0), stats.halfcauchy(0, 2), [0.1, 4.0]),
    (lambda: D.Gamma(2.5, 2.0), stats.gamma(2.5, scale=0.5), [0.1, 4.0]),
    (lambda: D.Beta(2.0, 0.5), stats.beta(2, 0.5), [0.1, 0.9]),
    (lambda: D.StudentT(3.0, 1.0, 2.0), stats.t(3, 1, 2), [-1.0, 4.0]),
    (lambda: D.VonMises(0.5, 3.0), stats.vonmises(3, 0.5), [-1.0, 2.0]),
    (lambda: D.Poisson(3.0), stats.poisson(3), [0.0, 7.0]),
    (lambda: D.Binomial(7, 0.3), stats.binom(7, 0.3), [0.0, 7.0]),
    (lambda: D.NegativeBinomial(4, 0.3), stats.nbinom(4, 0.7), [0.0, 7.0]),
    (lambda: D.Geometric(0.3), stats.geom(0.3, -1), [0.0, 7.0]),
]


@pytest.mark.parametrize(("make", "reference", "values"), DENSITIES)
def test_densities_are_scipys(make: Any, reference: Any, values: list[float]) -> None:
    log = reference.logpdf if hasattr(reference.dist, "logpdf") else reference.logpmf
    log = reference.logpmf if isinstance(reference.dist, stats.rv_discrete) else log
    distribution = make()
    np.testing.assert_allclose(distribution.log_prob(T(values)).numpy(), log(values), rtol=1e-5, atol=1e-5)
    if not isinstance(reference.dist, stats.rv_discrete):
        entropy = (
            make().entropy()
            if hasattr(type(distribution), "cdf") and "entropy" in vars(type(distribution))
            else None
        )
        if entropy is not None:
            assert entropy.item() == pytest.approx(float(reference.entropy()), rel=1e-4)


def test_angles_are_distributed_as_they_should_be() -> None:
    torch.manual_seed(2)
    angles = D.VonMises(0.5, 3.0).sample((MANY,)).numpy()
    assert stats.kstest(angles, stats.vonmises(3, 0.5).cdf).pvalue > 0.01


@pytest.mark.parametrize(
    "name", ["Normal", "Gamma", "Beta", "Dirichlet", "StudentT", "LogNormal", "MultivariateNormal"]
)
def test_gradients_go_through_samples(name: str) -> None:
    parameters: dict[str, list[Any]] = {
        "Dirichlet": [T([0.5, 1.0, 2.0])],
        "StudentT": [T(5.0), T(0.5), T(2.0)],
        "MultivariateNormal": [T([0.5, 1.0]), T([[2.0, 0.5], [0.5, 1.0]])],
    }
    given = [each.requires_grad_() for each in parameters.get(name, [T(1.5), T(2.0)])]
    getattr(D, name)(*given).rsample((3,)).sum().backward()
    for each in given:
        assert each.grad is not None
        assert np.isfinite(each.grad.numpy()).all()


def test_a_policy_step() -> None:
    logits = torch.zeros(1, 3, requires_grad=True)
    policy = D.Categorical(logits=logits)
    action = policy.sample()
    assert action.dtype is torch.int64
    (-policy.log_prob(action) * 2.0 - 0.01 * policy.entropy()).sum().backward()
    expected = 2 / 3 - 2 * (np.arange(3) == action.item())
    np.testing.assert_allclose(logits.grad[0].numpy(), expected, rtol=1e-5)


def test_a_squashed_normal() -> None:
    base = D.Normal(T([0.0, 1.0]), T([1.0, 0.5]))
    squashed = D.TransformedDistribution(base, [D.TanhTransform(cache_size=1)])
    y = squashed.rsample((5,))
    exact = base.log_prob(torch.atanh(y)) - torch.log1p(-(y**2))
    np.testing.assert_allclose(squashed.log_prob(y).numpy(), exact.numpy(), rtol=1e-3, atol=1e-4)
    assert squashed.transforms[0].inv(y) is squashed.transforms[0].inv(y)


def test_expanded_and_given_by_either_parameter() -> None:
    by_logits, by_probs = D.Bernoulli(logits=T(0.0)), D.Bernoulli(T(0.5))
    assert by_logits.probs.item() == 0.5
    assert by_probs.logits.item() == 0.0
    wide = by_probs.expand((2, 3))
    assert (wide.logits.shape, wide.sample().shape, by_probs.batch_shape) == ((2, 3), (2, 3), ())
    assert D.Categorical(T([0.5, 0.5])).expand((4,)).logits.shape == (4, 2)
    assert D.Pareto(1.0, 3.0).expand((2,)).sample((5,)).shape == (5, 2)


def test_names_and_paths() -> None:
    assert Normal is D.Normal
    assert importlib.import_module("webgrad.torch.distributions") is D
    assert issubclass(D.Chi2, D.Gamma)
    assert repr(D.Normal(0.0, T([1.0, 2.0]))) == "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))


def test_divergences_of_ones_own_classes() -> None:
    class Mine(Normal):  # type: ignore[misc]
        """A normal distribution of somebody's own."""

    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 0.0

    @D.register_kl(Mine, Mine)  # type: ignore[untyped-decorator]
    def _ours(p: Any, q: Any) -> Any:
        return torch.full_like(p.loc, 7.0)

    assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 7.0


def test_checks_can_be_turned_off() -> None:
    assert math.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(T(0.0)).item())
    with pytest.raises(
        ValueError, match=r"Expected parameter scale .* to satisfy the constraint GreaterThan"
    ):
        D.Normal(0.0, T([1.0, -1.0]))
    with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified"):
        D.Categorical()
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"probs": [0.5, -0.1]},
            {"probs": [0.0, 0.0]},
            {"probs": [math.nan, 1.0]},
            {"probs": [math.inf, 1.0]},
        ),
        *({"logits": [math.nan, 0.0]}, {"logits": [math.inf, 0.0]}, {"logits": [-math.inf, -math.inf]}),
    ],
)
def test_chances_that_are_none(options: dict[str, Any]) -> None:
    given = {name: T(value) for name, value in options.items()}
    with pytest.raises(ValueError, match=f"Expected parameter {next(iter(given))}"):
        D.Categorical(**given)


def test_chances_at_the_edge() -> None:
    assert D.Categorical(T([0.0, 3.0])).sample((5,)).tolist() == [1] * 5
    assert D.Categorical(logits=T([-math.inf, 0.0])).sample((5,)).tolist() == [1] * 5
    assert D.Categorical(logits=T([3e38, 3e38])).probs.tolist() == [0.5, 0.5]


def test_constraints_are_checked_value_by_value() -> None:
    cases: list[tuple[Any, Any, list[bool]]] = [
        (constraints.simplex, [[0.5, 0.5], [0.5, 0.6]], [True, False]),
        (constraints.positive_definite, [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
        (constraints.lower_cholesky, [[[2.0, 0.0], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
        (constraints.integer_interval(0, 3), [0.0, 1.5, 4.0], [True, False, False]),
        (constraints.one_hot, [[0.0, 1.0], [1.0, 1.0]], [True, False]),
        (constraints.real, [1.0, math.nan], [True, False]),
        (constraints.multinomial(3), [[1.0, 2.0], [2.0, 2.0]], [True, False]),
        (constraints.stack([constraints.real, constraints.positive]), [-1.0, -1.0], [True, False]),
        (
            constraints.cat([constraints.real, constraints.positive], 0, [1, 2]),
            [-1.0, -1.0, 1.0],
            [True, False, True],
        ),
    ]
    for constraint, values, expected in cases:
        assert constraint.check(T(values)).tolist() == expected, constraint


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    where = torch.device("webgpu:0")
    for name in ("Normal", "Gamma", "Dirichlet", "Poisson", "OneHotCategorical", "MultivariateNormal"):
        with where:
            distribution = SAMPLED[name]()
            x = distribution.sample((3,))
            assert torch.device(x.device) == where
            assert np.isfinite(distribution.log_prob(x).numpy()).all()
