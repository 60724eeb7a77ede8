"""A fixed list of work, one row for each family of kernels: what `webgrad kernels --all` runs.

In: a device. Out: each family's name, with nothing but its own kernels launched. Inputs lie on the device
already, so that none of them is known when kernels are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import webgrad as wg

from ...arrays import np
from ...ops.blocks import FORMATS as BLOCKS

__all__ = ["FAMILIES", "prepared"]

Shape = tuple[int, ...]
Work = Callable[..., Any]

# name → (the shapes of float32 inputs, what is computed of them)
FAMILIES: Mapping[str, tuple[tuple[Shape, ...], Work]] = {
    "matmul 1024": (((1024, 1024), (1024, 1024)), lambda a, b: a @ b),
    "matmul of 8 rows": (((8, 1024), (1024, 1024)), lambda a, b: a @ b),
    "linear 128 × 512 × 2048": (((128, 512), (2048, 512), (2048,)), lambda x, w, b: wg.linear(x, w, b)),
    "matvec 2048 × 8192": (((1, 2048), (2048, 8192)), lambda a, b: a @ b),
    "matvec of rows": (((1, 2048), (8192, 2048)), lambda a, b: a @ b.T),
    "conv 3 × 3": (((1, 64, 56, 56), (64, 64, 3, 3)), lambda x, w: wg.conv2d(x, w, padding=1)),
    "attention of 512": (
        ((1, 8, 512, 64),) * 3,
        lambda q, k, v: wg.scaled_dot_product_attention(q, k, v, is_causal=True),
    ),
    "attention of one query": (
        ((1, 8, 1, 64), (1, 8, 2048, 64), (1, 8, 2048, 64)),
        lambda q, k, v: wg.scaled_dot_product_attention(q, k, v),
    ),
    "softmax": (((4096, 4096),), lambda x: wg.softmax(x, axis=-1)),
    "layer norm": (
        ((4096, 1024), (1024,), (1024,)),
        lambda x, gain, bias: wg.layer_norm(x, (1024,), gain, bias),
    ),
    "sum": (((1 << 22,),), lambda x: x.sum()),
    "sum of rows": (((2048, 2048),), lambda x: x.sum(axis=1)),
    "sum of columns": (((2048, 2048),), lambda x: x.sum(axis=0)),
    "argmax of rows": (((2048, 2048),), lambda x: wg.argmax(x, axis=1)),
    "gelu(a·b + c)": (((1 << 20,),) * 3, lambda a, b, c: wg.gelu(a * b + c)),
    "transpose": (((1024, 1024),), lambda x: x.T.contiguous()),
    "max pool": (((1, 64, 56, 56),), lambda x: wg.max_pool2d(x, 2)),
    "running sum": (((1 << 20,),), lambda x: wg.cumsum(x, axis=0)),
    "sort": (((1 << 16,),), lambda x: wg.sort(x)),
}
# name → (x's shape, the weight's shape and format)
QUANTISED: Mapping[str, tuple[Shape, Shape, str]] = {
    "matvec, 4 bits": ((1, 2048), (8192, 2048), "Q4_0"),
    "matvec, 8 bits": ((1, 2048), (8192, 2048), "Q8_0"),
    "matmul, 4 bits": ((128, 2048), (2048, 2048), "Q4_0"),
}


def prepared(device: Any) -> Mapping[str, Callable[[], None]]:
    """Each family, ready to be run on a device."""
    return {
        **{name: _run(device, shapes, work) for name, (shapes, work) in FAMILIES.items()},
        **{name: _run_quantised(device, *row) for name, row in QUANTISED.items()},
    }


def _zeros(device: Any, shape: Shape) -> Any:
    return wg.asarray(np.zeros(shape, np.float32), device=device)


def _run(device: Any, shapes: tuple[Shape, ...], work: Work) -> Callable[[], None]:
    return lambda: wg.eval(work(*(_zeros(device, shape) for shape in shapes)))


def _run_quantised(device: Any, x: Shape, weight: Shape, format: str) -> Callable[[], None]:
    def run() -> None:
        blocks = bytes(weight[0] * weight[1] // BLOCKS[format].weights * BLOCKS[format].nbytes)
        wg.eval(wg.quantised_linear(_zeros(device, x), wg.from_blocks(blocks, format, weight, device)))

    return run
