"""Two million commands shaped like a diffusion model's: how many objects does the runtime make for them?

60 denoising steps of about 33,000 commands each, 40 kernels, 30 tensor sizes from 4 KiB to 16 MiB, skip
connections held across the network, every step with the same structure and fresh virtual buffers. Each
dispatch touches a few elements: the host's work is what is measured. Usage: diffusion_stream.py [steps]
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass

from common import gpu, inline_dispatches, report, resident_bytes

inline_dispatches()

import numpy as np  # noqa: E402

from webgrad.runtime.buffers import Buffer  # noqa: E402
from webgrad.runtime.pipelines import Pipeline  # noqa: E402
from webgrad.runtime.webgpu import Device  # noqa: E402
from webgrad.wgsl import program_from_source  # noqa: E402

STEPS, COMMANDS, KERNELS, SIZES, LEVELS, WEIGHTS, LAYERS = 60, 33_257, 40, 30, 5, 200, 20
SMALLEST, LARGEST = 4 << 10, 16 << 20


@dataclass(frozen=True, slots=True)
class Instruction:
    """A kernel over numbered values; negative numbers are weights. `dropped` are not used afterwards."""

    kernel: int
    inputs: tuple[int, ...]
    output: int
    size: int
    dropped: tuple[int, ...]


def block(rng: random.Random) -> list[tuple[int, tuple[str, ...], int]]:
    """One kind of block: each command's kernel, where its inputs come from, which of the level's sizes."""
    pattern = []
    for _ in range(rng.randrange(30, 60)):
        kernel = rng.randrange(KERNELS)
        sources = [("last",), ("last", "weight"), ("last", "earlier"), ("last", "earlier", "weight")][
            kernel % 4
        ]
        pattern.append((kernel, sources, rng.randrange(SIZES // LEVELS)))
    return pattern


def network(seed: int = 0) -> list[Instruction]:
    """A U-Net's order: blocks at falling, then rising sizes, in turn with the weights of 20 layers.

    After every tenth block on the way down a value is kept, and used again at the same place on the way up.
    """
    rng = random.Random(seed)
    sizes = [int(SMALLEST * (LARGEST / SMALLEST) ** (n / (SIZES - 1))) // 16 * 16 for n in range(SIZES)]
    kinds = [[block(rng) for _ in range(4)] for _ in range(LEVELS)]
    steps: list[tuple[int, tuple[int, ...], int, int]] = []
    skips: list[int] = []
    number = 0
    while len(steps) < COMMANDS:
        depth = abs(2 * len(steps) / COMMANDS - 1)  # 1 at both ends, 0 in the middle
        level = min(int(depth * LEVELS), LEVELS - 1)
        if number % 10 == 9:
            if 2 * len(steps) < COMMANDS:
                skips.append(len(steps))
            elif skips:
                steps.append((2, (len(steps), skips.pop()), len(steps) + 1, sizes[level * SIZES // LEVELS]))
        first, weight = len(steps), number % LAYERS * (WEIGHTS // LAYERS)
        for kernel, sources, size in kinds[level][number % 4]:
            last = len(steps)
            earlier = max(last - 3, first) if last - 3 > 0 and last > first else -1 - weight % WEIGHTS
            places = {"last": last, "earlier": earlier, "weight": -1 - weight % WEIGHTS}
            inputs = tuple(dict.fromkeys(places[each] for each in sources))
            kernel = kernel if len(inputs) == len(sources) else kernel // 4 * 4 + (0, 0, 2, 3)[len(inputs)]
            steps.append((kernel, inputs, last + 1, sizes[level * SIZES // LEVELS + size]))
            weight += "weight" in sources
        number += 1
    last_use = {value: position for position, (_, inputs, _, _) in enumerate(steps) for value in inputs}
    return [
        Instruction(
            kernel,
            inputs,
            output,
            size,
            tuple(
                value
                for value in {*inputs, output}
                if value > 0 and last_use.get(value, position) == position
            ),
        )
        for position, (kernel, inputs, output, size) in enumerate(steps)
    ]


def kernels(device: Device) -> list[Pipeline]:
    """40 small kernels of one to three inputs."""
    pipelines = []
    for number in range(KERNELS):
        count = (1, 2, 2, 3)[number % 4]
        inputs = "\n".join(
            f"@group(0) @binding({n}) var<storage, read> x{n}: array<vec4<f32>>;" for n in range(count)
        )
        total = " + ".join(f"x{n}[0]" for n in range(count))
        source = f"""
            struct Params {{ factor: f32 }}
            {inputs}
            @group(0) @binding({count}) var<storage, read_write> y: array<vec4<f32>>;
            var<uniform> p: Params;
            @compute @workgroup_size(1) fn run() {{ y[0] = ({total}) * p.factor + {number}.0; }}"""
        pipelines.append(device.pipeline(program_from_source(source, label=f"kernel {number}")))
    return pipelines


def one_step(
    device: Device,
    program: list[Instruction],
    pipelines: list[Pipeline],
    weights: list[Buffer],
    start: Buffer,
) -> None:
    allocate, dispatch = device.queue.allocate, device.queue.dispatch
    params = np.float32(0.25).tobytes()
    values: dict[int, Buffer] = {0: start}
    for step in program:
        result = allocate(step.size)
        inputs = [values[each] if each >= 0 else weights[-1 - each] for each in step.inputs]
        dispatch(pipelines[step.kernel], (*inputs, result), params, (1, 1, 1))
        values[step.output] = result
        for value in step.dropped:
            del values[value]
    device.flush()


def main(steps: int) -> int:
    device = gpu()
    program, pipelines = network(), kernels(device)
    weights = [device.upload(np.ones(1024, np.float32), f"weight {n}") for n in range(WEIGHTS)]
    start = device.upload(np.ones(SMALLEST // 4, np.float32), "latent")
    memory = []
    began = time.perf_counter()
    for _ in range(steps):
        one_step(device, program, pipelines, weights, start)
        memory.append(resident_bytes())
    device.synchronize()
    seconds = time.perf_counter() - began
    stats = device.stats()
    commands = stats["commands"]
    growth = memory[-1] / memory[1] - 1
    each = seconds / commands * 1e6
    print(f"{commands:,} commands, {seconds:.0f} s ({each:.1f} µs each, the GPU's time included)")
    print(f"queues: {stats['queues_resolved']:,} resolved, {stats['queues_replayed']:,} replayed")
    print(f"peak on the device: {stats['bytes_peak'] >> 20:,} MiB")
    good = [
        report("buffers created", f"{stats['buffers_created']:,}", "≤ 800", stats["buffers_created"] <= 800),
        report(
            "bind groups created",
            f"{stats['bind_groups_created']:,}",
            "≤ 10,000",
            stats["bind_groups_created"] <= 10_000,
        ),
        report("resident memory, step 2 to the last", f"{growth:+.2%}", "flat (± 1 %)", abs(growth) <= 0.01),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS))
