"""Pooling as modules: their arguments reach the functions."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import functional as F


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_arguments_reach_the_function(axes: int) -> None:
    x = wg.random.normal((2, 3, *[7] * axes))
    for layer, expected in (
        (f"MaxPool{axes}d", getattr(F, f"max_pool{axes}d")(x, 3, 2, 1, 1, True)),
        (f"AvgPool{axes}d", getattr(F, f"avg_pool{axes}d")(x, 3, 2, 1, True)),
    ):
        pool = getattr(nn, layer)(3, stride=2, padding=1, ceil_mode=True)
        np.testing.assert_array_equal(pool(x).numpy(), expected.numpy())
        assert getattr(nn, layer)(2)(x).shape == (2, 3, *[3] * axes)
    whole = getattr(nn, f"AvgPool{axes}d")(3, 2, 1, count_include_pad=False)
    expected = getattr(F, f"avg_pool{axes}d")(x, 3, 2, 1, False, False)
    np.testing.assert_array_equal(whole(x).numpy(), expected.numpy())
    for kind in ("avg", "max"):
        pool = getattr(nn, f"Adaptive{kind.title()}Pool{axes}d")(3)
        expected = getattr(F, f"adaptive_{kind}_pool{axes}d")(x, 3)
        np.testing.assert_array_equal(pool(x).numpy(), expected.numpy())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling(axes: int) -> None:
    x = wg.random.uniform((2, 3, *[5] * axes))
    largest, places = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True)(x)
    unpool = getattr(nn, f"MaxUnpool{axes}d")(2)
    assert unpool(largest, places).shape == (2, 3, *[4] * axes)
    back = unpool(largest, places, output_size=x.shape).numpy()
    assert back.shape == x.shape
    np.testing.assert_array_equal(back[back > 0], x.numpy()[back > 0])
    assert (back > 0).sum() == largest.size


def test_divisors() -> None:
    x = wg.ones((1, 1, 4, 4))
    assert nn.AvgPool2d(2, divisor_override=8)(x).tolist() == [[[[0.5, 0.5], [0.5, 0.5]]]]
    with pytest.raises(wg.ArgumentError, match="AvgPool1d takes no divisor_override"):
        nn.AvgPool1d(2, divisor_override=8)
    assert repr(nn.AvgPool1d(2)) == (
        "AvgPool1d(kernel_size=2, stride=2, padding=0, ceil_mode=False, count_include_pad=True)"
    )
