"""Plans on a GPU: values, launches, numbers at run time, several outputs, errors, threads and forks."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import apply, fold
from tests.limits import HANG
from tests.runtime.helpers import bench, run_python
from webgrad import dtypes
from webgrad.config import MemoryBudget
from webgrad.errors import DTypeError, OutOfMemoryError
from webgrad.evaluate.evaluate import evaluate, plans, read, read_async
from webgrad.evaluate.gpu_plan import GpuPlan
from webgrad.functions.learning.activations import softmax
from webgrad.graph.node import Node, leaf, make, scalar
from webgrad.graph.snapshot import snapshot, walk
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.runtime.webgpu import Device
from webgrad.tensor import Tensor

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, Any]
GENERATOR = np.random.default_rng(5)
A = GENERATOR.normal(size=(37, 24)).astype(np.float32)
B = GENERATOR.normal(size=(24, 19)).astype(np.float32)


@pytest.fixture(scope="module")
def device() -> Device:
    """A device of these tests alone, so that its counters are theirs; every kernel is verified."""
    return bench(checks=True).device


def up(device: Device, array: Any, dtype: Any = np.float32) -> Node:
    made = np.ascontiguousarray(array, dtype)
    return leaf(device.upload(made), made.shape, dtypes.as_dtype(made.dtype), device)


class Counted:
    """By how much the device's counters grow."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def __enter__(self) -> dict[str, int]:
        self.before = dict(self.device.stats())
        self.found: dict[str, int] = {}
        return self.found

    def __exit__(self, *_: object) -> None:
        now = self.device.stats()
        self.found |= {name: now[name] - old for name, old in self.before.items() if isinstance(old, int)}


def soft(x: Node) -> Node:
    return softmax(Tensor(x)).node


