"""Every part against diffusers and transformers, with random weights, from the folders that these write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from tests.diffusers.models import difference, diffusers, drawn, on, saved, torch, transformers, varied
from webgrad.diffusion.autoencoders import decode_tiles
from webgrad.diffusion.parts import load_part

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
TOLERANCE = 1e-4
STEPS = torch.tensor([3, 500])

UNETS: dict[str, dict[str, Any]] = {
    "plain": {
        "sample_size": 16,
        "block_out_channels": (32, 64, 64),
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    },
    "of classes": {
        "block_out_channels": (32, 64),
        "down_block_types": ("AttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "AttnUpBlock2D"),
        "time_embedding_type": "fourier",
        "resnet_time_scale_shift": "scale_shift",
        "num_class_embeds": 5,
        "downsample_padding": 0,
        "mid_block_scale_factor": 1.4,
    },
    "one head": {
        "block_out_channels": (32, 64),
        "down_block_types": ("AttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "AttnUpBlock2D"),
        "attention_head_dim": None,
        "class_embed_type": "timestep",
        "center_input_sample": True,
        "flip_sin_to_cos": False,
        "freq_shift": 1,
        "add_attention": False,
    },
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", UNETS)
@wg.no_grad()
def test_unets(name: str, device: str, tmp_path: Path) -> None:
    model = varied(diffusers.UNet2DModel(**UNETS[name]))
    ours = load_part(saved(model, tmp_path), "UNet2DModel", device=device)
    x, classes = drawn(2, 3, 16, 16), torch.tensor([1, 4])
    if "class" not in str(UNETS[name]):
        assert difference(ours(on(x, device), on(STEPS, device)), model(x, STEPS).sample) < TOLERANCE
        return
    found = ours(on(x, device), on(STEPS, device), on(classes, device))
    assert difference(found, model(x, STEPS, classes).sample) < TOLERANCE


CONDITIONED: dict[str, dict[str, Any]] = {
    "1.5": {
        "block_out_channels": (32, 64),
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
        "cross_attention_dim": 24,
        "attention_head_dim": 4,
    },
    "XL": {
        "block_out_channels": (32, 64, 64),
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 24,
        "attention_head_dim": (2, 4, 8),
        "transformer_layers_per_block": (1, 2, 3),
        "use_linear_projection": True,
        "addition_embed_type": "text_time",
        "addition_time_embed_dim": 8,
        "projection_class_embeddings_input_dim": 64,
    },
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CONDITIONED)
@wg.no_grad()
def test_unets_with_a_context(name: str, device: str, tmp_path: Path) -> None:
    """Of odd sizes, which go down and up again to what they were."""
    model = varied(diffusers.UNet2DConditionModel(**CONDITIONED[name]))
    ours = load_part(saved(model, tmp_path), "UNet2DConditionModel", device=device)
    x, context = drawn(2, 4, 14, 18), drawn(2, 7, 24, seed=1)
    theirs, more = {}, {}
    if name == "XL":
        pooled, sizes = drawn(2, 16, seed=2), torch.tensor([[512.0, 512, 0, 0, 512, 512], [9, 8, 7, 6, 5, 4]])
        theirs["added_cond_kwargs"] = {"text_embeds": pooled, "time_ids": sizes}
        more = {"pooled": on(pooled, device), "sizes": on(sizes, device)}
    found = ours(on(x, device), on(STEPS, device), on(context, device), **more)
    assert difference(found, model(x, STEPS, context, **theirs).sample) < TOLERANCE


TWO_BLOCKS = {
    "block_out_channels": (32, 64),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
}


@pytest.mark.parametrize("device", DEVICES)
@wg.no_grad()
def test_autoencoder(device: str, tmp_path: Path) -> None:
    model = varied(diffusers.AutoencoderKL(**TWO_BLOCKS, layers_per_block=2))
    ours = load_part(saved(model, tmp_path), "AutoencoderKL", device=device)
    x = drawn(2, 3, 32, 24)
    latents = model.encode(x).latent_dist
    found = ours.encode(on(x, device))
    assert difference(found.mean, latents.mean) < TOLERANCE
    assert difference(found.log_variance, latents.logvar) < TOLERANCE
    assert difference(ours.decode(on(latents.mean, device)), model.decode(latents.mean).sample) < TOLERANCE


@wg.no_grad()
def test_tiles_are_the_whole_where_a_decoder_sees_no_further(tmp_path: Path) -> None:
    sizes = {"encoder_block_out_channels": (8, 8), "decoder_block_out_channels": (8, 8)}
    counts = {"num_encoder_blocks": (1, 1), "num_decoder_blocks": (0, 0)}
    model = varied(diffusers.AutoencoderTiny(**sizes, **counts))
    ours: Any = load_part(saved(model, tmp_path), "AutoencoderTiny")
    latents = wg.asarray(drawn(1, 4, 40, 23).numpy())
    inner = (slice(None), slice(None), slice(8, -8), slice(8, -8))
    whole, parts = ours.decode(latents).numpy(), decode_tiles(ours, latents, 20).numpy()
    assert parts.shape == whole.shape
    assert abs(parts - whole)[inner].mean() < 0.02 * abs(whole).mean()


@pytest.mark.parametrize("device", DEVICES)
@wg.no_grad()
def test_code_book(device: str, tmp_path: Path) -> None:
    model = varied(diffusers.VQModel(**TWO_BLOCKS, num_vq_embeddings=16))
    model.quantize.embedding.weight.normal_(generator=torch.Generator().manual_seed(3))
    ours: Any = load_part(saved(model, tmp_path), "VQModel", device=device)
    x = drawn(2, 3, 32, 24)
    latents = model.encode(x).latents
    assert difference(ours.encode(on(x, device)), latents) < TOLERANCE
    assert difference(ours.decode(on(latents, device)), model.decode(latents).sample) < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
@wg.no_grad()
def test_tiny_autoencoder(device: str, tmp_path: Path) -> None:
    sizes = {"encoder_block_out_channels": (8, 8, 8), "decoder_block_out_channels": (8, 8, 8)}
    counts = {"num_encoder_blocks": (1, 2, 2), "num_decoder_blocks": (2, 2, 1)}
    model = varied(diffusers.AutoencoderTiny(**sizes, **counts))
    ours: Any = load_part(saved(model, tmp_path), "AutoencoderTiny", device=device)
    x = drawn(2, 3, 32, 24)
    latents = model.encode(x).latents
    assert difference(ours.encode(on(x, device)), latents) < TOLERANCE
    assert difference(ours.decode(on(latents, device)), model.decode(latents).sample) < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["CLIPTextModel", "CLIPTextModelWithProjection"])
@wg.no_grad()
def test_clip(name: str, device: str, tmp_path: Path) -> None:
    config = transformers.CLIPTextConfig(
        vocab_size=100,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=20,
        projection_dim=16,
        eos_token_id=99,
        bos_token_id=98,
    )
    model = varied(getattr(transformers, name)(config))
    ours = load_part(saved(model, tmp_path), name, device=device)
    ids = torch.randint(0, 98, (2, 20), generator=torch.Generator().manual_seed(0))
    ids[0, 7:], ids[1, 19] = 99, 99
    theirs, found = model(ids, output_hidden_states=True), ours(on(ids, device))
    pooled = theirs.text_embeds if "Projection" in name else theirs.pooler_output
    assert difference(found.last, theirs.last_hidden_state) < TOLERANCE
    assert difference(found.pooled, pooled) < TOLERANCE
    assert difference(found.every[-2], theirs.hidden_states[-2]) < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["relu", "gated-gelu"])
@wg.no_grad()
def test_t5(kind: str, device: str, tmp_path: Path) -> None:
    config = transformers.T5Config(
        vocab_size=100,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=3,
        num_heads=4,
        feed_forward_proj=kind,
    )
    model = varied(transformers.T5EncoderModel(config))
    ours = load_part(saved(model, tmp_path), "T5EncoderModel", device=device)
    ids = torch.randint(0, 100, (2, 150), generator=torch.Generator().manual_seed(0))
    seen = (torch.arange(150)[None] < torch.tensor([[150], [13]])).long()
    theirs = model(ids, attention_mask=seen).last_hidden_state
    assert difference(ours(on(ids, device), on(seen, device)), theirs) < TOLERANCE
