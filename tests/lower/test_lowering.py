"""Kernels interpreted in Python, for every kind of device: right, in bounds, each element written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.graph.helpers import CPU, apply, fold
from tests.lower.interpret import run_schedule
from tests.schedule.graphs import PROFILES
from tests.schedule.test_merge import graphs
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import softmax
from webgrad.functions.learning.normalisation import layer_norm
from webgrad.graph.node import Node, leaf, make
from webgrad.graph.snapshot import snapshot, walk
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.reference.plan import compute
from webgrad.schedule.schedule import schedule
from webgrad.tensor import Tensor

Array = np.ndarray[Any, Any]
Build = Callable[[], list[Node]]


def data(*shape: int, dtype: dtypes.DType = dtypes.float32, low: float = -3, high: float = 3) -> Node:
    """A leaf of seeded numbers."""
    generator = np.random.default_rng(sum(shape) + 7 * len(shape))
    array = generator.uniform(low, high, shape)
    made = (array > 0) if dtype is dtypes.bool else array.astype(dtype.numpy)
    return leaf(made.astype(dtype.numpy), shape, dtype, CPU)


def check(build: Build, profile: DeviceProfile, *, rtol: float = 2e-5, passes: bool = True) -> None:
    """The interpreted kernels give what NumPy gives, node by node."""
    roots = build()
    expected = compute(roots)
    walked = walk(roots)
    leaves, scalars = {}, {}
    for number, node in enumerate(walked.nodes):
        if node.sig.kind == "leaf":
            leaves[number] = node.storage
        elif node.sig.kind == "scalar":
            scalars[number] = node.storage
    for fuse in (True, False):
        plan = schedule(snapshot(walked, roots), profile, fuse=fuse)
        results = run_schedule(plan, profile, leaves, scalars, passes=passes)
        for result, right in zip(results, expected, strict=True):
            assert result.dtype == right.dtype
            assert result.shape == right.shape
            if right.dtype.kind in "biu":
                np.testing.assert_array_equal(result, right)
            else:
                exact, found = right.astype(np.float64), result.astype(np.float64)
                scale = np.abs(exact).max(initial=1.0)  # differences of large numbers have their errors
                relative = 1e-2 if right.dtype.itemsize == 2 else rtol
                np.testing.assert_allclose(found, exact, rtol=relative, atol=1e-5 * scale)


def cube() -> Node:
    return data(3, 5, 8)


def windows(x: Node, weight: Node) -> Node:
    """Windows of 3 by 2 in a padded image, times a weight: a convolution as it is composed."""
    padded = primitives.pad(x, ((0, 0), (0, 0), (1, 1), (0, 1)), 0.0)
    moved = primitives.window(primitives.window(padded, 2, 3, 2), 3, 2)
    samples, _, height, width, *_ = moved.sig.shape
    order = primitives.permute(moved, (0, 4, 5, 1, 2, 3))
    return primitives.contract(
        weight, primitives.reshape(order, (samples, weight.sig.shape[1], height * width))
    )


def row_of_padding(x: Node, kept: tuple[int, int]) -> Node:
    """The first row of some rows of x behind two rows of padding: no element of x is read."""
    start, stop = kept
    some = apply("exp", primitives.slice_(x, ((start, stop, 1), (0, 4, 1))))
    padded = primitives.pad(some, ((2, 3 - (stop - start)), (0, 0)), 5.0)
    return apply("add", primitives.slice_(padded, ((0, 1, 1), (0, 4, 1))), 1.0)


CASES: dict[str, Build] = {
    "map": lambda: [apply("add", apply("multiply", data(5, 12), 2.0), data(12))],
    "odd map": lambda: [apply("add", data(5, 7), data(5, 1))],
    "one number": lambda: [apply("add", data(), 1.0)],
    "single elements": lambda: [apply("add", data(1, 1), data(1))],
    "several outputs": lambda: (lambda x: [apply("exp", x), apply("negative", x)])(data(6, 6)),
    "bundle": lambda: [apply("negative", data(size)) for size in (3, 64, 33, 1)],
    "middle broadcast": lambda: [apply("add", data(3, 1, 8), data(3, 5, 8))],
    "transpose": lambda: [apply("exp", primitives.permute(data(6, 9), (1, 0)))],
    "transposed slice": lambda: [
        apply(
            "negative", primitives.slice_(primitives.permute(data(40, 20), (1, 0)), ((1, 19, 2), (3, 35, 1)))
        )
    ],
    "flips": lambda: [apply("add", primitives.flip(cube(), (0, 2)), primitives.flip(cube(), (1,)))],
    "reshape": lambda: [apply("exp", primitives.reshape(primitives.permute(cube(), (2, 0, 1)), (12, 10)))],
    "pad": lambda: [apply("exp", primitives.pad(apply("exp", data(4, 6)), ((1, 2), (3, 1)), 7.0))],
    "pad of fours": lambda: [primitives.pad(data(4, 8), ((0, 0), (4, 4)), -1.0)],
    "row of padded nothing": lambda: [row_of_padding(data(3, 4), (0, 0))],
    "row of padding": lambda: [row_of_padding(data(3, 4), (1, 3))],
    "expand": lambda: [apply("add", primitives.expand(data(1, 8), (20, 8)), 1.0)],
    "concat 0": lambda: [primitives.concat([data(2, 8), data(3, 8), apply("exp", data(1, 8))], 0)],
    "concat 1": lambda: [primitives.concat([data(4, 3), data(4, 4), data(4, 1)], 1)],
    "concat of fours": lambda: [primitives.concat([data(4, 4), data(4, 8)], 1)],
    "iota": lambda: [primitives.iota(37, dtypes.int32, CPU), primitives.iota(8, dtypes.float32, CPU)],
    "where": lambda: [make(TABLE["where"], (data(5, 8, dtype=dtypes.bool), data(5, 8), data(8)))],
    "sum 0": lambda: [fold("sum", data(33, 8), 0)],
    "sum 1": lambda: [fold("sum", data(5, 33), 1)],
    "sum of fours": lambda: [fold("sum", data(5, 36), 1)],
    "sum of all": lambda: [fold("sum", cube(), 0, 1, 2)],
    "sum apart": lambda: [fold("sum", cube(), 0, 2)],
    "max middle": lambda: [fold("max", cube(), 1)],
    "sum of nothing": lambda: [fold("sum", data(4, 0), 1)],
    "max of nothing": lambda: [fold("max", data(0, 5), 0)],
    "nothing": lambda: [apply("exp", data(0, 5))],
    "long row": lambda: [fold("sum", data(2, 600), 1)],
    "long sum": lambda: [fold("sum", data(5000), 0)],
    "softmax": lambda: [softmax(Tensor(data(5, 12))).node],
    "odd softmax": lambda: [softmax(Tensor(data(3, 7))).node],
    "wide softmax": lambda: [softmax(Tensor(data(2, 512))).node],
    "wide odd softmax": lambda: [softmax(Tensor(data(2, 301))).node],
    "softmax 0": lambda: [softmax(Tensor(data(6, 8)), axis=0).node],
    "layer norm": lambda: [layer_norm(Tensor(data(5, 12)), 12, Tensor(data(12)), Tensor(data(12))).node],
    "scan 1": lambda: [primitives.scan(TABLE["cumulative_sum"], data(5, 12), 1)],
    "scan 0": lambda: [primitives.scan(TABLE["cumulative_max"], data(5, 12), 0)],
    "odd scan": lambda: [primitives.scan(TABLE["cumulative_prod"], data(3, 7), 1)],
    "matmul": lambda: [primitives.contract(data(5, 8), data(8, 12))],
    "odd matmul": lambda: [apply("add", primitives.contract(data(5, 7), data(7, 9)), data(9))],
    "transposed matmul": lambda: [primitives.contract(data(5, 8), primitives.permute(data(12, 8), (1, 0)))],
    "batches": lambda: [primitives.contract(data(2, 5, 8), data(2, 8, 4))],
    "broadcast batches": lambda: [primitives.contract(data(3, 1, 5, 8), data(2, 8, 4))],
    "matrix times column": lambda: [primitives.contract(data(5, 7), data(7, 1))],
    "narrow result": lambda: [apply("add", primitives.contract(data(9, 8), data(8, 3)), data(9, 3))],
    "narrow odd result": lambda: [primitives.contract(data(2, 11, 5), data(2, 5, 2))],
    "one row": lambda: [apply("exp", primitives.contract(data(1, 6), data(6, 132)))],
    "windows": lambda: [windows(data(2, 4, 5, 6), data(3, 24))],
    "odd windows": lambda: [windows(data(1, 3, 4, 5), data(2, 18))],
    "merged axes": lambda: [
        primitives.contract(
            primitives.reshape(primitives.permute(data(3, 5, 4), (1, 0, 2)), (5, 12)), data(12, 8)
        )
    ],
    "epilogue in other order": lambda: [
        primitives.reshape(apply("maximum", primitives.contract(data(6, 8), data(8, 4)), 0.0), (3, 2, 4))
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_right(name: str, profile: DeviceProfile) -> None:
    check(CASES[name], profile)


@pytest.mark.parametrize("name", ["odd matmul", "broadcast batches", "narrow result", "one row", "windows"])
def test_products_without_subgroups_are_right(name: str) -> None:
    check(CASES[name], DeviceProfile("software"))


@pytest.mark.parametrize("name", ["softmax", "transposed slice", "odd matmul", "concat 1", "pad"])
def test_kernels_are_right_without_passes(name: str, profile: DeviceProfile) -> None:
    check(CASES[name], profile, passes=False)


@pytest.mark.property
@settings(max_examples=15)
@given(roots=graphs(), name=st.sampled_from(list(PROFILES)))
def test_any_kernels_are_right(roots: list[Node], name: str) -> None:
    assume(max(float(np.abs(each).max()) for each in compute(roots)) < 1e4)
    check(lambda: roots, PROFILES[name], rtol=1e-3)


def gathered(dtype: dtypes.DType, axis: int) -> list[Node]:
    index = np.array([3, -2, 100, 0, 1], np.int64).clip(*(0, 200) if dtype.kind == "u" else (-2, 100))
    node = leaf(index.astype(dtype.numpy), (5,), dtype, CPU)
    return [apply("exp", primitives.take(data(6, 8), node, axis))]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint32, dtypes.int8, dtypes.uint16], ids=repr)
def test_computed_indices_are_clamped(dtype: dtypes.DType, axis: int, profile: DeviceProfile) -> None:
    check(lambda: gathered(dtype, axis), profile)


@pytest.mark.parametrize("dtype", [each for each in dtypes.REAL if each.itemsize < 4], ids=repr)
@pytest.mark.parametrize("shape", [(5, 8), (3, 7), (13,), (1, 3), ()], ids=str)
def test_packed_types(dtype: dtypes.DType, shape: tuple[int, ...], profile: DeviceProfile) -> None:
    def build() -> list[Node]:
        x = data(*shape, dtype=dtype, low=0 if dtype.kind == "u" else -100, high=100)
        made = [apply("maximum", x, x), apply("equal", x, x)]
        if shape:
            made += [fold("max", x, len(shape) - 1), primitives.flip(x, (0,)), fold("min", x, 0)]
        return made if dtype.kind == "b" else [*made, apply("add", x, x)]

    check(build, profile)


@pytest.mark.parametrize(
    "source", [dtypes.float32, dtypes.int8, dtypes.bool, dtypes.uint32, dtypes.float16], ids=repr
)
@pytest.mark.parametrize(
    "target", [dtypes.float32, dtypes.int8, dtypes.bool, dtypes.uint32, dtypes.bfloat16], ids=repr
)
def test_casts(source: dtypes.DType, target: dtypes.DType) -> None:
    if source is target:
        return
    check(lambda: [primitives.cast(data(5, 7, dtype=source, low=0, high=300), target)], PROFILES["software"])
