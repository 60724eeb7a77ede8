"""Sources: how they are written, what is chosen of what they have, and what is never taken."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from webgrad.models.sources import Meter, Source, choose, is_safe, parse_source, sizes_under


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pypi:a-b==1.0", Source("pypi", "a-b", "1.0", "")),
        ("pypi:a==1.0rc1/x/y.gguf", Source("pypi", "a", "1.0rc1", "x/y.gguf")),
        ("hf:org/repo", Source("hf", "org/repo", "", "")),
        ("hf:org/repo/", Source("hf", "org/repo", "", "")),
        ("hf:org/repo/a/b.gguf", Source("hf", "org/repo", "", "a/b.gguf")),
        ("hf:org/repo:Q4_K_M", Source("hf", "org/repo", "", "", "Q4_K_M")),
        ("hf:org/repo@v1.0/a.gguf", Source("hf", "org/repo", "v1.0", "a.gguf")),
        ("hf:org/repo@abc:Q8_0", Source("hf", "org/repo", "abc", "", "Q8_0")),
        ("hf.co/org/repo", Source("hf", "org/repo", "", "")),
        ("hf.co/org/Repo-1.5B-GGUF:IQ4_XS", Source("hf", "org/Repo-1.5B-GGUF", "", "", "IQ4_XS")),
        ("huggingface.co/org/repo/a.gguf", Source("hf", "org/repo", "", "a.gguf")),
        ("https://huggingface.co/org/repo", Source("hf", "org/repo", "", "")),
        ("https://huggingface.co/org/repo/", Source("hf", "org/repo", "", "")),
        ("https://huggingface.co/org/repo?library=x#files", Source("hf", "org/repo", "", "")),
        ("https://huggingface.co/org/repo:Q4_0", Source("hf", "org/repo", "", "", "Q4_0")),
        ("https://huggingface.co/org/repo/tree/main", Source("hf", "org/repo", "", "")),
        ("https://hf.co/org/repo/tree/v2/sub/folder", Source("hf", "org/repo", "v2", "sub/folder")),
        ("https://www.huggingface.co/org/repo/blob/main/a.gguf", Source("hf", "org/repo", "", "a.gguf")),
        ("http://hf.co/org/repo/raw/main/x/a%20b.gguf", Source("hf", "org/repo", "", "x/a b.gguf")),
        (
            "https://huggingface.co/org/repo/resolve/main/a.gguf?download=true",
            Source("hf", "org/repo", "", "a.gguf"),
        ),
        ("smollm2:135m", None),
        ("org/repo:Q4_K_M", None),
        ("hf.company/x", None),
        ("/tmp/x", None),
    ],
)
def test_sources(text: str, expected: Source | None) -> None:
    assert parse_source(text) == expected
    if expected is not None:
        assert parse_source(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "pypi:a",
        "pypi:a==",
        "pypi:--index-url=x==1",
        "pypi:a==1 --pre",
        "pypi:a>=1",
        "hf:repo",
        "hf:",
        "hf:../x/y",
        "hf:org/repo:",
        "hf:org/repo:Q4/x",
        "hf.co/org",
        "https://huggingface.co/",
        "https://huggingface.co/org/repo/tree/refs%2Fpr%2F1",
    ],
)
def test_what_names_no_source(text: str) -> None:
    with pytest.raises(wg.ArgumentError, match="names no source of a model; it is written pypi:"):
        parse_source(text)


@pytest.mark.parametrize(
    "inside", ["../x", "a/../../x", "/etc/passwd", "C:/x", "a\\..\\x", "a\0b", "a/.. /x", "..."]
)
def test_paths_that_lead_out(inside: str) -> None:
    assert not is_safe(inside)
    if not inside.startswith("/"):
        with pytest.raises(wg.ArgumentError, match="leads out of where it is looked for"):
            parse_source(f"hf:org/repo/{inside}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://example.com/a.gguf", "of addresses those of huggingface.co are fetched; download the file"),
        ("https://huggingface.co/datasets/org/repo", "not a model's address: it names one of datasets"),
        ("hf.co/spaces/org/repo", "not a model's address: it names one of spaces"),
        ("https://hf.co/org/repo/blob/main/..%2F..%2Fx", "leads out of where it is looked for"),
    ],
)
def test_addresses_that_are_not_fetched(text: str, told: str) -> None:
    with pytest.raises(wg.ArgumentError, match=told):
        parse_source(text)


# Choosing


def chosen(paths: list[str], inside: str = "", quantised: str = "") -> tuple[list[str], str]:
    choice = choose(paths, Source("hf", "org/repo", "", inside, quantised))
    return list(choice.names.values()), choice.main


def test_a_repository_with_weights_in_several_formats() -> None:
    paths = ["README.md", "config.json", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "vocab.txt"]
    paths += ["1_Pooling/config.json", "original/model.safetensors", "consolidated.safetensors"]
    names = ["model.safetensors", "config.json", "vocab.txt", "1_Pooling/config.json"]
    assert chosen(paths) == (names, "")


def test_a_folder_that_is_named() -> None:
    paths = [
        "package/__init__.py",
        "package/model/model.safetensors",
        "package/model/a/b.json",
        "other/c.json",
    ]
    for inside in ("package/model", "model", ""):
        assert chosen(paths, inside) == (["model.safetensors", "a/b.json"], "")


def test_the_only_file_and_one_of_several() -> None:
    assert chosen(["x/a.gguf", "x/b.py"]) == (["a.gguf"], "a.gguf")
    assert chosen(["x/a.gguf", "x/b.py"], "x") == (["a.gguf"], "a.gguf")
    assert chosen(["x/a.gguf", "x/b.gguf"], "b.gguf") == (["b.gguf"], "b.gguf")
    for inside in ("", "x"):
        with pytest.raises(wg.ArgumentError, match=r"several models, say which: x/a\.gguf, x/b\.gguf"):
            chosen(["x/a.gguf", "x/b.gguf"], inside)
    with pytest.raises(wg.ArgumentError, match=r"may be x/a\.gguf or y/a\.gguf; name it in full"):
        chosen(["x/a.gguf", "y/a.gguf"], "a.gguf")


def test_an_onnx_model_brings_what_lies_beside_it() -> None:
    paths = ["p/m.onnx", "p/m.onnx_data", "p/labels.txt", "p/n.onnx_data", "q/config.json", "p/run.py"]
    for inside in ("", "p", "m.onnx"):
        assert chosen(paths, inside) == (["m.onnx", "m.onnx_data", "labels.txt"], "m.onnx")
    with pytest.raises(wg.ArgumentError, match=r"several models, say which: p/m\.onnx, p/n\.onnx"):
        chosen(["p/m.onnx", "p/n.onnx"])


QUANTISED = [
    *("README.md", "config.json", "mmproj-F16.gguf", "imatrix.gguf"),
    *("Model-Q4_K_M.gguf", "Model-Q4_K_S.gguf", "Model-Q4_K.gguf", "Model.IQ4_XS.gguf", "model-q8_0.gguf"),
    *("BF16/Model-BF16-00001-of-00002.gguf", "BF16/Model-BF16-00002-of-00002.gguf"),
    *("Q6_K/Model-00001-of-00002.gguf", "Q6_K/Model-00002-of-00002.gguf"),
]


@pytest.mark.parametrize(
    ("quantised", "names"),
    [
        ("Q4_K_M", ["Model-Q4_K_M.gguf"]),
        ("q4_k_m", ["Model-Q4_K_M.gguf"]),
        ("Q4_K", ["Model-Q4_K.gguf"]),
        ("IQ4_XS", ["Model.IQ4_XS.gguf"]),
        ("Q8_0", ["model-q8_0.gguf"]),
        ("BF16", ["Model-BF16-00001-of-00002.gguf", "Model-BF16-00002-of-00002.gguf"]),
        ("Q6_K", ["Model-00001-of-00002.gguf", "Model-00002-of-00002.gguf"]),
    ],
)
def test_a_file_by_how_it_is_quantised(quantised: str, names: list[str]) -> None:
    assert chosen(QUANTISED, quantised=quantised) == (names, names[0])


def test_a_quantisation_that_fits_none_or_several() -> None:
    with pytest.raises(wg.ArgumentError, match=r"no \.gguf file's name says Q4_XS; it has Model-Q4_K_M"):
        chosen(QUANTISED, quantised="Q4_XS")
    with pytest.raises(
        wg.ArgumentError, match=r"may be one of several, say which: a-UD-Q4_K_M\.gguf, a-Q4_K"
    ):
        chosen(["a-UD-Q4_K_M.gguf", "a-Q4_K_M.gguf"], quantised="Q4_K_M")
    with pytest.raises(wg.ArgumentError, match=r"several models, .*; as hf:org/repo:Q4_K_M, or its whole"):
        chosen(["a-Q4_K_M.gguf", "a-Q8_0.gguf"])


def test_a_split_model_is_one() -> None:
    parts = ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]
    assert chosen(["README.md", *parts]) == (parts, parts[0])
    assert chosen([f"x/{each}" for each in parts], "x") == (parts, parts[0])
    assert chosen(parts, parts[1]) == (parts, parts[0])
    with pytest.raises(wg.ModelFileError, match=r"one of 2 parts; a-00002-of-00002\.gguf is missing"):
        chosen(parts[:1])


def test_what_is_not_there() -> None:
    with pytest.raises(wg.ArgumentError, match=r"there is no 'b\.gguf' in it; it has x/a\.gguf"):
        chosen(["x/a.gguf"], "b.gguf")
    for inside in ("", "x"):
        with pytest.raises(
            wg.ModelFileError, match=r"no \.safetensors, \.gguf or \.onnx file; it has x/config\.json"
        ):
            chosen(["x/config.json", "x/a.py"], inside)


def test_pickles_are_refused() -> None:
    for inside in ("", "x", "w.bin"):
        with pytest.raises(
            wg.ModelFileError, match=r"x/w\.bin may run any code .* safetensors\.torch\.save_file"
        ):
            chosen(["x/w.bin", "x/config.json"], inside)


# The bar


def test_a_meter_counts_megabytes(capsys: pytest.CaptureFixture[str]) -> None:
    meter = Meter("tiny", 2_500_000, True)
    for count in (0, 1_200_000, 1_900_000, 9_000_000):
        meter.at(count)
    meter.close(is_whole=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["tiny 1/3", "tiny 2/3", "tiny 3/3"]
    quiet = Meter("tiny", 2_500_000, False)
    quiet.at(2_000_000)
    quiet.close(is_whole=True)
    assert capsys.readouterr().err == ""


def test_sizes_under_a_folder(tmp_path: Path) -> None:
    assert sizes_under(tmp_path / "none") == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(bytes(5))
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert sum(sizes_under(tmp_path)) == 5


def test_sizes_under_a_folder_of_which_another_process_removes_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"abc")
    scan = os.scandir

    def removing(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "gone":
            shutil.rmtree(path)
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", removing)
        assert sizes_under(tmp_path) == [3]
