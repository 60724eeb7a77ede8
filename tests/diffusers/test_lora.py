"""LoRA files of every kind of names against what diffusers makes of them: the same pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.diffusers.models import diffusers, drawn, on, torch, varied
from tests.diffusers.test_pipelines import LENGTH, STABLE, VAE, text_encoder, tokenizer, unet
from webgrad.diffusion.folder import load
from webgrad.diffusion.older_names import older_paths

pytest.importorskip("peft", reason="peft is not installed: `make test-diffusers` runs these")
save_file: Any = pytest.importorskip("safetensors.torch").save_file
TOLERANCE = 1e-4
RANK = 2
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
XL = {
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "cross_attention_dim": 64,
    "attention_head_dim": (2, 4),
    "transformer_layers_per_block": (1, 2),
    "use_linear_projection": True,
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 64,
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Stable Diffusion, small, and its folder."""
    home = tmp_path_factory.mktemp("plain")
    tokens = tokenizer(home / "tokens")
    pipe = diffusers.StableDiffusionPipeline(
        varied(diffusers.AutoencoderKL(**VAE)),
        text_encoder("CLIPTextModel", tokens),
        tokens,
        unet(
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=32,
            attention_head_dim=4,
        ),
        diffusers.DDIMScheduler(clip_sample=False, **STABLE),
        None,
        None,
        requires_safety_checker=False,
    )
    return saved(pipe, home)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The XL class, small, and its folder."""
    home = tmp_path_factory.mktemp("large")
    tokens = tokenizer(home / "tokens")
    pipe = diffusers.StableDiffusionXLPipeline(
        varied(diffusers.AutoencoderKL(**VAE)),
        text_encoder("CLIPTextModel", tokens),
        text_encoder("CLIPTextModelWithProjection", tokens),
        tokens,
        tokens,
        unet(**XL),
        diffusers.DDIMScheduler(clip_sample=False, **STABLE),
        add_watermarker=False,
    )
    return saved(pipe, home)


def saved(pipe: Any, home: Path) -> Any:
    pipe.set_progress_bar_config(disable=True)
    pipe.save_pretrained(home / "model")
    return pipe, home / "model"


def layers(model: Any, words: tuple[str, ...]) -> dict[str, Any]:
    """Weights whose layers' names end with one of these words."""
    found = {name: each for name, each in model.named_modules() if hasattr(each, "weight")}
    return {name: each.weight for name, each in found.items() if name.endswith(words)}


def pair(weight: Any, seed: int, rank: int = RANK) -> tuple[Any, Any]:
    """Random matrices down and up, of convolutions as kernels."""
    down = 0.2 * drawn(rank, *weight.shape[1:], seed=seed)
    return down, 0.2 * drawn(weight.shape[0], rank, *[1] * (weight.ndim - 2), seed=seed + 1)


ATTENTION = ("to_q", "to_k", "to_v", "to_out.0")
TEXT = ("q_proj", "k_proj", "v_proj", "out_proj")


