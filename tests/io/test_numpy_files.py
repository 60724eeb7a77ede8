"""NumPy's files: what NumPy writes is read, without pickle; headers are never evaluated, zips bounded."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import dtypes

DTYPES = [each.numpy for each in (*dtypes.REAL, *dtypes.COMPLEX) if each.name != "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype: np.dtype[Any], tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", array, turned=array.T)
    np.savez_compressed(tmp_path / "y.npz", array, turned=array.T)
    for path in (tmp_path / "x.npy", tmp_path / "x.npz", tmp_path / "y.npz"):
        weights = wg.io.open(path)
        assert weights.kind == "npz"
        for name in weights:
            expected = array.T if name == "turned" else array
            found = weights.host(name)
            assert isinstance(found, np.ndarray)
            assert found.dtype == dtype
            assert not found.flags.writeable
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.asarray(weights.read(name, "cpu")), expected)
            assert weights.shape(name) == expected.shape
    assert list(wg.io.open(tmp_path / "x.npz")) == ["turned", "arr_0"]
    assert list(wg.io.open(tmp_path / "x.npy")) == ["arr_0"]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_shapes_and_byte_orders(shape: tuple[int, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(shape, ">f4"))
    found = wg.io.open(tmp_path / "x.npy").host("arr_0")
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, np.ones(shape))


def test_what_webgrad_writes_numpy_reads(tmp_path: Path) -> None:
    x = wg.arange(6, dtype=wg.float32, device="cpu").reshape(2, 3)
    wg.io.save(tmp_path / "x.npz", {"file": x, "a.b/c": x.T, "n": np.int64(3)})
    with np.load(tmp_path / "x.npz", allow_pickle=False) as found:
        assert sorted(found) == ["a.b/c", "file", "n"]
        np.testing.assert_array_equal(found["a.b/c"], x.T.numpy())
    assert wg.io.load(tmp_path / "x.npz", device="cpu")["file"].tolist() == x.tolist()
    wg.io.save(tmp_path / "x.npy", {"x": x})
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x.numpy())


def test_what_cannot_be_written(tmp_path: Path) -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(wg.ArgumentError, match="one array, not 2"):
        wg.io.save(tmp_path / "x.npy", {"a": x, "b": x})
    with pytest.raises(wg.ArgumentError, match="no place for metadata"):
        wg.io.save(tmp_path / "x.npz", {"a": x}, {"b": "c"})
    with pytest.raises(wg.DTypeError, match="bfloat16"):
        wg.io.save(tmp_path / "x.npz", {"a": x.astype(wg.bfloat16.numpy)})
    with pytest.raises(wg.DTypeError, match=r"M8\[s\]"):
        wg.io.save(tmp_path / "x.npz", {"a": x.astype("datetime64[s]")})
    for name in ("\ud800", "a\0", 3):
        with pytest.raises(wg.ArgumentError, match="cannot name a tensor"):
            wg.io.save(tmp_path / "x.npz", {name: x})  # type: ignore[dict-item]
    with pytest.raises(wg.ModelFileError, match="there is a NUL"):
        wg.io.save(tmp_path / "x\0.npz", {"a": x})
    with pytest.raises(wg.DTypeError, match="quantised"):
        wg.io.save(tmp_path / "x.npz", {"a": wg.quantise(wg.ones((1, 32), device="cpu"), "Q8_0")})
    with pytest.raises(wg.ArgumentError, match="format is for"):
        wg.io.save(tmp_path / "x.npz", {"a": x}, format="F16")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # where other tests left threads
def test_forked_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    """A place in a file is shared by all that were forked after it was opened."""
    given = {"a": np.arange(1000.0), "b": np.ones(1000)}
    np.savez(tmp_path / "x.npz", a=given["a"], b=given["b"])
    weights = wg.io.open(tmp_path / "x.npz")

    def is_right() -> bool:
        return all(np.array_equal(weights.host(name), given[name]) for name in [*given] * 300)  # type: ignore[arg-type]

    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if is_right() else 1)
        finally:
            os._exit(2)
    try:
        assert is_right()
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0


def npy(header: str, data: bytes = b"", length: int | None = None) -> bytes:
    text = header.encode("latin-1")
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text) if length is None else length) + text + data


def described(descr: str = "'<f4'", shape: str = "(2,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


HOSTILE_ARRAYS = {
    "nothing": (b"", "no .npy file"),
    "another version": (b"\x93NUMPY\x09\0" + bytes(20), "no .npy file"),
    "a long header": (npy(described(), bytes(8), length=60_000), "header is said to have 60,000"),
    "objects": (npy(described("'|O'"), bytes(8)), "pickles, which can hold code"),
    "records": (npy(described("[('a', '<f4')]"), bytes(8)), "none of a plain array"),
    "long complex": (npy(described("'<c32'"), bytes(64)), "'<c32': webgrad has"),
    "code": (npy(described(shape="__import__('os').getpid()"), bytes(8)), "none of a plain array"),
    "parentheses": (npy("(" * 60_000), "none of a plain array"),
    "a negative size": (npy(described(shape="(-2,)"), bytes(8)), "none of a plain array"),
    "a long number": (npy(described(shape=f"({'9' * 900},)"), bytes(8)), "shape is"),
    "sizes that overflow": (npy(described(shape="(4294967296, 4294967296)"), bytes(8)), "shape is"),
    "65 sizes": (npy(described(shape=f"({'1, ' * 65})"), bytes(4)), "shape is"),
    "too short": (npy(described(), bytes(4)), "is 8 bytes, and it has 4"),
    "too long": (npy(described(), bytes(12)), "is 8 bytes, and it has 12"),
}


@pytest.mark.parametrize("name", HOSTILE_ARRAYS)
def test_hostile_arrays(name: str, tmp_path: Path) -> None:
    data, message = HOSTILE_ARRAYS[name]
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(wg.ModelFileError, match=message):
        wg.io.open(tmp_path / "x.npy")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", data)
    with pytest.raises(wg.ModelFileError, match=message):
        wg.io.open(tmp_path / "x.npz")


def zipped(contents: dict[str, bytes], **options: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return file.getvalue()


def test_hostile_zips(tmp_path: Path) -> None:
    good = npy(described(), bytes(8))
    deflated = zipped({"a.npy": good}, compression=zipfile.ZIP_DEFLATED)
    bomb = zipped({"a.npy": bytes(130 << 20)}, compression=zipfile.ZIP_DEFLATED)
    encrypted = bytearray(deflated)
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\1\2") + 8] |= 1
    cases = {
        "no zip": (b"PK\3\4" + bytes(50), "damaged, or no .npz"),
        "cut off": (zipped({"a.npy": good})[:-30], "damaged, or no .npz"),
        "no array": (zipped({"a.txt": b"x"}), "'a.txt' is not an array"),
        "another compression": (zipped({"a.npy": good}, compression=zipfile.ZIP_BZIP2), "does not use"),
        "encrypted": (bytes(encrypted), "is encrypted"),
        "a bomb": (bomb, "would unpack to 136,314,880 bytes"),
        "many files": (zipped({f"{at}.npy": b"" for at in range(9000)}), "limit is 8,192"),
        "a long list": (zipped({f"{at:099}.npy": b"" for at in range(8000)}), "is longer than 1,048,576"),
    }
    for name, (data, message) in cases.items():
        (tmp_path / "x.npz").write_bytes(data)
        with pytest.raises(wg.ModelFileError, match=message):
            wg.io.open(tmp_path / "x.npz")
        assert name


def test_check_sums(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.npy": npy(described(shape="(25000,)"), bytes(100_000))}))
    data[90_000] = 1
    (tmp_path / "x.npz").write_bytes(data)
    weights = wg.io.open(tmp_path / "x.npz")
    with pytest.raises(wg.ModelFileError, match=r"'a\.npy' is damaged: Bad CRC"):
        weights.host("a")
