"""The compiler of wgpu, naga, for tests: does it take a text, and what does a small kernel compute?"""

from __future__ import annotations

from functools import cache
from typing import Any

import wgpu

FEATURES = {
    "immediates": "immediates",
    "f16": "shader-f16",
    "f64": "shader-f64",
    "int64": "shader-int64",
    "subgroups": "subgroup",
    "f32-atomics": "shader-float32-atomic",
}


@cache
def device() -> Any:
    """A device with every feature of ours that the adapter has."""
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    features = [name for name in FEATURES.values() if name in adapter.features]
    return adapter.request_device_sync(
        required_features=features, required_limits={"max-immediate-size": 128}
    )


def missing(requires: frozenset[str]) -> set[str]:
    """The features of ours that the device lacks."""
    have = device().features
    return {name for name in requires if FEATURES[name] not in have}


def compiles(text: str) -> None:
    """Raises wgpu's error if naga refuses the text."""
    device().create_shader_module(code=text)


def run(text: str, entry: str, params: bytes) -> bytes:
    """What a kernel with one storage buffer of 64 zero bytes and uniform params leaves in it."""
    gpu = device()
    storage = gpu.create_buffer(size=64, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC)
    uniform = gpu.create_buffer_with_data(data=params, usage=wgpu.BufferUsage.UNIFORM)
    pipeline = gpu.create_compute_pipeline(
        layout="auto", compute={"module": gpu.create_shader_module(code=text), "entry_point": entry}
    )
    encoder = gpu.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    for group, buffer in ((0, storage), (1, uniform)):
        entries = [{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}]
        bind_group = gpu.create_bind_group(layout=pipeline.get_bind_group_layout(group), entries=entries)
        compute.set_bind_group(group, bind_group)
    compute.dispatch_workgroups(1)
    compute.end()
    gpu.queue.submit([encoder.finish()])
    return bytes(gpu.queue.read_buffer(storage))
