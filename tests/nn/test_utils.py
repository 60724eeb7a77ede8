"""Clipping of gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import webgrad as wg
from tests.optim.helpers import DEVICES, drawn, parameters
from webgrad import Tensor
from webgrad.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm


def with_gradients(kind: str = "cpu", dtype: wg.DType = wg.float32) -> list[Tensor]:
    params = parameters(kind, dtype=dtype)
    for at, each in enumerate(params[:3]):  # one has none
        each.grad = wg.asarray(drawn(50 + at, each.shape), dtype, device=each.device)
    return params


def everything(params: list[Tensor]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = [each.grad.numpy().reshape(-1) for each in params if each.grad is not None]
    return np.concatenate(found).astype(np.float64)


@DEVICES
@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("most", [0.5, 100.0])
def test_norms_are_clipped(order: float, most: float, kind: str) -> None:
    params = with_gradients(kind)
    before = everything(params)
    norm = clip_grad_norm_(params, most, order)
    want = float(np.linalg.norm(before, order))
    np.testing.assert_allclose(norm.item(), want, rtol=1e-5)
    np.testing.assert_allclose(everything(params), before * min(1, most / want), rtol=1e-5, atol=1e-6)


def test_halves_are_clipped_in_float32() -> None:
    params = with_gradients(dtype=wg.float16)
    params[0].grad = wg.full((5, 3), 300.0, dtype=wg.float16, device="cpu")  # whose squares are infinite
    assert clip_grad_norm_(params, 1.0).item() == pytest.approx(300 * math.sqrt(15), rel=1e-2)
    assert params[0].grad is not None
    assert params[0].grad.dtype is wg.float16
    assert np.linalg.norm(everything(params)) == pytest.approx(1.0, rel=1e-2)


def test_complex_gradients_count_with_both_parts() -> None:
    w = wg.nn.Parameter(wg.zeros(2, dtype=wg.complex64))
    w.grad = wg.asarray([3.0 + 0j, 4j])
    assert clip_grad_norm_([w], 1.0).item() == 5.0
    np.testing.assert_allclose(w.grad.numpy(), [0.6, 0.8j], rtol=1e-5)


def test_values_are_clipped() -> None:
    params = with_gradients()
    before = everything(params)
    clip_grad_value_(params, 0.3)
    np.testing.assert_allclose(everything(params), before.clip(-0.3, 0.3), rtol=1e-6)
    clip_grad_value_(params[0], 0.1)
    assert params[0].grad is not None
    assert np.abs(params[0].grad.numpy()).max() <= 0.1 + 1e-7


def test_no_gradients_have_no_norm() -> None:
    assert clip_grad_norm_(parameters(), 1.0).item() == 0
    assert get_total_norm([]).item() == 0
    assert get_total_norm([wg.zeros((0, 3), device="cpu")], math.inf).item() == 0


def test_a_norm_that_is_not_finite() -> None:
    params = with_gradients()
    params[0].grad = wg.full((5, 3), math.inf, device="cpu")
    with pytest.raises(wg.ArgumentError, match=r"norm of order 2.0 of the gradients is inf"):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert clip_grad_norm_(params, 1.0).item() == math.inf


def test_captured_functions_clip_and_cannot_read() -> None:
    (w,) = parameters(shapes=[(3,)])

    def step(x: Tensor, strict: bool) -> Tensor:
        w.grad = None
        (w * x).sum().backward()
        norm = clip_grad_norm_([w], 1.0, error_if_nonfinite=strict)
        gradient: Tensor | None = w.grad
        assert gradient is not None
        return gradient * norm

    captured = wg.jit(step, static=["strict"])
    for at in range(3):
        x = wg.asarray(drawn(at, (3,)), device="cpu") * 10  # so that it is clipped
        np.testing.assert_allclose(captured(x, False).numpy(), x.numpy(), rtol=1e-4)
    with pytest.raises(wg.CaptureError, match=r"error_if_nonfinite=True\) reads the norm"):
        captured(x, True)


def test_limits_are_checked() -> None:
    with pytest.raises(wg.ArgumentError, match="max_norm is -1"):
        clip_grad_norm_(parameters(), -1.0)
    with pytest.raises(wg.ArgumentError, match="clip_value is -1"):
        clip_grad_value_(parameters(), -1.0)
    with pytest.raises(wg.ArgumentError, match="norm_type is 0"):
        clip_grad_norm_(with_gradients(), 1.0, 0.0)
