"""Würstchen's parts and its three stages against diffusers, with random weights."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import webgrad as wg
from tests.diffusers.models import difference, diffusers, drawn, on, saved, torch, varied
from tests.diffusers.test_pipelines import PROMPTS, text_encoder, tokenizer
from webgrad.diffusion.parts import load_part
from webgrad.diffusion.schedulers import next_picture, scheduler_of

wuerstchen: Any = pytest.importorskip("diffusers.pipelines.deprecated.wuerstchen")

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
TOLERANCE = 1e-4
PICTURES = 1e-3
TIMES = torch.tensor([0.25, 0.9])
PRIOR = {"c_in": 6, "c": 32, "c_cond": 24, "c_r": 10, "depth": 3, "nhead": 4}
DECODER: dict[str, dict[str, Any]] = {
    "published": {
        "c_cond": 16,
        "c_hidden": [8, 16, 24, 32],
        "nhead": [-1, 2, 4, 8],
        "blocks": [2, 1, 2, 1],
        "effnet_embd": 6,
        "clip_embd": 20,
    },
    "other rows": {
        "c_cond": 16,
        "c_r": 7,
        "c_hidden": [8, 16],
        "nhead": [2, 4],
        "blocks": [1, 2],
        "level_config": ["TCA", "CTA"],
        "inject_effnet": [True, False],
        "effnet_embd": 6,
        "clip_embd": 20,
        "kernel_size": 5,
        "dropout": [0.1, 0.2],
    },
}


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    """The weights that a model begins with are the same in every run."""
    torch.manual_seed(0)


def near(last: Any, first: int = 0) -> None:
    """Have a network's last layer, from a channel on, give predictions near x, as that of a trained one does.

    Otherwise the prior divides by numbers around 0, and latents grow a hundredfold with each step.
    """
    last.weight[first:].mul_(0.1)
    last.bias[first:].mul_(0.1)


def varied_responses(model: Any) -> Any:
    """The model as `varied` has it, and what else begins with zeros."""
    generator = torch.Generator().manual_seed(2)
    for name, each in varied(model).named_parameters():
        if name.endswith(("gamma", "beta", "gammas", "clf.1.weight", "mapper.weight")):
            each.copy_(0.3 * torch.randn(each.shape, generator=generator))
    return model


@pytest.mark.parametrize("device", DEVICES)
@wg.no_grad()
def test_prior(device: str, tmp_path: Path) -> None:
    model = varied_responses(wuerstchen.WuerstchenPrior(**PRIOR))
    near(model.out[1], PRIOR["c_in"])  # what it divides by, and not what it subtracts
    ours = load_part(saved(model, tmp_path), "WuerstchenPrior", device=device)
    x, context = drawn(2, 6, 5, 3), drawn(2, 7, 24, seed=1)
    found = ours(on(x, device), on(TIMES, device), on(context, device))
    assert difference(found, model(x, TIMES, context)) < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DECODER)
@wg.no_grad()
def test_decoder(name: str, device: str, tmp_path: Path) -> None:
    model = varied_responses(wuerstchen.WuerstchenDiffNeXt(**DECODER[name]))
    ours: Any = load_part(saved(model, tmp_path), "WuerstchenDiffNeXt", device=device)
    x, latents, states = drawn(2, 4, 32, 16), drawn(2, 6, 3, 2, seed=1), drawn(2, 7, 20, seed=2)
    conditions = ours.conditions(on(latents, device), on(states, device), x.shape[2:])
    found = ours(on(x, device), on(TIMES, device), *conditions)
    assert difference(found, model(x, TIMES, latents, states)) < TOLERANCE


@pytest.mark.parametrize("device", DEVICES)
@wg.no_grad()
def test_autoencoder(device: str, tmp_path: Path) -> None:
    sizes = {"embed_dim": 32, "levels": 3, "bottleneck_blocks": 2, "num_vq_embeddings": 16}
    model = varied_responses(wuerstchen.PaellaVQModel(**sizes))
    model.vquantizer.embedding.weight.normal_(generator=torch.Generator().manual_seed(3))
    model.down_blocks[-1][1].running_var.uniform_(0.5, 2.0, generator=torch.Generator().manual_seed(4))
    ours: Any = load_part(saved(model, tmp_path), "PaellaVQModel", device=device)
    x = drawn(2, 3, 32, 16)
    latents = model.encode(x).latents
    assert difference(ours.encode(on(x, device)), latents) < TOLERANCE
    given = on(latents, device)
    assert ours.factor == 8
    assert difference(ours.decode(given), model.decode(latents).sample) < TOLERANCE
    quantised = model.decode(latents, force_not_quantize=False).sample
    assert difference(ours.decode(given, quantised=False), quantised) < TOLERANCE


SCHEDULERS: list[tuple[dict[str, float], int]] = [
    ({}, 12),
    ({"scaler": 2.0, "s": 0.02}, 60),
    ({"scaler": 0.5}, 1),
]


@pytest.mark.parametrize(("settings", "count"), SCHEDULERS)
def test_scheduler_step_for_step(settings: dict[str, float], count: int) -> None:
    theirs = diffusers.DDPMWuerstchenScheduler(**settings)
    theirs.set_timesteps(count)
    name = "DDPMWuerstchenScheduler"
    schedule = scheduler_of({**theirs.config, "_class_name": name}, name).schedule(count)
    x = wanted = drawn(2, 5)
    for at, row in enumerate(schedule.rows):
        time, noise = theirs.timesteps[at : at + 1].expand(2), drawn(2, 5, seed=at + 1)
        assert row.timestep == pytest.approx(float(time[0]), abs=1e-6)
        begun = theirs.add_noise(torch.ones(2, 5), 2 * torch.ones(2, 5), time)
        by_picture, by_noise = schedule.noised[at]
        assert by_picture + 2 * by_noise == pytest.approx(float(begun[0, 0]), rel=1e-4)
        with mock.patch.object(
            sys.modules[type(theirs).__module__], "randn_tensor", lambda *a, n=noise, **k: n
        ):
            wanted = theirs.step(torch.tanh(0.7 * wanted), time, wanted).prev_sample
        given = [on(each, "cpu") for each in (x, torch.tanh(0.7 * x), 0 * x, noise)]
        found, _ = next_picture(given[0], given[1], given[2], given[3], row.numbers)
        assert difference(found, wanted) < TOLERANCE
        x = torch.tensor(found.numpy())


def stages(tokens: Any) -> tuple[Any, Any]:
    """Both of diffusers' pipelines, with small networks."""
    prior = wuerstchen.WuerstchenPriorPipeline(
        tokens,
        text_encoder("CLIPTextModel", tokens),
        varied_responses(wuerstchen.WuerstchenPrior(**{**PRIOR, "c_cond": 32})),
        diffusers.DDPMWuerstchenScheduler(),
    )
    decoder = wuerstchen.WuerstchenDecoderPipeline(
        tokens,
        text_encoder("CLIPTextModel", tokens),
        varied_responses(wuerstchen.WuerstchenDiffNeXt(**{**DECODER["published"], "clip_embd": 32})),
        diffusers.DDPMWuerstchenScheduler(),
        varied_responses(wuerstchen.PaellaVQModel(embed_dim=16, bottleneck_blocks=2)),
    )
    near(prior.prior.out[1])
    near(decoder.decoder.clf[1])
    decoder.vqgan.out_block[0].bias.add_(0.5)
    for each in (prior, decoder):
        each.set_progress_bar_config(disable=True)
    return prior, decoder


