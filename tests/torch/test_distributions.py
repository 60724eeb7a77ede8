"""torch.distributions against torch's: densities, moments, cdfs, divergences, gradients, transforms."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import webgrad.torch as door
from tests.torch.checking import torch

MATRIX = [[2.0, 0.5], [0.5, 1.0]]
BATCH = [[0.3, 1.5, 2.0], [0.7, 4.0, 0.9]]
CHANCES = [[0.2, 0.5, 0.3], [0.05, 0.15, 0.8]]
# name, parameters (lists become tensors), values in its support
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("Normal", {"loc": BATCH, "scale": [0.5, 1.0, 2.0]}, [0.1, -2.0, 3.0]),
    ("Normal", {"loc": 0.5, "scale": 2.0}, [0.1]),
    ("LogNormal", {"loc": BATCH, "scale": [0.5, 1.0, 0.3]}, [0.1, 2.0, 3.0]),
    ("Laplace", {"loc": BATCH, "scale": [0.5, 1.0, 2.0]}, [0.1, -2.0, 3.0]),
    ("Cauchy", {"loc": BATCH, "scale": [0.5, 1.0, 2.0]}, [0.1, -2.0, 3.0]),
    ("Gumbel", {"loc": BATCH, "scale": [0.5, 1.0, 2.0]}, [0.1, -2.0, 3.0]),
    ("HalfNormal", {"scale": BATCH}, [0.1, 2.0, 0.7]),
    ("HalfCauchy", {"scale": BATCH}, [0.1, 2.0, 0.7]),
    ("Uniform", {"low": [-1.0, 0.0, 2.0], "high": [3.0, 0.5, 2.5]}, [0.1, 0.2, 2.2]),
    ("Exponential", {"rate": BATCH}, [0.1, 2.0, 0.7]),
    ("Weibull", {"scale": BATCH, "concentration": [0.7, 1.5, 3.0]}, [0.1, 2.0, 0.7]),
    ("Pareto", {"scale": [0.5, 1.0, 2.0], "alpha": [2.5, 3.5, 1.5]}, [0.6, 2.0, 2.7]),
    ("Kumaraswamy", {"concentration1": BATCH, "concentration0": [1.2, 2.0, 3.0]}, [0.1, 0.5, 0.9]),
    ("Gamma", {"concentration": BATCH, "rate": [0.5, 1.0, 2.0]}, [0.1, 2.0, 0.7]),
    ("Chi2", {"df": BATCH}, [0.1, 2.0, 0.7]),
    ("InverseGamma", {"concentration": [1.5, 2.5, 4.0], "rate": [0.5, 1.0, 2.0]}, [0.1, 2.0, 0.7]),
    ("Beta", {"concentration1": BATCH, "concentration0": [1.2, 2.0, 3.0]}, [0.1, 0.5, 0.9]),
    ("Dirichlet", {"concentration": BATCH}, CHANCES),
    ("StudentT", {"df": [1.5, 2.5, 4.0], "loc": 0.3, "scale": [0.5, 1.0, 2.0]}, [0.1, -2.0, 3.0]),
    ("FisherSnedecor", {"df1": [3.0, 2.5, 6.0], "df2": [5.0, 4.5, 3.0]}, [0.1, 2.0, 0.7]),
    ("VonMises", {"loc": [0.3, -1.0, 3.0], "concentration": [0.5, 3.0, 50.0]}, [0.1, -2.0, 3.0]),
    ("Bernoulli", {"probs": [0.2, 0.5, 0.9]}, [0.0, 1.0, 1.0]),
    ("Bernoulli", {"logits": [-1.0, 0.0, 3.0]}, [0.0, 1.0, 1.0]),
    ("ContinuousBernoulli", {"probs": [0.2, 0.5, 0.9]}, [0.1, 0.5, 0.7]),
    ("Geometric", {"probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 1.0]),
    ("Binomial", {"total_count": 5, "probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 5.0]),
    ("NegativeBinomial", {"total_count": [5.0, 2.5, 1.0], "logits": [-1.0, 0.0, 1.0]}, [0.0, 3.0, 5.0]),
    ("Poisson", {"rate": BATCH}, [0.0, 3.0, 5.0]),
    ("Categorical", {"probs": CHANCES}, [[2], [0]]),
    ("Categorical", {"logits": BATCH}, [1, 2]),
    ("OneHotCategorical", {"probs": CHANCES}, [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    ("Multinomial", {"total_count": 4, "probs": CHANCES}, [[2.0, 1.0, 1.0], [0.0, 0.0, 4.0]]),
    ("MultivariateNormal", {"loc": [[0.1, 0.2], [1.0, -1.0]], "covariance_matrix": MATRIX}, [0.3, -0.4]),
    ("MultivariateNormal", {"loc": [0.1, 0.2], "precision_matrix": MATRIX}, [[0.3, -0.4]]),
    ("MultivariateNormal", {"loc": [0.1, 0.2], "scale_tril": [[1.0, 0.0], [0.5, 2.0]]}, [0.3, -0.4]),
    (
        "LowRankMultivariateNormal",
        {"loc": [0.1, 0.2], "cov_factor": [[1.0], [0.5]], "cov_diag": [0.3, 2.0]},
        [[0.3, -0.4], [1.0, 2.0]],
    ),
    ("RelaxedBernoulli", {"temperature": 0.7, "probs": [0.2, 0.5, 0.9]}, [0.1, 0.5, 0.7]),
    ("LogitRelaxedBernoulli", {"temperature": 0.7, "logits": [-1.0, 0.0, 3.0]}, [0.1, -2.0, 3.0]),
    ("RelaxedOneHotCategorical", {"temperature": 0.7, "probs": CHANCES}, CHANCES),
    ("LogisticNormal", {"loc": [0.1, 0.2], "scale": [0.5, 1.0]}, CHANCES),
]
NAMES = [f"{name}-{'-'.join(parameters)}" for name, parameters, _ in CASES]
MEMBERS = ("mean", "variance", "stddev", "mode", "batch_shape", "event_shape", "has_rsample", "entropy")


def tensors(of: Any, value: Any) -> Any:
    if isinstance(value, list):
        found = of.tensor(value)
        return found.requires_grad_() if found.is_floating_point() else found
    return value


def home(of: Any) -> Any:
    if of is torch:
        return torch.distributions.relaxed_bernoulli, torch.distributions
    return door.distributions.relaxed_bernoulli, door.distributions


def made(of: Any, name: str, parameters: dict[str, Any]) -> tuple[Any, list[Any]]:
    given = {each: tensors(of, value) for each, value in parameters.items()}
    if "temperature" in given:
        given["temperature"] = of.tensor(given["temperature"])
    kind = next(getattr(each, name) for each in home(of) if hasattr(each, name))
    return kind(**given), [each for each in given.values() if hasattr(each, "requires_grad")]


def answer(of: Any, compute: Any) -> Any:
    """What it gives, as arrays; the class of its error where it refuses."""
    try:
        with of.no_grad():
            found = compute()
    except (NotImplementedError, ValueError):  # torch checks values of its own with supports of its own
        return "not implemented"
    if isinstance(found, of.Tensor):
        return found.detach().numpy()
    return tuple(found) if isinstance(found, tuple) else found


def same(name: str, found: Any, expected: Any) -> None:
    if isinstance(expected, np.ndarray):
        assert found.shape == expected.shape, name
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=name)
    elif not (isinstance(expected, str) and expected == "not implemented"):  # here there may be one
        assert found == expected, name


def described(of: Any, name: str, parameters: dict[str, Any], values: Any) -> dict[str, Any]:
    """All that a distribution says."""
    distribution, given = made(of, name, parameters)
    value = tensors(of, values)
    value = value.detach() if hasattr(value, "detach") else value
    logs = distribution.log_prob(value)
    row = {"log_prob": logs.detach().numpy()}
    if logs.requires_grad:
        (logs.sum() * 1.5).backward()
    for at, each in enumerate(given):
        row[f"gradient {at}"] = None if each.grad is None else each.grad.numpy()
    for member in MEMBERS:
        each = answer(of, functools.partial(getattr, distribution, member))
        row[member] = answer(of, each) if callable(each) else each
    row["cdf"] = answer(of, lambda: distribution.cdf(value))
    row["icdf"] = answer(of, lambda: distribution.icdf(of.full(tuple(distribution.batch_shape), 0.3)))
    shape = (2, *distribution.batch_shape)
    row["expanded"] = distribution.expand(shape).log_prob(value).detach().numpy()
    row["sample"] = tuple(distribution.sample((4, 2)).shape)
    row["dtype"] = str(distribution.sample().dtype).rpartition(".")[2]
    row["expanded sample"] = tuple(distribution.expand(shape).sample((3,)).shape)
    if distribution.has_rsample:
        row["requires"] = distribution.rsample().requires_grad
    if distribution.has_enumerate_support:
        row["support"] = distribution.enumerate_support(expand=False).numpy()
        row["wide support"] = distribution.enumerate_support().numpy()
    return row


@pytest.mark.parametrize(("name", "parameters", "values"), CASES, ids=NAMES)
def test_as_torch_has_it(name: str, parameters: dict[str, Any], values: Any) -> None:
    answers = [described(of, name, parameters, values) for of in (torch, door)]
    expected, found = answers
    assert found.keys() == expected.keys()
    if name == "Kumaraswamy":
        del expected["mode"]  # which torch computes as NaN everywhere
    for member, each in expected.items():
        same(member, found[member], each)


DIVERGENCES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Normal", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": 0.5, "scale": 0.7}),
    ("Laplace", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": 0.5, "scale": 0.7}),
    ("Cauchy", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": 0.5, "scale": 0.7}),
    ("Gumbel", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": 0.5, "scale": 1.7}),
    ("LogNormal", {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": 0.5, "scale": 0.7}),
    ("HalfNormal", {"scale": [1.0, 2.0]}, {"scale": 0.7}),
    ("Exponential", {"rate": [1.0, 2.0]}, {"rate": 0.7}),
    ("Uniform", {"low": [0.0, 1.0], "high": [2.0, 4.0]}, {"low": 0.0, "high": 3.0}),
    ("Pareto", {"scale": [1.0, 2.0], "alpha": [1.5, 2.5]}, {"scale": 1.5, "alpha": 2.0}),
    ("Gamma", {"concentration": [1.0, 2.0], "rate": [1.5, 0.5]}, {"concentration": 0.7, "rate": 2.0}),
    (
        "Beta",
        {"concentration1": [1.0, 2.0], "concentration0": [1.5, 0.5]},
        {"concentration1": 0.7, "concentration0": 2.0},
    ),
    ("Dirichlet", {"concentration": BATCH}, {"concentration": [0.5, 1.0, 2.0]}),
    ("Bernoulli", {"probs": [0.2, 1.0]}, {"probs": [0.7, 0.4]}),
    ("Binomial", {"total_count": 5, "probs": [0.2, 0.6]}, {"total_count": 5, "probs": [0.7, 0.4]}),
    ("ContinuousBernoulli", {"probs": [0.2, 0.6]}, {"probs": [0.7, 0.4]}),
    ("Geometric", {"probs": [0.2, 0.6]}, {"probs": [0.7, 0.4]}),
    ("Poisson", {"rate": [1.0, 2.0]}, {"rate": 0.7}),
    ("Categorical", {"probs": CHANCES}, {"probs": [0.3, 0.3, 0.4]}),
    ("OneHotCategorical", {"logits": BATCH}, {"probs": [0.3, 0.3, 0.4]}),
    (
        "MultivariateNormal",
        {"loc": [0.1, 0.2], "covariance_matrix": MATRIX},
        {"loc": [1.0, 0.0], "scale_tril": [[1.0, 0.0], [0.5, 2.0]]},
    ),
]


@pytest.mark.parametrize(("name", "first", "second"), DIVERGENCES, ids=[name for name, _, _ in DIVERGENCES])
def test_divergences(name: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    answers = []
    for of in (torch, door):
        p, given = made(of, name, first)
        q, _ = made(of, name, second)
        found = of.distributions.kl_divergence(p, q)
        (found[~of.isinf(found)]).sum().backward()
        answers.append([found.detach().numpy(), *(each.grad.numpy() for each in given)])
    for found, expected in zip(*reversed(answers), strict=True):
        same(name, found, expected)


def transforms(of: Any) -> dict[str, tuple[Any, list[Any]]]:
    t = of.distributions.transforms
    line, square = [-1.5, 0.3, 2.0], [[0.5, 0.0], [1.0, -0.5]]
    return {
        "exp": (t.ExpTransform(), line),
        "power": (t.PowerTransform(2.0), [0.5, 1.0, 2.0]),
        "sigmoid": (t.SigmoidTransform(), line),
        "tanh": (t.TanhTransform(), line),
        "softplus": (t.SoftplusTransform(), line),
        "affine": (t.AffineTransform(1.0, -2.0), line),
        "affine of vectors": (t.AffineTransform(1.0, of.tensor([2.0, 3.0, 4.0]), event_dim=1), line),
        "stick": (t.StickBreakingTransform(), line),
        "composed": (
            t.ComposeTransform([t.TanhTransform(), t.AffineTransform(0.0, 3.0), t.ExpTransform()]),
            line,
        ),
        "composed of vectors": (
            t.ComposeTransform([t.AffineTransform(0.0, 3.0), t.StickBreakingTransform()]),
            line,
        ),
        "independent": (t.IndependentTransform(t.ExpTransform(), 1), square),
        "reshape": (t.ReshapeTransform((2, 2), (4,)), square),
        "cat": (t.CatTransform([t.ExpTransform(), t.TanhTransform()], 0, [1, 2]), line),
        "stack": (t.StackTransform([t.ExpTransform(), t.TanhTransform(), t.SigmoidTransform()]), line),
        "inverse": (t.SigmoidTransform().inv, [0.1, 0.5, 0.9]),
        "of normals": (t.CumulativeDistributionTransform(of.distributions.Normal(0.0, 1.0)), line),
    }


@pytest.mark.parametrize("name", transforms(torch))
def test_transforms(name: str) -> None:
    answers = []
    for of in (torch, door):
        transform, values = transforms(of)[name]
        x = of.tensor(values)
        y = transform(x)
        jacobian = transform.log_abs_det_jacobian(x, y)
        answers.append(
            [y.numpy(), jacobian.numpy(), transform.inv(y).numpy(), tuple(transform.forward_shape(x.shape))]
        )
    for found, expected in zip(*reversed(answers), strict=True):
        same(name, found, expected)


def test_compound_distributions() -> None:
    answers = []
    for of in (torch, door):
        d = of.distributions
        loc = of.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
        independent = d.Independent(d.Normal(loc, 1.0), 1)
        mixture = d.MixtureSameFamily(d.Categorical(of.tensor([0.3, 0.7])), independent)
        numbers = d.MixtureSameFamily(d.Categorical(of.tensor(CHANCES)), d.Normal(loc, 0.5))
        squashed = d.TransformedDistribution(
            d.Normal(loc, 1.0), [d.TanhTransform(), d.AffineTransform(1.0, 2.0)]
        )
        value = of.tensor([0.5, 1.0, 2.5])
        rows = [
            *(independent.log_prob(value), independent.entropy(), independent.mean),
            *(mixture.log_prob(value), mixture.mean, mixture.variance),
            *(numbers.log_prob(value[:2]), numbers.cdf(value[:2]), numbers.mean, numbers.variance),
            *(
                squashed.log_prob(value),
                squashed.cdf(value),
                d.kl_divergence(independent, d.Independent(d.Normal(loc * 2, 3.0), 1)),
            ),
        ]
        sum(each.sum() for each in rows).backward()
        shapes = [
            tuple(each.expand((4, *each.batch_shape)).sample((5,)).shape)
            for each in (independent, mixture, numbers, squashed)
        ]
        answers.append([*(each.detach().numpy() for each in rows), loc.grad.numpy(), shapes])
    for found, expected in zip(*reversed(answers), strict=True):
        same("compound", found, expected)


def test_transforms_to_constraints() -> None:
    for name in (
        "real",
        "positive",
        "unit_interval",
        "simplex",
        "lower_cholesky",
        "greater_than",
        "interval",
        "real_vector",
        "less_than",
    ):
        bounds = {"greater_than": (2.0,), "interval": (-1.0, 4.0), "less_than": (2.0,)}.get(name, ())
        answers = []
        for of in (torch, door):
            d = of.distributions
            constraint = getattr(d.constraints, name)
            constraint = constraint(*bounds) if bounds else constraint
            transform = d.transform_to(constraint)
            y = transform(of.tensor([[0.5, -1.0], [2.0, 0.3]]))
            answers.append([y.numpy(), transform.inv(y).numpy()])
            assert bool(constraint.check(y).all())
        same(name, answers[1][0], answers[0][0])
        same(name, answers[1][1], answers[0][1])


@pytest.mark.parametrize(
    ("name", "parameters", "value"),
    [
        ("Normal", {"loc": 0.0, "scale": -1.0}, None),
        ("Uniform", {"low": 1.0, "high": 0.0}, None),
        ("Categorical", {"probs": [0.5, -0.5]}, None),
        ("Bernoulli", {"probs": [1.5]}, None),
        ("Bernoulli", {}, None),
        ("Beta", {"concentration1": 1.0, "concentration0": 1.0}, [2.0]),
        ("Categorical", {"probs": [0.5, 0.5]}, [2]),
        ("Poisson", {"rate": 1.0}, [0.5]),
        ("Dirichlet", {"concentration": [1.0, 1.0]}, [0.5, 0.6]),
        ("Normal", {"loc": [0.0, 1.0], "scale": 1.0}, [0.0, 1.0, 2.0]),
        ("Normal", {"loc": 0.0, "scale": 1.0}, 1.0),
        ("MultivariateNormal", {"loc": [0.0, 1.0], "covariance_matrix": [[1.0, 2.0], [2.0, 1.0]]}, None),
    ],
)
def test_refusals_are_of_torchs_classes_and_words(name: str, parameters: dict[str, Any], value: Any) -> None:
    messages = []
    for of in (torch, door):
        with pytest.raises(ValueError, match=r".") as caught:
            made(of, name, parameters)[0].log_prob(tensors(of, value))
        messages.append(
            str(caught.value).partition(" of distribution")[0].partition(" of the distribution")[0]
        )
    first, second = (each.replace("Parameter", "Tensor") for each in messages)
    assert first == second


def test_pi_is_pi() -> None:
    assert math.isclose(
        float(door.distributions.Cauchy(0.0, 1.0).log_prob(door.tensor(0.0))),
        -math.log(math.pi),
        rel_tol=1e-6,
    )
