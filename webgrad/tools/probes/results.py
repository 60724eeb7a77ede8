"""Probes of whole computations: products, reductions, many workgroups, large buffers, the same twice.

In: an open device. Out: findings, each compared with NumPy in float64 or with exact integers, and the speed
where that says something.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import webgrad as wg

from ...arrays import Array, np
from ...device_profile import PORTABLE
from .findings import Finding, amount, judged, note, ok, significant

if TYPE_CHECKING:  # wg.Device loads wgpu, without which the cpu is probed all the same
    AnyDevice = wg.Device | wg.CpuDevice

__all__ = [
    "agreement",
    "elementwise",
    "large_buffer",
    "many_workgroups",
    "matmul",
    "matmul_half",
    "quickest",
    "reduction",
    "repeated",
    "softmax",
]

SIZES = ((256, 256, 256), (127, 65, 33), (1, 512, 384))  # rows, inner, columns: with odd tails
_REPEATS = 3


def quickest(run: Callable[[], object], repeats: int = _REPEATS) -> float:
    """The least seconds of some runs after a first one."""
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return max(min(times), 1e-9)


def _normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _is_slow(device: AnyDevice) -> bool:
    """Whether work must be small: no GPU, or one that is played by a program."""
    return device.info.type in ("software", "cpu")


def _product_error(device: AnyDevice, size: tuple[int, int, int], dtype: str) -> float:
    """The largest error of a product, in parts of what float32 sums and one rounding may make."""
    rows, inner, columns = size
    a, b = (
        _normal(seed, *shape).astype(dtype) for seed, shape in enumerate(((rows, inner), (inner, columns)))
    )
    given = (wg.asarray(a, device=device) @ wg.asarray(b, device=device)).numpy().astype(np.float64)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    right = wide @ other
    allowed = inner * 2.0**-24 * (np.abs(wide) @ np.abs(other)) + 1e-30
    allowed += np.abs(right) * 2.0**-11 + 2.0**-25 if dtype == "float16" else np.abs(right) * 2.0**-24
    parts = np.abs(given - right) / allowed
    return float("inf") if np.isnan(parts).any() else float(parts.max())


def _products(device: AnyDevice, dtype: str, sizes: Sequence[tuple[int, int, int]]) -> Finding:
    errors = {"x".join(map(str, size)): _product_error(device, size, dtype) for size in sizes}
    wrong = [
        f"{size} by {error:.3g} times what rounding allows" for size, error in errors.items() if error > 1
    ]
    size = 256 if _is_slow(device) else 2048
    ours, numpy = _product_speed(device, size, dtype), _numpy_speed(size)
    text = f"{len(sizes)} sizes right; {significant(ours)}\N{NO-BREAK SPACE}GFLOP/s at {size}"
    figures: dict[str, Any] = {"gflops": ours, "numpy_gflops": numpy, "size": size, "errors": errors}
    found = judged(f"matmul {dtype}", text, wrong, **figures)
    if not wrong and not _is_slow(device) and ours < numpy:
        return note(
            found.name,
            f"{text}, NumPy {significant(numpy)}",
            "the cpu is quicker at this: see `webgrad info` for another adapter, and that the driver is its "
            "maker's newest",
            **figures,
        )
    return found


def _product_speed(device: AnyDevice, size: int, dtype: str) -> float:
    """GFLOP/s of a product, four of them in a row."""
    a, b = (wg.asarray(_normal(seed, size, size) / size**0.5, device=device) for seed in (0, 1))
    a, b = a.astype(getattr(wg, dtype)), b.astype(getattr(wg, dtype))

    def run() -> None:
        value = a
        for _ in range(4):
            value = value @ b
        wg.eval(value)
        wg.synchronize(device)

    return 4 * 2 * size**3 / quickest(run) / 1e9


def _numpy_speed(size: int) -> float:
    a = _normal(0, size, size)
    return 2 * size**3 / quickest(lambda: a @ a, 1) / 1e9


def matmul(device: AnyDevice) -> Finding:
    """Products of float32 matrices."""
    return _products(device, "float32", SIZES)


def matmul_half(device: AnyDevice) -> Finding:
    """Products of float16 matrices, summed in float32 and rounded once."""
    return _products(device, "float16", SIZES[:2])


def reduction(device: AnyDevice) -> Finding:
    """Sums: of integers exactly, of floats closely."""
    count = (1 << 20) + 7
    x = _normal(0, count)
    whole = np.random.default_rng(0).integers(-1000, 1000, count, np.int32)
    error = abs(float(wg.sum(wg.asarray(x, device=device)).numpy()) - x.sum(dtype=np.float64))
    relative = float(error / np.abs(x).sum(dtype=np.float64))
    exact = int(wg.sum(wg.asarray(whole, device=device)).numpy()) == int(whole.sum())
    wrong = [] if relative <= 1e-6 else [f"float32 by {relative:.1e} of the sum of sizes"]
    wrong += [] if exact else ["int32"]
    return judged(
        "sum",
        f"{count:,} floats within {relative:.0e} of their sizes, integers exactly",
        wrong,
        error=relative,
    )


def softmax(device: AnyDevice) -> Finding:
    """Rows of odd length with large numbers."""
    x = _normal(0, 33, 1001) * 40
    given = wg.softmax(wg.asarray(x, device=device), axis=-1).numpy()
    powers = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    right = powers / powers.sum(axis=-1, keepdims=True)
    error = float(np.abs(given - right).max())
    wrong = [] if error <= 2e-6 else [f"by {error:.1e}"]
    return judged("softmax", f"within {error:.0e} of float64", wrong, error=error)


def elementwise(device: AnyDevice) -> Finding:
    """One pass over a large array."""
    count = 1 << (22 if _is_slow(device) else 24)
    x = wg.arange(count, dtype=wg.float32, device=device)
    wg.eval(x)

    def run() -> wg.Tensor:
        y = x * 2 + 1
        wg.eval(y)
        wg.synchronize(device)
        return y

    seconds = quickest(run)
    right = np.arange(count, dtype=np.float32) * 2 + 1
    wrong = [] if np.array_equal(run().numpy(), right) else ["x * 2 + 1"]
    speed = 2 * 4 * count / seconds / 1e9
    text = f"{significant(speed)}\N{NO-BREAK SPACE}GB/s read and written"
    return judged("element-wise", text, wrong, gigabytes_per_second=speed, bytes=8 * count)


MANY = """
@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(1)
fn many(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let place = id.y * groups.x + id.x;
    seen[place] = place + 1u;
}"""


def many_workgroups(device: wg.Device) -> Finding:
    """More workgroups than one dimension of a grid may have."""
    across = min(device.info.limits["max-compute-workgroups-per-dimension"], PORTABLE.max_workgroups)
    grid = (across, 2)
    count = across * 2
    seen = device.upload(np.zeros(count, np.uint32))
    wg.kernel(MANY, label="many", device=device)(seen, grid=grid)
    missed = int((device.read(seen).view(np.uint32) != np.arange(1, count + 1, dtype=np.uint32)).sum())
    wrong = [f"{missed:,} of {count:,} workgroups did not run"] if missed else []
    return judged("many workgroups", f"{count:,} in a grid of two dimensions", wrong, workgroups=count)


def large_buffer(device: wg.Device) -> Finding:
    """A value larger than one binding, which kernels take in parts."""
    limits = device.queue.limits
    nbytes = limits.max_binding + (1 << 16)
    name = "large buffer"
    figures: dict[str, Any] = {"binding": limits.max_binding, "buffer": limits.max_buffer}
    if nbytes > limits.max_buffer:
        return ok(name, f"no buffer is larger than a binding ({amount(limits.max_binding)})", **figures)
    if 3 * nbytes > device.budget or nbytes > 1 << 30:
        return ok(name, f"skipped: it would take {amount(3 * nbytes)}", **figures)
    count = nbytes // 4
    x = wg.arange(count, dtype=wg.int32, device=device)
    wg.eval(x)
    y = x * 3 + 1
    wg.eval(y)
    middle = limits.max_binding // 4
    wrong = []
    for low, high in ((0, 1000), (middle - 500, middle + 500), (count - 1000, count)):
        right = np.arange(low, high, dtype=np.int32) * np.int32(3) + np.int32(1)
        if not np.array_equal(y[low:high].numpy(), right):
            wrong.append(f"elements {low:,} to {high:,}")
    return judged(
        name, f"{amount(nbytes)}, in parts of at most {amount(limits.max_binding)}", wrong, **figures
    )


def _steps(device: AnyDevice) -> list[list[Array]]:
    """Results and gradients of a small network with an embedding, whose gradient is scattered; twice."""
    table, weight = _normal(0, 50, 32), _normal(1, 32, 64) / 6
    words = np.random.default_rng(3).integers(0, 50, 64, np.int32)

    def loss(table: wg.Tensor, weight: wg.Tensor) -> wg.Tensor:
        product = wg.take(table, wg.asarray(words, device=device), axis=0) @ weight
        return -wg.mean(wg.log_softmax(wg.gelu(product), axis=-1)[:, 0])

    tensors = [wg.asarray(each, device=device) for each in (table, weight)]
    step = wg.jit(wg.value_and_grad(loss, argnums=(0, 1)))
    runs = [step(*tensors) for _ in range(2)]
    return [[each.numpy() for each in (value, *gradients)] for value, gradients in runs]


def repeated(device: AnyDevice) -> Finding:
    """The same computation twice, compared by bits."""
    first, second = _steps(device)
    names = ("the value", "the embedding's gradient", "the weight's gradient")
    wrong = [name for name, a, b in zip(names, first, second, strict=True) if a.tobytes() != b.tobytes()]
    advice = "results differ from run to run: the driver is broken, or memory is; update it"
    return judged("twice the same", "value and gradients of a network, by their bits", wrong, advice)


def agreement(device: AnyDevice) -> Finding:
    """The same computation here and on the cpu."""
    there, here = _steps(wg.open_device("cpu"))[0], _steps(device)[0]
    errors = [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(here, there, strict=True)]
    wrong = [f"relative difference {error:.1e}" for error in errors if not error <= 1e-5]
    text = f"value and gradients of a network within {max(errors):.0e}"
    return judged("agrees with cpu", text, wrong, errors=errors)
