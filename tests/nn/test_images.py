"""Upsampling, pixels and channels, padding, windows: modules and the functions of nn/spatial.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import functional as F

NUMPYS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def values(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("mode", NUMPYS)
@pytest.mark.parametrize(
    ("shape", "widths"),
    [((5,), (2, 1)), ((2, 5), (0, 3)), ((2, 4, 5), (1, 2, 3, 0)), ((1, 2, 3, 4), (1, 2, 2, 1, 0, 1))],
)
def test_pad(mode: Any, shape: tuple[int, ...], widths: tuple[int, ...]) -> None:
    x = values(*shape)
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2)
    pairs += [(widths[at], widths[at + 1]) for at in range(len(widths) - 2, -1, -2)]
    expected = np.pad(x, pairs, mode=NUMPYS[mode])  # type: ignore[call-overload]
    np.testing.assert_array_equal(F.pad(wg.asarray(x), widths, mode).numpy(), expected)


def test_pad_cuts_by_negative_widths() -> None:
    x = values(4, 6)
    found = F.pad(wg.asarray(x), (-1, 2, 1, -2), value=7.0).numpy()
    np.testing.assert_array_equal(found, np.pad(x[:2, 1:], ((1, 0), (0, 2)), constant_values=7))
    assert F.pad(wg.asarray([1, 2]), (1, 1), value=5).tolist() == [5, 1, 2, 5]


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("ZeroPad", "constant"),
        ("ReflectionPad", "reflect"),
        ("ReplicationPad", "replicate"),
        ("CircularPad", "circular"),
    ],
)
def test_paddings_as_modules(name: str, mode: str, axes: int) -> None:
    x = wg.asarray(values(2, 3, *[4] * axes))
    widths = tuple([1, 2] * axes)
    layer = getattr(nn, f"{name}{axes}d")(widths)
    np.testing.assert_array_equal(layer(x).numpy(), F.pad(x, widths, mode).numpy())
    assert getattr(nn, f"{name}{axes}d")(1)(x[0]).shape == (3, *[6] * axes)
    constant = getattr(nn, f"ConstantPad{axes}d")(1, 2.5)
    assert constant(x)[0, 0].numpy().flat[0] == 2.5
    assert repr(constant) == f"ConstantPad{axes}d(padding={(1, 1) * axes}, value=2.5)"
    with pytest.raises(wg.ArgumentError, match=r"one width, or \(before, after\)"):
        getattr(nn, f"{name}{axes}d")((1, 2, 3))
    with pytest.raises(wg.ShapeError, match=rf"takes x \(N, C, …\) of {axes + 2} axes"):
        layer(wg.zeros(3))


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_pixels_and_channels(batch: tuple[int, ...]) -> None:
    x = values(*batch, 8, 3, 5)
    rows = x.reshape(*batch, 2, 2, 2, 3, 5)
    expected = np.moveaxis(rows, (-4, -3), (-3, -1)).reshape(*batch, 2, 6, 10)
    found = F.pixel_shuffle(wg.asarray(x), 2)
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(F.pixel_unshuffle(found, 2).numpy(), x)
    np.testing.assert_array_equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(wg.asarray(x))).numpy(), x)


def test_channel_shuffle() -> None:
    x = values(2, 6, 3)
    expected = x[:, [0, 3, 1, 4, 2, 5]]
    np.testing.assert_array_equal(nn.ChannelShuffle(2)(wg.asarray(x)).numpy(), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_local_response_norm(size: int) -> None:
    x = values(2, 6, 4)
    total = np.zeros_like(x)
    for channel in range(6):
        around = range(max(channel - size // 2, 0), min(channel + (size - 1) // 2, 5) + 1)
        total[:, channel] = sum((x[:, each] ** 2 for each in around), start=np.zeros_like(x[:, 0]))
    expected = x / (2 + 0.5 * total / size) ** 0.6
    found = nn.LocalResponseNorm(size, 0.5, 0.6, 2.0)(wg.asarray(x))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    half = F.local_response_norm(wg.asarray(x, wg.float16), size)
    assert half.dtype is wg.float16


def test_upsample() -> None:
    x = wg.asarray(values(1, 2, 3, 4))
    for layer, expected in (
        (nn.Upsample(scale_factor=2), wg.interpolate(x, scale_factor=2)),
        (nn.Upsample((5, 5), mode="bilinear"), wg.interpolate(x, (5, 5), mode="bilinear")),
        (nn.UpsamplingNearest2d(5), wg.interpolate(x, 5)),
        (nn.UpsamplingBilinear2d(5), wg.interpolate(x, 5, mode="bilinear", align_corners=True)),
    ):
        np.testing.assert_array_equal(layer(x).numpy(), expected.numpy())
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2, mode='nearest')"


def test_windows() -> None:
    x = wg.asarray(values(1, 2, 4, 5))
    columns = nn.Unfold(2, padding=1)(x)
    np.testing.assert_array_equal(columns.numpy(), wg.unfold(x, 2, padding=1).numpy())
    np.testing.assert_allclose(nn.Fold((4, 5), 2, padding=1)(columns).numpy(), 4 * x.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.pad(wg.zeros(3), (1, 2, 3)), wg.ShapeError, r"pairs \(before, after\).*not \(1, 2, 3\)"),
        (lambda: F.pad(wg.zeros(3), (1, 1, 1, 1)), wg.ShapeError, "at most 1 of them"),
        (lambda: F.pad(wg.zeros(3), (1, 1), "mirror"), wg.ArgumentError, "mode must be one of 'constant'"),
        (
            lambda: F.pad(wg.zeros(3), (3, 0), "reflect"),
            wg.ShapeError,
            r"padded by \(3, 0\), and at most by 2",
        ),
        (
            lambda: F.pad(wg.zeros(3), (0, 4), "circular"),
            wg.ShapeError,
            r"padded by \(0, 4\), and at most by 3",
        ),
        (
            lambda: F.pixel_shuffle(wg.zeros((6, 2, 2)), 2),
            wg.ShapeError,
            r"6 channels .* not a multiple of 2² = 4",
        ),
        (lambda: F.pixel_unshuffle(wg.zeros((1, 3, 4)), 2), wg.ShapeError, "do not make squares of 2 by 2"),
        (lambda: F.pixel_shuffle(wg.zeros((2, 2)), 2), wg.ShapeError, r"takes x \(…, C, H, W\)"),
        (lambda: F.pixel_shuffle(wg.zeros((4, 2, 2)), 0), wg.ArgumentError, "the factor is 1 or more, not 0"),
        (lambda: F.channel_shuffle(wg.zeros((1, 5, 2)), 2), wg.ShapeError, "do not make 2 groups"),
        (
            lambda: F.local_response_norm(wg.zeros((1, 5)), 2),
            wg.ShapeError,
            r"takes x \(N, C, …\) and a size",
        ),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
