"""Data of profiles as they are, without running anything: an encoder of six layers, and long runs.

In: how many batches, or spans. Out: what `webgrad.tools.profiling.report.page` takes; the same at every call.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["encoder_profile", "long_profile"]

# (name, milliseconds, bytes, floating-point operations, line, ops): what one layer launches.
LAYER = (
    ("matmul_tile_384x1152_f32", 3.4, 11_200_000, 3_620_000_000, "encode.py:21", ["matmul", "add", "split"]),
    ("attend_12x128x32_f32", 2.1, 6_300_000, 800_000_000, "encode.py:24", ["attend"]),
    ("matmul_tile_384x384_f32_add", 1.2, 5_000_000, 1_200_000_000, "encode.py:25", ["matmul", "add", "add"]),
    ("rows_mean_variance_384", 0.3, 3_200_000, 9_000_000, "encode.py:26", ["mean", "sub", "mul", "rsqrt"]),
    ("matmul_tile_384x1536_f32_gelu", 5.2, 14_800_000, 4_830_000_000, "encode.py:29", ["matmul", "gelu"]),
    (
        "matmul_tile_1536x384_f32_add",
        4.7,
        13_100_000,
        4_830_000_000,
        "encode.py:30",
        ["matmul", "add", "add"],
    ),
    ("rows_mean_variance_384_mul_add", 0.4, 4_800_000, 11_000_000, "encode.py:31", ["mean", "rsqrt", "mul"]),
)
ENDS = (
    ("gather_30522x384_f32", 0.2, 1_600_000, 0, "encode.py:14", ["gather", "add"]),
    ("sum_128_where_div_sqrt", 0.1, 800_000, 2_000_000, "encode.py:40", ["where", "sum", "div"]),
)
STAGES = (
    ("python", "the program's own code"),
    ("build", "calls of operations become nodes"),
    ("schedule", "nodes that share a kernel are found"),
    ("lower", "groups of nodes become loops"),
    ("emit", "loops become WGSL"),
    ("resolve", "values get their buffers"),
    ("encode", "launches are written into a pass"),
    ("submit", "a pass is handed to the driver"),
    ("wait", "for the device, until results are there"),
)
STAGE = {name: index for index, (name, _) in enumerate(STAGES)}


class _Recorder:
    """Adds spans up as a profile does."""

    def __init__(self) -> None:
        self.spans: list[list[Any]] = []
        self.kernels = [*LAYER, *ENDS]
        self.seconds = [0.0] * len(self.kernels)
        self.counts = [0] * len(self.kernels)
        self.stages = [[0.0, 0] for _ in STAGES]

    def host(self, name: str, start: float, duration: float, depth: int = 0) -> float:
        self.spans.append(["host", name, start, duration, depth, STAGE[name]])
        self.stages[STAGE[name]][0] += duration / 1e6
        self.stages[STAGE[name]][1] += 1
        return start + duration

    def kernel(self, index: int, start: float, duration: float) -> float:
        self.spans.append(["webgpu:0", self.kernels[index][0], start, duration, 0, index])
        self.seconds[index] += duration / 1e6
        self.counts[index] += 1
        return start + duration

    def kernel_rows(self) -> list[dict[str, Any]]:
        whole = sum(self.seconds) or 1.0
        return [
            {
                "name": name,
                "device": "webgpu:0",
                "count": count,
                "seconds": seconds,
                "share": seconds / whole,
                "bytes": size * count,
                "flops": work * count,
                "line": line,
                "ops": ops,
            }
            for (name, _, size, work, line, ops), count, seconds in zip(
                self.kernels, self.counts, self.seconds, strict=True
            )
        ]

    def stage_rows(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "seconds": seconds, "count": count, "what": what}
            for (name, what), (seconds, count) in zip(STAGES, self.stages, strict=True)
        ]


def encoder_profile(batches: int = 4, speed: float = 1.0) -> dict[str, Any]:
    """A profile of some batches through an encoder; only the first one is planned and compiled."""
    draw = random.Random(8)
    recorder = _Recorder()
    layer = list(range(len(LAYER)))
    gather, pooling = len(LAYER), len(LAYER) + 1
    now = 0.0
    flushes: list[list[Any]] = []
    live: list[list[float]] = [[0, 91_000_000, 96_000_000]]
    process: list[list[float]] = [[0, 310_000_000]]
    for batch in range(batches):
        now = recorder.host("python", now, speed * draw.uniform(700, 2600))
        now = recorder.host("build", now, speed * draw.uniform(2200, 2900))
        if batch == 0:
            for name, typical in (("schedule", 21_000), ("lower", 17_000), ("emit", 9_000)):
                now = recorder.host(name, now, speed * typical)
            process.append([now, 334_000_000])
        for part, typical in (("resolve", 350), ("encode", 300), ("submit", 180)):
            now = recorder.host(part, now, speed * typical * draw.uniform(0.8, 1.3))
        launches = [gather, *(layer * 6), pooling]
        flushes.append([now, "read" if batch % 3 else "eval", len(launches)])
        gpu = now
        for order, index in enumerate(launches):
            duration = speed * 1000 * recorder.kernels[index][1] * draw.uniform(0.93, 1.1)
            gpu = recorder.kernel(index, gpu, duration) + speed * draw.uniform(1, 6)
            if order % 7 == 1:
                room = 91_000_000 + 1_900_000 * (1 + order % 4)
                live.append([gpu, room, max(room, live[-1][2]) + (700_000 if batch == 0 else 0)])
        now = recorder.host("wait", now, gpu - now + speed * 90)
        live.append([now, 91_400_000, live[-1][2]])
        process.append([now, 341_000_000 + 900_000 * batch])
    explained = sum(seconds for seconds, _ in recorder.stages) * 1e6 / (now * 1.013)
    return _profile(recorder, now * 1.013, explained, flushes, live, process)


def _profile(
    recorder: _Recorder,
    end: float,
    explained: float,
    flushes: list[list[Any]],
    live: list[list[float]],
    process: list[list[float]],
) -> dict[str, Any]:
    kernels = recorder.kernel_rows()
    order = sorted(range(len(kernels)), key=lambda index: -float(kernels[index]["seconds"]))
    place = {index: rank for rank, index in enumerate(order)}
    for span in recorder.spans:
        if span[0] != "host":
            span[5] = place[span[5]]
    causes = [flush[1] for flush in flushes]
    return {
        "title": "encode.py",
        "device": "webgpu:0",
        "adapter": "llvmpipe (LLVM 15.0.6, 256 bits), Vulkan",
        "version": "0.1.0",
        "python": "3.11.2",
        "started": "2026-11-16T14:20:00",
        "seconds": end / 1e6,
        "explained": explained,
        "timing": "timestamps",
        "stages": recorder.stage_rows(),
        "kernels": [kernels[index] for index in order],
        "tracks": ["host", "webgpu:0"],
        "spans": recorder.spans,
        "memory": {"webgpu:0": live, "process": process},
        "flushes": flushes,
        "flush_causes": {cause: causes.count(cause) for cause in sorted(set(causes))},
        "notes": ["The first batch was planned and compiled here: later ones found their plan."],
    }


def long_profile(spans: int) -> dict[str, Any]:
    """A profile with about as many spans, of many short launches."""
    each = len(LAYER) * 6 + len(ENDS) + 6
    return encoder_profile(max(1, spans // each), speed=0.002)
