"""Whole pipelines against diffusers': the same folder, the same noise, the same pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import webgrad as wg
from tests.diffusers.models import diffusers, drawn, torch, transformers, varied
from webgrad.diffusion.folder import load

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
TOLERANCE = 1e-3
LENGTH = 20
PROMPTS = ["a CAT and an  dog's 12 é!", "dog"]
STABLE = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}
VAE = {
    "block_out_channels": (32, 64),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def tokenizer(folder: Path) -> Any:
    """CLIP's kind of a tokenizer with a few merges."""
    letters = sorted(_byte_letters())
    tokens = [*letters, *(f"{each}</w>" for each in letters)]
    merges = [("c", "a"), ("ca", "t</w>"), ("d", "o"), ("do", "g</w>"), ("a", "n</w>")]
    tokens += [left + right for left, right in merges] + ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in merges), ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    paths = (str(folder / "vocab.json"), str(folder / "merges.txt"))
    return transformers.CLIPTokenizer(*paths, model_max_length=LENGTH)


def _byte_letters() -> list[str]:
    pre_tokenizers: Any = pytest.importorskip("tokenizers").pre_tokenizers
    found: list[str] = pre_tokenizers.ByteLevel.alphabet()
    return found


def text_encoder(name: str, tokens: Any) -> Any:
    ids = {"bos_token_id": tokens.bos_token_id, "eos_token_id": tokens.eos_token_id}
    config = transformers.CLIPTextConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
        projection_dim=16,
        **ids,
    )
    return varied(getattr(transformers, name)(config))


def unet(**more: Any) -> Any:
    sizes = {"sample_size": 16, "block_out_channels": (32, 64)}
    return varied(diffusers.UNet2DConditionModel(**sizes, **more))


def shown(pipeline: Any, noise: Any, device: str, **options: Any) -> Any:
    """The pictures of our pipeline, from 0 to 1."""
    previews = list(pipeline.steps(PROMPTS, noise=wg.asarray(noise.numpy(), device=device), **options))
    assert [each.step for each in previews] == list(range(1, options["steps"] + 1))
    with wg.no_grad():
        values = pipeline.decoded(previews[-1].latents).numpy()
    assert previews[-1].pictures().shape == (2, 32, 32, 3)
    return np.clip(values.transpose(0, 2, 3, 1) / 2 + 0.5, 0, 1)


def stable(folder: Path, kind: str = "StableDiffusionPipeline", **more: Any) -> Any:
    """A small model of diffusers' class of this name, saved to a folder."""
    tokens = tokenizer(folder.with_name("tokens"))
    settings = {"clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1, **STABLE}
    found = getattr(diffusers, kind)(
        varied(diffusers.AutoencoderKL(**VAE)),
        text_encoder("CLIPTextModel", tokens),
        tokens,
        unet(
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=32,
            attention_head_dim=4,
            **more,
        ),
        diffusers.DDIMScheduler(**settings),
        None,
        None,
        requires_safety_checker=False,
    )
    found.set_progress_bar_config(disable=True)
    found.save_pretrained(folder)
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("guidance", "negative"), [(1.0, None), (5.0, ["cat", "an"])])
def test_stable_diffusion(guidance: float, negative: Any, device: str, tmp_path: Path) -> None:
    theirs = stable(tmp_path / "model")
    noise = drawn(2, 4, 16, 16)
    options = {"num_inference_steps": 6, "guidance_scale": guidance, "output_type": "np"}
    wanted = theirs(PROMPTS, negative_prompt=negative, latents=noise, **options).images
    ours = load(tmp_path / "model", device=device)
    ids = theirs.tokenizer(PROMPTS, padding="max_length", max_length=LENGTH, truncation=True).input_ids
    assert ours.encoders[0][0].ids(PROMPTS).tolist() == ids
    found = shown(ours, noise, device, negative=negative, steps=6, guidance=guidance)
    assert np.abs(found - wanted).max() < TOLERANCE


def begun_of(theirs: Any, noise: Any, **options: Any) -> Any:
    """diffusers' pictures that begin with one, of the noise that is given and the likeliest latents of it."""
    module = sys.modules[type(theirs).__module__]
    likeliest = type(theirs.vae.encode(drawn(1, 3, 8, 8)).latent_dist).mode
    with (
        mock.patch.object(module, "randn_tensor", return_value=noise),
        mock.patch.object(module, "retrieve_latents", lambda encoded, **_: likeliest(encoded.latent_dist)),
    ):
        return theirs(PROMPTS, output_type="np", **options).images


def last_shown(pipeline: Any, noise: Any, **options: Any) -> Any:
    """Our pictures after the last step, from 0 to 1."""
    *_, last = pipeline.steps(PROMPTS, noise=wg.asarray(noise.numpy(), device=pipeline.device), **options)
    return np.clip(pipeline.decoded(last.latents).numpy().transpose(0, 2, 3, 1) / 2 + 0.5, 0, 1)


