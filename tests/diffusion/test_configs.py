"""Settings: obeyed, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from webgrad.diffusion.configs import by_block, read_config
from webgrad.diffusion.parts import load_part
from webgrad.diffusion.prompts import Prompts
from webgrad.diffusion.schedulers import scheduler_of
from webgrad.diffusion.unets import UNet2DConditionConfig, UNet2DConfig


def test_what_a_file_says_and_what_it_leaves_out() -> None:
    given = {
        "_class_name": "UNet2DModel",
        "in_channels": 4,
        "block_out_channels": [8, 16],
        "downsample_type": "conv",
    }
    found = read_config(UNet2DConfig, given, "config.json", UNet2DConfig.idle)
    assert (found.in_channels, found.out_channels, found.block_out_channels) == (4, 3, (8, 16))


@pytest.mark.parametrize(
    ("name", "value"), [("dual_cross_attention", True), ("num_attention_heads", 4), ("anything", "else")]
)
def test_what_would_change_the_result_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(wg.ModelFileError, match=rf"config\.json: {name} is {value!r}"):
        read_config(UNet2DConditionConfig, {name: value}, "config.json", UNet2DConditionConfig.idle)


def test_a_setting_for_all_blocks_or_one_each() -> None:
    assert by_block(2, 3) == [2, 2, 2]
    assert by_block((1, 2, 3), 3) == [1, 2, 3]
    with pytest.raises(wg.ModelFileError, match="there are 3 blocks, and settings for 2"):
        by_block((1, 2), 3)


@pytest.mark.parametrize("count", [1 << 40, -1, 1.5, [1 << 40, 1, 1, 1]])
def test_counts_of_layers_have_a_limit(count: object) -> None:
    with pytest.raises(wg.ModelFileError, match=r"layers_per_block is .* a count up to 64"):
        read_config(UNet2DConfig, {"layers_per_block": count}, "config.json", UNet2DConfig.idle)


def test_steps_of_training_have_a_limit() -> None:
    settings = {"_class_name": "DDIMScheduler", "num_train_timesteps": 1 << 40}
    with pytest.raises(wg.ModelFileError, match="num_train_timesteps is"):
        scheduler_of(settings, "scheduler_config.json")


@pytest.mark.parametrize("name", ["down_block_types", "block_out_channels"])
def test_settings_of_another_kind_describe_no_network(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({name: {}}))
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(wg.ModelFileError, match="describes no UNet2DModel"):
        load_part(tmp_path, "UNet2DModel", device="cpu")


@pytest.mark.parametrize("key", ["../other", "a\0b", ".", ""])
def test_a_part_is_a_folder_of_the_model(tmp_path: Path, key: str) -> None:
    (tmp_path / "other").mkdir()
    (home := tmp_path / "home").mkdir()
    index = {"_class_name": "DDPMPipeline", key: ["diffusers", "UNet2DModel"]}
    (home / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(wg.ModelFileError, match="is not in the model's folder"):
        wg.diffusion.load(home, device="cpu")


def test_an_absolute_part_is_refused(tmp_path: Path) -> None:
    index = {"_class_name": "DDPMPipeline", str(tmp_path.parent): ["diffusers", "UNet2DModel"]}
    (tmp_path / "model_index.json").write_text(json.dumps(index))
    with pytest.raises(wg.ModelFileError, match="is not in the model's folder"):
        wg.diffusion.load(tmp_path, device="cpu")


@pytest.mark.parametrize("length", ["long", 10**30, None, -1])
def test_a_tokenizer_without_a_length(tmp_path: Path, length: Any) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": length}))
    with pytest.raises(wg.ModelFileError, match="model_max_length is"):
        Prompts.from_folder(tmp_path)
