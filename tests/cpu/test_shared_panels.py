"""Matrices that several products of a plan read are packed once, and the products are what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cpu.helpers import apply, node_of
from tests.cpu.test_plan import Planned
from webgrad.cpu.layout import Command
from webgrad.cpu.shared_panels import LEAST
from webgrad.graph.node import Node
from webgrad.native.compiler import is_available
from webgrad.ops import primitives

pytestmark = pytest.mark.skipif(not is_available(), reason="no native code: llvmlite is not here, or off")

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)


def chained(x: Node, weight: Node, steps: int) -> Node:
    """tanh(x @ weight), again and again."""
    for _ in range(steps):
        x = apply("tanh", primitives.contract(x, weight))
    return x


def packings(planned: Planned) -> int:
    steps = planned.plan._steps
    return sum(isinstance(each, Command) and -2 in each.buffers and len(each.buffers) == 2 for each in steps)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("rows", "size"), [(17, 33), (32, 300), (100, 64)])
def test_a_recurrent_product(rows: int, size: int, dtype: Any, turned: bool) -> None:
    x, weight = RNG.standard_normal((rows, size)), RNG.standard_normal((size, size)) / size**0.5
    x, weight = x.astype(dtype), weight.astype(dtype)
    stored = node_of(np.ascontiguousarray(weight.T if turned else weight))
    operand = primitives.permute(stored, (1, 0)) if turned else stored
    once = Planned(chained(node_of(x), operand, 1))
    many = Planned(chained(node_of(x), operand, LEAST + 2))
    assert (packings(once), packings(many)) == (0, 1)
    (found,) = many.run()
    want = x
    for _ in range(LEAST + 2):
        (want,) = Planned(chained(node_of(want), operand, 1)).run()
    np.testing.assert_array_equal(found, want)


def test_a_matrix_that_is_added_too() -> None:
    x = node_of(RNG.standard_normal((40, 40)).astype(np.float32))
    weight = node_of(RNG.standard_normal((40, 40)).astype(np.float32))
    y = x
    for _ in range(LEAST + 1):
        y = apply("tanh", apply("add", primitives.contract(y, weight), weight))
    planned = Planned(y)
    want = planned.leaves[planned.nodes.index(x)]
    matrix = planned.leaves[planned.nodes.index(weight)]
    for _ in range(LEAST + 1):
        want = np.tanh(want @ matrix + matrix)
    assert packings(planned) == 1
    np.testing.assert_allclose(planned.run()[0], want, rtol=2e-4, atol=2e-5)
