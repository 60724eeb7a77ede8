"""Scatters of few and many updates against NumPy: by owners, sorting, tables, atomics; repeats, odd sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernels.harness import PROFILES, SHORT, STORED, Array, _dispatch, _read, _upload, random_values
from webgrad import dtypes
from webgrad.device_profile import PORTABLE, DeviceProfile, ProfileKind
from webgrad.errors import DTypeError
from webgrad.kernels import scatters
from webgrad.kernels.launch import Launches
from webgrad.kernels.scatters import BASE, INDEX, RESULT, SPARES, UPDATES, scatter_launches
from webgrad.kernels.sorting import SCATTERS
from webgrad.wgsl.variants import variant_keys

SOFTWARE = PROFILES["software"]
SHAPES = {"threads": SOFTWARE, "32 bits": PROFILES["software-portable"], "groups": PORTABLE}
KINDS: tuple[ProfileKind, ...] = ("software", "discrete")
WIDE = frozenset({"i64", "u64", "f64"})


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """GPUs bring updates together however few they are."""
    monkeypatch.setattr(scatters, "MAX_GPU_IN_TURN", 0)
    scatter_launches.cache_clear()
    yield
    scatter_launches.cache_clear()


def run_plan(plan: Launches, base: Array, index: Array, updates: Array, there: bool) -> Array:
    buffers = {
        BASE: _upload(base.tobytes()),
        INDEX: _upload(index.tobytes()),
        UPDATES: _upload(updates.tobytes()),
        RESULT: _upload(base.tobytes() if there else b"\xee" * base.nbytes),
    }
    for at, nbytes in enumerate(plan.temporary_bytes):
        buffers[SPARES + at] = _upload(b"\xdd" * nbytes)
    for step in plan.launches:
        assert not there or BASE not in step.values
        _dispatch(step.program, step, [buffers[number] for number in step.values])
    for at, nbytes in enumerate(plan.temporary_bytes):
        _read(buffers[SPARES + at], np.uint8, nbytes)  # nothing is written behind a temporary either
    return _read(buffers[RESULT], base.dtype, base.size).reshape(base.shape)


def scattered(how: str, base: Array, index: Array, updates: Array) -> Array:
    rows, result = np.clip(index, 0, len(base) - 1), base.copy()
    if how == "set":
        result[rows] = updates
    else:
        {"add": np.add, "max": np.maximum}[how].at(result, rows, updates)
    return result


def check(profile: DeviceProfile, how: str, dtype: str, rows: int, columns: int, index: Array) -> None:
    count = len(index)
    base, updates = random_values(dtype, (rows, columns), 1), random_values(dtype, (count, columns), 2)
    exact = how == "set" or base.dtype.kind in "iu" or how == "max"
    expected = scattered(how, base if exact else base.astype(np.float64), index, updates)
    for there in (False, True):
        plan = scatter_launches(profile, how, SHORT[dtype], rows, columns, count, there)
        actual = run_plan(plan, base, index, updates, there)
        if exact:
            np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))
        else:
            size = scattered("add", np.abs(base), index, np.abs(updates))
            assert (np.abs(actual - expected) <= 1e-5 * size).all()


def places(rows: int, count: int) -> Array:
    return np.random.default_rng(rows).integers(-2, rows + 2, count).astype(np.int32)


@pytest.mark.gpu
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", SCATTERS)
def test_many_updates(shape: str, how: str) -> None:
    for rows, columns, count in [
        (3000, 1, 5000),
        (70, 1, 5000),
        (700, 4, 2000),
        (5, 12, 1500),
        (900, 3, 1100),
    ]:
        for dtype in ("f32", "i32", "u32"):
            check(SHAPES[shape], how, dtype, rows, columns, places(rows, count))


@pytest.mark.gpu
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", SCATTERS)
def test_packed_types_in_groups_of_four(shape: str, how: str) -> None:
    for dtype in ("u8", "i8", "i16", "f16", "bf16"):
        if how != "add" or dtype not in ("f16", "bf16"):
            check(SHAPES[shape], how, dtype, 900, 8, places(900, 3000))


@pytest.mark.gpu
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shape", SHAPES)
def test_runs_over_the_ends_of_chunks(shape: str) -> None:
    profile = SHAPES[shape]
    for how in SCATTERS:
        for rows in (10, 90_000):  # few rows have tables, many are sorted
            for index in (
                np.full(9001, 7, np.int32),
                np.sort(places(10, 9001)),
                np.repeat(np.arange(3, dtype=np.int32), 3001)[:9001],
                np.arange(9001, dtype=np.int32)[::-1].copy() % rows,
            ):
                check(profile, how, "f32", rows, 1, index)
                check(profile, how, "i32", rows, 1, index)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["i64", "u64"])
def test_integers_of_64_bits(dtype: str) -> None:
    kinds: dict[str, Any] = {"i64": np.int64, "u64": np.uint64}
    generator = np.random.default_rng(3)
    base = generator.integers(0, 2**62, (800, 2)).astype(kinds[dtype])
    updates = generator.integers(0, 2**62, (2000, 2)).astype(kinds[dtype])
    index = places(800, 2000)
    for how in SCATTERS:
        plan = scatter_launches(SOFTWARE, how, SHORT[dtype], 800, 2, 2000)
        np.testing.assert_array_equal(
            run_plan(plan, base, index, updates, False), scattered(how, base, index, updates)
        )


@pytest.mark.gpu
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("shape", SHAPES)
def test_nan_and_infinities_stay(shape: str) -> None:
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 3.0], np.float32)
    updates = np.resize(special, 3000).reshape(3000, 1)
    index = (np.arange(3000) * 7 % 613).astype(np.int32)
    for rows in (613, 5000):
        base = np.resize(special[::-1], rows).reshape(rows, 1)
        for how in ("set", "max"):
            plan = scatter_launches(SHAPES[shape], how, dtypes.float32, rows, 1, 3000)
            actual = run_plan(plan, base, index, updates, False)
            np.testing.assert_array_equal(actual, scattered(how, base, index, updates))


def test_few_updates_are_one_launch_and_a_large_base_is_copied_before() -> None:
    assert len(scatter_launches(SOFTWARE, "set", dtypes.float32, 100, 8, 1).launches) == 1
    copied = scatter_launches(SOFTWARE, "set", dtypes.float32, 10**5, 8, 1).launches
    assert [step.program.entry for step in copied] == ["scatter_copy", "scatter"]
    there = scatter_launches(SOFTWARE, "set", dtypes.float32, 10**5, 8, 1, there=True).launches
    assert [step.values for step in there] == [(INDEX, UPDATES, RESULT)]


def test_programs_do_not_depend_on_sizes() -> None:
    by_tables, by_sorting = ((100, 8, 10**5), (9000, 4, 10**6)), ((10**5, 1, 2 * 10**5), (10**6, 3, 10**6))
    for sizes in (by_tables, by_sorting):
        programs = [
            {step.program.label for step in scatter_launches(SOFTWARE, "add", dtypes.float32, *each).launches}
            for each in sizes
        ]
        assert programs[0] == programs[1]


@pytest.mark.usefixtures("always")
def test_chosen_programs_are_exactly_the_declared_variants() -> None:
    wide = frozenset({"int64", "f64"})
    chosen = set()
    for profile in (PORTABLE, *(DeviceProfile(kind, on) for kind in KINDS for on in (frozenset(), wide))):
        for how in SCATTERS:
            for dtype in STORED if profile.features >= wide else STORED - WIDE:
                for rows, columns in ((5, 4), (5, 3), (10**5, 4), (10**5, 3)):
                    for step in scatter_launches(profile, how, SHORT[dtype], rows, columns, 2000).launches:
                        for program in step.programs:
                            if program.label.startswith("scatters.pwgsl"):
                                chosen.add((program.entry, tuple(sorted(program.defines))))
    declared = {(entry, tuple(sorted(defines.items()))) for entry, defines in variant_keys("scatters.pwgsl")}
    assert chosen == declared


def test_what_is_not_offered_is_named() -> None:
    with pytest.raises(DTypeError, match="scatter max of int64 needs an adapter with int64"):
        scatter_launches(PORTABLE, "max", dtypes.int64, 10, 1, 5000)
