"""A queue that was seen before makes nothing, and what is remembered of queues has its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.runtime.helpers import Bench, bench, floats
from webgrad.runtime.buffers import Buffer
from webgrad.runtime.pending import Pending
from webgrad.runtime.resolve import Resolved, ResolvedQueues

# What a queue that was seen before must not make.
MADE = ("buffers_created", "bind_groups_created", "pipelines_compiled", "queues_resolved")


def made(bench: Bench, before: dict[str, Any]) -> dict[str, int]:
    """What was made since, without what was not."""
    since = bench.since(before)
    return {name: since[name] for name in MADE if since[name]}


def settled(bench: Bench, values: Any) -> Buffer:
    """An input that comes from an earlier queue; an upload has a slot in the one it is made in."""
    buffer = bench.upload(values)
    bench.numbers(bench.scale(buffer, 1))
    return buffer


def steps(bench: Bench, x: Buffer, factor: float = 2) -> Buffer:
    """Three commands: x · factor + x, then · factor."""
    return bench.scale(bench.add(bench.scale(x, factor), x), factor)


@pytest.mark.gpu
def test_the_same_queue_again_makes_nothing(encoded: Bench) -> None:
    x = settled(encoded, np.arange(4))
    for turn in range(4):
        before = encoded.stats
        y = steps(encoded, x)
        assert encoded.numbers(y).tolist() == [0, 6, 12, 18]
        del y
        if turn:
            assert made(encoded, before) == {}
            assert encoded.since(before)["queues_replayed"] == 1
            assert encoded.since(before)["bind_groups_reused"] == 3


@pytest.mark.gpu
def test_parameters_are_no_part_of_a_queues_structure(encoded: Bench) -> None:
    x = settled(encoded, floats(1, 10))
    assert encoded.numbers(steps(encoded, x, 2)).tolist() == [6, 60]
    before = encoded.stats
    for factor in (3, 0.5, -1):
        expected = factor * (factor + 1)
        assert encoded.numbers(steps(encoded, x, factor)).tolist() == [expected, 10 * expected]
    assert made(encoded, before) == {}
    assert encoded.since(before)["queues_replayed"] == 3


@pytest.mark.gpu
def test_a_state_that_goes_back_and_forth_makes_nothing(encoded: Bench) -> None:
    state, x = encoded.upload(floats(0, 0)), encoded.upload(floats(1, 2))
    for turn in range(12):
        if turn == 6:
            before = encoded.stats
        state = encoded.add(state, encoded.scale(x, 1))
        encoded.device.flush()
    assert made(encoded, before) == {}
    assert encoded.since(before)["queues_replayed"] == 6
    assert encoded.numbers(state).tolist() == [12, 24]


@pytest.mark.gpu
def test_ping_pong_between_two_buffers_makes_nothing(alone: Bench) -> None:
    front, back = alone.upload(floats(1)), alone.upload(floats(0))
    for turn in range(10):
        if turn == 2:
            before = alone.stats
        alone.scale_into(front, back, 2)
        front, back = back, front
        alone.device.flush()
    assert made(alone, before) == {}
    assert alone.numbers(front).tolist() == [1024]


@pytest.mark.gpu
@pytest.mark.parametrize("period", [1, 3, 8, 13])
def test_a_long_loop_without_reads_is_cut_in_phase(period: int) -> None:
    looping = bench(queue=256)
    weights = [looping.upload(np.full(64, 1 / 64)) for _ in range(period)]
    x = looping.upload(np.zeros(64))
    for _ in range(8000 // period):
        x = looping.scale(x, 1)
        for weight in weights[1:]:
            x = looping.add(x, weight)
    stats = looping.stats
    assert stats["flushes"]["full"] >= 25
    assert stats["queues_replayed"] >= 0.8 * stats["flushes"]["full"]
    assert stats["buffers_created"] <= period + 4
    assert stats["bind_groups_created"] <= 4 * (period + 4)
    assert looping.numbers(x).tolist() == [8000 // period * (period - 1) / 64] * 64


@pytest.mark.gpu
def test_another_input_buffer_is_another_variant(alone: Bench) -> None:
    inputs = [settled(alone, floats(value)) for value in range(4)]
    for turn in range(3):
        before = alone.stats
        for value, x in enumerate(inputs):
            assert alone.numbers(steps(alone, x)).tolist() == [6 * value]
        if turn:
            assert made(alone, before) == {}


@pytest.mark.gpu
def test_a_replay_counts_its_peak(alone: Bench) -> None:
    x = settled(alone, np.zeros(64))
    peaks = []
    for _ in range(2):
        alone.device.reset_stats()
        y = alone.add(alone.scale(x, 1), alone.scale(x, 2))
        alone.device.flush()
        del y
        alone.device.flush()
        peaks.append(alone.stats["bytes_peak"])
    assert alone.stats["queues_replayed"] == 1
    assert peaks == [768, 768]  # x and the two sources of the sum, which takes over one of them


# The memory of resolved queues


class FakePrepared:
    def __init__(self, rows: int) -> None:
        self.rows = [None] * rows


def resolved(rows: int, inputs: list[int], touched: set[int] | None = None) -> Resolved:
    return Resolved(
        prepared=FakePrepared(rows),  # type: ignore[arg-type]
        inputs=inputs,
        needed=frozenset(touched or ()),
        touched=frozenset(touched or ()),
        outcome=(),
        to_lend=(),
        to_give=(),
        changed=(),
        in_place=0,
        peak=0,
    )


def test_a_variant_is_found_by_its_inputs_and_free_buffers() -> None:
    queues = ResolvedQueues()
    one, two = resolved(1, [5, 0], {7}), resolved(1, [6, 0], {7})
    queues.remember("key", one)
    queues.remember("key", two)
    assert queues.find("key", [6, 0], {7, 8}) is two
    assert queues.find("key", [5, 0], {7}) is one
    assert queues.find("key", [5, 0], {8}) is None
    assert queues.find("key", [9, 0], {7}) is None
    assert queues.find("other", [5, 0], {7}) is None


def test_a_few_variants_are_kept_of_each_queue() -> None:
    queues = ResolvedQueues(variants=2)
    for buffer in (1, 2, 3):
        queues.remember("key", resolved(1, [buffer]))
    assert [queues.find("key", [buffer], set()) is not None for buffer in (1, 2, 3)] == [False, True, True]
    assert len(queues) == 2


def test_the_queues_used_longest_ago_go_first() -> None:
    queues = ResolvedQueues(max_weight=30)
    for key in "abc":
        queues.remember(key, resolved(9, [1]))
    assert queues.find("a", [1], set()) is not None
    queues.remember("d", resolved(9, [1]))
    assert [key for key in "abcd" if queues.find(key, [1], set())] == ["a", "c", "d"]


def test_queues_whose_owner_is_gone_are_forgotten() -> None:
    class Owner:
        pass

    queues = ResolvedQueues(max_weight=30)
    owner = Owner()
    for buffer in (1, 2):
        queues.remember("a", resolved(9, [buffer]), owner)
    del owner
    queues.remember("b", resolved(9, [1]))
    queues.remember("c", resolved(9, [1]))
    assert queues.find("a", [1], set()) is None
    assert queues.find("b", [1], set()) is not None, "the weight of what was forgotten counts no more"
    assert len(queues) == 2


def test_queues_of_many_slots_and_no_commands_are_forgotten_too() -> None:
    queues = ResolvedQueues(max_weight=100)
    for key in range(1000):
        queues.remember(key, resolved(0, [1]))
    assert len(queues) == 100


def test_dropping_a_buffer_forgets_what_uses_it() -> None:
    queues = ResolvedQueues(max_weight=10)
    queues.remember("a", resolved(1, [1], {1, 2}))
    queues.remember("a", resolved(1, [3], {3}))
    queues.remember("b", resolved(1, [2], {2}))
    queues.drop_buffer(2)
    assert len(queues) == 1
    assert queues.find("a", [3], {3}) is not None
    for key in range(4):  # and their weight went with them
        queues.remember(key, resolved(1, [4]))
    assert len(queues) == 5


def test_the_key_tells_commands_sizes_and_what_is_held_apart() -> None:
    class Slot:
        def __init__(self, size: int, pending: object) -> None:
            self.size, self.pending = size, pending

    def key(code: list[int], size: int, held: bool) -> object:
        pending = Pending([])
        pending.code = code
        pending.virtuals = [Slot(size, pending if held else None)]  # type: ignore[list-item]
        return pending.key()

    keys = [key([0, 1], 256, True), key([0, 2], 256, True), key([0, 1], 512, True), key([0, 1], 256, False)]
    assert len(set(keys)) == 4
    assert key([0, 1], 256, True) == keys[0]
