"""webgrad's side of the benchmark: the workloads, exported as anybody would.

In: a workload's arrays. Out: a bundle in a folder. Arrays are the function's own tensors, so that all of them
are on the GPU before the first call, as the other libraries' are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from work import FILES, HEADS, file_of

import webgrad as wg
from webgrad.nn import functional

__all__ = ["export_work"]


def export_work(name: str, arrays: Mapping[str, NDArray[Any]], folder: Path) -> None:
    """Write a workload's bundle."""
    tensors = {key: wg.tensor(value) for key, value in arrays.items()}
    function = _published(name) if name in FILES else _FUNCTIONS[name]
    function(**tensors)  # once, so that all weights of a file are in place
    wg.export(lambda: function(**tensors), (), folder, name=name)


def _published(name: str) -> Callable[..., wg.Tensor]:
    model = wg.onnx.load(file_of(name), device="cpu")

    def run(**tensors: wg.Tensor) -> wg.Tensor:
        found: wg.Tensor = model(**tensors)[0]
        return found

    return run


def _matmul(a: wg.Tensor, b: wg.Tensor) -> wg.Tensor:
    return a @ b


def _block(
    x: wg.Tensor,
    wqkv: wg.Tensor,
    wo: wg.Tensor,
    w1: wg.Tensor,
    w2: wg.Tensor,
    gain: wg.Tensor,
    bias: wg.Tensor,
) -> wg.Tensor:
    length, width = x.shape
    projected = (_norm(x, gain, bias) @ wqkv).reshape(length, 3, HEADS, width // HEADS)
    q, k, v = (projected[:, at].permute(1, 0, 2).unsqueeze(0) for at in range(3))
    attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = attended.squeeze(0).permute(1, 0, 2).reshape(length, width) @ wo + x
    return wg.gelu(_norm(x, gain, bias) @ w1, approximate="tanh") @ w2 + x


def _norm(x: wg.Tensor, gain: wg.Tensor, bias: wg.Tensor) -> wg.Tensor:
    return functional.layer_norm(x, x.shape[-1:], gain, bias)


_FUNCTIONS: dict[str, Callable[..., wg.Tensor]] = {"matmul": _matmul, "block": _block}
