"""Damaged models, a few hundred of those that `make fuzz` draws: each loads, or is refused by name."""

from __future__ import annotations

import random
from pathlib import Path

from scripts.fuzz_onnx import bytes_of, sound, start, tree_of, with_other_fields
from tests.limits import processor_time


def test_damaged_models_are_models_or_one_error(tmp_path: Path) -> None:
    case = start(tmp_path)
    outcomes = set()
    for seed in range(1, 400):
        with processor_time(1.0):
            outcomes.add(case(seed))
    assert {"loaded", "refused"} <= outcomes


def test_a_file_is_the_same_again_as_a_tree_and_another_one_by_its_seed() -> None:
    for data in sound():
        assert bytes_of(tree_of(memoryview(data), "Model")) == data
    first = sound()[0]
    assert with_other_fields(random.Random(5), first) == with_other_fields(random.Random(5), first)
    assert with_other_fields(random.Random(5), first) != first
