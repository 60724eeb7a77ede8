"""Pickles are read by a machine that only builds plain values, in time and memory that follow their size."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import struct
import time
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.io.pickles import PLAIN_NAMES, read_pickle


def read(data: bytes) -> Any:
    return read_pickle("x", io.BytesIO(data), PLAIN_NAMES)


VALUES: list[Any] = [
    *(None, True, 0, -1, 255, 1 << 40, -(1 << 70), 0.5, float("inf"), 2 - 3j, "", "ü" * 300, b"\0\xff"),
    *([], [1, [2, []]], (), (1,), (1, 2), (1, 2, 3), tuple(range(9)), {}, {"a": {1: (None, "b")}}),
    *({1, 2}, frozenset("ab"), bytearray(b"abc"), range(2, 9, 3), slice(1, None)),
    *(OrderedDict(a=1), defaultdict(list, {"x": [1]}), Counter("aab"), deque([1, 2], 5)),
    argparse.Namespace(lr=0.1, name="x"),
]


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_values(protocol: int) -> None:
    found = read(pickle.dumps(VALUES, protocol))
    assert found == VALUES
    assert list(map(type, found)) == list(map(type, VALUES))


@pytest.mark.parametrize("protocol", [2, 4])
def test_numpys_numbers_and_arrays(protocol: int) -> None:
    arrays: list[Any] = [np.arange(6).reshape(2, 3), np.ones((2, 2), np.float16, order="F"), np.float32(2.5)]
    for found, expected in zip(read(pickle.dumps(arrays, protocol)), arrays, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_what_is_the_same_object_stays_so() -> None:
    shared: list[Any] = [1]
    shared.append(shared)
    found = read(pickle.dumps({"a": shared, "b": shared}))
    assert found["a"] is found["b"]
    assert found["a"][1] is found["a"]


class Evil:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


@pytest.mark.parametrize(
    "value", [Evil(os.system, "true"), Evil(eval, "1"), Evil(getattr, "a", "b"), Evil(exec, "")]
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_names_of_code_are_refused(value: Evil, protocol: int) -> None:
    with pytest.raises(wg.ModelFileError, match=r"it holds \S+, which is neither a tensor nor"):
        read(pickle.dumps(value, protocol))


DUPLICATED = b"(" + b"N" * 1000 + b"tq\0"  # a tuple of a thousand
LIST = b"c__builtin__\nlist\nq\1"
NESTED = b")q\0" + b"h\0h\0\x86q\0" * 200  # pairs of pairs of …: 2**200 leaves to hash
HOSTILE = {
    "nothing": b"",
    "no end": b"\x80\x02N",
    "stack": b"\x80\x02t.",
    "below a mark": b"\x80\x02N(R.",
    "long text": b"\x80\x02X" + struct.pack("<I", 0xFFFFFFF0) + b"a.",
    "long bytes": b"\x80\x05\x8e" + struct.pack("<Q", 1 << 62) + b"a.",
    "long bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 62) + b"a.",
    "a call of a list": b"\x80\x02])R.",
    "persistent": b"\x80\x02NQ.",
    "large bytearray": b"c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "endless range": b"ccollections\ndeque\nc__builtin__\nrange\n\x8a\x08" + b"\xff" * 7 + b"\x7f\x85R\x85R.",
    "copies": DUPLICATED + LIST + b"h\1h\0\x85R" * 6000 + b".",
    "a key of pairs": b"}q\2" + NESTED + b"h\2h\0Ns.",
    "a set of pairs": b"c__builtin__\nset\n]" + NESTED + b"h\0a\x85R.",
    "a dict of pairs": b"c__builtin__\ndict\n]" + NESTED + b"h\0N\x86a\x85R.",
    "keys with one hash": b"}("
    + b"".join(b"\x8a\x10" + ((1 << 61) * at).to_bytes(16, "little") + b"N" for at in range(99))
    + b"u.",
    "state of a dict": b"\x80\x02}}b.",
    "state of an object": b"cargparse\nNamespace\n)\x81}X\x09\0\0\0__class__Nsb.",
    "an object array": pickle.dumps(np.array([None, {}]), 2),
    "an array of another size": pickle.dumps(np.zeros(4), 2).replace(b"K\x04\x85", b"K\x05\x85"),
    "an old instance": b"(ios\nsystem\n.",
    "extension": b"\x80\x02\x82\x01.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_one_error(name: str) -> None:
    start = time.process_time()
    with pytest.raises(wg.ModelFileError):
        read(HOSTILE[name])
    assert time.process_time() - start < 2


def test_containers_in_containers_have_no_limit() -> None:
    found = read(b"]" * 100_000 + b"a" * 99_999 + b".")
    depth = 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == 99_999
