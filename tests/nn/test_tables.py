"""Tables of vectors, read one by one and in bags, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.nn import functional as F

RANDOM = np.random.default_rng(2)
TABLE = RANDOM.normal(size=(6, 3)).astype(np.float32)
LINE, STARTS = [0, 2, 2, 5, 1, 1, 3], [0, 3, 3, 5]
BAGS = [[0, 2, 2], [], [5, 1], [1, 3]]
FOLDS: dict[str, Any] = {
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0) if len(rows) else np.zeros(3),
    "max": lambda rows: rows.max(0) if len(rows) else np.zeros(3),
}


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("mode", FOLDS)
def test_bags_begin_at_offsets(mode: str, device: str) -> None:
    weight: Any = wg.asarray(TABLE, device=device).requires_grad_()
    x, starts = wg.asarray(LINE, device=device), wg.asarray(STARTS, device=device)
    found = F.embedding_bag(x, weight, starts, mode=mode)
    wanted = [FOLDS[mode](TABLE[bag] if bag else TABLE[:0]) for bag in BAGS]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    found.sum().backward()
    assert (weight.grad.numpy()[4] == 0).all()
    total = {"sum": len(LINE), "mean": 3, "max": 3}[mode] * 3
    np.testing.assert_allclose(weight.grad.numpy().sum(), total, rtol=1e-5)


@pytest.mark.parametrize("mode", FOLDS)
def test_bags_may_be_rows_and_padding_counts_for_nothing(mode: str) -> None:
    rows = [[0, 2, 4], [4, 4, 4], [1, 4, 1]]
    found = F.embedding_bag(wg.asarray(rows), wg.asarray(TABLE), mode=mode, padding_idx=4).numpy()
    wanted = [FOLDS[mode](TABLE[[each for each in bag if each != 4]]) for bag in rows]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_entries_are_weighed_and_the_last_offset_may_be_the_end() -> None:
    weights = RANDOM.uniform(0, 1, 7).astype(np.float32)
    found = F.embedding_bag(
        wg.asarray(LINE),
        wg.asarray(TABLE),
        wg.asarray([0, 4, 7]),
        mode="sum",
        per_sample_weights=wg.asarray(weights),
        include_last_offset=True,
    ).numpy()
    rows = TABLE[LINE] * weights[:, None]
    np.testing.assert_allclose(found, [rows[:4].sum(0), rows[4:].sum(0)], rtol=1e-5)
    with pytest.raises(wg.ArgumentError, match="per_sample_weights are for mode='sum'"):
        F.embedding_bag(wg.asarray([[1]]), wg.asarray(TABLE), per_sample_weights=wg.ones((1, 1)))
    with pytest.raises(wg.ShapeError, match="and offsets"):
        F.embedding_bag(wg.asarray([1]), wg.asarray(TABLE))


def test_rows_that_are_read_get_at_most_a_norm() -> None:
    weight: Any = wg.asarray([[3.0, 4.0], [3.0, 4.0], [0.1, 0.0]]).requires_grad_()
    found = F.embedding(wg.asarray([0, 2]), weight, max_norm=1.0)
    np.testing.assert_allclose(found.numpy(), [[0.6, 0.8], [0.1, 0.0]], rtol=1e-5)
    np.testing.assert_allclose(weight.numpy()[:2], [[0.6, 0.8], [3.0, 4.0]], rtol=1e-5)


def test_gradients_by_frequency() -> None:
    weight: Any = wg.asarray(TABLE).requires_grad_()
    found = F.embedding(wg.asarray([1, 1, 2]), weight, scale_grad_by_freq=True)
    np.testing.assert_array_equal(found.numpy(), TABLE[[1, 1, 2]])
    (found * wg.asarray([[1.0], [3.0], [5.0]])).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy()[:3, 0], [0.0, 2.0, 5.0])


def test_a_bag_layer_keeps_its_padding_and_takes_rows_that_are_there() -> None:
    layer = wg.nn.EmbeddingBag(5, 3, mode="sum", padding_idx=-1)
    assert layer.padding_idx == 4
    assert not layer.weight.numpy()[4].any()
    given = wg.nn.EmbeddingBag.from_pretrained(wg.eye(3), mode="max")
    assert given(wg.asarray([[0, 2]])).tolist() == [[1.0, 0.0, 1.0]]
    assert not given.weight.requires_grad


def test_rare_classes_lie_in_clusters() -> None:
    wg.random.seed(1)
    layer = wg.nn.AdaptiveLogSoftmaxWithLoss(8, 12, cutoffs=[4, 7], div_value=2.0)
    assert [*layer.state_dict()] == [
        "head.weight", "tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight", "tail.1.1.weight"
    ]  # fmt: skip
    x, target = wg.asarray(RANDOM.normal(size=(5, 8)).astype(np.float32)), [0, 3, 5, 11, 7]
    whole = layer.log_prob(x).numpy()
    np.testing.assert_allclose(np.exp(whole).sum(-1), 1.0, rtol=1e-5)
    output, loss = layer(x, wg.asarray(target))
    np.testing.assert_allclose(output.numpy(), whole[range(5), target], rtol=1e-5)
    np.testing.assert_allclose(loss.item(), -output.numpy().mean(), rtol=1e-5)
    assert layer.predict(x).tolist() == whole.argmax(-1).tolist()
    with pytest.raises(wg.ArgumentError, match="cutoffs are integers that rise"):
        wg.nn.AdaptiveLogSoftmaxWithLoss(8, 12, cutoffs=[7, 4])
