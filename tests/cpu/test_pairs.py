"""Complex arithmetic by whole pairs: what is found in graphs, and that it is computed as its formulas are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.cpu.helpers import small_blocks
from webgrad.cpu.pairs import keep_pairs, multiply, sizes
from webgrad.cpu.reference import compute
from webgrad.evaluate.cpu_plan import HostPlan
from webgrad.graph.snapshot import Snapshot, snapshot, walk
from webgrad.schedule.pairs import split_pairs

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)
PARTS = ("slice", "concat")


def drawn(*shape: int, dtype: Any = np.complex64) -> wg.Tensor:
    values = RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)
    return wg.asarray(values.astype(dtype), device="cpu")


def graph_of(*results: wg.Tensor) -> Snapshot:
    roots = [each.node for each in results]
    graph = split_pairs(snapshot(walk(roots), roots))
    keep_pairs(graph)
    return graph


def names(*results: wg.Tensor) -> list[str]:
    """The ops that compute, or take pairs apart, or join them."""
    graph = graph_of(*results)
    found = [graph.sigs[each].op.name for each in graph.order()]
    return [each for each in found if each not in ("leaf", "scalar", "reshape", "expand")]


def planned(*results: wg.Tensor) -> list[Array]:
    """Computed in blocks, by a plan of its own."""
    roots = [each.node for each in results]
    walked = walk(roots)
    with small_blocks():
        plan = HostPlan(split_pairs(snapshot(walked, roots)), roots[0].sig.device)
        found = dict(zip(plan.stored, plan.run(walked.nodes), strict=True))
    return [found[walked.numbers[each]] for each in roots]


def check(*results: wg.Tensor, rounding: float = 8.0) -> None:
    """Against the formulas, node by node; both parts within units in the last place of the number's size."""
    wanted = compute([each.node for each in results])
    for got, want in zip(planned(*results), wanted, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        limit = rounding * np.finfo(got.dtype).eps * np.maximum(np.abs(want), 1)
        np.testing.assert_array_less(np.abs(got - want), limit)


A, B, C = drawn(9, 20), drawn(9, 20), drawn(9, 20)
REAL = wg.asarray(RNG.standard_normal((9, 20)).astype(np.float32), device="cpu")
FOUND: dict[str, tuple[Callable[[], wg.Tensor], list[str]]] = {
    "a product": (lambda: A * B, ["multiply_pairs"]),
    "a square": (lambda: A * A, ["multiply_pairs"]),
    "a conjugate": (lambda: wg.conj(A), ["conjugate_pairs"]),
    "a size": (lambda: wg.abs(A), ["sizes_of_pairs"]),
    "a sum": (lambda: A * B + C, ["multiply_pairs", "add"]),
    "a difference": (lambda: C - A * B, ["multiply_pairs", "subtract"]),
    "a chain": (
        lambda: wg.abs((A * B + C) * wg.conj(A) - B),
        ["multiply_pairs", "add", "conjugate_pairs", "multiply_pairs", "subtract", "sizes_of_pairs"],
    ),
    "a real factor": (lambda: A * B * 2.0, ["multiply_pairs", "multiply"]),
    "real numbers": (lambda: A * B * REAL / REAL, ["multiply_pairs", "multiply", "divide"]),
    "a real summand": (lambda: A * B + 1, ["multiply_pairs", "add_to_real"]),
    "summands": (lambda: (A + (1 + 2j)) + 1, ["concat", "add", "add_to_real"]),
    "a number": (lambda: A * 2j, ["concat", "multiply_pairs"]),
    "a sum of many": (lambda: (A * B).sum(), ["multiply_pairs", "sum"]),
    "other shapes": (lambda: A * B[0] * C[:, 3:4], ["slice", "multiply_pairs", "slice", "multiply_pairs"]),
    "turned": (lambda: A.T * wg.conj(B).T, ["permute", "conjugate_pairs", "permute", "multiply_pairs"]),
    "both parts alike": (lambda: wg.round(A * B), ["multiply_pairs", "round"]),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(name: str) -> None:
    make, ops = FOUND[name]
    assert sorted(names(make())) == sorted(ops)
    check(make())


def test_parts_that_are_computed_by_themselves_are_joined_once() -> None:
    apart = wg.exp(A) * B
    assert names(apart).count("multiply_pairs") == names(apart).count("concat") == 1
    together = wg.exp(A) * wg.exp(B)  # joining both would be more than the product saves
    assert "multiply_pairs" not in names(together)
    size = wg.abs(wg.complex(wg.real(A), REAL))
    assert names(size) == ["slice", "concat", "sizes_of_pairs"]
    for each in (apart, together, size, wg.sqrt(A * B), (A * B) / C):
        check(each, rounding=64.0)


def test_what_only_looks_like_it_stays() -> None:
    re, im = wg.real(A), wg.imag(A)
    others = wg.real(B), wg.imag(B)
    crossed = wg.complex(re * others[0] - im * others[1], re * others[1] - im * others[0])
    swapped = wg.complex(im, re)
    mixed = wg.complex(re, others[1])
    halves = wg.stack([re.astype(wg.float16) * 2, -im.astype(wg.float16)], axis=-1)
    for each in (crossed, swapped, mixed, halves):
        assert not {*names(each)} & {"multiply_pairs", "conjugate_pairs", "add_to_real"}
    check(crossed, swapped, mixed)


def test_several_results_and_double_precision() -> None:
    a, b = drawn(3, 40, dtype=np.complex128), drawn(40, dtype=np.complex128)
    product = a * b
    assert set(names(product, wg.abs(product))) == {"multiply_pairs", "sizes_of_pairs"}
    check(product, wg.abs(product), wg.real(product), wg.exp(product), wg.conj(product) + a)


def test_pairs_that_do_not_lie_side_by_side() -> None:
    both = wg.view_as_complex(wg.expand_dims(REAL, -1).expand((9, 20, 2)))
    across = wg.view_as_complex(wg.asarray(RNG.standard_normal((2, 30)).astype(np.float32), device="cpu").T)
    for each in (both * A, across * across, wg.abs(across), wg.conj(both), A[::2, ::-1] * B[::2]):
        check(each)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (4, 0, 3), (1, 1)])
