"""Launches on the test adapter: renders, compiles, uploads, dispatches and reads back, with uniform params.

In: `Launch`es and NumPy arrays. Out: the output's elements. Pipelines are kept for the run: the software
adapter takes long to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import wgpu

from webgrad.device_profile import PORTABLE, DeviceProfile
from webgrad.dtypes import COMPLEX, REAL
from webgrad.kernels.launch import Launch, ceil_div
from webgrad.wgsl import Program
from webgrad.wgsl.renderer import render

__all__ = [
    "DTYPES",
    "PROFILES",
    "SHORT",
    "Array",
    "random_values",
    "run",
]

Array = npt.NDArray[Any]
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "u32": np.uint32,
    "i16": np.int16,
    "u16": np.uint16,
    "i8": np.int8,
    "u8": np.uint8,
}
SHORT = {each.short: each for each in (*REAL, *COMPLEX)}
# Every way of choosing; all of them run on the software adapter, whose subgroups have 8 lanes.
PROFILES: dict[str, DeviceProfile] = {
    "software": DeviceProfile("software", frozenset({"f16", "int64", "subgroups"}), 8),
    "software-32-bit": DeviceProfile("software", frozenset({"subgroups"}), 8),
    "software-4-lanes": DeviceProfile("software", frozenset({"int64", "subgroups"}), 4),
    "software-portable": DeviceProfile("software"),
    "integrated": DeviceProfile("integrated", frozenset({"subgroups"}), 32),
    "portable": PORTABLE,
}
_GUARD = b"\xff" * 65536
_FEATURES = ("shader-f16", "shader-f64", "shader-int64", "subgroup")
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


@cache
def _device() -> Any:
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    return adapter.request_device_sync(
        required_features=[name for name in _FEATURES if name in adapter.features]
    )


@cache
def _layout(kinds: tuple[str, ...]) -> Any:
    entries = [
        {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
        for i, kind in enumerate(kinds)
    ]
    return _device().create_bind_group_layout(entries=entries)


@cache
def _pipeline(program: Program) -> tuple[Any, Any, Any]:
    text = render(program, dialect="naga", parameters="group", minify=False)
    kinds = tuple("read-only-storage" if b.access == "read" else "storage" for b in program.bindings)
    storage, uniform = _layout(kinds), _layout(("uniform",))
    layout = _device().create_pipeline_layout(bind_group_layouts=[storage, uniform])
    module = _device().create_shader_module(label=program.label, code=text)
    stage = {"module": module, "entry_point": program.entry}
    return _device().create_compute_pipeline(layout=layout, compute=stage), storage, uniform


def _upload(data: bytes) -> Any:
    """A buffer padded to 16 bytes, as the runtime pads, and a guard zone behind that.

    Our kernels ship without bounds checks; here checks are on, and with a buffer of the exact size they would
    hide a stray index. The guard is part of the binding and all NaN: reading it shows in the result, writing
    it in `_read`.
    """
    padded = data + b"\xa5" * (-len(data) % 16) + _GUARD
    return _device().create_buffer_with_data(data=padded, usage=_STORAGE)


def _bind(layout: Any, buffers: Sequence[Any]) -> Any:
    entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
    return _device().create_bind_group(layout=layout, entries=entries)


def _dispatch(program: Program, launch: Launch, buffers: Sequence[Any]) -> None:
    pipeline, storage, uniform = _pipeline(program)
    data = launch.params + bytes(-len(launch.params) % 16)
    params = _device().create_buffer_with_data(data=data, usage=wgpu.BufferUsage.UNIFORM)
    encoder = _device().create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, _bind(storage, buffers))
    compute.set_bind_group(1, _bind(uniform, [params]))
    compute.dispatch_workgroups(*launch.grid)
    compute.end()
    _device().queue.submit([encoder.finish()])


def _read(buffer: Any, dtype: Any, count: int) -> Array:
    data = bytes(_device().queue.read_buffer(buffer))
    assert data.endswith(_GUARD), "the kernel wrote beyond the end of its output"
    assert len(data) == ceil_div(count * np.dtype(dtype).itemsize, 16) * 16 + len(_GUARD)
    return np.frombuffer(data[: count * np.dtype(dtype).itemsize], dtype)


def run(launch: Launch, inputs: Sequence[Array], dtype: Any, count: int, *, in_place: bool = False) -> Array:
    """The output of one launch; with `in_place` that of its variant."""
    buffers = [_upload(values.tobytes()) for values in inputs]
    if not in_place:
        target = _upload(b"\xee" * (count * np.dtype(dtype).itemsize))
        _dispatch(launch.program, launch, [*buffers, target])
    else:
        ((((old, _),), variant),) = launch.in_place
        assert variant is not None
        target = buffers.pop(old)
        _dispatch(variant, launch, [*buffers, target])
    return _read(target, dtype, count)


def random_values(dtype: str, shape: int | tuple[int, ...], seed: int = 0) -> Array:
    """Normal numbers for floats, and the whole range for integers."""
    generator = np.random.default_rng(seed)
    kind = DTYPES[dtype]
    if dtype in ("f32", "f16", "bf16"):
        return np.asarray(generator.standard_normal(shape).astype(kind))
    limits = np.iinfo(kind)
    return np.asarray(generator.integers(limits.min, limits.max, shape, kind, endpoint=True))