@contextmanager
def noises_of(ours: list[Any]) -> Iterator[None]:
    """diffusers draws the noise that we drew, in the same order."""
    module = sys.modules[diffusers.DDPMWuerstchenScheduler.__module__]
    with mock.patch.object(module, "randn_tensor", side_effect=[torch.tensor(each) for each in ours]):
        yield


@contextmanager
def noted_noises() -> Iterator[list[Any]]:
    """What our generators draw."""
    found: list[Any] = []
    draw = wg.random.Generator.normal

    def noted(*given: Any, **options: Any) -> Any:
        drawn = draw(*given, **options)
        found.append(drawn.numpy())
        return drawn

    with mock.patch.object(wg.random.Generator, "normal", noted):
        yield found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("prior_guidance", "guidance"), [(4.0, 0.0), (3.0, 2.0), (1.0, 1.0)])
def test_three_stages(prior_guidance: float, guidance: float, device: str, tmp_path: Path) -> None:
    prior, decoder = stages(tokenizer(tmp_path / "tokens"))
    prior.save_pretrained(tmp_path / "prior")
    decoder.save_pretrained(tmp_path / "decoder")
    negative = ["cat", "an"] if max(prior_guidance, guidance) > 1 else None
    sizes = {"height": 128, "width": 256}
    noise = drawn(2, 6, 3, 6), drawn(2, 4, 32, 64, seed=1)
    ours = wg.diffusion.load(tmp_path / "decoder", prior=tmp_path / "prior", device=device)
    given = dict(zip(("prior_noise", "noise"), (on(each, device) for each in noise), strict=True))
    counts = {"prior_steps": 5, "steps": 3}
    scales = {"prior_guidance": prior_guidance, "guidance": guidance}
    with noted_noises() as noises:
        previews = list(ours.steps(PROMPTS, negative=negative, **counts, **scales, size=(128, 256), **given))
    with noises_of(noises[:5]):
        latents = prior(
            PROMPTS, **sizes, num_inference_steps=5, guidance_scale=prior_guidance,
            negative_prompt=negative, latents=noise[0],
        ).image_embeddings  # fmt: skip
    wanted = []
    for at in range(2):  # diffusers' decoder takes one prompt at a time
        one = slice(at, at + 1)
        with noises_of([each[one] for each in noises[5:]]):
            wanted += list(decoder(
                latents[one], PROMPTS[at], num_inference_steps=3, guidance_scale=guidance,
                negative_prompt=negative and negative[at], latents=noise[1][one], output_type="np",
            ).images)  # fmt: skip
    assert [each.step for each in previews] == list(range(1, 9))
    assert difference(ours.prior.latents_of(previews[4]), latents) < PICTURES
    found = ours.decoder.decoded(previews[-1].latents).numpy().transpose(0, 2, 3, 1) / 2 + 0.5
    assert np.abs(found - np.stack(wanted)).max() < PICTURES
    assert np.std(wanted) > 0.05  # what is compared is not all white


def test_both_stages_in_one_folder(tmp_path: Path) -> None:
    prior, decoder = stages(tokenizer(tmp_path / "tokens"))
    parts = {f"prior_{name}": part for name, part in prior.components.items()} | decoder.components
    wuerstchen.WuerstchenCombinedPipeline(**parts).save_pretrained(tmp_path / "both")
    prior.save_pretrained(tmp_path / "prior")
    decoder.save_pretrained(tmp_path / "decoder")
    options = {"prior_steps": 2, "steps": 2, "size": (128, 128), "seed": 3}
    found = wg.diffusion.load(tmp_path / "both")(PROMPTS, **options)
    apart = wg.diffusion.load(tmp_path / "decoder", prior=tmp_path / "prior")(PROMPTS, **options)
    assert (found == apart).all()
