"""Which kernel computes an op on a device of some profile: pure functions, no GPU.

In: a `DeviceProfile`, op, dtype and sizes. Out: `Launch`es for the runtime. Invariant: asking again is
cheap, and Programs never depend on sizes. The choices are made in elementwise.py, products.py and rows.py.
"""

from __future__ import annotations

from webgrad.kernels.elementwise import BINARY_OPS, BROADCAST_OPS, UNARY_OPS, binary, fill, unary
from webgrad.kernels.launch import Launch
from webgrad.kernels.products import matmul
from webgrad.kernels.rows import REDUCE_OPS, dot, reduce, softmax

__all__ = [
    "BINARY_OPS",
    "BROADCAST_OPS",
    "REDUCE_OPS",
    "UNARY_OPS",
    "Launch",
    "binary",
    "dot",
    "fill",
    "matmul",
    "reduce",
    "softmax",
    "unary",
]
