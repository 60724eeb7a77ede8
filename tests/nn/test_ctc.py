"""ctc_loss against the sum over all alignments, one by one."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.nn import functional as F

RANDOM = np.random.default_rng(3)


def by_alignments(log_probs: Any, target: list[int]) -> float:
    """-log Σ over all paths that collapse to the target; log_probs (T, C), blank 0."""
    total = 0.0
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        collapsed = [key for key, _ in itertools.groupby(path) if key]
        if collapsed == target:
            total += math.exp(sum(log_probs[at, each] for at, each in enumerate(path)))
    return -math.log(total) if total else math.inf


def drawn(times: int, samples: int, classes: int) -> Any:
    scores = RANDOM.normal(size=(times, samples, classes)).astype(np.float32)
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


TARGETS = [[1, 2], [1, 1], [2], [], [2, 1, 2]]
LENGTHS = [4, 3, 5, 2, 2]


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_it_sums_over_all_alignments(device: str) -> None:
    log_probs = drawn(5, 5, 3)
    padded = [[*each, 0, 0, 0][:3] for each in TARGETS]
    given = wg.asarray(log_probs, device=device)
    found = F.ctc_loss(
        given, wg.asarray(padded, device=device), LENGTHS, list(map(len, TARGETS)), reduction="none"
    ).numpy()
    wanted = [
        by_alignments(log_probs[:length, at], target)
        for at, (length, target) in enumerate(zip(LENGTHS, TARGETS, strict=True))
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    assert math.isinf(found[4])  # three classes in two times


def test_targets_may_be_one_after_the_other_and_losses_reduced() -> None:
    log_probs, lengths = wg.asarray(drawn(4, 2, 3)), wg.asarray([4, 4])
    rows = F.ctc_loss(log_probs, wg.asarray([[1, 2], [2, 0]]), lengths, wg.asarray([2, 1]), reduction="none")
    line = wg.asarray([1, 2, 2])
    for reduction, wanted in (("sum", rows.sum()), ("mean", (rows / wg.asarray([2.0, 1.0])).mean())):
        found = F.ctc_loss(log_probs, line, [4, 4], [2, 1], reduction=reduction)
        np.testing.assert_allclose(found.item(), wanted.item(), rtol=1e-5)
    alone = F.ctc_loss(log_probs[:, 1], wg.asarray([2]), [4], [1], reduction="none")
    np.testing.assert_allclose(alone.item(), rows.numpy()[1], rtol=1e-5)


def test_the_gradient_of_scores_is_the_slope() -> None:
    scores = RANDOM.normal(size=(4, 2, 3))

    def loss(values: Any) -> wg.Tensor:
        log_probs = wg.log_softmax(values, axis=-1)
        return F.ctc_loss(log_probs, wg.asarray([[1, 2], [1, 1]]), [3, 4], [2, 2], reduction="sum")

    x: Any = wg.asarray(scores).requires_grad_()
    loss(x).backward()
    for place in ((0, 0, 1), (2, 1, 0), (3, 0, 2), (1, 1, 1)):
        step = np.zeros_like(scores)
        step[place] = 1e-4
        slope = (loss(wg.asarray(scores + step)) - loss(wg.asarray(scores - step))).item() / 2e-4
        np.testing.assert_allclose(x.grad.numpy()[place], slope, atol=1e-5)


def test_an_infinite_loss_can_count_for_nothing() -> None:
    x: Any = wg.asarray(drawn(1, 1, 3)).requires_grad_()
    loss = F.ctc_loss(x, wg.asarray([[1, 2]]), [1], [2], zero_infinity=True)
    loss.backward()
    assert loss.item() == 0.0
    assert not x.grad.numpy().any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_lengths": [9]}, "there are 2 times"),
        ({"target_lengths": [1, 1]}, "one length for each of 1"),
        ({"blank": 3}, "blank is one of 3 classes"),
        ({"reduction": "most"}, "reduction must be one of"),
        ({"target_lengths": [3]}, "target_lengths go to 3"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"targets": wg.asarray([[1]]), "input_lengths": [2], "target_lengths": [1]}
    with pytest.raises(ValueError, match=message):
        F.ctc_loss(wg.zeros((2, 1, 3)), **{**given, **change})
