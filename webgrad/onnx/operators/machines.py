"""ai.onnx.ml's support vector machines: kernels of rows with support vectors, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from .classical import CLASSICAL, labelled, post_transformed
from .table import Call, operator

__all__: list[str] = []

Kernel = Callable[[Any, Any, float, float, float], Any]

# name → the function of rows, vectors (count, columns), gamma, coef0 and degree
_KERNELS: dict[str, Kernel] = {
    "LINEAR": lambda x, v, gamma, zero, degree: x @ v.mT,
    "POLY": lambda x, v, gamma, zero, degree: wg.pow(gamma * (x @ v.mT) + zero, degree),
    "RBF": lambda x, v, gamma, zero, degree: wg.exp(-gamma * wg.sum((x[:, None] - v) ** 2, axis=-1)),
    "SIGMOID": lambda x, v, gamma, zero, degree: wg.tanh(gamma * (x @ v.mT) + zero),
}


def _kernel(x: Any, vectors: Any, kind: str, params: Sequence[float]) -> Any:
    if kind not in _KERNELS:
        raise wg.ModelFileError(f"kernel_type is {', '.join(_KERNELS)}, not {kind!r}")
    gamma, zero, degree = params or (0.0, 0.0, 0.0)
    return _KERNELS[kind](x, vectors, gamma, zero, degree)


def _rows(x: Any) -> Any:
    return (x.reshape((1, -1)) if x.ndim == 1 else x).astype(wg.float32)


def _table(values: Sequence[float], rows: int, device: Any) -> Any:
    return wg.asarray(np.asarray(values, np.float32).reshape(rows, -1), device=device)


@operator("SVMRegressor", domain=CLASSICAL)
def svm_regressor(
    x: Any,
    *,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
    call: Call,
) -> Any:
    rows = _rows(x)
    vectors, weights = call.once(
        lambda: (
            _table(support_vectors if n_supports else coefficients, n_supports or 1, rows.device),
            _table(coefficients if n_supports else (1.0,), 1, rows.device),
        )
    )
    scores = _kernel(rows, vectors, kernel_type, kernel_params) @ weights.mT + rho[0]
    if one_class:
        return wg.where(scores > 0, 1.0, -1.0)
    return post_transformed(scores, post_transform)


@operator("SVMClassifier", domain=CLASSICAL)
def svm_classifier(
    x: Any,
    *,
    classlabels_ints: Sequence[int] = (),
    classlabels_strings: Sequence[str] = (),
    coefficients: Sequence[float],
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    rho: Sequence[float],
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
    call: Call,
) -> Any:
    rows, labels = _rows(x), classlabels_strings or classlabels_ints
    shift = np.asarray(rho, np.float32)
    if not vectors_per_class:  # a row of coefficients for each class
        weight = call.once(lambda: _table(coefficients, len(labels), rows.device))
        scores = _kernel(rows, weight, kernel_type, kernel_params) + call.tensor(shift[:1])
        return labelled(wg.argmax(scores, axis=1), labels, call), post_transformed(scores, post_transform)
    count = sum(vectors_per_class)
    vectors, pairs = call.once(
        lambda: (
            _table(support_vectors, count, rows.device),
            wg.asarray(_weights_of_pairs(coefficients, vectors_per_class), device=rows.device),
        )
    )
    scores = _kernel(rows, vectors, kernel_type, kernel_params) @ pairs.mT + call.tensor(shift)
    chosen = labelled(wg.argmax(_votes(scores, len(vectors_per_class)), axis=1), labels, call)
    if prob_a:
        return chosen, call.tensor(_chances(call.host(scores), prob_a, prob_b, len(labels)))
    if len(labels) == 2:
        scores = wg.concat([-scores, scores], axis=1)
    return chosen, post_transformed(scores, post_transform)


def _weights_of_pairs(coefficients: Sequence[float], sizes: Sequence[int]) -> Array:
    """For each pair of classes what each support vector counts: those of other classes nothing.

    Row j - 1 of the coefficients is for the first class of a pair against class j, row i for the second.
    """
    given = np.asarray(coefficients, np.float32).reshape(len(sizes) - 1, -1)
    ends = np.cumsum([0, *sizes])
    found = np.zeros((len(sizes) * (len(sizes) - 1) // 2, ends[-1]), np.float32)
    for at, (i, j) in enumerate(combinations(range(len(sizes)), 2)):
        first, second = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        found[at, first], found[at, second] = given[j - 1, first], given[i, second]
    return found


def _votes(scores: Any, classes: int) -> Any:
    """How many pairs each class wins (rows, classes)."""
    first, second = (
        np.asarray(
            [[pair[side] == each for pair in combinations(range(classes), 2)] for each in range(classes)]
        )
        for side in (0, 1)
    )
    wins = (scores > 0)[:, None]
    won = wg.where(wins, wg.asarray(first, device=scores.device), wg.asarray(second, device=scores.device))
    return wg.sum(won.astype(wg.int32), axis=-1)


def _chances(scores: Array, a: Sequence[float], b: Sequence[float], classes: int) -> Array:
    """The chance of each class, coupled from those of pairs as Wu, Lin and Weng do it (their second way)."""
    odds = 1 / (1 + np.exp(scores.astype(np.float64) * np.asarray(a) + np.asarray(b)))
    odds = np.clip(odds, 1e-7, 1 - 1e-7)
    if classes == 2:
        return np.concatenate([odds, 1 - odds], axis=1).astype(np.float32)
    r = np.zeros((len(scores), classes, classes))
    for at, (i, j) in enumerate(combinations(range(classes), 2)):
        r[:, i, j], r[:, j, i] = odds[:, at], 1 - odds[:, at]
    q = -r * np.swapaxes(r, 1, 2)
    diagonal = np.arange(classes)
    q[:, diagonal, diagonal] = (np.swapaxes(r, 1, 2) ** 2).sum(2)
    # the least of p·Q·p with a sum of 1
    system = np.zeros((len(scores), classes + 1, classes + 1))
    system[:, :classes, :classes], system[:, classes, :classes], system[:, :classes, classes] = q, 1, 1
    right = np.zeros((len(scores), classes + 1, 1))
    right[:, classes] = 1
    return np.linalg.solve(system, right)[:, :classes, 0].astype(np.float32)
