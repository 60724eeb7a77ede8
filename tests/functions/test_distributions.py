"""Gamma, beta, Dirichlet, Poisson, binomial and exponential draws: distribution, gradients, edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import ArgumentError, DTypeError, ShapeError
from webgrad.functions.random import Generator

stats: Any = pytest.importorskip("scipy.stats")
special: Any = pytest.importorskip("scipy.special")
MANY = 20_000
CONTINUOUS: dict[str, tuple[str, tuple[float, ...], Any]] = {
    "exponential": ("exponential", (2.0,), stats.expon(scale=0.5)),
    "gamma below 1": ("gamma", (0.4,), stats.gamma(0.4)),
    "gamma at 1": ("gamma", (1.0,), stats.gamma(1.0)),
    "gamma": ("gamma", (2.5,), stats.gamma(2.5)),
    "large gamma": ("gamma", (3000.0,), stats.gamma(3000.0)),
    "beta": ("beta", (2.0, 3.5), stats.beta(2.0, 3.5)),
    "steep beta": ("beta", (0.5, 1.5), stats.beta(0.5, 1.5)),
}
COUNTS: dict[str, tuple[str, tuple[float, ...], Any]] = {
    "small poisson": ("poisson", (0.7,), stats.poisson(0.7)),
    "poisson looked up": ("poisson", (9.5,), stats.poisson(9.5)),
    "poisson tried": ("poisson", (10.5,), stats.poisson(10.5)),
    "large poisson": ("poisson", (4000.0,), stats.poisson(4000.0)),
    "binomial looked up": ("binomial", (12, 0.3), stats.binom(12, 0.3)),
    "binomial from above": ("binomial", (12, 0.9), stats.binom(12, 0.9)),
    "binomial tried": ("binomial", (60, 0.4), stats.binom(60, 0.4)),
    "large binomial": ("binomial", (30000, 0.7), stats.binom(30000, 0.7)),
}


def draws(name: str, parameters: tuple[float, ...], **options: Any) -> Any:
    """Many draws, as float64."""
    return getattr(Generator(11), name)(*parameters, MANY, device="cpu", **options).numpy().astype(float)


@pytest.mark.parametrize("case", CONTINUOUS)
def test_numbers_have_their_distribution(case: str) -> None:
    name, parameters, distribution = CONTINUOUS[case]
    assert stats.kstest(draws(name, parameters), distribution.cdf).pvalue > 0.01


@pytest.mark.parametrize("case", COUNTS)
def test_counts_have_their_distribution(case: str) -> None:
    name, parameters, distribution = COUNTS[case]
    found = draws(name, parameters)
    assert (found == np.round(found)).all()
    low, high = distribution.ppf(0.002), distribution.ppf(0.998)
    edges = np.unique(np.round(np.linspace(low, high, 25)))  # the last numbers of cells
    counted = np.histogram(found, [-np.inf, *(edges + 0.5), np.inf])[0]
    expected = np.diff([0, *distribution.cdf(edges), 1])
    enough = expected * MANY > 5
    merged = [np.append(each[enough], each[~enough].sum()) for each in (counted, expected * MANY)]
    first, second = (each if merged[1][-1] > 0 else each[:-1] for each in merged)
    assert stats.chisquare(first, second).pvalue > 0.01


def test_dirichlet() -> None:
    concentration = np.array([[0.3, 1.0, 2.5], [5.0, 5.0, 5.0]])
    found = Generator(3).dirichlet(wg.asarray(concentration, device="cpu"), 4000).numpy()
    assert found.shape == (4000, 2, 3)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-12)
    total = concentration.sum(-1, keepdims=True)
    for at in range(3):
        marginal = stats.beta(concentration[0, at], total[0, 0] - concentration[0, at])
        assert stats.kstest(found[:, 0, at], marginal.cdf).pvalue > 0.01


@pytest.mark.parametrize("concentration", [0.01, 0.3, 0.9, 1.0, 2.0, 7.0, 60.0, 1000.0])
def test_the_gradient_of_a_gamma_number_is_that_of_its_quantile(concentration: float) -> None:
    alpha = wg.full((50,), concentration, dtype=wg.float64, device="cpu").requires_grad_()
    x = Generator(5).gamma(alpha)
    x.sum().backward()
    assert alpha.grad is not None
    numbers, step = x.numpy(), 1e-4 * concentration
    slope = [special.gammainc(concentration + each * step, numbers) for each in (-2, -1, 1, 2)]
    derivative = (slope[0] - 8 * slope[1] + 8 * slope[2] - slope[3]) / (12 * step)
    inner = (numbers > 1e-200) & (numbers > 0)
    expected = (-derivative / stats.gamma(concentration).pdf(numbers))[inner]
    np.testing.assert_allclose(alpha.grad.numpy()[inner], expected, rtol=2e-4)


def test_gradients_of_means_are_right() -> None:
    """The mean of beta(a, b) is a / (a + b)."""
    a, b = (wg.asarray(each, dtype=wg.float64, device="cpu").requires_grad_() for each in (2.0, 3.0))
    Generator(1).beta(a, b, (MANY,)).mean().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert [a.grad.item(), b.grad.item()] == pytest.approx([3 / 25, -2 / 25], abs=0.004)
    rate = wg.asarray(4.0, device="cpu").requires_grad_()
    Generator(1).exponential(rate, (MANY,)).mean().backward()
    assert rate.grad is not None
    assert rate.grad.item() == pytest.approx(-1 / 16, abs=0.002)


def test_edges() -> None:
    generator = Generator(2)
    tiny = generator.gamma(wg.asarray([1e-4, 0.0], device="cpu"))
    assert (tiny.numpy() >= 0).all()
    shares = generator.dirichlet(wg.full((3,), 1e-3, device="cpu"), 20).numpy()
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-6)  # where every gamma number is 0 as a float32
    assert generator.binomial(wg.asarray([0.0, 5.0, 1e6]), 1.0).tolist() == [0, 5, 1e6]
    assert generator.binomial(100, wg.asarray([0.0, 1.0])).tolist() == [0, 100]
    assert np.isnan(generator.poisson(wg.asarray([-1.0])).numpy()).all()
    assert np.isnan(generator.gamma(wg.asarray([-0.5])).numpy()).all()
    assert np.isnan(generator.binomial(4, wg.asarray([1.5, -0.5])).numpy()).all()
    assert generator.gamma(2.0, (0, 3)).shape == (0, 3)
    assert generator.poisson(wg.ones((2, 1)), (4, 2, 3)).shape == (4, 2, 3)
    assert generator.beta(wg.ones((2, 1)), wg.ones(3)).shape == (2, 3)
    assert generator.gamma(wg.asarray([1.0], dtype=wg.float16)).dtype is wg.float16
    assert generator.poisson(3, dtype=wg.float64).dtype is wg.float64


def test_a_seed_repeats_and_captured_draws_are_new() -> None:
    assert Generator(4).gamma(2.0, 5).tolist() == Generator(4).gamma(2.0, 5).tolist()
    generator = Generator(4)
    captured = wg.jit(lambda rate: generator.poisson(rate, (8,)))
    rate = wg.asarray(50.0, device="cpu")
    assert len({tuple(captured(rate).tolist()) for _ in range(4)}) == 4


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    for name, parameters in (
        ("gamma", (2.5,)),
        ("poisson", (20.0,)),
        ("binomial", (60, 0.4)),
        ("poisson", (3.0,)),
    ):
        here = getattr(Generator(9), name)(*parameters, 300, device="cpu").numpy()
        there = getattr(Generator(9), name)(*parameters, 300, device="webgpu:0").numpy()
        assert np.isclose(here, there, rtol=1e-4).mean() > 0.99, name  # floats near a boundary may fall apart


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match=r"random\.gamma: a parameter must be .* not -1"):
        wg.random.gamma(-1.0)
    with pytest.raises(ShapeError, match=r"random\.poisson: the shapes \(3,\) and \(2,\) do not broadcast"):
        wg.random.poisson(wg.ones(3), (2,))
    with pytest.raises(DTypeError, match=r"random\.beta gives floats, not int32"):
        wg.random.beta(1.0, 2.0, dtype=wg.int32)
    with pytest.raises(DTypeError, match="not complex"):
        wg.random.exponential(wg.asarray([1j]))
