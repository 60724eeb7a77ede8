"""Recurrent layers, step by step with NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.operators.single import run

GENERATOR = np.random.default_rng(13)
TIMES, BATCH, INPUTS, SIZE = 4, 3, 2, 5
LENGTHS = np.array([4, 2, 1], np.int32)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def drawn(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def clipped(x: Any, limit: float) -> Any:
    return np.clip(x, -limit, limit) if limit else x


def step(kind: str, x: Any, state: list[Any], weights: Any, options: dict[str, Any]) -> list[Any]:
    """The next state of one sample."""
    w, r, bias, holes = weights
    of_x, of_h = np.split(bias, 2)
    limit, h = options.get("clip", 0.0), state[0]
    if kind == "RNN":
        return [np.tanh(clipped(w @ x + r @ h + of_x + of_h, limit))]
    if kind == "GRU":
        (wz, wr, wn), (rz, rr, rn) = np.split(w, 3), np.split(r, 3)
        (bz, br, bn), (cz, cr, cn) = np.split(of_x, 3), np.split(of_h, 3)
        keep = sigmoid(clipped(wz @ x + rz @ h + bz + cz, limit))
        reset = sigmoid(clipped(wr @ x + rr @ h + br + cr, limit))
        if options.get("linear_before_reset"):
            new = wn @ x + bn + reset * (rn @ h + cn)
        else:
            new = wn @ x + bn + rn @ (reset * h) + cn
        return [(1 - keep) * np.tanh(clipped(new, limit)) + keep * h]
    pi, po, pf = np.split(holes, 3)
    i, o, f, c = np.split(w @ x + r @ h + of_x + of_h, 4)
    i = sigmoid(clipped(i + pi * state[1], limit))
    f = 1 - i if options.get("input_forget") else sigmoid(clipped(f + pf * state[1], limit))
    cell = f * state[1] + i * np.tanh(clipped(c, limit))
    return [sigmoid(clipped(o + po * cell, limit)) * np.tanh(cell), cell]


def expected_of(
    kind: str, x: Any, weights: Any, lengths: Any, first: list[Any], directions: list[bool], options: Any
) -> tuple[Any, list[Any]]:
    y = np.zeros((TIMES, len(directions), BATCH, SIZE))
    last = [np.zeros((len(directions), BATCH, SIZE)) for _ in first]
    for direction, sample in itertools.product(range(len(directions)), range(BATCH)):
        own = [np.asarray(each[direction], np.float64) for each in weights]
        state = [each[direction, sample].astype(np.float64) for each in first]
        times = range(lengths[sample])
        for at in reversed(times) if directions[direction] else times:
            state = step(kind, x[at, sample], state, own, options)
            y[at, direction, sample] = state[0]
        for each, value in zip(last, state, strict=True):
            each[direction, sample] = value
    return y, last


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {}),
    ("RNN", {"clip": 0.3}),
    ("GRU", {}),
    ("GRU", {"linear_before_reset": 1}),
    ("GRU", {"clip": 0.3, "linear_before_reset": 1}),
    ("LSTM", {}),
    ("LSTM", {"clip": 0.3}),
    ("LSTM", {"input_forget": 1}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("is_ragged", [False, True])
def test_layers(kind: str, options: dict[str, Any], direction: str, is_ragged: bool) -> None:
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    count, rows, states = len(directions), GATES[kind] * SIZE, 2 if kind == "LSTM" else 1
    x, lengths = drawn(TIMES, BATCH, INPUTS), LENGTHS if is_ragged else None
    weights = [drawn(count, rows, INPUTS), drawn(count, rows, SIZE), drawn(count, 2 * rows)]
    first = [drawn(count, BATCH, SIZE) for _ in range(states)]
    holes = drawn(count, 3 * SIZE)
    more = [holes] if kind == "LSTM" else []
    found, *last = run(
        kind, x, *weights, lengths, *first, *more,
        outputs=1 + states, direction=direction, hidden_size=SIZE, **options,
    )  # fmt: skip
    counts = LENGTHS if is_ragged else [TIMES] * BATCH
    expected, ends = expected_of(kind, x, [*weights, holes], counts, first, directions, options)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
    for each, end in zip(last, ends, strict=True):
        np.testing.assert_allclose(each, end, 1e-4, 1e-5)


@pytest.mark.parametrize("kind", list(GATES))
def test_a_layout_with_the_batch_first(kind: str) -> None:
    rows, states = GATES[kind] * SIZE, 2 if kind == "LSTM" else 1
    x, weights = drawn(TIMES, BATCH, INPUTS), [drawn(1, rows, INPUTS), drawn(1, rows, SIZE)]
    first = [drawn(1, BATCH, SIZE) for _ in range(states)]
    settings: Any = {"outputs": 1 + states, "hidden_size": SIZE}
    y, *last = run(kind, x, *weights, None, None, *first, **settings)
    turned = [each.swapaxes(0, 1).copy() for each in first]
    other, *ends = run(kind, x.swapaxes(0, 1).copy(), *weights, None, None, *turned, layout=1, **settings)
    np.testing.assert_allclose(other, y.transpose(2, 0, 1, 3), 1e-5, 1e-6)
    for each, end in zip(last, ends, strict=True):
        np.testing.assert_allclose(end, each.swapaxes(0, 1), 1e-5, 1e-6)


ACTIVATIONS: list[tuple[str, list[float], list[float], Any]] = [
    ("Relu", [], [], lambda x: np.maximum(x, 0)),
    ("Affine", [0.5], [0.25], lambda x: 0.5 * x + 0.25),
    ("LeakyRelu", [0.25], [], lambda x: np.where(x > 0, x, 0.25 * x)),
    ("ThresholdedRelu", [0.5], [], lambda x: np.where(x > 0.5, x, 0)),
    ("ScaledTanh", [0.5], [2.0], lambda x: 0.5 * np.tanh(2 * x)),
    ("HardSigmoid", [0.5], [0.25], lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
    ("Elu", [0.5], [], lambda x: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0)))),
    ("Softsign", [], [], lambda x: x / (1 + np.abs(x))),
    ("softplus", [], [], lambda x: np.logaddexp(x, 0)),
]


@pytest.mark.parametrize(("name", "alphas", "betas", "function"), ACTIVATIONS)
def test_other_activations(name: str, alphas: list[float], betas: list[float], function: Any) -> None:
    x, w, r = drawn(1, BATCH, INPUTS), drawn(1, SIZE, INPUTS), drawn(1, SIZE, SIZE)
    settings: dict[str, Any] = {"activations": [name]}
    settings |= {"activation_alpha": alphas} if alphas else {}
    settings |= {"activation_beta": betas} if betas else {}
    (found,) = run("RNN", x, w, r, **settings)
    np.testing.assert_allclose(found[0, 0], function(x[0] @ w[0].T), 1e-4, 1e-5)


def test_numbers_of_activations_are_taken_in_order_by_those_that_have_some() -> None:
    x, w, r = drawn(1, 1, INPUTS), drawn(1, 4 * SIZE, INPUTS), drawn(1, 4 * SIZE, SIZE)
    names = ["HardSigmoid", "Tanh", "Affine"]
    (found,) = run(
        "LSTM", x, w, r, activations=names, activation_alpha=[0.5, 2.0], activation_beta=[0.25, 1.0]
    )
    i, o, _, c = np.split(w[0] @ x[0, 0], 4)
    gates = [np.clip(0.5 * each + 0.25, 0, 1) for each in (i, o)]
    np.testing.assert_allclose(found[0, 0, 0], gates[1] * (2 * gates[0] * np.tanh(c) + 1), 1e-4, 1e-5)


def test_what_is_not_there_is_refused() -> None:
    x, w, r = drawn(1, 1, 2), drawn(1, 3, 2), drawn(1, 3, 3)
    with pytest.raises(wg.ModelFileError, match="'Swish'"):
        run("RNN", x, w, r, activations=["Swish"])
    with pytest.raises(wg.ModelFileError, match="bidirectional"):
        run("RNN", x, w, r, direction="bidirectional")
