"""Weights on their way from files into a network: found, called by the network's names, put in place.

In: a part's folder, and the network of its settings. Out: the network with these weights, in the precision in
which they are stored, in another one, or in blocks. The invariant: names and shapes fit, or the folder is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import webgrad as wg
from webgrad import nn

from .quantised import FORMATS, is_quantisable, quantised_layer

__all__ = ["Rules", "own_name", "precision_of", "put", "read_weights", "weight_files"]

Rules = Iterable[tuple[str, str]]
# Buffers that old files have, and that are computed
_COMPUTED = re.compile(r"\.position_ids$|^pos_embed\.pos_embed$")
# Products that were convolutions once
_FORMER_CONVOLUTIONS = (".to_q.weight", ".to_k.weight", ".to_v.weight", ".to_out.0.weight")


def weight_files(folder: Path) -> list[Path]:
    """The files with a part's weights: of full precision where there are both."""
    files = sorted(each for each in folder.glob("*.safetensors") if each.is_file())
    plain = [each for each in files if not re.search(r"\.(fp16|bf16|non_ema)\b", each.name)]
    chosen = plain or [each for each in files if ".non_ema" not in each.name]
    if not chosen:
        others = ", ".join(sorted(each.name for each in folder.glob("*.bin"))) or "nothing"
        raise wg.ModelFileError(
            f"{folder} has no .safetensors file (there is {others}); weights in other formats are not read"
        )
    return chosen


def read_weights(weights: wg.io.Weights, rules: Rules) -> Iterator[tuple[str, wg.Tensor]]:
    """The tensors of a file by the network's names."""
    for name in weights:
        ours = own_name(name, rules)
        if _COMPUTED.search(ours):
            continue
        value = weights.read(name, "cpu")
        if not isinstance(value, wg.Tensor):
            raise wg.ModelFileError(f"{weights.path}: {name} is in blocks, which are not read here")
        if value.ndim == 4 and ours.endswith(_FORMER_CONVOLUTIONS):
            value = value.reshape(value.shape[:2])
        yield ours, value


def own_name(name: str, rules: Rules) -> str:
    """What a network here calls a weight."""
    for pattern, ours in rules:
        name = re.sub(pattern, ours, name)
    return name


def precision_of(dtype: Any) -> tuple[Any, str | None]:
    """The dtype that weights are brought into, and the blocks, of which one at most is given."""
    name = dtype.upper() if isinstance(dtype, str) else None
    if name in FORMATS:
        return None, name
    try:
        given = None if dtype is None else wg.zeros(0).astype(dtype).dtype
    except wg.WebgradError as error:
        raise wg.DTypeError(f"weights are of a dtype or in blocks of {', '.join(FORMATS)}: {error}") from None
    if given is not None and given.kind != "f":
        raise wg.DTypeError(f"weights are floats or in blocks of {', '.join(FORMATS)}, not {given.name}")
    return given, None


def put(
    network: nn.Module,
    weights: Mapping[str, wg.Tensor],
    *,
    device: Any,
    dtype: Any = None,
    blocks: bool = True,
) -> None:
    """The weights in the place of the network's own; in `blocks` only what may be."""
    kept, format = precision_of(dtype)
    own = {name: tensor.shape for name, tensor in _tensors(network, recurse=True)}
    _check(own, weights)
    packed = [path for path, layer in network.named_modules() if blocks and format and is_quantisable(layer)]
    for path, layer in network.named_modules():
        prefix = f"{path}." if path else ""
        parameters = dict(layer.named_parameters(recurse=False))
        for name, _ in _tensors(layer, recurse=False):
            value = weights[prefix + name]
            if name != "weight" or path not in packed:
                value = _placed(value, kept, device)
            setattr(layer, name, nn.Parameter(value) if name in parameters else value)
    # Only now, when nothing is left of the network's own weights: what is pending is computed with the first.
    for path in packed:
        _replace(network, path, quantised_layer(network.get_submodule(path), str(format), device))


def _tensors(layer: nn.Module, *, recurse: bool) -> list[tuple[str, wg.Tensor]]:
    return [*layer.named_parameters(recurse=recurse), *layer.named_buffers(recurse=recurse)]


def _check(own: Mapping[str, tuple[int, ...]], weights: Mapping[str, wg.Tensor]) -> None:
    """Whether names and shapes fit."""
    missing = [name for name in own if name not in weights]
    unexpected = [name for name in weights if name not in own]
    wrong = [
        f"{name} is {own[name]} by the settings and {value.shape} in the file"
        for name, value in weights.items()
        if name in own and own[name] != value.shape
    ]
    rows = (("missing", missing), ("unexpected", unexpected), ("of other shapes", wrong))
    found = [f"{what}: {_some(names)}" for what, names in rows if names]
    if found:
        raise wg.ModelFileError(f"weights and settings do not fit: {'; '.join(found)}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _placed(value: wg.Tensor, dtype: Any, device: Any) -> wg.Tensor:
    if dtype is not None and value.dtype.kind == "f":
        value = value.astype(dtype, copy=False)
    return value.to(device=device)


def _replace(network: nn.Module, path: str, layer: nn.Module) -> None:
    above, _, name = path.rpartition(".")
    setattr(network.get_submodule(above) if above else network, name, layer)