def soft_of(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


CASES: dict[str, tuple[Callable[[Node, Node], Node], Array]] = {
    "map": (lambda a, b: apply("add", apply("multiply", a, a), 1.5), A * A + 1.5),
    "softmax": (lambda a, b: soft(a), soft_of(A)),
    "matmul": (lambda a, b: apply("maximum", primitives.contract(a, b), 0.0), np.maximum(A @ B, 0)),
    "transposed": (lambda a, b: apply("exp", primitives.permute(a, (1, 0))), np.exp(A.T)),
    "sum": (lambda a, b: fold("sum", a, 0, 1), A.sum()),
    "columns": (lambda a, b: fold("max", a, 0), A.max(0)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
def test_values(device: Device, name: str, fuse: bool) -> None:
    build, expected = CASES[name]
    root = build(up(device, A), up(device, B))
    if fuse:
        result = read(root)
    else:
        walked = walk([root])
        plan = GpuPlan(snapshot(walked, [root]), device, fuse=False)
        (buffer,) = plan.run(walked.nodes)
        result = device.read(buffer).view(np.float32).reshape(root.sig.shape)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-5)


# Launches


def test_a_fused_graph_is_one_launch_and_one_submission(device: Device) -> None:
    a = up(device, A)
    read(soft(a))
    with Counted(device) as grown:
        read(soft(a))
    assert (grown["dispatches"], grown["submissions"], grown["pipelines_compiled"]) == (1, 1, 0)


def test_evaluate_submits_and_does_not_wait(device: Device) -> None:
    a = up(device, A)
    with Counted(device) as grown:
        evaluate([apply("exp", a)])
    assert grown["submissions"] == 1
    assert grown["host_round_trips"] == 0
    assert grown["bytes_downloaded"] == 0


def test_a_repeated_structure_makes_no_plan_and_no_pipeline(device: Device) -> None:
    def turn(rate: float) -> Array:
        found: Array = read(apply("subtract", up(device, A), apply("multiply", up(device, A), rate)))
        return found

    turn(0.5)
    before = plans()
    with Counted(device) as grown:
        for number in range(5):
            np.testing.assert_allclose(turn(number / 4), A - A * np.float32(number / 4), rtol=1e-6, atol=1e-6)
    assert plans() == before
    assert (grown["pipelines_compiled"], grown["dispatches"]) == (0, 5)


def test_another_length_is_no_new_pipeline(device: Device) -> None:
    def run(rows: int) -> None:
        array = GENERATOR.normal(size=(rows, 28)).astype(np.float32)
        np.testing.assert_allclose(read(soft(up(device, array))), soft_of(array), rtol=2e-5, atol=1e-6)

    run(57)
    with Counted(device) as grown:
        for rows in (58, 59, 61, 97):
            run(rows)
    assert grown["pipelines_compiled"] == 0


def test_a_reshape_of_a_value_is_no_launch(device: Device) -> None:
    a = up(device, A)
    with Counted(device) as grown:
        result = read(primitives.reshape(a, (24, 37)))
    assert grown["dispatches"] == 0
    np.testing.assert_array_equal(result, A.reshape(24, 37))
    np.testing.assert_array_equal(read(apply("negative", a)), -A)  # the value itself is untouched


def test_values_between_are_given_free(device: Device) -> None:
    side = 128
    a = up(device, np.eye(side))

    def chain() -> Node:
        x = a
        for _ in range(12):
            x = primitives.contract(x, a)
        return x

    read(chain())
    device.reset_stats()
    result = chain()
    evaluate([result])
    device.synchronize()
    assert 2 * side * side * 4 <= device.stats()["bytes_peak"] <= 6 * side * side * 4
    np.testing.assert_array_equal(read(result), np.eye(side, dtype=np.float32))


# Roots


def test_several_outputs_of_one_launch(device: Device) -> None:
    a = up(device, A)
    roots = [apply("exp", a), apply("negative", a), apply("add", a, 1.0)]
    with Counted(device) as grown:
        evaluate(roots)
    assert grown["dispatches"] == 1
    for root, expected in zip(roots, (np.exp(A), -A, A + 1), strict=True):
        np.testing.assert_allclose(read(root), expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_packed_and_wide_results_share_a_launch_in_whole_fours_only(device: Device, size: int) -> None:
    array = np.arange(size) - 1.5
    x = up(device, array, np.float64)
    doubled, above = apply("add", x, x), apply("greater", x, 0.0)
    with Counted(device) as grown:
        evaluate([doubled, above])
        assert read(doubled).tolist() == (array * 2).tolist()
        assert read(above).tolist() == (array > 0).tolist()
    assert grown["dispatches"] == (1 if size % 4 == 0 else 2)


def test_independent_maps_share_a_launch(device: Device) -> None:
    arrays = [GENERATOR.normal(size=(side, 3)).astype(np.float32) for side in (5, 40, 7, 1, 33)]
    roots = [apply("multiply", up(device, each), 0.5) for each in arrays]
    with Counted(device) as grown:
        evaluate(roots)
    assert grown["dispatches"] == 1
    for root, array in zip(roots, arrays, strict=True):
        np.testing.assert_array_equal(read(root), array * np.float32(0.5))


def test_roots_that_are_leaves_numbers_and_empty(device: Device) -> None:
    given = up(device, A)
    number = scalar(2.5, dtypes.float32, device)
    empty = apply("exp", up(device, np.zeros((0, 12))))
    made = apply("negative", given)
    evaluate([made, given, number, empty, made])
    assert read(number).tolist() == 2.5
    assert read(empty).shape == (0, 12)
    np.testing.assert_array_equal(read(made), -A)
    np.testing.assert_array_equal(read(given), A)
    assert read(fold("sum", up(device, np.zeros((3, 0))), 1)).tolist() == [0.0, 0.0, 0.0]


def test_an_empty_result_beside_others(device: Device) -> None:
    roots = [apply("exp", up(device, np.zeros(side))) for side in (0, 12, 0, 5)]
    evaluate(roots)
    assert [read(each).tolist() for each in roots] == [[], [1.0] * 12, [], [1.0] * 5]


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["sum", "max"])
def test_folds_of_empty_values_that_are_joined(device: Device, name: str, axis: int, rows: int) -> None:
    shape = (0, rows) if axis == 0 else (rows, 0)
    joined = primitives.concat([up(device, np.zeros(shape)) for _ in range(2)], axis)
    ending = 0.0 if name == "sum" else -np.inf
    assert read(fold(name, joined, axis)).tolist() == [ending] * rows


def test_a_held_value_with_a_fold_before_it_is_kept(device: Device) -> None:
    weights = soft(up(device, A))
    result = apply("multiply", weights, 2.0)
    evaluate([result])
    assert weights.storage is not None
    with Counted(device) as grown:
        np.testing.assert_allclose(read(weights), soft_of(A), rtol=2e-5, atol=1e-6)
    assert grown["dispatches"] == 0


def test_elements_of_a_small_value_are_fetched_at_once(device: Device) -> None:
    doubled = Tensor(apply("multiply", up(device, A), 2.0))
    with Counted(device) as grown:
        found = [doubled[row, column].item() for row in range(3) for column in range(4)]
    assert found == (A[:3, :4] * 2).reshape(-1).tolist()
    assert (grown["dispatches"], grown["host_round_trips"]) == (1, 1)
    np.asarray(doubled)[0, 0] = 7  # a copy of its own
    assert doubled[0, 0].item() == A[0, 0] * 2


def test_an_element_of_what_nobody_keeps_is_computed_alone(device: Device) -> None:
    x, large = Tensor(up(device, A)), Tensor(up(device, np.ones((130, 130))))
    with Counted(device) as grown:
        assert ((x * 2)[1, 2].item(), large[3, 4].item()) == (A[1, 2] * 2, 1.0)
    assert grown["bytes_downloaded"] == 8


def test_elements_of_complex_numbers_and_of_numbers(device: Device) -> None:
    pairs = Tensor(primitives.as_complex(apply("add", up(device, [[1, 2], [3, 4]]), 1.0)))
    with Counted(device) as grown:
        assert [complex(pairs[each]) for each in range(2)] == [2 + 3j, 4 + 5j]
        assert read(scalar(2.5, dtypes.float32, device)) == 2.5
    assert grown["host_round_trips"] == 1


def test_reading_without_blocking(device: Device) -> None:
    root = apply("exp", up(device, A))
    np.testing.assert_allclose(asyncio.run(read_async(root)), np.exp(A), rtol=1e-6)


# Numbers at run time


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        (np.float32, -0.0),
        (np.float32, float("inf")),
        (np.float32, 1e-40),
        (np.int32, -(2**31)),
        (np.uint32, 2**32 - 1),
        (np.int8, -128),
        (np.float16, 65504.0),
        (np.bool_, True),
    ],
)
def test_numbers_arrive_as_they_are(device: Device, dtype: Any, number: Any) -> None:
    zeros = up(device, np.zeros(7), dtype)
    condition = up(device, [True, False] * 3 + [True], np.bool_)
    chosen = apply_where(condition, primitives.constant("where", number, zeros.sig.dtype, device), zeros)
    expected = np.where([True, False] * 3 + [True], dtype(number), dtype(0))
    assert read(chosen).tobytes() == expected.astype(dtype).tobytes()


