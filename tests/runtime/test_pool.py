"""The pool: size classes, which buffer is lent, the budget, what is evicted, the error without room."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.helpers import bench, floats
from webgrad.config import MemoryBudget
from webgrad.errors import OutOfMemoryError
from webgrad.runtime.native import NativeDevice
from webgrad.runtime.pool import Pool, size_class
from webgrad.runtime.stats import Counters


class FakeNative:
    """A driver with so much memory; handles are numbers."""

    def __init__(self, memory: int = 1 << 40) -> None:
        self.memory = memory
        self.sizes: dict[int, int] = {}
        self.made = 0

    def create_buffer(self, nbytes: int) -> int:
        if sum(self.sizes.values()) + nbytes > self.memory:
            raise OutOfMemoryError("the driver has no memory left")
        self.made += 1
        self.sizes[self.made] = nbytes
        return self.made

    def release_buffer(self, handle: int) -> None:
        del self.sizes[handle]


class PoolOnFake:
    """A pool over a FakeNative, with a list of what was evicted and a count of waits for the GPU."""

    def __init__(self, budget: int = 1 << 40, memory: int = 1 << 40) -> None:
        self.native = FakeNative(memory)
        self.evicted: list[int] = []
        self.waits = 0
        self.counters = Counters()
        self.pool = Pool(
            cast(NativeDevice, self.native),
            self.counters,
            budget,
            on_evict=self.evicted.append,
            largest=lambda: "weights 3.0 KiB",
            settle=self._wait,
        )

    def _wait(self) -> None:
        self.waits += 1


@pytest.mark.property
@given(st.one_of(st.integers(0, 1 << 16), st.integers(0, 1 << 33)))
def test_a_size_class_wastes_at_most_an_eighth(nbytes: int) -> None:
    size = size_class(nbytes)
    assert size >= nbytes
    assert size % 256 == 0
    assert size - nbytes <= max(256, nbytes / 8)
    assert size_class(size) == size


@pytest.mark.property
@given(st.integers(0, 1 << 30), st.integers(0, 1 << 30))
def test_a_larger_buffer_has_no_smaller_class(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert size_class(low) <= size_class(high)


def test_there_are_few_size_classes() -> None:
    assert len({size_class(nbytes) for nbytes in range(0, 1 << 20, 64)}) < 100


def test_a_given_back_buffer_is_lent_again() -> None:
    fake = PoolOnFake()
    buffer = fake.pool.take(256)
    fake.pool.give(buffer)
    assert fake.pool.take(256) == buffer
    assert (fake.counters.buffers_created, fake.counters.buffers_reused) == (1, 1)


def test_only_the_very_size_class_is_lent() -> None:
    fake = PoolOnFake()
    fake.pool.give(fake.pool.take(512))
    fake.pool.take(256)
    assert fake.counters.buffers_created == 2


def test_the_lowest_id_is_lent_first_whatever_the_order_of_giving_back() -> None:
    fake = PoolOnFake()
    buffers = [fake.pool.take(256) for _ in range(5)]
    for index in (3, 0, 4, 1, 2):
        fake.pool.give(buffers[index])
    assert [fake.pool.take(256) for _ in range(5)] == sorted(buffers)


def test_over_the_budget_what_was_unused_longest_goes_first() -> None:
    fake = PoolOnFake(budget=4 * 256)
    buffers = [fake.pool.take(256) for _ in range(4)]
    for index in (2, 0, 3, 1):
        fake.pool.give(buffers[index])
    fake.pool.take(512)
    assert fake.evicted == [buffers[2], buffers[0]]
    assert fake.counters.buffers_evicted == 2
    assert sum(fake.native.sizes.values()) == fake.pool.bytes_total == 1024


def test_no_more_is_evicted_than_needed() -> None:
    fake = PoolOnFake(budget=4 * 256)
    for buffer in [fake.pool.take(256) for _ in range(4)]:
        fake.pool.give(buffer)
    assert fake.pool.evict(257) == 512
    assert len(fake.pool.free) == 2


def test_protected_buffers_stay() -> None:
    fake = PoolOnFake()
    kept, other = fake.pool.take(256), fake.pool.take(256)
    fake.pool.give(kept)
    fake.pool.give(other)
    fake.pool.protected = {kept}
    fake.pool.clear()
    assert fake.pool.free == {kept}


def test_an_eviction_is_not_a_peak() -> None:
    fake = PoolOnFake()
    first = fake.pool.take(1024)
    fake.pool.give(first)
    fake.pool.take(512)
    assert fake.pool.bytes_peak == 1024
    fake.pool.take(256)
    fake.pool.clear()
    assert (fake.pool.bytes_live, fake.pool.bytes_peak) == (768, 1024)


def test_there_is_room_where_a_buffer_can_be_lent_or_free_ones_let_go() -> None:
    fake = PoolOnFake(budget=4096)
    assert fake.pool.has_room(4096)
    assert not fake.pool.has_room(4352)
    lent, free = fake.pool.take(2048), fake.pool.take(1024)
    fake.pool.give(free)
    assert fake.pool.has_room(1024)
    assert fake.pool.has_room(2048)
    assert not fake.pool.has_room(2304)
    fake.pool.give(lent)
    assert fake.pool.has_room(4096)


def test_the_error_over_the_budget_says_asked_used_limit_and_the_largest() -> None:
    fake = PoolOnFake(budget=4096)
    fake.pool.take(3072)
    with pytest.raises(OutOfMemoryError) as caught:
        fake.pool.take(2048)
    message = str(caught.value)
    for part in ("2.0 KiB", "3.0 KiB in use", "limit 4.0 KiB", "weights 3.0 KiB", "WEBGRAD_MEMORY"):
        assert part in message
    assert fake.pool.bytes_total == 3072


def test_a_driver_without_memory_is_asked_again_after_evicting() -> None:
    fake = PoolOnFake(memory=1024)
    fake.pool.give(fake.pool.take(512))
    held = fake.pool.take(256)
    fake.pool.take(768)
    assert fake.waits == 1
    assert fake.counters.buffers_evicted == 1
    with pytest.raises(OutOfMemoryError, match=r"no room for a buffer of 512 B: 1\.0 KiB in use"):
        fake.pool.take(512)
    assert fake.pool.bytes_live == 1024
    assert held in fake.pool.buffers


Steps = list[tuple[str, int]]


@pytest.mark.property
@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "give", "evict", "take these"]), st.integers(0, 9)), max_size=80
    )
)
def test_the_books_balance(steps: Steps) -> None:
    fake = PoolOnFake(budget=16 * 256)
    pool = fake.pool
    lent: list[int] = []
    for step, number in steps:
        if step == "take":
            try:
                lent.append(pool.take(256 * (1 + number % 4)))
            except OutOfMemoryError:
                assert pool.bytes_live + 256 * (1 + number % 4) > pool.budget
        elif step == "give" and lent:
            pool.give(lent.pop(number % len(lent)))
        elif step == "evict":
            pool.evict(256 * number)
        elif step == "take these":
            wanted = sorted(pool.free)[:number]
            pool.take_these(wanted)
            lent += wanted
        sizes = {buffer: physical.size for buffer, physical in pool.buffers.items()}
        assert len(set(lent)) == len(lent)
        assert set(lent) | pool.free == set(sizes)
        assert not set(lent) & pool.free
        assert pool.bytes_live == sum(sizes[buffer] for buffer in lent)
        assert pool.bytes_free == sum(sizes[buffer] for buffer in pool.free)
        assert pool.bytes_total == sum(fake.native.sizes.values()) <= pool.budget
        assert pool.bytes_live <= pool.bytes_peak <= pool.budget


@pytest.mark.gpu
def test_an_evicted_buffer_takes_its_bind_groups_and_resolved_queues_along() -> None:
    small = bench(memory=MemoryBudget(bytes=8 << 20))
    context = small.queue.context
    x = small.upload(floats(1, 2, 3))
    assert small.numbers(small.scale(x, 2)).tolist() == [2, 4, 6]
    assert len(context.groups) == 1
    assert len(context.resolved) == 1
    large = small.device.allocate(8 << 20, "large")
    with pytest.raises(
        OutOfMemoryError, match=r"no room for a buffer of 8.0 MiB: 256 B in use, limit 8.0 MiB"
    ):
        small.queue.write(large, bytes(8 << 20))
    assert small.stats["buffers_evicted"] == 1
    assert len(context.groups) == 0
    assert len(context.resolved) == 0
    assert small.numbers(small.scale(x, 3)).tolist() == [3, 6, 9]


@pytest.mark.gpu
def test_the_out_of_memory_error_names_the_largest_tensors() -> None:
    small = bench(memory=MemoryBudget(bytes=4 << 20))
    kept = [small.upload([0.0] * (size << 18), label) for size, label in ((1, "embedding"), (2, "head"))]
    with pytest.raises(OutOfMemoryError, match=r"largest tensors: head 2.0 MiB, embedding 1.0 MiB"):
        small.upload([0.0] * (2 << 18), "too much")
    assert [buffer.nbytes for buffer in kept] == [1 << 20, 2 << 20]
    kept.clear()
    assert small.numbers(small.upload([7.0] * (2 << 18))).sum() == 7 * (2 << 18)
