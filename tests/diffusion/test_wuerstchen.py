"""Würstchen: seeds repeat, nothing is made twice, and what does not fit is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.diffusion.configs import read_config
from webgrad.diffusion.paella import PaellaVQ, PaellaVQConfig
from webgrad.diffusion.pipelines import wuerstchen
from webgrad.diffusion.prompts import Prompts
from webgrad.diffusion.text_encoders import CLIPText, CLIPTextConfig
from webgrad.diffusion.wuerstchen import DiffNeXt, DiffNeXtConfig, Prior, PriorConfig

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
TEXT = CLIPTextConfig(
    vocab_size=50,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=8,
    eos_token_id=49,
)
DECODER: dict[str, Any] = {
    "c_cond": 8,
    "c_hidden": (8, 8, 8, 8),
    "nhead": (-1, 2, 2, 2),
    "blocks": (1, 1, 1, 1),
    "effnet_embd": 4,
    "clip_embd": 16,
}
SIZE = (128, 256)


def prompts() -> Prompts:
    """A token for each letter."""
    engine = SimpleNamespace(encode=lambda text, **_: SimpleNamespace(ids=[ord(each) % 47 for each in text]))
    return Prompts(engine, 8, 48, 49, 49)


def varied(module: Any) -> Any:
    """In evaluation mode, and nothing is zero that begins as zeros."""
    for each in module.parameters():
        wg.nn.init.normal_(each, std=0.2)
    return module.eval()


def pipeline(device: str = "cpu") -> wg.diffusion.Wuerstchen:
    wg.random.seed(0)
    networks = (
        CLIPText(TEXT),
        Prior(PriorConfig(c_in=4, c=8, c_cond=16, c_r=8, depth=1, nhead=2)),
        CLIPText(TEXT),
        DiffNeXt(DiffNeXtConfig(**DECODER)),
        PaellaVQ(PaellaVQConfig(embed_dim=8, bottleneck_blocks=1, num_vq_embeddings=4)),
    )
    text, prior, other, decoder, vqgan = (varied(each).to(device=device) for each in networks)
    return wg.diffusion.Wuerstchen(
        wg.diffusion.WuerstchenPrior(prompts(), text, prior),
        wg.diffusion.WuerstchenDecoder(prompts(), other, decoder, vqgan),
    )


def test_seeds_repeat_and_each_stage_is_captured_once() -> None:
    pipe = pipeline()
    options: dict[str, Any] = {"prior_steps": 3, "steps": 2, "size": SIZE}
    first = pipe(["a hen", "an egg"], seed=5, **options)
    assert first.shape == (2, *SIZE, 3)
    assert first.dtype == np.uint8
    assert (pipe(["a hen", "an egg"], seed=5, **options) == first).all()
    assert (pipe(["a hen", "an egg"], seed=6, **options) != first).any()
    assert (pipe(["a hen", "a cow"], seed=5, **options)[0] == first[0]).all()
    assert "1 captured" in repr(pipe.prior._denoiser._step)
    assert "1 captured" in repr(pipe.decoder._denoiser._step)


def test_previews_of_both_stages() -> None:
    found = list(pipeline().steps("a hen", prior_steps=2, steps=1, size=SIZE, seed=0))
    assert [(each.step, each.steps) for each in found] == [(1, 3), (2, 3), (3, 3)]
    assert [each.pictures().shape for each in found] == [(1, 3, 6, 3), (1, 3, 6, 3), (1, *SIZE, 3)]


@pytest.mark.parametrize("name", ["prior_guidance", "guidance"])
def test_prompts_negative_ones_and_guidance_count_in_both_stages(name: str) -> None:
    pipe = pipeline()
    given: dict[str, Any] = {"prior_steps": 1, "steps": 1, "size": (128, 128), "seed": 0}
    given |= {"prior_guidance": 1.0, "guidance": 1.0}
    plain = pipe("a hen", **given)
    guided = pipe("a hen", **{**given, name: 3.0})
    assert (guided != plain).any()
    assert (pipe("a hen", **{**given, name: 3.0}, negative="egg") != guided).any()
    assert (pipe("a cow", **given) != plain).any()


def test_stages_apart_are_the_stages_together() -> None:
    pipe = pipeline()
    noise = wg.random.normal((1, 4, 3, 6)), wg.random.normal((1, 4, 32, 64))
    options: dict[str, Any] = {"steps": 1, "seed": 1}
    latents = pipe.prior("a hen", size=SIZE, noise=noise[0], **options)
    assert latents.shape == (1, 4, 3, 6)
    found = pipe.decoder(latents, "a hen", noise=noise[1], **options)
    both = pipe("a hen", prior_steps=1, prior_noise=noise[0], noise=noise[1], size=SIZE, **options)
    assert (found == both).all()


@pytest.mark.gpu
def test_what_steps_compile_and_create() -> None:
    """Nothing is compiled from a stage's second step on; buffers have settled then, bind groups later."""
    pipe = pipeline("webgpu:0")
    seen = []
    for _ in pipe.steps("a hen", prior_steps=6, steps=6, guidance=2.0, size=(128, 128), seed=0):
        stats = wg.stats("webgpu:0")
        names = ("pipelines_compiled", "buffers_created", "bind_groups_created")
        seen.append([stats[each] for each in names])
    compiled, buffers, groups = np.diff(np.asarray(seen).reshape(2, 6, 3), axis=1).T
    assert (compiled == 0).all()
    assert (buffers[1:] == 0).all()
    assert (groups[3:] == 0).all()


