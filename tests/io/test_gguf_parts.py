"""Models that are split into several GGUF files: read as one, or refused with the part that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg

TENSORS = {f"blk.{number}.weight": np.full((2, 4), number, np.float32) for number in range(5)}


def write_parts(folder: Path, count: int = 3, **changes: Any) -> list[Path]:
    """As gguf-split writes them: the first part has the metadata, all have their numbers."""
    names = wg.io.part_names(f"model-00001-of-{count:05}.gguf")
    for number, name in enumerate(names):
        split = {"split.no": number, "split.count": count, "split.tensors.count": len(TENSORS), **changes}
        metadata = {"general.architecture": "llama", "llama.block_count": 5} if number == 0 else {}
        held = {key: each for at, (key, each) in enumerate(TENSORS.items()) if at % count == number}
        wg.io.save(folder / name, held, {**metadata, **split})
    return [folder / name for name in names]


@pytest.mark.parametrize("given", [0, 1, 2, None])
def test_any_part_and_their_folder_give_the_whole(tmp_path: Path, given: int | None) -> None:
    parts = write_parts(tmp_path)
    with wg.io.open(tmp_path if given is None else parts[given]) as weights:
        assert weights.metadata["llama.block_count"] == 5
        assert set(weights) == set(TENSORS)
        for name, value in TENSORS.items():
            np.testing.assert_array_equal(weights.host(name), value)


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    parts = write_parts(tmp_path)
    parts[1].unlink()
    with pytest.raises(wg.ModelFileError, match=r"one of 3 parts .*model-00002-of-00003.gguf is missing"):
        wg.io.open(parts[0])


def test_a_part_under_another_name_is_refused_with_the_reason(tmp_path: Path) -> None:
    first, *_ = write_parts(tmp_path)
    with pytest.raises(wg.ModelFileError, match=r"one of 3 parts of a model \(split.count\).*00001-of-00003"):
        wg.io.open(first.rename(tmp_path / "model.gguf"))


def test_parts_that_were_exchanged(tmp_path: Path) -> None:
    _, second, third = write_parts(tmp_path)
    kept = second.read_bytes()
    second.write_bytes(third.read_bytes())
    third.write_bytes(kept)
    with pytest.raises(wg.ModelFileError, match=r"named as part 2 of 3, and says itself .*split.no=2"):
        wg.io.open(second)


def test_parts_of_two_models(tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match=r"3 parts have 5 tensors, and split.tensors.count is 9"):
        wg.io.open(write_parts(tmp_path, **{"split.tensors.count": 9})[0])
    first, second, _ = write_parts(tmp_path)
    split = {"split.no": 1, "split.count": 3}
    wg.io.save(second, {"blk.0.weight": TENSORS["blk.0.weight"]}, split)
    with pytest.raises(wg.ModelFileError, match=r"00002-of-00003.gguf: an earlier part has blk.0.weight too"):
        wg.io.open(first)


@pytest.mark.parametrize("count", [70_000, -3, 2.5, "many"])
def test_counts_that_cannot_be(tmp_path: Path, count: Any) -> None:
    wg.io.save(tmp_path / "model-00001-of-00003.gguf", TENSORS, {"split.count": count})
    with pytest.raises(wg.ModelFileError, match="parts of a model"):
        wg.io.open(tmp_path / "model-00001-of-00003.gguf")


def test_names_of_parts() -> None:
    assert wg.io.part_names("a-00002-of-00002.gguf") == ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]
    for name in ("a.gguf", "a-00000-of-00002.gguf", "a-00003-of-00002.gguf", "a-2-of-2.gguf"):
        assert wg.io.part_names(name) == []
