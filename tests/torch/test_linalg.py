"""Linear algebra against torch's: results and gradients, of what does not depend on the signs of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import webgrad as wg
from tests.torch.checking import Input, compare, normal, torch, uniform

Both = Callable[..., Any]  # of webgrad's linalg or torch's, and tensors of it


def definite(x: Any) -> Any:
    """A matrix that is symmetric, positive definite, and far from singular."""
    return x @ x.mT + 2 * _eye(x)


def regular(x: Any) -> Any:
    """A square matrix that is far from singular."""
    return x + 4 * _eye(x)


def _eye(x: Any) -> Any:
    return wg.eye(x.shape[-1], device=x.device) if isinstance(x, wg.Tensor) else torch.eye(x.shape[-1])


def eigenvectors(of: Any, x: Any) -> Any:
    values, vectors = of.eigh(definite(x))
    return values, vectors * vectors, vectors @ (values[..., :, None] ** 0.5 * vectors.mT)


def singular_vectors(of: Any, x: Any) -> Any:
    u, s, vh = of.svd(x, full_matrices=False)
    return u * u, s, vh * vh, u @ vh


def orthogonal(of: Any, x: Any) -> Any:
    q, r = of.qr(x)
    return q * q, r * r


SQUARE, TALL, WIDE = normal(2, 4, 4), normal(5, 3), normal(3, 5)
CASES: dict[str, tuple[Both, tuple[Input, ...]]] = {
    "inv": (lambda of, x: of.inv(regular(x)), (SQUARE,)),
    "det": (lambda of, x: of.det(x), (SQUARE,)),
    "slogdet": (lambda of, x: of.slogdet(regular(x))[1], (SQUARE,)),
    "solve": (lambda of, x, y: of.solve(regular(x), y), (SQUARE, normal(4, 3))),
    "solve of a vector": (lambda of, x, y: of.solve(regular(x)[0], y), (SQUARE, normal(4))),
    "cholesky": (lambda of, x: of.cholesky(definite(x)), (SQUARE,)),
    "cholesky, upper": (lambda of, x: of.cholesky(definite(x), upper=True), (SQUARE,)),
    "eigh": (eigenvectors, (SQUARE,)),
    "eigh of a leaf": (lambda of, x: abs(of.eigh(x)[1]), (SQUARE,)),
    "eigvalsh": (lambda of, x: of.eigvalsh(definite(x)), (SQUARE,)),
    "qr, tall": (orthogonal, (TALL,)),
    "qr, wide": (orthogonal, (WIDE,)),
    "svd, tall": (singular_vectors, (TALL,)),
    "svd, wide": (singular_vectors, (WIDE,)),
    "svdvals": (lambda of, x: of.svdvals(x), (TALL,)),
    "pinv, tall": (lambda of, x: of.pinv(x), (TALL,)),
    "pinv, wide": (lambda of, x: of.pinv(x), (WIDE,)),
    "matrix_power": (lambda of, x: of.matrix_power(regular(x), -3), (SQUARE,)),
    "multi_dot": (lambda of, *xs: of.multi_dot(xs), (normal(4), normal(4, 2), normal(2, 3))),
    "lstsq": (lambda of, x, y: of.lstsq(x, y)[0], (TALL, normal(5, 2))),
    "norm": (lambda of, x: of.norm(x), (SQUARE,)),
    "cross": (lambda of, x, y: of.cross(x, y), (normal(4, 3), normal(4, 3))),
    "vecdot": (lambda of, x, y: of.vecdot(x, y), (normal(4, 3), normal(4, 3))),
}
CASES |= {
    f"matrix_norm of {ord}": (lambda of, x, ord=ord: of.matrix_norm(x, ord=ord), (uniform(0.5, 2.0, 4, 3),))
    for ord in ("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf"))
}


@pytest.mark.parametrize("name", CASES)
def test_functions_of_matrices(name: str) -> None:
    function, inputs = CASES[name]
    compare(
        name,
        lambda *xs: function(wg.linalg, *xs),
        lambda *xs: function(torch.linalg, *xs),
        inputs,
    )