def test_few_or_no_numbers(shape: tuple[int, ...]) -> None:
    a, b = drawn(*shape), drawn(*shape)
    check(a * b, wg.abs(a * b + 1), wg.conj(a) * 2j)


def every_pair(*parts: float) -> wg.Tensor:
    line = np.array(parts, np.float32)
    values = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    return wg.asarray(values.view(np.complex64)[:, 0], device="cpu")


SPECIAL = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-42)


def test_signs_are_those_of_the_formulas() -> None:
    x = every_pair(*SPECIAL)
    results = (wg.conj(x), x + 1, wg.conj(x) + 0.0, x - 0.0)
    for got, want in zip(planned(*results), compute([each.node for each in results]), strict=True):
        np.testing.assert_array_equal(got.view(np.float32), want.view(np.float32))
        numbers = ~np.isnan(want.view(np.float32))
        np.testing.assert_array_equal(
            np.signbit(got.view(np.float32))[numbers], np.signbit(want.view(np.float32))[numbers]
        )


def test_infinities_and_nans_are_those_of_the_formulas() -> None:
    # sums of products that are beyond all floats may be floats, if NumPy rounds them once
    x, wide = every_pair(*SPECIAL), every_pair(*SPECIAL, 3e38, -2e38)
    results = (wg.abs(wide), x[:, None] * x, wg.abs(x[:, None] * x), wg.conj(wide), x * 2j)
    for got, want in zip(planned(*results), compute([each.node for each in results]), strict=True):
        np.testing.assert_allclose(got.view(np.float32), want.view(np.float32), rtol=1e-6, atol=1e-44)


def test_the_formula_of_a_size_with_other_numbers() -> None:
    numbers = [np.array(each, np.float32) for each in (3.0, 4.0, -1.0, 0.0, 0.0, 1.0)]
    pairs = np.array([[3.0, 4.0], [3.0, 5.0], [6.0, 8.0]], np.float32)
    np.testing.assert_array_equal(sizes(pairs, *numbers), [-1, -1, 10])
    out = np.empty(3, np.float32)
    assert sizes(pairs, *numbers, out=out) is out
    np.testing.assert_array_equal(out, [-1, -1, 10])


def test_a_place_whose_numbers_lie_apart() -> None:
    a = RNG.standard_normal((5, 2)).astype(np.float32)
    out = np.zeros((2, 5), np.float32).T
    want = a.view(np.complex64) ** 2
    np.testing.assert_allclose(multiply(a, a, out=out).copy().view(np.complex64), want, rtol=1e-6)


def test_long_chains() -> None:
    x, turn = drawn(40), drawn(40)
    made, want = x, x.numpy()
    step = turn.numpy() / np.abs(turn.numpy())
    turn = wg.asarray(step, device="cpu")
    for _ in range(1500):
        made, want = made * turn, want * step
    assert "slice" not in names(made)
    np.testing.assert_allclose(planned(made)[0], want, rtol=1e-3)


OPERATIONS: list[Callable[..., wg.Tensor]] = [
    lambda x, y: x * y,
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: wg.conj(x) * 0.5,
    lambda x, y: -x + 1,
    lambda x, y: wg.complex(wg.abs(x), wg.real(y)),
    lambda x, y: wg.complex(wg.imag(x), wg.imag(y)),
    lambda x, y: wg.where(wg.real(x) > 0, x, y),
    lambda x, y: x * (0.5 - 0.25j),
    lambda x, y: wg.sin(wg.real(x)) * y,
    lambda x, y: x - y.sum(axis=-1, keepdims=True) / 20,
    lambda x, y: wg.flip(x, axis=-1),
]


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [A, B, C[0]]
    for _ in range(8):
        x, y = (values[at] for at in rng.integers(max(0, len(values) - 4), len(values), 2))
        made = OPERATIONS[rng.integers(len(OPERATIONS))](x, y)
        values.append(made / (1 + wg.abs(made)) if rng.random() < 0.5 else made * 0.25)
    check(*values[-3:], wg.abs(values[-1]), rounding=64.0)
