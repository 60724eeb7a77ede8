"""Losses against their formulas in float64: every reduction, weights, ignored targets, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import nodes_under
from webgrad import dtypes
from webgrad.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from webgrad.functions.array.creation import asarray
from webgrad.functions.learning import losses
from webgrad.graph.node import leaf
from webgrad.runtime.device import CpuDevice
from webgrad.tensor import Tensor

INF, NAN = np.inf, np.nan
Array = np.ndarray[Any, Any]
REDUCTIONS = ["mean", "sum", "none"]


def on_cpu(values: Any, dtype: Any = None) -> Tensor:
    return asarray(values, dtype, device="cpu")


def numbers(*shape: int, seed: int = 0, scale: float = 3.0) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(size=shape) * scale, np.float32)


def reduced(loss: Array, reduction: str) -> Array:
    return loss if reduction == "none" else np.asarray(loss.mean() if reduction == "mean" else loss.sum())


def check(result: Tensor, expected: Any, tolerance: float = 1e-5) -> None:
    found = result.numpy()
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


# Classes


def log_softmax(x: Array, axis: int) -> Array:
    shifted = x.astype(np.float64) - x.max(axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)))


def class_loss(
    logs: Array, target: Array, weight: Array | None, ignored: int, smoothing: float, reduction: str
) -> Array:
    """The definition, target by target: (1 - ε) wᵧ nllᵧ + ε/C Σ w nll, the mean being by the weights wᵧ."""
    axis = min(logs.ndim - 1, 1)
    rows = np.moveaxis(logs, axis, -1).reshape(-1, logs.shape[axis])
    weights = np.ones(rows.shape[1]) if weight is None else weight.astype(np.float64)
    result = np.zeros(len(rows))
    share = np.zeros(len(rows))
    for at, (row, place) in enumerate(zip(rows, target.reshape(-1), strict=True)):
        if place != ignored:
            share[at] = weights[place]
            result[at] = -(1 - smoothing) * weights[place] * row[place] - smoothing / len(row) * (
                weights @ row
            )
    if reduction == "mean":
        with np.errstate(invalid="ignore"):
            return np.asarray(result.sum() / share.sum())
    return reduced(result.reshape(target.shape), reduction)


SHAPES: list[tuple[int, ...]] = [(8, 5), (4, 5, 3), (2, 5, 3, 2), (5,), (1, 1)]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy(shape: tuple[int, ...], weighted: bool, smoothing: float, reduction: str) -> None:
    logits = numbers(*shape)
    axis = min(len(shape) - 1, 1)
    classes = shape[axis]
    generator = np.random.default_rng(1)
    target = generator.integers(0, classes, size=(*shape[:axis], *shape[axis + 1 :])).astype(np.int32)
    if target.size > 2:
        target.reshape(-1)[1] = -100
    weight = (generator.random(classes) + 0.1).astype(np.float32) if weighted else None
    result = losses.cross_entropy(
        on_cpu(logits),
        on_cpu(target),
        None if weight is None else on_cpu(weight),
        label_smoothing=smoothing,
        reduction=reduction,
    )
    check(result, class_loss(log_softmax(logits, axis), target, weight, -100, smoothing, reduction))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy_with_probabilities(shape: tuple[int, ...], smoothing: float, reduction: str) -> None:
    logits, target = numbers(*shape), np.abs(numbers(*shape, seed=1))
    axis = min(len(shape) - 1, 1)
    weight = np.abs(numbers(shape[axis], seed=2))
    result = losses.cross_entropy(
        on_cpu(logits), on_cpu(target), on_cpu(weight), label_smoothing=smoothing, reduction=reduction
    )
    soft = target * (1 - smoothing) + smoothing / shape[axis]
    along = weight.reshape(-1, *[1] * (len(shape) - axis - 1))
    check(result, reduced(-(log_softmax(logits, axis) * soft * along).sum(axis=axis), reduction))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_nll_loss(shape: tuple[int, ...], reduction: str) -> None:
    logs = numbers(*shape)
    axis = min(len(shape) - 1, 1)
    target = np.random.default_rng(1).integers(0, shape[axis], size=(*shape[:axis], *shape[axis + 1 :]))
    weight = np.abs(numbers(shape[axis], seed=2))
    result = losses.nll_loss(
        on_cpu(logs), on_cpu(target, dtypes.int32), on_cpu(weight), ignore_index=2, reduction=reduction
    )
    check(result, class_loss(logs.astype(np.float64), target, weight, 2, 0.0, reduction))


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.uint32, dtypes.int64])
def test_targets_of_any_integer(dtype: dtypes.DType) -> None:
    logits, target = numbers(6, 4), np.array([0, 1, 2, 3, 1, 2])
    expected = class_loss(log_softmax(logits, 1), target, None, 3, 0.0, "mean")
    check(losses.cross_entropy(on_cpu(logits), on_cpu(target, dtype), ignore_index=3), expected)
    check(
        losses.cross_entropy(on_cpu(logits), on_cpu(target, dtype), label_smoothing=0.1),
        class_loss(log_softmax(logits, 1), target, None, -100, 0.1, "mean"),
    )


def test_special_values_of_cross_entropy() -> None:
    logits = np.array([[1e4, -1e4], [-INF, 0], [NAN, 0], [1e30, 1e30]], np.float32)
    target = on_cpu([1, 0, 0, 1])
    found = losses.cross_entropy(on_cpu(logits), target, reduction="none").numpy()
    np.testing.assert_allclose(found, [2e4, INF, NAN, np.log(2)], rtol=1e-6)
    ignored = losses.cross_entropy(on_cpu(logits), on_cpu([-100] * 4))
    assert np.isnan(ignored.item())
    hidden = losses.cross_entropy(on_cpu(logits), on_cpu([0, 1, -100, 0]), reduction="sum")
    assert hidden.item() == pytest.approx(np.log(2))


def test_far_logits_keep_their_digits() -> None:
    logits = numbers(4, 8) + 5e4
    target = np.array([0, 3, 5, 7])
    expected = class_loss(log_softmax(logits, 1), target, None, -100, 0.0, "none")
    check(
        losses.cross_entropy(on_cpu(logits), on_cpu(target, dtypes.int32), reduction="none"), expected, 1e-6
    )


def test_no_samples_at_all() -> None:
    assert np.isnan(
        losses.cross_entropy(on_cpu(np.zeros((0, 3), np.float32)), on_cpu([], dtypes.int32)).item()
    )
    empty = on_cpu(np.zeros((0, 3), np.float32))
    assert losses.mse_loss(empty, empty, reduction="sum").item() == 0
    assert np.isnan(losses.mse_loss(empty, empty).item())


# Numbers and probabilities

P, T = np.random.default_rng(5).random((2, 4, 3)).astype(np.float32)
P[0], T[1] = [0, 1, 0.5], [0, 1, 0]
A, B = numbers(4, 3, seed=6), numbers(4, 3, seed=7)
DIFFERENCE = np.abs(A.astype(np.float64) - B)
LOGISTIC = 1 / (1 + np.exp(-A.astype(np.float64)))


def logs_of(p: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p.astype(np.float64)), -100)


Case = tuple[Callable[[str], Tensor], Array]
CASES: dict[str, Case] = {
    "mse": (lambda how: losses.mse_loss(on_cpu(A), on_cpu(B), reduction=how), DIFFERENCE**2),
    "mse to a number": (
        lambda how: losses.mse_loss(on_cpu(A), 1, reduction=how),
        (A.astype(np.float64) - 1) ** 2,
    ),
    "l1": (lambda how: losses.l1_loss(on_cpu(A), on_cpu(B), reduction=how), DIFFERENCE),
    "huber": (
        lambda how: losses.huber_loss(on_cpu(A), on_cpu(B), reduction=how, delta=2.0),
        np.where(DIFFERENCE <= 2, 0.5 * DIFFERENCE**2, 2 * (DIFFERENCE - 1)),
    ),
    "smooth l1": (
        lambda how: losses.smooth_l1_loss(on_cpu(A), on_cpu(B), reduction=how, beta=2.0),
        np.where(DIFFERENCE < 2, 0.5 * DIFFERENCE**2 / 2, DIFFERENCE - 1),
    ),
    "smooth l1, beta 0": (
        lambda how: losses.smooth_l1_loss(on_cpu(A), on_cpu(B), reduction=how, beta=0.0),
        DIFFERENCE,
    ),
    "bce": (
        lambda how: losses.binary_cross_entropy(on_cpu(P), on_cpu(T), reduction=how),
        -(T * logs_of(P) + (1 - T) * logs_of(1 - P)),
    ),
    "bce, weighted": (
        lambda how: losses.binary_cross_entropy(on_cpu(P), on_cpu(T), on_cpu(P[:, :1]), reduction=how),
        -P[:, :1] * (T * logs_of(P) + (1 - T) * logs_of(1 - P)),
    ),
    "bce with logits": (
        lambda how: losses.binary_cross_entropy_with_logits(on_cpu(A), on_cpu(T), reduction=how),
        -(T * logs_of(LOGISTIC) + (1 - T) * logs_of(1 - LOGISTIC)),
    ),
    "bce with logits, weighted": (
        lambda how: losses.binary_cross_entropy_with_logits(
            on_cpu(A), on_cpu(T), on_cpu(P[:, :1]), pos_weight=on_cpu(P[2]), reduction=how
        ),
        -P[:, :1] * (P[2] * T * logs_of(LOGISTIC) + (1 - T) * logs_of(1 - LOGISTIC)),
    ),
    "kl": (
        lambda how: losses.kl_div(on_cpu(A), on_cpu(T), reduction=how),
        np.where(T == 0, 0, T * logs_of(T)) - T * A,
    ),
    "kl of logarithms": (
        lambda how: losses.kl_div(on_cpu(A), on_cpu(B), reduction=how, log_target=True),
        np.exp(B.astype(np.float64)) * (B.astype(np.float64) - A),
    ),
}


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", CASES)
def test_elementwise_losses(name: str, reduction: str) -> None:
    function, expected = CASES[name]
    check(function(reduction), reduced(expected, reduction))


def test_kl_by_the_batch() -> None:
    check(
        losses.kl_div(on_cpu(A), on_cpu(B), reduction="batchmean", log_target=True),
        CASES["kl of logarithms"][1].sum() / 4,
    )


def test_logits_do_not_overflow() -> None:
    x = on_cpu([1e4, -1e4, 200.0, -200.0])
    found = losses.binary_cross_entropy_with_logits(x, on_cpu([1.0, 0.0, 0.0, 1.0]), reduction="none")
    assert found.tolist() == [0.0, 0.0, 200.0, 200.0]


def test_chances_of_zero_and_one_have_gradients() -> None:
    p = on_cpu([0.0, 1.0, 0.0, 1.0, 0.5]).requires_grad_()
    found = losses.binary_cross_entropy(p, on_cpu([0.0, 1.0, 1.0, 0.0, 1.0]), reduction="none")
    found.backward(on_cpu(np.ones(5, np.float32)))
    np.testing.assert_allclose(found.numpy(), [0, 0, 100, 100, np.log(2)], rtol=1e-6)
    assert p.grad is not None
    np.testing.assert_allclose(p.grad.numpy(), [1.0, -1.0, -1e12, 1e12, -2.0], rtol=1e-6)
    wrong = losses.binary_cross_entropy(on_cpu([-0.5, 1.5]), on_cpu([1.0, 0.0]), reduction="none")
    assert np.isnan(wrong.numpy()).all()


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss"])
def test_nan_stays(name: str) -> None:
    found = getattr(losses, name)(on_cpu([NAN, 1.0, INF]), on_cpu([0.0, 0.0, 0.0]), reduction="none").numpy()
    assert np.isnan(found).tolist() == [True, False, False]
    assert found[2] == INF


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_small_floats_are_summed_wide(dtype: dtypes.DType) -> None:
    x = on_cpu(np.full(100_000, 2.0), dtype)
    result = losses.mse_loss(x, on_cpu(np.zeros(100_000), dtype))
    assert (result.item(), result.dtype) == (4.0, dtype)
    logits = on_cpu(numbers(16, 10), dtype)
    target = on_cpu(np.arange(16) % 10, dtypes.int32)
    wide = losses.cross_entropy(logits.astype(dtypes.float32), target).numpy()
    np.testing.assert_array_equal(losses.cross_entropy(logits, target).numpy(), wide.astype(dtype.numpy))


def test_integer_targets_of_number_losses() -> None:
    assert losses.mse_loss(on_cpu([1.0, 2.0]), on_cpu([1, 4])).item() == 2.0


# Mistakes

LOGITS = on_cpu(np.ones((4, 3), np.float32))
PLACES = on_cpu([0, 1, 2, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: losses.mse_loss(LOGITS, LOGITS, reduction="avg"),
            'mse_loss: reduction must be one of "mean", "sum", "none", not \'avg\'',
        ),
        (
            lambda: losses.cross_entropy(LOGITS, PLACES, reduction="batchmean"),
            "cross_entropy: reduction must be one of",
        ),
        (lambda: losses.kl_div(LOGITS, LOGITS, reduction="avg"), '"batchmean"'),
        (
            lambda: losses.mse_loss(LOGITS, PLACES),
            r"predictions of shape \(4, 3\) and a target of shape \(4,\)",
        ),
        (lambda: losses.cross_entropy(LOGITS, on_cpu([0, 1])), r"must hold class indices in shape \(4,\)"),
        (lambda: losses.cross_entropy(LOGITS, on_cpu([0.0] * 4)), "must hold probabilities in the shape"),
        (
            lambda: losses.cross_entropy(LOGITS, PLACES, label_smoothing=2.0),
            "label_smoothing must be between 0 and 1",
        ),
        (
            lambda: losses.cross_entropy(LOGITS, PLACES, on_cpu([1.0])),
            r"weight must have one number per class, shape \(3,\)",
        ),
        (lambda: losses.nll_loss(on_cpu(1.0), PLACES), "nll_loss: one number is not a score of classes"),
        (
            lambda: losses.cross_entropy(on_cpu(np.ones((2, 0), np.float32)), on_cpu([0, 0])),
            "have no classes",
        ),
        (lambda: losses.huber_loss(LOGITS, LOGITS, delta=0.0), "delta must be a positive number"),
        (lambda: losses.smooth_l1_loss(LOGITS, LOGITS, beta=-1.0), "beta must be 0 or more"),
        (lambda: losses.binary_cross_entropy(LOGITS, LOGITS, on_cpu(np.ones((5, 4, 3)))), "weight of shape"),
        (lambda: losses.kl_div(on_cpu(0.0), on_cpu(1.0), reduction="batchmean"), "needs a batch"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        call()


def test_targets_elsewhere() -> None:
    there = Tensor(leaf(np.zeros(4, np.int32), (4,), dtypes.int32, CpuDevice()))
    with pytest.raises(
        DeviceError, match="cross_entropy: the predictions are on cpu, the target on cpu: move one"
    ):
        losses.cross_entropy(LOGITS, there)


def test_a_gather_reads_the_logits_themselves() -> None:
    logits = on_cpu(numbers(4, 3))
    nodes = nodes_under([losses.cross_entropy(logits, PLACES).node])
    [gather] = [node for node in nodes if node.sig.kind == "gather"]
    assert nodes[gather.inputs[0]].sig.kind == "leaf"
    assert sum(node.sig.kind == "reduce" for node in nodes) == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.mse_loss(PLACES, PLACES), r"mse_loss is not offered for int32.*astype"),
        (
            lambda: losses.cross_entropy(on_cpu([[1, 2]]), on_cpu([0])),
            "cross_entropy is not offered for int32",
        ),
        (
            lambda: losses.cross_entropy(LOGITS, on_cpu([True] * 4)),
            r"cross_entropy \(its target\) is not offered for bool",
        ),
        (
            lambda: losses.nll_loss(LOGITS, on_cpu([0.0] * 4)),
            r"nll_loss \(its target\) is not offered for float32",
        ),
        (lambda: losses.mse_loss(LOGITS, [1.0]), "mse_loss takes a webgrad tensor, not a list"),
        (lambda: losses.kl_div(LOGITS, 0.5), "a tensor of probabilities"),
    ],
)
def test_mistaken_dtypes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(DTypeError, match=message):
        call()


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_class_numbers_that_are_none_give_nan(reduction: str) -> None:
    """Labels from 1 on instead of 0 must not be learned as if they were right."""
    logits = on_cpu(np.zeros((4, 3)), dtypes.float32).requires_grad_()
    target = on_cpu([-100, -1, 2, 3], dtypes.int32)
    loss = losses.cross_entropy(logits, target, reduction=reduction)
    found = np.isnan(loss.numpy())
    assert found.tolist() == ([False, True, False, True] if reduction == "none" else True)
    assert np.isnan(losses.nll_loss(logits, target, reduction=reduction).numpy()).tolist() == found.tolist()
    for classes in (200, 256, 300):  # 256 is not a number of the target's dtype
        bytes_ = on_cpu([0, 199, 255, 7], dtypes.uint8)
        costs = losses.cross_entropy(on_cpu(np.zeros((4, classes)), dtypes.float32), bytes_, reduction="none")
        assert np.isnan(costs.numpy()).tolist() == [False, False, classes == 200, False]
