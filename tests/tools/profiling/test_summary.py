"""What a profile amounts to: whose every moment of a thread is, and how kernels add up."""

from __future__ import annotations

import itertools

import pytest

from webgrad.observing import Note
from webgrad.tools.profiling.collector import Collected
from webgrad.tools.profiling.summary import self_intervals, summarise

MILLISECOND = 1_000_000


def spans(*given: tuple[str, int, int]) -> list[tuple[int, str, int, int]]:
    return [(7, name, began, ended) for name, began, ended in given]


def test_a_moment_belongs_to_the_innermost_stage() -> None:
    found = self_intervals(
        spans(("emit", 30, 40), ("lower", 20, 25), ("build", 10, 60), ("wait", 70, 80)), 0, 100
    )
    assert found == [
        ("python", (0, 10)),
        ("build", (10, 20)),
        ("lower", (20, 25)),
        ("build", (25, 30)),
        ("emit", (30, 40)),
        ("build", (40, 60)),
        ("python", (60, 70)),
        ("wait", (70, 80)),
        ("python", (80, 100)),
    ]


@pytest.mark.parametrize(
    "given",
    [
        [],
        [("build", 0, 100)],
        [("build", 10, 10)],
        [("build", -50, 20), ("wait", 90, 300)],  # begun before, or not yet ended
        [("build", 10, 50), ("walk", 10, 50), ("wait", 50, 60)],
        [("build", 10, 50), ("walk", 20, 55)],  # clocks of two calls may cross by a little
    ],
)
def test_every_moment_belongs_to_somebody(given: list[tuple[str, int, int]]) -> None:
    found = self_intervals(spans(*given), 0, 100)
    assert found[0][1][0] == 0
    assert found[-1][1][1] == 100
    assert all(before[1][1] == after[1][0] for before, after in itertools.pairwise(found))


def test_waiting_is_told_apart_by_whether_a_gpu_worked() -> None:
    found = Collected(7, 0, 100 * MILLISECOND)
    found.spans = [
        (each, name, began * MILLISECOND, ended * MILLISECOND)
        for each, name, began, ended in spans(("wait", 10, 60), ("record", 60, 70))
    ]
    multiply = Note("multiply", ("multiply",), None, 600, 400, 2_000_000)
    found.kernels = [
        ("webgpu:0", multiply, 20 * MILLISECOND, 30 * MILLISECOND),
        ("webgpu:0", multiply, 30 * MILLISECOND, 50 * MILLISECOND),
        (
            "webgpu:0",
            Note("add"),
            45 * MILLISECOND,
            65 * MILLISECOND,
        ),  # beside the other, and beyond the wait
    ]
    found.flushes = [(15, "webgpu:0", "read", 3), (16, "webgpu:0", "eval", 1), (17, "webgpu:0", "read", 1)]
    found.memory = {"webgpu:0": [(15, 100, 50), (16, 70, 80)]}
    summary = summarise(found)
    seconds = {each.name: each.seconds for each in summary.stages}
    assert seconds == pytest.approx({"wait": 0.040, "idle": 0.010, "record": 0.010, "python": 0.040})
    assert summary.explained == pytest.approx(0.5)
    assert summary.busy == {"webgpu:0": pytest.approx(0.45)}
    assert summary.causes == {"read": 2, "eval": 1}
    assert summary.peaks == {"webgpu:0": 100}
    first, second = summary.kernels
    assert (first.name, first.count, first.seconds, first.slowest) == ("multiply", 2, 0.03, 0.02)
    assert [first.share, second.share] == pytest.approx([0.6, 0.4])
    assert first.gigabytes_a_second == pytest.approx(2000 / 0.03 / 1e9)
    assert first.gigaflops == pytest.approx(4e6 / 0.03 / 1e9)
