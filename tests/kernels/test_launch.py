"""Packing params, sizing grids, and what a profile allows."""

from __future__ import annotations

import struct

import pytest

from webgrad.errors import DTypeError, LaunchError
from webgrad.kernels.launch import check_dtype, float_defines, grid_for, has_workgroups, pack
from webgrad.runtime.profile import PORTABLE, DeviceProfile
from webgrad.wgsl import load_template

FILL = load_template("fill.pwgsl", "fill_grid")


def test_pack_follows_the_struct() -> None:
    assert pack(FILL, pattern=4, groups=1, chunk=2, grid_x=3) == struct.pack("<4I", 1, 2, 3, 4)


def test_pack_names_what_does_not_fit() -> None:
    with pytest.raises(LaunchError, match="param `groups` is 4294967296; u32 holds 0 to 4294967295"):
        pack(FILL, pattern=4, groups=2**32, chunk=2, grid_x=3)
    with pytest.raises(LaunchError, match="has no params scalar"):
        pack(FILL, pattern=4, groups=1, chunk=2, grid_x=3, scalar=1.0)
    with pytest.raises(LaunchError, match="needs the params chunk, pattern"):
        pack(FILL, groups=1, grid_x=3)


@pytest.mark.parametrize("workgroups", [0, 1, 65535, 65536, 65537, 10**6, 65535**2])
def test_a_grid_covers_the_workgroups_within_the_limit(workgroups: int) -> None:
    x, y, z = grid_for(PORTABLE, workgroups)
    assert z == 1
    assert x * y >= workgroups
    assert x * y < workgroups + y  # less than a column of spare workgroups
    assert max(x, y) <= 65535


def test_a_grid_beyond_the_limit_is_refused() -> None:
    with pytest.raises(LaunchError, match="split the work"):
        grid_for(PORTABLE, 65535**2 + 1)


def test_dtype_names() -> None:
    assert check_dtype("op", "uint8", frozenset({"u8"})) == "u8"
    with pytest.raises(DTypeError, match="op is not offered for complex64, only for f32"):
        check_dtype("op", "complex64", frozenset({"f32"}))


def test_small_devices_get_small_workgroups() -> None:
    assert has_workgroups(PORTABLE)
    assert not has_workgroups(DeviceProfile("discrete", max_invocations=128))
    assert not has_workgroups(DeviceProfile("integrated", max_workgroup_storage=8192))
    assert not has_workgroups(DeviceProfile("software"))


def test_native_float16_is_for_gpus_that_have_it() -> None:
    assert float_defines(DeviceProfile("discrete", frozenset({"f16"})), "f16") == {"F16": 1}
    assert float_defines(DeviceProfile("discrete", frozenset({"f16"})), "f32") == {}
    assert float_defines(DeviceProfile("software", frozenset({"f16"})), "f16") == {}
    assert float_defines(PORTABLE, "f16") == {}
