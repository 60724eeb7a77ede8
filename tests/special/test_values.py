"""Special functions against SciPy on both devices: ordinary numbers, and those at the ends."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import place
from tests.linalg.helpers import BOTH
from webgrad import special

scipy: Any = importlib.import_module("scipy.special")

WIDE = (-12.3, -2.5, -1e-3, 1e-6, 0.3, 0.7, 1.3, 1.9, 3.4, 7.9, 8.1, 9.5, 33.0, 1e4)
ABOVE = tuple(each for each in WIDE if each > 0)
NEAR = (-6.1, -1.5, -0.4, 0.0, 0.3, 1.9, 2.1, 5.5, 7.9, 8.1, 40.0)
UNIT = (1e-30, 1e-7, 0.02, 0.3, 0.499, 0.51, 0.9, 0.9999)

# name → SciPy's function, where, and how many roundings it may be away, of the larger of 1 and the value
CASES: dict[str, tuple[Callable[..., Any], tuple[float, ...], float]] = {
    "gammaln": (scipy.gammaln, WIDE, 8),
    "digamma": (scipy.digamma, WIDE, 24),
    "erfinv": (scipy.erfinv, (-0.9999, -0.5, -1e-9, 0.0, 0.1, 0.7, 0.99999), 8),
    "erfcx": (scipy.erfcx, NEAR, 40),
    "ndtr": (scipy.ndtr, NEAR, 2),
    "ndtri": (scipy.ndtri, UNIT, 8),
    "log_ndtr": (scipy.log_ndtr, (*NEAR, -40.0), 4),
    "entr": (scipy.entr, NEAR[3:], 4),
    "expit": (scipy.expit, NEAR, 4),
    "logit": (scipy.logit, UNIT, 4),
    "sinc": (np.sinc, NEAR, 2),
    "i0": (scipy.i0, NEAR, 8),
    "i0e": (scipy.i0e, NEAR, 4),
    "i1": (scipy.i1, NEAR, 16),
    "i1e": (scipy.i1e, NEAR, 4),
    "modified_bessel_k0": (scipy.k0, ABOVE, 12),
    "modified_bessel_k1": (scipy.k1, ABOVE, 8),
    "scaled_modified_bessel_k0": (scipy.k0e, ABOVE, 12),
    "scaled_modified_bessel_k1": (scipy.k1e, ABOVE, 8),
    "bessel_j0": (scipy.j0, NEAR, 8),
    "bessel_j1": (scipy.j1, NEAR, 8),
    "bessel_y0": (scipy.y0, NEAR[4:], 8),
    "bessel_y1": (scipy.y1, NEAR[4:], 8),
    "spherical_bessel_j0": (lambda x: scipy.spherical_jn(0, x), NEAR, 4),
    "airy_ai": (lambda x: scipy.airy(x)[0], (-20.0, -4.1, -3.9, 0.0, 1.9, 2.1, 9.0), 32),
}
ENDS = (0.0, -0.0, -1.0, math.inf, -math.inf, math.nan)
AT_ENDS: dict[str, tuple[float, ...]] = {
    "gammaln": (math.inf, math.inf, math.inf, math.inf, math.inf, math.nan),
    "digamma": (-math.inf, math.inf, math.nan, math.inf, math.nan, math.nan),
    "erfinv": (0.0, -0.0, -math.inf, math.nan, math.nan, math.nan),
    "erfcx": (1.0, 1.0, 5.0089801, 0.0, math.inf, math.nan),
    "ndtri": (-math.inf, -math.inf, math.nan, math.nan, math.nan, math.nan),
    "log_ndtr": (-0.6931472, -0.6931472, -1.8410217, 0.0, -math.inf, math.nan),
    "entr": (0.0, 0.0, -math.inf, -math.inf, -math.inf, math.nan),
    "logit": (-math.inf, -math.inf, math.nan, math.nan, math.nan, math.nan),
    "i0": (1.0, 1.0, 1.2660659, math.inf, math.inf, math.nan),
    "i1e": (0.0, 0.0, -0.2079104, 0.0, 0.0, math.nan),
    "modified_bessel_k0": (math.inf, math.inf, math.nan, 0.0, math.nan, math.nan),
    "modified_bessel_k1": (math.inf, math.inf, math.nan, 0.0, math.nan, math.nan),
    "bessel_y1": (-math.inf, -math.inf, math.nan, math.nan, math.nan, math.nan),
    "spherical_bessel_j0": (1.0, 1.0, 0.8414710, 0.0, 0.0, math.nan),
}


def roundings(found: Any, wanted: Any, dtype: Any) -> float:
    """How far numbers are from others, in roundings of the larger of 1 and the value."""
    scale = np.maximum(1, np.abs(wanted)) * np.finfo(dtype).eps
    return float(np.max(np.abs(found.astype(np.float64) - wanted) / scale))


FEW = ("gammaln", "erfinv", "i1e", "bessel_y0")
SOME = [pytest.param(name, marks=[] if name in FEW else pytest.mark.long) for name in CASES]


def check(kind: str, name: str) -> None:
    """A function of float32 numbers against SciPy's of float64."""
    reference, points, limit = CASES[name]
    x = np.array(points, np.float32)
    found = getattr(special, name)(place(kind, x)).numpy()
    assert roundings(found, reference(x.astype(np.float64)), np.float32) <= limit


