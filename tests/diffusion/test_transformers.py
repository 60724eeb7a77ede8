"""Transformers: what they are told makes a difference, steps are captured once, mistakes are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.diffusion.autoencoders import AutoencoderTiny, AutoencoderTinyConfig
from webgrad.diffusion.parts import load_part
from webgrad.diffusion.transformers import Transformer2DConfig, transformer_2d

SMALL: dict[str, Any] = {
    "num_attention_heads": 2,
    "attention_head_dim": 6,
    "num_layers": 1,
    "sample_size": 8,
    "out_channels": 8,
}
TINY = AutoencoderTinyConfig(
    encoder_block_out_channels=(4, 4),
    decoder_block_out_channels=(4, 4),
    num_encoder_blocks=(1, 1),
    num_decoder_blocks=(1, 1),
)


def pipeline() -> wg.diffusion.ClassConditional:
    wg.random.seed(0)
    config = wg.diffusion.DiTTransformerConfig(**SMALL, num_embeds_ada_norm=3)
    transformer = wg.diffusion.DiTTransformer(config).eval()
    return wg.diffusion.ClassConditional(transformer, AutoencoderTiny(TINY).eval(), labels={1: "boot"})


def test_classes_by_number_and_by_name() -> None:
    pipe = pipeline()
    first = pipe(2, classes=["boot", 2], steps=2, seed=0)
    assert first.shape == (2, 16, 16, 3)
    assert (pipe(2, classes=[1, 2], steps=2, seed=0) == first).all()
    assert (pipe(2, classes=[1, 0], steps=2, seed=0)[1] != first[1]).any()
    assert "1 captured" in repr(pipe._guided._step)


@pytest.mark.parametrize("name", [3, -1, "cat"])
def test_a_class_that_there_is_not(name: int | str) -> None:
    with pytest.raises(wg.ArgumentError, match=r"classes 0 to 2|no class has the name 'cat': boot"):
        pipeline()(1, classes=name, steps=1)


def test_a_picture_is_made_of_whole_patches() -> None:
    with pytest.raises(wg.ArgumentError, match="multiples of 4 here"):
        pipeline()(1, classes=0, steps=1, size=(16, 18))


def test_patches_come_back_where_they_were() -> None:
    """What is changed of a picture in one patch changes what is predicted there most, by far."""
    wg.random.seed(0)
    config = wg.diffusion.DiTTransformerConfig(**{**SMALL, "num_embeds_ada_norm": 3, "out_channels": 4})
    network = wg.diffusion.DiTTransformer(config).eval()
    for each in network.transformer_blocks[0].norm1.linear.parameters():  # a block that does nothing
        wg.nn.init.zeros_(each)
    x = wg.random.normal((1, 4, 4, 8)).numpy()
    other = x.copy()
    other[:, :, 2:4, 4:6] += 1
    with wg.no_grad():
        before, after = (network(wg.asarray(each), 5, wg.asarray([0])).numpy() for each in (x, other))
    changed = np.abs(after - before).max(axis=(0, 1)) > 1e-6
    assert changed[2:4, 4:6].all()
    assert changed.sum() == 4


SIZES = wg.asarray([[64.0, 32.0]])


def pixart(**more: Any) -> wg.diffusion.PixArtTransformer:
    settings = {**SMALL, "cross_attention_dim": 12, "caption_channels": 5, **more}
    return wg.diffusion.PixArtTransformer(wg.diffusion.PixArtTransformerConfig(**settings)).eval()


@wg.no_grad()
def test_padding_of_a_text_changes_nothing() -> None:
    network, x = pixart(), wg.random.normal((1, 4, 8, 4))
    context = wg.random.normal((1, 6, 5))
    other = wg.concat([context[:, :4], context[:, 4:] + 1], axis=1)
    seen = wg.asarray([[[[True] * 4 + [False] * 2]]])
    found = [network(x, 5, each, seen=seen).numpy() for each in (context, other)]
    assert found[0].shape == (1, 8, 8, 4)
    assert (found[0] == found[1]).all()
    assert (network(x, 5, other).numpy() != network(x, 5, context).numpy()).any()


@wg.no_grad()
def test_sizes_are_asked_for_where_a_network_knows_them() -> None:
    network, x, context = pixart(sample_size=128), wg.zeros((1, 4, 4, 4)), wg.zeros((1, 2, 5))
    with pytest.raises(wg.ArgumentError, match="takes sizes="):
        network(x, 5, context)
    found = [network(x, 5, context, sizes=each).numpy() for each in (SIZES, SIZES * 2)]
    assert (found[0] != found[1]).any()


PATCHED = Transformer2DConfig(**{**SMALL, "in_channels": 4, "patch_size": 2, "num_embeds_ada_norm": 3})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patch_size": None}, "there is no patch_size"),
        ({"norm_type": "layer_norm"}, "there is no norm_type 'layer_norm'"),
        ({"norm_type": "ada_norm_single"}, "there is no cross_attention_dim"),
        ({"norm_type": "ada_norm_zero", "caption_channels": 8}, "there is no caption_channels"),
        ({"norm_type": "ada_norm_zero", "num_embeds_ada_norm": None}, "there is no num_embeds_ada_norm"),
        ({"norm_type": "ada_norm_zero", "patch_size": 16}, "no network of patch_size 16, sample_size 8"),
        ({"norm_type": "ada_norm_zero", "activation_fn": "sine"}, "there is no activation 'sine'"),
    ],
)
def test_settings_that_describe_no_network(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(wg.ModelFileError, match=message):
        transformer_2d(replace(PATCHED, **changes))


def test_both_kinds_by_the_name_of_the_older_class() -> None:
    assert type(transformer_2d(replace(PATCHED, norm_type="ada_norm_zero"))).__name__ == "DiTTransformer"
    single = replace(PATCHED, norm_type="ada_norm_single", cross_attention_dim=12)
    assert type(transformer_2d(single)).__name__ == "PixArtTransformer"


def test_a_setting_that_is_not_here_is_refused_when_a_folder_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"attention_type": "gated"}')
    with pytest.raises(wg.ModelFileError, match=r"config\.json: attention_type is 'gated'"):
        load_part(tmp_path, "PixArtTransformer2DModel")
