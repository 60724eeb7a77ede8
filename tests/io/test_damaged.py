"""Damaged files of all kinds, a few hundred of those that `make fuzz` opens."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scripts.fuzz_files import damaged, open_all, seeds


def test_damaged_files_give_tensors_or_one_error(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    sound = seeds(tmp_path / "seeds")
    for suffix, data in sound:
        path = tmp_path / f"sound{suffix}"
        path.write_bytes(data)
        assert open_all(path) == "sound"
    outcomes: Counter[str] = Counter()
    for number in range(400):
        suffix, data = damaged(number, sound)
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(data)
        outcomes[open_all(path)] += 1  # which raises nothing, whatever is in the file
    assert outcomes["refused"] > 200
    assert outcomes["sound"] > 20
