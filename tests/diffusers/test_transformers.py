"""DiT and PixArt against diffusers': the networks, from the folders that it writes, and the pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusers.models import difference, diffusers, drawn, on, saved, torch, transformers, varied
from tests.diffusers.test_pipelines import DEVICES, PROMPTS, STABLE, TOLERANCE, VAE, shown
from webgrad.diffusion.folder import load
from webgrad.diffusion.parts import load_part
from webgrad.diffusion.prompts import Prompts

PART_TOLERANCE = 1e-4
STEPS = torch.tensor([3, 500])
SMALL = {"num_attention_heads": 2, "attention_head_dim": 12, "num_layers": 2, "sample_size": 16}
OF_CLASSES = {"norm_type": "ada_norm_zero", "num_embeds_ada_norm": 5, "in_channels": 4}
OLDER = {
    "patch_size": 2,
    "attention_bias": True,
    "activation_fn": "gelu-approximate",
    "norm_elementwise_affine": False,
    "norm_type": "ada_norm_single",
    "in_channels": 4,
}
OF_A_TEXT = {"cross_attention_dim": 24, "caption_channels": 20, "use_additional_conditions": False}
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["DiTTransformer2DModel", "Transformer2DModel"])
@wg.no_grad()
def test_dit(name: str, device: str, tmp_path: Path) -> None:
    """The older class has places of another scale where pictures are large."""
    older = name == "Transformer2DModel"
    settings = {**OLDER, **SMALL, "sample_size": 128} if older else {**SMALL, "out_channels": 8}
    model = varied(getattr(diffusers, name)(**{**settings, **OF_CLASSES}))
    ours = load_part(saved(model, tmp_path), name, device=device)
    x, classes = drawn(2, 4, 8, 8), torch.tensor([1, 5])
    wanted = model(x, timestep=STEPS, class_labels=classes).sample
    assert difference(ours(on(x, device), on(STEPS, device), on(classes, device)), wanted) < PART_TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["alpha", "sigma", "older"])
@wg.no_grad()
def test_pixart(kind: str, device: str, tmp_path: Path) -> None:
    """Pictures that are not square, and texts of several lengths."""
    name = "Transformer2DModel" if kind == "older" else "PixArtTransformer2DModel"
    settings: dict[str, Any] = {**OF_A_TEXT, **SMALL}
    if kind == "sigma":
        settings |= {"interpolation_scale": 2, "sample_size": 32}
    else:
        settings |= {"use_additional_conditions": None, "sample_size": 128}
    model = varied(getattr(diffusers, name)(**({**OLDER, **settings} if kind == "older" else settings)))
    ours = load_part(saved(model, tmp_path), name, device=device)
    x, context = drawn(2, 4, 12, 20), drawn(2, 7, 20, seed=1)
    seen = torch.arange(7)[None] < torch.tensor([[7], [3]])
    sizes = torch.tensor([[1024.0, 512.0], [96.0, 160.0]])
    told = {"resolution": sizes, "aspect_ratio": sizes[:, :1] / sizes[:, 1:]}
    takes = kind != "sigma"
    wanted = model(
        x,
        encoder_hidden_states=context,
        timestep=STEPS,
        added_cond_kwargs=told if takes else {"resolution": None, "aspect_ratio": None},
        encoder_attention_mask=seen.float(),
    ).sample
    found = ours(
        on(x, device),
        on(STEPS, device),
        on(context, device),
        seen=on(seen[:, None, None], device),
        sizes=on(sizes, device) if takes else None,
    )
    assert difference(found, wanted) < PART_TOLERANCE


def tokenizer(folder: Path) -> Any:
    """T5's kind of a tokenizer, of a few words, out of a file of SentencePiece."""
    trainer: Any = pytest.importorskip("sentencepiece").SentencePieceTrainer
    folder.mkdir()
    text = folder / "text.txt"
    text.write_text("a cat and an dog's 12\ndog cat nothing of it\n" * 50, encoding="utf-8")
    trainer.train(
        input=str(text),
        model_prefix=str(folder / "spiece"),
        model_type="unigram",
        vocab_size=45,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    text.unlink()
    return transformers.T5Tokenizer.from_pretrained(folder, extra_ids=3)


def text_encoder(tokens: Any) -> Any:
    config = transformers.T5Config(
        vocab_size=len(tokens),
        d_model=20,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        feed_forward_proj="gated-gelu",
    )
    return varied(transformers.T5EncoderModel(config))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("kind", "guidance"), [("Alpha", 4.5), ("Sigma", 1.0), ("Sigma", 3.0)])
