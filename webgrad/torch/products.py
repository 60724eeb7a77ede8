"""Products of matrices and vectors, and sums of them.

In: tensors. Out: tensors. Matrices of another dtype are refused, as torch refuses them.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .binding import bind
from .promotion import matched
from .reductions import counted
from .shaping import several
from .tensor import Array

__all__ = ["functions"]

ROWS = """
[function method out]
matmul __matmul__(input, other) = product("matmul", wg.matmul, input, other)
mm spmm(input, mat2) = product("mm", wg.mm, input, mat2, 2, 2)
bmm(input, mat2) = product("bmm", wg.bmm, input, mat2, 3, 3)
mv(input, vec) = product("mv", wg.matmul, input, vec, 2, 1)
dot(input, tensor) = product("dot", wg.dot, input, tensor, 1, 1)
outer ger(input, vec2) = outer_of(input, vec2)
cross(input, other, dim=None) = crossed(input, other, dim)
kron(input, other) = by_bytes(wg.kron, input, other)

[function method in_place out]
addmm(input, mat1, mat2, *, beta=1, alpha=1) = added(input, product("addmm", wg.mm, mat1, mat2, 2, 2), beta,
    alpha)
addmv(input, mat, vec, *, beta=1, alpha=1) = added(input, product("addmv", wg.matmul, mat, vec, 2, 1), beta,
    alpha)
addr(input, vec1, vec2, *, beta=1, alpha=1) = added(input, outer_of(vec1, vec2), beta, alpha)
baddbmm(input, batch1, batch2, *, beta=1, alpha=1) = added(input, product("baddbmm", wg.bmm, batch1, batch2,
    3, 3), beta, alpha)
addbmm(input, batch1, batch2, *, beta=1, alpha=1) = added(input, wg.sum(wg.bmm(batch1, batch2), 0), beta,
    alpha)

[function method]
vdot(input, other) = product("vdot", lambda x, y: wg.sum(wg.conj(x) * y), input, other, 1, 1)
inner(input, other) = wg.tensordot(input, other, ([-1], [-1])) if input.ndim and other.ndim else input * other
tensordot(a, b, dims=2, out=None) = contracted(a, b, dims)

[function]
cdist(x1, x2, p=2.0, compute_mode=None) = wg.cdist(x1, x2, p)
chain_matmul(*matrices, out=None) = wg.linalg.multi_dot(several(matrices))
einsum(equation, *operands) = summed(equation, several(operands))
vander(x, N=None, increasing=False) = wg.vander(whole(x), N, increasing=increasing)
"""


def product(name: str, function: Any, first: Any, second: Any, *ranks: int) -> Any:
    """A product of tensors of one dtype and of so many dimensions."""
    if not isinstance(second, Array):
        raise TypeError(f"{name}(): argument 'other' must be Tensor, not {type(second).__name__}")
    if ranks and (first.ndim, second.ndim) != ranks:
        raise RuntimeError(
            f"{name}: tensors of {ranks[0]} and {ranks[1]} dimensions are expected, not of {first.ndim} and "
            f"{second.ndim}"
        )
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"{name}: expected both to have the same dtype, but got: {first.dtype.name} != "
            f"{second.dtype.name}"
        )
    return function(first, second)


def outer_of(first: Any, second: Any) -> Any:
    """All products of elements of two vectors."""
    if first.ndim != 1 or second.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D arguments, but got {first.ndim}-D and {second.ndim}-D")
    return wg.reshape(first, (-1, 1)) * second


def times(x: Any, factor: Any) -> Any:
    """x by a number, which is whole where x is."""
    if factor == 1:
        return x
    return x & bool(factor) if x.dtype.kind == "b" else x * (int(factor) if x.dtype.kind in "iu" else factor)


def added(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta * x + alpha * product; where beta is 0 nothing of x counts, NaN neither."""
    scaled = times(product, alpha)
    if beta == 0:
        return wg.expand(scaled, wg.broadcast_shapes(tuple(x.shape), tuple(scaled.shape)))
    return times(x, beta) + scaled


def crossed(first: Any, second: Any, dim: int | None) -> Any:
    """Products of vectors in space; without a dimension the first of size 3."""
    if first.ndim != second.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if dim is None:
        shape = wg.broadcast_shapes(tuple(first.shape), tuple(second.shape))
        dim = next((at for at, size in enumerate(shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return wg.linalg.cross(*matched(first, second), axis=dim)


def whole(x: Any) -> Any:
    """Bools as integers."""
    return x.long() if x.dtype is wg.bool else x


def summed(equation: Any, operands: Any) -> Any:
    """torch.einsum; integers of which one operand is summed alone are int64, bools are true or not."""
    if all(each.dtype is wg.bool for each in operands):
        return wg.einsum(equation, *(each.astype(wg.int32) for each in operands)) != 0
    if not isinstance(equation, str):
        return wg.einsum(equation, *operands)
    given, arrow, kept = equation.replace(" ", "").partition("->")
    letters = [each for each in given if each.isalpha()]
    whole = all(each.dtype.kind in "iu" for each in operands)
    alone = {each for each in letters if sum(each in term for term in given.split(",")) == 1} - set(kept)
    if whole and (alone if arrow else len(letters) != len(set(letters)) and len(operands) == 1):
        operands = [counted(each, None) for each in operands]
    if not arrow or "..." in kept or "..." not in given:
        return wg.einsum(equation, *operands)
    found = wg.einsum(f"{given}->...{kept}", *operands)  # whose axes under the dots are left out
    lead = tuple(range(found.ndim - len(kept)))
    return wg.sum(counted(found, None), lead) if lead else found


def contracted(first: Any, second: Any, dims: Any) -> Any:
    """torch.tensordot; a size of 1 stands for the other's."""
    if isinstance(dims, Array):
        dims = dims.tolist()
    if isinstance(dims, int):
        dims = (list(range(first.ndim - dims, first.ndim)), list(range(dims)))
    ours, theirs = ([each] if isinstance(each, int) else list(each) for each in dims)
    if len(ours) != len(theirs):
        raise RuntimeError("both dimension lists should have same length")
    alone = [
        one for one, other in zip(ours, theirs, strict=True) if second.shape[other] == 1 != first.shape[one]
    ]
    over = [
        other for one, other in zip(ours, theirs, strict=True) if first.shape[one] == 1 != second.shape[other]
    ]
    first = wg.sum(first, alone, keepdims=True).astype(first.dtype) if alone else first
    second = wg.sum(second, over, keepdims=True).astype(second.dtype) if over else second
    return wg.tensordot(first, second, (ours, theirs))


def by_bytes(function: Any, first: Any, second: Any) -> Any:
    """A product of what may be bools."""
    if first.dtype is second.dtype is wg.bool:
        return function(first.byte(), second.byte()).astype(wg.bool)
    return function(*matched(first, second))


functions: dict[str, Any] = bind(ROWS, globals())
