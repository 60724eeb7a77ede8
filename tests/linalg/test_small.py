"""Small matrices on a GPU: factors against NumPy's, hard cases, no round trip, captures, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import device_of, everywhere, place
from tests.linalg.helpers import close, numbers, positive
from tests.wgsl.tint import ask, needs_tint
from webgrad import linalg
from webgrad.linalg import small
from webgrad.wgsl.renderer import render

pytestmark = pytest.mark.gpu
EPS = float(np.finfo(np.float32).eps)
Array = np.ndarray[Any, Any]


def gpu(values: Any) -> wg.Tensor:
    return place("software", np.asarray(values, np.float32))


def symmetric(a: Array) -> Array:
    return np.asarray((a + a.swapaxes(-1, -2)) / 2, np.float32)


def turned(values: Any) -> Array:
    """A symmetric matrix of these eigenvalues."""
    q, _ = np.linalg.qr(numbers(len(values), len(values), dtype=np.float64, seed=3))
    return np.asarray((q * np.asarray(values)) @ q.T, np.float32)


def hilbert(count: int) -> Array:
    places = np.arange(count)
    return np.asarray(1 / (places[:, None] + places + 1.0), np.float32)


# as one stack, so that there is one launch
HARD = {
    "zeros": np.zeros((6, 6)),
    "the identity": np.eye(6),
    "equal eigenvalues": turned([1, 1, 1, 2, 2, 2]),
    "both signs": turned([-3, 3, -1, 1, 0, 0]),
    "rank one": np.outer(np.arange(1, 7), np.arange(1, 7)),
    "ill-conditioned": hilbert(6),
    "graded": np.diag(10.0 ** -np.arange(6)) + 1e-9,
    "huge": 1e30 * turned([1, 2, 3, 4, 5, 6]),
    "tiny": 1e-30 * turned([1, -2, 3, 1, 2, 0]),
}
STACKS = pytest.mark.parametrize(
    "a",
    [np.stack(list(HARD.values())), np.asarray([[-2.0]]), symmetric(numbers(32, 32)), hilbert(31)],
    ids=["hard ones", "one number", "the largest", "an odd number of columns"],
)


@STACKS
def test_eigenvalues_of_hard_matrices(a: Array) -> None:
    values, vectors = (each.numpy().astype(np.float64) for each in linalg.eigh(gpu(a)))
    a = a.astype(np.float32).astype(np.float64)
    wanted = np.linalg.eigvalsh(a)
    count = a.shape[-1]
    bound = 4 * count * EPS * np.abs(wanted).max(-1)
    assert (np.abs(values - wanted).max(-1) <= bound).all()
    assert (np.abs(a @ vectors - vectors * values[..., None, :]).max((-2, -1)) <= bound).all()
    assert np.abs(vectors.swapaxes(-1, -2) @ vectors - np.eye(count)).max() <= 8 * EPS


@STACKS
@pytest.mark.parametrize("columns", [None, 2])
def test_singular_values_of_hard_matrices(a: Array, columns: int | None) -> None:
    a = a[..., :columns].astype(np.float32)
    u, s, vh = (each.numpy().astype(np.float64) for each in linalg.svd(gpu(a)))
    wanted = np.linalg.svd(a.astype(np.float64), compute_uv=False)
    bound = 4 * a.shape[-2] * EPS * wanted.max(-1)
    assert (np.abs(s - wanted).max(-1) <= bound).all()
    assert (np.diff(s) <= 0).all()
    assert (np.abs((u[..., : s.shape[-1]] * s[..., None, :]) @ vh - a).max((-2, -1)) <= bound).all()
    for q in (u, vh):
        assert np.abs(q.swapaxes(-1, -2) @ q - np.eye(q.shape[-1])).max() <= 8 * EPS


def nearest(found: Array, wanted: Array) -> float:
    """How far numbers are from others, each from one of its own, whatever their order is."""
    left, far = list(wanted), 0.0
    for value in found:
        at = int(np.argmin(np.abs(np.asarray(left) - value)))
        far = max(far, abs(value - left.pop(at)))
    return far


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("side", [1, 2, 7, 32])
def test_eigenvalues_of_any_matrices(dtype: Any, side: int) -> None:
    a = numbers(3, side, side, dtype=dtype)
    x = place("software", a)
    before = x.device.stats()["host_round_trips"]
    found = linalg.eig(x)
    wg.eval(*found)
    assert x.device.stats()["host_round_trips"] == before
    values, vectors = (each.numpy() for each in found)
    bound = 4 * side * EPS * np.abs(np.linalg.norm(a, 2, axis=(-2, -1))).max()
    wanted = np.linalg.eigvals(a.astype(np.complex128))
    assert max(nearest(*each) for each in zip(values, wanted, strict=True)) <= 4 * bound
    assert np.abs(a @ vectors - vectors * values[:, None, :]).max() <= bound
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-6)


def test_eigenvalues_of_odd_matrices() -> None:
    quarter = np.asarray([[0.0, -1.0], [1.0, 0.0]])
    a = np.stack(
        [
            np.zeros((4, 4)),
            np.eye(4) + np.diag(np.ones(3), 1),  # one eigenvector
            np.kron(np.eye(2), quarter),
            np.roll(np.eye(4), 1, 0),  # on a circle, where steps without shifts stand still
            np.tril(np.arange(16.0).reshape(4, 4)),
            1e30 * np.ones((4, 4)),
        ]
    )
    values, vectors = (each.numpy() for each in linalg.eig(gpu(a)))
    for found, turn, matrix in zip(values, vectors, a, strict=True):
        size = max(np.abs(matrix).max(), 1e-9)
        assert np.abs(matrix @ turn - turn * found).max() <= 32 * EPS * size
    assert values[1].tolist() == [1, 1, 1, 1]
    assert nearest(values[3], np.asarray([1, -1, 1j, -1j])) <= 16 * EPS
    assert (values[4].imag == 0).all()  # as LAPACK gives them for real matrices


@everywhere
def test_every_factor(kind: str) -> None:
    """With as many threads to a matrix as discrete adapters have, too."""
    if kind == "cpu":
        return  # LAPACK is quicker there
    a, b = numbers(3, 7, 7), numbers(3, 7, 2)
    x, y = place(kind, a), place(kind, b)
    before = x.device.stats()["host_round_trips"]
    found = [
        linalg.inv(x) @ x,
        x @ linalg.solve(x, y) - y,
        linalg.det(x),
        linalg.slogdet(x).logabsdet,
        linalg.cholesky(x @ x.mT),
        linalg.pinv(x),
        linalg.lstsq(x[..., :3], y).solution,
        linalg.eigvalsh(x @ x.mT),
        linalg.matrix_rank(x),
        wg.matmul(*linalg.qr(x)),
        linalg.cond(x),
        wg.sum(linalg.eigvals(x), axis=-1).real,
    ]
    wg.eval(*found)
    assert x.device.stats()["host_round_trips"] == before
    square = a @ a.swapaxes(-1, -2)
    wanted = [
        np.broadcast_to(np.eye(7), a.shape),
        np.zeros_like(b),
        np.linalg.det(a),
        np.linalg.slogdet(a)[1],
        np.linalg.cholesky(square),
        np.linalg.inv(a),
        np.stack([np.linalg.lstsq(*each, rcond=None)[0] for each in zip(a[..., :3], b, strict=True)]),
        np.linalg.eigvalsh(square),
        np.full(3, 7),
        a,
        np.linalg.cond(a),
        np.trace(a, axis1=-2, axis2=-1),
    ]
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine.numpy(), other, rtol=1e-3, atol=1e-4 * max(1, np.abs(other).max()))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_have_no_factors(bad: float) -> None:
    a = positive(3, 4, 4)
    a[1, 2, 1] = bad
    x = gpu(a)
    calls: tuple[Callable[[Any], Any], ...] = (
        linalg.inv,
        linalg.cholesky,
        linalg.pinv,
        lambda x: linalg.svd(x).S,
        lambda x: linalg.eigh(x).eigenvectors,
        lambda x: linalg.qr(x).Q,
        lambda x: wg.abs(linalg.eig(x).eigenvectors),
    )
    for call in calls:
        found = call(x).numpy()
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


def test_what_has_no_result_is_nan_and_info_says_why() -> None:
    a = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([1.0, -2.0, 3.0]), np.diag([1.0, 2.0, 0.0])])
    x = gpu(a)
    inverse, info = linalg.inv_ex(x)
    assert info.tolist() == [0, 0, 3]
    assert np.isnan(inverse.numpy()).all(axis=(-2, -1)).tolist() == [False, False, True]
    lower, info = linalg.cholesky_ex(x)
    assert info.tolist() == [0, 2, 3]
    assert np.isnan(lower.numpy()).all(axis=(-2, -1)).tolist() == [False, True, True]
    assert linalg.det(x).tolist() == [6, -6, 0]
    sign, size = linalg.slogdet(x)
    assert sign.tolist() == [1, -1, 0]
    assert size[2].item() == -np.inf


def test_captured_functions_have_them() -> None:
    def step(x: wg.Tensor, y: wg.Tensor) -> Any:
        whitened = linalg.solve_triangular(linalg.cholesky(x), y, upper=False)
        return whitened, linalg.eigh(x).eigenvalues, linalg.svd(y).S

    jitted = wg.jit(step)
    for seed in (1, 2, 3):
        a, b = positive(2, 5, 5, seed=seed), numbers(2, 5, 3, seed=seed)
        whitened, values, sizes = jitted(gpu(a), gpu(b))
        close(whitened, np.linalg.solve(np.linalg.cholesky(a), b), 1e-4)
        np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(a), rtol=1e-4)
        close(sizes, np.linalg.svd(b, compute_uv=False), 1e-4)


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "eig": lambda x: wg.sum(wg.abs(linalg.eig(x - wg.tril(x, -1)).eigenvectors) ** 3),
    "solve": lambda x: wg.sum(linalg.solve(x, x[..., :2] ** 2) ** 2) + wg.sum(linalg.slogdet(x).logabsdet),
    "cholesky": lambda x: wg.sum(linalg.cholesky(x) ** 3),
    "eigh": lambda x: wg.sum(linalg.eigh(x).eigenvectors ** 4) + wg.sum(linalg.eigvalsh(x) ** 2),
    "svd": lambda x: wg.sum(linalg.svd(x).U ** 4) + wg.sum(linalg.svdvals(x) ** 2),
    "qr": lambda x: wg.sum(linalg.qr(x).R ** 2 * 0.1) + wg.sum(linalg.qr(x).Q ** 3),
    "lu": lambda x: wg.sum(linalg.lu_factor(x).LU ** 2),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_the_cpu(name: str) -> None:
    a = positive(2, 4, 4)
    found = wg.grad(GRADIENTS[name])(gpu(a)).numpy()
    wanted = wg.grad(GRADIENTS[name])(place("cpu", a.astype(np.float64))).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


def test_determinants_of_singular_matrices_have_a_gradient() -> None:
    a = np.outer([1.0, 2.0, 3.0], [1.0, 1.0, 2.0]) + np.diag([1.0, 0.0, 0.0])
    x = gpu(a).requires_grad_()
    linalg.det(x).backward()
    wanted = np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        wanted[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), wanted, atol=1e-5)


def test_triangles_of_complex_matrices() -> None:
    a, b = numbers(2, 6, 6, dtype=np.complex64), numbers(2, 6, 2, dtype=np.complex64)
    x, y = place("software", a), place("software", b)
    before = x.device.stats()["host_round_trips"]
    inverse, solution, product = linalg.inv(x), linalg.solve(x, y), wg.matmul(*linalg.lu(x)[1:])
    sign, size = linalg.slogdet(x)
    wg.eval(inverse, solution, product, sign, size)
    assert x.device.stats()["host_round_trips"] == before
    close(inverse, np.linalg.inv(a), 1e-4)
    close(solution, np.linalg.solve(a, b), 1e-4)
    close(sign.numpy() * np.exp(size.numpy()), np.linalg.det(a), 1e-3)
    wanted = wg.grad(lambda x: wg.real(wg.sum(linalg.inv(x))))(place("cpu", a)).numpy()
    close(wg.grad(lambda x: wg.real(wg.sum(linalg.inv(x))))(x), wanted, 1e-3)


def test_others_go_through_the_host() -> None:
    device = device_of("software")
    for shape, dtype in (((33, 33), np.float32), ((3, 3), np.complex64), ((0, 3, 3), np.float32)):
        x = place("software", positive(*shape, dtype=dtype) if shape[0] else np.zeros(shape, np.float32))
        before = wg.stats(device)["host_round_trips"]
        assert linalg.cholesky(x).shape == shape
        assert wg.stats(device)["host_round_trips"] == before + 1


def test_halves_and_views() -> None:
    a = positive(4, 4)
    x = gpu(a).astype(wg.float16)
    close(linalg.cholesky(x).astype(wg.float32), np.linalg.cholesky(x.numpy().astype(np.float64)), 1e-2)
    close(linalg.inv(gpu(a)[1:, 1:].mT), np.linalg.inv(a[1:, 1:].T), 1e-4)


@needs_tint
def test_tint_takes_every_kernel() -> None:
    texts = {}
    for name in small.RESULTS:
        for lanes in (8, 32):
            for is_complex in (False, True):
                if is_complex != (name in ("schur", "eigenvectors")) and name not in ("lu", "substitution"):
                    continue
                program = small._kernel(name, lanes, is_complex, "webgpu").program
                texts[f"{name} {lanes} {is_complex}"] = render(program, dialect="tint", parameters="group")
    assert not [f"{label}: {errors[0]}" for label, errors in ask(texts).items() if errors]
