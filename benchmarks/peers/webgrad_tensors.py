"""webgrad through its public functions, captured by `wg.jit`. Usage: webgrad_tensors.py DEVICE"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from worker import Array, Missing, Run, serve
from workloads import HEAD, HEADS, LENGTH, TINY, WIDTH, packed_q4_0

import webgrad as wg
from webgrad.runtime.device import open_device


def gelu(a: Any, b: Any, c: Any) -> Any:
    return wg.gelu(a * b + c, approximate="tanh")


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    return wg.layer_norm(x, (x.shape[-1],), gain, bias)


def attention(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    return wg.scaled_dot_product_attention(q, k, v, is_causal=causal)


def block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any, gain: Any, bias: Any) -> Any:
    projected = (layer_norm(x, gain, bias) @ wqkv).reshape(1, LENGTH, 3, HEADS, HEAD)
    q, k, v = (projected[:, :, at].permute(0, 2, 1, 3) for at in range(3))
    attended = attention(q, k, v, causal=True).permute(0, 2, 1, 3).reshape(1, LENGTH, WIDTH)
    x = attended @ wo + x
    return wg.gelu(layer_norm(x, gain, bias) @ w1, approximate="tanh") @ w2 + x


def convolution(x: Any, w: Any) -> Any:
    return wg.conv2d(x, w, padding=1)


def chain(a: Any, b: Any) -> Any:
    for at in range(TINY):
        a = a * b if at & 1 else a - b
    return a


def product(a: Any, b: Any) -> Any:
    return a @ b


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul_256": product,
    "matmul_512": product,
    "matmul_1024": product,
    "gelu": gelu,
    "softmax": functools.partial(wg.softmax, axis=-1),
    "layer_norm": layer_norm,
    "sum": wg.sum,
    "conv": convolution,
    "block": block,
    "attention": functools.partial(attention, causal=True),
    "decode": functools.partial(attention, causal=False),
    "matvec_f32": lambda x, w: x @ w,
    "matvec_f16": lambda x, w: x @ w,
    "sort": wg.sort,
    "cumsum": functools.partial(wg.cumsum, axis=0),
    "tiny": chain,
}


def graph(name: str, inputs: dict[str, Array], device: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A workload's function and the tensors it takes, by name."""
    if name != "matvec_4bit":
        return FUNCTIONS[name], {key: wg.asarray(value, device=device) for key, value in inputs.items()}
    data = packed_q4_0(inputs["codes"], inputs["scales"])
    weights = wg.from_blocks(data, "Q4_0", inputs["codes"].shape, device=device)
    return lambda x: x @ weights.T, {"x": wg.asarray(inputs["x"], device=device)}


def make(device: Any) -> Callable[[str, dict[str, Array]], Run]:
    """How this device builds workloads."""

    def build(name: str, inputs: dict[str, Array]) -> Run:
        if name == "tiny_raw":
            return raw(device, *build("tiny", inputs))
        function, tensors = graph(name, inputs, device)
        call = wg.jit(lambda **named: function(**named))

        def run() -> Any:
            result = call(**tensors)
            wg.eval(result)
            wg.synchronize(device)
            return result

        return run, lambda result: result.numpy()

    return build


def raw(device: Any, run: Callable[[], Any], read: Callable[[Any], Array]) -> Run:
    """The commands of a run, encoded with nothing but wgpu's C functions into one pass, and waited for."""
    from common import bare_pass

    from webgrad.evaluate.gpu_plan import GpuReplay

    for _ in range(3):  # the commands are resolved when they are replayed
        kept = run()
    native = device.queue.context.native
    rows = list(device.queue.context.resolved._queues.values())[-1][-1].prepared.rows
    recorded = max(
        (each for each in gc.get_objects() if type(each) is GpuReplay), key=lambda each: len(each.params)
    )
    if len(rows) != TINY or len(recorded.params) != TINY:
        raise Missing(f"a run is {len(rows)} commands, not {TINY}")
    submit = bare_pass(native, rows, recorded.params)

    def encoded() -> Any:
        submit()
        native.wait()
        return kept

    return encoded, read


def main(name: str) -> None:
    device = open_device(name)
    wg.set_default_device(device)
    info = device.info
    about = {
        "library": f"webgrad {wg.__version__}",
        "device": info.name,
        "driver": info.driver,
        "numpy": f"numpy {np.__version__}",
    }
    serve(make(device), about)


if __name__ == "__main__":
    main(sys.argv[1])
