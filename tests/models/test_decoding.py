"""What a step costs on a GPU: kernels a layer, submissions a token, and nothing made after the second one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from tests.models.test_llama import made

pytestmark = pytest.mark.gpu
MADE = ("pipelines_compiled", "bind_groups_created", "buffers_created", "queues_resolved")
PROMPT = [5, 17, 3, 90, 41]


def counted(model: Any, tokens: int, **sampling: Any) -> list[dict[str, Any]]:
    """The device's counters after each token."""
    model.stop_ids = frozenset()
    return [dict(wg.stats("webgpu:0")) for _ in model.generate_ids(PROMPT, max_tokens=tokens, **sampling)]


def test_kernels_of_a_layer(tmp_path: Path) -> None:
    launched = []
    for layers in (4, 6):
        model, _, _ = made(tmp_path / str(layers), "webgpu:0", num_hidden_layers=layers)
        *_, before, after = counted(model, 4, temperature=0)
        launched.append(after["dispatches"] - before["dispatches"])
    assert (launched[1] - launched[0]) / 2 == 10


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 0.8, "seed": 1, "top_k": 5}])
def test_a_step_is_submitted_once_and_read_once_and_makes_nothing(
    tmp_path: Path, sampling: dict[str, Any]
) -> None:
    model, _, _ = made(tmp_path, "webgpu:0")
    second, *later = counted(model, 6, **sampling)[1:]
    assert [each["submissions"] - second["submissions"] for each in later] == [2, 4, 6, 8]
    for name in MADE:
        assert {each[name] for each in later} == {second[name]}, name
