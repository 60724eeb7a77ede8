"""Plans of native code: what they give is the reference's, whatever their results share, and however they are
run: by several threads, told about, interrupted, in place of leaves, on a lesser processor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.cpu.helpers import apply, drawn, fold, last_plan, layer_norm, node_of, softmax
from webgrad import config, dtypes
from webgrad.cpu.layout import HostStep
from webgrad.cpu.plan import CompiledPlan
from webgrad.device_profile import CPU_PROFILE
from webgrad.evaluate import cpu_plan
from webgrad.graph.node import Node
from webgrad.graph.snapshot import snapshot, walk
from webgrad.native.compiler import is_available
from webgrad.native.processor import host
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.reference.plan import compute
from webgrad.schedule.cpu_passes import CPU_PASSES
from webgrad.schedule.schedule import schedule

Array = np.ndarray[Any, Any]
LENGTHS = [1, 2, 7, 15, 16, 17, 33, 64, 100, 1025]


@pytest.fixture(autouse=True)
def needs_native() -> None:
    if not is_available():
        pytest.skip("no native code here: llvmlite is not installed, or switched off")


class Planned:
    """A plan of native code with the values it runs on."""

    def __init__(self, *roots: Node, changed: tuple[tuple[Node, Node], ...] = ()) -> None:
        walked = walk(roots)
        self.nodes = walked.nodes
        self.graph = snapshot(walked, roots, changed)
        self.plan = CompiledPlan(schedule(self.graph, CPU_PROFILE, CPU_PASSES))
        self.leaves = {at: each.storage for at, each in enumerate(self.nodes) if each.sig.kind == "leaf"}
        self.scalars = {at: each.storage for at, each in enumerate(self.nodes) if each.sig.kind == "scalar"}

    def run(self, **options: Any) -> list[Array]:
        found = self.plan.run(self.leaves, self.scalars, **options)
        return [found[each] for each in self.graph.roots]


def check(*roots: Node, rtol: float = 1e-6) -> Planned:
    """Twice the reference's values, in arrays that share nothing; no input has changed."""
    planned = Planned(*roots)
    before = {at: each.copy() for at, each in planned.leaves.items()}
    first, second = planned.run(), planned.run()
    for root, one, two, want in zip(roots, first, second, compute(list(roots)), strict=True):
        assert one.shape == root.sig.shape
        assert one.dtype == root.sig.dtype.numpy
        assert one.flags.c_contiguous
        assert one.tobytes() == two.tobytes()
        np.testing.assert_allclose(wide(one), wide(want), rtol=rtol, atol=rtol)
    arrays = [*first, *second, *planned.leaves.values()]
    for at, each in enumerate(arrays):
        assert not any(np.shares_memory(each, other) for other in arrays[:at])
    for at, each in before.items():
        np.testing.assert_array_equal(planned.leaves[at], each)
    return planned


def wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


# Kernels


@pytest.mark.parametrize("length", LENGTHS)
def test_whole_vectors_and_what_is_left(length: int) -> None:
    x, y = drawn(length), drawn(length)
    check(apply("add", apply("multiply", x, y), 1.5), fold("sum", x, 0), fold("max", y, 0))
    rows = drawn(5, length)
    check(softmax(rows, 1), layer_norm(rows, 1), fold("sum", rows, 0), fold("min", rows, 1))
    check(primitives.permute(rows, (1, 0)), softmax(rows, 0))


@pytest.mark.parametrize("dtype", dtypes.REAL[1:], ids=lambda each: each.name)
@pytest.mark.parametrize("length", [3, 16, 50])
def test_dtypes(dtype: dtypes.DType, length: int) -> None:
    x, y = drawn(4, length, dtype=dtype), drawn(4, length, dtype=dtype)
    check(apply("add", x, y), fold("max", apply("multiply", x, x), 1), fold("sum", y, 0), rtol=1e-2)


def test_every_processor_that_runs_here() -> None:
    x = drawn(33, 19)
    half = node_of(np.linspace(-65000, 65000, 77).astype(np.float16))
    want = [each.copy() for each in check(softmax(x, 1), apply("multiply", half, half), rtol=1e-3).run()]
    for name in ("x86-64-v2", "x86-64-v3") if host().architecture == "x86_64" else ():
        with setting("WEBGRAD_PROCESSOR", name):
            for found, known in zip(
                Planned(softmax(x, 1), apply("multiply", half, half)).run(), want, strict=True
            ):
                np.testing.assert_allclose(wide(found), wide(known), rtol=1e-6)


