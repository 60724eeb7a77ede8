"""Interpolation: PyTorch's own results, a direct formula for every mode and size, dtypes, and mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import nodes_under
from webgrad import dtypes
from webgrad.errors import ArgumentError, DTypeError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.learning.images import interpolate
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]
IMAGE = np.array([[1, 2, 4, 7], [0, 3, -2, 5], [8, 6, 1, -1]], np.float32)[None, None]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


# Made with torch 2.13: to the size (4, 3), or by the factors (1.5, 0.8), which come to the same size.
FROM_TORCH: list[tuple[str, bool | None, bool, list[list[float]]]] = [
    ("nearest", None, False, [[1, 2, 4], [1, 2, 4], [0, 3, -2], [8, 6, 1]]),
    ("nearest", None, True, [[1, 2, 4], [1, 2, 4], [0, 3, -2], [8, 6, 1]]),
    ("nearest-exact", None, False, [[1, 4, 7], [0, -2, 5], [0, -2, 5], [8, 1, -1]]),
    ("nearest-exact", None, True, [[1, 2, 7], [0, 3, 5], [0, 3, 5], [8, 6, -1]]),
    (
        "bilinear",
        False,
        False,
        [[1.166667, 3, 6.5], [0.75, 1.4375, 4.833334], [3.1875, 1.625, 2.145834], [7.666667, 3.5, -0.666667]],
    ),
    (
        "bilinear",
        True,
        False,
        [[1, 3, 7], [0.333333, 1.333333, 5.666667], [2.666667, 1.5, 3], [8, 3.5, -1]],
    ),
    (
        "bilinear",
        False,
        True,
        [[1.125, 2.75, 5.875], [0.75, 1.9375, 4.125], [1.604167, 1.625, 1.9375], [6.520833, 3.625, 0.1875]],
    ),
    (
        "bicubic",
        False,
        False,
        [
            [1.151248, 3.005402, 6.79765],
            [-0.069583, 0.722656, 5.397203],
            [3.076612, 1.045929, 1.915764],
            [8.322482, 3.742249, -1.137718],
        ],
    ),
    (
        "bicubic",
        True,
        False,
        [[1, 2.8125, 7], [-0.574074, 0.596065, 6.296298], [2.407406, 0.888888, 2.888888], [8, 3.5, -1]],
    ),
    (
        "bicubic",
        False,
        True,
        [
            [1.146418, 2.768786, 6.38957],
            [0.023346, 1.56424, 4.357819],
            [1.375477, 1.367296, 1.413506],
            [6.756633, 3.646295, -0.280986],
        ],
    ),
]


@pytest.mark.parametrize(("mode", "align_corners", "by_factor", "expected"), FROM_TORCH)
def test_equal_to_torch(mode: str, align_corners: bool | None, by_factor: bool, expected: Any) -> None:
    target: dict[str, Any] = {"scale_factor": (1.5, 0.8)} if by_factor else {"size": (4, 3)}
    result = interpolate(on_cpu(IMAGE), **target, mode=mode, align_corners=align_corners)
    np.testing.assert_allclose(result.numpy()[0, 0], expected, atol=5e-6)


# A formula of its own: the weight of every input element for every output element, by the kernel's definition


def linear_kernel(distance: float) -> float:
    return max(0.0, 1 - abs(distance))


def cubic_kernel(distance: float, a: float = -0.75) -> float:
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def weights(side: int, wanted: int, cubic: bool, align_corners: bool) -> Array:
    matrix = np.zeros((wanted, side))
    for out in range(wanted):
        if align_corners:
            place = out * (side - 1) / max(wanted - 1, 1)
        else:
            place = (out + 0.5) * side / wanted - 0.5
        for tap in range(math.floor(place) - 1, math.floor(place) + 3):
            share = cubic_kernel(place - tap) if cubic else linear_kernel(place - tap)
            matrix[out, min(max(tap, 0), side - 1)] += share  # beyond the edge the edge itself
    return matrix


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("sides", [(3, 4), (1, 5), (7, 2)])
@pytest.mark.parametrize("size", [(3, 4), (8, 9), (1, 1), (2, 13)])
def test_images(mode: str, align_corners: bool, sides: tuple[int, int], size: tuple[int, int]) -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, *sides)).astype(np.float32)
    down, along = (
        weights(side, wanted, mode == "bicubic", align_corners)
        for side, wanted in zip(sides, size, strict=True)
    )
    expected = np.einsum("yh,nchw,xw->ncyx", down, values.astype(np.float64), along)
    result = interpolate(on_cpu(values), size, mode=mode, align_corners=align_corners)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("align_corners", [False, True])
def test_lines_and_volumes(align_corners: bool) -> None:
    line = np.random.default_rng(1).normal(size=(2, 3, 5)).astype(np.float32)
    along = weights(5, 8, False, align_corners)
    result = interpolate(on_cpu(line), 8, mode="linear", align_corners=align_corners)
    np.testing.assert_allclose(result.numpy(), line @ along.T, rtol=1e-5, atol=1e-5)
    volume = np.random.default_rng(2).normal(size=(1, 2, 3, 4, 5)).astype(np.float32)
    matrices = [
        weights(side, wanted, False, align_corners) for side, wanted in zip((3, 4, 5), (4, 2, 9), strict=True)
    ]
    expected = np.einsum("zd,yh,xw,ncdhw->nczyx", *matrices, volume)
    result = interpolate(on_cpu(volume), (4, 2, 9), mode="trilinear", align_corners=align_corners)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("side", "wanted"), [(10, 3), (3, 10), (7, 14), (5, 5), (1000, 333), (333, 1000)])
def test_nearest(side: int, wanted: int) -> None:
    line = np.arange(side, dtype=np.int32).reshape(1, 1, side)
    found = interpolate(on_cpu(line), wanted)
    assert found.dtype is dtypes.int32
    places = np.arange(wanted) * side // wanted
    assert found.tolist() == [[places.tolist()]]
    exact = interpolate(on_cpu(line), wanted, mode="nearest-exact")
    assert exact.tolist() == [[((2 * np.arange(wanted) + 1) * side // (2 * wanted)).tolist()]]


def test_factors_that_change_no_size() -> None:
    """PyTorch's corner: images stay, lines are resampled by the factor; doubled sizes likewise."""
    line = on_cpu([[[0.0, 1.0, 2.0]]])
    assert interpolate(line, scale_factor=1.3).tolist() == [[[0, 0, 1]]]
    assert interpolate(line, scale_factor=2.3).tolist() == [[[0, 0, 0, 1, 1, 2]]]
    image = on_cpu([[[[0.0, 1.0, 2.0]]]])
    assert interpolate(image, scale_factor=(1, 1.3)).tolist() == [[[[0, 1, 2]]]]
    assert interpolate(image, scale_factor=(1, 2.3)).tolist() == [[[[0, 0, 1, 1, 2, 2]]]]


