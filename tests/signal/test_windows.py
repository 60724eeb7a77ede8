"""Windows against their formulas, NumPy's where it has them; lengths 0 and 1; what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import everywhere, place
from webgrad.signal import windows

Array = np.ndarray[Any, Any]


def cosines(*a: float) -> Callable[[Array, int], Array]:
    return lambda k, n: sum((-1) ** i * f * np.cos(2 * np.pi * i * k / (n - 1)) for i, f in enumerate(a))


FORMULAS: dict[str, tuple[dict[str, Any], Callable[[Array, int], Array]]] = {
    "bartlett": ({}, lambda k, n: 1 - np.abs(2 * k / (n - 1) - 1)),
    "blackman": ({}, cosines(0.42, 0.5, 0.08)),
    "cosine": ({}, lambda k, n: np.sin(np.pi * (k + 0.5) / n)),
    "exponential": ({"tau": 3.0}, lambda k, n: np.exp(-np.abs(k - (n - 1) / 2) / 3)),
    "gaussian": ({"std": 2.5}, lambda k, n: np.exp(-(((k - (n - 1) / 2) / 2.5) ** 2) / 2)),
    "general_cosine": ({"a": [0.5, 0.3, 0.2]}, cosines(0.5, 0.3, 0.2)),
    "general_hamming": ({"alpha": 0.6}, cosines(0.6, 0.4)),
    "hamming": ({}, cosines(0.54, 0.46)),
    "hann": ({}, cosines(0.5, 0.5)),
    "kaiser": ({"beta": 8.0}, lambda k, n: np.i0(8 * np.sqrt(1 - (2 * k / (n - 1) - 1) ** 2)) / np.i0(8.0)),
    "nuttall": ({}, cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name: str) -> None:
    options, formula = FORMULAS[name]
    make = getattr(windows, name)
    for count, sym in ((2, True), (7, True), (8, False), (400, False)):
        wanted = formula(np.arange(count), count if sym else count + 1)
        found = make(count, sym=sym, **options)
        assert found.dtype is wg.float32
        np.testing.assert_allclose(found.numpy(), wanted, atol=2e-6)
        exact = make(count, sym=sym, dtype=wg.float64, **options).numpy()
        np.testing.assert_allclose(exact, wanted, atol=1e-13 if name != "kaiser" else 1e-9)
    assert [make(count, **options).tolist() for count in (0, 1)] == [[], [1.0]]


@everywhere
def test_on_every_device(kind: str) -> None:
    device = place(kind, np.ones(1, np.float32)).device
    found = windows.hann(16, sym=False, device=device)
    assert found.device is device
    np.testing.assert_allclose(found.numpy(), np.hanning(17)[:-1], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: windows.hann(-1), "0 elements or more"),
        (lambda: windows.exponential(4, tau=0.0), "Tau must be positive"),
        (lambda: windows.exponential(4, center=1.0), "Center must be None"),
        (lambda: windows.gaussian(4, std=-1.0), "must be positive"),
        (lambda: windows.kaiser(4, beta=-1.0), "non-negative"),
        (lambda: windows.general_cosine(4, []), "sequence"),
        (lambda: windows.hann(4, dtype=wg.int32), "floats"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(wg.WebgradError, match=words):
        call()
