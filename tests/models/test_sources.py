"""Sources: how they are written, what is chosen of what they have, and what is never taken."""

from __future__ import annotations

from pathlib import Path

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
        ("smollm2:135m", None),
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


# Choosing


def chosen(paths: list[str], inside: str = "") -> tuple[list[str], str]:
    choice = choose(paths, Source("hf", "org/repo", "", inside))
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


def test_what_is_not_there() -> None:
    with pytest.raises(wg.ArgumentError, match=r"there is no 'b\.gguf' in it; it has x/a\.gguf"):
        chosen(["x/a.gguf"], "b.gguf")
    for inside in ("", "x"):
        with pytest.raises(
            wg.ModelFileError, match=r"no \.safetensors and no \.gguf file; it has x/config\.json"
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
