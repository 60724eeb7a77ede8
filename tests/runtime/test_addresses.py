"""Addresses of arrays, as NumPy gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webgrad.runtime import addresses


@pytest.fixture
def arrays(tmp_path: Any) -> list[Any]:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.save(tmp_path / "mapped.npy", whole)
    fixed = whole.copy()
    fixed.flags.writeable = False
    mapped = np.load(tmp_path / "mapped.npy", mmap_mode="r")
    return [whole, whole[1:, 2:], whole.T[::-1], fixed, np.empty(0), np.empty(()), mapped]


def test_as_numpy_says(arrays: list[Any]) -> None:
    for each in arrays:
        assert addresses.address_of(each) == each.__array_interface__["data"][0]


def test_numpy_is_asked_where_no_word_is_the_address(
    arrays: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_WORDS", 1)  # the count of references
    addresses.address_reader.cache_clear()
    try:
        assert addresses.address_reader() is addresses._asked
        assert addresses.address_of(arrays[1]) == arrays[1].__array_interface__["data"][0]
    finally:
        addresses.address_reader.cache_clear()
