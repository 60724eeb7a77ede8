"""Folds over small windows are written out: which those are, and what becomes of them."""

from __future__ import annotations

import pytest

from tests.graph.helpers import apply, fold, graph_of, value
from tests.lower.helpers import lowered, texts
from tests.schedule.graphs import PORTABLE, SOFTWARE
from webgrad.device_profile import DeviceProfile
from webgrad.graph.node import Node
from webgrad.lower.unroll import MAX_UNROLLED_COST, window_folds
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.schedule.size import MAX_UNROLLED_TERMS


def pool(rows: int, columns: int, size: int = 3) -> Node:
    """The largest of windows that overlap, in a padded plane."""
    padded = primitives.pad(value(2, rows, columns), ((0, 0), (1, 1), (1, 1)))
    windows = primitives.window(primitives.window(padded, 1, size, 2), 2, size, 2)
    return fold("max", primitives.permute(windows, (0, 3, 4, 1, 2)), 1, 2)


def folds_of(node: Node) -> int:
    graph = graph_of(node)
    return len(window_folds(graph, graph.order()))


def test_folds_over_elements_of_windows() -> None:
    windows = primitives.window(value(4, 20), 1, 3, 1)
    assert folds_of(fold("sum", windows, 2)) == 1
    assert folds_of(fold("sum", primitives.permute(windows, (2, 0, 1)), 0)) == 1
    assert folds_of(fold("sum", apply("multiply", windows, value(4, 1, 3)), 2)) == 1
    assert folds_of(fold("sum", primitives.reshape(windows, (4, 1, 18, 3)), 3)) == 1
    kept = primitives.reshape(fold("max", windows, 2), (4, 18, 1))
    assert folds_of(fold("sum", apply("subtract", windows, kept), 2)) == 2


def test_other_folds_are_loops() -> None:
    windows = primitives.window(value(4, 20), 1, 3, 1)
    assert folds_of(fold("sum", windows, 1)) == 0, "over the windows"
    assert folds_of(fold("sum", windows, 1, 2)) == 0
    assert folds_of(fold("sum", primitives.reshape(windows, (4, 54)), 1)) == 0, "mixed with others"
    assert folds_of(fold("sum", primitives.window(value(40), 0, MAX_UNROLLED_TERMS + 1, 1), 1)) == 0, (
        "too many"
    )
    assert folds_of(fold("sum", value(4, 3), 1)) == 0, "no windows"
    dear = value(4, 20)
    for _ in range(MAX_UNROLLED_COST // (3 * TABLE["exp"].cost) + 1):
        dear = apply("exp", dear)
    assert folds_of(fold("sum", primitives.window(dear, 1, 3, 3), 2)) == 0, "too much for each element"


@pytest.mark.parametrize("profile", [SOFTWARE, PORTABLE], ids=["software", "gpu"])
def test_a_pool_has_no_loop_over_its_windows(profile: DeviceProfile) -> None:
    (kernel,) = lowered(pool(9, 16), profile=profile)
    loops = sum(each.op == "loop" for each in kernel.body)
    assert loops <= (2 if profile.kind == "software" else 0), "only those that deal out the results"


def test_sizes_of_images_share_their_texts() -> None:
    """Texts differ by what divides: whether the last window meets the padding, and fours are whole."""
    sizes = [(rows, columns) for rows in range(20, 60) for columns in (64, 72, 80, 104)]
    assert len({text for size in sizes for text in texts(pool(*size))}) <= 24
    assert texts(pool(62, 80)) == texts(pool(90, 200))
