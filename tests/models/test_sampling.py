"""Choices against NumPy's probabilities, over many draws at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.models.sampling import Sampling, choose

Array = np.ndarray[Any, Any]
DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
LOGITS = np.array([2.0, 1.5, 1.5, 0.3, -0.5, -1.0, -4.0, 0.9], np.float32)
DRAWS = 600


def drawn(device: str, sampling: Sampling, seen: Array | None = None, draws: int = DRAWS) -> Array:
    """How often each token is chosen, of all draws."""
    logits = wg.asarray(LOGITS, device=device)
    marks = wg.asarray(np.zeros(8, np.float32) if seen is None else seen, device=device)
    generator = wg.random.Generator(3)

    @wg.jit(static="kind")
    def step(numbers: Any, kind: Any) -> wg.Tensor:
        return choose(logits, kind, numbers, marks, generator)

    chosen = [int(step(sampling.numbers, sampling.kind).item()) for _ in range(draws)]
    return np.bincount(chosen, minlength=8) / draws


def expected(temperature: float = 1.0, top_k: int = 8, top_p: float = 1.0, min_p: float = 0.0) -> Array:
    """The probabilities of the tokens, in float64."""
    powers = np.exp(LOGITS.astype(np.float64) / temperature)
    order = np.argsort(-powers, kind="stable")
    powers[order[top_k:]] = 0
    shares = powers / powers.sum()
    before = np.cumsum(shares[order]) - shares[order]
    shares[order[before >= top_p]] = 0
    shares[shares < min_p * shares.max()] = 0
    right: Array = shares / shares.sum()
    return right


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1.0},
        {"temperature": 0.5},
        {"temperature": 1.0, "top_k": 4},
        {"temperature": 1.0, "top_p": 0.75},
        {"temperature": 1.3, "top_k": 5, "top_p": 0.8, "min_p": 0.2},
        {"temperature": 1.0, "min_p": 0.3},
    ],
)
def test_tokens_come_by_their_probabilities(device: str, options: dict[str, Any]) -> None:
    found, right = drawn(device, Sampling(**options)), expected(**options)
    assert not found[right == 0].any()
    deviation = np.sqrt(right * (1 - right) / DRAWS)
    assert (np.abs(found - right) <= 4.5 * deviation + 1e-12).all(), (found, right)


@pytest.mark.parametrize("device", DEVICES)
def test_greedy_takes_the_first_of_the_likeliest(device: str) -> None:
    assert drawn(device, Sampling(temperature=0), draws=2)[0] == 1


def test_a_token_that_was_seen_is_less_likely() -> None:
    seen = np.array([1, 0, 0, 0, 1, 0, 0, 0], np.float32)
    found = drawn("cpu", Sampling(temperature=0, repetition_penalty=1.5), seen, draws=2)
    assert found[1] == 1  # 2.0 / 1.5 is less than 1.5
    found = drawn("cpu", Sampling(temperature=1.0, repetition_penalty=20.0), seen)
    assert found[4] == 0  # -0.5 · 20


def test_a_seed_gives_the_same_draws() -> None:
    assert (drawn("cpu", Sampling(1.0), draws=50) == drawn("cpu", Sampling(1.0), draws=50)).all()


def test_numbers_may_change_without_a_new_capture() -> None:
    logits, marks, generator = wg.asarray(LOGITS), wg.zeros(8), wg.random.Generator(1)

    def chosen(numbers: Any, kind: Any) -> wg.Tensor:
        return choose(logits, kind, numbers, marks, generator)

    step: Any = wg.jit(chosen, static="kind")
    for top_k in (1, 2, 5):
        sampling = Sampling(0.3 * top_k, top_k=top_k)
        assert step(sampling.numbers, sampling.kind).item() in np.argsort(-LOGITS, kind="stable")[:top_k]
    assert step.captures == 1


def test_numbers_of_numpy() -> None:
    given: Any = {"temperature": np.float32(0.5), "top_k": np.int64(3)}
    assert Sampling(**given).numbers[:2] == (0.5, 3)
    with pytest.raises(wg.ArgumentError, match="temperature is a number"):
        Sampling(np.array([0.5]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temperature": -1.0}, "temperature must be 0 or more, not -1.0"),
        ({"temperature": float("nan")}, "temperature is a number"),
        ({"temperature": "hot"}, "temperature is a number, not 'hot'"),
        ({"top_k": 1.5}, "top_k must be an integer"),
        ({"top_k": -2}, "top_k"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1"),
        ({"top_p": 1.1}, "top_p"),
        ({"min_p": 1.0}, "min_p must be from 0 to below 1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be above 0"),
    ],
)
def test_numbers_that_make_no_sense(options: dict[str, Any], told: str) -> None:
    with pytest.raises(wg.ArgumentError, match=told):
        Sampling(**options)
