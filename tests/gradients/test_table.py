"""The gradient of every row of the table, against finite differences of the row's NumPy function.

Twenty samples for each row, over its domain and layouts, by every input that is a float: in float64 and
float32 on the cpu; some of them in float32 on a GPU. A third are of few values: at ties of smooth rows the
differences count as elsewhere, at kinks the rules of `corners.py`.
A new row is tested without a word here; one that says nothing about its gradient fails.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.gradients.corners import RULES
from tests.gradients.helpers import Array, difference, gradients_of, slopes, weights
from tests.gradients.samples import SAMPLES, Sample, samples_of
from tests.selection import first
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.evaluate.evaluate import evaluate
from webgrad.graph.node import make, signature
from webgrad.graph.op import Op
from webgrad.ops.table import TABLE
from webgrad.tensor import Tensor

pytestmark = pytest.mark.property
Known = list[tuple[Sample, list[Array | None]]]
# Rows that take floats and give floats, but have no gradient, and why
WITHOUT = {
    "bitcast": "bits are not numbers",
    "matmul_blocks": "made by the scheduler from decode and matmul, which have them",
    "sort_values": "made by the scheduler from take_along, which has one, and sort_places",
}
# Views of complex numbers have no differences of one number: they are in cases of tests/gradients/composed.py
ROWS = [name for name, op in TABLE.items() if op.gradient and op.kind != "view"]
BOUNDS = {dtypes.float64: (1e-6, 1e-8), dtypes.float32: (2e-4, 2e-5)}
# On GPUs, whose drivers compile slowly, some of the samples: one of attention, four of most others; in
# `make test` the first of these
ON_GPU = {"attend": slice(2, 3), "contract": slice(2, None, 6)}
SOME = slice(1, None, 5)
ROUNDED = (1e-2, 1e-2)  # where gradients go through half precision


def tensor_function(op: Op, sample: Sample) -> Any:
    """The row over tensors in their layouts."""

    def function(*tensors: Tensor) -> Tensor:
        operands = [each.view(wg, tensor) for each, tensor in zip(sample.inputs, tensors, strict=True)]
        return Tensor(make(op, tuple(each.node for each in operands), sample.attributes))

    return function


def array_function(op: Op, sample: Sample, shape: tuple[int, ...]) -> Any:
    """The row's NumPy over arrays in their layouts, in float64."""
    sig = signature(op, shape, dtypes.float64, None, sample.attributes)

    def function(*arrays: Array) -> Any:
        operands = [each.view(np, array) for each, array in zip(sample.inputs, arrays, strict=True)]
        return op.numpy(*operands) if op.kind == "map" else op.numpy(sig, *operands)

    return function


@functools.cache
def wanted_of(name: str) -> Known:
    """The samples of a row, and the gradients by finite differences."""
    op = TABLE[name]
    found = []
    for sample in samples_of(op):
        bases = [each.base for each in sample.inputs]
        shape = tensor_function(op, sample)(*[wg.asarray(each, device="cpu") for each in bases]).shape
        function = array_function(op, sample, shape)
        gradients = [
            slopes(function, bases, at, sample.steps[at]) if each.is_float else None
            for at, each in enumerate(sample.inputs)
        ]
        if sample.is_coarse and name in RULES:
            gradients = by_rule(name, sample, shape)
        found.append((sample, gradients))
    return found


def by_rule(name: str, sample: Sample, shape: tuple[int, ...]) -> list[Array | None]:
    """The gradients at kinks: those of operands, added up where their elements lie in memory."""
    operands = [each.view(np, each.base) for each in sample.inputs]
    found: list[Array | None] = []
    for each, gradient in zip(
        sample.inputs, RULES[name](weights(shape), sample.attributes, *operands), strict=True
    ):
        if gradient is None:
            found.append(None)
            continue
        total = np.zeros(each.base.size)
        np.add.at(total, each.view(np, np.arange(each.base.size).reshape(each.base.shape)), gradient)
        found.append(total.reshape(each.base.shape))
    return found


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.float32], ids=str)
def test_gradients_of_a_row(name: str, dtype: DType) -> None:
    known = wanted_of(name)
    assert len(known) == SAMPLES
    check(TABLE[name], "cpu", dtype, known)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("count", first(1, [1, SAMPLES]))
def test_gradients_of_a_row_on_a_gpu(name: str, count: int) -> None:
    op = TABLE[name]
    check(op, "webgpu", dtypes.float32, wanted_of(name)[ON_GPU.get(op.kind, SOME)][:count])


def check(op: Op, device: str, dtype: DType, known: Known) -> None:
    found = [
        gradients_of(tensor_function(op, sample), [each.base for each in sample.inputs], dtype, device)
        for sample, _ in known
    ]
    evaluate([grad.node for grads in found for grad in grads if grad is not None])
    relative, absolute = ROUNDED if op.name == "cast" else BOUNDS[dtype]
    wrong = []
    for (sample, wanted), grads in zip(known, found, strict=True):
        for at, (grad, slope) in enumerate(zip(grads, wanted, strict=True)):
            assert (grad is None) is (slope is None)
            if grad is not None and slope is not None:
                text = difference(grad.numpy(), slope, relative, absolute)
                wrong += [f"{sample.label}, by input {at}: {text}"] if text else []
    assert not wrong, "\n".join(wrong)


def test_every_row_of_floats_says_what_its_gradient_is() -> None:
    """Or that it has none, with a reason."""
    silent = [name for name, op in TABLE.items() if op.gradient is None]
    assert not silent, f"{silent}: give the rows a gradient, or () where there is none"
    takes_and_gives = [
        name
        for name, op in TABLE.items()
        if not op.gradient and op.arity and "f" in op.types and op.result == "same" and op.name != "where"
    ]
    assert set(takes_and_gives) == set(WITHOUT)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_a_rule_for_each_input(name: str) -> None:
    op = TABLE[name]
    if isinstance(op.gradient, tuple):
        assert len(op.gradient) == (1 if op.arity == -1 else op.arity)


@pytest.mark.parametrize(
    "name", [name for name in ROWS if TABLE[name].gradient == ("0",) * TABLE[name].arity]
)
def test_rows_whose_gradient_is_nothing_are_constant_all_around(name: str) -> None:
    for _, wanted in wanted_of(name):
        assert all(not np.any(each) for each in wanted if each is not None)
