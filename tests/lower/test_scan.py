"""Kernels of running totals: what is loaded at once, that chunks begin where others end, few texts."""

from __future__ import annotations

import random

import pytest

from tests.graph.helpers import apply, value
from tests.lower.helpers import lowered, texts
from webgrad.device_profile import DeviceProfile
from webgrad.graph.node import Node
from webgrad.lower.ir import Kernel
from webgrad.ops import primitives
from webgrad.ops.table import TABLE


def scan(x: Node, axis: int, name: str = "cumulative_sum") -> Node:
    return primitives.scan(TABLE[name], x, axis)


def widths(kernel: Kernel) -> set[int]:
    """How many elements are loaded and stored at once."""
    loads = {each.type.width for each in kernel.body if each.op == "load" and each.type}
    stores = {each.args[1].type.width for each in kernel.body if each.op == "store" and each.args[1].type}
    return loads | stores


def loops(kernel: Kernel) -> int:
    return sum(each.op == "loop" for each in kernel.body)


def test_rows_and_columns_go_by_fours(profile: DeviceProfile) -> None:
    for x, axis in [(value(300, 64), 1), (value(64, 300), 0), (value(301), 0), (apply("exp", value(77)), 0)]:
        (kernel,) = lowered(scan(x, axis, "cumulative_max"), profile=profile)
        assert widths(kernel) == {4}


def test_what_does_not_lie_in_fours_goes_one_by_one(profile: DeviceProfile) -> None:
    for x, axis in [(value(300, 63), 1), (value(64, 301), 0), (primitives.flip(value(301), (0,)), 0)]:
        (kernel,) = lowered(scan(x, axis, "cumulative_max"), profile=profile)
        assert widths(kernel) == {1}


def test_only_sums_of_floats_are_kept_in_two_parts(profile: DeviceProfile) -> None:
    (largest,) = lowered(scan(value(300, 64), 1, "cumulative_max"), profile=profile)
    (total,) = lowered(scan(value(300, 64), 1), profile=profile)
    assert loops(total) == loops(largest) + 1


def test_chunks_load_totals_once_before_their_loop(profile: DeviceProfile) -> None:
    *_, last = lowered(scan(value(1 << 20), 0), profile=profile)
    first_loop = [at for at, each in enumerate(last.body) if each.op == "loop"]
    totals = [
        at for at, each in enumerate(last.body) if each.op == "load" and each.type and each.type.width == 1
    ]
    assert len(totals) == 1
    assert totals[0] < first_loop[-2]


@pytest.mark.golden
def test_a_new_length_is_not_a_new_text(profile: DeviceProfile) -> None:
    draw = random.Random(1)
    found: set[str] = set()
    for _ in range(60):
        found.update(texts(scan(value(draw.randint(20_000, 10**7)), 0), profile=profile))
    assert len(found) <= 12
