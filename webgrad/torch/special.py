"""torch.special: the functions of `webgrad.special` by torch's names, and those that torch has too.

In: tensors and numbers. Out: tensors of floats. `functions` are those of `torch` itself and its tensors.
"""

from __future__ import annotations

import functools
from typing import Any

import webgrad as wg

from .binding import absent, bind
from .pointwise import floats, pair
from .pointwise import functions as _elements
from .reductions import functions as _reductions
from .tensor import Array

__all__ = ["functions"]

ROWS = """
[function method in_place out]
digamma(input) = sp.digamma(floats(input))
erfinv(input) = sp.erfinv(floats(input))
i0(input) = sp.i0(floats(input))
lgamma(input) = sp.gammaln(floats(input))
logit(input, eps=None) = sp.logit(floats(input), eps=eps)
mvlgamma(input, p) = sp.multigammaln(floats(input), p)
sinc(input) = sp.sinc(floats(input))
xlogy(input, other) = pair(sp.xlogy, input, other)

[function method in_place out]
polygamma(n, input) = polygamma_of(n, input)
"""
OWN = """
[function out]
airy_ai(x) = sp.airy_ai(floats(x))
bessel_j0(x) = sp.bessel_j0(floats(x))
bessel_j1(x) = sp.bessel_j1(floats(x))
bessel_y0(x) = sp.bessel_y0(floats(x))
bessel_y1(x) = sp.bessel_y1(floats(x))
entr(input) = sp.entr(floats(input))
erfcx(input) = sp.erfcx(floats(input))
expit(input) = sp.expit(floats(input))
gammainc(input, other) = pair(sp.gammainc, input, other)
gammaincc(input, other) = pair(sp.gammaincc, input, other)
gammaln(input) = sp.gammaln(floats(input))
i0e(input) = sp.i0e(floats(input))
i1(input) = sp.i1(floats(input))
i1e(input) = sp.i1e(floats(input))
log_ndtr(input) = sp.log_ndtr(floats(input))
modified_bessel_i0(x) = sp.i0(floats(x))
modified_bessel_i1(x) = sp.i1(floats(x))
modified_bessel_k0(x) = sp.modified_bessel_k0(floats(x))
modified_bessel_k1(x) = sp.modified_bessel_k1(floats(x))
multigammaln(input, p) = sp.multigammaln(floats(input), p)
ndtr(input) = sp.ndtr(floats(input))
ndtri(input) = sp.ndtri(floats(input))
psi(input) = sp.digamma(floats(input))
scaled_modified_bessel_k0(x) = sp.scaled_modified_bessel_k0(floats(x))
scaled_modified_bessel_k1(x) = sp.scaled_modified_bessel_k1(floats(x))
spherical_bessel_j0(x) = sp.spherical_bessel_j0(floats(x))
xlog1py(input, other) = pair(sp.xlog1py, input, other)
zeta(input, other) = pair(sp.zeta, input, other)
"""
sp: Any = wg.special
FAMILIES = (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
    "legendre_polynomial_p"
)
SHARED = (
    "digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma round sinc softmax "
    "xlogy"
)


def polygamma_of(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma: as a method the tensor comes first."""
    if isinstance(n, Array):
        n, x = x, n
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return sp.polygamma(int(n), floats(x))


def of_family(name: str, x: Any, n: Any) -> Any:
    """A polynomial of a tensor, or of a number where the degrees are a tensor."""
    return pair(functools.partial(sp.polynomial, name), x, n)


def polynomials() -> str:
    """A row for each family of polynomials."""
    rows = [f'{name}(input, n) = of_family("{name}", input, n)' for name in FAMILIES.split()]
    return "\n".join(["[function out]", *rows])


functions: dict[str, Any] = bind(ROWS, globals())
_shared = {**_elements, **_reductions, **functions}
_own = bind(OWN + polynomials(), globals()) | {name: _shared[name] for name in SHARED.split()}
globals().update(_own)
__all__ += _own
__getattr__ = absent(__name__, __all__)
