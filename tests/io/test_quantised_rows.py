"""Quantised rows on the host: rows are taken and put together as those of the weights are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg

MATRIX = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)


def blocks(format: str = "Q4_1") -> wg.io.Blocks:
    data = wg.quantise(wg.asarray(MATRIX, device="cpu"), format).to_blocks()
    return wg.io.Blocks(format, MATRIX.shape, np.frombuffer(data, np.uint8).reshape(5, -1))


def weights(given: wg.io.Blocks) -> np.ndarray[Any, Any]:
    return given.tensor("cpu").dequantise().numpy()


def test_rows() -> None:
    given = blocks()
    expected = weights(given)
    assert given.nbytes == 5 * 40
    np.testing.assert_array_equal(weights(given.take([3, 0, 3])), expected[[3, 0, 3]])
    np.testing.assert_array_equal(weights(given.take(slice(1, 4))), expected[1:4])
    assert np.shares_memory(given.take(slice(1, 4)).data, given.data)
    both = wg.io.Blocks.concat([given, given.take(np.arange(2))])
    np.testing.assert_array_equal(weights(both), np.concatenate([expected, expected[:2]]))


def test_what_is_refused() -> None:
    given = blocks()
    with pytest.raises(wg.IndexingError, match="out of bounds"):
        given.take([5])
    with pytest.raises(wg.IndexingError, match="a list of indices"):
        given.take(3)
    with pytest.raises(wg.ShapeError, match="differ in format"):
        wg.io.Blocks.concat([given, blocks("Q8_0")])
    with pytest.raises(wg.ArgumentError, match="one at least"):
        wg.io.Blocks.concat([])
    with pytest.raises(wg.ArgumentError, match="none of the formats"):
        wg.io.Blocks("Q9", (5, 64), given.data)
    with pytest.raises(wg.ShapeError, match="multiple of 32"):
        wg.io.Blocks("Q4_1", (5, 63), given.data)
    with pytest.raises(wg.ShapeError, match=r"is uint8 of shape \(5, 40\)"):
        wg.io.Blocks("Q4_1", (5, 64), given.data[:4])
    cube = wg.io.Blocks("Q4_1", (5, 1, 64), given.data)
    assert cube.tensor("cpu").shape == (5, 1, 64)
    with pytest.raises(wg.ShapeError, match="for matrices"):
        cube.take([0])


def test_rows_by_bools_or_by_none_of_what_names_rows() -> None:
    blocks = wg.io.Blocks("Q8_0", (3, 32), np.arange(102, dtype=np.uint8).reshape(3, 34))
    assert blocks.take([True, False, True]).data[:, 0].tolist() == [0, 68]
    assert blocks.take([]).shape == (0, 32)
    for rows in ([1.5], "a", None, [True], 1):
        with pytest.raises(wg.IndexingError, match=r"Blocks\.take"):
            blocks.take(rows)
