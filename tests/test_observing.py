"""The seam between stages and tools: who is told what, and what it costs where nobody is."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.errors import ArgumentError
from webgrad.evaluate.evaluate import clear_plans
from webgrad.observing import STAGES, Note, Observer, observe, observers, stage, unobserved
from webgrad.runtime.launches import Flush


class Watcher(Observer):
    def __init__(self, *, apart: bool = False) -> None:
        self.apart = apart
        self.stages: list[str] = []
        self.flushes: list[Flush] = []
        self.plans: list[tuple[Any, int]] = []
        self.groups: list[Note] = []

    def span(self, stage: str, began: int, ended: int) -> None:
        assert began <= ended
        self.stages.append(stage)

    def planned(self, device: Any, schedule: Any, compiled: Any) -> None:
        self.plans.append((device.name, len(schedule.groups)))

    def computed(self, device: Any, note: Note, began: int, ended: int) -> None:
        self.groups.append(note)

    def encode(self, flush: Flush) -> Any:
        for launch in flush.launches:
            flush.run(launch)
        return flush.rest()

    def flushed(self, flush: Flush) -> None:
        self.flushes.append(flush)


def test_stages_are_told_while_somebody_watches() -> None:
    watcher = Watcher()
    with stage("walk"):
        pass
    with observe(watcher):
        assert observers() == (watcher,)
        with stage("lower"), stage("emit"):
            pass
    with stage("walk"):
        pass
    assert watcher.stages == ["emit", "lower"]
    assert observers() == ()


def test_where_nobody_watches_nothing_is_made() -> None:
    assert stage("walk") is stage("lower")


def test_what_is_unobserved_is_so_in_its_own_thread_only() -> None:
    elsewhere: list[Any] = []
    with observe(Watcher()), unobserved():
        thread = threading.Thread(target=lambda: elsewhere.extend(observers()))
        thread.start()
        thread.join()
        assert observers() == ()
    assert [type(each) for each in elsewhere] == [Watcher]


def test_only_one_may_run_launches_apart() -> None:
    with observe(Watcher(apart=True)), observe(Watcher()):
        with pytest.raises(ArgumentError, match="end that one first"), observe(Watcher(apart=True)):
            pass
        assert len(observers()) == 2


@pytest.mark.usefixtures("compiled_at_once")
def test_the_cpu_tells_of_plans_and_groups() -> None:
    x = wg.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device="cpu")
    watcher = Watcher()
    with observe(watcher):
        total = float(wg.sum(wg.exp(x) * 7.25))
    assert total > 0
    assert watcher.plans == [("cpu", 1)]
    (note,) = watcher.groups
    assert note.ops[-1] == "sum"
    assert (note.bytes_read, note.bytes_written) == (48, 4)
    assert {"walk", "schedule", "lower", "plan", "record"} <= set(watcher.stages)


def test_the_cpu_tells_of_nodes_that_are_computed_by_themselves() -> None:
    x = wg.asarray(np.arange(15, dtype=np.float32).reshape(3, 5), device="cpu")
    watcher = Watcher()
    with observe(watcher):
        assert float(wg.sum(wg.exp(x) * 7.5)) > 0
    assert [each.ops[-1] for each in watcher.groups if each.operations] == ["exp", "multiply", "sum"]
    assert watcher.groups[-1].bytes_written == 4


@pytest.mark.gpu
@pytest.mark.parametrize("apart", [False, True])
def test_a_gpu_tells_of_launches_with_what_they_are_about(apart: bool) -> None:
    x = wg.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device="webgpu")
    watcher = Watcher(apart=apart)
    clear_plans()
    with observe(watcher):
        found = (wg.exp(x) * 0.375).numpy()
    np.testing.assert_allclose(found, np.exp(np.arange(12).reshape(3, 4)) * 0.375, rtol=1e-6)
    assert set(watcher.stages) <= set(STAGES)
    assert {"schedule", "lower", "emit", "resolve", "encode", "submit", "wait", "transfer"} <= set(
        watcher.stages
    )
    (flush,) = watcher.flushes
    assert (flush.cause, len(flush.launches)) == ("read", 1)
    assert flush.peak >= flush.live > 0
    (launch,) = flush.launches
    assert launch.note is not None
    assert launch.note.name == launch.name
    assert launch.note.numbers == 4  # the 0.375
    assert np.frombuffer(launch.params[:4], np.float32) == 0.375
    assert launch.note.dtypes == ("float32",)
    assert "@compute" in launch.program.text
    source, target = launch.bound
    assert (source.access, source.nbytes, target.access, target.nbytes) == ("read", 48, "read_write", 48)


@pytest.mark.gpu
def test_an_observer_reads_buffers_between_launches() -> None:
    seen: list[list[float]] = []

    class Reader(Watcher):
        def encode(self, flush: Flush) -> Any:
            for launch in flush.launches:
                flush.run(launch)
                seen.append(flush.read(launch.bound[-1]).view(np.float32).tolist())
            return flush.rest()

    x = wg.asarray(np.array([1.0, 2.0, 4.0], np.float32), device="webgpu")
    with observe(Reader(apart=True)):
        wg.cumulative_sum(wg.cumulative_sum(x)).numpy()
    assert seen[0] == [1, 3, 7]
    assert seen[-1] == [1, 4, 11]


@pytest.mark.gpu
def test_captured_functions_tell_at_every_call() -> None:
    double = wg.jit(lambda x, rate: wg.cumulative_sum(x * rate))
    x = wg.ones(5, device="webgpu")
    for rate in (1.0, 2.0):
        double(x, rate).numpy()
    watcher = Watcher()
    with observe(watcher):
        double(x, 3.0).numpy()
    (launched,) = [each for each in watcher.flushes if each.launches]
    assert launched.cause == "replay"
    assert all(each.note is not None for each in launched.launches)
    assert watcher.plans == []
