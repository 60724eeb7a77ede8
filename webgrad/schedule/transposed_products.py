"""The transpose of a product is the product of the transposes, the other way round.

In: a graph. Out: the same graph, in which a product that is only read as its transpose is computed
transposed, so that it is stored as it is read. Gradients of weights are an example: (outputs, inputs)
from inputs by outputs.
"""

from __future__ import annotations

from ..graph.node import signature
from ..graph.snapshot import Snapshot
from ..ops.table import TABLE


def transpose_products(graph: Snapshot) -> None:
    """Rewrite a graph in place; node ids stay."""
    order = graph.order()
    readers: dict[int, int] = {}
    for number in order:
        for each in graph.inputs[number]:
            readers[each] = readers.get(each, 0) + 1
    wanted = {*graph.roots, *graph.held}
    for number in order:
        if not _swaps(graph, number):
            continue
        (product,) = graph.inputs[number]
        sig = graph.sigs[product]
        if sig.op.name != "matmul" or readers[product] > 1 or product in wanted:
            continue
        first, second = graph.inputs[product]
        graph.sigs[number] = signature(
            sig.op, graph.sigs[number].shape, sig.dtype, sig.device, sig.attributes
        )
        graph.inputs[number] = (_transposed(graph, second), _transposed(graph, first))


def _swaps(graph: Snapshot, number: int) -> bool:
    """Whether a node only exchanges the last two axes of its input."""
    sig = graph.sigs[number]
    rank = len(sig.shape)
    return sig.op.name == "permute" and sig.attributes[0] == (*range(rank - 2), rank - 1, rank - 2)


def _transposed(graph: Snapshot, number: int) -> int:
    """A matrix transposed; of a transpose its input."""
    if _swaps(graph, number):
        return graph.inputs[number][0]
    sig = graph.sigs[number]
    rank = len(sig.shape)
    shape = (*sig.shape[:-2], sig.shape[-1], sig.shape[-2])
    axes = (*range(rank - 2), rank - 1, rank - 2)
    return graph.add(signature(TABLE["permute"], shape, sig.dtype, sig.device, (axes,)), (number,))