@pytest.mark.parametrize("size", [(100, 128), (128, 64), (192, 192), (0, 128), (1 << 20, 128)])
def test_sizes_that_no_picture_has(size: tuple[int, int]) -> None:
    with pytest.raises(
        wg.ArgumentError, match=r"128, 256|sides are 1 to|height is a whole number above 0, not 0"
    ):
        pipeline()("a hen", size=size)


def test_what_does_not_belong_together() -> None:
    pipe = pipeline()
    with pytest.raises(wg.ArgumentError, match="1 prompts and 2 negative"):
        pipe("a hen", negative=["a", "b"], size=SIZE)
    with pytest.raises(
        wg.ShapeError, match=r"the noise has shape \(1, 4, 3, 3\), and \(1, 4, 3, 6\) is needed"
    ):
        pipe("a hen", prior_noise=wg.zeros((1, 4, 3, 3)), size=SIZE)
    with pytest.raises(wg.ArgumentError, match="1 latents of the prior and 2 prompts"):
        pipe.decoder(wg.zeros((1, 4, 3, 3)), ["a hen", "a cow"])


@pytest.mark.parametrize(
    "given",
    [
        {"steps": 0},
        {"guidance": "much"},
        {"noise": wg.zeros((1, 4, 3, 3))},
        {"prior_noise": wg.zeros((1, 4, 1, 1))},
        {"negative": ["a", "b"]},
        {"negative": "rain", "prior_guidance": 1.0},
        {"size": 128},
    ],
)
def test_mistakes_of_either_stage_are_told_before_the_first_one_works(given: dict[str, Any]) -> None:
    pipe = pipeline()
    with pytest.raises((wg.ArgumentError, wg.ShapeError)):
        pipe("a hen", **{"size": SIZE, "steps": 1, **given})
    assert "0 captured" in repr(pipe.prior._denoiser._step)


def test_padding_does_not_count() -> None:
    """Whatever stands behind a text, and however much of it."""
    ids, seen = prompts().tokens(["a hen", "a"])
    assert seen.sum(axis=1).tolist() == [7, 3]
    encoder = varied(CLIPText(TEXT))
    others = np.where(seen, ids, 7).astype(np.int32)
    found, other = (encoder(wg.asarray(each), wg.asarray(seen)).last.numpy() for each in (ids, others))
    assert found[seen] == pytest.approx(other[seen], abs=1e-6)
    assert np.abs(found - encoder(wg.asarray(ids)).last.numpy())[~seen].max() > 1e-3


