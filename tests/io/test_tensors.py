"""safetensors files: every dtype comes back bit by bit, and hostile ones are refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import dtypes


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    bits = {
        each.name: random.integers(0, 2 if each.kind == "b" else 256, (3, 5, each.itemsize), np.uint8)
        for each in _KEPT
    }
    return {each.name: np.ascontiguousarray(bits[each.name]).view(each.numpy)[..., 0] for each in _KEPT}


_KEPT = (*dtypes.REAL, dtypes.complex64)


def test_every_dtype_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    given_arrays = arrays()
    wg.io.save(path, {name: wg.asarray(each, device="cpu") for name, each in given_arrays.items()})
    found = wg.io.load(path, device="cpu")
    assert set(found) == set(given_arrays)
    for name, each in given_arrays.items():
        assert found[name].dtype is wg.as_dtype(name)
        assert found[name].numpy().tobytes() == each.tobytes(), name


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_shapes(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    wg.io.save(path, {"x": np.ones(shape, np.float32)})
    assert wg.io.load(path, device="cpu")["x"].shape == shape


@pytest.mark.parametrize("suffix", [".safetensors", ".gguf", ".npz"])
def test_what_was_read_is_written_as_it_was(suffix: str, tmp_path: Path) -> None:
    tensors: dict[str, Any] = {"none": np.float32(3), "empty": np.zeros((2, 0, 3), np.float16)}
    tensors |= {"Größe 名": np.arange(5), "turned": np.arange(6.0).reshape(2, 3).T}
    wg.io.save(tmp_path / f"a{suffix}", tensors, {"a": "b"} if suffix != ".npz" else None)
    with wg.io.open(tmp_path / f"a{suffix}") as weights:
        wg.io.save(tmp_path / f"b{suffix}", weights, weights.metadata)
        found = {name: np.asarray(weights.read(name, "cpu")) for name in weights}
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    for name, given in tensors.items():
        assert (found[name].dtype, found[name].shape) == (given.dtype, given.shape)
        np.testing.assert_array_equal(found[name], given)


def test_layouts_and_byte_orders(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    wg.io.save(path, {"turned": x.T, "big": x.astype(">f4"), "lazy": wg.asarray(x, device="cpu").T + 1})
    found = wg.io.load(path, device="cpu")
    np.testing.assert_array_equal(found["turned"].numpy(), x.T)
    np.testing.assert_array_equal(found["big"].numpy(), x)
    np.testing.assert_array_equal(found["lazy"].numpy(), x.T + 1)


@pytest.mark.gpu
def test_from_a_gpu_and_back(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    x = wg.arange(7, dtype=wg.float32, device="webgpu").astype(wg.bfloat16)
    wg.io.save(path, {"x": x})
    found = wg.io.load(path, device="webgpu")["x"]
    assert found.device is x.device
    assert found.tolist() == x.tolist()


def test_texts_beside_the_tensors(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    wg.io.save(path, {}, {"Schlüssel": "Wert"})
    assert wg.io.load(path) == {}
    assert wg.io.load_metadata(path) == {"Schlüssel": "Wert"}
    with pytest.raises(wg.ArgumentError, match="texts under texts"):
        wg.io.save(path, {}, {"step": 3})


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(wg.DTypeError, match="weight is a list"):
        wg.io.save(path, {"weight": [1.0]})
    with pytest.raises(wg.DTypeError, match="complex"):
        wg.io.save(path, {"weight": np.ones(2, complex)})
    with pytest.raises(wg.ArgumentError, match="cannot name"):
        wg.io.save(path, {"__metadata__": np.ones(2)})
    with pytest.raises(wg.ModelFileError, match=r"model\.pt.*\.safetensors.*code"):
        wg.io.save(tmp_path / "model.pt", {})
    with pytest.raises(wg.ModelFileError, match="no folder"):
        wg.io.save(tmp_path / "no" / "x.safetensors", {})
    assert list(tmp_path.iterdir()) == []


def test_paths_are_checked_beforehand(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    wg.io.check_writable(path)
    assert list(tmp_path.iterdir()) == []
    wg.io.save(path, {"x": np.ones(2)})
    wg.io.check_writable(path)
    assert wg.io.load(path)["x"].shape == (2,)
    for wrong in (tmp_path / "model.pt", tmp_path / "no" / "x.safetensors", tmp_path):
        with pytest.raises(wg.ModelFileError):
            wg.io.check_writable(wrong)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match="no such file"):
        wg.io.load(tmp_path / "none.safetensors")
    (tmp_path / "model.pkl").write_bytes(b"hello")
    with pytest.raises(wg.ModelFileError, match="can hold code"):
        wg.io.load(tmp_path / "model.pkl")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(wg.ModelFileError, match="is a folder"):
        wg.io.load(tmp_path / "folder.safetensors")


def hostile() -> dict[str, bytes]:
    def file(header: Any, data: bytes = b"") -> bytes:
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return {
        "nothing": b"",
        "short": b"\x10\0\0",
        "a huge header": struct.pack("<Q", 1 << 60) + b"{}",
        "no json": struct.pack("<Q", 4) + b"{bad",
        "a list": file([1, 2]),
        "data missing": file({"x": entry}, bytes(4)),
        "data over": file({"x": entry}, bytes(12)),
        "offsets that overlap": file({"x": entry, "y": entry}, bytes(8)),
        "a shape that does not fit": file({"x": entry | {"shape": [3]}}, bytes(8)),
        "a shape that overflows": file({"x": entry | {"shape": [1 << 62, 1 << 62]}}, bytes(8)),
        "an unknown dtype": file({"x": entry | {"dtype": "F31"}}, bytes(8)),
        "a dtype that webgrad has not": file({"x": entry | {"dtype": "F8_E4M3", "shape": [8]}}, bytes(8)),
        "eight bits": file({"x": entry | {"dtype": "F8_E4M3", "shape": [8]}}, bytes(8)),
        "four bits": file({"x": entry | {"dtype": "F4", "shape": [16]}}, bytes(8)),
        "offsets backwards": file({"x": entry | {"data_offsets": [8, 0]}}, bytes(8)),
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(hostile()[name])
    with pytest.raises(wg.ModelFileError, match=r"x\.safetensors"):
        wg.io.load(path)


@pytest.mark.fault
@pytest.mark.parametrize("suffix", [".safetensors", ".gguf", ".npz", ".npy"])
def test_a_folder_that_goes_away(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def gone(path: Any) -> Iterator[Path]:
        yield tmp_path / "gone" / "x.partial"

    monkeypatch.setattr("webgrad.io.tensors.replacing", gone)
    with pytest.raises(wg.ModelFileError, match=rf"x\{suffix} cannot be written: .*No such file"):
        wg.io.save(tmp_path / f"x{suffix}", {"x": np.ones(9, np.float32)})
