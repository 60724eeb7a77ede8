"""Random programs over a few buffers compute what NumPy does, in every way to encode them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.runtime.helpers import Bench, Floats, bench
from webgrad.config import MemoryBudget
from webgrad.runtime.buffers import Buffer

COUNTS = (1, 3, 64, 65, 200)  # elements; the first three share a size class
STEPS = ("new", "scale", "scale into", "head", "tail", "add", "drop", "write", "read", "flush")
Step = tuple[str, int, int, int]


class Simulation:
    """A device and NumPy doing the same; every read compares them."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.pairs: list[tuple[Buffer, Floats]] = []
        self.commands = 0

    def run(self, step: Step) -> None:
        kind, first, second, number = step
        if kind == "flush":
            self.bench.device.flush()
        elif kind == "new":
            values = np.arange(COUNTS[first % len(COUNTS)], dtype=np.float32) + number
            self.pairs.append((self.bench.upload(values), values))
        elif self.pairs:
            index = first % len(self.pairs)
            getattr(self, f"_{kind.replace(' ', '_')}")(index, second, number)

    def _result(self, buffer: Buffer, values: Floats) -> None:
        self.commands += 1
        self.pairs.append((buffer, values))

    def _scale(self, index: int, _: int, number: int) -> None:
        x, values = self.pairs[index]
        self._result(self.bench.scale(x, number / 4), values * np.float32(number / 4))

    def _scale_into(self, index: int, second: int, number: int) -> None:
        x, values = self.pairs[index]
        others = [i for i, pair in enumerate(self.pairs) if pair[0] is not x and pair[1].size == values.size]
        if others:
            target = others[second % len(others)]
            y, _ = self.pairs[target]
            self.bench.scale_into(x, y, number / 4)
            self.pairs[target] = (y, values * np.float32(number / 4))
            self.commands += 1

    def _head(self, index: int, second: int, number: int) -> None:
        x, values = self.pairs[index]
        count = 1 + second % values.size
        y = self.bench.device.allocate(4 * count)
        self.bench.scale_into(x, y, number / 4)
        self._result(y, values[:count] * np.float32(number / 4))

    def _tail(self, index: int, _: int, number: int) -> None:
        x, values = self.pairs[index]
        if values.size > 64:
            view = self.bench.queue.view(x, 256, 4 * values.size - 256)
            self._result(self.bench.scale(view, number / 4), values[64:] * np.float32(number / 4))

    def _add(self, index: int, second: int, _: int) -> None:
        a, values = self.pairs[index]
        alike = [pair for pair in self.pairs if pair[1].size == values.size]
        b, others = alike[second % len(alike)]
        self._result(self.bench.add(a, b), values + others)

    def _drop(self, index: int, _1: int, _2: int) -> None:
        del self.pairs[index]

    def _write(self, index: int, _: int, number: int) -> None:
        buffer, values = self.pairs[index]
        fresh = np.full(values.size, number, np.float32)
        self.bench.queue.write(buffer, fresh)
        self.pairs[index] = (buffer, fresh)

    def _read(self, index: int, _1: int, _2: int) -> None:
        buffer, values = self.pairs[index]
        assert self.bench.numbers(buffer).tolist() == values.tolist()


def settle(bench: Bench) -> None:
    """Run what is pending and let what was dropped go; a view lets go of its whole one flush later."""
    for _ in range(3):
        bench.device.flush()


PROGRAMS = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 99), st.integers(-8, 8)),
    min_size=15,
    max_size=80,
)


def check(encoded: Bench, program: list[Step], times: int) -> None:
    settle(encoded)
    before = encoded.stats
    commands = 0
    for _ in range(times):  # again, so that resolved queues are replayed
        simulation = Simulation(encoded)
        for step in [("new", 0, 0, 1), ("new", 4, 0, 2), *program]:
            simulation.run(step)
        for index in range(len(simulation.pairs)):
            simulation._read(index, 0, 0)
        commands += simulation.commands
        del simulation
    settle(encoded)
    since = encoded.since(before)
    assert since["commands"] == since["dispatches"] == commands
    assert encoded.stats["bytes_live"] == before["bytes_live"]


@pytest.mark.gpu
@pytest.mark.property
@hypothesis_settings(max_examples=40)
@given(program=PROGRAMS, times=st.integers(1, 3))
def test_random_programs_compute_what_numpy_does(encoded: Bench, program: list[Step], times: int) -> None:
    check(encoded, program, times)


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.property
@hypothesis_settings(max_examples=150)
@given(program=PROGRAMS, times=st.integers(1, 3))
def test_more_random_programs(encoded: Bench, program: list[Step], times: int) -> None:
    check(encoded, program, times)


@pytest.fixture(scope="module")
def tight() -> Bench:
    """A device with room for 256 small buffers and short queues."""
    return bench(memory=MemoryBudget(bytes=1 << 16), queue=7)


@pytest.mark.gpu
@pytest.mark.property
@hypothesis_settings(max_examples=100)
@given(program=PROGRAMS)
def test_random_programs_within_a_tight_budget(tight: Bench, program: list[Step]) -> None:
    simulation = Simulation(tight)
    for step in program:
        simulation.run(step)
    for index in range(len(simulation.pairs)):
        simulation._read(index, 0, 0)
    assert tight.stats["bytes_live"] + tight.stats["bytes_pooled"] <= 1 << 16
