"""torch.linalg and torch's older matrix functions: signatures, named results, `out=`, vectors, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad.torch as torch

A = np.asarray([[4.0, 1.0], [1.0, 3.0]], np.float32)
B = np.asarray([[1.0, 2.0], [3.0, 5.0]], np.float32)


def same(found: Any, wanted: Any) -> None:
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_signatures() -> None:
    a, b = torch.tensor(A), torch.tensor(B)
    same(torch.linalg.cholesky(a, upper=True), np.linalg.cholesky(A).T)
    same(torch.linalg.eigvalsh(torch.triu(a), UPLO="U"), np.linalg.eigvalsh(A))
    same(torch.linalg.solve(a, b, left=False), B @ np.linalg.inv(A))
    same(torch.linalg.vector_norm(b, dim=0, keepdim=True), np.linalg.norm(B, axis=0, keepdims=True))
    same(torch.linalg.matrix_norm(b, ord=1, dim=(0, 1)), 7)
    same(torch.linalg.norm(b, dim=1), np.linalg.norm(B, axis=1))
    same(torch.linalg.pinv(b, rcond=1e-6), np.linalg.inv(B))
    same(torch.linalg.cross(torch.tensor([[1.0, 0, 0]]), torch.tensor([[0.0, 1, 0]]), dim=-1), [[0, 0, 1]])
    same(torch.linalg.vander(torch.tensor([2, 3])), [[1, 2], [1, 3]])
    assert torch.linalg.vander(torch.tensor([2, 3], dtype=torch.int32)).dtype == torch.int64
    assert torch.linalg.matrix_rank(b, tol=100.0).item() == 0
    assert torch.linalg.qr(b, mode="r").Q.numel() == 0


def test_named_results() -> None:
    a, b = torch.tensor(A), torch.tensor(B)
    assert torch.linalg.svd(b)._fields == ("U", "S", "Vh")
    assert torch.linalg.inv_ex(a).info.item() == 0
    assert torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info.item() == 1
    assert torch.linalg.lu_factor_ex(a).info.item() == 0
    assert torch.linalg.ldl_factor_ex(a)._fields == ("LD", "pivots", "info")
    found = torch.linalg.lstsq(b, b, driver="gelsd")
    same(found.solution, np.eye(2))
    assert (found.residuals.numel(), found.rank.item(), found.singular_values.shape) == (0, 2, (2,))
    assert torch.linalg.lstsq(b, b, driver="gels").rank.numel() == 0


def test_vectors_for_matrices() -> None:
    a = torch.tensor(np.stack([A, B]))
    right = torch.tensor([[1.0, 2.0], [3.0, 4.0]])  # one for each matrix
    wanted = np.stack([np.linalg.solve(A, [1.0, 2.0]), np.linalg.solve(B, [3.0, 4.0])])
    same(torch.linalg.solve(a, right), wanted)
    same(torch.linalg.solve_ex(a, right).result, wanted)
    same(torch.linalg.lstsq(a, right).solution, wanted)


def test_out() -> None:
    a, out = torch.tensor(A), torch.empty(0)
    assert torch.linalg.inv(a, out=out) is out
    same(out, np.linalg.inv(A))
    values, vectors = torch.empty(2), torch.empty(2, 2)
    torch.linalg.eigh(a, out=(values, vectors))
    same(values, np.linalg.eigvalsh(A))


def test_older_names() -> None:
    a, b = torch.tensor(A), torch.tensor(B)
    u, s, v = b.svd()
    same((u * s) @ v.T, B)
    assert torch.svd(b, compute_uv=False).U.tolist() == [[0, 0], [0, 0]]
    same(a.inverse(), np.linalg.inv(A))
    same(b.det(), -1.0)
    same(a.logdet(), np.log(11))
    assert np.isnan(b.logdet().item())
    same(b.pinverse(), np.linalg.inv(B))
    compact, pivots = b.lu()
    p, lower, upper = torch.lu_unpack(compact, pivots)
    same(p @ lower @ upper, B)
    same(torch.lu_solve(torch.eye(2), compact, pivots), np.linalg.inv(B))
    solution, copied = torch.triangular_solve(b, a, transpose=True)
    same(torch.tensor(np.triu(A).T.copy()) @ solution, B)
    same(copied, A)
    same(torch.cholesky_inverse(torch.cholesky(a)), np.linalg.inv(A))
    same(torch.chain_matmul(a, b, a), A @ B @ A)
    same(torch.orgqr(*torch.geqrf(b)), np.linalg.qr(B)[0])
    same(torch.matrix_exp(torch.zeros(2, 2)), np.eye(2))


def test_errors() -> None:
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(torch.zeros(2, 2))
    with pytest.raises(RuntimeError, match="positive definite"):
        torch.linalg.cholesky(-torch.eye(2))
    with pytest.raises(RuntimeError, match="number of dimensions"):
        torch.linalg.cross(torch.ones(3), torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="UPLO"):
        torch.linalg.eigh(torch.eye(2), UPLO="X")
    with pytest.raises(RuntimeError, match="driver"):
        torch.linalg.lstsq(torch.eye(2), torch.eye(2), driver="none")
    with pytest.raises(RuntimeError, match="info"):
        torch.linalg.inv_ex(torch.zeros(2, 2), check_errors=True)
    with pytest.raises(NotImplementedError, match="lobpcg"):
        torch.lobpcg(torch.eye(9), k=1)
    with pytest.raises(TypeError, match="full_matrices"):
        torch.linalg.svd(torch.eye(2), full_matrixes=False)


@pytest.mark.gpu
def test_errors_on_a_gpu() -> None:
    eye = torch.eye(2, device="webgpu")
    for call in (torch.linalg.inv, torch.inverse, lambda x: torch.linalg.solve(x, eye)):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            call(torch.zeros(2, 2, device="webgpu"))
        same(call(2 * eye), np.eye(2) / 2)
    with pytest.raises(RuntimeError, match="positive definite"):
        torch.linalg.cholesky(-eye)
    captured = torch.compile(lambda x: torch.linalg.inv(x) + 1)
    for scale in (1.0, 2.0, 4.0):
        same(captured(scale * eye), np.eye(2) / scale + 1)
