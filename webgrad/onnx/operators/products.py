"""Products of matrices: MatMul, Gemm, Einsum, and the fused ones of com.microsoft."""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .table import operator

MICROSOFT = "com.microsoft"

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
    y = _scaled((a.mT if transA else a) @ (b.mT if transB else b), alpha)
    return y if c is None else y + _scaled(c, beta)


def _scaled(x: Any, factor: float) -> Any:
    """x times a number; of integers by rounding towards zero, as a cast does it."""
    if factor == 1:
        return x
    return x * factor if x.dtype.kind == "f" else (x * factor).astype(x.dtype)


@operator("Einsum", 12)
def einsum(*inputs: Any, equation: str) -> Any:
    return wg.einsum(equation, *inputs)


@operator("FusedMatMul TransposeMatMul", domain=MICROSOFT)
def fused_matmul(
    a: Any,
    b: Any,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    return _scaled(_turned(a, transA, transBatchA) @ _turned(b, transB, transBatchB), alpha)


def _turned(x: Any, last: int, batch: int) -> Any:
    """x with its last two axes exchanged, and with `batch` its first axis moved to before the last."""
    if batch:
        x = wg.moveaxis(x, 0, -2)
    return x.mT if last and x.ndim > 1 else x
