"""Resizing, written out with NumPy one new element at a time; and where it is movement alone."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats
from tests.onnx.operators.single import run_one
from webgrad.onnx.operators import find

GENERATOR = np.random.default_rng(11)
X = GENERATOR.standard_normal((1, 2, 5, 6), np.float32)

PLACES: dict[str, Any] = {
    "half_pixel": lambda i, size, new, scale: (i + 0.5) / scale - 0.5,
    "asymmetric": lambda i, size, new, scale: i / scale,
    "align_corners": lambda i, size, new, scale: i * (size - 1) / max(new - 1, 1),
    "pytorch_half_pixel": lambda i, size, new, scale: (i + 0.5) / scale - 0.5 if new > 1 else 0.0,
}
ROUNDED: dict[str, Any] = {
    "round_prefer_floor": lambda x: math.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


def keys(distance: float, a: float) -> float:
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a if distance < 2 else 0.0


def matrix(size: int, new: int, places: Any, mode: str, how: Any, exclude: bool = False) -> Any:
    """What each new element of an axis is made of."""
    found = np.zeros((new, size))
    for i in range(new):
        place = places(i, size, new, new / size)
        if mode == "nearest":
            found[i, min(max(ROUNDED[how](place), 0), size - 1)] = 1
            continue
        reach = 1 if mode == "linear" else 2
        for at in range(math.floor(place) - reach + 1, math.floor(place) + reach + 1):
            distance = abs(at - place)
            weight = max(0.0, 1 - distance) if mode == "linear" else keys(distance, how)
            if not exclude or 0 <= at < size:
                found[i, min(max(at, 0), size - 1)] += weight
    return found / found.sum(1, keepdims=True) if exclude else found


def resized(x: Any, sizes: tuple[int, int], *how: Any) -> Any:
    rows, columns = (matrix(old, new, *how) for old, new in zip(x.shape[2:], sizes, strict=True))
    return rows @ x.astype(np.float64) @ columns.T


@pytest.mark.parametrize(
    ("coordinates", "rounding", "sizes"),
    list(itertools.product(PLACES, ROUNDED, [(3, 4), (7, 9)])),
)
def test_nearest(coordinates: str, rounding: str, sizes: tuple[int, int]) -> None:
    settings = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    found = run_one("Resize", X, None, None, np.array([1, 2, *sizes]), **settings)
    np.testing.assert_array_equal(found, resized(X, sizes, PLACES[coordinates], "nearest", rounding))


@pytest.mark.parametrize(
    ("coordinates", "mode", "sizes"),
    list(itertools.product(PLACES, ["linear", "cubic"], [(3, 1), (7, 12)])),
)
def test_linear_and_cubic(coordinates: str, mode: str, sizes: tuple[int, int]) -> None:
    settings = {"coordinate_transformation_mode": coordinates, "mode": mode}
    found = run_one("Resize", X, None, None, np.array([1, 2, *sizes]), **settings)
    np.testing.assert_allclose(found, resized(X, sizes, PLACES[coordinates], mode, -0.75), 1e-4, 1e-5)


def test_cubic_without_what_is_outside() -> None:
    settings: dict[str, Any] = {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}
    found = run_one("Resize", X, None, None, np.array([1, 2, 8, 4]), **settings)
    expected = resized(X, (8, 4), PLACES["half_pixel"], "cubic", -0.5, True)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialiasing_keeps_what_is_the_same_everywhere_and_means(mode: str) -> None:
    even = np.full((1, 1, 9, 8), 3, np.float32)
    found = run_one("Resize", even, None, floats(1, 1, 0.4, 0.3), mode=mode, antialias=1)
    np.testing.assert_allclose(found, np.full((1, 1, 3, 2), 3), 1e-6)
    line = np.arange(64, dtype=np.float32).reshape(1, 1, 1, 64)
    found = run_one("Resize", line, None, floats(1, 1, 1, 0.25), mode=mode, antialias=1)
    np.testing.assert_allclose(found[0, 0, 0, 4:-4], np.arange(16)[4:-4] * 4 + 1.5, 1e-3)
    with pytest.raises(wg.ModelFileError, match="antialias"):
        run_one("Resize", X, None, floats(1, 1, 0.5, 0.5), antialias=1)


def test_sizes_from_scales_and_policies() -> None:
    ten = np.zeros((1, 1, 10, 10), np.float32)
    assert run_one("Resize", ten, None, floats(1, 1, 0.7, 1.5)).shape == (1, 1, 7, 15)
    shapes = {"stretch": (7, 5), "not_larger": (5, 5), "not_smaller": (7, 7)}
    for policy, shape in shapes.items():
        settings = {"keep_aspect_ratio_policy": policy, "axes": [2, 3]}
        assert run_one("Resize", ten, None, None, np.array([7, 5]), **settings).shape == (1, 1, *shape)
    assert run_one("Resize", X, None, None, np.array([3, 4]), axes=[-1, 2]).shape == (1, 2, 4, 3)


def test_a_crop_with_what_is_outside() -> None:
    line = floats(*range(5)).reshape(1, 5)
    roi = floats(0, 0.5, 1, 1.5)
    settings = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "mode": "linear",
        "extrapolation_value": -1.0,
    }
    found = run_one("Resize", line, roi, None, np.array([1, 5]), **settings)
    assert found.tolist() == [[2, 3, 4, -1, -1]]


def test_bytes_are_rounded_and_stay_within_their_type() -> None:
    x = np.array([[[[0, 255, 0, 255]]]], np.uint8)
    found = run_one("Resize", x, None, None, np.array([1, 1, 1, 7]), mode="cubic")
    wide = run_one("Resize", x.astype(np.float32), None, None, np.array([1, 1, 1, 7]), mode="cubic")
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, np.clip(np.round(wide), 0, 255))


@pytest.mark.parametrize("opset", [1, 7, 9, 10])
def test_upsample_and_the_first_resize(opset: int) -> None:
    expected = X.repeat(2, 2).repeat(3, 3)
    if opset == 1:
        found = run_one("Upsample", X, opset=1, height_scale=2.0, width_scale=3.0)
    elif opset == 7:
        found = run_one("Upsample", X, opset=7, scales=[1.0, 1.0, 2.0, 3.0])
    else:
        found = run_one("Upsample" if opset == 9 else "Resize", X, floats(1, 1, 2, 3), opset=opset)
    np.testing.assert_array_equal(found, expected)


def test_whole_factors_are_movement_that_fuses() -> None:
    resize = find("", "Resize", 19)
    assert resize is not None
    x = wg.asarray(X)
    y = wg.relu(resize.function(wg.exp(x), None, floats(1, 1, 2, 3), nearest_mode="floor"))
    assert len(wg.explain(y).kernels) == 1


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(wg.ModelFileError, match="'area'"):
        run_one("Resize", X, None, floats(1, 1, 2, 2), mode="area")
    with pytest.raises(wg.ModelFileError, match="scales or sizes"):
        run_one("Resize", X)
