"""safetensors in one file and in several: lazy views, in the file's order, and indexes that lie."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import webgrad as wg


def file(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_tensors_are_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    random = np.random.default_rng(0)
    given: dict[str, np.ndarray[Any, Any]] = {
        "a": random.normal(size=(300, 40)).astype(np.float32),
        "b": np.arange(5, dtype=np.int64),
    }
    save_file(given, path, {"format": "np"})
    with wg.io.open(path) as weights:
        assert weights.kind == "safetensors"
        assert weights.metadata == {"format": "np"}
        assert set(weights) == set(given)
        first, again = weights.host("a"), weights.host("a")
        assert isinstance(first, np.ndarray)
        assert isinstance(again, np.ndarray)
        assert np.shares_memory(first, again)
        for name, array in load_file(path).items():
            np.testing.assert_array_equal(np.asarray(weights.read(name, "cpu")), array)


def test_names_come_in_the_order_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    entry = {"dtype": "I8", "shape": [2]}
    header = {name: entry | {"data_offsets": [at, at + 2]} for name, at in (("b", 4), ("c", 0), ("a", 2))}
    path.write_bytes(file(header, bytes(range(6))))
    weights = wg.io.open(path)
    assert {name: np.asarray(weights[name]).tolist() for name in weights} == {
        "c": [0, 1],
        "a": [2, 3],
        "b": [4, 5],
    }
    assert list(weights) == ["c", "a", "b"]


def test_numbers_that_lie_between_words(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    entries = {
        "a": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
    }
    for spaces in range(4):
        header = json.dumps(entries).encode() + b" " * spaces
        path.write_bytes(file(header, b"\7" + np.asarray([1.5, -2], np.float32).tobytes()))
        found = wg.io.open(path).host("b")
        assert isinstance(found, np.ndarray)
        assert found.tolist() == [1.5, -2]
        assert found.flags.aligned


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HOSTILE = {
    "a name twice": (
        file(b'{"x": %s, "x": %s}' % ((json.dumps(ENTRY).encode(),) * 2), bytes(8)),
        "damaged",
    ),
    "65 sizes": (file({"x": ENTRY | {"shape": [1] * 64 + [2]}}, bytes(8)), "which no array has"),
    "sizes of nothing": (
        file({"x": ENTRY | {"shape": [0, 1 << 62], "data_offsets": [0, 0]}}),
        "which no array has",
    ),
    "a header over the limit": (
        struct.pack("<Q", 9 << 20) + b"{}" + b" " * ((9 << 20) - 2),
        "limit is 8,388,608",
    ),
    "a header longer than the file": (struct.pack("<Q", 1 << 60) + b"{}", "longer than it is"),
    "names over the limit": (file(b'{"a":' + b"{" * 70_000), "lists too much"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    data, message = HOSTILE[name]
    path.write_bytes(data)
    with pytest.raises(wg.ModelFileError, match=message):
        wg.io.open(path)


def test_a_dtype_that_webgrad_has_not_is_an_error_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    entries = {
        "x": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]},
        "y": {"dtype": "I8", "shape": [1], "data_offsets": [8, 9]},
    }
    path.write_bytes(file(entries, bytes(9)))
    weights = wg.io.open(path)
    assert weights.form("x") == "F8_E4M3"
    assert weights["y"].shape == (1,)
    with pytest.raises(wg.ModelFileError, match="x is F8_E4M3, and webgrad has BOOL"):
        weights.read("x")


def shards(folder: Path, **changes: str) -> dict[str, np.ndarray[Any, Any]]:
    """Two files and their index, in which `changes` replace places."""
    given = {f"layer{number}": np.full((2, 2), number, np.float32) for number in range(4)}
    names = [f"model-{number:05d}-of-00002.safetensors" for number in (1, 2)]
    places: dict[str, str] = {}
    for number, name in enumerate(names):
        part = {f"layer{at}": given[f"layer{at}"] for at in (2 * number, 2 * number + 1)}
        save_file(part, folder / name, {"format": "pt"})
        places |= dict.fromkeys(part, name)
    index = {"metadata": {"total_size": 64}, "weight_map": places | changes}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return given


@pytest.mark.parametrize("by", ["", "model.safetensors.index.json"])
def test_several_files(by: str, tmp_path: Path) -> None:
    given = shards(tmp_path)
    weights = wg.io.open(tmp_path / by)
    assert set(weights) == set(given)
    assert weights.metadata == {"format": "pt"}
    assert weights.nbytes == 64
    for name, array in given.items():
        np.testing.assert_array_equal(np.asarray(weights[name]), array)


@pytest.mark.parametrize(
    "place",
    ["../x.safetensors", "/etc/x.safetensors", "a/x.safetensors", "a\\x.safetensors", "c:x.safetensors"],
)
def test_an_index_stays_in_its_folder(place: str, tmp_path: Path) -> None:
    shards(tmp_path, layer1=place)
    with pytest.raises(wg.ModelFileError, match="in its own folder"):
        wg.io.open(tmp_path)


def test_what_an_index_names_must_be_there(tmp_path: Path) -> None:
    shards(tmp_path, layer9="model-00002-of-00002.safetensors")
    with pytest.raises(wg.ModelFileError, match=r"layer9 is not in model-00002"):
        wg.io.open(tmp_path)
    shards(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(wg.ModelFileError, match=r"names 2 files, and 1 of them .*model-00002-of"):
        wg.io.open(tmp_path)
    for name in ("x" * 300, "\ud800", "a\x1b[2J"):  # which no file has, or should have
        shards(tmp_path, layer1=f"{name}.safetensors")
        with pytest.raises(wg.ModelFileError, match=r"names 3 files, and 1 of them"):
            wg.io.open(tmp_path)
    for text in ("[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', "{", "\ufeff"):
        (tmp_path / "model.safetensors.index.json").write_text(text, encoding="utf-8")
        with pytest.raises(wg.ModelFileError, match=r"index\.json is damaged"):
            wg.io.open(tmp_path)


def test_folders_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match="a folder without"):
        wg.io.open(tmp_path)
    save_file({"a": np.ones(1)}, tmp_path / "one.safetensors")
    save_file({"b": np.ones(2)}, tmp_path / "two.safetensors")
    assert sorted(wg.io.open(tmp_path)) == ["a", "b"]
    save_file({"b": np.ones(2)}, tmp_path / "three.safetensors")
    with pytest.raises(wg.ModelFileError, match="b is in several files"):
        wg.io.open(tmp_path)
    save_file({"c": np.ones(2)}, tmp_path / "model.safetensors")
    assert list(wg.io.open(tmp_path)) == ["c"]


@pytest.mark.parametrize("part", [b"{}", b"[]", b"1", b'"a"'], ids=["objects", "lists", "numbers", "texts"])
def test_an_index_of_many_parts_is_not_taken_apart(part: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_bytes(b'{"weight_map": [' + (part + b",") * (1 << 21) + b"0]}")
    tracemalloc.start()
    try:
        with pytest.raises(wg.ModelFileError, match="lists too much"):
            wg.io.open(path)
        assert tracemalloc.get_traced_memory()[1] < 2 * path.stat().st_size
    finally:
        tracemalloc.stop()


def test_names_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    name = "x\x1b[2J\n" + "y" * 1000
    path = tmp_path / "x.safetensors"
    save_file({name: np.ones(1)}, path)
    with pytest.raises(wg.ModelFileError, match=r"it has 1: 'x\\x1b\[2J\\ny+'…$"):
        wg.io.open(path).shape("z")
    path.write_bytes(file({name: {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, bytes(1)))
    with pytest.raises(wg.ModelFileError) as caught:
        wg.io.open(path).host(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400 + len(str(path))


@pytest.mark.skipif(os.name == "nt", reason="Windows lets few users make links")
def test_links_are_followed(tmp_path: Path) -> None:
    """As in the folders that huggingface_hub makes."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "model").mkdir()
    save_file({"a": np.ones(1)}, tmp_path / "blobs" / "0123")
    (tmp_path / "model" / "model.safetensors").symlink_to(tmp_path / "blobs" / "0123")
    assert list(wg.io.open(tmp_path / "model")) == list(wg.io.open(tmp_path / "blobs" / "0123")) == ["a"]
