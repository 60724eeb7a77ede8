"""Models held against the cpu, and refused where a kernel is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.models.tiny import CONFIG, weights_of, write_folder
from tests.tools.checking.faults import library_fault
from webgrad.tools.checking.models import LEAST, Step, check_embedding, check_language, cosine

pytestmark = pytest.mark.gpu

CONFIG_OF_ONE = CONFIG | {"num_hidden_layers": 1, "vocab_size": 48, "intermediate_size": 64}


@pytest.fixture
def models(tmp_path: Path) -> tuple[Any, Any]:
    """A small language model on both devices."""
    folder = write_folder(tmp_path, CONFIG_OF_ONE, weights_of(CONFIG_OF_ONE))
    return wg.models.load(folder, device="webgpu"), wg.models.load(folder, device="cpu")


@pytest.mark.parametrize(("cache_dtype", "tolerance"), [("float32", 1e-4), ("float16", 5e-3)])
def test_next_logits_are_those_of_the_whole_text(tmp_path: Path, cache_dtype: str, tolerance: float) -> None:
    folder = write_folder(tmp_path, CONFIG_OF_ONE, weights_of(CONFIG_OF_ONE))
    model: Any = wg.models.load(folder, device="cpu", cache_dtype=cache_dtype)
    ids = [3, 9, 4, 4, 11]
    whole = model.logits(ids).numpy()
    for length in (2, 3, 5, 1, 4):  # from what is held, and from another text
        np.testing.assert_allclose(model.next_logits(ids[:length]).numpy(), whole[length - 1], atol=tolerance)
    with pytest.raises(wg.ArgumentError, match="no token to go on from"):
        model.next_logits([])


def test_a_model_that_is_right(models: tuple[Any, Any]) -> None:
    told: list[Step] = []
    report = check_language(*models, [3, 9, 4], 3, told.append)
    assert report.ok, str(report.nodes)
    assert told == report.steps
    assert len(report.steps) == 3
    assert all(each.cosine > 0.99999 and each.same_top for each in report.steps)
    assert report.nodes is not None
    assert report.nodes.kernels > 5


def test_a_model_whose_kernel_is_wrong_is_refused(models: tuple[Any, Any]) -> None:
    with library_fault("fn wg_sigmoid(x: F) -> F {", "fn wg_sigmoid(y: F) -> F { let x = y * F(-1.0);"):
        report = check_language(*models, [3, 9, 4], 8, lambda step: None)
    assert not report.ok
    refused = report.refused
    assert refused is not None
    assert refused.cosine < LEAST
    assert "BELOW" in str(refused)
    assert report.steps[-1] is refused  # no step after it
    assert report.nodes is not None
    assert report.nodes.first is not None
    assert report.nodes.first.op == "sigmoid"


class _Vectors:
    """A model that embeds texts, by their lengths."""

    def __init__(self, device: str) -> None:
        self.device = wg.open_device(device)

    def embed(self, texts: list[str]) -> wg.Tensor:
        numbers = np.array([[len(text), text.count("a"), 1] for text in texts], np.float32)
        return wg.gelu(wg.asarray(numbers, device=self.device) - 0.5)


def test_vectors_of_texts() -> None:
    texts = ["a", "banana", "xyz"]
    report = check_embedding(_Vectors("webgpu"), _Vectors("cpu"), texts, lambda step: None)
    assert report.ok
    assert [each.name for each in report.steps] == [
        "text 1 ('a')",
        "text 2 ('banana')",
        "text 3 ('xyz')",
    ]
    with library_fault("0.737438381", "-0.737438381"):
        report = check_embedding(_Vectors("webgpu"), _Vectors("cpu"), texts, lambda step: None)
    assert report.nodes is not None
    assert report.nodes.first is not None
    assert report.nodes.first.op == "gelu"


def test_a_cosine_that_is_none() -> None:
    assert not Step("zeros", cosine(np.zeros(3), np.ones(3))).ok
    assert not Step("nan", cosine(np.array([np.nan]), np.ones(1))).ok
