"""Which files are opened, by name or by first bytes; those that can hold code are refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import webgrad as wg


@pytest.mark.parametrize("suffix", [".gguf", ".safetensors", ".npz", ".npy"])
def test_by_name_and_by_first_bytes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    wg.io.save(path, {"arr_0": np.arange(3, dtype=np.float32)})
    kind = wg.io.open(path).kind
    assert kind == {".npy": "npz"}.get(suffix, suffix[1:])
    path.rename(tmp_path / "0123abcd")
    again = wg.io.open(tmp_path / "0123abcd")
    assert again.kind == kind
    assert np.asarray(again["arr_0"]).tolist() == [0, 1, 2]
    (tmp_path / "0123abcd").rename(tmp_path / f"X{suffix.upper()}")
    assert wg.io.load(str(tmp_path / f"X{suffix.upper()}"), device="cpu")["arr_0"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", ["x.safetensors", "x.gguf", "x.npz", "x.pt", "x.pkl", "weights"])
def test_pickles_of_others_than_torch_are_refused(protocol: int, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pickle.dumps({"weight": list(range(100))}, protocol))
    with pytest.raises(wg.ModelFileError, match=r"can hold code.*those that torch\.save writes"):
        wg.io.open(tmp_path / name)


@pytest.mark.parametrize("name", ["model.pt", "model.PTH", "pytorch_model.bin", "a.ckpt", "x.npz", "x"])
def test_torch_files_are_read_by_whatever_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes((Path(__file__).parent / "torch-zip.pt").read_bytes())
    with wg.io.open(tmp_path / name) as weights:
        assert weights.kind == "torch"
        assert np.asarray(weights["model.row"]).tolist() == [3, 4, 5]
    if name == "pytorch_model.bin":
        with pytest.raises(wg.ModelFileError, match=r"give one of its files, pytorch_model\.bin"):
            wg.io.open(tmp_path)


def test_a_header_whose_length_looks_like_a_pickle(tmp_path: Path) -> None:
    """0x80 0x02 is how pickles begin, and a length of 640."""
    path = tmp_path / "x"
    text = b'{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}'
    path.write_bytes((640).to_bytes(8, "little") + text.ljust(640) + b"\7")
    assert np.asarray(wg.io.open(path)["a"]).tolist() == [7]


def test_folders(tmp_path: Path) -> None:
    wg.io.save(tmp_path / "x.gguf", {"a": np.ones(2, np.float32)})
    assert list(wg.io.open(tmp_path)) == ["a"]
    wg.io.save(tmp_path / "y.gguf", {"a": np.ones(2, np.float32)})
    with pytest.raises(wg.ModelFileError, match=r"several \.gguf files.*x\.gguf, y\.gguf"):
        wg.io.open(tmp_path)


def test_what_is_no_file_of_weights(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello, this is a text")
    with pytest.raises(wg.ModelFileError, match="none of the files"):
        wg.io.open(tmp_path / "x.txt")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(wg.ModelFileError, match="none of the files"):
        wg.io.open(tmp_path / "empty")
    for name in ("none", "none.gguf", "none.npz", "none/none.npy", "n" * 300 + ".safetensors", "nul\0.gguf"):
        with pytest.raises(wg.ModelFileError, match="cannot be read"):
            wg.io.open(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has other pipes")
@pytest.mark.parametrize("suffix", ["", ".gguf", ".safetensors", ".npz", ".npy"])
def test_pipes_are_not_waited_for(suffix: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"x{suffix}")
    with pytest.raises(wg.ModelFileError, match="not a plain file"):
        wg.io.open(tmp_path / f"x{suffix}")