@pytest.mark.parametrize("name", CASES)
def test_float32(name: str) -> None:
    check("cpu", name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SOME)
def test_float32_on_a_gpu(name: str) -> None:
    check("software", name)


def test_float64_and_narrow_dtypes() -> None:
    for name, (reference, points, limit) in CASES.items():
        x = np.array(points)
        found = getattr(special, name)(wg.asarray(x)).numpy()
        assert roundings(found, reference(x), np.float64) <= 2 * limit, name
    half = special.gammaln(wg.asarray([3.5], dtype=wg.float16))
    assert half.dtype is wg.float16
    assert half.item() == np.float16(scipy.gammaln(3.5))
    assert special.i0(wg.asarray([0, 3])).dtype is wg.float32


@BOTH
def test_ends(kind: str) -> None:
    x = place(kind, np.array(ENDS, np.float32))
    for name, wanted in AT_ENDS.items():
        np.testing.assert_allclose(getattr(special, name)(x).numpy(), wanted, rtol=1e-6, err_msg=name)


def test_polygamma_and_zeta() -> None:
    x = np.array([0.2, 0.9, 1.5, 7.0, 300.0])
    for n in range(5):
        found = special.polygamma(n, wg.asarray(x)).numpy()
        np.testing.assert_allclose(found, scipy.polygamma(n, x), rtol=1e-13)
    below = special.polygamma(1, wg.asarray([-0.5, -2.0, 0.0], dtype=wg.float64)).numpy()
    np.testing.assert_allclose(below, [8.934802200544679, math.inf, math.inf], rtol=1e-13)
    s = np.array([1.5, 2.0, 3.7, 9.0])[:, None]
    found = special.zeta(wg.asarray(s), wg.asarray(x)).numpy()
    np.testing.assert_allclose(found, scipy.zeta(s, x), rtol=1e-13)
    q = wg.asarray([-2.5, -2.0, -0.5, math.inf, math.nan])
    wanted = [0.0541020, math.inf, 0.4143983, 0, math.nan]
    np.testing.assert_allclose(special.zeta(3.0, q).numpy(), wanted, 1e-5)
    np.testing.assert_array_equal(special.zeta(wg.asarray([1.0, 0.5]), 2.0).numpy(), [math.inf, math.nan])
    with pytest.raises(wg.ArgumentError, match="least that is added up"):
        special.zeta(2.0, wg.asarray([-1e6]))
    with pytest.raises(wg.ArgumentError, match="n is a whole number"):
        special.polygamma(-1, q)


