"""The wire format: what is read back is what was written, and nothing that lies is believed."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

import webgrad as wg
from tests.onnx.models import encode, varint
from webgrad.onnx.protobuf import parse


def test_every_kind_of_field_is_read_back() -> None:
    written = encode(
        "Attribute", name="ü", i=-3, f=0.5, s=b"\xff", ints=[1, -(1 << 63), 1 << 62], floats=[1, 2]
    )
    found = parse(written, "Attribute", "it")
    assert (found.name, found.i, found.f, bytes(found.s)) == ("ü", -3, 0.5, b"\xff")
    assert found.ints == [1, -(1 << 63), 1 << 62]
    assert found.floats == [1.0, 2.0]


def test_numbers_side_by_side_are_those_one_by_one() -> None:
    numbers = [0, 1, 127, 128, 300, -1, -(1 << 63), (1 << 63) - 1]
    packed = b"".join(map(varint, numbers))
    written = b"\x42" + varint(len(packed)) + packed  # field 8, of bytes
    assert parse(written, "Attribute", "it").ints == numbers


def test_numbers_side_by_side_over_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webgrad.onnx.protobuf.AT_ONCE", 16)
    numbers = [(1 << at % 64) - 1 for at in range(200)]
    packed = b"".join(map(varint, numbers))
    found = parse(b"\x42" + varint(len(packed)) + packed, "Attribute", "it").ints
    assert [each % (1 << 64) for each in found] == numbers
    with pytest.raises(wg.ModelFileError, match="a number does not end"):
        parse(b"\x42" + varint(len(packed) + 1) + packed + b"\x80", "Attribute", "it")


def test_numbers_side_by_side_take_little_more_memory_than_their_list() -> None:
    size = 1 << 20
    written = b"\x42" + varint(size) + b"\x01" * size
    tracemalloc.start()
    try:
        parse(written, "Attribute", "it")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 * size


def test_what_is_absent_has_its_kinds_value_for_nothing() -> None:
    found = parse(b"", "Attribute", "it")
    assert (found.name, found.i, found.s, found.t, found.ints) == ("", 0, b"", None, ())
    assert not found.has("i")
    with pytest.raises(AttributeError, match="no field 'nothing'"):
        _ = found.nothing


def test_unknown_fields_are_passed_over() -> None:
    unknown = varint(900 << 3 | 2) + b"\x03abc" + varint(901 << 3) + b"\x05" + varint(902 << 3 | 5) + b"1234"
    assert parse(unknown + encode("Node", op_type="Add"), "Node", "it").op_type == "Add"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x05ab", "a field of 5 bytes begins 2 bytes before its message ends"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "a number does not end"),
        (b"\x08\xff", "a number does not end"),
        (b"\x0b", "the unknown way 3"),
        (b"\x0f", "the unknown way 7"),
        (b"\x0a\x02\xff\xfe", "is no UTF-8"),
        (b"\x0d1234", "the field name is not written as text"),
        (b"\x15\x01\x02", "a field of 4 bytes begins 2 bytes"),
        (b"\x3a\x03abc", "the field floats is not written as float"),
        (b"\x42\x01\xff", "a number does not end"),
        (b"\x42\x0c" + b"\xff" * 11 + b"\x01", "more than ten bytes"),
        (b"\x18" + varint(5) + b"\x2d" + struct.pack("<f", 1), "the field t is not written as Tensor"),
    ],
)
def test_what_lies_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(wg.ModelFileError, match=message):
        parse(data, "Attribute", "it")


def test_messages_in_each_other_have_a_limit() -> None:
    data = b""
    for _ in range(100):
        data = encode("Type", sequence_type=encode("ElementType", elem_type=data))
    with pytest.raises(wg.ModelFileError, match="deeper than 64"):
        parse(data, "Type", "it")


def test_fields_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webgrad.onnx.protobuf.FIELDS", 10)
    with pytest.raises(wg.ModelFileError, match="more than 10 fields"):
        parse(encode("Node", op_type="Add") * 11, "Node", "it")
