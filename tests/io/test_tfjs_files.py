"""Models of TensorFlow.js: codes as the numbers that they stand for, shards that lie, graphs as records."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg

FLOATS = np.asarray([[1.5, -2.0], [0.25, 8.0]], np.float32)
CODES = np.asarray([0, 3, 255], np.uint8)
WEIGHTS: list[dict[str, Any]] = [
    {"name": "plain", "shape": [2, 2], "dtype": "float32"},
    {
        "name": "codes",
        "shape": [3],
        "dtype": "float32",
        "quantization": {"dtype": "uint8", "scale": 0.1, "min": -1.0, "original_dtype": "float32"},
    },
    {"name": "texts", "shape": [2], "dtype": "string"},
    {
        "name": "wide",
        "shape": [2],
        "dtype": "int32",
        "quantization": {"dtype": "uint16", "scale": 0.5, "min": -3},
    },
    {"name": "halves", "shape": [2], "dtype": "float32", "quantization": {"dtype": "float16"}},
    {"name": "flag", "shape": [], "dtype": "bool"},
]
DATA = (
    FLOATS.tobytes()
    + CODES.tobytes()
    + b"\2\0\0\0hi\0\0\0\0"
    + np.asarray([5, 65535], "<u2").tobytes()
    + np.asarray([0.1, 65504], "<f2").tobytes()
    + b"\1"
)
NODES: list[dict[str, Any]] = [
    {
        "name": "x",
        "op": "Placeholder",
        "attr": {"shape": {"shape": {"dim": [{"size": "-1"}, {"size": "2"}]}}},
    },
    {"name": "plain", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
    {
        "name": "y",
        "op": "MatMul",
        "input": ["x", "plain"],
        "attr": {
            "transpose_b": {"b": True},
            "steps": {"list": {"i": ["1", "2"]}},
            "none": {"list": {}},
            "epsilon": {"f": 0.5},
            "padding": {"s": base64.b64encode(b"SAME").decode()},
            "any": {"shape": {"unknownRank": True}},
        },
    },
]


def written(folder: Path, weights: Any = None, paths: Any = None, **more: Any) -> Path:
    """A model in two shards, of which one ends within a weight."""
    names = ["a.bin", "b.bin"]
    for name, part in zip(names, (DATA[:18], DATA[18:]), strict=True):
        (folder / name).write_bytes(part)
    group = {"paths": names if paths is None else paths, "weights": WEIGHTS if weights is None else weights}
    model = {"format": "graph-model", "modelTopology": {"node": NODES}, "weightsManifest": [group], **more}
    (folder / "model.json").write_text(json.dumps(model))
    return folder / "model.json"


@pytest.mark.parametrize("by", ["", "model.json"])
def test_weights_are_the_numbers_that_codes_stand_for(by: str, tmp_path: Path) -> None:
    written(tmp_path)
    with wg.io.open(tmp_path / by) as weights:
        assert (weights.kind, weights.metadata["format"]) == ("tfjs", "graph-model")
        assert list(weights) == ["plain", "codes", "texts", "wide", "halves", "flag"]
        assert [weights.form(name) for name in weights] == ["F32", "U8", "STRING", "U16", "F16", "BOOL"]
        assert weights.nbytes == len(DATA)
        np.testing.assert_array_equal(np.asarray(weights.host("plain")), FLOATS)
        wanted = (CODES.astype(np.float64) * 0.1 - 1.0).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(weights.host("codes")), wanted)
        assert np.asarray(weights.host("wide")).tolist() == [0, 32765]  # halves are rounded up
        assert np.asarray(weights.host("halves")).tolist() == [np.float32(np.float16(0.1)), 65504]
        assert np.asarray(weights.host("flag")).tolist() is True
        with pytest.raises(wg.ModelFileError, match="texts are not read"):
            weights.host("texts")


def test_a_graph_is_records(tmp_path: Path) -> None:
    nodes = wg.io.tfjs_nodes(wg.io.open(written(tmp_path)))
    assert [(each.name, each.op, each.inputs) for each in nodes] == [
        ("x", "Placeholder", ()),
        ("plain", "Const", ()),
        ("y", "MatMul", ("x", "plain")),
    ]
    assert nodes[0].attributes == {"shape": (-1, 2)}
    assert nodes[2].attributes == {
        "transpose_b": True,
        "steps": (1, 2),
        "none": (),
        "epsilon": 0.5,
        "padding": "SAME",
        "any": None,
    }


@pytest.mark.parametrize(
    "name", ["../a.bin", "/etc/passwd", "a/b.bin", "a\\b.bin", "c:a.bin", "..", ".", "", "a\0b", 7, None]
)
def test_shards_stay_in_their_folder(name: Any, tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match="which is no file in its own folder"):
        wg.io.open(written(tmp_path, paths=[name]))


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(DATA)
    (folder := tmp_path / "model").mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret")
    with pytest.raises(wg.ModelFileError, match=r"link\.bin, a link to a file that is not in its folder"):
        wg.io.open(written(folder, paths=["link.bin"]))


def changed(at: int, **changes: Any) -> list[dict[str, Any]]:
    return [each | changes if number == at else each for number, each in enumerate(WEIGHTS)]


QUANTISED = WEIGHTS[1]["quantization"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (WEIGHTS[:-1], "have 37 bytes, and its shards 38"),
        (changed(5, shape=[2]), "flag ends at byte 39, and its shards have 38"),
        (changed(1, name="plain"), "plain twice"),
        (changed(1, name=7), "7 twice, or no text as name"),
        (changed(0, shape=[1 << 40, 1 << 40]), "plain has the shape"),
        (changed(0, shape=[-2, -2]), "plain has the shape"),
        (changed(0, shape=[2.0, 2]), "plain has the shape"),
        (changed(0, dtype="float8"), "plain is 'float8', and webgrad has float32"),
        (changed(0, dtype=["float32"]), r"model\.json"),
        (changed(1, quantization=QUANTISED | {"dtype": "uint4"}), "stored as 'uint4'"),
        (changed(1, quantization=QUANTISED | {"scale": float("nan")}), "codes has the scale nan"),
        (changed(1, quantization=QUANTISED | {"min": True}), "the min True"),
        (changed(1, quantization=QUANTISED | {"original_dtype": "int32"}), "codes is float32 stored as"),
        (changed(1, quantization={"dtype": "uint8"}), "weightsManifest cannot be: KeyError"),
        (changed(2, shape=[1 << 20]), "has 1,048,576 texts up to texts, and the limit is 4,096"),
        (changed(2, shape=[3]), "texts"),
        ([7], "weightsManifest cannot be"),
        ({"a": 1}, "weightsManifest cannot be"),
    ],
)
def test_lists_that_lie(weights: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(wg.ModelFileError, match=message) as found:
        wg.io.open(written(tmp_path, weights=weights))
    assert "model.json" in str(found.value)


def test_a_name_in_two_groups(tmp_path: Path) -> None:
    group = {"paths": [], "weights": [{"name": "a", "shape": [0], "dtype": "float32"}]}
    with pytest.raises(wg.ModelFileError, match="has a twice"):
        wg.io.open(written(tmp_path, weightsManifest=[group, group]))


@pytest.mark.parametrize("groups", [[["a.bin", "a.bin"]], [["a.bin"], ["b.bin", "a.bin"]]])
def test_a_shard_is_named_once(groups: list[list[str]], tmp_path: Path) -> None:
    """Else a small file counts as a large one: 4096 times the same shard."""
    sizes = {"a.bin": 18, "b.bin": 20}
    listed = [
        {
            "paths": names,
            "weights": [{"name": f"{at}", "shape": [sum(map(sizes.get, names))], "dtype": "uint8"}],  # type: ignore[arg-type]
        }
        for at, names in enumerate(groups)
    ]
    with pytest.raises(wg.ModelFileError, match=r"it names a\.bin twice"):
        wg.io.open(written(tmp_path, weightsManifest=listed))


def test_texts_of_all_weights_have_one_limit(tmp_path: Path) -> None:
    (tmp_path / "texts.bin").write_bytes(bytes(4 * 6000))
    weights = [{"name": name, "shape": [3000], "dtype": "string"} for name in "ab"]
    with pytest.raises(wg.ModelFileError, match="has 6,000 texts up to b, and the limit is 4,096"):
        wg.io.open(written(tmp_path, weights=weights, paths=["texts.bin"]))


def test_texts_over_many_shards(tmp_path: Path) -> None:
    """What is walked through is found at once, however many shards there are."""
    names = [f"{at}.bin" for at in range(2000)]
    for name in names:
        (tmp_path / name).write_bytes(b"\0\0")
    weights = [{"name": "texts", "shape": [1000], "dtype": "string"}]
    with wg.io.open(written(tmp_path, weights=weights, paths=names)) as found:
        assert found.nbytes == 4000


def test_a_shard_that_is_missing_or_changes(tmp_path: Path) -> None:
    path = written(tmp_path)
    weights = wg.io.open(path)
    (tmp_path / "a.bin").write_bytes(b"")
    with pytest.raises(wg.ModelFileError, match=r"a\.bin has changed: it has 0 bytes now"):
        weights.host("plain")
    (tmp_path / "a.bin").unlink()
    with pytest.raises(wg.ModelFileError, match=r"a\.bin cannot be read: there is no such file"):
        wg.io.open(path)


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (None, "has no graph"),
        ({"model_config": {}}, "has no list of nodes"),
        ({"node": [], "library": {"function": [{}]}}, "functions of its own"),
        ({"node": [{"name": "x"}]}, "a node cannot be: KeyError"),
        ({"node": [{"name": "x", "op": "Y", "input": [1]}]}, "a node cannot be: TypeError"),
        ({"node": [{"name": "x", "op": "Y", "attr": {"a": {"s": "%"}}}]}, "an attribute of x cannot be"),
        ({"node": [{"name": "x", "op": "Y", "attr": {"a": {"z": 1}}}]}, "an attribute of x cannot be"),
        ({"node": [{"name": "x", "op": "Y", "attr": {"a": 1}}]}, "an attribute of x cannot be"),
    ],
)
def test_graphs_that_are_none(topology: Any, message: str, tmp_path: Path) -> None:
    weights = wg.io.open(written(tmp_path, modelTopology=topology))
    with pytest.raises(wg.ModelFileError, match=message):
        wg.io.tfjs_nodes(weights)


def test_a_json_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("[]")
    with pytest.raises(wg.ModelFileError, match="its text is no JSON object"):
        wg.io.open(tmp_path)
