"""Draws that a tensor describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place


def test_places_are_drawn_by_their_weights() -> None:
    weights = wg.asarray([2.0, 0.0, 5.0, 3.0], device="cpu")
    generator = wg.random.Generator(5)
    drawn = wg.multinomial(weights, 20_000, replacement=True, generator=generator).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, [0.2, 0, 0.5, 0.3], atol=0.015)
    rows = wg.broadcast_to(weights, (20_000, 4))
    drawn = wg.multinomial(rows, 3, generator=generator).numpy()
    assert (np.sort(drawn, axis=1) == [0, 2, 3]).all()  # each once, and never what has no weight
    np.testing.assert_allclose(np.bincount(drawn[:, 0], minlength=4) / 20_000, [0.2, 0, 0.5, 0.3], atol=0.015)


@everywhere
def test_draws_are_the_same_on_every_device(kind: str) -> None:
    weights = np.array([[1, 2, 3, 0], [0, 0, 1, 0]], np.float32)
    here, there = (
        wg.multinomial(place(each, weights), 5, True, generator=wg.random.Generator(1)).numpy()
        for each in ("cpu", kind)
    )
    np.testing.assert_array_equal(here, there)
    assert (here[0] < 3).all()
    assert (here[1] == 2).all()


def test_like_a_tensor() -> None:
    x = wg.zeros((2, 3), dtype=wg.float16, device="cpu")
    for made in (wg.rand_like(x), wg.randn_like(x), wg.randint_like(x, 4)):
        assert (made.shape, made.dtype, made.device) == (x.shape, x.dtype, x.device)
    assert wg.randn_like(x, wg.float32).dtype is wg.float32
    assert 2 <= wg.randint_like(x, 2, 4, wg.int32).min().item() <= 3


def test_a_seed_repeats() -> None:
    def draw() -> list[Any]:
        wg.manual_seed(3)
        x = wg.ones(3, device="cpu")
        made = wg.randn(2), wg.rand(2), wg.randint(0, 9, (2,)), wg.randperm(5), wg.randn_like(x)
        return [each.tolist() for each in made]

    assert draw() == draw()
    assert wg.randperm(9, generator=wg.random.Generator(2)).tolist() != list(range(9))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wg.multinomial(wg.ones(3), 4), wg.ArgumentError, "cannot draw 4 of 3 places without"),
        (lambda: wg.multinomial(wg.ones(3), 0), wg.ArgumentError, "cannot draw 0 of 3 places"),
        (lambda: wg.multinomial(wg.ones(()), 1), wg.ShapeError, "one or two axes"),
        (lambda: wg.multinomial(wg.ones(3, int), 1), wg.DTypeError, "multinomial"),
        (
            lambda: wg.random.normal(0, 1, 10),
            TypeError,
            r"normal\(shape, mean=…, std=…\), not normal\(0, 1, 10\)",
        ),
        (
            lambda: wg.random.uniform(-1, 1),
            TypeError,
            r"uniform\(shape, low=…, high=…\), not uniform\(-1, 1\)",
        ),
        (lambda: wg.zeros((2, 3), wg.int32, dtype=wg.int32), TypeError, "zeros.* dtype twice"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_numpys_names_of_arguments() -> None:
    one, same = wg.random.Generator(7), wg.random.Generator(7)
    expected = one.normal(5, mean=2.0, std=3.0, device="cpu").tolist()
    numpys: dict[str, Any] = {"loc": 2.0, "scale": 3.0, "size": 5}
    assert same.normal(**numpys, device="cpu").tolist() == expected


def test_sizes_one_by_one() -> None:
    assert wg.zeros(2, 3).shape == wg.ones(2, 3).shape == wg.empty(2, 3).shape == (2, 3)
    assert wg.zeros(2, 3, dtype=wg.int32).dtype is wg.zeros((2, 3), wg.int32).dtype is wg.int32
    assert wg.ones(2, np.int32).dtype is wg.ones(2, int).dtype is wg.int32
    assert wg.zeros(shape=(2,)).shape == (2,)
