"""Functions that webgrad and torch have, and where they are compared: zeros, ties, bounds, infinities, NaN.

In: nothing. Out: `EDGES`, a `Case` for each name: a function of a library and tensors, and arrays. Along the
first axis of the arrays everything is apart, so that what is at one point changes nothing at another.
`DIFFERENT` says where webgrad has another result than torch on purpose, and why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tests.torch.checking import Array

__all__ = ["DIFFERENT", "EDGES", "Case", "Difference"]

INF = math.inf
POINTS = (-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, INF, -INF, math.nan)
FEWER = (-1.0, -0.0, 0.0, 0.5, 1.0, INF, -INF, math.nan)
FINITE = (-1.0, -0.0, 0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """A function of a library (webgrad or torch) and tensors; and the arrays."""

    function: Callable[..., Any]
    arrays: tuple[Array, ...]


def _columns(*values: Sequence[float]) -> tuple[Array, ...]:
    """All combinations of values, an array for each place."""
    return tuple(np.asarray(each, np.float32) for each in zip(*product(*values), strict=True))


def _rows(values: Sequence[float], count: int) -> tuple[Array, ...]:
    """All combinations of values as the rows of one array."""
    return (np.asarray(list(product(values, repeat=count)), np.float32),)


ONE, TWO, THREE = _columns(POINTS), _columns(POINTS, POINTS), _columns(FEWER, FEWER, FEWER)
PAIRS, TRIPLES = _rows(POINTS, 2), _rows(FEWER, 3)
VECTORS = tuple(np.split(_rows(FINITE, 4)[0], 2, axis=1))  # all pairs of vectors of two
EDGES: dict[str, Case] = {}


def case(name: str, function: Callable[..., Any], arrays: tuple[Array, ...]) -> None:
    """Add a case."""
    assert name not in EDGES, name
    EDGES[name] = Case(function, arrays)


def with_each(name: str, function: Callable[..., Any], arrays: tuple[Array, ...], *options: Any) -> None:
    """Add a case for each of some options, which the function is given last."""
    for each in options:
        case(f"{name}, {each}", lambda library, *xs, each=each: function(library, *xs, each), arrays)


def one(of: Any, values: float | Sequence[float], like: Any) -> Any:
    """Numbers as a tensor of the library, where `like` is."""
    array = np.asarray(values, np.float32)
    return of.asarray(array, device=like.device)


def values_of(result: Any) -> Any:
    """The values, where torch gives places beside them."""
    return getattr(result, "values", result)


# Functions of one element
ELEMENTWISE = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp"),
    *(
        "exp2",
        "expm1",
        "floor",
        "log",
        "log10",
        "log1p",
        "log2",
        "negative",
        "positive",
        "reciprocal",
        "round",
    ),
    *("rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "nan_to_num"),
)
ACTIVATIONS = (
    *("celu", "elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish"),
    *("relu", "relu6", "selu", "silu", "softplus", "softsign", "tanhshrink", "softshrink", "hardshrink"),
)
for each in ELEMENTWISE:
    case(each, lambda of, x, each=each: getattr(of, each)(x), ONE)
for each in ACTIVATIONS:
    case(each, lambda of, x, each=each: getattr(of.nn.functional, each)(x), ONE)
with_each("softshrink", lambda of, x, k: of.nn.functional.softshrink(x, k), ONE, 0.0, 1.0)
with_each("hardshrink", lambda of, x, k: of.nn.functional.hardshrink(x, k), ONE, 0.0, 1.0)
with_each("softplus", lambda of, x, k: of.nn.functional.softplus(x, *k), ONE, (2, 1), (1, 1))
with_each("celu", lambda of, x, k: of.nn.functional.celu(x, k), ONE, 0.5, 2.0)
with_each("elu", lambda of, x, k: of.nn.functional.elu(x, k), ONE, 0.5, 2.0)
with_each("leaky_relu", lambda of, x, k: of.nn.functional.leaky_relu(x, k), ONE, 0.0, 0.5)
with_each("threshold", lambda of, x, k: of.nn.functional.threshold(x, k, 9.0), ONE, -1.0, 0.0, 1.0)
with_each("hardtanh", lambda of, x, k: of.nn.functional.hardtanh(x, *k), ONE, (-0.5, 2.0), (0.0, 1.0))
case("gelu by tanh", lambda of, x: of.nn.functional.gelu(x, approximate="tanh"), ONE)
case("hardsigmoid at its ends", lambda of, x: of.nn.functional.hardsigmoid(3 * x), ONE)
case("hardswish at its ends", lambda of, x: of.nn.functional.hardswish(3 * x), ONE)
case("relu6 at its ends", lambda of, x: of.nn.functional.relu6(3 * x), ONE)
case("prelu", lambda of, x, w: of.nn.functional.prelu(x, w[:1] * 0 + 0.5), (*ONE, np.zeros(11, np.float32)))
with_each("power", lambda of, x, k: x**k, ONE, 0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, INF)
with_each("to a power", lambda of, x, k: k**x, ONE, 0.0, 1.0, 2.0, -1.0, 0.5, INF, -0.0)
with_each("clamp, min", lambda of, x, k: of.clamp(x, min=k), ONE, 0.0, 1.0, -1.0, INF)
with_each("clamp, max", lambda of, x, k: of.clamp(x, max=k), ONE, 0.0, 1.0, -1.0, INF)
with_each("clamp", lambda of, x, k: of.clamp(x, *k), ONE, (0.0, 0.0), (-1.0, 1.0), (1.0, -1.0))
case("remainder by 1", lambda of, x: x % 1.0, ONE)
case("log of a sigmoid", lambda of, x: of.log(of.sigmoid(x)), ONE)

# Of two and three
for each in (
    *("add", "subtract", "multiply", "divide", "atan2", "hypot", "logaddexp", "maximum", "minimum"),
    *("pow", "copysign", "remainder"),
):
    case(each, lambda of, a, b, each=each: getattr(of, each)(a, b), TWO)
with_each("maximum", lambda of, x, k: of.maximum(x, one(of, k, x)), ONE, 0.0, 1.0)
with_each("minimum", lambda of, x, k: of.minimum(x, one(of, k, x)), ONE, 0.0, 1.0)
case("clamp, min tensor", lambda of, a, b: of.clamp(a, min=b), TWO)
case("clamp, max tensor", lambda of, a, b: of.clamp(a, max=b), TWO)
case("clamp by tensors", lambda of, a, b, c: of.clamp(a, b, c), THREE)
case("lerp", lambda of, a, b, c: of.lerp(a, b, c), THREE)
case("where", lambda of, a, b, c: of.where(a > 0, b, c), THREE)

# Losses of numbers
NONE = {"reduction": "none"}
for each in ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits"):
    case(each, lambda of, a, b, each=each: getattr(of.nn.functional, each)(a, b, **NONE), TWO)
for each in ("kl_div", "poisson_nll_loss"):
    case(each, lambda of, a, b, each=each: getattr(of.nn.functional, each)(a, b, **NONE), TWO)
with_each(
    "smooth_l1_loss", lambda of, a, b, k: of.nn.functional.smooth_l1_loss(a, b, beta=k, **NONE), TWO, 0.0, 0.5
)
with_each("huber_loss", lambda of, a, b, k: of.nn.functional.huber_loss(a, b, delta=k, **NONE), TWO, 0.5)
case(
    "binary_cross_entropy_with_logits, pos_weight",
    lambda of, a, b: of.nn.functional.binary_cross_entropy_with_logits(
        a, b, pos_weight=one(of, [3.0], a), **NONE
    ),
    TWO,
)
case(
    "binary_cross_entropy",
    lambda of, a, b: of.nn.functional.binary_cross_entropy(a, b, **NONE),
    _columns((0.0, 0.25, 0.5, 1.0), (0.0, 0.5, 1.0)),
)
case("kl_div of logarithms", lambda of, a, b: of.nn.functional.kl_div(a, b, log_target=True, **NONE), TWO)
with_each(
    "poisson_nll_loss",
    lambda of, a, b, k: of.nn.functional.poisson_nll_loss(a, b, *k, **NONE),
    TWO,
    *((True, True), (False, False)),
)
case(
    "gaussian_nll_loss",
    lambda of, a, b, c: of.nn.functional.gaussian_nll_loss(a, b, c, **NONE),
    _columns(POINTS, POINTS, (0.0, 1e-6, 0.5, 1.0)),
)
for sign in (1, -1):
    with_each(
        f"margin_ranking_loss of {sign}",
        lambda of, a, b, k, sign=sign: of.nn.functional.margin_ranking_loss(
            a, b, sign * of.ones_like(a), margin=k, **NONE
        ),
        TWO,
        *(0.0, 1.0),
    )
    with_each(
        f"hinge_embedding_loss of {sign}",
        lambda of, a, k, sign=sign: of.nn.functional.hinge_embedding_loss(
            a, sign * of.ones_like(a), margin=k, **NONE
        ),
        ONE,
        *(0.0, 1.0),
    )
    with_each(
        f"cosine_embedding_loss of {sign}",
        lambda of, a, b, k, sign=sign: of.nn.functional.cosine_embedding_loss(
            a, b, sign * of.ones_like(a[:, 0]), margin=k, **NONE
        ),
        VECTORS,
        *(0.0, 0.5),
    )

# Of vectors
case("cosine_similarity", lambda of, a, b: of.nn.functional.cosine_similarity(a, b), VECTORS)
with_each(
    "pairwise_distance",
    lambda of, a, b, k: of.nn.functional.pairwise_distance(a, b, p=k, eps=0.0),
    VECTORS,
    *(1.0, 2.0, 3.0, INF),
)
with_each(
    "triplet_margin_loss",
    lambda of, a, b, k: of.nn.functional.triplet_margin_loss(a, b, -b, eps=0.0, swap=k, **NONE),
    VECTORS,
    *(False, True),
)
case(
    "triplet_margin_loss at the hinge",
    lambda of, a, b: of.nn.functional.triplet_margin_loss(a, b, b + 1, margin=2.0, p=1.0, eps=0.0, **NONE),
    VECTORS,
)

# Of rows
SETS = {"pairs": PAIRS, "triples": TRIPLES}
for name, rows in SETS.items():
    side = rows[0].shape[1]
    factors = np.arange(1.0, 1.0 + side)
    for each in ("amax", "amin", "prod", "sum", "mean", "logsumexp", "cumsum", "cumprod"):
        case(f"{each} of {name}", lambda of, x, each=each: getattr(of, each)(x, 1), rows)
    for each in ("cummax", "cummin"):
        case(f"{each} of {name}", lambda of, x, each=each: values_of(getattr(of, each)(x, 1)), rows)
    for each in ("softmax", "log_softmax", "softmin"):
        case(
            f"{each} of {name}",
            lambda of, x, each=each, factors=factors: (
                getattr(of.nn.functional, each)(x, 1) * one(of, factors, x)
            ),
            rows,
        )
    with_each(f"norm of {name}", lambda of, x, k: of.norm(x, k, 1), rows, 0, 0.5, 1, 2, 3, -1, -2, INF, -INF)
    for each in ("var", "std"):
        with_each(
            f"{each} of {name}",
            lambda of, x, k, each=each: getattr(of, each)(x, 1, correction=k),
            rows,
            *(0, 1),
        )
    with_each(f"sort of {name}", lambda of, x, k: sorted_rows(of, x, k)[:, 0], rows, False, True)
    case(f"normalize of {name}", lambda of, x: of.nn.functional.normalize(x, 2.0, 1), rows)
    case(f"diff of {name}", lambda of, x: of.diff(x), rows)
    for each in ("layer_norm", "rms_norm"):
        case(
            f"{each} of {name}",
            lambda of, x, each=each, factors=factors: (
                getattr(of.nn.functional, each)(x, factors.shape, eps=1e-6) * one(of, factors, x)
            ),
            rows,
        )
    with_each(
        f"max_pool1d of {name}",
        lambda of, x, k: of.nn.functional.max_pool1d(x[:, None], 2, *k),
        rows,
        *((1,), (2,)),
    )
    case(f"max_pool2d of {name}", lambda of, x: of.nn.functional.max_pool2d(x[:, None, None], (1, 2)), rows)
    with_each(
        f"adaptive_max_pool1d of {name}",
        lambda of, x, k: of.nn.functional.adaptive_max_pool1d(x[:, None], k),
        rows,
        *(1, 2),
    )
    with_each(
        f"adaptive_max_pool2d of {name}",
        lambda of, x, k: of.nn.functional.adaptive_max_pool2d(x[:, None, :, None], (k, 1)),
        rows,
        *(1, 2),
    )
    case(
        f"adaptive_max_pool1d of {name}, with places",
        lambda of, x: of.nn.functional.adaptive_max_pool1d(x[:, None], 2, return_indices=True)[0],
        rows,
    )
    case(
        f"adaptive_max_pool3d of {name}",
        lambda of, x: of.nn.functional.adaptive_max_pool3d(x[:, None, None, :, None], (1, 2, 1)),
        rows,
    )
    case(f"glu of {name}", lambda of, x: of.nn.functional.glu(x[:, :2], 1), rows)
    case(
        f"cross_entropy of {name}",
        lambda of, x: of.nn.functional.cross_entropy(x, classes(of, x), reduction="none"),
        rows,
    )


def sorted_rows(of: Any, x: Any, falling: bool) -> Any:
    """Sorted along axis 1, equal ones in their order, as webgrad always does."""
    if of.__name__ == "torch":
        return of.sort(x, dim=1, descending=falling, stable=True).values
    return of.sort(x, axis=1, descending=falling)


def classes(of: Any, like: Any) -> Any:
    """The first class for every row."""
    dtype = np.int64 if of.__name__ == "torch" else np.int32
    return of.asarray(np.zeros(like.shape[0], dtype), device=like.device)


# Where webgrad differs, and why


@dataclass(frozen=True, slots=True)
class Difference:
    """Cases by the pattern of their names; where (a row of inputs, flattened), and the reason.

    `values`: results differ there, and so gradients may; else only gradients do.
    """

    names: str
    where: Callable[[Array], Any]
    reason: str
    values: bool = False


def _has_infinity(point: Array) -> bool:
    return bool(np.isinf(point).any())


DIFFERENT: tuple[Difference, ...] = (
    Difference("sign", lambda x: np.isnan(x[0]), "NaN stays NaN, as in NumPy", values=True),
    Difference(
        "gelu*",
        lambda x: abs(x[0]) == INF,
        "the limits; torch has NaN, above on some processors",
        values=True,
    ),
    Difference(
        "power, *.5",
        lambda x: x[0] in (0, -INF),
        "as C and NumPy have it; torch takes the square root, which keeps the sign of -0",
        values=True,
    ),
    Difference("hypot", lambda x: not x.any(), "0 at the origin, as all norms have, for NaN"),
    Difference("logaddexp", lambda x: np.isinf(x).all(), "equal infinities share it, for NaN"),
    Difference("copysign", _has_infinity, "the slope is 1 or -1 at infinity too, for NaN"),
    Difference(
        "clamp by tensors", lambda x: x[1] == x[2], "one bound has the gradient; in torch neither, nor x"
    ),
    Difference("lerp", _has_infinity, "weights below 0 go by the first end, so infinity stays", values=True),
    Difference("kl_div", lambda x: x[1] == 0, "0 log 0 counts as 0, so that the gradient is finite, for NaN"),
    Difference(
        "poisson_nll_loss, (True, True)", lambda x: x[1] <= 1, "Stirling's term is not there, for NaN"
    ),
    Difference("binary_cross_entropy_with_logits, pos_weight", _has_infinity, "the infinity, for NaN"),
    Difference(
        "binary_cross_entropy",
        lambda x: x[0] in (0, 1),
        "the slope of the term that is not steep counts; by the target that of logarithms of at least -100",
    ),
    Difference("norm of *", _has_infinity, "finite elements beside an infinity have their limit, for NaN"),
)
