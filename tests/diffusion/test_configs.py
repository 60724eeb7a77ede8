"""Settings: obeyed, or refused by name."""

from __future__ import annotations

import pytest

import webgrad as wg
from webgrad.diffusion.configs import by_block, read_config
from webgrad.diffusion.unets import CONDITION_IDLE, UNET_IDLE, UNet2DConditionConfig, UNet2DConfig


def test_what_a_file_says_and_what_it_leaves_out() -> None:
    given = {
        "_class_name": "UNet2DModel",
        "in_channels": 4,
        "block_out_channels": [8, 16],
        "downsample_type": "conv",
    }
    found = read_config(UNet2DConfig, given, "config.json", UNET_IDLE)
    assert (found.in_channels, found.out_channels, found.block_out_channels) == (4, 3, (8, 16))


@pytest.mark.parametrize(
    ("name", "value"), [("dual_cross_attention", True), ("num_attention_heads", 4), ("anything", "else")]
)
def test_what_would_change_the_result_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(wg.ModelFileError, match=rf"config\.json: {name} is {value!r}"):
        read_config(UNet2DConditionConfig, {name: value}, "config.json", CONDITION_IDLE)


def test_a_setting_for_all_blocks_or_one_each() -> None:
    assert by_block(2, 3) == [2, 2, 2]
    assert by_block((1, 2, 3), 3) == [1, 2, 3]
    with pytest.raises(wg.ModelFileError, match="there are 3 blocks, and settings for 2"):
        by_block((1, 2), 3)
