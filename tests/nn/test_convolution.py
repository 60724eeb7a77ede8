"""Convolutions as modules: their arguments reach the functions, padding modes, output sizes, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import functional as F

SIDES = {1: (9,), 2: (7, 8), 3: (4, 5, 4)}


def image(axes: int, channels: int = 4) -> wg.Tensor:
    return wg.random.normal((2, channels, *SIDES[axes]))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_arguments_reach_the_function(axes: int) -> None:
    layer = getattr(nn, f"Conv{axes}d")(4, 6, 3, stride=2, padding=1, dilation=1, groups=2, bias=False)
    x = image(axes)
    expected = getattr(F, f"conv{axes}d")(x, layer.weight, None, 2, 1, 1, 2)
    np.testing.assert_array_equal(layer(x).numpy(), expected.numpy())
    assert layer.weight.shape == (6, 2, *[3] * axes)
    turned = getattr(nn, f"ConvTranspose{axes}d")(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
    expected = getattr(F, f"conv_transpose{axes}d")(x, turned.weight, turned.bias, 2, 1, 1, 2, 1)
    np.testing.assert_array_equal(turned(x).numpy(), expected.numpy())
    assert turned.weight.shape == (4, 3, *[3] * axes)
    assert turned(x[0]).shape == expected.shape[1:]


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    ("mode", "ours"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_padding_modes(axes: int, mode: str, ours: Any) -> None:
    layer = getattr(nn, f"Conv{axes}d")(4, 3, 3, padding=tuple(range(1, axes + 1)), padding_mode=mode)
    x = image(axes)
    widths = [(0, 0), (0, 0), *((each, each) for each in range(1, axes + 1))]
    padded = wg.asarray(np.pad(x.numpy(), widths, mode=ours))
    expected = getattr(F, f"conv{axes}d")(padded, layer.weight, layer.bias)
    np.testing.assert_allclose(layer(x).numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_same_keeps_the_sizes(mode: str) -> None:
    layer = nn.Conv2d(4, 3, (2, 5), padding="same", dilation=(3, 1), padding_mode=mode)
    assert layer(image(2)).shape == (2, 3, 7, 8)
    assert nn.Conv2d(4, 3, 3, padding="valid", padding_mode=mode)(image(2)).shape == (2, 3, 5, 6)


def test_output_sizes_of_transposed_ones() -> None:
    layer = nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)
    x = image(2)
    assert layer(x).shape == (2, 2, 13, 15)
    assert layer(x, output_size=(14, 15)).shape == (2, 2, 14, 15)
    assert layer(x, output_size=(2, 2, 13, 16)).shape == (2, 2, 13, 16)
    with pytest.raises(wg.ShapeError, match=r"output_size \(20, 15\) must be from \(13, 15\) to \(14, 16\)"):
        layer(x, output_size=(20, 15))


def test_text() -> None:
    assert repr(nn.Conv2d(3, 8, 3)) == "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))"
    assert repr(nn.Conv1d(4, 8, 3, padding="same", groups=2, bias=False, padding_mode="reflect")) == (
        "Conv1d(4, 8, kernel_size=(3,), stride=(1,), padding='same', groups=2, padding_mode='reflect', "
        "bias=False)"
    )
    assert "output_padding=(1, 1)" in repr(nn.ConvTranspose2d(3, 8, 3, stride=2, output_padding=1))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.Conv2d(3, 8, 0),
            wg.ArgumentError,
            "kernel_size must be an integer from 1 on, or 2 of them",
        ),
        (lambda: nn.Conv2d(3, 8, (3, 3, 3)), wg.ArgumentError, r"or 2 of them, not \(3, 3, 3\)"),
        (lambda: nn.Conv2d(3, 8, 3, groups=2), wg.ArgumentError, "must be multiples of groups, which is 2"),
        (
            lambda: nn.Conv2d(3, 8, 3, padding="full"),
            wg.ArgumentError,
            "widths, 'same' or 'valid', not 'full'",
        ),
        (lambda: nn.Conv2d(3, 8, 3, 2, padding="same"), wg.ArgumentError, "needs a stride of 1, not"),
        (
            lambda: nn.Conv2d(3, 8, 3, padding_mode="none"),
            wg.ArgumentError,
            "padding_mode must be one of 'zeros'",
        ),
        (
            lambda: nn.Conv2d(3, 8, 3)(image(2)),
            wg.ShapeError,
            r"Conv2d\(3, 8.* takes x \(N, 3, H, W\) or \(3, H",
        ),
        (lambda: nn.Conv1d(4, 8, 3)(image(2)), wg.ShapeError, r"takes x \(N, 4, L\) or \(4, L\); this x is"),
        (lambda: nn.Conv1d(4, 8, 3)(None), wg.DTypeError, "takes a tensor, not a NoneType"),
        (lambda: nn.ConvTranspose1d(3, 8, 3, padding="same"), wg.ArgumentError, "padding must be integers"),
        (
            lambda: nn.ConvTranspose1d(3, 8, 3, output_padding=-1),
            wg.ArgumentError,
            "output_padding must be an integer",
        ),
        (lambda: nn.ConvTranspose3d(3, 8, 3)(image(3)), wg.ShapeError, r"x \(N, 3, D, H, W\)"),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
