"""Stable Diffusion: pictures to begin with and holes of them, and what is refused by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusion.test_transformers import TINY
from webgrad.diffusion.autoencoders import AutoencoderTiny
from webgrad.diffusion.prompts import Prompts
from webgrad.diffusion.text_encoders import CLIPText, CLIPTextConfig

TEXT = CLIPTextConfig(
    vocab_size=50,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=8,
    eos_token_id=49,
)
PICTURE = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
HOLE = np.zeros((16, 16), np.uint8)
HOLE[:, 8:] = 1


def pipeline(channels: int = 4) -> wg.diffusion.StableDiffusion:
    wg.random.seed(0)
    engine = SimpleNamespace(encode=lambda text, **_: SimpleNamespace(ids=[ord(each) % 47 for each in text]))
    config = wg.diffusion.UNet2DConditionConfig(
        sample_size=8,
        in_channels=channels,
        block_out_channels=(8, 16),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=2,
        cross_attention_dim=16,
    )
    return wg.diffusion.StableDiffusion(
        wg.diffusion.UNet2DCondition(config).eval(),
        AutoencoderTiny(TINY).eval(),
        [(Prompts(engine, 8, 48, 49, 49), CLIPText(TEXT).eval())],
        wg.diffusion.DDIM(clip_sample=False, timestep_spacing="trailing"),
    )


def last_latents(pipe: wg.diffusion.StableDiffusion, prompt: Any = "a hen", **options: Any) -> Any:
    *_, last = pipe.steps(prompt, seed=0, steps=2, **options)
    return last.latents.numpy()


def test_a_picture_to_begin_with_is_left_the_less_the_more_is_made_anew() -> None:
    pipe = pipeline()
    original = last_latents(pipe, picture=PICTURE, mask=HOLE * 0)
    near, far = (last_latents(pipe, picture=PICTURE, strength=each) for each in (0.1, 1.0))
    assert 0 < np.abs(near - original).mean() < np.abs(far - original).mean()


@pytest.mark.parametrize("mask", [HOLE, HOLE * 255, HOLE > 0, HOLE.astype(np.float32), HOLE[:, :, None]])
def test_what_is_outside_of_a_hole_stays(mask: Any) -> None:
    pipe = pipeline()
    original, whole, found = (
        last_latents(pipe, picture=PICTURE, mask=each) for each in (HOLE * 0, HOLE * 0 + 1, mask)
    )
    np.testing.assert_allclose(found[..., :4], original[..., :4], atol=1e-6)
    assert (found[..., 4:] != original[..., 4:]).all()
    assert (whole[..., :4] != original[..., :4]).all()


@pytest.mark.parametrize("guidance", [1.0, 3.0])
def test_networks_that_fill_holes_are_told_what_is_around(guidance: float) -> None:
    pipe, prompts = pipeline(9), ["a hen", "a cow"]
    options: dict[str, Any] = {"guidance": guidance, "mask": HOLE, "strength": 1.0}
    found = last_latents(pipe, prompts, picture=PICTURE, **options)
    around, inside = PICTURE.copy(), PICTURE.copy()
    around[:, :8] //= 2
    inside[:, 8:] //= 2
    assert (last_latents(pipe, prompts, picture=inside, **options) == found).all()
    assert (last_latents(pipe, prompts, picture=around, **options) != found).any()
    assert "1 captured" in repr(pipe._denoiser._step)


@pytest.mark.parametrize(("channels", "given"), [(9, {}), (9, {"picture": PICTURE}), (4, {"mask": HOLE})])
def test_a_hole_is_one_of_a_picture(channels: int, given: dict[str, Any]) -> None:
    with pytest.raises(wg.ArgumentError, match=r"give picture= (too|and mask=)"):
        pipeline(channels)("a hen", steps=1, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"negative": "rain", "guidance": 1.0}, "negative= counts with guidance above 1, and it is 1"),
        ({"strength": 0.5}, "strength= says .* give picture= too"),
        ({"strength": 1.5, "picture": PICTURE}, "strength is a number from 0 to 1, not 1.5"),
        ({"strength": float("nan"), "picture": PICTURE}, "from 0 to 1, not nan"),
        ({"guidance": float("nan")}, "guidance is a number, not nan"),
        ({"size": 16}, r"size is \(height, width\), not 16"),
        ({"size": (16.0, 16)}, "a picture's height is a whole number above 0, not 16.0"),
        ({"prompt": []}, r"a prompt is a text, or several of them, not \[\]"),
        ({"prompt": ["a", 1]}, "a prompt is a text"),
        ({"prompt": 1}, "a prompt is a text"),
    ],
)
def test_what_would_change_nothing_or_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(wg.ArgumentError, match=message):
        pipeline()(**{"prompt": "a hen", "steps": 1, **given})
