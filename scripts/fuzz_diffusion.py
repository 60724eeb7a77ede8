"""Damaged folders of diffusion models, LoRA files and models of TensorFlow.js.

In: a seed. Out: "refused" by a ModelFileError that names the folder, or "loaded"; see
`python -m scripts.fuzz --only diffusion`. One file of a sound model is changed: its bytes, or what it says,
so that settings, names, types and shapes become others. A kind of models is a row of `KINDS`.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from scripts.fuzz_files import HUGE, HUGER, change, open_all
from scripts.fuzzing import Case
from tests.io.test_tfjs_files import written
from tests.onnx.tfjs import unet
from webgrad.diffusion.parts import PARTS

__all__ = ["KINDS", "Kind", "start"]

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Kind:
    """How a sound model is written to a folder, and what is done with one that is damaged."""

    write: Callable[[Path], None]
    open: Callable[[Path], object]


# Sound models


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def _part(folder: Path, name: str, **settings: Any) -> None:
    row = PARTS[name]
    config = row.config(**settings)
    _json(folder / "config.json", asdict(config))
    wg.io.save(folder / WEIGHTS, row.module(config, **row.options).state_dict())


def _index(folder: Path, pipeline: str, parts: Mapping[str, str], **more: Any) -> None:
    named = {key: ["diffusers", name] for key, name in parts.items()}
    _json(folder / "model_index.json", {"_class_name": pipeline, **named, **more})


def _tiny(folder: Path) -> None:
    counts = {"num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}
    sizes = {"encoder_block_out_channels": (4, 4), "decoder_block_out_channels": (4, 4)}
    _part(folder, "AutoencoderTiny", **counts, **sizes)


def _unconditional(folder: Path) -> None:
    parts = {"unet": "UNet2DModel", "scheduler": "DDIMScheduler"}
    _index(folder, "DDIMPipeline", parts, id2label={"0": "boot", "1": "cat, dog"})
    _json(folder / "scheduler" / "scheduler_config.json", {"num_train_timesteps": 100, "eta": 0.0})
    _part(
        folder / "unet",
        "UNet2DModel",
        sample_size=8,
        block_out_channels=(4, 8),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        norm_num_groups=2,
        attention_head_dim=4,
        num_class_embeds=3,
    )


def _stable(folder: Path) -> None:
    parts = {
        "unet": "UNet2DConditionModel",
        "vae": "AutoencoderTiny",
        "text_encoder": "CLIPTextModel",
        "tokenizer": "CLIPTokenizer",
        "scheduler": "PNDMScheduler",
    }
    _index(folder, "StableDiffusionPipeline", parts)
    settings = {"skip_prk_steps": True, "beta_schedule": "scaled_linear", "steps_offset": 1}
    _json(folder / "scheduler" / "scheduler_config.json", settings)
    _part(
        folder / "unet",
        "UNet2DConditionModel",
        sample_size=8,
        block_out_channels=(4, 8),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        layers_per_block=1,
        norm_num_groups=2,
        cross_attention_dim=8,
        attention_head_dim=2,
    )
    _tiny(folder / "vae")
    letters = [chr(each) for each in range(97, 123)]
    tokens = [*letters, *(f"{each}</w>" for each in letters), "ca", "<|startoftext|>", "<|endoftext|>"]
    _part(
        folder / "text_encoder",
        "CLIPTextModel",
        vocab_size=len(tokens),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=6,
        eos_token_id=len(tokens) - 1,
    )
    _json(folder / "tokenizer" / "vocab.json", {token: number for number, token in enumerate(tokens)})
    (folder / "tokenizer" / "merges.txt").write_text("#version: 0.2\nc a\n", "utf-8")
    _json(folder / "tokenizer" / "tokenizer_config.json", {"model_max_length": 6, "pad_token": "a"})


def _transformer(folder: Path) -> None:
    parts = {
        "transformer": "Transformer2DModel",
        "vae": "AutoencoderTiny",
        "scheduler": "DPMSolverMultistepScheduler",
    }
    _index(folder, "DiTPipeline", parts)
    _json(folder / "scheduler" / "scheduler_config.json", {"solver_order": 2, "use_karras_sigmas": True})
    _tiny(folder / "vae")
    _part(
        folder / "transformer",
        "Transformer2DModel",
        num_attention_heads=2,
        attention_head_dim=4,
        in_channels=4,
        out_channels=8,
        sample_size=8,
        patch_size=2,
        norm_type="ada_norm_zero",
        num_embeds_ada_norm=3,
        activation_fn="gelu-approximate",
        norm_elementwise_affine=False,
    )


def _lora(folder: Path) -> None:
    _unconditional(folder / "base")
    random_numbers = np.random.default_rng(0)
    flat = "lora_unet_down_blocks_1_resnets_0_conv2"
    shapes = {
        "unet.mid_block.attentions.0.to_q.lora_A.weight": (2, 8),
        "unet.mid_block.attentions.0.to_q.lora_B.weight": (8, 2),
        "unet.mid_block.attentions.0.processor.to_k_lora.down.weight": (2, 8),
        "unet.mid_block.attentions.0.processor.to_k_lora.up.weight": (8, 2),
        f"{flat}.lora_down.weight": (1, 8, 3, 3),
        f"{flat}.lora_up.weight": (8, 1, 1, 1),
        f"{flat}.alpha": (),
    }
    tensors = {name: random_numbers.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    told = json.dumps({"unet.lora_alpha": 4, "unet.r": 2, "unet.alpha_pattern": {"to_q": 3}})
    wg.io.save(folder / "lora.safetensors", tensors, {"lora_adapter_metadata": told})


def _tfjs(folder: Path) -> None:
    written(folder)


def _graph(folder: Path) -> None:
    _json(unet(folder) / "scheduler_config.json", {"_class_name": "DDIMScheduler"})


# What is done with them


def _load(folder: Path) -> Any:
    pipe = wg.diffusion.load(folder, device="cpu")
    with contextlib.suppress(wg.ArgumentError):  # one that was trained for a single step
        pipe.scheduler.schedule(2)
    return pipe


def _load_with_lora(folder: Path) -> Any:
    pipe = wg.diffusion.load(folder / "base", device="cpu", lora=[(folder / "lora.safetensors", 0.5)])
    wg.eval(*pipe.unet.parameters())
    return pipe


def _open_tfjs(folder: Path) -> None:
    wg.io.open(folder / "model.json").close()
    open_all(folder / "model.json")


KINDS: Mapping[str, Kind] = {
    "unconditional": Kind(_unconditional, _load),
    "stable": Kind(_stable, _load),
    "transformer": Kind(_transformer, _load),
    "lora": Kind(_lora, _load_with_lora),
    "tfjs": Kind(_tfjs, _open_tfjs),
    "graph": Kind(_graph, _load),
}

# Changes

ODD: tuple[Any, ...] = (
    *(*HUGE, *HUGER, -1, 0.5, 1e300, float("nan"), float("inf")),
    *(None, True, False, "", "other", [], {}, [[]], [1 << 40], {"a": 1}, "\ud800", "../unet"),
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every value of a tree, as what it is in and its key there."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            found += _places(value[key])
    return found


def _other(draw: random.Random, tree: Any) -> None:
    """Another value somewhere: an odd one, one from elsewhere, none at all, or one more."""
    places = _places(tree)
    if not places:
        return
    inside, key = draw.choice(places)
    other, name = draw.choice(places)
    choice = draw.random()
    if choice < 0.5:
        inside[key] = deepcopy(draw.choice(ODD))
    elif choice < 0.7:
        inside[key] = deepcopy(other[name])  # it may hold this one
    elif choice < 0.85:
        del inside[key]
    elif isinstance(inside, dict):
        inside[str(draw.choice([*ODD, name]))] = deepcopy(other[name])
    else:
        inside.append(deepcopy(draw.choice(ODD)))


def _with_other_words(draw: random.Random, name: str, data: bytes) -> bytes:
    """What a file of settings or a header of weights says is changed, its format is not."""
    header = int.from_bytes(data[:8], "little") if name.endswith(".safetensors") else None
    text, rest = (data, b"") if header is None else (data[8 : 8 + header], data[8 + header :])
    tree = json.loads(text)
    for _ in range(draw.choice((1, 1, 2, 4))):
        _other(draw, tree)
    changed = json.dumps(tree).encode()
    return changed if header is None else len(changed).to_bytes(8, "little") + changed + rest


def damaged(draw: random.Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    """A file with another content: changed bytes, changed words, or those of another file."""
    choice = draw.random()
    if choice < 0.03:
        return draw.choice(others)
    if choice < 0.7 and name.endswith((".json", ".safetensors")):
        return _with_other_words(draw, name, data)
    return change(draw, data, others)


# Cases


def start(folder: Path) -> Case:
    """A function that damages one file of a model, opens the model, and puts the file back."""
    files: dict[str, list[Path]] = {}
    for name, kind in KINDS.items():
        home = folder / name
        home.mkdir()
        kind.write(home)
        kind.open(home)
        files[name] = sorted(each for each in home.rglob("*") if each.is_file())
    sound = {path: path.read_bytes() for several in files.values() for path in several}
    names = list(KINDS)

    def case(seed: int) -> str:
        draw, name = random.Random(seed), names[seed % len(names)]
        path = draw.choice(files[name])
        others = [sound[each] for each in files[name]]
        if draw.random() < 0.02:
            path.unlink()
        else:
            path.write_bytes(damaged(draw, path.name, sound[path], others))
        try:
            return f"{name} {_tried(KINDS[name], folder / name)}"
        finally:
            path.write_bytes(sound[path])

    return case


def _tried(kind: Kind, home: Path) -> str:
    """What became of a model; anything but an error of webgrad's own that names it is a failure."""
    try:
        kind.open(home)
    except wg.ModelFileError as error:
        if str(home) not in str(error):
            raise AssertionError(f"the error names no file: {error}") from None
        return "refused"
    return "loaded"
