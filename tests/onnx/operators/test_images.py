"""Images: sampling, columns, sizes, and files."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats
from tests.onnx.operators.single import run_one

GENERATOR = np.random.default_rng(12)


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


@pytest.mark.parametrize(("opset", "mode"), [(16, "bilinear"), (20, "linear")])
def test_grid_sample_at_its_elements_and_between(opset: int, mode: str) -> None:
    x = drawn(1, 2, 3, 3)
    places = np.stack(np.meshgrid(floats(-1, 0, 1), floats(-1, 0, 1)), -1)[None]
    found = run_one("GridSample", x, places, opset=opset, mode=mode, align_corners=1)
    np.testing.assert_allclose(found, x, 1e-5, 1e-6)
    middle = run_one("GridSample", x, floats([[[[-0.5, -0.5]]]])[0], opset=opset, mode=mode, align_corners=1)
    np.testing.assert_allclose(middle[..., 0, 0], x[:, :, :2, :2].mean((2, 3)), 1e-5, 1e-6)


@pytest.mark.parametrize(("padding", "expected"), [("zeros", 0), ("border", 4), ("reflection", 3)])
def test_grid_sample_outside(padding: str, expected: float) -> None:
    x = floats([[1, 2, 3, 4]])[None]
    grid = floats([[[5 / 3, 0]]])[None]
    found = run_one("GridSample", x, grid[0], mode="nearest", padding_mode=padding, align_corners=1)
    assert found.item() == expected


def test_grid_sample_of_a_volume() -> None:
    x = drawn(1, 1, 2, 2, 2)
    found = run_one("GridSample", x, np.zeros((1, 1, 1, 1, 3), np.float32))
    assert found.item() == pytest.approx(x.mean(), abs=1e-6)


@pytest.mark.parametrize("align", [0, 1])
def test_affine_grid_of_the_identity(align: int) -> None:
    theta = floats([[1, 0, 0], [0, 1, 0]])
    found = run_one("AffineGrid", theta, np.array([1, 1, 2, 4]), align_corners=align)
    across = np.linspace(-1, 1, 4) if align else (np.arange(4) * 2 + 1) / 4 - 1
    down = np.linspace(-1, 1, 2) if align else np.array([-0.5, 0.5])
    np.testing.assert_allclose(found[0], np.stack(np.meshgrid(across, down), -1), 1e-6)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(("step", "apart", "pads"), [(1, 1, (0, 0)), (2, 1, (1, 0)), (1, 2, (0, 1))])
def test_columns_to_image(axes: int, step: int, apart: int, pads: tuple[int, int]) -> None:
    sizes, kernel = (5, 6, 4)[:axes], (2, 3, 2)[:axes]
    counts = [
        (size + sum(pads) - (each - 1) * apart - 1) // step + 1
        for size, each in zip(sizes, kernel, strict=True)
    ]
    taps = int(np.prod(kernel))
    x = drawn(2, 3 * taps, int(np.prod(counts)))
    settings = {
        "strides": [step] * axes,
        "dilations": [apart] * axes,
        "pads": [pads[0]] * axes + [pads[1]] * axes,
    }
    found = run_one("Col2Im", x, np.array(sizes), np.array(kernel), **settings)
    expected: Any = np.zeros((2, 3, *(size + sum(pads) for size in sizes)))
    columns = x.reshape(2, 3, *kernel, *counts)
    for tap in np.ndindex(*kernel):
        for window in np.ndindex(*counts):
            place = tuple(at * step + each * apart for at, each in zip(window, tap, strict=True))
            expected[(slice(None), slice(None), *place)] += columns[(slice(None), slice(None), *tap, *window)]
    inside = tuple(slice(pads[0], pads[0] + size) for size in sizes)
    np.testing.assert_allclose(found, expected[(..., *inside)], 1e-5, 1e-5)


def test_center_crop_and_pad() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    assert run_one("CenterCropPad", x, np.array([1, 2])).tolist() == [[6, 7]]
    found = run_one("CenterCropPad", x, np.array([6]), axes=[-2])
    np.testing.assert_array_equal(found, np.pad(x, ((1, 2), (0, 0))))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode: str) -> None:
    x = drawn(2, 12, 3, 2)
    found = run_one("DepthToSpace", x, blocksize=2, mode=mode)
    assert found.shape == (2, 3, 6, 4)
    for row, column, channel in np.ndindex(2, 2, 3):
        source = (row * 2 + column) * 3 + channel if mode == "DCR" else channel * 4 + row * 2 + column
        np.testing.assert_array_equal(found[:, channel, row::2, column::2], x[:, source])
    np.testing.assert_array_equal(run_one("SpaceToDepth", found, blocksize=2, mode=mode, opset=28), x)


def encoded(pixels: Any) -> Any:
    pillow = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pillow.fromarray(pixels).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8)


def test_an_image_file_is_read() -> None:
    pixels = GENERATOR.integers(0, 256, (4, 5, 3), np.uint8)
    file = encoded(pixels)
    np.testing.assert_array_equal(run_one("ImageDecoder", file), pixels)
    np.testing.assert_array_equal(run_one("ImageDecoder", file, pixel_format="BGR"), pixels[..., ::-1])
    assert run_one("ImageDecoder", file, pixel_format="Grayscale").shape == (4, 5, 1)
    with pytest.raises(wg.ModelFileError, match="no image"):
        run_one("ImageDecoder", file[:40])


def test_without_pillow_an_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(wg.MissingPackageError, match="pip install pillow"):
        run_one("ImageDecoder", np.zeros(8, np.uint8))
