"""com.microsoft's recurrent layer of codes, against onnxruntime's formula written out in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import loaded, model, node

NAMES = "x w r b lengths first cell peepholes ws wz rs rz"
WAYS = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}
OPSETS = {"": 18, "com.microsoft": 1}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def rounded(x: Any, axes: tuple[int, ...] | None = None) -> Any:
    """Numbers as codes less their zero point, and the scale; one range, with 0, for all along `axes`."""
    least, largest = (np.asarray(each(x, axes, keepdims=True)) for each in (np.min, np.max))
    least, largest = np.minimum(least, 0), np.maximum(largest, 0)
    scale = np.where(largest == least, 1, (largest - least) / 255)
    zero = np.rint(-least / scale)
    return np.clip(np.rint(x / scale) + zero, 0, 255) - zero, scale


def of_a_direction(
    given: dict[str, Any], at: int, axes: tuple[int, ...], lengths: Any
) -> tuple[Any, Any, Any]:
    """Outputs (times, samples, size) in the order they are made, and the last states."""
    wide = {name: each if name == "x" else each[at] for name, each in given.items() if name != "lengths"}
    weights = {name: wide[name].astype(np.int64) - wide[name[0] + "z"] for name in "wr"}
    codes, scale = rounded(wide["x"][: max(lengths)])
    of_x = codes @ weights["w"] * (scale * wide["ws"])
    state, cell, holes = wide["first"], wide["cell"], np.split(wide["peepholes"], 3)
    bias, outputs = sum(np.split(wide["b"], 2)), np.zeros((len(wide["x"]), *state.shape))
    for time, x in enumerate(of_x):
        codes, scale = rounded(state, axes)
        parts = np.split(x + codes @ weights["r"] * (scale * wide["rs"]) + bias, 4, axis=-1)
        after = sigmoid(parts[2] + holes[2] * cell) * cell
        after = after + sigmoid(parts[0] + holes[0] * cell) * np.tanh(parts[3])
        shown = sigmoid(parts[1] + holes[1] * after) * np.tanh(after)
        there = (time < lengths)[:, None]
        state, cell = np.where(there, shown, state), np.where(there, after, cell)
        outputs[time] = np.where(there, shown, 0)
    return outputs, state, cell


def turned(x: Any, lengths: Any) -> Any:
    """Each sample's times in the opposite order, as far as they go."""
    found = x.copy()
    for at, length in enumerate(lengths):
        found[:length, at] = x[:length, at][::-1]
    return found


