"""Landscapes: one step of a consistency model, by its own formulas; difficulties; heights in metres."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import model, node

SIZE = 4
HIGHEST, BEND = 22.16864013671875, 0.1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A network whose heights are noisy · 0.01 + sigma · 0.001 + difficulty."""
    nodes = [
        node("Mul", "noisy small", "a"),
        node("Mul", "sigma tiny", "b"),
        node("Add", "b difficulty", "c"),
        node("Reshape", "c apart", "d"),
        node("Add", "a d", "denoised"),
    ]
    inputs = {"noisy": ["n", 1, SIZE, SIZE], "sigma": ["n"], "difficulty": ["n"]}
    weights = {
        "small": np.float32(0.01),
        "tiny": np.float32(0.001),
        "apart": np.asarray([-1, 1, 1, 1]),
    }
    path = tmp_path / "terrain.onnx"
    path.write_bytes(model(nodes, inputs, {"denoised": ["n", 1, SIZE, SIZE]}, weights))
    return path


def noise() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(0).standard_normal((2, 1, SIZE, SIZE)).astype(np.float32)


def test_a_landscape_is_one_step_from_noise(file: Path) -> None:
    pipe = wg.diffusion.load(file, device="cpu")
    assert isinstance(pipe, wg.diffusion.Terrain)
    [preview] = pipe.steps(2, classes=[1, 100], noise=wg.asarray(noise()))
    wanted = noise() * 0.8 + 0.08 + np.asarray([0, 1]).reshape(2, 1, 1, 1)
    np.testing.assert_allclose(preview.latents.numpy(), wanted, 1e-5, 1e-5)
    unit = np.clip((wanted[:, 0] + 1) / 2, 0, 1)
    metres = BEND * np.sinh(unit * np.arcsinh(HIGHEST / BEND))
    metres -= metres.min((1, 2), keepdims=True)
    np.testing.assert_allclose(pipe.heights(preview.latents), metres, 1e-3, 1e-4)
    shades = metres / metres.max((1, 2), keepdims=True) * 255
    assert preview.pictures().shape == (2, SIZE, SIZE, 1)
    assert abs(preview.pictures()[..., 0] - shades).max() < 1


def test_a_picture_to_begin_with(file: Path) -> None:
    pipe = wg.diffusion.load(file, device="cpu")
    picture = np.random.default_rng(1).integers(0, 256, (SIZE, SIZE), np.uint8)
    given = wg.asarray(noise())
    [preview] = pipe.steps(2, classes=1, picture=picture, strength=0.5, noise=given)
    sigma = 0.002 * (80 / 0.002) ** 0.5
    begun = np.arcsinh(picture / 255 * HIGHEST / BEND) / math.asinh(HIGHEST / BEND) * 2 - 1
    wanted = (noise() * sigma + begun) * 0.01 + sigma * 0.001
    np.testing.assert_allclose(preview.latents.numpy(), wanted, 1e-4, 1e-5)


def test_seeds_repeat_and_draw_difficulties(file: Path) -> None:
    pipe = wg.diffusion.load(file, device="cpu")
    first = pipe(3, seed=1)
    assert (pipe(3, seed=1) == first).all()
    assert (pipe(3, seed=2) != first).any()
    assert "1 captured" in repr(pipe._step)


@pytest.mark.parametrize("shape", [["n", 1, "h", "w"], ["n", 1, SIZE], ["n", 3, SIZE, SIZE], []])
def test_heights_of_another_shape_are_no_landscapes(shape: list[int | str], tmp_path: Path) -> None:
    path = tmp_path / "other.onnx"
    inputs = {"noisy": shape, "sigma": ["n"], "difficulty": ["n"]}
    path.write_bytes(model([node("Identity", "noisy", "denoised")], inputs, {"denoised": shape}, {}))
    with pytest.raises(wg.ModelFileError, match="is no diffusion model that webgrad knows: it takes noisy"):
        wg.diffusion.load(path, device="cpu")


def test_what_makes_no_pictures_is_not_even_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wg.onnx, "load", lambda *given: pytest.fail(f"{given} was fetched"))
    with pytest.raises(wg.ArgumentError, match="minilm is no diffusion model: of the catalogue only terrain"):
        wg.diffusion.load("minilm")


@pytest.mark.parametrize("name", ["lora", "dtype"])
def test_options_that_an_onnx_model_has_not_are_named(name: str, file: Path) -> None:
    options: dict[str, str] = {name: "float16"}
    with pytest.raises(wg.ArgumentError, match=f"types and weights of its file: no {name}="):
        wg.diffusion.load(file, device="cpu", **options)


@pytest.mark.parametrize("classes", [0, 101, "steep", [1], True, 1.5])
def test_a_difficulty_is_one_to_a_hundred(classes: object, file: Path) -> None:
    with pytest.raises(wg.ArgumentError, match="a difficulty is an integer from 1 to 100"):
        wg.diffusion.load(file, device="cpu")(2, classes=classes)


def test_what_is_no_consistency_model_of_heights(file: Path) -> None:
    with pytest.raises(wg.ArgumentError, match="takes 1 step, not 4"):
        wg.diffusion.load(file, device="cpu")(1, steps=4)
    with pytest.raises(wg.ArgumentError, match=r"strength= .* give picture= too"):
        wg.diffusion.load(file, device="cpu")(1, strength=0.5)
    with pytest.raises(wg.ArgumentError, match="has the types and weights of its file"):
        wg.diffusion.load(file, device="cpu", dtype=wg.float16)
    other = file.with_name("other.onnx")
    other.write_bytes(model([node("Relu", "x", "y")], {"x": ["n"]}, {"y": ["n"]}))
    with pytest.raises(wg.ModelFileError, match=r"other\.onnx is no diffusion model that webgrad knows"):
        wg.diffusion.load(other, device="cpu")
