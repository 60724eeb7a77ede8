"""Recordings written by hand, for the tests of what reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from webgrad.tools.recording.file_format import Binding, Dispatch, Origin, RecordingWriter

DOUBLE = """
struct Params { count: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;
@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.count) { y[id.x] = 2.0 * x[id.x]; }
}
"""
ORIGIN = Origin(
    "0.1.0", "webgpu:0", "an adapter", "vulkan", "a driver", ("f16",), {"max-buffer-size": 1 << 30}
)
X = np.arange(64, dtype=np.float32)


def write(
    path: Path,
    *,
    x: Any = X,
    y: Any = None,
    text: str = DOUBLE,
    count: int = 3,
    kept: bool = True,
    **others: Any,
) -> Path:
    """A recording of one dispatch, y = 2 x; `others` are fields of it that are to be different."""
    writer = RecordingWriter(path, 1 << 20)
    y = 2 * x if y is None else y

    def name(array: Any) -> str:
        return writer.buffer(array.tobytes()) if kept else ""

    bindings = (
        Binding("x", "read", "array<f32>", "float32", x.nbytes, name(x)),
        Binding("y", "read_write", "array<f32>", "", y.nbytes, name(0 * y), name(y)),
    )
    entry = others.pop("entry", "double")
    fields: dict[str, Any] = {
        "kernel": writer.kernel("a label", entry, text),
        "name": "double",
        "ops": "multiply",
        "line": "script.py:7",
        "count": count,
        "grid": (1, 1, 1),
        "params": np.uint32(x.size).tobytes(),
        "needs": (),
        "moved": x.nbytes + y.nbytes,
        "operations": x.size,
        "bindings": bindings,
    }
    writer.close([ORIGIN], [Dispatch(**fields | others)])
    return path