def of_peft(pipe: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    words = (*ATTENTION, "ff.net.2", "proj_in", "conv1", "conv_shortcut", "time_emb_proj")
    for part, kinds in (("unet", words), ("text_encoder", (*TEXT, "fc1"))):
        for at, (name, weight) in enumerate(layers(getattr(pipe, part), kinds).items()):
            down, up = pair(weight, 2 * at, rank=RANK + at % 2)
            found[f"{part}.{_published(part, name)}.lora_A.weight"] = down
            found[f"{part}.{_published(part, name)}.lora_B.weight"] = up
    return found


def _published(part: str, name: str) -> str:
    """transformers has called a text encoder's layers by a name more until now."""
    inner = part.startswith("text_encoder") and not name.startswith("text_model.")
    return f"text_model.{name}" if inner else name


def of_processors(pipe: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for at, (name, weight) in enumerate(layers(pipe.unet, ATTENTION).items()):
        above, word = name.replace("to_out.0", "to_out").rsplit(".", 1)
        for which, value in zip(("down", "up"), pair(weight, 2 * at), strict=True):
            found[f"unet.{above}.processor.{word}_lora.{which}.weight"] = value
    for at, (name, weight) in enumerate(layers(pipe.text_encoder, TEXT).items()):
        for which, value in zip(("down", "up"), pair(weight, 2 * at), strict=True):
            inner = _published("text_encoder", name)
            found[f"text_encoder.{inner}.lora_linear_layer.{which}.weight"] = value
    return found


def of_kohya(pipe: Any, *, alpha: float = 1.0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    words = (*ATTENTION, "ff.net.0.proj", "ff.net.2", "proj_in", "proj_out")
    rows = (("unet", "lora_unet", words), ("text_encoder", "lora_te", (*TEXT, "fc2")))
    for part, prefix, kinds in rows:
        for at, (name, weight) in enumerate(layers(getattr(pipe, part), kinds).items()):
            flat = f"{prefix}_{_published(part, name).replace('.', '_')}"
            down, up = pair(weight, 2 * at)
            found |= {f"{flat}.lora_down.weight": down, f"{flat}.lora_up.weight": up}
            found[f"{flat}.alpha"] = torch.tensor(alpha)
    return found


def of_first_networks(pipe: Any) -> dict[str, Any]:
    """As for the XL class, by the names of the networks that were before diffusers'."""
    names = {f"{name}.weight": None for name in layers(pipe.unet, ("",))}
    found: dict[str, Any] = {}
    for at, (name, weight) in enumerate(layers(pipe.unet, (*ATTENTION, "ff.net.2")).items()):
        flat = f"lora_unet_{next(older_paths(name, names)).replace('.', '_')}"
        down, up = pair(weight, 2 * at)
        found |= {f"{flat}.lora_down.weight": down, f"{flat}.lora_up.weight": up}
        found[f"{flat}.alpha"] = torch.tensor(4.0)
    for number, part in enumerate(("text_encoder", "text_encoder_2"), 1):
        for at, (name, weight) in enumerate(layers(getattr(pipe, part), TEXT).items()):
            flat = f"lora_te{number}_{_published(part, name).replace('.', '_')}"
            down, up = pair(weight, 2 * at + number)
            found |= {f"{flat}.lora_down.weight": down, f"{flat}.lora_up.weight": up}
            found[f"{flat}.alpha"] = torch.tensor(1.0)
    return found


def pictures(pipe: Any, noise: Any) -> Any:
    options = {"num_inference_steps": 2, "guidance_scale": 1.0, "output_type": "latent"}
    return pipe("a cat", latents=noise, **options).images.numpy()


def ours(folder: Path, lora: Any, noise: Any, device: str = "cpu") -> Any:
    pipe = load(folder, device=device, lora=lora)
    last = list(pipe.steps("a cat", steps=2, guidance=1.0, noise=on(noise, device)))[-1]
    return last.latents.numpy()


KINDS = {"peft": of_peft, "processors": of_processors, "kohya": of_kohya}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_by_each_kind_of_names(name: str, plain: Any, tmp_path: Path) -> None:
    pipe, folder = plain
    assert pipe.tokenizer.model_max_length == LENGTH
    file, noise = tmp_path / "lora.safetensors", drawn(1, 4, 16, 16)
    save_file({key: value.contiguous() for key, value in KINDS[name](pipe).items()}, file)
    before = pictures(pipe, noise)
    pipe.load_lora_weights(str(tmp_path), weight_name=file.name)
    wanted = pictures(pipe, noise)
    pipe.unload_lora_weights()
    largest = np.abs(wanted).max()
    assert np.abs(wanted - before).max() > 100 * TOLERANCE * largest
    assert np.abs(ours(folder, file, noise) - wanted).max() < TOLERANCE * largest


def test_the_names_of_the_first_networks(large: Any, tmp_path: Path) -> None:
    pipe, folder = large
    file, noise = tmp_path / "lora.safetensors", drawn(1, 4, 16, 16)
    save_file({key: value.contiguous() for key, value in of_first_networks(pipe).items()}, file)
    before = pictures(pipe, noise)
    pipe.load_lora_weights(str(tmp_path), weight_name=file.name)
    wanted = pictures(pipe, noise)
    pipe.unload_lora_weights()
    largest = np.abs(wanted).max()
    assert np.abs(wanted - before).max() > 100 * TOLERANCE * largest
    assert np.abs(ours(folder, file, noise) - wanted).max() < TOLERANCE * largest


def test_two_files_that_count_differently(plain: Any, tmp_path: Path) -> None:
    pipe, folder = plain
    first, second, noise = tmp_path / "a.safetensors", tmp_path / "b.safetensors", drawn(1, 4, 16, 16)
    save_file(of_peft(pipe), first)
    save_file(of_kohya(pipe, alpha=3.0), second)
    for name, file in (("a", first), ("b", second)):
        pipe.load_lora_weights(str(tmp_path), weight_name=file.name, adapter_name=name)
    pipe.set_adapters(["a", "b"], [0.5, 1.25])
    wanted = pictures(pipe, noise)
    pipe.unload_lora_weights()
    found = ours(folder, [(first, 0.5), (second, 1.25)], noise)
    assert np.abs(found - wanted).max() < TOLERANCE * np.abs(wanted).max()


def test_what_peft_was_trained_with_is_written_beside_the_tensors(plain: Any, tmp_path: Path) -> None:
    """Alphas are not among the tensors then."""
    peft: Any = pytest.importorskip("peft")
    pipe, folder = plain
    words = list(ATTENTION)
    config = peft.LoraConfig(r=4, lora_alpha=6, target_modules=words, alpha_pattern={"attn1.to_q": 3})
    pipe.unet.add_adapter(config)
    for name, each in pipe.unet.named_parameters():
        if "lora_B" in name:
            each.copy_(0.2 * drawn(*each.shape, seed=len(name)))
    state, noise = peft.get_peft_model_state_dict(pipe.unet), drawn(1, 4, 16, 16)
    told = {name: getattr(config, name) for name in ("r", "lora_alpha", "alpha_pattern", "target_modules")}
    told["target_modules"] = words
    diffusers.StableDiffusionPipeline.save_lora_weights(tmp_path, state, unet_lora_adapter_metadata=told)
    wanted = pictures(pipe, noise)
    pipe.unet.delete_adapters("default")
    pipe.unload_lora_weights()
    found = ours(folder, tmp_path, noise)
    assert np.abs(found - wanted).max() < TOLERANCE * np.abs(wanted).max()


@pytest.mark.gpu
def test_on_a_gpu_the_same_is_merged(plain: Any, tmp_path: Path) -> None:
    pipe, folder = plain
    file, noise = tmp_path / "lora.safetensors", drawn(1, 4, 16, 16)
    save_file(of_peft(pipe), file)
    wanted = ours(folder, file, noise)
    assert np.abs(ours(folder, file, noise, "webgpu:0") - wanted).max() < TOLERANCE * np.abs(wanted).max()
