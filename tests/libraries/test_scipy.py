"""SciPy on tensors, by `SCIPY_ARRAY_API=1`, which tests/conftest.py sets: NumPy's values and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.libraries.comparing import EVERYWHERE, FLOATS, Place, library, same, without_numpy

fft = library("scipy.fft")
special = library("scipy.special")
stats = library("scipy.stats")

X = np.random.default_rng(3).normal(size=(6, 16)) * 3 + 1
Call = Callable[[Any], Any]

PROMISED: dict[str, Call] = {
    "logsumexp": special.logsumexp,
    "logsumexp of rows": lambda x: special.logsumexp(x, axis=1, keepdims=True),
    "logsumexp, weighted": lambda x: special.logsumexp(x, axis=0, b=x * x),
    "logsumexp with signs": lambda x: tuple(special.logsumexp(x, axis=1, b=x, return_sign=True)),
    "zscore": stats.zscore,
    "zscore of rows": lambda x: stats.zscore(x, axis=1, ddof=1),
    "skew": stats.skew,
    "skew of rows": lambda x: stats.skew(x, axis=1, bias=False),
    "rfft": fft.rfft,
    "rfft of columns": lambda x: fft.rfft(x, n=5, axis=0, norm="ortho"),
}
FREE: dict[str, Call] = {
    "fft": fft.fft,
    "irfft": lambda x: fft.irfft(fft.rfft(x)),
    "hfft": lambda x: fft.hfft(fft.ihfft(x)),
    "fft2": fft.fft2,
    "ifftn": lambda x: fft.ifftn(fft.fftn(x)),
    "rfftn": lambda x: fft.irfftn(fft.rfftn(x)),
    "fftshift": lambda x: fft.ifftshift(fft.fftshift(x[:, :15])),
    "kurtosis": stats.kurtosis,
    "moment": lambda x: stats.moment(x, order=3),
    "variation": lambda x: stats.variation(x, axis=1),
    "gmean": lambda x: stats.gmean(x * x, axis=1),
    "hmean": lambda x: stats.hmean(x * x, axis=1),
    "sem": stats.sem,
    "describe": lambda x: tuple(stats.describe(x))[2:],
    "circmean": stats.circmean,
    "quantile": lambda x: stats.quantile(x, 0.25, axis=1),
    "zmap": lambda x: stats.zmap(x, x * x),
    "softmax": lambda x: special.softmax(x, axis=1),
    "log_softmax": lambda x: special.log_softmax(x, axis=1),
    "xlogy": lambda x: special.xlogy(x * x, x * x),
    "rel_entr": lambda x: special.rel_entr(x * x, x * x + 1),
}


def compared(call: Call, device: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place, x = Place(device, dtype), X.astype(dtype)
    expected = call(x)
    with without_numpy(monkeypatch):
        found = call(place.put(x))
    same(found, expected, place)


@EVERYWHERE
@pytest.mark.parametrize("name", PROMISED)
def test_what_is_promised(device: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(PROMISED[name], device, np.float32, monkeypatch)


@EVERYWHERE
@pytest.mark.parametrize("name", ["logsumexp", "zscore", "skew", "rfft"])
def test_the_same_in_float64(device: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(PROMISED[name], device, np.float64, monkeypatch)


@FLOATS
@pytest.mark.parametrize("name", FREE)
def test_what_comes_for_free(dtype: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(FREE[name], "cpu", dtype, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["irfft", "fftshift", "kurtosis", "quantile", "softmax", "xlogy"])
def test_some_of_it_on_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(FREE[name], "webgpu:0", np.float32, monkeypatch)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmaxes_of_whole_numbers(name: str) -> None:
    whole = np.arange(6, dtype=np.int32).reshape(2, 3)
    found = getattr(special, name)(wg.asarray(whole, device="cpu"), axis=1)
    assert found.dtype is wg.float32
    np.testing.assert_allclose(found.numpy(), getattr(special, name)(whole, axis=1), rtol=1e-6)


def test_functions_that_scipy_has_for_numpy_only_come_back_as_tensors() -> None:
    x = wg.asarray(X, device="cpu")
    same(special.gammaln(x * x), special.gammaln(X * X), Place("cpu"))


def test_gradients_go_through() -> None:
    x = wg.asarray(X, device="cpu").requires_grad_()
    special.logsumexp(x, axis=1).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), special.softmax(X, axis=1), rtol=1e-12)