def test_pixart_pipelines(kind: str, guidance: float, device: str, tmp_path: Path) -> None:
    tokens = tokenizer(tmp_path / "tokens")
    settings = {**SMALL, **OF_A_TEXT, "sample_size": 128 if kind == "Alpha" else 16}
    if kind == "Alpha":
        settings["use_additional_conditions"] = True
    theirs = getattr(diffusers, f"PixArt{kind}Pipeline")(
        tokens,
        text_encoder(tokens),
        varied(diffusers.AutoencoderKL(**VAE)),
        varied(diffusers.PixArtTransformer2DModel(**settings)),
        diffusers.DPMSolverMultistepScheduler(),
    )
    theirs.set_progress_bar_config(disable=True)
    theirs.save_pretrained(tmp_path / "model")
    noise, negative = drawn(2, 4, 16, 16), "an dog" if guidance > 1 else None
    wanted = theirs(
        PROMPTS,
        latents=noise,
        negative_prompt=negative,
        num_inference_steps=5,
        guidance_scale=guidance,
        height=32,
        width=32,
        use_resolution_binning=False,
        clean_caption=False,
        output_type="np",
    ).images
    ours = load(tmp_path / "model", device=device)
    small = [each.lower().strip() for each in PROMPTS]
    length = 120 if kind == "Alpha" else 300
    given = tokens(small, padding="max_length", max_length=length, truncation=True)
    ids, seen = ours.prompts.tokens(small)
    assert ids.tolist() == given.input_ids
    assert seen.astype(int).tolist() == given.attention_mask
    options: dict[str, Any] = {"steps": 5, "guidance": guidance, "size": (32, 32)}
    found = shown(ours, noise, device, negative=negative, **options)
    assert np.abs(found - wanted).max() < TOLERANCE


def test_a_folder_with_nothing_but_a_file_of_sentencepiece(tmp_path: Path) -> None:
    """As the published ones are, written before there was tokenizer.json."""
    folder = tmp_path / "tokens"
    tokens = tokenizer(folder)
    (folder / "tokenizer_config.json").write_text('{"eos_token": "</s>", "pad_token": "<pad>"}')
    (folder / "added_tokens.json").write_text("{}")
    ours = Prompts.from_folder(folder, 30)
    for text in [*PROMPTS, "", "  a   cat ", "unknown ☃ words, and more"]:
        assert ours.tokens([text])[0].tolist() == [
            tokens(text, padding="max_length", max_length=30).input_ids
        ]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("guidance", [1.0, 4.0])
def test_dit_pipeline(guidance: float, device: str, tmp_path: Path) -> None:
    settings = {**SMALL, **OF_CLASSES, "num_embeds_ada_norm": 1000, "out_channels": 8}
    scheduler = diffusers.DDIMScheduler(clip_sample=False, **STABLE)
    theirs = diffusers.DiTPipeline(
        varied(diffusers.DiTTransformer2DModel(**settings)),
        varied(diffusers.AutoencoderKL(**VAE)),
        scheduler,
    )
    theirs.set_progress_bar_config(disable=True)
    theirs.save_pretrained(tmp_path / "model")
    index = tmp_path / "model" / "model_index.json"  # to which published ones add names of classes
    labels = {"id2label": {"1": "boot, shoe", "7": "cat"}}
    index.write_text(json.dumps({**json.loads(index.read_text()), **labels}))
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn((2, 4, 16, 16), generator=torch.Generator().manual_seed(3))
    options = {"num_inference_steps": 6, "guidance_scale": guidance, "output_type": "np"}
    wanted = theirs([1, 7], generator=generator, **options).images
    ours = load(tmp_path / "model", device=device)
    given: dict[str, Any] = {"steps": 6, "guidance": guidance, "noise": on(noise, device)}
    last = list(ours.steps(2, classes=["shoe", "cat"], **given))[-1]
    with wg.no_grad():
        values = ours.decoded(last.latents).numpy()
    found = np.clip(values.transpose(0, 2, 3, 1) / 2 + 0.5, 0, 1)
    assert np.abs(found - wanted).max() < TOLERANCE
