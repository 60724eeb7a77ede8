"""Packing params, sizing grids, and what a profile allows."""

from __future__ import annotations

import struct

import pytest

from webgrad.device_profile import PORTABLE, DeviceProfile
from webgrad.errors import LaunchError
from webgrad.kernels.launch import grid_for, has_workgroups, pack
from webgrad.wgsl import load_template

SCATTER = load_template("scatter.pwgsl", "scatter", HOW="add", T="f32")
PARAMS = {"parts": 1, "rows": 2, "columns": 3, "count": 4, "share": 5, "grid_x": 6}


def test_pack_follows_the_struct() -> None:
    assert pack(SCATTER, **dict(reversed(PARAMS.items()))) == struct.pack("<6I", 1, 2, 3, 4, 5, 6)


def test_pack_names_what_does_not_fit() -> None:
    with pytest.raises(LaunchError, match="param `count` is 4294967296; u32 holds 0 to 4294967295"):
        pack(SCATTER, **{**PARAMS, "count": 2**32})
    with pytest.raises(LaunchError, match="has no params scalar"):
        pack(SCATTER, **PARAMS, scalar=1.0)
    with pytest.raises(LaunchError, match="needs the params columns, count, parts, rows, share"):
        pack(SCATTER, grid_x=3)


@pytest.mark.parametrize("workgroups", [0, 1, 2, 65535, 65536, 65537, 131_071, 10**6, 10**7, 65535**2])
def test_a_grid_covers_the_workgroups_within_the_limit(workgroups: int) -> None:
    x, y, z = grid_for(PORTABLE, workgroups)
    assert z == 1
    assert x * y >= workgroups
    assert x * y < workgroups + y  # less than a column of spare workgroups
    assert max(x, y) <= 65535


def test_a_grid_beyond_the_limit_is_refused() -> None:
    with pytest.raises(LaunchError, match="split the work"):
        grid_for(PORTABLE, 65535**2 + 1)


def test_small_devices_get_small_workgroups() -> None:
    assert has_workgroups(PORTABLE)
    assert not has_workgroups(DeviceProfile("discrete", max_invocations=128))
    assert not has_workgroups(DeviceProfile("integrated", max_workgroup_storage=8192))
    assert not has_workgroups(DeviceProfile("software"))
