"""IREE's compiler and its Vulkan runtime, over the same ONNX models."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import iree.compiler as compiler
import iree.runtime as runtime
import numpy as np
from models import model
from worker import Array, Missing, Run, serve

CONFIG = runtime.Config("vulkan")
FLAGS = ["--iree-hal-target-device=vulkan"]


def read(result: Any) -> Array:
    """A copy on the host. `to_host` asks lavapipe to take over memory that it then finds badly aligned."""
    view = result._buffer_view
    source = view.get_buffer()
    usage = int(runtime.BufferUsage.TRANSFER_TARGET | runtime.BufferUsage.MAPPING_SCOPED)
    kind = int(runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE)
    staging = CONFIG.device.allocator.allocate_buffer(
        memory_type=kind, allowed_usage=usage, allocation_size=source.byte_length()
    )
    semaphore = CONFIG.device.create_semaphore(0)
    begun, done = (runtime.HalFence.create_at(semaphore, at) for at in (0, 1))
    CONFIG.device.queue_copy(source, staging, wait_semaphores=begun, signal_semaphores=done)
    done.wait()
    return np.array(staging.map().asarray(view.shape, np.dtype(result.dtype)))


def build(name: str, inputs: dict[str, Array]) -> Run:
    if name in ("tiny", "matvec_4bit"):
        raise Missing("not driven here")
    data, feeds = model(name, inputs)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "model.onnx"), Path(folder, "model.mlir")
        source.write_bytes(data)
        importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(source), "-o", str(target)]
        subprocess.run(importer, check=True)
        compiled = compiler.compile_file(str(target), input_type="onnx", extra_args=FLAGS)
    loaded = runtime.load_vm_module(runtime.VmModule.copy_buffer(CONFIG.vm_instance, compiled), CONFIG)
    values = [runtime.asdevicearray(CONFIG.device, each) for each in feeds.values()]

    def run() -> Any:  # the call waits for the device's fence
        return loaded.workload(*values)

    return run, read


if __name__ == "__main__":
    serve(build, {"library": f"IREE {importlib.metadata.version('iree-base-runtime')}"})
