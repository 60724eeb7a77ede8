"""Kernels of Fourier transforms against NumPy in float64: every radix, both ways of choosing, odd grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.harness import PROFILES, Array, _device, _dispatch, _read, _upload
from webgrad.device_profile import PORTABLE, DeviceProfile
from webgrad.errors import ShapeError
from webgrad.kernels.fourier import RESULT, SOURCE, SPARE, fourier_launches, real_launches
from webgrad.kernels.launch import Launches
from webgrad.wgsl.variants import variant_keys

KINDS = {
    "threads": PROFILES["software"],
    "threads, 32 bits": PROFILES["software-portable"],
    "groups": PORTABLE,
}
# Grids of several lines, the last of them not full.
NARROW = {
    "threads": DeviceProfile("software", max_workgroups=20),
    "groups": DeviceProfile("discrete", max_workgroups=7),
}
LENGTHS = (2, 3, 4, 5, 7, 8, 16, 32, 60, 105, 1000, 1024, 2048, 4096, 3**7, 1 << 15)
PARTS: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
BOUNDS = {"f32": 3e-7, "f64": 1.5e-15}  # the root of the mean square, beside the result's


def numbers(dtype: str, rows: int, length: int) -> Array:
    generator = np.random.default_rng(length)
    return generator.standard_normal((rows, length, 2)).astype(PARTS[dtype])


def run(plan: Launches, x: Array, nbytes: int) -> Array:
    buffers = {SOURCE: _upload(x.tobytes()), RESULT: _upload(b"\xee" * nbytes)}
    for at, each in enumerate(plan.temporary_bytes):
        buffers[SPARE + at] = _upload(b"\xdd" * each)
    for step in plan.launches:
        _dispatch(step.program, step, [buffers[number] for number in step.values])
    for at, each in enumerate(plan.temporary_bytes):  # nothing is written behind a temporary either
        _read(buffers[SPARE + at], np.uint32, each // 4)
    return _read(buffers[RESULT], x.dtype, nbytes // x.itemsize)


def transform(profile: DeviceProfile, dtype: str, x: Array, inverse: bool, scale: float) -> Array:
    rows, length, _ = x.shape
    return run(fourier_launches(profile, dtype, rows, length, inverse, scale), x, x.nbytes).reshape(x.shape)


def check(profile: DeviceProfile, dtype: str, rows: int, length: int, inverse: bool = False) -> None:
    x = numbers(dtype, rows, length)
    scale = 1 / 3 if inverse else 1.0
    found = transform(profile, dtype, x, inverse, scale).astype(np.float64).view(np.complex128)[..., 0]
    source = x.astype(np.float64).view(np.complex128)[..., 0]
    wanted = np.fft.ifft(source, norm="forward") * scale if inverse else np.fft.fft(source)
    error = np.sqrt(np.mean(np.abs(found - wanted) ** 2) / np.mean(np.abs(wanted) ** 2))
    assert error < BOUNDS[dtype], f"{rows} of {length}"


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_every_length(kind: str, length: int) -> None:
    check(KINDS[kind], "f32", 1, length)
    check(KINDS[kind], "f32", 3, length, inverse=True)


def check_real(profile: DeviceProfile, dtype: str, rows: int, length: int) -> None:
    """There, and back with what cannot be in the imaginary parts at both ends."""
    x = numbers(dtype, rows, length)[..., 0].copy()
    wanted = np.fft.rfft(x.astype(np.float64))
    plan = real_launches(profile, dtype, rows, length, False, 1 / 3)
    half = run(plan, x, 2 * x.itemsize * wanted.size)
    found = half.astype(np.float64).view(np.complex128).reshape(wanted.shape)
    assert np.sqrt(np.mean(np.abs(3 * found - wanted) ** 2) / np.mean(np.abs(wanted) ** 2)) < BOUNDS[dtype]
    given = half.reshape(*wanted.shape, 2).copy()
    given[:, [0, -1], 1] = np.nan
    back = run(real_launches(profile, dtype, rows, length, True, 3 / length), given, x.nbytes).reshape(
        x.shape
    )
    assert np.sqrt(np.mean((back - x) ** 2)) < 2 * BOUNDS[dtype]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_real_numbers(kind: str) -> None:
    for rows, length in ((1, 2), (3, 4), (5, 6), (2, 14), (30, 64), (3, 1000), (2, 8192)):
        check_real(KINDS[kind], "f32", rows, length)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["threads", "groups"])
def test_double_precision(kind: str) -> None:
    if "shader-f64" not in _device().features:
        pytest.skip("the adapter has no float64")
    for length in (16, 105, 512, 1024, 4096):
        check(KINDS[kind], "f64", 2, length)
        check(KINDS[kind], "f64", 3, length, inverse=True)
    check_real(KINDS[kind], "f64", 3, 60)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_rows_side_by_side(kind: str) -> None:
    for rows, length, inner in ((2, 8, 3), (1, 30, 16), (3, 64, 5), (2, 4096, 3), (1, 1000, 7)):
        x = numbers("f32", rows, length * inner)
        plan = fourier_launches(KINDS[kind], "f32", rows, length, True, 0.5, inner)
        found = run(plan, x, x.nbytes).astype(np.float64).view(np.complex128).reshape(rows, length, inner)
        source = x.astype(np.float64).view(np.complex128).reshape(rows, length, inner)
        wanted = np.fft.ifft(source, axis=1, norm="forward") * 0.5
        error = np.sqrt(np.mean(np.abs(found - wanted) ** 2) / np.mean(np.abs(wanted) ** 2))
        assert error < BOUNDS["f32"], f"{rows} of {length} by {inner}"


@pytest.mark.gpu
@pytest.mark.parametrize("kind", NARROW)
def test_grids_of_several_lines(kind: str) -> None:
    for rows, length in ((700, 16), (9, 4096)):
        check(NARROW[kind], "f32", rows, length)
    check_real(NARROW[kind], "f32", 33, 32)


def test_what_is_declared_is_what_is_chosen() -> None:
    chosen = {
        (step.program.entry, frozenset(step.program.defines))
        for profile in KINDS.values()
        for dtype in PARTS
        for plan in [
            *(fourier_launches(profile, dtype, 1, each) for each in (2, 3, 4, 5, 7, 8, 16, 6, 12, 24, 48)),
            *(real_launches(profile, dtype, 1, 2, inverse) for inverse in (False, True)),
        ]
        for step in plan.launches
    }
    declared = {(entry, frozenset(defines.items())) for entry, defines in variant_keys("fourier.pwgsl")}
    assert chosen == declared


def test_a_row_that_workgroups_hold_is_one_launch() -> None:
    assert len(fourier_launches(PORTABLE, "f32", 100, 2048).launches) == 1
    assert len(fourier_launches(PORTABLE, "f32", 100, 1 << 16).launches) == 2
    assert len(fourier_launches(KINDS["threads"], "f32", 100, 1 << 16).launches) == 4


def test_lengths_cost_no_programs() -> None:
    """Of all powers of two there are four texts."""
    plans = [fourier_launches(KINDS["threads"], "f32", 1, 1 << bits) for bits in range(1, 25)]
    assert len({step.program for plan in plans for step in plan.launches}) == 4
    assert fourier_launches(PORTABLE, "f32", 0, 8).launches == ()
    assert real_launches(PORTABLE, "f32", 0, 8).launches == ()


@pytest.mark.parametrize(("rows", "length"), [(1, 0), (1, 1), (1, 11), (-1, 8), (2**20, 2**20)])
def test_what_kernels_do_not_take(rows: int, length: int) -> None:
    with pytest.raises(ShapeError, match=f"{length}"):
        fourier_launches(PORTABLE, "f32", rows, length)
    with pytest.raises(ShapeError, match=f"{length}"):
        real_launches(PORTABLE, "f32", rows, length)
