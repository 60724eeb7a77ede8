"""Bind groups and layouts: made once, shared, and let go with their buffers or after an error."""

from __future__ import annotations

import gc

import pytest

from tests.runtime.helpers import ADD, Bench, floats
from webgrad.errors import DeviceError
from webgrad.runtime.native import native_object_counts

pytestmark = pytest.mark.gpu


def test_kernels_with_the_same_accesses_share_layouts_and_groups(alone: Bench) -> None:
    groups = alone.queue.context.groups
    assert groups.layout(("read", "read_write")) is groups.layout(("read", "read_write"))
    assert groups.layout(("read", "read")) is not groups.layout(("read", "read_write"))
    subtract = alone.pipeline(ADD.replace("+", "-").replace("fn add", "fn subtract"), "subtract")
    a, b = alone.upload(floats(5)), alone.upload(floats(3))
    y = alone.add(a, b)
    alone.device.flush()
    alone.device.dispatch(subtract, [a, b, y], b"\1\0\0\0")
    assert alone.numbers(y).tolist() == [2]
    assert alone.stats["bind_groups_created"] == 1
    assert alone.stats["bind_groups_reused"] == 1


def test_a_group_is_found_by_its_buffers_and_ranges(alone: Bench) -> None:
    context = alone.queue.context
    x, y = alone.upload(floats(1)), alone.upload(floats(2))
    layout = context.groups.layout(("read", "read_write"))
    buffers = (x.virtual.physical, y.virtual.physical)
    with context.groups.creating():
        whole = context.groups.whole(layout, buffers)
        part = context.groups.ranges(layout, ((buffers[0], 0, 4), (buffers[1], 0, 4)))
        assert context.groups.whole(layout, buffers) is whole
        assert context.groups.whole(layout, buffers[::-1]) is not whole
        assert context.groups.ranges(layout, ((buffers[0], 0, 4), (buffers[1], 0, 4))) is part
        assert context.groups.ranges(layout, ((buffers[0], 0, 8), (buffers[1], 0, 4))) is not part
    assert len(context.groups) == 4


def test_dropping_a_buffer_drops_its_groups_only(alone: Bench) -> None:
    groups = alone.queue.context.groups
    x, y, z = (alone.upload(floats(number)) for number in range(3))
    alone.scale_into(x, y, 2)
    alone.scale_into(x, z, 2)
    alone.device.flush()
    gc.collect()  # devices that earlier tests dropped
    before = native_object_counts()["BindGroup"]
    groups.drop_buffer(y.virtual.physical)
    assert len(groups) == 1
    assert native_object_counts()["BindGroup"] == before - 1
    groups.drop_buffer(x.virtual.physical)
    assert len(groups) == 0
    groups.drop_buffer(z.virtual.physical)


def test_an_error_keeps_the_groups_that_were_made_before(alone: Bench) -> None:
    groups = alone.queue.context.groups
    x = alone.upload(floats(1))
    kept = alone.scale(x, 2)
    assert alone.numbers(kept).tolist() == [2]
    layout = groups.layout(("read", "read_write"))
    wrong = ((x.virtual.physical, 0, 4), (kept.virtual.physical, 3, 4))  # an offset of 3 bytes
    with pytest.raises(DeviceError, match="the GPU refused making bind groups"), groups.creating():
        groups.ranges(layout, wrong)
    assert len(groups) == 1
    for _ in range(3):  # the queue that was resolved before the error runs as it did
        alone.scale_into(x, kept, 3)
        assert alone.numbers(kept).tolist() == [3]
    assert alone.stats["bind_groups_created"] == 2


def test_a_long_lived_buffer_does_not_remember_groups_that_are_gone(alone: Bench) -> None:
    weight = alone.upload(floats(1, 2, 3))
    groups = alone.queue.context.groups
    for _ in range(30):
        other = alone.upload(floats(0, 0, 0))
        alone.scale_into(weight, other, 2.0)
        alone.device.synchronize()
        del other
        alone.queue.flush()
        alone.queue.context.pool.clear()
    remembered = sum(map(len, groups._of_buffer.values()))
    assert remembered <= 4
    assert len(groups) <= 2
