"""GGUF files that webgrad writes: read by the gguf package and by webgrad itself."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import webgrad as wg


def tensors() -> dict[str, Any]:
    random = np.random.default_rng(0)
    matrix = random.normal(size=(6, 64)).astype(np.float32)
    return {
        "matrix": wg.asarray(matrix, device="cpu"),
        "vector": matrix[0],
        "odd": matrix[:, :33],
        "turned": matrix.T,
        "half": matrix.astype(np.float16),
        "brain": matrix.astype(wg.bfloat16.numpy),
        "wide": matrix.astype(np.float64),
        "ids": np.arange(64, dtype=np.int64).reshape(2, 32),
        "scalar": np.float32(3),
        "cube": matrix.reshape(2, 3, 64),
        "none": np.zeros((0, 64), np.float32),
        "blocks": wg.quantise(wg.asarray(matrix, device="cpu"), "Q4_1"),
        "rows": wg.io.Blocks("Q6_K", (2, 256), random.integers(0, 256, (2, 210), np.uint8)),
    }


FORMS = {
    None: "F32 F32 F32 F32 F16 BF16 F64 I64 F32 F32 F32 Q4_1 Q6_K",
    "F32": "F32 F32 F32 F32 F32 F32 F32 I64 F32 F32 F32 Q4_1 Q6_K",
    "F16": "F16 F32 F16 F16 F16 F16 F16 I64 F32 F32 F16 Q4_1 Q6_K",
    "BF16": "BF16 F32 BF16 BF16 BF16 BF16 BF16 I64 F32 F32 BF16 Q4_1 Q6_K",
    "Q8_0": "Q8_0 F32 F32 F32 Q8_0 Q8_0 Q8_0 I64 F32 F32 Q8_0 Q4_1 Q6_K",
    "q4_0": "Q4_0 F32 F32 F32 Q4_0 Q4_0 Q4_0 I64 F32 F32 Q4_0 Q4_1 Q6_K",
}


@pytest.mark.parametrize("format", FORMS)
def test_the_package_reads_what_is_written(format: str | None, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    given = tensors()
    wg.io.save(path, given, {"general.architecture": "llama"}, format=format)
    reader = gguf.GGUFReader(path)
    ours = wg.io.open(path)
    assert [each.name for each in reader.tensors] == list(ours) == list(given)
    assert [ours.form(name) for name in ours] == FORMS[format].split()
    for each in reader.tensors:
        assert each.tensor_type.name == ours.form(each.name)
        assert tuple(int(size) for size in each.shape)[::-1] == ours.shape(each.name)
        assert ours.shape(each.name) == given[each.name].shape
        assert each.data_offset % 32 == 0
        host = ours.host(each.name)
        assert each.data.tobytes() == (host.data if isinstance(host, wg.io.Blocks) else host).tobytes()
        if isinstance(given[each.name], np.ndarray | wg.Tensor) and each.data.size:
            plain = each.tensor_type.name in ("F64", "I64")  # which the package gives as they are
            weights = each.data if plain else gguf.quants.dequantize(each.data, each.tensor_type)
            expected = np.asarray(given[each.name]).astype(np.float32)
            close = {"Q8_0": 0.02, "Q4_0": 0.4, "BF16": 0.02, "F16": 0.002}.get(ours.form(each.name), 1e-6)
            np.testing.assert_allclose(weights.reshape(expected.shape), expected, atol=close)


@pytest.mark.parametrize("format", ["Q8_0", "Q4_0", "Q4_1"])
def test_blocks_are_those_of_the_package(format: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    matrix = np.random.default_rng(1).normal(size=(8, 96)).astype(np.float32)
    wg.io.save(path, {"x": matrix}, format=format)
    expected = gguf.quants.quantize(matrix, gguf.GGMLQuantizationType[format])
    found = wg.io.open(path).host("x")
    assert isinstance(found, wg.io.Blocks)
    np.testing.assert_array_equal(found.data, expected)


VALUES: dict[str, tuple[Any, str]] = {
    "text": ("Grüße", "STRING"),
    "one": (1, "UINT32"),
    "negative": (-1, "INT32"),
    "large": (1 << 40, "INT64"),
    "largest": ((1 << 64) - 1, "UINT64"),
    "float": (0.5, "FLOAT32"),
    "huge": (1e300, "FLOAT64"),
    "flag": (True, "BOOL"),
    "typed": (np.uint8(7), "UINT8"),
    "double": (np.float64(0.1), "FLOAT64"),
    "texts": (["a", "", "ü"], "ARRAY STRING"),
    "ints": ([1, -2], "ARRAY INT32"),
    "large ints": ([1, 1 << 40], "ARRAY INT64"),
    "mixed": ([1, 0.5], "ARRAY FLOAT32"),
    "flags": ([True, False], "ARRAY BOOL"),
    "array": (np.arange(1500, dtype=np.int16), "ARRAY INT16"),
    "nested": ([[1, 2], [3]], "ARRAY ARRAY INT32"),
}


def test_values(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    wg.io.save(path, {}, {name: value for name, (value, _) in VALUES.items()})
    fields = gguf.GGUFReader(path).fields
    found = wg.io.load_metadata(path)
    assert list(found) == list(VALUES)
    for name, (value, types) in VALUES.items():
        assert " ".join(type_.name for type_ in fields[name].types) == types
        np.testing.assert_array_equal(found[name], value) if name == "array" else _same(found[name], value)


def _same(found: Any, value: Any) -> None:
    assert found == value


def test_alignment(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    given = {"a": np.ones(3, np.float32), "b": np.ones(5, np.int8)}
    wg.io.save(path, given, {"general.alignment": 256})
    assert [each.data_offset % 256 for each in gguf.GGUFReader(path).tensors] == [0, 0]
    assert path.stat().st_size % 256 == 0
    assert wg.io.load(path, device="cpu")["b"].tolist() == [1] * 5


@pytest.mark.parametrize(
    ("tensors", "metadata", "options", "error", "message"),
    [
        ({"x": np.ones(2, np.uint8)}, {}, {}, wg.DTypeError, "uint8, and GGUF has F32"),
        ({"x": [1.0]}, {}, {}, wg.DTypeError, "x is a list"),
        ({"x" * 65: np.ones(2, "f")}, {}, {}, wg.ArgumentError, "up to 64 bytes"),
        ({"x\ud800": np.ones(2, "f")}, {}, {}, wg.ArgumentError, "cannot be written"),
        ({"x": np.ones(2, complex)}, {}, {}, wg.DTypeError, "x is complex128.*view_as_real"),
        (dict.fromkeys(map(str, range(32_769)), np.ones(1, "f")), {}, {}, wg.ArgumentError, "32,769 tensors"),
        ({}, dict.fromkeys(map(str, range(65_537)), 1), {}, wg.ArgumentError, "65,537 values"),
        ({}, {"a": "a" * (1 << 27)}, {}, wg.ArgumentError, "bytes of metadata are too many"),
        ({}, {"a": [[[[[1]]]]]}, {}, wg.ArgumentError, "more than 4 deep"),
        ([1], {}, {}, wg.ArgumentError, "are dicts, not list"),
        ({}, [1], {}, wg.ArgumentError, "are dicts, not list"),
        ({"x": np.ones((1,) * 5, "f")}, {}, {}, wg.ShapeError, "up to 4 dimensions"),
        ({}, {}, {"format": "Q2_K"}, wg.ArgumentError, "format is one of"),
        ({}, {"a": None}, {}, wg.ArgumentError, "a is .*None"),
        ({}, {"a": [1, "b"]}, {}, wg.ArgumentError, "values in GGUF are"),
        ({}, {"a": 1 << 64}, {}, wg.ArgumentError, "64 bits"),
        ({}, {"a": np.ones(2, complex)}, {}, wg.ArgumentError, "complex"),
        ({}, {"a": "\ud800"}, {}, wg.ArgumentError, "cannot be written"),
        ({}, {3: "a"}, {}, wg.ArgumentError, "is a text"),
        ({}, {"general.alignment": 24}, {}, wg.ArgumentError, "power of two"),
    ],
)
def test_what_cannot_be_written(
    tensors: Any, metadata: Any, options: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        wg.io.save(tmp_path / "x.gguf", tensors, metadata, **options)
    assert list(tmp_path.iterdir()) == []


def test_the_head(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    wg.io.save(path, {}, {"a": 1})
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"a" + struct.pack("<II", 4, 1)
    assert path.read_bytes() == head + bytes(-len(head) % 32)
