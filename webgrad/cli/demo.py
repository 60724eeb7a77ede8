"""`webgrad demo`: a feed-forward network in batches, checked, timed, with the runtime's counters.

In: the device to use. Out: what was computed, how fast, and what the runtime did for it. The results are
compared with NumPy before any figure is printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np

import webgrad as wg

__all__ = ["main"]

ROWS, WIDTH, HIDDEN, LAYERS = 64, 256, 1024, 8
RUNS = 5


def main(arguments: Sequence[str]) -> int:
    """Run the demonstration; 0 when the results are right."""
    parser = argparse.ArgumentParser(prog="webgrad demo", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", help="cpu, webgpu, webgpu:N or a part of an adapter's name (default: the best)"
    )
    device = wg.open_device(parser.parse_args(arguments).device)
    software = [each.device for each in wg.devices() if each.software]
    if device.name == "cpu" and software:
        print(f"\nThere is no GPU; the software adapter is tried with: webgrad demo --device {software[0]}")
    print(f"\n{LAYERS} layers of x + silu(x @ gate) * (x @ up) @ down on {device!r}")
    print(f"x is {ROWS} x {WIDTH}, the hidden width {HIDDEN}")
    random = np.random.default_rng(0)
    x = random.standard_normal((ROWS, WIDTH), np.float32)
    weights = [_layer(random) for _ in range(LAYERS)]
    owner = wg.Batch(device)
    uploaded = [[owner.upload(each) for each in layer] for layer in weights]
    times = []
    for run in range(RUNS + 1):
        start = time.perf_counter()
        result = _network(device, x, uploaded)
        times.append(time.perf_counter() - start)
        if run == 0:
            wg.reset_stats(device.name)
    expected = _expected(x, weights)
    error = float(np.abs(result - expected).max() / np.abs(expected).max())
    operations = LAYERS * 3 * 2 * ROWS * WIDTH * HIDDEN
    typical = statistics.median(times[1:])
    speed = operations / typical / 1e9
    print(f"first run {times[0] * 1e3:.0f} ms, then {typical * 1e3:.1f} ms each: {speed:.1f} GFLOP/s")
    print(f"largest relative difference from NumPy: {error:.1e}\n")
    print(f"counters of {RUNS} runs:")
    print(wg.stats(device.name))
    return 0 if error < 1e-4 else 1


def _layer(random: np.random.Generator) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    shapes = [(WIDTH, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    return [random.standard_normal(shape, np.float32) / np.float32(2 * np.sqrt(shape[0])) for shape in shapes]


def _network(
    device: wg.Device | wg.CpuDevice,
    x: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    layers: list[list[wg.BatchArray]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    batch = wg.Batch(device)
    value = batch.upload(x)
    for layer in layers:
        gate, up, down = (batch.import_buffer(each) for each in layer)
        hidden = batch.mul(batch.silu(batch.matmul(value, gate)), batch.matmul(value, up))
        value = batch.add(value, batch.matmul(hidden, down))
    batch.execute()
    return batch.read(value)


def _expected(
    x: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    weights: list[list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    value = x.astype(np.float64)
    for gate, up, down in weights:
        gated = value @ gate
        value = value + (gated / (1 + np.exp(-gated)) * (value @ up)) @ down
    return value
