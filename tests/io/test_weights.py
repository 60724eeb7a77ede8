"""An open file as a mapping: lazy, shared on the cpu, and what is given outlives it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import webgrad as wg


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.gguf"
    matrix = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    quantised = wg.quantise(wg.asarray(matrix, device="cpu"), "Q8_0")
    wg.io.save(path, {"plain": matrix, "quantised": quantised}, {"a": 1})
    return path


def test_it_is_a_mapping(path: Path) -> None:
    weights = wg.io.open(path)
    assert list(weights) == ["plain", "quantised"]
    assert len(weights) == 2
    assert "plain" in weights
    assert "none" not in weights
    assert weights.get("none") is None
    assert {weights: 1}[weights] == 1
    assert weights != wg.io.open(path)
    assert weights.path == path
    assert weights.metadata == {"a": 1}
    assert weights.nbytes == 4 * 64 * 4 + 4 * 68
    assert "2 tensors" in repr(weights)
    with pytest.raises(KeyError):
        weights["none"]
    for ask in (weights.shape, weights.form, weights.host, weights.read):
        with pytest.raises(wg.ModelFileError, match=r"no tensor 'none'; it has 2: plain, quantised"):
            ask("none")


def test_on_the_cpu_numbers_are_not_copied(path: Path) -> None:
    weights = wg.io.open(path)
    host, tensor = weights.host("plain"), weights.read("plain", "cpu")
    assert isinstance(host, np.ndarray)
    assert isinstance(tensor, wg.Tensor)
    assert np.shares_memory(tensor.node.storage, host)
    loaded = wg.io.load(path, device="cpu")["plain"]
    assert not np.shares_memory(loaded.node.storage, host)


@pytest.mark.skipif(os.name == "nt", reason="Windows lets no file be replaced that is mapped")
def test_what_was_given_stays(path: Path) -> None:
    with wg.io.open(path) as weights:
        host, tensor = weights.host("plain"), weights.read("plain", "cpu")
        expected = np.asarray(host).copy()
    with pytest.raises(wg.ModelFileError, match="is closed"):
        weights.host("plain")
    assert weights.shape("plain") == (4, 64)
    assert "closed" in repr(weights)
    wg.io.save(path, {"plain": np.zeros(1, np.float32)})  # another file in its place
    np.testing.assert_array_equal(host, expected)
    np.testing.assert_array_equal(np.asarray(tensor), expected)


@pytest.mark.gpu
def test_on_a_gpu(path: Path) -> None:
    weights = wg.io.open(path)
    for name in weights:
        ours, theirs = weights.read(name, "webgpu"), weights.read(name, "cpu")
        assert ours.device.name.startswith("webgpu")
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)
