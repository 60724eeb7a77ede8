"""Results in the storage of leaves that they replace: which, and by which kernel."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad as wg
from tests.graph.helpers import graph_of, tensor
from tests.schedule.graphs import SOFTWARE
from webgrad.functions.array import indexing
from webgrad.graph.snapshot import snapshot, walk
from webgrad.lower.compile import compile_schedule
from webgrad.lower.in_place import in_place_results
from webgrad.schedule.plan import Schedule
from webgrad.schedule.schedule import schedule
from webgrad.tensor import Tensor


def planned(*pairs: tuple[Tensor, Tensor]) -> tuple[Schedule, dict[int, int]]:
    """A schedule of results that are to take leaves' storage, and those that may."""
    roots = [new.node for new, _ in pairs]
    graph = snapshot(walk(roots), roots, [(old.node, new.node) for new, old in pairs])
    plan = schedule(graph, SOFTWARE)
    return plan, in_place_results(plan.graph, [plan.groups[at] for at in plan.bundles[0]])


def test_state_that_is_read_where_it_is_written_is_written_in_place() -> None:
    parameter, gradient, average = tensor(64), tensor(64), tensor(64)
    new_average = average * 0.9 + gradient * 0.1
    plan, found = planned((parameter - new_average * 0.5, parameter), (new_average, average))
    assert len(plan.bundles) == 1
    assert len(found) == len(set(found.values())) == 2


def elsewhere(kind: str) -> tuple[Tensor, Tensor]:
    x = tensor(8, 8)
    made = {
        "another place": x.T * 2.0,
        "a fold": x - x.sum(axis=0),
        "another dtype": x.astype(wg.int32),
        "another shape": x[:4] * 2.0,
        "one element": x * x[1, 2],
        "an element computed from it": x * (x + 1.0)[1, 2],
    }
    return made[kind], x


@pytest.mark.parametrize(
    "kind",
    [
        *("another place", "a fold", "another dtype", "another shape"),
        *("one element", "an element computed from it"),
    ],
)
def test_what_is_read_elsewhere_is_not_written_to(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FEW", -1)  # elements of what is known are not taken at once
    assert planned(elsewhere(kind))[1] == {}


def test_what_two_groups_read_is_not_written_to() -> None:
    first, second = tensor(64), tensor(64)
    swapped = planned((first * 2.0 + second, first), (second * 3.0 - first, second))
    assert len(swapped[0].groups) == 1  # one kernel: every thread reads both before it writes either
    assert len(swapped[1]) == 2
    apart = schedule(graph_of(first * 2.0, first * 3.0), SOFTWARE, fuse=False)
    leaf = next(at for at, sig in enumerate(apart.graph.sigs) if sig.kind == "leaf")
    apart.graph.donations = {group.outputs[0]: leaf for group in apart.groups}
    assert in_place_results(apart.graph, apart.groups) == {}


def test_the_variant_binds_one_buffer_less_for_each() -> None:
    parameter, gradient = tensor(64), tensor(64)
    plan = schedule(graph_of(parameter - gradient * 0.5), SOFTWARE)
    (group,) = plan.groups
    plan.graph.donations = {group.outputs[0]: group.reads[0]}
    ((_, (emitted,)),) = compile_schedule(plan, SOFTWARE, check=True)
    ((pairs, program),) = emitted.in_place
    assert program is not None
    assert len(pairs) == 1
    assert len(program.bindings) == len(emitted.program.bindings) - 1 == 2
    assert program.bindings[-1].access == "read_write"
    assert program.params_size == emitted.program.params_size


# Run


@pytest.mark.gpu
def test_state_stays_where_it_is_and_copies_stay_as_they_are() -> None:
    momentum = wg.zeros(1000, device="webgpu:0")
    weight = wg.asarray(np.arange(1000, dtype=np.float32), device="webgpu:0")
    odd = wg.asarray(np.arange(7, dtype=np.float16), device="webgpu:0")
    wg.eval(momentum, weight, odd)

    @wg.jit
    def step(gradient: Tensor, rate: float) -> Tensor:
        nonlocal momentum, weight, odd
        momentum *= 0.5
        momentum += gradient
        weight -= rate * momentum
        odd += 1
        return weight.sum()

    gradient = wg.ones(1000, device="webgpu:0")
    expected_momentum, expected = np.zeros(1000, np.float32), np.arange(1000, dtype=np.float32)
    kept, kept_values = None, None
    for turn in range(8):
        before = wg.stats("webgpu:0")["in_place"]
        step(gradient, 0.25)
        taken = wg.stats("webgpu:0")["in_place"] - before
        expected_momentum = expected_momentum * 0.5 + 1
        expected = expected - 0.25 * expected_momentum
        np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(momentum.numpy(), expected_momentum, rtol=1e-6)
        np.testing.assert_array_equal(odd.numpy(), np.arange(7) + turn + 1)
        if turn in (2, 3, 7):
            assert taken >= 3
        if kept is not None:
            np.testing.assert_array_equal(kept.numpy(), kept_values)
        if turn == 3:  # from now on somebody holds the old value, which must not change
            kept = weight.clone()
            kept_values = kept.numpy()
