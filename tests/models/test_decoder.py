"""What a step costs on a GPU: kernels a layer, submissions a token, and nothing made after the second one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.models.test_llama import DEVICES, made
from tests.schedule.graphs import INTEGRATED, PORTABLE, launches
from webgrad.device_profile import DeviceProfile
from webgrad.functions.array import evaluation
from webgrad.models.caches import Cache, Places
from webgrad.models.decoder import CHUNK_COST, CHUNKS, chunk_sizes

MADE = ("pipelines_compiled", "bind_groups_created", "buffers_created", "queues_resolved")
PROMPT = [5, 17, 3, 90, 41]


def counted(model: Any, tokens: int, **sampling: Any) -> list[dict[str, Any]]:
    """The device's counters after each token."""
    model.stop_ids = frozenset()
    return [dict(wg.stats("webgpu:0")) for _ in model.generate_ids(PROMPT, max_tokens=tokens, **sampling)]


@pytest.mark.gpu
def test_kernels_of_a_layer(tmp_path: Path) -> None:
    launched = []
    for layers in (4, 5):
        model, _, _ = made(tmp_path / str(layers), "webgpu:0", num_hidden_layers=layers)
        *_, before, after = counted(model, 4, temperature=0)
        launched.append(after["dispatches"] - before["dispatches"])
    assert launched[1] - launched[0] == 10


@pytest.mark.parametrize("profile", [INTEGRATED, PORTABLE])
@pytest.mark.parametrize(("tokens", "expected"), [(1, 11), (32, 11)])
def test_kernels_of_a_layer_on_other_devices(
    tmp_path: Path, profile: DeviceProfile, tokens: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the cpu nothing is computed here: what it would be on a GPU is planned."""
    monkeypatch.setattr(evaluation, "LONG", 1 << 30)  # modules are not computed apart
    counts = []
    for layers in (5, 6):
        model, _, _ = made(tmp_path / str(layers), "cpu", num_hidden_layers=layers)
        settings, decoder = model.settings, model.decoder
        decoder.prepare(1024)
        caches = [Cache(settings, 1024, model.device) for _ in range(layers)]
        wg.eval(*[each.stored for each in caches])
        position = wg.asarray(7, dtype=wg.int32, device="cpu")
        ids = wg.asarray([3] * tokens, dtype=wg.int32, device="cpu")
        with wg.no_grad():
            states = decoder(ids, Places.after(position, tokens, model.device), caches)
            counts.append(len(launches(states, *[each.stored for each in caches], profile=profile)))
    assert counts[1] - counts[0] == expected


@pytest.mark.gpu
@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 0.8, "seed": 1, "top_k": 5}])
def test_a_step_is_submitted_once_and_read_once_and_makes_nothing(
    tmp_path: Path, sampling: dict[str, Any]
) -> None:
    model, _, _ = made(tmp_path, "webgpu:0")
    second, *later = counted(model, 6, **sampling)[1:]
    assert [each["submissions"] - second["submissions"] for each in later] == [2, 4, 6, 8]
    for name in MADE:
        assert {each[name] for each in later} == {second[name]}, name


@pytest.mark.parametrize("chunks", [CHUNKS, (128, 32, 8), (8,)])
def test_chunks_hold_a_text_and_little_more(chunks: tuple[int, ...]) -> None:
    """One more token never costs much more: what is filled up is less than another chunk would cost."""
    costs = []
    for count in range(1, 1100):
        sizes = chunk_sizes(chunks, count)
        assert sum(sizes[:-1]) < count <= sum(sizes)
        assert sizes == sorted(sizes, reverse=True)
        costs.append(sum(sizes) + CHUNK_COST * len(sizes))
    largest = max(after - before for before, after in itertools.pairwise(costs))
    assert largest <= CHUNK_COST + 16
    assert chunk_sizes(chunks, 0) == []


@pytest.mark.parametrize("device", DEVICES)
def test_texts_of_many_lengths_are_few_captures(tmp_path: Path, device: str) -> None:
    model, _, _ = made(tmp_path, device)
    decoding, size = model._decoding, model.settings.vocabulary
    decoding.make_room(100)
    expected = model.next_logits([at % size for at in range(100)]).numpy()
    for count in (1, 7, 8, 9, 15, 17, 31, 33, 40, 41, 63, 64, 65, 90, 97, 99):
        decoding.held = []
        decoding.read([at % size for at in range(count)])
        assert len(decoding.held) == count
    captured: Any = decoding._chunk
    assert captured.captures <= sum(each <= 128 for each in CHUNKS)
    found = model.next_logits([at % size for at in range(100)]).numpy()
    np.testing.assert_allclose(found, expected, atol=2e-5)
