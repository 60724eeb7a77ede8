"""What layers of diffusion networks are called elsewhere: without dots, and in the first published U-Nets.

In: names of weights as here. Out: other names of the same layers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator

__all__ = ["flat_names", "older_paths"]


def flat_names(weights: Collection[str]) -> dict[str, str]:
    """Weights by their paths without dots, and by those of the networks before diffusers had them."""
    found = {}
    for name in weights:
        path, dot, last = name.rpartition(".")
        if dot and last == "weight":
            found[path.replace(".", "_")] = name
            for older in older_paths(path, weights):
                found[older.replace(".", "_")] = name
    return found


_OUTSIDE = {
    "conv_in": "input_blocks.0.0", "conv_out": "out.2", "conv_norm_out": "out.0",
    "time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2",
    "add_embedding.linear_1": "label_emb.0.0", "add_embedding.linear_2": "label_emb.0.2",
}  # fmt: skip
_INSIDE = (
    ("norm1", "in_layers.0"), ("conv1", "in_layers.2"), ("time_emb_proj", "emb_layers.1"),
    ("norm2", "out_layers.0"), ("conv2", "out_layers.3"), ("conv_shortcut", "skip_connection"),
)  # fmt: skip
_BLOCK = re.compile(
    r"^(down_blocks|up_blocks)\.(\d+)\.(resnets|attentions|downsamplers|upsamplers)\.(\d+)\.(.*)$"
)
_MIDDLE = re.compile(r"^mid_block\.(resnets|attentions)\.(\d+)\.(.*)$")


def older_paths(path: str, weights: Container[str]) -> Iterator[str]:
    """What a layer of a U-Net was called in the first networks of this kind."""
    if path in _OUTSIDE:
        yield _OUTSIDE[path]
    if found := _MIDDLE.match(path):
        kind, at, rest = found.groups()
        place = 1 if kind == "attentions" else 2 * int(at)
        yield f"middle_block.{place}.{_inside(kind, rest)}"
    if found := _BLOCK.match(path):
        way, block, kind, at, rest = found.groups()
        per_block = _resnets(way, block, weights) + (way == "down_blocks")
        first = sum(_resnets(way, str(each), weights) + (way == "down_blocks") for each in range(int(block)))
        if kind == "downsamplers":
            yield f"input_blocks.{first + per_block}.0.op"
        elif kind == "upsamplers":
            last = first + per_block - 1
            attends = f"{way}.{block}.attentions.0.norm.weight" in weights
            yield f"output_blocks.{last}.{1 + attends}.conv"
        else:
            number = first + int(at) + (way == "down_blocks")
            side = "input_blocks" if way == "down_blocks" else "output_blocks"
            yield f"{side}.{number}.{int(kind == 'attentions')}.{_inside(kind, rest)}"


def _resnets(way: str, block: str, weights: Container[str]) -> int:
    count = 0
    while f"{way}.{block}.resnets.{count}.conv1.weight" in weights:
        count += 1
    return count


def _inside(kind: str, rest: str) -> str:
    if kind == "resnets":
        for ours, older in _INSIDE:
            if rest == ours:
                return older
    return rest