@pytest.mark.parametrize("letters", ["CTB", "C" * 17])
def test_rows_of_blocks_that_there_are_not(letters: str) -> None:
    given = {**DECODER, "level_config": [letters] * 4}
    with pytest.raises(wg.ModelFileError, match="level_config has"):
        DiffNeXt(read_config(DiffNeXtConfig, given, "config.json", DiffNeXtConfig.idle))


def test_too_few_features_of_a_time() -> None:
    with pytest.raises(wg.ModelFileError, match="c_r is 3"):
        Prior(PriorConfig(c=8, c_r=3, depth=1, nhead=2))


@pytest.mark.parametrize(("name", "value"), [("s", 0), ("s", "a"), ("scaler", float("nan")), ("scaler", -1)])
def test_settings_of_the_scheduler_that_are_no_numbers(name: str, value: Any) -> None:
    with pytest.raises(wg.ModelFileError, match=f"{name} of DDPMWuerstchen is {value!r}"):
        wg.diffusion.DDPMWuerstchen(**{name: value})


PARTS: dict[str, Any] = {
    "tokenizer": prompts(),
    "text_encoder": None,
    "prior": None,
    "scheduler": wg.diffusion.DDPMWuerstchen(),
}


def test_parts_and_settings_of_other_kinds_are_named() -> None:
    pipe = pipeline()
    parts = PARTS | {"text_encoder": pipe.prior.encoder, "prior": pipe.prior.network}
    assert wuerstchen.prior_alone(parts, {"latent_std": 2}, "here").latent_std == 2
    with pytest.raises(wg.ModelFileError, match="here: its scheduler is a DDIM, and"):
        wuerstchen.prior_alone(parts | {"scheduler": wg.diffusion.DDIM()}, {}, "here")
    with pytest.raises(wg.ModelFileError, match="here: its prior is a DiffNeXt, and"):
        wuerstchen.prior_alone(parts | {"prior": pipe.decoder.network}, {}, "here")
    for value in ("42", 0.0, 1e300, float("nan"), True):
        with pytest.raises(wg.ModelFileError, match="here: resolution_multiple is"):
            wuerstchen.prior_alone(parts, {"resolution_multiple": value}, "here")


def test_two_folders_the_wrong_way_round() -> None:
    pipe = pipeline()
    with pytest.raises(
        wg.ModelFileError, match="a and b: there is a WuerstchenDecoder, and no WuerstchenPrior"
    ):
        wuerstchen.of_stages(pipe.decoder, pipe.prior, "a and b")


@pytest.mark.parametrize(
    ("prior", "decoder", "folder"),
    [("WuerstchenDecoderPipeline", "WuerstchenPriorPipeline", "first"),
     ("WuerstchenPriorPipeline", "StableDiffusionPipeline", "second")],
)  # fmt: skip
def test_stages_are_told_apart_before_they_are_loaded(
    prior: str, decoder: str, folder: str, tmp_path: Path
) -> None:
    for name, kind in (("first", prior), ("second", decoder)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model_index.json").write_text(json.dumps({"_class_name": kind}))
    with pytest.raises(
        wg.ModelFileError, match=rf"{folder}.model_index\.json is of .*, and with prior= it is"
    ):
        wg.diffusion.load(tmp_path / "second", prior=tmp_path / "first")


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": "WuerstchenCombinedPipeline"}))
    with pytest.raises(wg.ModelFileError, match=r"model_index\.json: there is no part 'tokenizer'"):
        wg.diffusion.load(tmp_path)


def test_steps_of_times_one_gives() -> None:
    scheduler = wg.diffusion.DDPMWuerstchen()
    even = scheduler.schedule(4)
    assert even == scheduler.of_times([1.0, 0.75, 0.5, 0.25, 0.0])
    assert [row.by_noise > 0 for row in even.rows] == [True, True, True, False]