def test_polynomials() -> None:
    x, n = np.linspace(-1.5, 1.5, 7), np.arange(6)[:, None]
    names = {
        "chebyshev_polynomial_t": scipy.eval_chebyt,
        "chebyshev_polynomial_u": scipy.eval_chebyu,
        "shifted_chebyshev_polynomial_t": scipy.eval_sh_chebyt,
        "shifted_chebyshev_polynomial_u": scipy.eval_sh_chebyu,
        "hermite_polynomial_h": scipy.eval_hermite,
        "hermite_polynomial_he": scipy.eval_hermitenorm,
        "laguerre_polynomial_l": scipy.eval_laguerre,
        "legendre_polynomial_p": scipy.eval_legendre,
    }
    for name, reference in names.items():
        found = special.polynomial(name, wg.asarray(x), wg.asarray(n)).numpy()
        np.testing.assert_allclose(found, reference(n, x), rtol=1e-12, atol=1e-12)
    angle = np.linspace(0.3, 2.8, 5)
    found = special.polynomial("chebyshev_polynomial_v", wg.asarray(np.cos(angle)), 3).numpy()
    np.testing.assert_allclose(found, np.cos(3.5 * angle) / np.cos(angle / 2), rtol=1e-12)
    assert special.polynomial("legendre_polynomial_p", wg.asarray([0.5]), -1).tolist() == [0.0]
    with pytest.raises(wg.ArgumentError, match="the families are"):
        special.polynomial("lagrange", wg.asarray([0.5]), 1)
    with pytest.raises(wg.ArgumentError, match="largest offered"):
        special.polynomial("legendre_polynomial_p", wg.asarray([0.5]), 5000)


OF_MORE: dict[str, Callable[[Any], Any]] = {
    "polygamma": lambda x: special.polygamma(2, x),
    "zeta": lambda x: special.zeta(2.5, x),
    "multigammaln": lambda x: special.multigammaln(x + 2, 3),
    "xlogy": lambda x: special.xlogy(x, x * x),
    "xlog1py": lambda x: special.xlog1py(2.0, x),
}


@pytest.mark.parametrize("name", [*SOME[:-1], *OF_MORE])
def test_gradients(name: str) -> None:
    function = OF_MORE.get(name) or getattr(special, name)
    points, step = np.array([0.3, 0.6, 0.85]), 1e-6
    upper, lower = (function(wg.asarray(points + each)).numpy() for each in (step, -step))
    found = wg.grad(lambda x: function(x).sum())(wg.asarray(points)).numpy()
    np.testing.assert_allclose(found, (upper - lower) / (2 * step), rtol=1e-6, atol=1e-8)


def test_second_derivatives() -> None:
    second = wg.grad(wg.grad(special.gammaln))(wg.asarray(2.0, dtype=wg.float64)).item()
    assert second == pytest.approx(math.pi**2 / 6 - 1, rel=1e-12)


def test_refusals() -> None:
    with pytest.raises(wg.GradientError, match="airy_ai has no gradient"):
        special.airy_ai(wg.asarray([0.5]).requires_grad_())
    with pytest.raises(wg.GradientError, match="zeta has no gradient by s"):
        special.zeta(wg.asarray([2.5]).requires_grad_(), 1.0)
    with pytest.raises(wg.DTypeError, match=r"special\.gammaln is not offered for complex64"):
        special.gammaln(wg.asarray([1j]))
    with pytest.raises(wg.ArgumentError, match="the dimension"):
        special.multigammaln(wg.asarray([2.0]), 0)


def test_small_functions() -> None:
    x = wg.asarray([0.0, 2.0, 0.0])
    y = wg.asarray([0.0, 3.0, math.nan])
    np.testing.assert_allclose(special.xlogy(x, y).numpy(), [0.0, 2 * math.log(3), math.nan], rtol=1e-6)
    np.testing.assert_allclose(special.xlog1py(x, y).numpy(), [0.0, 2 * math.log(4), math.nan], rtol=1e-6)
    assert special.betaln(wg.asarray(2.0), 3.0).item() == pytest.approx(-math.log(12), rel=1e-6)
    clipped = special.logit(wg.asarray([0.0, 1.0]), eps=0.25).tolist()
    assert clipped == pytest.approx([-math.log(3), math.log(3)], rel=1e-6)
    z = np.array([0.3 + 0.4j, 0], np.complex64)
    np.testing.assert_allclose(special.sinc(wg.asarray(z)).numpy(), np.sinc(z), rtol=1e-5)


def test_parameters_have_gradients() -> None:
    weights = wg.nn.Parameter([0.5, 2.0])
    wg.special.gammaln(weights).sum().backward()
    assert weights.grad is not None
    np.testing.assert_allclose(weights.grad.numpy(), [-1.9635100260, 0.4227843351], rtol=1e-5)