@contextmanager
def setting(name: str, value: str) -> Iterator[None]:
    """Inside, an option has another value."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        config.reload()
        yield
    config.reload()


# Results


def test_reshapes_are_no_kernels() -> None:
    x = drawn(6, 4)
    made = apply("exp", x)
    planned = check(primitives.reshape(made, (24,)))
    assert len(planned.plan._steps) == 1
    check(made, primitives.reshape(made, (24,)), primitives.reshape(made, (3, 8)))
    check(primitives.reshape(x, (24,)))


def test_empty_and_single_values() -> None:
    empty = drawn(0, 3)
    check(apply("exp", empty), fold("sum", empty, 0), fold("sum", empty, 1))
    check(apply("exp", drawn()), fold("sum", drawn(1), 0))


@pytest.mark.parametrize("size", LENGTHS)
def test_folds_of_bools(size: int) -> None:
    for value in (False, True):
        x = node_of(np.full((3, size), value))
        check(*(fold(name, x, axis) for name in ("min", "max") for axis in (0, 1)))


def test_leaves_that_are_not_contiguous() -> None:
    x = drawn(8, 8)
    planned = Planned(apply("add", x, 1.0))
    (leaf,) = planned.leaves
    planned.leaves[leaf] = np.arange(64, dtype=np.float32).reshape(8, 8).T
    np.testing.assert_array_equal(planned.run()[0], planned.leaves[leaf] + 1)


def test_leaves_that_are_numpys_scalars() -> None:
    x, y = drawn(), drawn()
    planned = Planned(apply("subtract", x, y))
    for at in planned.leaves:
        planned.leaves[at] = np.float32(at + 1)
    first, second = (float(planned.leaves[at]) for at, each in enumerate(planned.nodes) if each in (x, y))
    assert abs(float(planned.run()[0])) == abs(first - second) == 1


def test_what_lies_between_is_placed_apart() -> None:
    """A chain of kernels with several values alive: memory is used again, and never too soon."""
    x = drawn(40, 50)
    values = [x]
    for at in range(6):
        values.append(softmax(apply("multiply", values[at // 2], values[-1]), at % 2))
    total = values[0]
    for each in values[1:]:
        total = apply("add", total, each)
    check(total, rtol=1e-5)


def test_donated_leaves_are_written_to() -> None:
    x, gradient = drawn(100), drawn(100)
    after = apply("subtract", x, apply("multiply", gradient, 0.1))
    planned = Planned(after, changed=((x, after),))
    number = next(at for at, each in enumerate(planned.nodes) if each is x)
    (want,) = planned.run()
    (found,) = planned.run(donated=frozenset((number,)))
    assert found is planned.leaves[number]
    np.testing.assert_array_equal(found, want)


def test_a_donated_leaf_that_is_read_later_is_not_written_to() -> None:
    x = drawn(64, 64)
    after = apply("subtract", x, 3.0)
    total = fold("sum", apply("multiply", softmax(x, 0), x), 1)
    later = fold("max", primitives.permute(x, (1, 0)), 1)
    planned = Planned(after, total, later, changed=((x, after),))
    number = next(at for at, each in enumerate(planned.nodes) if each is x)
    want = [each.copy() for each in planned.run()]
    for found, each in zip(planned.run(donated=frozenset((number,))), want, strict=True):
        np.testing.assert_array_equal(found, each)


def test_a_donated_leaf_that_its_step_reads_twice_is_not_written_to() -> None:
    x = drawn(5, 3)
    turned = primitives.scatter(TABLE["scatter_set"], x, node_of(np.asarray([1, 2, 3, 4, 0])), x)
    planned = Planned(turned, changed=((x, turned),))
    number = planned.nodes.index(x)
    want = np.roll(planned.leaves[number], 1, 0)
    (found,) = planned.run(donated=frozenset((number,)))
    np.testing.assert_array_equal(found, want)


def test_a_donated_leaf_that_cannot_be_written_to_is_not() -> None:
    x = drawn(100)
    after = apply("exp", x)
    planned = Planned(after, changed=((x, after),))
    number = next(at for at, each in enumerate(planned.nodes) if each is x)
    planned.leaves[number].flags.writeable = False
    (found,) = planned.run(donated=frozenset((number,)))
    assert found is not planned.leaves[number]


# Runs


def test_threads_run_one_plan() -> None:
    x = drawn(64, 300)
    planned = Planned(softmax(apply("multiply", x, 2.0), 1))
    (want,) = planned.run()
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(at for at in range(50) if planned.run()[0].tobytes() != want.tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_every_group_is_told_about() -> None:
    x = drawn(50, 60)
    planned = Planned(softmax(fold("sum", softmax(x, 0), 1), 0))
    heard: list[tuple[int, int, int]] = []
    planned.run(tell=lambda *each: heard.append(each))
    assert [group for group, _, _ in heard] == [each.group for each in planned.plan._steps]
    assert all(began <= ended for _, began, ended in heard)


def test_the_order_of_sums_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = drawn(1 << 20)
    planned = Planned(fold("sum", x, 0), fold("sum", apply("multiply", x, x), 0))
    shared = [each.tobytes() for each in planned.run()]
    monkeypatch.setattr("webgrad.cpu.layout.LEAST", 1 << 62)  # one thread
    assert [each.tobytes() for each in planned.run()] == shared


# When a graph is compiled


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many plans of native code were made."""
    made: list[object] = []
    original = CompiledPlan.__init__

    def count(self: CompiledPlan, *args: Any) -> None:
        made.append(self)
        original(self, *args)

    monkeypatch.setattr(CompiledPlan, "__init__", count)
    return lambda: len(made)


