"""Sorting and scattering kernels against NumPy: every way of choosing, odd sizes, ties, special values."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.kernels.harness import (
    DTYPES,
    PROFILES,
    SHORT,
    STORED,
    Array,
    _dispatch,
    _read,
    _upload,
    random_values,
    run,
)
from webgrad import dtypes
from webgrad.device_profile import PORTABLE, DeviceProfile
from webgrad.errors import DTypeError, LaunchError, ShapeError
from webgrad.kernels.launch import Launch, Launches
from webgrad.kernels.sorting import (
    KEYS,
    ORDER,
    SCATTERS,
    TEMPORARIES,
    scatter_launch,
    sort_launches,
)
from webgrad.runtime.device import open_device
from webgrad.runtime.webgpu import Device
from webgrad.wgsl.variants import variant_keys

SOFTWARE = PROFILES["software"]
SHAPES = {"threads": SOFTWARE, "groups": PORTABLE}
PAIRS = {**SHAPES, "threads, 32 bits": PROFILES["software-portable"]}
# Grids of several lines, the last of them not full.
NARROW = {
    "threads": DeviceProfile("software", max_workgroups=40),
    "groups": DeviceProfile("discrete", max_workgroups=5),
}
SIZES = (1, 2, 7, 32, 33, 255, 256, 257, 1000, 1024, 1025, 4096, 4097, 9000)


def sorted_places(plan: Launches, keys: Array) -> Array:
    buffers = {KEYS: _upload(keys.tobytes()), ORDER: _upload(b"\xee" * keys.nbytes)}
    for i, nbytes in enumerate(plan.temporary_bytes):
        buffers[TEMPORARIES + i] = _upload(b"\xdd" * nbytes)
    for step in plan.launches:
        _dispatch(step.program, step, [buffers[number] for number in step.values])
    for i, nbytes in enumerate(plan.temporary_bytes):
        _read(
            buffers[TEMPORARIES + i], np.uint32, nbytes // 4
        )  # nothing is written behind a temporary either
    return _read(buffers[ORDER], np.int32, keys.size).reshape(keys.shape)


def check_sort(profile: DeviceProfile, keys: Array, bits: int = 32) -> None:
    rows, n = keys.shape
    actual = sorted_places(sort_launches(profile, rows, n, bits), keys)
    np.testing.assert_array_equal(actual, np.argsort(keys, axis=1, kind="stable"))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", SIZES)
def test_sort(shape: str, n: int) -> None:
    generator = np.random.default_rng(n)
    check_sort(SHAPES[shape], generator.integers(0, 2**32, (3, n), np.uint32))
    check_sort(SHAPES[shape], generator.integers(0, 5, (1, n), np.uint32))  # ties must stay in order
    check_sort(SHAPES[shape], generator.integers(2**32 - 3, 2**32, (2, n), np.uint32))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_sort_orders_that_are_there_already(shape: str) -> None:
    for n in (100, 1500, 5000):
        rising = np.arange(n, dtype=np.uint32)
        check_sort(SHAPES[shape], np.stack([rising, rising[::-1], 0 * rising, rising << 20, ~rising]))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", PAIRS)
def test_sort_a_long_row(shape: str) -> None:
    keys = np.random.default_rng(1).integers(0, 2**32, (1, 65537), np.uint32)
    check_sort(PAIRS[shape], keys)
    check_sort(PAIRS[shape], keys >> 24)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", PAIRS)
@pytest.mark.parametrize("bits", [0, 1, 7, 8, 11, 12, 17, 31])
def test_sort_keys_of_few_bits(shape: str, bits: int) -> None:
    keys = np.random.default_rng(bits).integers(0, 2**bits, (2, 5000), np.uint32)
    check_sort(PAIRS[shape], keys, bits)
    check_sort(PAIRS[shape], keys[:, :1000], bits)


def test_keys_of_few_bits_take_fewer_launches() -> None:
    for profile in SHAPES.values():
        counts = [len(sort_launches(profile, 1, 10**6, bits).launches) for bits in (1, 8, 16, 32)]
        assert counts == sorted(counts)
        assert counts[1] < counts[2] < counts[3]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_sort_many_rows(shape: str) -> None:
    generator = np.random.default_rng(2)
    for rows, n in [(1000, 3), (257, 40), (130, 1030)]:
        check_sort(SHAPES[shape], generator.integers(0, 50, (rows, n), np.uint32))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", NARROW)
def test_sort_on_more_lines_of_the_grid_than_rows_fill(shape: str) -> None:
    generator = np.random.default_rng(3)
    for rows, n in [(401, 5), (7, 100), (7, 9000)]:
        plan = sort_launches(NARROW[shape], rows, n)
        keys = generator.integers(0, 99, (rows, n), np.uint32)
        np.testing.assert_array_equal(sorted_places(plan, keys), np.argsort(keys, axis=1, kind="stable"))


def test_sort_plans_name_their_buffers() -> None:
    for profile in (*PROFILES.values(), *NARROW.values()):
        for rows, n, bits in [(1, 1, 32), (5, 100, 32), (3, 5000, 32), (3, 5000, 3), (3, 5000, 12)]:
            plan = sort_launches(profile, rows, n, bits)
            known = {KEYS}
            for step in plan.launches:
                program = step.program
                assert len(step.values) == len(program.bindings)
                assert program.bindings[-1].access == "read_write"
                assert KEYS not in step.written
                assert set(step.values) <= known | set(step.written), "read before it was written"
                known |= set(step.written)
            assert plan.launches[-1].values[-1] == ORDER
            temporaries = range(TEMPORARIES, TEMPORARIES + len(plan.temporary_bytes))
            assert known | set(temporaries) == {KEYS, ORDER, *temporaries}


def test_sort_programs_do_not_depend_on_sizes() -> None:
    for profile in SHAPES.values():
        programs = [
            {step.program.label for step in sort_launches(profile, rows, n).launches}
            for rows, n in [(1, 5000), (7, 12345), (3, 10**5)]
        ]
        assert programs[0] == programs[1] == programs[2]
        assert len(programs[0]) == (7 if profile.kind == "software" else 5)


def test_nothing_to_sort_is_no_launch() -> None:
    assert sort_launches(SOFTWARE, 0, 5) == sort_launches(PORTABLE, 5, 0) == Launches((), ())
    with pytest.raises(ShapeError, match=r"sort of \(-1, 5\) keys"):
        sort_launches(SOFTWARE, -1, 5)
    with pytest.raises(LaunchError, match="split the work"):
        sort_launches(DeviceProfile("discrete", max_workgroups=2), 100, 1000)


# Scatters

WIDE = {"i64": np.int64, "u64": np.uint64, "f64": np.float64}
COLUMNS = (1, 3, 4, 6, 12)


def scattered(how: str, base: Array, index: Array, updates: Array) -> Array:
    """One after another, rounded to the dtype each time, as the kernel does it."""
    result = base.copy()
    with np.errstate(all="ignore"):
        for row, update in zip(np.clip(index, 0, max(len(base) - 1, 0)), updates, strict=True):
            if how == "set":
                result[row] = update
            elif how == "add":
                result[row] = (_widened(result[row]) + _widened(update)).astype(base.dtype)
            else:
                result[row] = np.maximum(_widened(result[row]), _widened(update)).astype(base.dtype)
    return result


def _widened(values: Array) -> Array:
    return values.astype(np.float32) if values.dtype.kind in "fV" and values.dtype.itemsize == 2 else values


def check_scatter(profile: DeviceProfile, how: str, dtype: str, rows: int, columns: int, count: int) -> None:
    if dtype in WIDE:
        generator = np.random.default_rng(rows)
        base = generator.integers(0, 2**62, (rows, columns)).astype(WIDE[dtype])
        updates = generator.integers(0, 2**62, (count, columns)).astype(WIDE[dtype])
    else:
        base, updates = random_values(dtype, (rows, columns), 1), random_values(dtype, (count, columns), 2)
    index = np.random.default_rng(count).integers(-2, rows + 2, count).astype(np.int32)
    launch = scatter_launch(profile, how, SHORT[dtype], rows, columns, count)
    expected = scattered(how, base, index, updates)
    for in_place in (None, 0):
        actual = run(launch, [base, index, updates], base.dtype, base.size, in_place).reshape(base.shape)
        np.testing.assert_array_equal(_bits(actual), _bits(expected), err_msg=f"{how} {dtype} {columns}")
    update = scatter_launch(profile, how, SHORT[dtype], rows, columns, count, update=True)
    buffers = [_upload(each.tobytes()) for each in (index, updates, base)]
    _dispatch(update.program, update, buffers)
    actual = _read(buffers[-1], base.dtype, base.size).reshape(base.shape)
    np.testing.assert_array_equal(_bits(actual), _bits(expected), err_msg=f"{how} {dtype} {columns} there")


def _bits(values: Array) -> Array:
    return values.view(f"u{values.dtype.itemsize}")


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter(shape: str, dtype: str) -> None:
    for how in SCATTERS if dtype in ("f32", "bf16", "i8") else ("add", "max"):
        for columns in COLUMNS:
            check_scatter(SHAPES[shape], how, dtype, 7, columns, 20)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_scatter_sizes(shape: str) -> None:
    for rows, columns, count in [
        (1, 1, 1),
        (5, 4, 0),
        (1, 260, 3),
        (1000, 1, 257),
        (65537, 1, 100),
        (300, 64, 50),
        (9001, 4, 77),
        (1, 5, 1000),
    ]:
        check_scatter(SHAPES[shape], "add", "i32", rows, columns, count)
        check_scatter(SHAPES[shape], "set", "u8", rows, columns, count)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_scatter_of_nothing_and_into_nothing(shape: str) -> None:
    for rows, columns, count in [(0, 4, 3), (3, 0, 3), (0, 0, 0), (0, 1, 3)]:
        base = np.zeros((rows, columns), np.float32)
        index, updates = np.zeros(count, np.int32), np.ones((count, columns), np.float32)
        launch = scatter_launch(SHAPES[shape], "add", dtypes.float32, rows, columns, count)
        assert run(launch, [base, index, updates], base.dtype, 0).size == 0


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_scatter_on_several_lines_of_the_grid(shape: str) -> None:
    kind: Any = SHAPES[shape].kind
    profile = DeviceProfile(kind, max_workgroups={"threads": 3, "groups": 12}[shape])
    for rows, columns in [(5000, 3), (2500, 12)]:
        check_scatter(profile, "set", "i16", rows, columns, 30)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("columns", [4, 5])
def test_scatter_keeps_nan_and_infinity(shape: str, columns: int) -> None:
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 3.0, -3.0], np.float32)
    base, updates = (each.reshape(64, 1).repeat(columns, 1) for each in np.meshgrid(special, special))
    index = np.arange(64, dtype=np.int32)
    for how, expected in (("max", np.maximum(base, updates)), ("set", updates)):
        launch = scatter_launch(SHAPES[shape], how, dtypes.float32, 64, columns, 64)
        actual = run(launch, [base, index, updates], base.dtype, base.size).reshape(base.shape)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.gpu
def test_scatter_half_floats_overflow_to_infinity() -> None:
    base = np.full((2, 5), 60000, np.float16)
    launch = scatter_launch(SOFTWARE, "add", dtypes.float16, 2, 5, 1)
    actual = run(launch, [base, np.zeros(1, np.int32), base[:1]], base.dtype, base.size).reshape(base.shape)
    np.testing.assert_array_equal(actual, [[np.inf] * 5, [60000] * 5])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["i64", "u64"])
def test_scatter_integers_of_64_bits(dtype: str) -> None:
    for how in SCATTERS:
        for columns in (1, 2, 4):
            check_scatter(SOFTWARE, how, dtype, 9, columns, 30)
    below = np.full((1, 3), -5, np.int64)
    launch = scatter_launch(SOFTWARE, "max", dtypes.int64, 1, 3, 1)
    assert (run(launch, [below, np.zeros(1, np.int32), below + 3], below.dtype, 3) == -2).all()


def run_on(device: Device, launch: Launch, inputs: list[Array], like: Array) -> Array:
    buffers = [device.upload(each) for each in inputs]
    result = device.queue.compute(
        device.pipeline(launch.program), buffers, like.nbytes, launch.params, launch.grid
    )
    return np.frombuffer(device.read(result), like.dtype).reshape(like.shape)


def gpu_device() -> Device:
    device = open_device("webgpu")
    assert isinstance(device, Device)
    return device


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_the_runtime_runs_the_launches(shape: str) -> None:
    """Through the queue, where shaders have no bounds checks and temporaries come from the pool."""
    device = gpu_device()
    generator = np.random.default_rng(7)
    for rows, n in [(3, 20), (2, 300), (2, 9001)]:
        keys = generator.integers(0, 1000, (rows, n), np.uint32)
        plan = sort_launches(SHAPES[shape], rows, n)
        buffers = [device.upload(keys), device.allocate(keys.nbytes)]
        buffers += [device.allocate(nbytes) for nbytes in plan.temporary_bytes]
        for step in plan.launches:
            launch = step
            bound = [buffers[number] for number in step.values]
            device.dispatch(device.pipeline(launch.program), bound, launch.params, launch.grid)
        actual = np.frombuffer(device.read(buffers[ORDER]), np.int32).reshape(rows, n)
        np.testing.assert_array_equal(actual, np.argsort(keys, axis=1, kind="stable"))
    base, updates = random_values("f32", (30, 5), 1), random_values("f32", (99, 5), 2)
    index = generator.integers(0, 30, 99).astype(np.int32)
    launch = scatter_launch(SHAPES[shape], "add", dtypes.float32, 30, 5, 99)
    actual = run_on(device, launch, [base, index, updates], base)
    np.testing.assert_array_equal(actual, scattered("add", base, index, updates))


@pytest.mark.gpu
def test_scatter_float64() -> None:
    device = gpu_device()
    if "f64" not in device.profile.features:
        pytest.skip("this adapter has no float64")
    generator = np.random.default_rng(5)
    base, updates = generator.standard_normal((9, 3)), generator.standard_normal((30, 3))
    base[2], updates[5] = np.nan, np.inf
    index = generator.integers(0, 9, 30).astype(np.int32)
    for how in SCATTERS:
        launch = scatter_launch(device.profile, how, dtypes.float64, 9, 3, 30)
        actual = run_on(device, launch, [base, index, updates], base)
        np.testing.assert_array_equal(actual, scattered(how, base, index, updates))


def test_chosen_programs_are_exactly_the_declared_variants() -> None:
    """What is chosen ships and is compiled in the tests; what ships is chosen somewhere."""
    wide = frozenset({"int64", "f64"})
    launches: list[Launch] = []
    kinds = (SOFTWARE, DeviceProfile("software"), PORTABLE)
    for profile in (*kinds, DeviceProfile("software", wide), DeviceProfile("discrete", wide)):
        for n, bits in ((5, 32), (100, 32), (5000, 32), (5000, 4)):
            launches += sort_launches(profile, 2, n, bits).launches
        for how in SCATTERS:
            for dtype in STORED if profile.features >= wide else STORED - WIDE.keys():
                for columns, update in product((3, 4), (False, True)):
                    launches.append(scatter_launch(profile, how, SHORT[dtype], 3, columns, 3, update=update))
    chosen = {
        (program.label.split()[0], program.entry, tuple(sorted(program.defines)))
        for launch in launches
        for program in launch.programs
    }
    declared = {
        (name, entry, tuple(sorted(defines.items())))
        for name in ("sort.pwgsl", "scatter.pwgsl")
        for entry, defines in variant_keys(name)
    }
    assert chosen == declared


def test_scatters_that_are_not_offered_are_named() -> None:
    with pytest.raises(DTypeError, match="there is no scatter 'min'; there are set, add, max"):
        scatter_launch(PORTABLE, "min", dtypes.float32, 1, 1, 1)
    with pytest.raises(DTypeError, match="scatter add is not offered for bool"):
        scatter_launch(PORTABLE, "add", dtypes.bool, 1, 1, 1)
    with pytest.raises(DTypeError, match="scatter max of int64 needs an adapter with int64"):
        scatter_launch(PORTABLE, "max", dtypes.int64, 1, 1, 1)
    with pytest.raises(DTypeError, match="scatter set is not offered for complex64"):
        scatter_launch(PORTABLE, "set", dtypes.complex64, 1, 1, 1)
    with pytest.raises(ShapeError, match=r"scatter of -1 rows into \(2, 2\)"):
        scatter_launch(PORTABLE, "set", dtypes.float32, 2, 2, -1)
    with pytest.raises(LaunchError, match="too many elements"):
        scatter_launch(PORTABLE, "set", dtypes.float32, 2**17, 2**17, 1)


def test_scatter_programs_do_not_depend_on_sizes() -> None:
    names: Any = {
        scatter_launch(PORTABLE, "add", dtypes.float32, rows, columns, count).program
        for rows, columns, count in [(5, 4, 3), (1000, 512, 77), (1, 8, 0)]
    }
    assert len(names) == 1
    assert scatter_launch(PORTABLE, "set", dtypes.bool, 5, 4, 3) == scatter_launch(
        PORTABLE, "set", dtypes.int8, 5, 4, 3
    )
