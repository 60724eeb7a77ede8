"""The public names of webgrad, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import webgrad

ROOT = Path(__file__).parents[1]
MOST_SECONDS = 0.250  # beyond NumPy

PUBLIC_NAMES = [
    "Batch",
    "BatchArray",
    "BatchError",
    "Buffer",
    "BufferError",
    "CompileError",
    "ConfigError",
    "CpuDevice",
    "DTypeError",
    "Device",
    "DeviceError",
    "DeviceLostError",
    "Event",
    "ForeignBufferError",
    "ForkError",
    "Kernel",
    "LaunchError",
    "NoAdapterError",
    "OutOfMemoryError",
    "ShaderError",
    "ShapeError",
    "StaleBufferError",
    "TemplateError",
    "WebgradError",
    "__version__",
    "default_device",
    "devices",
    "kernel",
    "open_device",
    "open_device_async",
    "reset_stats",
    "set_default_device",
    "stats",
    "synchronize",
]

TIMED = """
import sys, time
import numpy
start = time.perf_counter()
import webgrad
print(time.perf_counter() - start)
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("wgpu", "cffi", "rendercanvas")))
"""


def test_public_names() -> None:
    assert sorted(webgrad.__all__) == PUBLIC_NAMES
    assert [name for name in webgrad.__all__ if not hasattr(webgrad, name)] == []


def import_once() -> tuple[float, str]:
    done = subprocess.run([sys.executable, "-c", TIMED], cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, modules = done.stdout.splitlines()
    return float(seconds), modules


def test_import_is_light_and_touches_no_gpu() -> None:
    runs = [import_once() for _ in range(3)]
    assert {modules for _, modules in runs} == {"[]"}
    assert min(seconds for seconds, _ in runs) < MOST_SECONDS
