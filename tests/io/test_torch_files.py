"""Files of torch.save: what torch wrote is read, both formats, and what lies outside of itself is refused."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg

HERE = Path(__file__).parent
BOTH = ["torch-zip.pt", "torch-legacy.pt"]


@pytest.mark.parametrize("name", BOTH)
def test_as_a_file_of_weights(name: str) -> None:
    with wg.io.open(HERE / name) as weights:
        assert list(weights) == [
            "model.weight",
            "model.turned",
            "model.row",
            "model.part",
            "ids",
            "half",
            "none",
        ]
        assert (weights.form("half"), weights.shape("none"), weights.nbytes) == (
            "BF16",
            (0, 3),
            24 * 2 + 12 + 16 + 16 + 4,
        )
        assert weights.metadata["lr"] == 0.1
        assert weights.metadata["names.1.0"] == "b"
    loaded = wg.io.load(HERE / name)
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(loaded["model.weight"].numpy(), expected)
    np.testing.assert_array_equal(loaded["model.turned"].numpy(), expected.T)
    np.testing.assert_array_equal(loaded["model.part"].numpy(), expected[:, 1:])
    assert loaded["ids"].tolist() == [1, 1 << 40]
    assert loaded["half"].tolist() == [0.5, -2.0]
    assert loaded["none"].shape == (0, 3)


@pytest.mark.parametrize("name", BOTH)
def test_as_the_value_that_it_is(name: str) -> None:
    found = wg.io.read_torch(HERE / name)
    with (HERE / name).open("rb") as file:
        again = wg.io.read_torch(file)
    assert list(found) == list(again) == ["model", "ids", "half", "none", "lr", "names", "dtype", "size"]
    assert found["names"] == ["a", ("b", None, True)]
    assert (found["dtype"], found["size"]) == ("float16", (2, 3))
    part = found["model"]["part"]
    assert (part.dtype, part.shape, part.strides, part.offset) == ("float32", (2, 2), (3, 1), 1)
    assert part.storage.location == "cpu"
    names = wg.io.TorchNames(tensor=lambda stored: stored.shape, parameter=lambda data, grad: (data, grad))
    assert wg.io.read_torch(HERE / name, names)["model"]["weight"] == ((2, 3), True)


def made(pickle: bytes, data: bytes = bytes(16), **others: bytes) -> bytes:
    """A file with this pickle and one storage."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", pickle)
        archive.writestr("x/data/0", data)
        for name, each in others.items():
            archive.writestr(f"x/{name}", each)
    return file.getvalue()


def tensor(
    shape: str = "K\4\x85", strides: str = "K\1\x85", offset: str = "K\0", kind: str = "Float", key: str = "0"
) -> bytes:
    """The pickle of a tensor."""
    storage = f"(X\7\0\0\0storagectorch\n{kind}Storage\nX\1\0\0\0{key}X\3\0\0\0cpuK\4tQ"
    return (f"ctorch._utils\n_rebuild_tensor_v2\n({storage}{offset}{shape}{strides}\x89}}tR.").encode(
        "latin-1"
    )


def changed(change: Callable[[bytearray], None]) -> bytes:
    data = bytearray(made(tensor()))
    change(data)
    return bytes(data)


def compressed() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", tensor())
        archive.writestr("x/data/0", bytes(1 << 20))
    return file.getvalue()


def elsewhere(data: bytearray) -> None:
    """The list of files says that the storage begins at the end."""
    at = data.index(b"PK\1\2", data.index(b"PK\1\2") + 4)
    data[at + 42 : at + 46] = struct.pack("<I", len(data) - 4)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "a longer shape": (made(tensor("K\5\x85")), "outside of its storage"),
    "a larger offset": (made(tensor(offset="K\1")), "outside of its storage"),
    "larger strides": (made(tensor("K\2\x85", "K\4\x85")), "outside of its storage"),
    "a huge stride": (made(tensor("K\2\x85", "\x8a\7\0\0\0\0\0\0\1\x85")), "offset and strides"),
    "strides backwards": (made(tensor(strides="J\xff\xff\xff\xff\x85")), "offset and strides"),
    "one number, repeated": (made(tensor("J\xff\xff\xff\x7f\x85", "K\0\x85")), "repeats a storage of 4"),
    "a huge shape": (made(tensor("\x8a\7\0\0\0\0\0\0\1\x85", "K\0\x85")), "tensor of shape"),
    "another rank": (made(tensor("K\1K\1\x86")), "another rank"),
    "a shape of texts": (made(tensor("X\1\0\0\0a\x85")), "tensor of shape"),
    "no storage": (made(tensor(key="1")), "no storage 1"),
    "a dtype that is none": (made(tensor(kind="Quint")), "QuintStorage"),
    "a tensor of a text": (made(b"ctorch._utils\n_rebuild_tensor_v2\n(X\1\0\0\0aK\0))tR."), "damaged"),
    "a program": (made(tensor(), **{"constants.pkl": b"."}), "TorchScript"),
    "compressed": (compressed(), "compressed"),
    "a storage elsewhere": (changed(elsewhere), "does not lie where"),
    "cut off": (made(tensor())[:-40], "damaged"),
    "no data": (b"PK\3\4" + bytes(20) + b"/data.pkl", "damaged"),
    "legacy, cut off": ((HERE / BOTH[1]).read_bytes()[:-20], "lies outside of it"),
    "legacy, no more than its head": ((HERE / BOTH[1]).read_bytes()[:40], "damaged"),
    "neither": (b"hello", "no file of torch.save"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str) -> None:
    data, message = HOSTILE[name]
    with pytest.raises(wg.ModelFileError, match=message):
        wg.io.read_torch(io.BytesIO(data))


def test_a_sound_one_made_so_is_read() -> None:
    assert wg.io.read_torch(io.BytesIO(made(tensor()))).array().tolist() == [0] * 4
    repeated = wg.io.read_torch(io.BytesIO(made(tensor("K\2K\3\x86", "K\0K\1\x86"))))
    assert repeated.array().shape == (2, 3)


def test_numbers_of_another_byte_order() -> None:
    data = np.array([1, 2, 3, 4], ">f4").tobytes()
    found: Any = wg.io.read_torch(io.BytesIO(made(tensor(), data, byteorder=b"big")))
    assert found.array().tolist() == [1, 2, 3, 4]


def test_a_value_in_itself_has_no_names(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(made(b"]q\0h\0ah\0ah\0a."))
    with pytest.raises(wg.ModelFileError, match="64 deep"):
        wg.io.open(path)
