"""`webgrad demo`: a fused computation over tensors, then a feed-forward network in batches.

In: the device to use. Out: what was computed, how fast, in which kernels, and what the runtime did for it.
Every result is compared with NumPy before a figure is printed.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence

import webgrad as wg

from ..arrays import Array, np
from .options import Parser

__all__ = ["main"]

ROWS, WIDTH, HIDDEN, LAYERS = 64, 256, 1024, 8
RUNS = 5
LARGEST_ERROR = 1e-4  # relative to the largest value
AnyDevice = wg.Device | wg.CpuDevice


def main(arguments: Sequence[str]) -> int:
    """Run the demonstration; 0 when the results are right."""
    parser = Parser(prog="webgrad demo", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", help="cpu, webgpu, webgpu:N or a part of an adapter's name (default: the best)"
    )
    wanted = parser.parse_args(arguments).device
    device = wg.open_device(wanted)
    right = [_show_tensors(each) for each in _devices(device, alone=wanted is not None)]
    right.append(_show_batches(device))
    return 0 if all(right) else 1


def _devices(chosen: AnyDevice, *, alone: bool) -> list[AnyDevice]:
    """The chosen device; without a word from the user, the best adapter too, a software one included."""
    adapters = [each.device for each in wg.devices() if each.type != "cpu"]
    if alone or chosen.name != "cpu" or not adapters:
        return [chosen]
    return [chosen, wg.open_device(adapters[0])]


def _timed(device: AnyDevice, run: Callable[[], Array]) -> tuple[Array, float]:
    """What a function gives, and the seconds it takes; the counters are those of all calls but the first."""
    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
        if len(times) == 1:
            wg.reset_stats(device.name)
    typical = statistics.median(times[1:])
    print(f"first run {times[0] * 1e3:.0f} ms, then {typical * 1e3:.1f} ms each", end="")
    return result, typical


def _report(result: Array, expected: Array) -> bool:
    error = float(np.abs(result - expected).max() / np.abs(expected).max())
    print(f"; largest relative difference from NumPy: {error:.1e}")
    return error < LARGEST_ERROR


# Tensors


def _show_tensors(device: AnyDevice) -> bool:
    random = np.random.default_rng(0)
    shapes = ((ROWS, WIDTH), (WIDTH, HIDDEN), (HIDDEN,))
    arrays: list[Array] = [random.standard_normal(shape, np.float32) / 8 for shape in shapes]
    x, w, b = (wg.asarray(each, device=device) for each in arrays)

    def computed() -> wg.Tensor:
        return wg.softmax(wg.gelu(x @ w + b), axis=-1)

    print(f"\nsoftmax(gelu(x @ w + b)) on {device!r}, x {ROWS} x {WIDTH}, w {WIDTH} x {HIDDEN}")
    result, _ = _timed(device, lambda: computed().numpy())
    right = _report(result, _expected_tensors(*arrays))
    print(wg.explain(computed()))
    return right


def _expected_tensors(x: Array, w: Array, b: Array) -> Array:
    linear = x.astype(np.float64) @ w + b
    erf = np.vectorize(math.erf)(linear / math.sqrt(2))
    powers = np.exp(linear * (1 + erf) / 2)
    expected: Array = powers / powers.sum(axis=-1, keepdims=True)
    return expected


# Batches


def _show_batches(device: AnyDevice) -> bool:
    print(f"\n{LAYERS} layers of x + silu(x @ gate) * (x @ up) @ down in one batch on {device!r}")
    random = np.random.default_rng(0)
    x = random.standard_normal((ROWS, WIDTH), np.float32)
    weights = [_layer(random) for _ in range(LAYERS)]
    owner = wg.Batch(device)
    uploaded = [[owner.upload(each) for each in layer] for layer in weights]
    result, seconds = _timed(device, lambda: _network(device, x, uploaded))
    operations = LAYERS * 3 * 2 * ROWS * WIDTH * HIDDEN
    print(f": {operations / seconds / 1e9:.1f} GFLOP/s", end="")
    right = _report(result, _expected_network(x, weights))
    if device.name != "cpu":
        print(f"counters of {RUNS} runs:\n{wg.stats(device.name)}")
    return right


def _layer(random: np.random.Generator) -> list[Array]:
    shapes = [(WIDTH, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    return [random.standard_normal(shape, np.float32) / np.float32(2 * np.sqrt(shape[0])) for shape in shapes]


def _network(device: AnyDevice, x: Array, layers: list[list[wg.BatchArray]]) -> Array:
    batch = wg.Batch(device)
    value = batch.upload(x)
    for layer in layers:
        gate, up, down = (batch.import_buffer(each) for each in layer)
        hidden = batch.mul(batch.silu(batch.matmul(value, gate)), batch.matmul(value, up))
        value = batch.add(value, batch.matmul(hidden, down))
    batch.execute()
    return batch.read(value)


def _expected_network(x: Array, weights: list[list[Array]]) -> Array:
    value: Array = x.astype(np.float64)
    for gate, up, down in weights:
        gated = value @ gate
        value = value + (gated / (1 + np.exp(-gated)) * (value @ up)) @ down
    return value
