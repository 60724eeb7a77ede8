"""torch on the cpu, eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from worker import Array, Missing, Run, serve
from workloads import HEAD, HEADS, LENGTH, TINY, WIDTH

torch.set_grad_enabled(False)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), gain, bias)


def block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any, gain: Any, bias: Any) -> Any:
    parts = (layer_norm(x, gain, bias) @ wqkv).chunk(3, -1)
    q, k, v = (each.view(1, LENGTH, HEADS, HEAD).transpose(1, 2) for each in parts)
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    x = attended.reshape(1, LENGTH, WIDTH) @ wo + x
    return F.gelu(layer_norm(x, gain, bias) @ w1, approximate="tanh") @ w2 + x


def chain(a: Any, b: Any) -> Any:
    for at in range(TINY):
        a = a * b if at & 1 else a - b
    return a


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul_256": lambda a, b: a @ b,
    "matmul_512": lambda a, b: a @ b,
    "matmul_1024": lambda a, b: a @ b,
    "gelu": lambda a, b, c: F.gelu(a * b + c, approximate="tanh"),
    "softmax": lambda x: x.softmax(-1),
    "layer_norm": layer_norm,
    "sum": lambda x: x.sum(),
    "conv": lambda x, w: F.conv2d(x, w, padding=1),
    "block": block,
    "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "decode": F.scaled_dot_product_attention,
    "matvec_f32": lambda x, w: x @ w,
    "matvec_f16": lambda x, w: x @ w,
    "sort": lambda x: x.sort().values,
    "cumsum": lambda x: x.cumsum(0),
    "tiny": chain,
}


def build(name: str, inputs: dict[str, Array]) -> Run:
    if name not in FUNCTIONS:
        raise Missing("torch has no 4-bit product of its own on the cpu")
    tensors = [torch.from_numpy(each.copy()) for each in ordered(name, inputs)]
    return lambda: FUNCTIONS[name](*tensors), lambda result: result.float().numpy()


def ordered(name: str, inputs: dict[str, Array]) -> list[Array]:
    """The inputs in the order of the function's arguments."""
    code = FUNCTIONS[name].__code__ if hasattr(FUNCTIONS[name], "__code__") else None
    names = code.co_varnames[: code.co_argcount] if code is not None else ("q", "k", "v")
    return [inputs[each] for each in names]


if __name__ == "__main__":
    serve(build, {"library": f"torch {torch.__version__}"})
