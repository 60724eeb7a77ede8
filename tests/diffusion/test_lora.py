"""LoRA files: what they add, and what is refused by the name of a tensor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusion.test_pipelines import pipeline, written

LAYER = "mid_block.attentions.0.to_q"
SIZE = 16
Arrays = dict[str, np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("lora") / "model", pipeline().unet)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def pair(name: str = f"unet.{LAYER}", rank: int = 2) -> Arrays:
    return {f"{name}.lora_A.weight": numbers(rank, SIZE), f"{name}.lora_B.weight": numbers(SIZE, rank)}


def file(path: Path, tensors: Arrays, **metadata: str) -> Path:
    wg.io.save(path / "lora.safetensors", tensors, metadata)
    return path / "lora.safetensors"


def weight(folder: Path, lora: Any = None, layer: str = LAYER, **options: Any) -> Any:
    unet = wg.diffusion.load(folder, device="cpu", lora=lora, **options).unet
    return unet.get_submodule(layer).weight.detach().numpy()


def test_what_is_added(folder: Path, tmp_path: Path) -> None:
    given = pair()
    down, up = given.values()
    before, path = weight(folder), file(tmp_path, given)
    np.testing.assert_allclose(weight(folder, path), before + up @ down, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weight(folder, (path, -0.5)), before - 0.5 * up @ down, rtol=1e-5, atol=1e-6)
    twice = weight(folder, [path, (str(path), 2)])
    np.testing.assert_allclose(twice, before + 3 * up @ down, rtol=1e-5, atol=1e-5)
    assert (
        weight(folder, path, "mid_block.attentions.0.to_k") == weight(folder, None, LAYER[:-1] + "k")
    ).all()


def test_alphas_and_names_without_dots(folder: Path, tmp_path: Path) -> None:
    name = f"lora_unet_{LAYER.replace('.', '_')}"
    down, up = numbers(2, SIZE), numbers(SIZE, 2)
    given = {f"{name}.lora_down.weight": down, f"{name}.lora_up.weight": up}
    path = file(tmp_path, {**given, f"{name}.alpha": np.array(3.0, np.float32)})
    np.testing.assert_allclose(weight(folder, path), weight(folder) + 1.5 * up @ down, rtol=1e-5, atol=1e-6)


def test_convolutions(folder: Path, tmp_path: Path) -> None:
    name = "down_blocks.0.resnets.0.conv1"
    down, up = numbers(2, 8, 3, 3), numbers(8, 2, 1, 1)
    path = file(tmp_path, {f"unet.{name}.lora.down.weight": down, f"unet.{name}.lora.up.weight": up})
    wanted = weight(folder, layer=name) + np.einsum("or,rihw->oihw", up[:, :, 0, 0], down)
    np.testing.assert_allclose(weight(folder, path, name), wanted, rtol=1e-5, atol=1e-6)


def test_what_is_added_to_halves_and_blocks_is_added_before_they_are_made(
    folder: Path, tmp_path: Path
) -> None:
    path = file(tmp_path, pair())
    wanted = weight(folder, path).astype(np.float16)
    assert (weight(folder, path, dtype="float16") == wanted).all()


def test_a_folder_has_a_file_of_diffusers_name(folder: Path, tmp_path: Path) -> None:
    wg.io.save(tmp_path / "pytorch_lora_weights.safetensors", pair())
    assert (weight(folder, tmp_path) == weight(folder, file(tmp_path, pair()))).all()


def changed(old: str, new: str) -> Arrays:
    return {name.replace(old, new): each for name, each in pair().items()}


ONE = np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (changed("lora_A", "hada_w1"), r"has unet\.mid_block.*hada_w1\.weight, which is no part"),
        ({**pair(), f"unet.{LAYER}.dora_scale": ONE}, r"has unet\..*dora_scale"),
        (changed("to_q", "to_z"), r"changes unet\.mid_block.*to_z, and unet has no weight of that name"),
        (changed("unet.", "text_encoder."), r"changes text_encoder\..*, which is of no part of this model"),
        (changed("unet.", "lora_unet_"), "and unet has no weight of that name"),
        (pair(rank=0), r"is \(0, 16\) and \(16, 0\), which change no weight of \(16, 16\)"),
        ({**pair(), f"unet.{LAYER}.lora_A.weight": numbers(2, 8)}, r"is \(2, 8\) and \(16, 2\)"),
        ({**pair(), f"unet.{LAYER}.lora_B.weight": numbers(16, 3)}, r"is \(2, 16\) and \(16, 3\)"),
        ({**pair(), f"unet.{LAYER}.lora_B.weight": numbers(32)}, r"is \(2, 16\) and \(32,\)"),
        ({f"unet.{LAYER}.lora_A.weight": numbers(2, 16)}, "there is nothing but down"),
        ({**pair(), f"unet.{LAYER}.alpha": numbers(2)}, "alpha is one number"),
        ({**pair(), f"unet.{LAYER}.alpha": np.ones(1, np.int32)}, "alpha is no tensor of floats"),
    ],
)
def test_what_changes_nothing_is_refused_by_name(
    tensors: Arrays, message: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(wg.ModelFileError, match=rf"lora\.safetensors.*{message}"):
        weight(folder, file(tmp_path, tensors))


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("[]", "is no table of settings"),
        ("{", "is no table of settings"),
        ('{"unet.lora_alpha": "many"}', "is no table of settings"),
        ('{"unet.lora_alpha": NaN}', "an alpha is no number"),
        ('{"unet.use_dora": true}', "unet.use_dora is True, and there are no such changes"),
    ],
)
def test_settings_beside_the_tensors(told: str, message: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match=message):
        weight(folder, file(tmp_path, pair(), lora_adapter_metadata=told))


def test_alphas_beside_the_tensors(folder: Path, tmp_path: Path) -> None:
    told = json.dumps({"unet.lora_alpha": 8, "unet.alpha_pattern": {"to_q": 6}, "unet.r": 2})
    found = weight(folder, file(tmp_path, pair(), lora_adapter_metadata=told))
    down, up = pair().values()
    np.testing.assert_allclose(found, weight(folder) + 3 * up @ down, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("given", [3, [3], [("a", "b")], {"a": 1}])
def test_what_is_no_path(given: Any, folder: Path) -> None:
    with pytest.raises(wg.ArgumentError, match="lora is a path"):
        weight(folder, given)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -float("inf"), 10**400, True])
def test_a_scale_is_a_finite_number(scale: float, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        wg.ArgumentError, match=r"lora\.safetensors counts .* times, which is no finite number"
    ):
        weight(folder, (file(tmp_path, pair()), scale))
    with pytest.raises(wg.ArgumentError, match="which is no finite number"):
        weight(folder, [(file(tmp_path, pair()), scale)])


def test_a_file_that_is_not_there(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match="nothing"):
        weight(folder, tmp_path / "nothing.safetensors")
