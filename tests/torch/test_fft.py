"""wg.fft against torch.fft: results and gradients, complex numbers as pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import webgrad as wg
from tests.torch.checking import Input, compare, normal, torch

Case = tuple[Callable[[Any, Any], Any], Input]
CASES: dict[str, Case] = {
    "fft": (lambda f, x: f.fft(x), normal(3, 12, 2)),
    "fft, n and norm": (lambda f, x: f.fft(x, 7, norm="ortho"), normal(3, 12, 2)),
    "ifft": (lambda f, x: f.ifft(x), normal(2, 11, 2)),
    "fft of real numbers": (lambda f, x: f.fft(x), normal(3, 9)),
    "rfft, even": (lambda f, x: f.rfft(x), normal(3, 8)),
    "rfft, odd": (lambda f, x: f.rfft(x, norm="forward"), normal(3, 9)),
    "irfft, even": (lambda f, x: f.irfft(x), normal(3, 5, 2)),
    "irfft, odd": (lambda f, x: f.irfft(x, 7), normal(3, 4, 2)),
    "hfft": (lambda f, x: f.hfft(x), normal(3, 5, 2)),
    "ihfft": (lambda f, x: f.ihfft(x), normal(3, 6)),
    "fft2": (lambda f, x: f.fft2(x), normal(2, 4, 6, 2)),
    "rfft2": (lambda f, x: f.rfft2(x), normal(2, 4, 6)),
    "irfft2": (lambda f, x: f.irfft2(x), normal(2, 4, 6, 2)),
    "rfftn": (lambda f, x: f.rfftn(x), normal(2, 4, 6)),
    "fftshift": (lambda f, x: f.fftshift(x), normal(3, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str) -> None:
    function, given = CASES[name]

    def over(library: Any) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            pairs = x.shape[-1] == 2
            result = function(library.fft, library.view_as_complex(x) if pairs else x)
            is_complex = str(result.dtype).endswith("complex64")
            return library.stack([library.real(result), library.imag(result)], -1) if is_complex else result

        return run

    compare(name, over(wg), over(torch), (given,))
