"""LoRA files: changes of low rank that are added to a model's weights when it is loaded.

In: a file whose tensors are pairs of narrow matrices, by diffusers' names of several ages or by kohya's. Out:
weight + scale · alpha / rank · up · down, for each pair. The invariant: every tensor of the file changes a
weight, or the file is refused by the tensor's name.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import webgrad as wg

from .older_names import flat_names
from .weights import Rules, own_name

__all__ = ["Lora", "loras_of"]

FOLDER_FILE = "pytorch_lora_weights.safetensors"  # of a folder that diffusers wrote
LARGEST_SCALE = 2.0**127  # float32 has numbers up to here
# What tensors of a pair are called at their ends: (pattern, which of the two, what stands for it in the name)
_ENDS: tuple[tuple[str, str, str], ...] = (
    (r"\.processor\.(to_[qkv])_lora\.(down|up)\.weight$", r"\2", r".\1"),
    (r"\.processor\.to_out_lora\.(down|up)\.weight$", r"\1", ".to_out.0"),
    (r"\.self_attn\.to_([qkv])_lora\.(down|up)\.weight$", r"\2", r".self_attn.\1_proj"),
    (r"\.self_attn\.to_out_lora\.(down|up)\.weight$", r"\1", ".self_attn.out_proj"),
    (r"\.lora_A\.weight$", "down", ""),
    (r"\.lora_B\.weight$", "up", ""),
    (r"\.lora(?:_linear_layer)?[._](down|up)\.weight$", r"\1", ""),
    (r"\.alpha$", "alpha", ""),
)
# What names of a part's weights begin with: with dots, and by kohya's names without
_PLAIN = {
    "unet": ("unet.",),
    "transformer": ("transformer.",),
    "text_encoder": ("text_encoder.",),
    "text_encoder_2": ("text_encoder_2.",),
}
_FLAT = {
    "unet": ("lora_unet_",),
    "transformer": ("lora_transformer_", "lora_unet_"),
    "text_encoder": ("lora_te_", "lora_te1_"),
    "text_encoder_2": ("lora_te2_",),
}
_OLDEST = ("down_blocks.", "mid_block.", "up_blocks.")  # of a U-Net, before there were names of parts


@dataclass(slots=True)
class _Pair:
    """What is known of one weight's change."""

    down: wg.Tensor | None = None
    up: wg.Tensor | None = None
    alpha: float | None = None


@dataclass(slots=True)
class Lora:
    """An open file: pairs by their names in it, and how much they count."""

    path: Path
    scale: float
    pairs: dict[str, _Pair]
    alphas: Mapping[str, Any]  # what is written beside the tensors, by the names of parts
    taken: set[str] = field(default_factory=set)

    def changed(self, part: str, weights: Mapping[str, wg.Tensor], rules: Rules) -> dict[str, wg.Tensor]:
        """The weights of a part that this file changes, with their changes."""
        names: dict[str, wg.Tensor] = {}
        flat = flat_names(weights) if part in _FLAT else {}
        for name, pair in self.pairs.items():
            ours = self._name_of(part, name, flat, rules)
            if ours is None:
                continue
            if ours not in weights:
                raise wg.ModelFileError(f"{self.path} changes {name}, and {part} has no weight of that name")
            names[ours] = self._sum(name, part, names.get(ours, weights[ours]), pair)
            self.taken.add(name)
        return names

    def check_all_taken(self) -> None:
        """Raise where a tensor of the file is of no part."""
        left = [name for name in self.pairs if name not in self.taken]
        if left:
            raise wg.ModelFileError(f"{self.path} changes {left[0]}, which is of no part of this model")

    def _name_of(self, part: str, name: str, flat: Mapping[str, str], rules: Rules) -> str | None:
        """The weight that a pair of this part is for, None for one of another part."""
        for prefix in _FLAT.get(part, ()):
            if name.startswith(prefix):
                rest = name.removeprefix(prefix)
                return flat.get(rest, rest)
        for prefix in _PLAIN.get(part, ()):
            if name.startswith(prefix):
                return own_name(f"{name.removeprefix(prefix)}.weight", rules)
        return f"{name}.weight" if part == "unet" and name.startswith(_OLDEST) else None

    def _sum(self, name: str, part: str, weight: wg.Tensor, pair: _Pair) -> wg.Tensor:
        down, up = pair.down, pair.up
        if down is None or up is None:
            there = "down" if up is None else "up"
            raise wg.ModelFileError(f"{self.path}: of the change of {name} there is nothing but {there}")
        wanted = (_trimmed(weight.shape[:1]), _trimmed(weight.shape[1:]))
        given = (_trimmed(up.shape[:1]), _trimmed(down.shape[1:]))
        rank = down.shape[0] if down.ndim else 0
        if up.ndim < 2 or rank == 0 or _trimmed(up.shape[1:]) != _trimmed((rank,)) or given != wanted:
            raise wg.ModelFileError(
                f"{self.path}: {name} is {down.shape} and {up.shape}, which change no weight of "
                f"{weight.shape}"
            )
        alpha = pair.alpha if pair.alpha is not None else self._alpha(name, part)
        factor = self.scale * (1.0 if alpha is None else alpha / rank)
        wide = up.astype(wg.float32).reshape(-1, rank) @ down.astype(wg.float32).reshape(rank, -1)
        return (weight.astype(wg.float32) + wide.reshape(weight.shape) * factor).astype(weight.dtype)

    def _alpha(self, name: str, part: str) -> float | None:
        """What the text beside the tensors says."""
        patterns = self.alphas.get(f"{part}.alpha_pattern")
        inner = name.removeprefix(f"{part}.")
        for pattern, alpha in (patterns if isinstance(patterns, dict) else {}).items():
            if inner == pattern or inner.endswith(f".{pattern}"):
                return float(alpha)
        alpha = self.alphas.get(f"{part}.lora_alpha")
        return None if alpha is None else float(alpha)


