"""`wg.models.load`: which paths hold a model, and what is said of those that do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import webgrad as wg
from tests.models.tiny import CONFIG, weights_of, write_folder


def test_a_folder_with_weights(tmp_path: Path) -> None:
    weights = weights_of(CONFIG)
    model = wg.models.load(write_folder(tmp_path / "model", CONFIG, weights), device="cpu")
    assert isinstance(model, wg.models.LanguageModel)
    assert model.logits([1, 2, 3]).shape == (3, CONFIG["vocab_size"])
    assert repr(model) == "LanguageModel(llama, 2 layers of 64, context 256, device='cpu')"


def test_a_folder_with_one_gguf_file_stands_for_it(tmp_path: Path) -> None:
    def write(name: str) -> None:
        matrix = {"x": np.zeros((2, 2), np.float32)}
        wg.io.save(tmp_path / name, matrix, {"general.architecture": f"kind of {name}"})

    with pytest.raises(wg.ModelFileError, match=r"no config\.json, .*, and no \.gguf"):
        wg.models.load(tmp_path)
    write("one.gguf")
    with pytest.raises(wg.ModelFileError, match=r"kind of one\.gguf"):  # it was read, and is of no family
        wg.models.load(tmp_path)
    write("two.gguf")
    with pytest.raises(wg.ModelFileError, match=r"2 \.gguf files: .*one\.gguf, two\.gguf"):
        wg.models.load(tmp_path)


def test_weights_without_settings(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", CONFIG, weights_of(CONFIG))
    with pytest.raises(wg.ModelFileError, match="load the folder with its config"):
        wg.models.load(folder / "model.safetensors")
    (folder / "config.json").write_text("[", encoding="utf-8")
    with pytest.raises(wg.ModelFileError, match=r"config\.json cannot be read"):
        wg.models.load(folder)
