"""The way to the host: it is counted, captured functions refuse it, and what LAPACK cannot do is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.linalg.helpers import BOTH, numbers, place, positive
from webgrad import linalg


@BOTH
def test_round_trips_are_counted(kind: str) -> None:
    x, y = place(kind, positive(33, 33)), place(kind, numbers(33, 2))  # too large for kernels of a GPU
    device = x.device
    wg.reset_stats(device)
    for call, trips in (
        (lambda: linalg.inv(x), 1),
        (lambda: linalg.svd(x), 1),
        (lambda: linalg.solve(x, y), 2),
        (lambda: linalg.matrix_norm(x, ord=2), 1),
        (lambda: linalg.matrix_norm(x), 0),
        (lambda: linalg.matrix_power(x, 3), 0),
    ):
        before = wg.stats(device)["host_round_trips"]
        call()
        assert wg.stats(device)["host_round_trips"] - before == trips
    wg.reset_stats(device)
    assert wg.stats(device)["host_round_trips"] == 0


@BOTH
def test_captured_functions_refuse_them(kind: str) -> None:
    x = place(kind, positive(33, 33))
    with pytest.raises(wg.CaptureError, match=r"linalg\.inv is computed on the host"):
        wg.jit(lambda x: linalg.inv(x) + 1)(x)
    np.testing.assert_allclose(
        wg.jit(lambda x: linalg.matrix_norm(x, ord=1))(x).item(), np.linalg.norm(x.numpy(), 1), rtol=1e-5
    )


NAN = np.full((2, 2), np.nan)


@pytest.mark.parametrize(
    ("call", "bad", "words"),
    [
        (linalg.inv, np.ones((2, 2)), "singular: use linalg.pinv"),
        (lambda x: linalg.solve(x, x), np.ones((2, 2)), "singular"),
        (linalg.cholesky, -np.eye(2), "not positive definite"),
        (linalg.svd, NAN, "did not converge.*isfinite"),
        (linalg.eig, NAN, "did not converge.*isfinite"),
        (linalg.pinv, NAN, "did not converge.*isfinite"),
    ],
)
def test_what_has_no_factors(call: Any, bad: Any, words: str) -> None:
    with pytest.raises(wg.LinearAlgebraError, match=rf"of shape \(2, 2\): the matrix .*{words}"):
        call(place("cpu", bad))
    stack = np.stack([np.eye(2), np.eye(2), bad])
    with pytest.raises(np.linalg.LinAlgError, match=rf"of shape \(3, 2, 2\): the matrix at 2 .*{words}"):
        call(place("cpu", stack))
    with pytest.raises(linalg.LinAlgError, match=r"the matrix at \(1, 0\) "):
        call(place("cpu", np.stack([[np.eye(2)], [bad]])))


def test_numbers_that_are_not_finite_go_where_they_can() -> None:
    x = place("cpu", NAN)
    assert np.isnan(linalg.det(x).item())
    assert np.isnan(linalg.det(x.requires_grad_()).item())


def test_sub_normal_and_huge_numbers_warn_nobody() -> None:
    x = place("cpu", np.asarray([[1e38, 1e38], [-1e38, 1e38]], np.float32))
    with np.errstate(all="raise"):
        assert linalg.det(x).item() == np.inf
