"""Diffusion models of full width and a few layers: `python -m scripts.full_size_diffusion [NAME …]`.

In: a name of `MODELS`. Out: a folder in the cache of tests, once for all: the model with random weights in
float16, as diffusers writes it, and reference.npz with what diffusers makes of it in float32, the network's
prediction and a picture of 256 × 256. Widths, heads and sizes of contexts are those of the published models;
layers and the tokenizer's words are few. Runs where diffusers is installed, see `make test-diffusers`.
"""

from __future__ import annotations

import gc
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts.adapter import cache_folder
from tests.diffusers.models import diffusers, drawn, torch, transformers, varied
from tests.diffusers.test_pipelines import STABLE, tokenizer
from tests.diffusers.test_transformers import tokenizer as t5_tokenizer

__all__ = ["MODELS", "PROMPT", "STEPS", "main", "model"]

VERSION = 1  # of what is written: another one is written anew
PROMPT = "a cat and a dog"
STEPS, TIME = 2, 481
SIDE = 32  # of the latents
VAE = {
    "block_out_channels": (128, 256, 512, 512),
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "layers_per_block": 1,
    "sample_size": 256,
}


@dataclass(frozen=True)
class Model:
    """How a folder is made, what its network is given, and how much a prompt counts."""

    make: Callable[[Path], Any]
    inputs: Callable[[], dict[str, Any]]
    network: str
    guidance: float
    options: Mapping[str, Any]


def _clip(name: str, tokens: Any, **sizes: int) -> Any:
    config = transformers.CLIPTextConfig(
        num_hidden_layers=2, bos_token_id=tokens.bos_token_id, eos_token_id=tokens.eos_token_id, **sizes
    )
    return varied(getattr(transformers, name)(config))


SMALLER = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "projection_dim": 768}
LARGER = {"hidden_size": 1280, "intermediate_size": 5120, "num_attention_heads": 20, "projection_dim": 1280}


def _stable_diffusion(folder: Path) -> Any:
    """Stable Diffusion 1.5, with the scheduler of its own folder."""
    tokens = tokenizer(folder)
    unet = diffusers.UNet2DConditionModel(cross_attention_dim=768, layers_per_block=1, sample_size=SIDE)
    scheduler = diffusers.PNDMScheduler(skip_prk_steps=True, steps_offset=1, **STABLE)
    return diffusers.StableDiffusionPipeline(
        varied(diffusers.AutoencoderKL(**VAE)),
        _clip("CLIPTextModel", tokens, **SMALLER),
        tokens,
        varied(unet),
        scheduler,
        None,
        None,
        requires_safety_checker=False,
    )


def _large(folder: Path) -> Any:
    """The XL class."""
    tokens = tokenizer(folder)
    unet = diffusers.UNet2DConditionModel(
        sample_size=SIDE,
        block_out_channels=(320, 640, 1280),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        transformer_layers_per_block=(1, 1, 2),
        attention_head_dim=(5, 10, 20),
        cross_attention_dim=2048,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=256,
        projection_class_embeddings_input_dim=2816,
    )
    return diffusers.StableDiffusionXLPipeline(
        varied(diffusers.AutoencoderKL(**VAE, scaling_factor=0.13025)),
        _clip("CLIPTextModel", tokens, **SMALLER),
        _clip("CLIPTextModelWithProjection", tokens, **LARGER),
        tokens,
        tokens,
        varied(unet),
        diffusers.EulerDiscreteScheduler(timestep_spacing="leading", steps_offset=1, **STABLE),
        add_watermarker=False,
    )


def _pixart(folder: Path) -> Any:
    """PixArt alpha, which is told resolutions; T5 of the largest size."""
    tokens = t5_tokenizer(folder)
    encoder = transformers.T5Config(
        d_model=4096, d_kv=64, d_ff=10240, num_heads=64, num_layers=1, feed_forward_proj="gated-gelu"
    )
    transformer = diffusers.PixArtTransformer2DModel(
        num_layers=3, caption_channels=4096, use_additional_conditions=True
    )
    return diffusers.PixArtAlphaPipeline(
        tokens,
        varied(transformers.T5EncoderModel(encoder)),
        varied(diffusers.AutoencoderKL(**VAE)),
        varied(transformer),
        diffusers.DPMSolverMultistepScheduler(),
    )


def _context(width: int, *, length: int = 77) -> dict[str, Any]:
    return {"context": drawn(1, length, width, seed=1)}


def _of_large() -> dict[str, Any]:
    sizes = torch.tensor([[256.0, 256, 0, 0, 256, 256]])
    return {**_context(2048), "pooled": drawn(1, 1280, seed=2), "sizes": sizes}


def _of_pixart() -> dict[str, Any]:
    seen = (torch.arange(120) < 11)[None, None, None]
    return {**_context(4096, length=120), "seen": seen, "sizes": torch.tensor([[256.0, 256.0]])}


_WITHOUT_BINS = {"height": 256, "width": 256, "use_resolution_binning": False, "clean_caption": False}
MODELS: Mapping[str, Model] = {
    "stable-diffusion-1.5": Model(_stable_diffusion, lambda: _context(768), "unet", 7.5, {}),
    "stable-diffusion-xl": Model(_large, _of_large, "unet", 5.0, {}),
    "pixart-alpha": Model(_pixart, _of_pixart, "transformer", 4.5, _WITHOUT_BINS),
}


def model(name: str) -> Path:
    """The folder of a model, written where it is not there yet."""
    folder = cache_folder() / "diffusion" / f"{name}-{VERSION}"
    if not (folder / "reference.npz").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _write(MODELS[name], folder)
    return folder


def _write(row: Model, folder: Path) -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as home:
        pipe = row.make(Path(home) / "tokens")
    pipe.set_progress_bar_config(disable=True)
    pipe.to(torch.float16)
    pipe.save_pretrained(folder)
    pipe.to(torch.float32)  # of the numbers that were written
    x, inputs = drawn(1, 4, SIDE, SIDE), row.inputs()
    prediction = _predicted(getattr(pipe, row.network), x, inputs)
    options = {"num_inference_steps": STEPS, "guidance_scale": row.guidance, "output_type": "np"}
    picture = pipe(PROMPT, latents=x, **options, **row.options).images
    del pipe
    gc.collect()
    given = {name: each.numpy() for name, each in inputs.items()}
    np.savez(folder / "reference.npz", x=x.numpy(), prediction=prediction, picture=picture, **given)


def _predicted(network: Any, x: Any, inputs: Mapping[str, Any]) -> Any:
    """By diffusers' names of what ours is given."""
    given = {"timestep": torch.tensor([TIME]), "encoder_hidden_states": inputs["context"]}
    if "pooled" in inputs:
        given["added_cond_kwargs"] = {"text_embeds": inputs["pooled"], "time_ids": inputs["sizes"]}
    if "seen" in inputs:
        sizes = inputs["sizes"]
        given["added_cond_kwargs"] = {"resolution": sizes, "aspect_ratio": sizes[:, :1] / sizes[:, 1:]}
        given["encoder_attention_mask"] = inputs["seen"][:, 0, 0].float()
    return network(x, **given).sample.numpy()


def main(names: Sequence[str]) -> int:
    """Write the models of these names, or all of them."""
    for name in names or MODELS:
        print(model(name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
