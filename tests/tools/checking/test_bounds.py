"""Bounds hold what rounding does, and no more: NumPy in float32 stays within them, a small error does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.properties.helpers import on, sig_of
from tests.properties.programs import value_of_step, values_of
from tests.properties.writing import write_program
from webgrad import dtypes
from webgrad.graph.node import Signature, signature
from webgrad.graph.op import LEAF
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of
from webgrad.tools.checking.bounds import bounded
from webgrad.tools.checking.comparison import compare
from webgrad.tools.checking.rounding import Bounded, exact

Array = np.ndarray[Any, Any]


def sig(op: str, *inputs: Array, attributes: tuple[Any, ...] = ()) -> Signature:
    cpu = on("cpu")
    leaves = [signature(LEAF, each.shape, dtypes.as_dtype(each.dtype), cpu) for each in inputs]
    return sig_of(TABLE[op], leaves, attributes)


def of(op: str, *inputs: Array, attributes: tuple[Any, ...] = ()) -> Bounded:
    return bounded(sig(op, *inputs, attributes=attributes), [exact(each) for each in inputs])


def floats(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_numpy_in_float32_is_within_the_bounds(seed: int) -> None:
    program = write_program(seed)
    known: list[Bounded] = []
    for step, value in zip(program.steps, values_of(program), strict=True):
        if step.op in ("leaf", "scalar"):
            known.append(exact(value.array))
            continue
        if step.op == "iota":
            known.append(Bounded(value_of_step(step, []).array))
            continue
        inputs = [known[each] for each in step.inputs]
        shapes = [
            signature(LEAF, each.value.shape, dtypes.as_dtype(_stored(each)), on("cpu")) for each in inputs
        ]
        made = sig_of(TABLE[step.op], shapes, step.attributes)
        arrays = [np.asarray(each.value).astype(_stored(each)) for each in inputs]
        known.append(exact(value_of(made, arrays)))
        result = compare(bounded(made, [exact(each) for each in arrays]), known[-1].value)
        assert result.ok, (step.op, result)


def _stored(x: Bounded) -> Any:
    return x.value.dtype


def test_what_is_not_rounded_may_not_differ() -> None:
    assert of("add", floats(1, 2), floats(0.5, 4)).error is None
    assert of("multiply", floats(3), floats(0.25)).error is None
    assert of("sum", floats(*range(100)), attributes=((0,),)).error is None
    assert of("matmul", floats(1, 2, 3)[None], floats(4, 5, 6)[:, None]).error is None
    assert of("flip", floats(0.1, 0.2), attributes=((0,),)).error is None
    assert of("less", floats(0.1, 0.2), floats(0.2, 0.1)).error is None
    whole = np.array([7, -7], np.int32)
    assert of("floor_divide", whole, np.array([2, 2], np.int32)).error is None


def test_rounding_is_about_a_unit_in_the_last_place() -> None:
    found = of("add", floats(1), floats(1e-9))
    assert found.error is not None
    assert 5e-8 < found.error[0] < 7e-8
    assert compare(found, floats(1)).ok
    assert compare(found, floats(1 + 2**-23)).ok  # within twice the bound
    assert not compare(found, floats(1 + 2**-22)).ok


def test_cancellation_makes_room_and_only_there() -> None:
    third = of("divide", floats(1, 1), floats(3, 3))
    less = bounded(sig("subtract", floats(0, 0), floats(0, 0)), [third, exact(floats(1 / 3, -100))])
    assert less.error is not None
    relative = less.error / np.abs(less.value)
    assert relative[0] > 1
    assert relative[1] < 1e-6


def test_a_comparison_of_what_is_nearly_equal_may_go_either_way() -> None:
    third = of("divide", floats(1, 1), floats(3, 3))
    found = bounded(sig("less", floats(0, 0), floats(0, 0)), [third, exact(floats(1 / 3, 0.4))])
    assert found.error is not None
    assert found.error.tolist() == [True, False]
    chosen = bounded(
        sig("where", np.array([True, True]), floats(0, 0), floats(0, 0)),
        [found, exact(floats(5, 5)), exact(floats(1, 1))],
    )
    assert chosen.error is not None
    assert chosen.error.tolist() == [4.0, 0.0]


def test_infinities_and_nan_have_their_places() -> None:
    large = of("exp", floats(100, -200, np.nan, np.inf))
    assert large.value.tolist()[0] == np.inf
    assert compare(large, floats(np.inf, 0, np.nan, np.inf)).ok
    assert not compare(large, floats(3e38, 0, np.nan, np.inf)).ok
    assert not compare(large, floats(np.inf, 0, 0, np.inf)).ok
    assert compare(of("multiply", floats(-3.4028235e38), floats(1)), floats(-3.4028235e38)).ok


def test_denormals_may_be_zeros() -> None:
    found = of("multiply", floats(1e-30), floats(1e-10))
    assert compare(found, floats(0)).ok
    assert compare(found, floats(1e-40)).ok
    assert not compare(found, floats(1e-37)).ok
    root = bounded(sig("sqrt", floats(0)), [found])
    assert root.error is not None
    assert np.isfinite(root.error).all()  # a product of positive numbers is not below 0


def _added(terms: Array) -> Array:
    """One after another in float32, by runs of 64, as kernels do."""
    total = np.float32(0)
    for start in range(0, terms.size, 64):
        total += np.add.accumulate(terms[start : start + 64])[-1]
    return np.asarray(total)


@pytest.mark.parametrize("length", [10, 1000, 20_000])
def test_a_sum_without_one_of_its_terms_is_wrong(length: int) -> None:
    terms = np.random.default_rng(length).uniform(0.5, 1.5, length).astype(np.float32)
    found = of("sum", terms, attributes=((0,),))
    assert compare(found, _added(terms)).ok
    assert not compare(found, _added(terms[1:])).ok


@pytest.mark.parametrize("number", [0.1, 0.7, 1e-3, 1 / 3])
def test_a_sum_of_equal_terms_is_rounded_the_same_way_all_the_time(number: float) -> None:
    terms = np.full(1_000_000, number, np.float32)
    assert compare(of("sum", terms, attributes=((0,),)), _added(terms)).ok
    pairs = np.tile(np.array([number, 2.3], np.float32), 100_000)
    assert compare(of("sum", pairs, attributes=((0,),)), _added(pairs)).ok


@pytest.mark.parametrize("length", [16, 500, 20_000])
def test_products_of_rows(length: int) -> None:
    random = np.random.default_rng(length)
    a, b = (random.normal(size=shape).astype(np.float32) for shape in ((1, length), (length, 8)))
    found = of("matmul", a, b)
    running = np.add.accumulate(a.T * b, axis=0, dtype=np.float32)  # the order with the largest errors
    assert compare(found, running[-1:]).ok
    assert not compare(found, running[-5:-4]).ok


def test_bits_of_what_was_rounded_are_near_its_own() -> None:
    third = of("divide", floats(1, -2), floats(3, 3))
    bits = bounded(sig("bitcast", floats(0, 0), attributes=(dtypes.uint32,)), [third])
    assert bits.error is not None
    assert (bits.error < 16).all()
    kept = bounded(
        sig("bitwise_or", bits.value, bits.value), [bits, exact(np.array([1 << 31] * 2, np.uint32))]
    )
    assert kept.error is not None
    assert (kept.error < 16).all()
    mixed = bounded(sig("random_bits", *[bits.value] * 3), [bits, exact(bits.value), exact(bits.value)])
    assert mixed.error is not None
    assert np.isinf(mixed.error).all()