def expected_of(given: dict[str, Any], direction: str, axes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    lengths = given.get("lengths", np.full(given["x"].shape[1], len(given["x"])))
    parts = []
    for at, way in enumerate(WAYS[direction]):
        there = {**given, "x": given["x"] if way > 0 else turned(given["x"], lengths)}
        outputs, *last = of_a_direction(there, at, axes, lengths)
        parts.append([outputs if way > 0 else turned(outputs, lengths), *last])
    y, state, cell = zip(*parts, strict=True)
    return np.stack(y, 1), np.stack(state), np.stack(cell)


def drawn(
    samples: int,
    size: int,
    directions: int,
    type_: str = "int8",
    zero: int = 0,
    *,
    is_per_column: bool = True,
) -> dict[str, Any]:
    """Inputs by name: five times of seven numbers; the second direction's are twice as large."""
    generator, grown = np.random.default_rng(samples + size), np.arange(1, directions + 1)[:, None]
    shape = (directions, 4 * size) if is_per_column else (directions,)
    least = -127 if type_ == "int8" else 0

    def normal(*sides: int) -> Any:
        return generator.standard_normal(sides, np.float32)

    return {
        "x": 2 * normal(5, samples, 7),
        "w": generator.integers(least, least + 255, (directions, 7, 4 * size)).astype(type_),
        "r": generator.integers(least, least + 255, (directions, size, 4 * size)).astype(type_),
        "b": normal(directions, 8 * size) * grown.astype(np.float32),
        "first": np.tanh(normal(directions, samples, size)) * grown[:, None].astype(np.float32),
        "cell": normal(directions, samples, size),
        "peepholes": normal(directions, 3 * size),
        **{name: 0.001 + 0.004 * generator.random(shape, np.float32) for name in ("ws", "rs")},
        **{name: np.full(shape, zero, type_) for name in ("wz", "rz")},
    }


def compared(
    tmp_path: Path, given: dict[str, Any], direction: str = "forward", axes: tuple[int, ...] = (1,)
) -> None:
    free = {name: given[name] for name in ("x", "lengths") if name in given}
    types: dict[str, Any] = {name: (each.dtype.name, list(each.shape)) for name, each in free.items()}
    names = " ".join(name if name in given else "-" for name in NAMES.split())
    options = {"domain": "com.microsoft", "hidden_size": given["r"].shape[1], "direction": direction}
    nodes = [node("DynamicQuantizeLSTM", names, "y last cells", **options)]
    weights = {name: each for name, each in given.items() if name not in free}
    outputs = {"y": None, "last": None, "cells": None}
    found = loaded(tmp_path, model(nodes, types, outputs, weights, opset=OPSETS))(**free)
    for name, wanted in zip(outputs, expected_of(given, direction, axes), strict=True):
        np.testing.assert_allclose(found[name].numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("direction", WAYS)
@pytest.mark.parametrize("samples", [1, 3])
def test_each_direction_and_sample_has_a_range_of_its_own(
    tmp_path: Path, direction: str, samples: int
) -> None:
    compared(tmp_path, drawn(samples, 6, len(WAYS[direction])), direction)


@pytest.mark.parametrize(("type_", "zero"), [("int8", 0), ("int8", 3), ("uint8", 0), ("uint8", 128)])
def test_one_scale_for_a_direction(tmp_path: Path, type_: str, zero: int) -> None:
    compared(tmp_path, drawn(2, 4, 2, type_, zero, is_per_column=False), "bidirectional")


@pytest.mark.parametrize(("samples", "axes"), [(3, (0, 1)), (5, (1,))])
def test_a_few_samples_of_a_wide_state_share_a_range(
    tmp_path: Path, samples: int, axes: tuple[int, ...]
) -> None:
    compared(tmp_path, drawn(samples, 257, 1), axes=axes)


def test_times_after_every_samples_last_have_no_part_in_the_range(tmp_path: Path) -> None:
    given = {**drawn(3, 6, 2), "lengths": np.asarray([2, 4, 1], np.int32)}
    given["x"][4] = 100
    compared(tmp_path, given, "bidirectional")


def test_a_recurrent_layer_of_codes_is_near_that_of_their_numbers(tmp_path: Path) -> None:
    """Inputs and states are rounded to 255 steps: as near as that."""
    size = 4
    generator = np.random.default_rng(9)
    x = generator.standard_normal((6, 2, 5), np.float32)
    weight, hidden = (generator.integers(-90, 90, (1, rows, 4 * size)).astype(np.int8) for rows in (5, size))
    bias = generator.standard_normal((1, 8 * size), np.float32)
    scales = generator.random((1, 4 * size), np.float32) * 0.01
    zero = np.zeros((1, 4 * size), np.int8)
    weights = {"w": weight, "r": hidden, "b": bias, "s": scales, "z": zero}
    nodes = [
        node("DynamicQuantizeLSTM", "x w r b - - - - s z s z", "y", domain="com.microsoft", hidden_size=size)
    ]
    m = loaded(tmp_path, model(nodes, {"x": [6, 2, 5]}, {"y": None}, weights, opset=OPSETS))
    plain = {name: np.swapaxes(each * scales[:, None], 1, 2) for name, each in (("w", weight), ("r", hidden))}
    nodes = [node("LSTM", "x w r b", "y", hidden_size=size)]
    float_weights = {**plain, "b": bias}
    (other := tmp_path / "other").mkdir()
    reference = loaded(other, model(nodes, {"x": [6, 2, 5]}, {"y": None}, float_weights))
    difference = np.abs(m(x)["y"].numpy() - reference(x)["y"].numpy())
    assert 0 < difference.max() < 0.02
    assert isinstance(m(x)["y"], wg.Tensor)