def apply_where(condition: Node, yes: Node, no: Node) -> Node:
    return make(TABLE["where"], (condition, yes, no))


def test_nan_arrives_as_nan(device: Device) -> None:
    result = read(apply("add", up(device, [1.0, 2.0]), float("nan")))
    assert np.isnan(result).all()


def test_more_parameters_than_travel_with_a_command(device: Device) -> None:
    arrays = [GENERATOR.normal(size=(130, 50 + number)).astype(np.float32) for number in range(20)]

    def build() -> Node:
        total = up(device, np.zeros((1, 1)))
        for number, array in enumerate(arrays):
            ranges = ((5 + number, 95 + number, 1), (number + 7, number + 13, 1))
            total = apply("add", total, primitives.slice_(up(device, array), ranges))
        return total

    parts = [array[5 + n : 95 + n, n + 7 : n + 13] for n, array in enumerate(arrays)]
    np.testing.assert_allclose(read(build()), np.sum(parts, axis=0), rtol=1e-5, atol=1e-4)


# Errors


def test_a_type_that_gpus_do_not_compute_is_refused_at_the_call(device: Device) -> None:
    x = leaf(device.upload(np.ones(3)), (3,), dtypes.float64, device)
    narrow = replace(TABLE["sin"], wgsl={"f32": "wg_sin({0})"})
    with pytest.raises(DTypeError, match=r"sin of float64 is not offered on GPUs.*to_device\('cpu'\)"):
        make(narrow, (x,))
    np.testing.assert_array_equal(read(apply("negative", up(device, A))), -A)  # and goes on


