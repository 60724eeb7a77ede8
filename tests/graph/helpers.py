"""Graphs for tests: leaves without data on the cpu device, so that everything up to the text needs no GPU.

`value` makes a leaf that must not be computed with; `numbers` one that may. `apply` and `graph_of` are short
for what the ops do. `unlimited_backlog` keeps the backlog from computing a leaf without data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import Backlog, Node, Signature, backlog, leaf
from webgrad.graph.snapshot import Snapshot, snapshot, walk
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.runtime.device import CpuDevice, open_device
from webgrad.tensor import Tensor

__all__ = [
    "CPU",
    "apply",
    "backlog_of",
    "fold",
    "graph_of",
    "nodes_under",
    "numbers",
    "tensor",
    "unlimited_backlog",
    "value",
]


def _cpu() -> CpuDevice:
    device = open_device("cpu")
    assert isinstance(device, CpuDevice)
    return device


CPU = _cpu()


def value(*shape: int, dtype: DType = dtypes.float32) -> Node:
    """A leaf of zeros, which take no memory."""
    return leaf(np.broadcast_to(np.zeros((), dtype.numpy), shape), shape, dtype, CPU)


def tensor(*shape: int, dtype: DType = dtypes.float32) -> Tensor:
    """The same as a Tensor, for the functions of webgrad.functions."""
    return Tensor(value(*shape, dtype=dtype))


def numbers(array: Any, dtype: Any = np.float32) -> Node:
    """A leaf with data."""
    made = np.asarray(array, dtype)
    return leaf(made, made.shape, dtypes.as_dtype(made.dtype), CPU)


def apply(name: str, *operands: Any) -> Node:
    """A map op by its name."""
    return primitives.elementwise(TABLE[name], *operands)


def fold(name: str, x: Node, *axes: int) -> Node:
    """A reduce by its name."""
    return primitives.reduce(TABLE[name], x, axes)


def graph_of(*roots: Node | Tensor) -> Snapshot:
    """The snapshot of a graph."""
    nodes = [each.node if isinstance(each, Tensor) else each for each in roots]
    return snapshot(walk(nodes), nodes)


@contextmanager
def backlog_of(most: int, most_bytes: int) -> Iterator[Backlog]:
    """The backlog, empty and with other limits; as it was afterwards, and empty again."""
    before = backlog.most, backlog.most_bytes, backlog.compute, backlog.mark
    backlog.most, backlog.most_bytes, backlog.mark = most, most_bytes, None
    backlog.restart()
    yield backlog
    backlog.most, backlog.most_bytes, backlog.compute, backlog.mark = before
    backlog.restart()


@pytest.fixture(autouse=True)
def unlimited_backlog() -> Iterator[None]:
    """No value is computed only because much waits."""
    with backlog_of(1 << 40, 1 << 60):
        yield


class Seen(NamedTuple):
    """A node of a graph whose composites are what is in them; inputs are places in the list."""

    sig: Signature
    inputs: tuple[int, ...]


def nodes_under(roots: Sequence[Node]) -> list[Seen]:
    """What is computed for some nodes, and from which leaves, inputs first."""
    walked = walk(roots)
    graph = snapshot(walked, roots)
    order = graph.order()
    places = {number: at for at, number in enumerate(order)}
    return [Seen(graph.sigs[each], tuple(places[one] for one in graph.inputs[each])) for each in order]
