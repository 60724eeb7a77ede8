"""The reader of idx files believes nothing."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import webgrad as wg
from webgrad.data.idx import read_idx

TYPES = {"uint8": 0x08, "int8": 0x09, "int16": 0x0B, "int32": 0x0C, "float32": 0x0D, "float64": 0x0E}


def idx_of(array: np.ndarray[Any, Any]) -> bytes:
    head = bytes((0, 0, TYPES[array.dtype.name], array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0, 5)])
def test_what_is_written_is_read(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    found = read_idx(idx_of(array), "a file")
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    assert found.flags.writeable


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "begins with nothing"),
        (b"\x1f\x8b\x08\x00", "not an idx file: it begins with 1f 8b 08 00"),
        (b"\0\0\x07\x01", "not an idx file"),
        (b"\0\0\x08\xff" + b"\0" * 2000, "not an idx file"),
        (b"\0\0\x08\x03\0\0\0\x01", "ends before the lengths of its 3 axes"),
        (b"\0\0\x08\x01\0\0\0\x05abcd", r"shape \(5,\) and uint8 has 13 bytes, and this one has 12"),
        (b"\0\0\x08\x01\0\0\0\x01abcd", "damaged"),
        (b"\0\0\x0e\x08" + b"\xff" * 32, "damaged"),  # a length that no memory has
    ],
)
def test_what_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(wg.ModelFileError, match=words):
        read_idx(data, "a file")


@pytest.mark.property
@given(st.binary(max_size=80))
def test_any_bytes_are_an_array_or_an_error(rest: bytes) -> None:
    for start in (b"", b"\0\0\x08\x01", b"\0\0\x0d\x02"):
        try:
            read_idx(start + rest, "a file")
        except wg.ModelFileError:
            continue
