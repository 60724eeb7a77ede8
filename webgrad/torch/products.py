"""Products of matrices and vectors, and sums of them.

In: tensors. Out: tensors. Matrices of another dtype are refused, as torch refuses them.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .binding import bind
from .pointwise import scaled

__all__ = ["functions"]

ROWS = """
[function method out]
matmul(input, other) = wg.matmul(input, other)
mm spmm(input, mat2) = wg.mm(input, mat2)
bmm(input, mat2) = wg.bmm(input, mat2)
mv(input, vec) = wg.matmul(input, vec)
dot(input, tensor) = wg.dot(input, tensor)
outer ger(input, vec2) = wg.outer(input, vec2)
addmm(input, mat1, mat2, *, beta=1, alpha=1) = scaled(input, input, beta) + scaled(input, wg.mm(mat1, mat2),
    alpha)
addmv(input, mat, vec, *, beta=1, alpha=1) = scaled(input, input, beta) + scaled(input, wg.matmul(mat, vec),
    alpha)
addr(input, vec1, vec2, *, beta=1, alpha=1) = scaled(input, input, beta) + scaled(input, wg.outer(vec1,
    vec2), alpha)
baddbmm(input, batch1, batch2, *, beta=1, alpha=1) = scaled(input, input, beta) + scaled(input,
    wg.bmm(batch1, batch2), alpha)
addbmm(input, batch1, batch2, *, beta=1, alpha=1) = scaled(input, input, beta) + scaled(input,
    wg.sum(wg.bmm(batch1, batch2), 0), alpha)

[function method]
vdot(input, other) = wg.sum(wg.conj(input) * other)
inner(input, other) = wg.tensordot(input, other, ([-1], [-1])) if input.ndim and other.ndim else input *
    other
tensordot(a, b, dims=2, out=None) = wg.tensordot(a, b, dims)

[function]
einsum(equation, *operands) = wg.einsum(equation, *(operands[0] if len(operands) == 1 and
    isinstance(operands[0], (list, tuple)) else operands))
"""

functions: dict[str, Any] = bind(ROWS, globals())