def too_large(device: Device) -> Node:
    """16 MiB."""
    x = up(device, np.ones((1, 256, 256)))
    return primitives.elementwise(TABLE["exp"], primitives.expand(x, (64, 256, 256)))


def test_a_failure_while_computing_names_the_users_line() -> None:
    small = bench(memory=MemoryBudget(bytes=4 << 20)).device
    with pytest.raises(OutOfMemoryError, match=r"no room for a buffer of 16\.0 MiB") as caught:
        read(too_large(small))
    message = str(caught.value)
    assert message.count("while computing") == 1
    line = inspect.getsourcelines(too_large)[1] + 3
    assert f"while computing exp (64, 256, 256) float32, made at {__file__}:{line}" in message


def test_a_device_goes_on_after_a_result_that_never_fits() -> None:
    small = bench(memory=MemoryBudget(bytes=4 << 20)).device
    node = too_large(small)
    with pytest.raises(OutOfMemoryError):
        evaluate([node])
    del node
    assert read(apply("add", up(small, [1.0, 2.0]), 1.0)).tolist() == [2.0, 3.0]


# Threads and forks


def test_threads_that_evaluate_shared_graphs(device: Device) -> None:
    base = up(device, A)
    shared = [apply("add", base, float(number)) for number in range(10)]
    shared += [soft(each) for each in shared]
    expected = [A + number for number in range(10)]
    expected += [soft_of(each) for each in expected]
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)

    def work(seed: int) -> None:
        try:
            barrier.wait(HANG)
            for at in np.random.default_rng(seed).permutation(len(shared)):
                np.testing.assert_allclose(read(shared[at]), expected[at], rtol=2e-5, atol=1e-5)
                own = apply("multiply", shared[at], float(seed))
                np.testing.assert_allclose(read(own), expected[at] * seed, rtol=2e-5, atol=1e-4)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(HANG)
    assert not any(each.is_alive() for each in threads)
    assert failures == []


@pytest.mark.fault
def test_a_forked_child_is_refused_on_the_gpu_and_not_on_the_cpu() -> None:
    code = """
import os
import numpy as np
from tests.graph.helpers import apply, numbers
from webgrad import dtypes
from webgrad.errors import ForkError
from webgrad.evaluate.evaluate import read
from webgrad.graph.node import leaf
from webgrad.runtime.device import open_device
device = open_device("webgpu")
x = leaf(device.upload(np.ones(4, np.float32)), (4,), dtypes.float32, device)
assert read(apply("add", x, 1.0)).tolist() == [2.0] * 4
pending = apply("exp", x)
child = os.fork()
if child == 0:
    code = 1
    try:
        read(pending)
    except ForkError as error:
        code = 0 if "fork" in str(error) else 2
    if read(apply("add", numbers([1.0]), 1.0)).tolist() != [2.0]:
        code = 3
    os._exit(code)
assert os.waitpid(child, 0)[1] == 0
np.testing.assert_allclose(read(pending), np.full(4, np.e), rtol=1e-6)
print("fine")
"""
    done = run_python(code)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_one_number_of_64_bits_beside_a_bool(device: Device) -> None:
    """Four of each are written at once, whatever there is of them: 32 bytes."""
    if "int64" not in device.features:
        pytest.skip("the adapter has no 64-bit integers")
    x, y = up(device, [3], np.uint64), up(device, [4], np.uint64)
    sums, smaller = apply("add", x, y), apply("less", x, y)
    evaluate([sums, smaller])
    assert (read(sums).tolist(), read(smaller).tolist()) == ([7], [True])


def test_many_elements_of_one_tensor_each_at_its_place(device: Device) -> None:
    """Where each is takes a parameter, so those of a launch need a binding of their own."""
    x = up(device, np.arange(80))
    parts = [primitives.slice_(x, ((5 + at, 6 + at, 1),)) for at in range(70)]
    doubled = [apply("multiply", each, each) for each in parts]
    evaluate(doubled)
    assert [read(each).item() for each in doubled] == [(5 + at) ** 2 for at in range(70)]