def test_graphs_are_compiled_when_they_are_seen_again_if_wanted(
    counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_plan, "MOST", 2)
    x = wg.asarray(np.arange(12.0, dtype=np.float32), device="cpu")
    results = []
    with setting("WEBGRAD_COMPILE", "repeated"):
        for at in range(4):
            results.append((wg.exp(x * 0.125) - 3.75).numpy())
            assert counted() == (at > 0)
            assert isinstance(last_plan().plan, CompiledPlan) == (at > 1)
    assert results[2].tobytes() == results[3].tobytes()
    np.testing.assert_allclose(results[0], results[2], rtol=1e-6)


def test_small_graphs_are_numpys(counted: Callable[[], int]) -> None:
    x = wg.asarray(np.arange(12.0, dtype=np.float32), device="cpu")
    found = {(wg.exp(x * 0.375) - 3.75).numpy().tobytes() for _ in range(4)}
    assert len(found) == 1
    assert counted() == 0


def test_captured_graphs_are_compiled_at_once(counted: Callable[[], int]) -> None:
    x = wg.asarray(np.arange(12.0, dtype=np.float32), device="cpu")
    function = wg.jit(lambda x: wg.exp(x * 0.625) - 3.75)
    found = {function(x).numpy().tobytes() for _ in range(4)}
    assert len(found) == 1
    assert counted() == 1


def test_large_graphs_are_compiled_at_once(
    counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_plan, "MUCH", 1000)
    monkeypatch.setattr(cpu_plan, "PLANNED", 100)
    x = wg.asarray(np.arange(2000.0, dtype=np.float32), device="cpu")
    np.testing.assert_allclose((x * 0.5 - 7.25).numpy(), np.arange(2000) * 0.5 - 7.25)
    assert counted() == 1


def test_half_floats_are_much_work(counted: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy converts them: a model of half floats, read once, must not be computed by it."""
    monkeypatch.setattr(cpu_plan, "MUCH", 1000)
    monkeypatch.setattr(cpu_plan, "PLANNED", 10_000)
    cases: list[tuple[Any, int]] = [(np.float32, 0), (np.float16, 1)]
    for dtype, compiled in cases:
        x = wg.asarray(np.arange(2000.0).astype(dtype), device="cpu")
        np.testing.assert_array_equal((x * 0.5).numpy(), (np.arange(2000.0).astype(dtype) * dtype(0.5)))
        assert counted() == compiled


def test_all_graphs_are_compiled_at_once_if_wanted(counted: Callable[[], int]) -> None:
    with setting("WEBGRAD_COMPILE", "always"):
        x = wg.asarray(np.arange(3.0, dtype=np.float32), device="cpu")
        first = (wg.sin(x) * 1.75).numpy()
        assert counted() == 1
        assert (wg.sin(x) * 1.75).numpy().tobytes() == first.tobytes()


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64])
@pytest.mark.parametrize("columns", [1, 3, 16, 65, 384])
def test_rows_are_set_by_native_code(dtype: dtypes.DType, columns: int) -> None:
    lowest, highest = (-9, 1 << 30) if dtype.kind == "i" else (0, (1 << 8 * dtype.itemsize) - 1)
    places = node_of(np.asarray([2, 5, 2, lowest, highest, 0, 4], dtype.numpy))
    for numbers in (np.float32, np.float16, np.uint8, np.float64):
        base = node_of(np.arange(6 * columns).reshape(6, columns).astype(numbers))
        updates = node_of(np.arange(0, -7 * columns, -1).reshape(7, columns).astype(np.int8).astype(numbers))
        root = primitives.scatter(TABLE["scatter_set"], base, places, updates)
        planned = check(root)
        assert planned.plan._steps
        assert not any(isinstance(each, HostStep) for each in planned.plan._steps)
        (want,) = planned.run()
        changed = Planned(root, changed=((base, root),))
        number = changed.nodes.index(base)
        array = changed.leaves[number] = changed.leaves[number].copy()
        (found,) = changed.run(donated=frozenset((number,)))
        assert np.shares_memory(found, array)
        np.testing.assert_array_equal(found, want)
