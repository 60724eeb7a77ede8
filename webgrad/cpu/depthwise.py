"""Convolutions with one input channel to an output: sums over windows, as products of a few rows by BLAS.

In: windows (samples, channels, 1, kernel…, places…) of any strides, and weights (channels, outputs, kernel…,
1…). Out: (samples, channels, outputs, places…). Where windows lie one element apart, they are copied in long
runs that have what lies between rows in them, which is cut off the result.
"""

from __future__ import annotations

import math

from ..arrays import Array, np
from ..graph.snapshot import Snapshot
from ..runtime.threads import Scratch
from .blas import single_threaded
from .operations import is_view

__all__ = ["sum_windows", "window_sum"]

Shape = tuple[int, ...]

WASTE = 1.5  # a run is at most so much longer than the places in it
_scratch = Scratch()


def window_sum(graph: Snapshot, node: int) -> tuple[int, ...]:
    """The product that a node sums, and the windows in it, if that is such a convolution: else nothing."""
    sig = graph.sigs[node]
    if sig.op.name != "sum" or graph.sigs[graph.inputs[node][0]].op.name != "multiply":
        return ()
    (product,) = graph.inputs[node]
    windows, weights = (graph.sigs[each].shape for each in graph.inputs[product])
    count, odd = divmod(len(windows) - 3, 2)
    if odd or count < 1 or sig.attributes[0] != tuple(range(3, 3 + count)) or windows[2] != 1:
        return ()
    if len(weights) != 2 + 2 * count or weights[0] != windows[1]:
        return ()
    if weights[2:] != (*windows[3 : 3 + count], *[1] * count):
        return ()
    found = [product]
    (source, _) = graph.inputs[product]
    while is_view(graph.sigs[source]):
        found.append(source)
        (source,) = graph.inputs[source]
    return tuple(found)


def sum_windows(windows: Array, weights: Array, out: Array | None = None) -> Array:
    """The sum over the kernel of windows times weights, for a part of the channels or of the places too."""
    count = (windows.ndim - 3) // 2
    samples, channels, _, *sides = windows.shape
    places, outputs = tuple(sides[count:]), weights.shape[1]
    patches, dtype = windows[:, :, 0], windows.dtype
    strides = patches.strides[-count:]
    columns = _run(places, strides, dtype.itemsize)
    if columns:
        shape, steps = (*patches.shape[:-count], columns), (*patches.strides[:-count], dtype.itemsize)
        patches = np.lib.stride_tricks.as_strided(patches, shape, steps, writeable=False)
    else:
        columns, strides = math.prod(places), ()
    result = np.empty((samples, channels, outputs, *places), dtype) if out is None else out
    copy = _scratch.array(0, patches.shape, dtype, patches.size * dtype.itemsize)
    np.copyto(copy, patches)
    rows = weights.reshape(channels, outputs, math.prod(sides[:count]))
    shape = (samples, channels, outputs, columns)
    product = _scratch.array(1, shape, dtype, math.prod(shape) * dtype.itemsize)
    with single_threaded():
        np.matmul(rows, copy.reshape(samples, channels, rows.shape[2], columns), out=product)
    if strides:
        steps = (*product.strides[:-1], *strides)
        np.copyto(result, np.lib.stride_tricks.as_strided(product, result.shape, steps))
    else:
        np.copyto(result, product.reshape(result.shape))
    return result


def _run(places: Shape, strides: Shape, item: int) -> int:
    """How many elements there are from the first place to the last one; 0 if too many lie in between."""
    if strides[-1] != item or min(strides) < 0 or any(each % item for each in strides) or 0 in places:
        return 0
    run = 1 + sum((side - 1) * stride // item for side, stride in zip(places, strides, strict=True))
    return run if math.prod(places) <= run <= WASTE * math.prod(places) else 0