def _trimmed(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without ones at its end, of which products and convolutions of one place differ in number."""
    found = tuple(shape)
    while len(found) > 1 and found[-1] == 1:
        found = found[:-1]
    return found


def loras_of(given: Any) -> list[Lora]:
    """Files of a path, of a pair of a path and a scale, or of several of either."""
    if given is None:
        return []
    if isinstance(given, str | os.PathLike) or _is_scaled(given):
        given = [given]
    if not isinstance(given, Sequence):
        raise wg.ArgumentError(f"lora is a path, (path, scale) or a list of these, not {given!r}")
    return [_opened(*each) if _is_scaled(each) else _opened(each, 1.0) for each in given]


def _is_scaled(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], int | float)


def _opened(path: Any, scale: float) -> Lora:
    if not isinstance(path, str | os.PathLike):
        raise wg.ArgumentError(f"lora is a path, (path, scale) or a list of these, not {path!r}")
    if isinstance(scale, bool) or not abs(scale) < LARGEST_SCALE:
        raise wg.ArgumentError(f"lora: {path} counts {scale!r:.40} times, which is no finite number")
    file = Path(path)
    file = file / FOLDER_FILE if file.is_dir() else file
    pairs: dict[str, _Pair] = {}
    with wg.io.open(file) as weights:
        for name in weights:
            module, which = _split(name, file)
            pair = pairs.setdefault(module, _Pair())
            value = weights.read(name, "cpu")
            if (
                not isinstance(value, wg.Tensor)
                or value.dtype.kind != "f"
                or getattr(pair, which) is not None
            ):
                raise wg.ModelFileError(f"{file}: {name} is no tensor of floats, or comes twice")
            if which == "alpha" and value.size != 1:
                raise wg.ModelFileError(f"{file}: {name} is one number, not {value.shape}")
            setattr(pair, which, float(value.item()) if which == "alpha" else value)
        return Lora(file, float(scale), pairs, _alphas(weights.metadata, file))


def _split(name: str, file: Path) -> tuple[str, str]:
    """A tensor's name as that of the weight it changes, and which of a pair it is."""
    for pattern, which, stands in _ENDS:
        found = re.search(pattern, name)
        if found:
            return name[: found.start()] + found.expand(stands), found.expand(which)
    raise wg.ModelFileError(f"{file} has {name}, which is no part of a change of low rank that is known here")


def _alphas(metadata: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """What diffusers writes beside the tensors: a table of settings, of which alphas change the result."""
    text = metadata.get("lora_adapter_metadata")
    if text is None:
        return {}
    try:
        found = json.loads(text)
        known = {
            name: value for name, value in found.items() if re.search(r"\.(lora_alpha|alpha_pattern)$", name)
        }
        for value in known.values():
            numbers = value.values() if isinstance(value, dict) else [value]
            if not all(math.isfinite(float(each)) for each in numbers):
                raise ValueError("an alpha is no number")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise wg.ModelFileError(f"{file}: lora_adapter_metadata is no table of settings: {error}") from None
    for name in ("use_dora", "use_rslora", "lora_bias"):
        on = [each for each in found if each.endswith(f".{name}") and found[each]]
        if on:
            raise wg.ModelFileError(
                f"{file}: {on[0]} is {found[on[0]]!r}, and there are no such changes here"
            )
    return known
