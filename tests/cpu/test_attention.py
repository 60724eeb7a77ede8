"""Attention in blocks: however they are cut, and shared by threads, results are those of the table's row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import CPU
from webgrad import dtypes
from webgrad.cpu import attention
from webgrad.graph.node import signature
from webgrad.ops.table import TABLE

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("scores", [1, 50, 400, 1 << 20])
@pytest.mark.parametrize("options", [(False, 0, False), (True, 0, False), (True, 7, True), (True, 40, False)])
def test_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch, scores: int, options: tuple[Any, ...]) -> None:
    monkeypatch.setattr(attention, "SCORES", scores)
    monkeypatch.setattr(attention, "WORTH_IT", 1)
    draw = np.random.default_rng(0)
    q, k, v = (draw.standard_normal(shape) for shape in ((2, 6, 19, 8), (2, 3, 31, 8), (2, 3, 31, 5)))
    mask = np.where(draw.random((1, 6, 1, 31)) < 0.8, 0.0, -np.inf)
    sig = signature(TABLE["attention"], (2, 6, 19, 5), dtypes.float64, CPU, (*options, 0))
    compute = attention.attention(sig, np.dtype(np.float64))
    for length in (0, 1, 13, 31):
        arrays: list[Array] = [q, k, v, np.array(0.5), np.array(length)]
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(compute(*arrays), TABLE["attention"].numpy(sig, *arrays), atol=1e-12)
            arrays.append(mask)
            np.testing.assert_allclose(compute(*arrays), TABLE["attention"].numpy(sig, *arrays), atol=1e-12)


def test_layouts_that_blas_cannot_read() -> None:
    draw = np.random.default_rng(1)
    q, k, v = (draw.standard_normal((1, 4, 9, 2)).swapaxes(1, 3)[..., ::-1] for _ in range(3))
    sig = signature(TABLE["attention"], q.shape, dtypes.float64, CPU, (False, 0, False, 0))
    arrays = [q, k, v, np.array(1.0), np.array(9)]
    wanted = TABLE["attention"].numpy(sig, *arrays)
    np.testing.assert_allclose(attention.attention(sig, np.dtype(np.float64))(*arrays), wanted, atol=1e-12)
