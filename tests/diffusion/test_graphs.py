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
from webgrad.diffusion.graphs import GraphUNet, faces

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
    assert "1 captured" in repr(pipe._denoiser._step)


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


def test_an_error_of_a_node_names_the_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    text = (folder / "model.json").read_text().replace('"Sigmoid"', '"Warp"')
    (folder / "model.json").write_text(text)
    with pytest.raises(wg.ModelFileError, match=r"model\.json: gate is Warp"):
        wg.diffusion.load(folder, device="cpu")


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


def seen_times(path: Path, dtype: str, times: Any) -> Any:
    """The times that a graph is given, whose pictures are those of its input's type plus one's time."""
    nodes = [
        placeholder("pictures", "float32", -1, 2, 2, 1),
        placeholder("times", dtype, -1),
        node("Cast", "floats", "times", DstT={"type": "DT_FLOAT"}, Truncate=False),
        node("Reshape", "apart", "floats places"),
        node("AddV2", "sum", "pictures apart"),
    ]
    write_graph(path, nodes, {"places": np.asarray([-1, 1, 1, 1], np.int32)})
    network = GraphUNet(wg.onnx.load(path / "model.json", "cpu", progress=False))
    found = network(wg.zeros((len(times), 1, 2, 2), device="cpu"), wg.asarray(times, device="cpu"))
    return found.numpy()[:, 0, 0, 0].tolist()


@pytest.mark.parametrize(
    ("dtype", "wanted"), [("int32", [999, 998]), ("int64", [999, 998]), ("float32", [998.75, 998.25])]
)
def test_times_between_steps_are_as_the_graph_takes_them(
    dtype: str, wanted: list[float], tmp_path: Path
) -> None:
    assert seen_times(tmp_path, dtype, [998.75, 998.25]) == wanted
