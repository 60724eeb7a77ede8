"""The catalogue: rows that can be pulled, and names that were nearly right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import webgrad as wg
from webgrad.models.known_models import nearest
from webgrad.models.sources import is_safe, parse_source


def test_rows() -> None:
    for name, entry in wg.models.catalogue().items():
        source = parse_source(entry.source)
        assert source is not None
        assert (name, str(source)) == (entry.name, entry.source)
        assert entry.files
        assert all(is_safe(path) for path in entry.files)
        assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in entry.files.values())
        assert entry.size > 1e5 < entry.download


def test_the_pieces_of_a_model_in_several_packages() -> None:
    entry = wg.models.catalogue()["kokoro"]
    sources = [parse_source(text) for text in (entry.source, *entry.parts)]
    assert [source and source.name[-1] for source in sources] == ["1", "2", "3", "4"]
    assert len(entry.files) == 1


def test_onnx_models_say_what_loads_them(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"")
    with pytest.raises(wg.ModelFileError, match=r"m.onnx is an ONNX model: wg.onnx.load\("):
        wg.models.load(path)


def test_the_first_model_of_a_newcomer() -> None:
    entry = wg.models.catalogue()["smollm2:135m"]
    assert list(entry.files) == ["SmolLM2-135M-Instruct.Q4_1.gguf"]
    assert entry.size == 98_362_432


@pytest.mark.parametrize(
    ("name", "expected"),
    [("smol", "smollm2:135m"), ("SmolLM2:135M", "smollm2:135m"), ("minilmm", "minilm"), ("x", ""), ("", "")],
)
def test_names_that_were_nearly_right(name: str, expected: str) -> None:
    assert nearest(name) == expected
