"""What keys and values are kept in: half floats that change little, float32 where it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.random_models import FAMILIES, IDS, write_gguf
from webgrad.models.language import LanguageModel

DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]


def loaded(path: Path, device: str = "cpu", **options: Any) -> LanguageModel:
    if not path.exists():
        write_gguf(FAMILIES["qwen3"], path)
    model = wg.models.load(path, device=device, **options)
    assert isinstance(model, LanguageModel)
    return model


def stored(model: LanguageModel) -> set[str]:
    model.next_logits(IDS)
    return {cache.stored.dtype.name for cache in model._decoding.caches}


@pytest.mark.parametrize("device", DEVICES)
def test_half_floats_change_little(tmp_path: Path, device: str) -> None:
    half = loaded(tmp_path / "m.gguf", device)
    exact = loaded(tmp_path / "m.gguf", device, cache_dtype="float32")
    assert (stored(half), stored(exact)) == ({"float16"}, {"float32"})
    every = exact.logits(IDS).numpy()
    for length in (2, len(IDS)):
        wanted = exact.next_logits(IDS[:length]).numpy()
        np.testing.assert_allclose(wanted, every[length - 1], rtol=0, atol=1e-4)
        np.testing.assert_allclose(half.next_logits(IDS[:length]).numpy(), wanted, rtol=0, atol=1e-2)


def test_logits_of_a_whole_text_are_exact_whatever_caches_are_kept_in(tmp_path: Path) -> None:
    half, exact = (loaded(tmp_path / "m.gguf", cache_dtype=each) for each in (wg.float16, wg.float32))
    np.testing.assert_array_equal(half.logits(IDS).numpy(), exact.logits(IDS).numpy())


def test_what_is_kept_stays_when_room_grows(tmp_path: Path) -> None:
    model = loaded(tmp_path / "m.gguf")
    before = model.next_logits(IDS).numpy()
    kept = [cache.stored.numpy()[: len(IDS)] for cache in model._decoding.caches]
    room = model._decoding.room
    model._decoding.make_room(room)
    assert model._decoding.room > room
    for cache, values in zip(model._decoding.caches, kept, strict=True):
        assert cache.stored.dtype is wg.float16
        np.testing.assert_array_equal(cache.stored.numpy()[: len(IDS)], values)
    np.testing.assert_array_equal(model.next_logits(IDS).numpy(), before)


def test_room_is_little_more_than_is_needed(tmp_path: Path) -> None:
    decoding = loaded(tmp_path / "m.gguf")._decoding
    decoding.context = 1 << 20
    assert [decoding._rounded(each) for each in (1, 512, 513, 769, 1536, 1537, 2049)] == [
        *(512, 512, 768, 1024, 1536, 2048, 3072)
    ]


@pytest.mark.parametrize("dtype", ["bfloat16", wg.float64, wg.int32])
def test_other_types_are_refused(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(wg.ArgumentError, match="cache_dtype is float16 or float32, not "):
        loaded(tmp_path / "m.gguf", cache_dtype=dtype)
