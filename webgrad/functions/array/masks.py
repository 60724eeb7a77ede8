"""Where bools are true: nonzero, and the flat indices that masks select.

In: a tensor. Out: indices. How many there are is the shape of the result, so it is read: this synchronises.
"""

from __future__ import annotations

from ... import dtypes
from ...errors import ShapeError
from ...evaluate.evaluate import read
from ...ops import primitives
from ...ops.capabilities import has_host_memory
from ...ops.host_arrays import converted
from ...ops.primitives import elementwise
from ...ops.table import TABLE
from ...tensor import Tensor
from .creation import as_tensor
from .interop import place
from .sorting import searchsorted

MAX_READ_FLAGS = 1 << 14  # bools: to read so many takes no longer than to read how many of them are true


def nonzero(x: Tensor) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, an int32 tensor for each axis.

    Computes x and reads how many there are, which is the shape of the result: it synchronises.

    >>> [each.tolist() for each in wg.nonzero(wg.asarray([[0, 5], [7, 0]]))]
    [[0, 1], [1, 0]]
    """
    x = as_tensor("nonzero", x)
    if not x.ndim:
        raise ShapeError("nonzero of a 0-d tensor: reshape it to (1,), or compare x.item() with 0")
    flags = x if x.dtype.kind == "b" else Tensor(elementwise(TABLE["not_equal"], x.node, 0))
    where = true_indices(Tensor(primitives.reshape(flags.node, (x.size,)))).node
    found = []
    for size in reversed(x.shape[1:]):
        found.append(Tensor(elementwise(TABLE["remainder"], where, max(1, size))))
        where = elementwise(TABLE["floor_divide"], where, max(1, size))
    return (Tensor(where), *reversed(found))


def is_read(flags: Tensor) -> bool:
    """Whether to read the bools themselves, not only how many are true: on the cpu, or if they are few."""
    return has_host_memory(flags.device) or flags.size <= MAX_READ_FLAGS


def true_indices(flags: Tensor) -> Tensor:
    """The indices, int32, of the true elements of a 1-d tensor. Their number is read, so this waits."""
    if is_read(flags):
        return place("nonzero", converted(read(flags.node).nonzero()[0], dtypes.int32), flags.device)
    length = flags.size
    so_far = Tensor(primitives.scan(TABLE["cumulative_sum"], primitives.cast(flags.node, dtypes.int32), 0))
    count = int(so_far[length - 1])
    # The n-th true one is where the count becomes n.
    return searchsorted(
        so_far, Tensor(elementwise(TABLE["add"], primitives.iota(count, dtypes.int32, flags.device), 1))
    )
