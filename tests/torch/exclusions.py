"""What differs from torch on purpose, or is open in torch itself: every row has its reason.

In: the name of an entry of torch's tables, or a line about a wrong value. Out: how the two are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.torch.checking import torch

__all__ = ["CHANCES", "DIFFERENT", "HERMITIAN", "INVARIANTS", "RANDOM", "ROUNDING", "THEIRS", "TRIANGULAR"]

# What has random or unwritten values: shapes and dtypes are compared.
RANDOM = frozenset(
    {
        "bernoulli",
        "cauchy",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "exponential",
        "geometric",
        "log_normal",
        "multinomial",
        "new_empty",
        "new_empty_strided",
        "nn.functional.alpha_dropout",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
        "nn.functional.feature_alpha_dropout.with_train",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "nn.functional.multi_head_attention_forward",
        "nn.functional.rrelu",
        "normal",
        "normal.in_place",
        "normal.number_mean",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "svd_lowrank",  # of a matrix of higher rank
        "uniform",
    }
)

CHANCES = ("dropout_p",)  # arguments that make a sample one of random values

# Deliberate differences: what the line about a wrong value matches → why it is not torch's.
DIFFERENT: dict[str, str] = {
    r"special\.(airy_ai|bessel_[jy][01])\(float64.*differ": "torch's are exact to 1e-8 only from 5 on",
    r"as_strided_scatter\(.*gradient 0": "torch gives the input the gradients of what was overwritten",
    r"as_strided.partial_views\(.*": "arguments are copied, without the memory before them",
    r"(mode|median|kthvalue)\(.*gradient": "which of equal elements is meant is not determined",
    r"cov\(float64.*float32": "torch adds up weights in their own precision",
    r"hardsigmoid\(float64.*gradient": "torch takes 1/6 in single precision, so its gradient is off by 3e-8",
}

# Where more rounding is allowed, as a factor: name → factor, and why.
ROUNDING: dict[str, tuple[float, str]] = {
    "cov": (4.0, "what weights have as gradients are differences of larger numbers"),
    "pca_lowrank": (4.0, "both draw a basis of their own"),
    "nn.functional.scaled_dot_product_attention": (
        4.0,
        "gradients are made of the result as it is stored, in half precision, as flash attention's are",
    ),
    "nn.functional.normalize": (4.0, "gradients are differences of numbers as large as 1 / x"),
}


def svd_product(factors: Any) -> Any:
    u, s, vh = factors
    least = s.shape[-1]
    return s, (u[..., :, :least] * s[..., None, :]) @ vh[..., :least, :]


def eigh_product(factors: Any) -> Any:
    values, vectors = factors
    return values, (vectors * values[..., None, :]) @ vectors.mH


def principal(logarithm: Any) -> Any:
    """Logarithms of complex numbers are the same where their imaginary parts are whole turns apart."""
    if not logarithm.is_complex():
        return logarithm
    return logarithm.real, logarithm.imag.cos(), logarithm.imag.sin()


def product_of_v(factors: Any) -> Any:
    u, s, v = factors
    return svd_product((u, s, v.mH))


def in_order(values: Any) -> Any:
    return (values.real + 0.37 * values.imag).detach().argsort(-1)


def sorted_values(values: Any) -> Any:
    return values.gather(-1, in_order(values))


def sorted_sizes(factors: Any) -> Any:
    values, vectors = factors
    order = in_order(values)
    return values.gather(-1, order), abs(vectors).gather(-1, order[..., None, :].expand(vectors.shape))


# Results that are determined up to signs, phases or the order of ties only: name → what all of them have in
# common, a function of the results of either library.
INVARIANTS: dict[str, Callable[..., Any]] = {
    "linalg.eig": sorted_sizes,
    "linalg.eigvals": sorted_values,
    "linalg.eigh": eigh_product,
    "linalg.lstsq": lambda result: result[0],  # torch leaves residuals and ranks out with some drivers
    "linalg.lstsq.grad_oriented": lambda result: result[0],
    "linalg.svd": svd_product,
    "logcumsumexp": lambda result: principal(result),
    # Which of equal elements is meant is not determined.
    "kthvalue": lambda result: result[0],
    "median": lambda result: result[0] if isinstance(result, tuple) else result,
    "mode": lambda result: result[0],
    "nanmedian": lambda result: result[0] if isinstance(result, tuple) else result,
    "pca_lowrank": product_of_v,
    "svd": product_of_v,
    "topk": lambda result: result[0],
}

# Functions of one triangle, whose gradient is torch's for matrices that are symmetric or Hermitian.
HERMITIAN = frozenset(
    {
        "cholesky",
        "linalg.cholesky",
        "linalg.cholesky_ex",
        "linalg.eigh",
        "linalg.eigvalsh",
        "linalg.pinv.hermitian",
    }
)

# Functions of one triangle, for whose gradient torch has numbers in the other triangle too: name → the
# argument that it is of.
TRIANGULAR = {"cholesky_inverse": 0, "cholesky_solve": 1}


def stable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that sorts, with the order of ties determined."""
    return lambda x, dim=-1, descending=False, stable=True: function(
        x, dim=dim, descending=descending, stable=True
    )


# How torch is called where its own way leaves the order of ties open.
THEIRS: dict[str, Callable[..., Any]] = {
    "argsort": stable(torch.argsort),
    "msort": lambda x: torch.sort(x, dim=0, stable=True).values,
    "sort": stable(torch.sort),
}
