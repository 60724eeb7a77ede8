"""Special functions, by SciPy's and PyTorch's names: `webgrad.special`.

In: tensors of real numbers. Out: tensors of floats on the same device. They are composed of webgrad's
functions, so that one formula is right for every dtype and device and fuses with its neighbours.
"""

from __future__ import annotations

from webgrad import erf, erfc, exp2, expm1, log1p, log_softmax, logsumexp, softmax

from .bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from .elementary import entr, expit, logit, sinc, xlog1py, xlogy
from .gamma import betaln, digamma, gammaln, multigammaln, polygamma, zeta
from .incomplete import gammainc, gammaincc
from .normal import erfcx, erfinv, log_ndtr, ndtr, ndtri
from .polynomials import polynomial

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "betaln", "digamma", "entr", "erf",
    "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e",
    "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_k0",
    "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "polynomial",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "sinc", "softmax", "spherical_bessel_j0",
    "xlog1py", "xlogy", "zeta",
]  # fmt: skip
