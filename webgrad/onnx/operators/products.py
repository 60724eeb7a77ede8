"""Products of matrices: MatMul, Gemm, Einsum."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .table import operator

__all__ = ["gemm", "scaled"]

operator("MatMul")(wg.matmul)


@operator("Gemm")
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 1,  # of versions below 7: shapes say it
    transA: int = 0,
    transB: int = 0,
) -> Any:
    y = scaled((a.mT if transA else a) @ (b.mT if transB else b), alpha)
    return y if c is None else y + scaled(c, beta)


def scaled(x: Any, factor: float) -> Any:
    """x times a number; of integers by rounding towards zero, as a cast does it."""
    if factor == 1:
        return x
    return x * factor if x.dtype.kind == "f" else (x * factor).astype(x.dtype)


@operator("Einsum", 12)
def einsum(*inputs: Any, equation: str) -> Any:
    return wg.einsum(equation, *inputs)
