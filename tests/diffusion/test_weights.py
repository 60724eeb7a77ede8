"""Weights in a network: as they are stored, in another precision, or in blocks of a few bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.diffusion.test_pipelines import written
from webgrad.diffusion.autoencoders import AutoencoderTiny, AutoencoderTinyConfig
from webgrad.diffusion.parts import load_part
from webgrad.diffusion.quantised import QuantisedConv2d, QuantisedLinear

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
WIDE: dict[str, Any] = {
    "sample_size": 8,
    "block_out_channels": (32, 64),
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
    "layers_per_block": 1,
}


@pytest.fixture(scope="module")
def network() -> Any:
    wg.random.seed(0)
    return wg.diffusion.UNet2D(wg.diffusion.UNet2DConfig(**WIDE)).eval()


def folder_of(network: Any, path: Path) -> Path:
    """A folder with this network, whose weights are as they are."""
    folder = written(path, network)
    (folder / "unet" / "config.json").write_text(json.dumps(WIDE))
    return folder


def bytes_of(network: wg.nn.Module) -> int:
    layers = [each for each in network.modules() if isinstance(each, QuantisedLinear | QuantisedConv2d)]
    packed: list[Any] = [each.weight for each in layers]
    return sum(each.nbytes for each in [*packed, *network.parameters(), *network.buffers()])


def predicted(network: Any, device: str) -> Any:
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)
    with wg.no_grad():
        found = network(wg.asarray(x, device=device), 500)
    assert found.dtype is wg.float32
    return found.numpy()


@pytest.mark.parametrize("device", DEVICES)
def test_halves_stay_halves_and_are_summed_in_float32(network: Any, device: str, tmp_path: Path) -> None:
    """What is computed is what a network in float32 with the rounded weights computes."""
    rounded = wg.diffusion.UNet2D(wg.diffusion.UNet2DConfig(**WIDE)).eval()
    state = {name: each.astype(wg.float16) for name, each in network.state_dict().items()}
    rounded.load_state_dict({name: each.astype(wg.float32) for name, each in state.items()})
    folder = folder_of(network, tmp_path / "model")
    wg.io.save(folder / "unet" / "diffusion_pytorch_model.safetensors", state)
    ours = wg.diffusion.load(folder, device=device).unet
    assert {each.dtype for each in ours.parameters()} == {wg.float16}
    assert bytes_of(ours) * 2 == bytes_of(rounded)
    np.testing.assert_allclose(predicted(ours, device), predicted(rounded, "cpu"), rtol=1e-4, atol=1e-5)


def test_another_precision_is_asked_for(network: Any, tmp_path: Path) -> None:
    folder = folder_of(network, tmp_path / "model")
    found = wg.diffusion.load(folder, device="cpu", dtype="bfloat16").unet
    assert {each.dtype for each in found.parameters()} == {wg.bfloat16}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("format", "share", "most"), [("q8_0", 0.32, 0.02), ("Q4_0", 0.2, 0.2)])
def test_blocks(network: Any, format: str, share: float, most: float, device: str, tmp_path: Path) -> None:
    """Weights of layers take about 8.5 and 4.5 bits; what they give is near, and not the same."""
    found = wg.diffusion.load(folder_of(network, tmp_path / "model"), device=device, dtype=format).unet
    assert bytes_of(found) < share * bytes_of(network)
    wanted, given = predicted(network, "cpu"), predicted(found, device)
    apart = float(np.sqrt(((given - wanted) ** 2).mean() / (wanted**2).mean()))
    assert most / 50 < apart < most


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_are_what_their_numbers_say(network: Any, device: str, tmp_path: Path) -> None:
    """A network in float32 with the weights that blocks stand for gives the same."""
    found = wg.diffusion.load(folder_of(network, tmp_path / "model"), device=device, dtype="q4_1").unet
    plain = wg.diffusion.UNet2D(wg.diffusion.UNet2DConfig(**WIDE)).eval()
    with wg.no_grad():
        state = {name: each.to(device="cpu") for name, each in found.state_dict().items()}
        for path, layer in found.named_modules():
            if isinstance(layer, QuantisedLinear | QuantisedConv2d):
                shape = plain.get_submodule(path).weight.shape
                state[f"{path}.weight"] = layer.weight.dequantise().reshape(shape).to(device="cpu")
                if layer.bias is not None:
                    state[f"{path}.bias"] = layer.bias.to(device="cpu")
    plain.load_state_dict(state)
    np.testing.assert_allclose(predicted(found, device), predicted(plain, "cpu"), rtol=1e-4, atol=1e-4)


def test_autoencoders_are_not_brought_into_blocks(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "encoder_block_out_channels": (32, 32),
        "decoder_block_out_channels": (32, 32),
    }
    counts: dict[str, Any] = {"num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}
    (tmp_path / "config.json").write_text(json.dumps(settings | counts))
    module = AutoencoderTiny(AutoencoderTinyConfig(**settings, **counts))
    wg.io.save(tmp_path / "model.safetensors", module.state_dict())
    found = load_part(tmp_path, "AutoencoderTiny", device="cpu", dtype="q8_0")
    assert bytes_of(found) == bytes_of(module)


def test_blocks_are_not_saved_without_their_weights(network: Any, tmp_path: Path) -> None:
    found = wg.diffusion.load(folder_of(network, tmp_path / "model"), device="cpu", dtype="q8_0")
    with pytest.raises(wg.ArgumentError, match="weights in blocks are not written"):
        wg.diffusion.save(found, tmp_path / "other")


@pytest.mark.parametrize("dtype", ["q9_0", "int8", "Q6_K", "many"])
def test_a_precision_that_there_is_not(dtype: str, network: Any, tmp_path: Path) -> None:
    with pytest.raises(wg.DTypeError, match="in blocks of Q4_0, Q4_1, Q8_0"):
        wg.diffusion.load(folder_of(network, tmp_path / "model"), device="cpu", dtype=dtype)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conv_in.bias": None}, r"missing: conv_in\.bias"),
        ({"other": np.ones(3, np.float32)}, "unexpected: other"),
        (
            {"conv_in.bias": np.ones(3, np.float32)},
            r"of other shapes: conv_in\.bias is \(32,\) by",
        ),
    ],
)
def test_weights_that_do_not_fit(change: dict[str, Any], message: str, network: Any, tmp_path: Path) -> None:
    folder = folder_of(network, tmp_path / "model")
    state = {name: each for name, each in {**network.state_dict(), **change}.items() if each is not None}
    wg.io.save(folder / "unet" / "diffusion_pytorch_model.safetensors", state)
    with pytest.raises(wg.ModelFileError, match=f"unet: weights and settings do not fit: {message}"):
        wg.diffusion.load(folder, device="cpu")
