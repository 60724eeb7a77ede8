"""Addresses of arrays, as NumPy gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
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
    addresses.address_place.cache_clear()
    try:
        assert addresses.address_place() == addresses.UNKNOWN
        assert addresses.address_of(arrays[1]) == arrays[1].__array_interface__["data"][0]
        x = wg.asarray(arrays[0], device="cpu")
        np.testing.assert_array_equal(wg.jit(lambda x: x + 1.0)(x).numpy(), arrays[0] + 1.0)
    finally:
        addresses.address_place.cache_clear()