PICTURE = np.random.default_rng(1).random((32, 32, 3), np.float32)
MASK = np.zeros((32, 32), np.float32)
MASK[5:20, 8:27] = 1  # whose edges do not lie on those of latents' places


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_pictures_that_begin_with_one(strength: float, device: str, tmp_path: Path) -> None:
    theirs = stable(tmp_path / "model", "StableDiffusionImg2ImgPipeline")
    noise = drawn(2, 4, 16, 16)
    options = {"num_inference_steps": 6, "guidance_scale": 5.0, "strength": strength}
    wanted = begun_of(theirs, noise, image=PICTURE[None].repeat(2, 0), **options)
    ours = load(tmp_path / "model", device=device)
    found = last_shown(ours, noise, picture=PICTURE, steps=6, guidance=5.0, strength=strength)
    assert np.abs(found - wanted).max() < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("channels", [4, 9])
@pytest.mark.parametrize(("guidance", "strength"), [(1.0, 0.7), (5.0, 0.7), (5.0, 1.0)])
def test_holes(channels: int, guidance: float, strength: float, device: str, tmp_path: Path) -> None:
    theirs = stable(
        tmp_path / "model", "StableDiffusionInpaintPipeline", in_channels=channels, out_channels=4
    )
    noise = drawn(2, 4, 16, 16)
    options = {"num_inference_steps": 6, "guidance_scale": guidance, "strength": strength}
    pictures = {"image": PICTURE[None].repeat(2, 0), "mask_image": MASK[None, :, :, None]}
    wanted = begun_of(theirs, noise, height=32, width=32, **pictures, **options)
    ours = load(tmp_path / "model", device=device)
    given: Any = {"picture": PICTURE, "mask": MASK, "strength": strength}
    found = last_shown(ours, noise, **given, steps=6, guidance=guidance)
    assert np.abs(found - wanted).max() < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
def test_the_xl_class(device: str, tmp_path: Path) -> None:
    tokens = tokenizer(tmp_path / "tokens")
    settings = {"timestep_spacing": "leading", "steps_offset": 1, **STABLE}
    theirs = diffusers.StableDiffusionXLPipeline(
        varied(diffusers.AutoencoderKL(**VAE)),
        text_encoder("CLIPTextModel", tokens),
        text_encoder("CLIPTextModelWithProjection", tokens),
        tokens,
        tokens,
        unet(
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=64,
            attention_head_dim=(2, 4),
            transformer_layers_per_block=(1, 2),
            use_linear_projection=True,
            addition_embed_type="text_time",
            addition_time_embed_dim=8,
            projection_class_embeddings_input_dim=64,
        ),
        diffusers.EulerDiscreteScheduler(**settings),
        add_watermarker=False,
    )
    theirs.set_progress_bar_config(disable=True)
    theirs.save_pretrained(tmp_path / "model")
    noise = drawn(2, 4, 16, 16)
    options = {"num_inference_steps": 5, "guidance_scale": 4.0, "output_type": "np"}
    wanted = theirs(PROMPTS, latents=noise, **options).images
    found = shown(load(tmp_path / "model", device=device), noise, device, steps=5, guidance=4.0)
    assert np.abs(found - wanted).max() < TOLERANCE


def test_pictures_without_a_text(tmp_path: Path) -> None:
    model = diffusers.UNet2DModel(
        sample_size=16,
        block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    diffusers.DDIMPipeline(varied(model), diffusers.DDIMScheduler()).save_pretrained(tmp_path / "model")
    ours = load(tmp_path / "model")
    noise = drawn(2, 3, 16, 16)
    scheduler = diffusers.DDIMScheduler()
    scheduler.set_timesteps(4)
    wanted = noise
    for time in scheduler.timesteps:
        wanted = scheduler.step(model(wanted, time).sample, time, wanted).prev_sample
    last = list(ours.steps(2, steps=4, noise=wg.asarray(noise.numpy())))[-1]
    assert np.abs(last.latents.numpy() - wanted.numpy()).max() < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_saved_is_read_by_diffusers(device: str, tmp_path: Path) -> None:
    wg.random.seed(2)
    config = wg.diffusion.UNet2DConfig(
        sample_size=12,
        in_channels=1,
        out_channels=1,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=8,
        num_class_embeds=3,
    )
    unet = wg.diffusion.UNet2D(config).eval().to(device=device)
    ours = wg.diffusion.Unconditional(unet, wg.diffusion.FlowMatching(shift=2.0), ["cat", "dog"])
    wg.diffusion.save(ours, tmp_path / "model")
    theirs = diffusers.DDPMPipeline.from_pretrained(tmp_path / "model")
    assert isinstance(theirs.scheduler, diffusers.FlowMatchEulerDiscreteScheduler)
    theirs.scheduler.set_timesteps(4)
    noise = drawn(2, 1, 12, 12)
    wanted = noise
    for time in theirs.scheduler.timesteps:
        plain, named = (theirs.unet(wanted, time, torch.tensor(each)).sample for each in ([2, 2], [0, 1]))
        wanted = theirs.scheduler.step(plain + 3.0 * (named - plain), time, wanted).prev_sample
    options: Any = {"classes": ["cat", "dog"], "guidance": 3.0, "steps": 4}
    last = list(ours.steps(2, noise=wg.asarray(noise.numpy(), device=device), **options))[-1]
    assert np.abs(last.latents.numpy() - wanted.numpy()).max() < TOLERANCE
