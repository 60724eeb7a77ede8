"""Matrix products against NumPy: all profiles, dtypes and layouts, sizes around every tile's edges."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.harness import DTYPES, NATIVE_F16, PROFILES, as_float64, random_values, run
from webgrad.errors import DTypeError, ShapeError
from webgrad.kernels.choose import matmul
from webgrad.runtime.profile import PORTABLE, DeviceProfile

EPSILON = {"f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
LAYOUTS = {"kn": False, "nk": True}
# (m, n, k) for all profiles in float32: whole groups, then odd ones, each with thin and thick A.
EVEN = [(1, 4, 4), (1, 256, 36), (2, 260, 8), (2, 8, 64), (3, 36, 20), (7, 64, 12), (9, 4, 8), (16, 32, 64)]
EVEN += [(17, 36, 68), (33, 64, 128), (64, 128, 4), (65, 132, 16), (127, 68, 32)]
ODD = [(1, 1, 1), (1, 7, 9), (1, 64, 33), (2, 3, 5), (5, 5, 5), (8, 31, 17), (9, 10, 11), (13, 2, 64)]
ODD += [(17, 17, 17), (31, 33, 65), (64, 65, 31), (65, 127, 15), (127, 64, 33)]
SMALL = [(m, n, k) for m in (1, 2, 3, 5, 8, 11) for n in (1, 2, 3, 4, 6, 9) for k in (1, 3, 4, 7)]


def check(profile: DeviceProfile, dtype: str, m: int, n: int, k: int, transposed: bool) -> None:
    """Within the worst case of summing k products in float32, and one rounding to the dtype."""
    a, b = random_values(dtype, (m, k), 1), random_values(dtype, (k, n), 2)
    stored = np.ascontiguousarray(b.T) if transposed else b
    launch = matmul(profile, dtype, m, n, k, transposed=transposed)
    actual = as_float64(run(launch, [a, stored], a.dtype, m * n).reshape(m, n))
    exact = as_float64(a) @ as_float64(b)
    bound = (k + 1) * 2.0**-23 * (np.abs(as_float64(a)) @ np.abs(as_float64(b)))
    if dtype != "f32":
        bound += EPSILON[dtype] * np.abs(exact) + 1e-7
    worst = np.max(np.abs(actual - exact) - bound, initial=-1.0)
    assert worst <= 0, f"{launch.program.label} m={m} n={n} k={k}: off by {worst} more than allowed"


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PROFILES)
def test_float32(name: str, layout: str) -> None:
    sizes = EVEN + ODD
    if name in ("software-32-bit", "software-4-lanes", "integrated"):  # variations of another profile
        sizes = sizes[2::4]
    for m, n, k in sizes:
        check(PROFILES[name], "f32", m, n, k, LAYOUTS[layout])


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_small_size(layout: str) -> None:
    for m, n, k in SMALL:
        check(PROFILES["software"], "f32", m, n, k, LAYOUTS[layout])


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["software", "portable"])
def test_16_bit_floats(name: str, dtype: str, layout: str) -> None:
    for m, n, k in [(17, 36, 68), (65, 64, 32), (11, 13, 15), (33, 37, 64), (1, 8, 64), (1, 256, 5 * 4)]:
        check(PROFILES[name], dtype, m, n, k, LAYOUTS[layout])


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
def test_16_bit_floats_without_subgroups(layout: str) -> None:
    for m, n, k in [(17, 36, 68), (5, 13, 15)]:
        check(PROFILES["software-portable"], "bf16", m, n, k, LAYOUTS[layout])


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
def test_native_float16(layout: str) -> None:
    for m, n, k in [(17, 36, 68), (11, 13, 15), (1, 8, 64)]:
        check(NATIVE_F16, "f16", m, n, k, LAYOUTS[layout])


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["software", "software-portable", "portable"])
def test_no_nan_comes_from_beyond_the_edge(name: str) -> None:
    """Infinities at the last k: what is read beyond it must be 0 on both sides, for 0 * inf is NaN."""
    m, n, k = 9, 5, 7
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    a[:, -1] = np.inf
    c = run(matmul(PROFILES[name], "f32", m, n, k), [a, b], np.float32, m * n)
    assert (c == np.inf).all()
    c = run(
        matmul(PROFILES[name], "f32", m, n, k), [np.ones_like(a), b * np.float32(np.inf)], np.float32, m * n
    )
    assert (c == np.inf).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["software", "software-portable", "portable"])
def test_a_sum_over_nothing_is_zero(name: str) -> None:
    for m in (1, 9):
        launch = matmul(PROFILES[name], "f32", m, 8, 0)
        assert (run(launch, [np.zeros(0, np.float32)] * 2, np.float32, m * 8) == 0).all()
    assert 0 in matmul(PROFILES[name], "f32", 0, 8, 8).grid


@pytest.mark.gpu
def test_a_grid_of_several_lines() -> None:
    """Profiles that allow few workgroups to a line: the linear id, and the guards beyond the end."""
    narrow = DeviceProfile("software", frozenset({"subgroups"}), 8, max_workgroups=5)
    check(narrow, "f32", 90, 64, 8, False)
    check(DeviceProfile("discrete", max_workgroups=3), "f32", 130, 132, 8, False)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_program_serves_every_shape_of_a_feed_forward(profile: DeviceProfile, dtype: str) -> None:
    if dtype not in EPSILON:
        with pytest.raises(DTypeError, match=f"matmul is not offered for {dtype}"):
            matmul(profile, dtype, 32, 768, 256)
        return
    shapes = [
        (m, *nk) for m in (9, 32, 33, 64, 128, 4096) for nk in ((768, 256), (256, 768), (4, 4), (32000, 4096))
    ]
    for transposed in (False, True):
        programs = {matmul(profile, dtype, m, n, k, transposed=transposed).program for m, n, k in shapes}
        assert len(programs) == 1


def test_negative_sizes_are_refused() -> None:
    with pytest.raises(ShapeError, match="m=-1"):
        matmul(PORTABLE, "f32", -1, 2, 3)