def test_the_same_size_costs_nothing() -> None:
    x = on_cpu(IMAGE)
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        assert interpolate(x, (3, 4), mode=mode).node is x.node


def test_an_axis_is_one_take_and_one_sum() -> None:
    kinds = [node.sig.kind for node in nodes_under([interpolate(on_cpu(IMAGE), (5, 9), mode="bicubic").node])]
    assert (kinds.count("gather"), kinds.count("map"), kinds.count("reduce")) == (2, 2, 2)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64])
def test_floats_keep_their_dtype(dtype: dtypes.DType) -> None:
    result = interpolate(on_cpu(IMAGE, dtype), (4, 3), mode="bilinear")
    assert result.dtype is dtype
    expected = interpolate(on_cpu(IMAGE), (4, 3), mode="bilinear").numpy()
    np.testing.assert_allclose(result.numpy().astype(np.float32), expected, rtol=2**-8)


def test_special_values() -> None:
    """As PyTorch: a weight of 0 beside an infinity is NaN."""
    values = on_cpu([[[1.0, np.inf, 3.0, np.nan, 5.0, 6.0]]])
    found = interpolate(values, 12, mode="linear").numpy()[0, 0]
    expected = [np.nan, np.inf, np.inf, np.inf, np.inf] + [np.nan] * 4 + [5.25, 5.75, 6.0]
    np.testing.assert_allclose(found, expected)


