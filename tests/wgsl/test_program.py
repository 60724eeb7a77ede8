"""Programs as values."""

from __future__ import annotations

import dataclasses

import pytest

from webgrad.wgsl import program_from_source

TEXT = "@compute @workgroup_size(1) fn main() {}"


def test_equal_programs_are_one_key() -> None:
    first, second = program_from_source(TEXT), program_from_source(TEXT)
    assert first == second
    assert hash(first) == hash(second)
    assert len({first, second, program_from_source(TEXT, label="other")}) == 2


def test_programs_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        program_from_source(TEXT).entry = "other"  # type: ignore[misc]
