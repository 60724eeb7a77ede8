"""Writes along other axes: one scatter instead of a chain, where nobody else needs the chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.graph.snapshot import Snapshot, snapshot, walk
from webgrad.schedule.transposed_scatters import write_turned


def graph_of(*results: wg.Tensor) -> Snapshot:
    roots = [each.node for each in results]
    graph = snapshot(walk(roots), roots)
    write_turned(graph)
    return graph


def orders(graph: Snapshot) -> list[Any]:
    """The attributes of scatters: how they turn their base."""
    sigs = [graph.sigs[each] for each in graph.order()]
    return [sig.attributes for sig in sigs if sig.kind == "scatter"]


@pytest.mark.parametrize("key", [1, 2, 3], ids=["second axis", "third axis", "both"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_results_are_numpys(key: int, dtype: Any) -> None:
    before = np.random.default_rng(1).integers(0, 99, (3, 40, 50, 7)).astype(dtype)
    at = np.array([4, 0, 4, 39])
    keys = {1: (slice(None), at), 2: (slice(None), slice(None), at), 3: (slice(None), at, at)}[key]
    x = wg.asarray(before, device="cpu")
    shape = before[keys].shape
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    x[tuple(wg.asarray(each, device="cpu") if isinstance(each, np.ndarray) else each for each in keys)] = (
        wg.asarray(values, device="cpu")
    )
    turned = {1: ((1, 0, 2, 3), 1), 2: ((2, 0, 1, 3), 1), 3: ((1, 2, 0, 3), 2)}[key]
    assert orders(graph_of(x)) == [turned]
    expected = before.copy()
    expected[keys] = values
    np.testing.assert_array_equal(x.numpy(), expected)


def test_what_is_needed_elsewhere_stays() -> None:
    x = wg.zeros((3, 5, 4), device="cpu")
    at = wg.asarray([1, 2], device="cpu")
    written = wg.index_set(x, at, 1.0, axis=1)
    assert orders(graph_of(written)) == [((1, 0, 2), 1)]
    held = wg.Tensor(written.node.inputs[0])
    assert orders(graph_of(written)) == [()]
    assert orders(graph_of(written, held)) == [()]
    assert orders(graph_of(wg.index_add(x, at, 1.0, axis=1))) == [()]
    assert orders(graph_of(wg.index_set(x, at, 1.0))) == [()]


def test_a_write_that_is_turned_is_not_turned_again() -> None:
    values = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    before = wg.asarray(values, device="cpu") + 1.0
    rows = before.permute(2, 0, 1).permute(2, 0, 1).reshape(2, 4).clone()
    rows[wg.asarray([0, 1], device="cpu")] = wg.asarray(values.reshape(2, 4), device="cpu")
    back = rows.reshape(2, 2, 2).permute(1, 2, 0).permute(1, 2, 0) + 0.0
    del rows
    np.testing.assert_array_equal(back.numpy(), values.transpose(1, 2, 0).transpose(1, 2, 0))