def test_no_samples() -> None:
    assert interpolate(on_cpu(np.zeros((0, 2, 3, 4), np.float32)), 5, mode="bicubic").shape == (0, 2, 5, 5)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 1, 3, 4), {}, "takes size or scale_factor"),
        ((1, 1, 3, 4), {"size": 2, "scale_factor": 2}, "takes size or scale_factor"),
        ((1, 1, 3, 4), {"size": 2, "mode": "areal"}, "mode must be one of 'nearest', .*, not 'areal'"),
        ((1, 1, 3, 4), {"size": 2, "mode": "linear"}, "mode='linear' takes 3 axes"),
        ((1, 1, 3), {"size": 2, "mode": "bicubic"}, "mode='bicubic' takes 4 axes"),
        ((3, 4), {"size": 2}, "takes 3 or 4 or 5 axes"),
        ((1, 1, 3, 4), {"size": (1, 2, 3)}, "one number for each of its 2 last axes"),
        ((1, 1, 3, 4), {"scale_factor": (1.0,)}, "one number for each of its 2 last axes"),
        ((1, 1, 3, 4), {"scale_factor": (1.0, 2.0, 3.0)}, "one number for each of its 2 last axes"),
        ((1, 1, 3, 4), {"size": (0, 2)}, "every axis of the result needs size 1 or more"),
        ((1, 1, 3, 4), {"scale_factor": 0.1}, "every axis of the result needs size 1 or more"),
        ((1, 1, 3, 4), {"size": 2, "align_corners": True}, "align_corners has no meaning"),
        ((1, 1, 0, 4), {"size": 2}, "nothing to interpolate"),
    ],
)
def test_mistakes(shape: tuple[int, ...], options: Any, message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        interpolate(on_cpu(np.ones(shape, np.float32)), **options)


def test_mistaken_types() -> None:
    with pytest.raises(DTypeError, match=r"interpolate with mode='bilinear' is not offered for uint8"):
        interpolate(on_cpu(np.ones((1, 1, 2, 2), np.uint8)), 4, mode="bilinear")
    with pytest.raises(DTypeError, match="scale_factor is a positive number"):
        interpolate(on_cpu(IMAGE), scale_factor=-1.0)
    with pytest.raises(DTypeError, match=r"an element of size must be an integer, not 2\.5"):
        interpolate(on_cpu(IMAGE), 2.5)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="interpolate takes a webgrad tensor"):
        interpolate(IMAGE, 4)  # type: ignore[arg-type]


def test_area_is_the_mean_of_what_an_element_covers() -> None:
    found = interpolate(on_cpu(IMAGE), (1, 2), mode="area").numpy()
    np.testing.assert_allclose(found[0, 0, 0], [IMAGE[0, 0, :, :2].mean(), IMAGE[0, 0, :, 2:].mean()])
    assert interpolate(on_cpu(IMAGE), scale_factor=0.5, mode="area").shape == (1, 1, 1, 2)


def smoothed(values: Array, wanted: int, curve: Any, reach: float) -> Array:
    """A row in fewer elements, by the definition: a curve as wide as an element of the result."""
    scale = max(len(values) / wanted, 1.0)
    rows = []
    for at in range(wanted):
        centre = (at + 0.5) * len(values) / wanted - 0.5
        weights = np.array([curve((place - centre) / scale) for place in range(len(values))])
        assert (weights[[abs(place - centre) > reach * scale for place in range(len(values))]] == 0).all()
        rows.append((weights * values).sum() / weights.sum())
    return np.array(rows)


def bell(x: float) -> float:
    x = abs(x)
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    return near if x < 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


@pytest.mark.parametrize(
    ("mode", "curve", "reach"), [("bilinear", lambda x: max(1 - abs(x), 0), 1), ("bicubic", bell, 2)]
)
def test_what_becomes_smaller_is_smoothed(mode: str, curve: Any, reach: float) -> None:
    row = np.random.default_rng(4).normal(size=11).astype(np.float32)
    for wanted in (2, 4, 11, 17):
        found = interpolate(on_cpu(row.reshape(1, 1, 1, 11)), (1, wanted), mode=mode, antialias=True).numpy()
        np.testing.assert_allclose(found[0, 0, 0], smoothed(row, wanted, curve, reach), rtol=1e-4, atol=1e-5)
    with pytest.raises(ArgumentError, match="antialias is for mode"):
        interpolate(on_cpu(IMAGE), 2, mode="nearest", antialias=True)


def test_a_factor_may_be_computed_anew_from_the_sizes() -> None:
    x = on_cpu(IMAGE)
    anew = interpolate(x, scale_factor=1.4, mode="bilinear", recompute_scale_factor=True).numpy()
    np.testing.assert_array_equal(anew, interpolate(x, size=anew.shape[2:], mode="bilinear").numpy())
