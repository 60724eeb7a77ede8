"""The rest of com.microsoft, against NumPy and plain loops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.onnx.models import floats, loaded, model, node

GENERATOR = np.random.default_rng(9)
OPSETS = {"": 18, "com.microsoft": 1}


def ran(tmp_path: Path, kind: str, *inputs: Any, weights: Any = (), **attributes: Any) -> Any:
    """What an operator gives; inputs that `weights` names by place are the model's."""
    named = {f"i{at}": np.asarray(each) for at, each in enumerate(inputs)}
    known = {name: each for at, (name, each) in enumerate(named.items()) if at in weights}
    given = {name: each for name, each in named.items() if name not in known}
    types = {name: (each.dtype.name, list(each.shape)) for name, each in given.items()}
    nodes = [node(kind, " ".join(named), "y", domain="com.microsoft", **attributes)]
    m = loaded(tmp_path, model(nodes, types, {"y": None}, known, opset=OPSETS))
    m(**given)
    return m(**given)["y"].numpy()


def normal(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape, np.float32)


def test_spectra_are_pairs(tmp_path: Path) -> None:
    x = normal(3, 8)
    pairs = np.fft.rfft(x)
    found = ran(tmp_path, "Rfft", x, signal_ndim=1, normalized=0, onesided=1)
    np.testing.assert_allclose(found, np.stack([pairs.real, pairs.imag], -1), rtol=1e-4, atol=1e-5)
    back = ran(tmp_path, "Irfft", found, signal_ndim=1, normalized=0, onesided=1)
    np.testing.assert_allclose(back, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "other"), [("ComplexMul", np.asarray), ("ComplexMulConj", np.conj)])
def test_products_of_pairs(tmp_path: Path, kind: str, other: Any) -> None:
    a, b = normal(5, 2), normal(5, 2)
    expected = a.view(np.complex64)[:, 0] * other(b.view(np.complex64)[:, 0])
    found = ran(tmp_path, kind, a, b)
    np.testing.assert_allclose(found, np.stack([expected.real, expected.imag], -1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_ngrams_are_not_repeated(tmp_path: Path, size: int) -> None:
    tokens = np.asarray([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4], [1, 2, 3, 4, 5]])
    scores = normal(3, 7)
    expected = scores.copy()
    for row, line in enumerate(tokens.tolist()):
        for at in range(len(line) - size + 1):
            if line[at : at + size - 1] == line[len(line) - size + 1 :]:
                expected[row, line[at + size - 1]] = -np.inf
    assert np.array_equal(ran(tmp_path, "NGramRepeatBlock", tokens, scores, ngram_size=size), expected)


def bucket_of(distance: int, rows: int, farthest: int, both: bool) -> int:
    """T5's, for one pair: how far a key lies behind its query."""
    first = 0
    if both:
        rows //= 2
        first, distance = (rows if distance > 0 else 0), abs(distance)
    else:
        distance = max(-distance, 0)
    exact = rows // 2
    if distance < exact:
        return first + distance
    far = exact + int(math.log(distance / exact) / math.log(farthest / exact) * (rows - exact))
    return first + min(far, rows - 1)


@pytest.mark.parametrize("both", [0, 1])
def test_biases_by_distance(tmp_path: Path, both: int) -> None:
    table = normal(16, 3)
    found = ran(
        tmp_path,
        "RelativePositionBias",
        *(table, np.asarray(30), np.asarray(37)),
        weights=(1, 2),
        max_distance=20,
        is_bidirectional=both,
    )
    rows = [[bucket_of(key - query, 16, 20, bool(both)) for key in range(37)] for query in range(30)]
    assert np.array_equal(found, table[np.asarray(rows)].transpose(2, 0, 1)[None])


def test_words_of_characters(tmp_path: Path) -> None:
    words = np.asarray([[1, 2, 3, 0, 0], [4, 5, 6, 7, 8], [3, 2, 0, 0, 0], [0, 0, 0, 0, 0]], np.int32)
    weight, bias, table = normal(6, 1, 3, 4), normal(6), normal(12, 4)
    expected = np.zeros((4, 6), np.float32)
    for row, word in enumerate(words):
        length = int((word > 0).sum())
        parts = [
            np.tanh((weight[:, 0] * table[word[at : at + 3]]).sum((1, 2)) + bias)
            for at in range(max(length - 2, 1))
        ]
        expected[row] = np.max(parts, 0) if length else 0
    found = ran(tmp_path, "WordConvEmbedding", words, weight, bias, table)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_boxes_of_pictures(tmp_path: Path) -> None:
    x = normal(2, 3, 7, 9)
    boxes, samples = floats([0, 0, 1, 1], [-1, 0, 1, 1]), np.asarray([1, 0], np.int32)
    size = np.asarray([7, 9], np.int32)
    given = {"weights": (3,), "extrapolation_value": 2.5}
    found = ran(tmp_path, "CropAndResize", x, boxes, samples, size, **given)
    np.testing.assert_allclose(found[0], x[1], rtol=1e-5, atol=1e-6)
    assert (found[1, :, :3] == 2.5).all()
    np.testing.assert_allclose(found[1, :, 3::3], x[0, :, 0::6], rtol=1e-5, atol=1e-6)


def test_what_is_computed_on_the_host_is_waited_for(tmp_path: Path) -> None:
    x = normal(4, 4) + 4 * np.eye(4, dtype=np.float32)
    nodes = [node("Inverse", "x", "y", called="turned", domain="com.microsoft")]
    m = loaded(tmp_path, model(nodes, {"x": [4, 4]}, {"y": None}, opset=OPSETS))
    for _ in range(2):
        np.testing.assert_allclose(m(x)["y"].numpy(), np.linalg.inv(x), rtol=1e-4, atol=1e-5)
    assert m.waits == ("turned",)


def test_small_ones(tmp_path: Path) -> None:
    x = normal(2, 3)
    assert ran(tmp_path, "ExpandDims", x, np.asarray(-1), weights=(1,)).shape == (2, 3, 1)
    assert ran(tmp_path, "IsAllFinite", x).item() is True
    assert ran(tmp_path, "IsAllFinite", floats(1, np.inf), isnan_only=1).item() is True
    assert ran(tmp_path, "IsAllFinite", floats(1, np.inf)).item() is False
    assert ran(tmp_path, "Range", floats(1).reshape(()), floats(4).reshape(()), weights=(0, 1)).tolist() == [
        1,
        2,
        3,
    ]
    line = np.arange(9, dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(line, 4)[::2]
    assert np.array_equal(ran(tmp_path, "UnfoldTensor", line, dim=0, size=4, step=2), windows)
    assert np.array_equal(ran(tmp_path, "TorchEmbedding", x, np.asarray([1, 0, 1])), x[[1, 0, 1]])
