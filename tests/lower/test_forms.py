"""Forms of products: which are offered by default for each kind of device."""

from __future__ import annotations

import pytest

from webgrad.device_profile import PORTABLE, DeviceProfile
from webgrad.lower.forms import form_of, offered

FOUR = DeviceProfile("software", frozenset({"subgroups"}), 4)
EIGHT = DeviceProfile("software", frozenset({"subgroups"}), 8)


@pytest.mark.parametrize(("profile", "rows"), [(FOUR, [8, 16]), (EIGHT, [16, 8])])
def test_lanes_take_as_many_rows_as_their_code_is_short_enough_for(
    profile: DeviceProfile, rows: list[int]
) -> None:
    choices = offered(profile, 128, 768, False)
    assert [dict(each)["rows"] for each in choices] == rows
    form = form_of(choices[0], False)
    assert (form.rows, form.groups, form.workgroup) == (rows[0], profile.subgroup_size, profile.subgroup_size)


@pytest.mark.parametrize("profile", [FOUR, EIGHT])
@pytest.mark.parametrize(("m", "rows"), [(1, 1), (2, 2), (3, 4), (8, 8)])
def test_thin_products_take_just_their_rows(profile: DeviceProfile, m: int, rows: int) -> None:
    assert [dict(each)["rows"] for each in offered(profile, m, 100, True)] == [rows]


def test_without_subgroups_threads_work_alone_and_gpus_use_tiles() -> None:
    assert offered(DeviceProfile("software"), 128, 768, False) == ((("threads", 8), ("rows", 8)),)
    assert offered(PORTABLE, 128, 768, False)[0] == (("side", 64),)
