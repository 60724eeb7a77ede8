"""GGUF files: what the gguf package writes is read, and what lies is refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import webgrad as wg
from tests.limits import processor_time
from webgrad.io.gguf_types import TYPES
from webgrad.ops.blocks import FORMATS

NUMBERS = {"F32": "f4", "F16": "f2", "F64": "f8", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}


def write_values(writer: gguf.GGUFWriter) -> dict[str, Any]:
    """All types of values, and what reading must give."""
    expected: dict[str, Any] = {}
    for name, value in (
        ("uint8", 200), ("int8", -100), ("uint16", 60_000), ("int16", -30_000), ("uint32", 4_000_000_000),
        ("int32", -2_000_000_000), ("uint64", (1 << 64) - 1), ("int64", -(1 << 63)), ("float32", 0.5),
        ("float64", 0.1), ("bool", True), ("string", "Grüße ☺"),
    ):  # fmt: skip
        getattr(writer, f"add_{name}")(f"a.{name}", value)
        expected[f"a.{name}"] = value
    arrays: dict[str, list[Any]] = {
        "b.texts": ["a", "", "ü"], "b.ints": [1, -2, 3], "b.floats": [0.5, 2.0], "b.flags": [True, False],
        "b.long": list(range(2000)), "b.nested": [[1, 2], [3, 4, 5]],
    }  # fmt: skip
    for key, values in arrays.items():
        writer.add_array(key, values)
        expected[key] = values
    return expected


def test_everything_that_the_package_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    expected = write_values(writer)
    random = np.random.default_rng(0)
    data: dict[str, bytes] = {}
    for form, code in NUMBERS.items():
        array = random.integers(-99, 99, (3, 5)).astype(code)
        writer.add_tensor(form, array)
        data[form] = array.tobytes()
    for form, each in FORMATS.items():
        blocks = random.integers(0, 256, (4, 2 * each.nbytes), np.uint8)
        writer.add_tensor(form, blocks, raw_dtype=gguf.GGMLQuantizationType[form])
        data[form] = blocks.tobytes()
    half = random.integers(0, 1 << 16, (2, 3), np.uint16)
    writer.add_tensor("BF16", half.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    data["BF16"] = half.tobytes()
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    with wg.io.open(path) as weights:
        assert weights.kind == "gguf"
        assert list(weights) == list(data)
        assert weights.nbytes == sum(map(len, data.values()))
        for name, raw in data.items():
            assert weights.form(name) == name
            found = weights.host(name)
            if isinstance(found, wg.io.Blocks):
                assert found.shape == weights.shape(name) == (4, 2 * FORMATS[name].weights)
                assert found.data.tobytes() == raw
                assert isinstance(weights.read(name, "cpu"), wg.QuantisedTensor)
            else:
                assert found.shape == weights.shape(name)
                assert found.tobytes() == raw
                assert not found.flags.writeable
        metadata = weights.metadata
    assert metadata.pop("general.architecture") == "llama"
    assert list(metadata) == list(expected)
    long = metadata.pop("b.long")
    assert isinstance(long, np.ndarray)
    assert long.tolist() == expected.pop("b.long")
    assert metadata == expected
    assert {name: type(value) for name, value in metadata.items()} == {
        name: type(value) for name, value in expected.items()
    }


def test_types_are_those_of_the_package() -> None:
    for number, each in TYPES.items():
        assert gguf.GGMLQuantizationType(number).name == each.name
        if each.name != "Q8_1":  # of which there are two layouts, and no files
            assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(number)] == (each.weights, each.nbytes)


# Files written by hand


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def tensor(name: str, sizes: tuple[int, ...], type_: int = 0, place: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, type_, place)


def file(values: list[bytes], tensors: list[bytes], data: bytes = b"", version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    head += b"".join(values) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def value(key: str, type_: int, data: bytes) -> bytes:
    return text(key) + struct.pack("<I", type_) + data


def array(type_: int, count: int, data: bytes = b"") -> bytes:
    return struct.pack("<IQ", type_, count) + data


def deep(levels: int) -> bytes:
    return b"".join(array(9, 1) for _ in range(levels)) + array(0, 1, b"x")


FLAG = value("f", 7, b"\1")
HOSTILE = {
    "no GGUF": (b"GGML" + bytes(40), "no GGUF file"),
    "nothing": (b"", "no GGUF file"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "version 1": (file([], [], version=1), "version 1"),
    "version 4": (file([], [], version=4), "version 4"),
    "it ends in the head": (file([], [])[:12], "the file ends"),
    "many tensors": (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "tensors, and the limit"),
    "more tensors than bytes": (b"GGUF" + struct.pack("<IQQ", 3, 1000, 0) + bytes(99), "too short"),
    "many values": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 63), "values, and the limit"),
    "a long text": (file([value("a", 8, struct.pack("<Q", 1 << 62))], []), "611,686,018,427,387,904 bytes"),
    "a long name": (file([struct.pack("<Q", 1 << 20) + bytes(1 << 20)], []), "limit is 65,536"),
    "a value twice": (file([FLAG, FLAG], []), "value f twice"),
    "no UTF-8": (file([value("a", 8, text(b"\xff\xfe"))], []), "no UTF-8"),
    "no UTF-8 in an array": (file([value("a", 9, array(8, 1, text(b"\xff")))], []), "no UTF-8"),
    "no UTF-8 in a name": (file([text(b"\xc3") + FLAG], []), "no UTF-8"),
    "an unknown type": (file([value("a", 13, bytes(8))], []), "type 13"),
    "an array of an unknown type": (file([value("a", 9, array(99, 2, bytes(8)))], []), "type 99"),
    "a bool of two": (file([value("a", 7, b"\2")], []), "neither 0 nor 1"),
    "a long array": (file([value("a", 9, array(10, 1 << 61))], []), "the file ends"),
    "a long array of texts": (file([value("a", 9, array(8, 1 << 61))], []), "texts in arrays, and the limit"),
    "more texts than bytes": (file([value("a", 9, array(8, 1 << 20))], []), "too short"),
    "a long text in an array": (file([value("a", 9, array(8, 1, struct.pack("<Q", 1 << 63)))], []), "longer"),
    "a long array of arrays": (file([value("a", 9, array(9, 1 << 61))], []), "arrays in arrays, and"),
    "arrays in arrays in arrays": (file([value("a", 9, deep(6))], []), "4 deep"),
    "alignment 0": (file([value("general.alignment", 4, bytes(4))], []), "alignment is 0"),
    "alignment 24": (file([value("general.alignment", 4, struct.pack("<I", 24))], []), "power of two"),
    "alignment as a text": (file([value("general.alignment", 8, text("32"))], []), "alignment is '32'"),
    "a huge alignment": (file([value("general.alignment", 10, struct.pack("<Q", 1 << 40))], []), "power of"),
    "five dimensions": (file([], [tensor("x", (1,) * 5)], bytes(64)), "5 dimensions"),
    "sizes that overflow": (file([], [tensor("x", (1 << 32, 1 << 32))], bytes(64)), "which no memory holds"),
    "sizes of nothing": (file([], [tensor("x", (0, 1 << 63))], bytes(64)), "which no memory holds"),
    "rows of half blocks": (file([], [tensor("x", (16, 4), 2)], bytes(64)), "not whole blocks"),
    "a place outside": (file([], [tensor("x", (8,), 0, 1 << 40)], bytes(64)), "there are 64"),
    "a tensor that is cut off": (file([], [tensor("x", (32,))], bytes(64)), "fetch the file again"),
    "a place between": (file([], [tensor("x", (4,), 0, 4)], bytes(64)), "no multiple of 32"),
    "a name twice": (file([], [tensor("x", (4,)), tensor("x", (4,), 0, 32)], bytes(64)), "tensor x twice"),
    "tensors over each other": (
        file([], [tensor("x", (16,)), tensor("y", (4,), 0, 32)], bytes(64)),
        "x and y lie in the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    data, message = HOSTILE[name]
    path.write_bytes(data)
    with pytest.raises(wg.ModelFileError, match=message) as caught:
        wg.io.open(path)
    assert str(path) in str(caught.value)


def test_older_files_and_other_alignments(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    numbers = np.arange(4, dtype=np.float32)
    path.write_bytes(file([], [tensor("x", (4,)), tensor("s", (), 0, 32)], numbers.tobytes() + bytes(20), 2))
    weights = wg.io.open(path)
    assert np.asarray(weights["x"]).tolist() == numbers.tolist()
    assert weights.shape("s") == ()
    # With an alignment of one, data follow the head at once, wherever that is; numbers are copied then.
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + value("general.alignment", 4, struct.pack("<I", 1))
    for name in ("x", "xy", "xyz"):
        path.write_bytes(head + tensor(name, (4,)) + numbers.tobytes())
        assert np.asarray(wg.io.open(path)[name]).tolist() == numbers.tolist()


def test_types_that_webgrad_has_not_are_an_error_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    listed = [tensor("a", (32, 1), 20), tensor("b", (7,), 77, 32), tensor("c", (4,), 0, 64)]
    path.write_bytes(file([], listed, bytes(128)))
    weights = wg.io.open(path)
    assert [weights.form(name) for name in weights] == ["IQ4_NL", "type 77", "F32"]
    assert weights["c"].shape == (4,)
    for name, form in (("a", "IQ4_NL"), ("b", "type 77")):
        with pytest.raises(wg.ModelFileError, match=f"{name} is {form}.*webgrad has F32"):
            weights.read(name)


def test_vocabularies_are_read_quickly(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    words = b"".join(text(f"word{number}") for number in range(260_000))
    path.write_bytes(file([value("tokens", 9, array(8, 260_000, words))], []))
    with processor_time(2):  # 0.1 s where this was written
        tokens = wg.io.open(path).metadata["tokens"]
    assert len(tokens) == 260_000
    assert tokens[-1] == "word259999"
