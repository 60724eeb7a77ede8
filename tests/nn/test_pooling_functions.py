"""Pools by norms and by chance against their definitions; activations with chance in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.nn import functional as F

RANDOM = np.random.default_rng(11)


def test_lp_pools_are_norms_of_windows() -> None:
    x = RANDOM.uniform(0, 1, (2, 3, 4, 6)).astype(np.float32)
    windows = x.reshape(2, 3, 2, 2, 2, 3).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 2, 2, 6)
    found = F.lp_pool2d(wg.asarray(x), 3, (2, 3)).numpy()
    np.testing.assert_allclose(found, (windows**3).sum(-1) ** (1 / 3), rtol=1e-5)
    line = F.lp_pool1d(wg.asarray(x[0, 0]), 1, 2, stride=2).numpy()
    np.testing.assert_allclose(line, x[0, 0].reshape(4, 3, 2).sum(-1), rtol=1e-5)
    cube = F.lp_pool3d(wg.asarray(x), 2, 2).numpy()
    assert cube.shape == (2, 1, 2, 3)


def test_a_window_of_zeros_has_no_slope() -> None:
    x: Any = wg.zeros((1, 4)).requires_grad_()
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert not x.grad.numpy().any()


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_fractional_windows_cover_the_image(device: str) -> None:
    x: Any = wg.asarray(RANDOM.normal(size=(1, 2, 9, 9)).astype(np.float32), device=device).requires_grad_()
    values, places = F.fractional_max_pool2d(x, 3, output_size=(4, 5), return_indices=True)
    flat = x.numpy().reshape(1, 2, -1)
    np.testing.assert_array_equal(
        np.take_along_axis(flat, places.numpy().reshape(1, 2, -1), -1).reshape(1, 2, 4, 5), values.numpy()
    )
    assert values.numpy()[0, 0, -1, -1] == x.numpy()[0, 0, 6:, 6:].max()  # the last window ends at the edge
    values.sum().backward()
    assert x.grad.numpy().sum() == 40


def test_where_fractional_windows_begin() -> None:
    x: Any = wg.asarray(np.arange(49, dtype=np.float32).reshape(1, 7, 7))
    drawn = wg.asarray([[[0.5, 0.0]]])  # of columns, and of rows
    found = F.fractional_max_pool2d(x, 1, output_size=3, random_samples=drawn).numpy()[0]
    columns, rows = [int((i + 0.5) * 3) - int(0.5 * 3) for i in range(2)], [0, 3]
    np.testing.assert_array_equal(found[:2, :2], [[7 * row + column for column in columns] for row in rows])
    assert found[2, 2] == 48


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output_size": 3, "output_ratio": 0.5}, "one of them"),
        ({}, "one of them"),
        ({"output_size": 6}, "do not go into"),
    ],
)
def test_what_does_not_fit_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        F.fractional_max_pool2d(wg.ones((1, 7, 7)), 3, **options)


def test_random_slopes_lie_in_their_range() -> None:
    x: Any = wg.full(200, -1.0).requires_grad_()
    found = F.rrelu(x, 0.25, 0.5, training=True)
    slopes = -found.numpy()
    assert slopes.min() >= 0.25
    assert slopes.max() <= 0.5
    assert len(np.unique(slopes)) > 100
    found.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), slopes, rtol=1e-6)
    assert wg.nn.RReLU(0.25, 0.75).eval()(wg.asarray([-1.0])).tolist() == [-0.5]
    with pytest.raises(wg.ArgumentError, match="from lower to upper"):
        F.rrelu(x, 0.5, 0.25)


def test_gumbel_samples_follow_the_probabilities() -> None:
    wg.random.seed(0)
    logits: Any = wg.asarray(np.log([0.2, 0.5, 0.3]).astype(np.float32)).requires_grad_()
    many = wg.broadcast_to(logits, (4000, 3))
    hard = F.gumbel_softmax(many, hard=True)
    values = hard.numpy()
    assert ((values == 0) | (values == 1)).all()
    assert (values.sum(-1) == 1).all()
    np.testing.assert_allclose(values.mean(0), [0.2, 0.5, 0.3], atol=0.04)
    (hard * wg.asarray([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.numpy().any()
    soft = F.gumbel_softmax(many, tau=0.5).numpy()
    np.testing.assert_allclose(soft.sum(-1), 1.0, rtol=1e-5)
    with pytest.raises(wg.ArgumentError, match="tau is a positive number"):
        F.gumbel_softmax(many, tau=0)
