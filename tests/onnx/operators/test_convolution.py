"""Convolutions against windows taken apart with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.operators.single import run, run_one
from tests.onnx.operators.windowed import convolved, spread
from webgrad.onnx.operators import find

GENERATOR = np.random.default_rng(5)
SIZES = (7, 6, 5)


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("step", "apart", "pads"), [(1, 1, (0, 0)), (2, 1, (1, 1)), (1, 2, (2, 1)), (3, 1, (0, 2))]
)
def test_conv(axes: int, groups: int, step: int, apart: int, pads: tuple[int, int]) -> None:
    x, weight, bias = drawn(2, 4, *SIZES[:axes]), drawn(6, 4 // groups, *(3, 2, 2)[:axes]), drawn(6)
    how = {"strides": [step] * axes, "dilations": [apart] * axes, "group": groups}
    found = run_one("Conv", x, weight, bias, pads=[pads[0]] * axes + [pads[1]] * axes, **how)
    expected = convolved(
        x, weight, [step] * axes, [apart] * axes, [pads[0]] * axes, found.shape[2:], groups
    ) + bias.reshape(-1, *[1] * axes)
    counts = [
        (size + sum(pads) - (each - 1) * apart - 1) // step + 1
        for size, each in zip(x.shape[2:], weight.shape[2:], strict=True)
    ]
    assert list(found.shape[2:]) == counts
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("auto_pad", "before"), [("SAME_UPPER", (1, 0)), ("SAME_LOWER", (1, 1)), ("VALID", (0, 0))]
)
def test_auto_pad(auto_pad: str, before: tuple[int, int]) -> None:
    x, weight = drawn(1, 1, 7, 6), drawn(1, 1, 3, 2)
    found = run_one("Conv", x, weight, auto_pad=auto_pad)
    counts = (5, 5) if auto_pad == "VALID" else (7, 6)
    assert found.shape == (1, 1, *counts)
    np.testing.assert_allclose(found, convolved(x, weight, (1, 1), (1, 1), before, counts), 1e-4, 1e-5)


def test_a_bias_and_an_activation_are_part_of_the_convolution() -> None:
    conv = find("", "Conv", 22)
    assert conv is not None
    x, weight, bias = (wg.asarray(each) for each in (drawn(1, 8, 12, 12), drawn(8, 8, 3, 3), drawn(8)))
    even = wg.relu(conv.function(x, weight, bias, pads=[1, 1, 1, 1]))
    assert len(wg.explain(even).kernels) == 1
    odd = wg.relu(conv.function(x, weight, bias, pads=[0, 1, 1, 0]))
    assert len(wg.explain(odd).kernels) == 1


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    ("step", "apart", "pads", "more"),
    [(1, 1, (0, 0), 0), (2, 1, (1, 1), 1), (2, 2, (2, 0), 0), (3, 1, (0, 2), 1), (1, 1, (1, 2), 0)],
)
def test_conv_transpose(axes: int, step: int, apart: int, pads: tuple[int, int], more: int) -> None:
    x, weight, bias = drawn(2, 4, *SIZES[:axes]), drawn(4, 3, *(3, 2, 2)[:axes]), drawn(6)
    how = {"strides": [step] * axes, "dilations": [apart] * axes, "output_padding": [more] * axes}
    widths = [pads[0]] * axes + [pads[1]] * axes
    found = run_one("ConvTranspose", x, weight, bias, group=2, pads=widths, **how)
    sizes = [
        (size - 1) * step + (each - 1) * apart + 1 - sum(pads) + more
        for size, each in zip(x.shape[2:], weight.shape[2:], strict=True)
    ]
    expected = spread(x, weight, [step] * axes, [apart] * axes, [pads[0]] * axes, sizes, 2)
    np.testing.assert_allclose(found, expected + bias.reshape(-1, *[1] * axes), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("auto_pad", "size", "before"),
    [
        ("NOTSET", 8, 1),
        ("SAME_UPPER", 8, 0),
        ("SAME_LOWER", 8, 1),
        ("SAME_UPPER", None, 0),
        ("NOTSET", 11, 0),  # larger than what is filled
        ("SAME_UPPER", 11, 0),
    ],
)
def test_conv_transpose_of_a_size(auto_pad: str, size: int | None, before: int) -> None:
    x, weight = drawn(1, 2, 4), drawn(2, 1, 3)
    settings = {} if size is None else {"output_shape": [size]}
    found = run_one("ConvTranspose", x, weight, strides=[2], auto_pad=auto_pad, **settings)
    expected = spread(x, weight, (2,), (1,), (before,), (size or 8,))
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


def sampled(plane: Any, y: float, x: float) -> float:
    """A plane between its elements, zeros outside."""
    total = 0.0
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
                total += (1 - abs(y - row)) * (1 - abs(x - column)) * plane[row, column]
    return total


@pytest.mark.parametrize("groups", [1, 2])
def test_deform_conv(groups: int) -> None:
    x, weight, bias = drawn(1, 2, 4, 5), drawn(2, 2 // groups, 2, 2), drawn(2)
    offset, mask = drawn(1, groups * 8, 3, 4) * 2, drawn(1, groups * 4, 3, 4)
    settings = {"group": groups, "offset_group": groups, "kernel_shape": [2, 2]}
    found = run_one("DeformConv", x, weight, offset, bias, mask, **settings)
    moved, kept = offset.reshape(groups, 4, 2, 3, 4), mask.reshape(groups, 4, 3, 4)
    for out, row, column in np.ndindex(2, 3, 4):
        total = float(bias[out])
        for channel, tap in np.ndindex(weight.shape[1], 4):
            source = channel if groups == 1 else out
            part = source if groups == 2 else 0
            dy, dx = moved[part, tap, :, row, column]
            value = sampled(x[0, source], row + tap // 2 + dy, column + tap % 2 + dx)
            total += value * kept[part, tap, row, column] * weight[out, channel, tap // 2, tap % 2]
        assert found[0, out, row, column] == pytest.approx(total, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("activation", ["none", "silu"])
def test_causal_conv_in_steps_is_that_of_the_whole(activation: str) -> None:
    x, weight, bias = drawn(2, 3, 6), drawn(3, 1, 4), drawn(3)
    settings: dict[str, Any] = {"outputs": 2, "opset": 27, "activation": activation}
    whole, end = run("CausalConvWithState", x, weight, bias, **settings)
    expected = convolved(x, weight, (1,), (1,), (3,), (6,), 3) + bias[:, None]
    expected = expected / (1 + np.exp(-expected)) if activation == "silu" else expected
    np.testing.assert_allclose(whole, expected, 1e-4, 1e-5)
    first, state = run("CausalConvWithState", x[..., :2], weight, bias, **settings)
    second, last = run("CausalConvWithState", x[..., 2:], weight, bias, state, **settings)
    np.testing.assert_allclose(np.concatenate([first, second], -1), whole, 1e-5, 1e-6)
    np.testing.assert_array_equal(last, end)
    np.testing.assert_array_equal(end, x[..., 3:])


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(wg.ModelFileError, match="kernel_shape"):
        run_one("Conv", drawn(1, 1, 4), drawn(1, 1, 3), kernel_shape=[2])
    with pytest.raises(wg.ModelFileError, match="strides"):
        run_one("Conv", drawn(1, 1, 4, 4), drawn(1, 1, 3, 3), strides=[2])
    with pytest.raises(wg.ModelFileError, match="auto_pad"):
        run_one("Conv", drawn(1, 1, 4), drawn(1, 1, 3), auto_pad="SAME")
    with pytest.raises(wg.ShapeError, match="one to three axes"):
        run_one("Conv", drawn(1, 1, 4, 4, 4, 4), drawn(1, 1, 3, 3, 3, 3))
