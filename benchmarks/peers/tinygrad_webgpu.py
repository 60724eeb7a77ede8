"""tinygrad on WebGPU, captured by its TinyJit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable
from typing import Any

os.environ.setdefault("DEV", "WEBGPU")
os.environ.setdefault("WEBGPU", "1")

from worker import Array, Missing, Run, serve
from workloads import HEAD, HEADS, LENGTH, TINY, WIDTH


def find_dawn() -> None:
    """Tell tinygrad where the package dawn-python has its library."""
    if "WEBGPU_PATH" not in os.environ:
        files = importlib.metadata.files("dawn-python") or []
        suffix = {"Darwin": ".dylib", "Windows": ".dll"}.get(platform.system(), ".so")
        found = [each for each in files if "webgpu_dawn" in each.name and each.suffix == suffix]
        own = [each for each in found if platform.machine() in each.name] or found
        if own:
            os.environ["WEBGPU_PATH"] = str(own[0].locate())


find_dawn()
from tinygrad import Device, Tensor, TinyJit, dtypes  # noqa: E402


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return x.layernorm() * gain + bias


def attention(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    scores = (q @ k.transpose(-1, -2)) * HEAD**-0.5
    if causal:
        scores = scores + Tensor.full((LENGTH, LENGTH), -1e9).triu(1)
    return scores.softmax(-1) @ v


def block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any, gain: Any, bias: Any) -> Any:
    parts = (layer_norm(x, gain, bias) @ wqkv).reshape(1, LENGTH, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
    attended = attention(parts[0], parts[1], parts[2], causal=True).transpose(1, 2)
    x = attended.reshape(1, LENGTH, WIDTH) @ wo + x
    return (layer_norm(x, gain, bias) @ w1).gelu() @ w2 + x


def chain(a: Any, b: Any) -> Any:
    for at in range(TINY):
        a = ((a * b) if at & 1 else (a - b)).contiguous()
    return a


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul_256": lambda a, b: a @ b,
    "matmul_512": lambda a, b: a @ b,
    "matmul_1024": lambda a, b: a @ b,
    "gelu": lambda a, b, c: (a * b + c).gelu(),
    "softmax": lambda x: x.softmax(-1),
    "layer_norm": layer_norm,
    "sum": lambda x: x.sum(),
    "conv": lambda x, w: x.conv2d(w, padding=1),
    "block": block,
    "attention": lambda q, k, v: attention(q, k, v, causal=True),
    "decode": lambda q, k, v: attention(q, k, v, causal=False),
    "matvec_f32": lambda x, w: x @ w,
    "matvec_f16": lambda x, w: x.cast(dtypes.float32) @ w.cast(dtypes.float32),
}
MISSING = {
    "sort": "left out: the goal is a time, not a ratio",
    "cumsum": "left out: the goal is a time, not a ratio",
    "matvec_4bit": "no 4-bit product through its tensors",
    "tiny": "left out: one run takes seconds",
}


def build(name: str, inputs: dict[str, Array]) -> Run:
    if name not in FUNCTIONS:
        raise Missing(MISSING[name])
    function = FUNCTIONS[name]
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    tensors = [Tensor(inputs[each]).realize() for each in names]
    device = Device[Device.DEFAULT]
    call = TinyJit(lambda *each: function(*each).realize())

    def run() -> Any:
        result = call(*tensors)
        device.synchronize()
        return result

    return run, lambda result: result.numpy()


if __name__ == "__main__":
    Tensor([1.0, 2.0]).sum().item()  # opens the device, or fails now
    serve(build, {"library": f"tinygrad {importlib.metadata.version('tinygrad')}"})
