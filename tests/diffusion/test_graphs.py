"""Graphs as pipelines: DDIM by plain NumPy's, folders that do not say how they were trained; faces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusion.numpy_graph import NumpyGraph, ddim
from tests.missing import need_folder
from tests.onnx.tfjs import node, placeholder, unet, write_graph
from webgrad.diffusion.graphs import faces

FACES = "WEBGRAD_FACES"


def noise_of(count: int, size: int) -> tuple[Any, Any]:
    """Noise with channels first, and as the graph has it."""
    noise = np.random.default_rng(0).standard_normal((count, 3, size, size)).astype(np.float32)
    return noise, np.ascontiguousarray(noise.transpose(0, 2, 3, 1))


def folder_of(path: Path, **more: Any) -> Path:
    """A graph's folder with settings of a scheduler."""
    folder = unet(path)
    settings = {"_class_name": "DDIMScheduler", "num_train_timesteps": 30, **more}
    (folder / "scheduler_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
def test_pictures_are_those_of_plain_numpy(device: str, tmp_path: Path) -> None:
    folder = unet(tmp_path)
    (folder / "scheduler_config.json").write_text('{"_class_name": "DDIMScheduler"}')
    pipe = wg.diffusion.load(folder, device=device).with_scheduler(faces())
    given, moved = noise_of(2, 8)
    *_, last = pipe.steps(2, steps=10, noise=wg.asarray(given, device=device))
    found = last.latents.numpy().transpose(0, 2, 3, 1)
    np.testing.assert_allclose(found, ddim(NumpyGraph(folder), moved, 10), 1e-3, 1e-3)
    assert "1 captured" in repr(pipe._plain._step)


def test_a_folder_says_how_it_was_trained(tmp_path: Path) -> None:
    pipe = wg.diffusion.load(folder_of(tmp_path, beta_schedule="squaredcos_cap_v2"), device="cpu")
    assert pipe.scheduler.num_train_timesteps == 30
    assert pipe.size == (8, 8)
    assert pipe(3, steps=2, seed=0).shape == (3, 8, 8, 3)
    with pytest.raises(wg.ArgumentError, match="knows no classes"):
        pipe(1, steps=1, classes=0)
    with pytest.raises(wg.ArgumentError, match="GraphUNet is none"):
        wg.diffusion.save(pipe, tmp_path / "copy")


def test_a_graph_that_does_not_say_how_it_was_trained(tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match=r"put a scheduler_config\.json beside model\.json"):
        wg.diffusion.load(unet(tmp_path), device="cpu")


def test_a_graph_of_something_else(tmp_path: Path) -> None:
    nodes = [placeholder("x", "float32", -1, 4), node("Relu", "y", "x")]
    write_graph(tmp_path, nodes, {})
    (tmp_path / "scheduler_config.json").write_text('{"_class_name": "DDIMScheduler"}')
    with pytest.raises(wg.ModelFileError, match="is no graph of pictures and time steps"):
        wg.diffusion.load(tmp_path, device="cpu")


def test_a_dtype_of_a_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wg.ArgumentError, match="a graph computes with float32"):
        wg.diffusion.load(folder_of(tmp_path), device="cpu", dtype=wg.float16)


def test_published_faces(request: pytest.FixtureRequest) -> None:
    folder = need_folder(
        request.config, FACES, "docs/64x64_cosin_300 of github.com/wangjia184/diffusion_model"
    )
    pipe = wg.diffusion.load(folder, device="cpu")
    given, moved = noise_of(1, 64)
    *_, last = pipe.steps(1, steps=5, noise=wg.asarray(given, device="cpu"))
    wanted = ddim(NumpyGraph(folder), moved, 5)
    assert abs(last.latents.numpy().transpose(0, 2, 3, 1) - wanted).max() < 2e-3
