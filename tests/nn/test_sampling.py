"""grid_sample and affine_grid against their definition, place by place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.nn import functional as F

RANDOM = np.random.default_rng(5)


def in_elements(place: float, size: int, align_corners: bool) -> float:
    return (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2


def reflected(place: float, size: int, align_corners: bool) -> float:
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    while high > low and not low <= place <= high:
        place = 2 * low - place if place < low else 2 * high - place
    return place


def by_definition(image: Any, place: Any, mode: str, padding: str, align_corners: bool) -> Any:
    """One place of an image (C, H, W): its channels."""

    def bounded(at: float, size: int) -> float:
        if padding == "zeros":
            return at
        at = reflected(at, size, align_corners) if padding == "reflection" else at
        return min(max(at, 0.0), size - 1.0)

    sizes = image.shape[1:]
    at = [in_elements(each, size, align_corners) for each, size in zip(place[::-1], sizes, strict=True)]
    if mode != "bicubic":
        at = [bounded(each, size) for each, size in zip(at, sizes, strict=True)]
    first = [round(each) if mode == "nearest" else math.floor(each) for each in at]
    weights = {"nearest": lambda t: [1.0], "bilinear": lambda t: [1 - t, t], "bicubic": cubic}[mode]
    start = -1 if mode == "bicubic" else 0
    total = np.zeros(image.shape[0])
    for i, wi in enumerate(weights(at[0] - first[0])):
        for j, wj in enumerate(weights(at[1] - first[1])):
            tap = [first[0] + i + start, first[1] + j + start]
            if mode == "bicubic":
                tap = [round(bounded(each, size)) for each, size in zip(tap, sizes, strict=True)]
            if 0 <= tap[0] < sizes[0] and 0 <= tap[1] < sizes[1]:
                total += wi * wj * image[:, tap[0], tap[1]]
    return total


def cubic(t: float) -> list[float]:
    def curve(x: float) -> float:
        x = abs(x)
        near = 1.25 * x**3 - 2.25 * x**2 + 1
        return near if x < 1 else -0.75 * x**3 + 3.75 * x**2 - 6 * x + 3

    return [curve(t + 1), curve(t), curve(1 - t), curve(2 - t)]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_grid_sample_is_its_definition(mode: str, padding: str) -> None:
    image = RANDOM.normal(size=(1, 2, 3, 5)).astype(np.float32)
    grid = RANDOM.uniform(-1.9, 1.9, (1, 4, 2, 2)).astype(np.float32)
    for align_corners in (False, True):
        found = F.grid_sample(wg.asarray(image), wg.asarray(grid), mode, padding, align_corners).numpy()
        for place in np.ndindex(4, 2):
            wanted = by_definition(image[0], grid[0][place], mode, padding, align_corners)
            np.testing.assert_allclose(found[0, :, *place], wanted, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_an_identity_grid_gives_the_image_and_its_gradient(device: str) -> None:
    image: Any = wg.asarray(
        RANDOM.normal(size=(2, 1, 2, 3, 4)).astype(np.float32), device=device
    ).requires_grad_()
    theta: Any = wg.asarray(np.eye(3, 4, dtype=np.float32)[None].repeat(2, 0), device=device).requires_grad_()
    grid = F.affine_grid(theta, (2, 1, 2, 3, 4), align_corners=True)
    found = F.grid_sample(image, grid, align_corners=True, padding_mode="border")
    np.testing.assert_allclose(found.numpy(), image.numpy(), atol=1e-5)
    (found * 2.0).sum().backward()
    np.testing.assert_allclose(image.grad.numpy(), 2.0, atol=1e-4)
    assert theta.grad.shape == theta.shape


def test_the_gradient_of_a_place_is_the_slope_of_the_image() -> None:
    ramp = wg.asarray(np.arange(5, dtype=np.float32).reshape(1, 1, 1, 5))
    grid: Any = wg.asarray([[[[0.1, 0.0]]]]).requires_grad_()
    F.grid_sample(ramp, grid, align_corners=True).sum().backward()
    np.testing.assert_allclose(grid.grad.numpy()[0, 0, 0], [2.0, 0.0], atol=1e-5)


def test_places_that_are_no_numbers_are_outside() -> None:
    grid = wg.asarray([[[[math.nan, 0.0], [math.inf, 0.0]]]])
    assert F.grid_sample(wg.ones((1, 1, 2, 2)), grid).tolist() == [[[[0.0, 0.0]]]]


@pytest.mark.parametrize(
    ("x", "grid", "options", "message"),
    [
        ((1, 1, 2, 2), (2, 1, 1, 2), {}, "takes x"),
        ((1, 1, 2, 2), (1, 1, 1, 3), {}, "takes x"),
        ((1, 1, 0, 2), (1, 1, 1, 2), {}, "nothing to sample"),
        ((1, 1, 2, 2), (1, 1, 1, 2), {"mode": "cubic"}, "mode must be one of"),
        ((1, 1, 2, 2), (1, 1, 1, 2), {"padding_mode": "wrap"}, "padding_mode must be one of"),
        ((1, 1, 2, 2, 2), (1, 1, 1, 1, 3), {"mode": "bicubic"}, "is for images"),
    ],
)
def test_what_does_not_fit_is_refused(x: Any, grid: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        F.grid_sample(wg.zeros(x), wg.zeros(grid), **options)


def test_affine_grids_of_one_element_are_its_centre() -> None:
    theta = wg.asarray([[[1.0, 0.0, 0.25], [0.0, 1.0, 0.0]]])
    assert F.affine_grid(theta, (1, 1, 1, 1), True).tolist() == [[[[0.25, 0.0]]]]
    with pytest.raises(ValueError, match="takes theta"):
        F.affine_grid(theta, (2, 1, 1, 1))
