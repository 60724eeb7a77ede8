"""Random models of every family: the logits of transformers, from either file, however a text is read.

`make test-transformers` runs these, in an environment of its own.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.family_logits import FIXTURE, reference, sample
from scripts.random_models import FAMILIES, IDS, write_folder, write_gguf
from webgrad.models.caches import Cache, Places
from webgrad.models.embedding import load_encoder
from webgrad.models.language import LanguageModel

torch = pytest.importorskip("torch", reason="torch is not installed: `make test-transformers` runs these")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: `make test-transformers` runs these"
)

torch.set_num_threads(1)
Array = np.ndarray[Any, Any]
DEVICES = ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)]
DECODERS = [name for name in FAMILIES if name != "bert"]
FORMS = ("folder", "saved", "gguf")
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


def written(root: Path, name: str, form: str) -> Path:
    """A family's model as webgrad's scripts write it, as transformers saves it again, or as a GGUF file."""
    folder = root / name
    if not folder.exists():
        write_folder(FAMILIES[name], folder)
    if form == "folder":
        return folder
    if form == "gguf":
        path = root / f"{name}.gguf"
        if FAMILIES[name].gguf is None:
            pytest.skip("GGUF has no keys for what this family shows")
        if not path.exists():
            write_gguf(FAMILIES[name], path)
        return path
    if not (root / f"{name}-saved").exists():
        source = transformers.AutoModel if name == "bert" else transformers.AutoModelForCausalLM
        source.from_pretrained(folder, dtype=torch.float32).save_pretrained(root / f"{name}-saved")
    return root / f"{name}-saved"


@cache
def expected(root: Path, name: str) -> Array:
    return reference(written(root, name, "folder"))


def loaded(root: Path, name: str, form: str, device: str) -> LanguageModel:
    model = wg.models.load(str(written(root, name, form)), device=device)
    assert isinstance(model, LanguageModel)
    return model


def read_in_parts(model: LanguageModel, size: int) -> Array:
    """The logits of a text that is read so many tokens at a time, through one cache."""
    decoder, device = model.decoder, model.device
    caches = [Cache(decoder.settings, len(IDS) + 8, device) for _ in range(decoder.settings.layers)]
    decoder.prepare(len(IDS) + 8)

    @wg.jit
    def read(ids: wg.Tensor, position: Any) -> wg.Tensor:
        return decoder.logits(decoder(ids, Places.after(position, ids.shape[0], device), caches))

    parts = [
        read(wg.asarray(IDS[start : start + size], dtype=wg.int32, device=device), start).numpy()
        for start in range(0, len(IDS), size)
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", DECODERS)
def test_logits_of_a_whole_text(root: Path, name: str, form: str, device: str) -> None:
    found = loaded(root, name, form, device).logits(IDS).numpy()
    np.testing.assert_allclose(found, expected(root, name), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [13, 1])
@pytest.mark.parametrize("name", DECODERS)
def test_logits_of_a_text_in_parts(root: Path, name: str, size: int, device: str) -> None:
    found = read_in_parts(loaded(root, name, "folder", device), size)
    np.testing.assert_allclose(found, expected(root, name), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DECODERS)
def test_greedy_tokens(root: Path, name: str, device: str) -> None:
    """What generate_ids gives, reading by chunks and stepping in captured functions."""
    folder = written(root, name, "folder")
    source = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model = loaded(root, name, "folder", device)
    model.stop_ids = frozenset()
    found = list(model.generate_ids(IDS[:21], max_tokens=24, temperature=0))
    text = [*IDS[:21]]
    for token in found:
        with torch.no_grad():
            row = source(torch.tensor([text])).logits[0, -1].numpy()
        assert row[token] >= row.max() - 2 * TOLERANCE
        text.append(token)
    assert len(found) == 24


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
def test_bert(root: Path, form: str, device: str) -> None:
    bert = load_encoder(written(root, "bert", form), device)
    lengths = wg.asarray([len(IDS)], device=device)
    found = bert(wg.asarray([IDS], device=device), lengths).numpy()[0]
    np.testing.assert_allclose(found, expected(root, "bert"), rtol=0, atol=TOLERANCE)


def test_what_is_stored_for_tests_without_transformers(root: Path) -> None:
    import json

    stored = json.loads(FIXTURE.read_text(encoding="utf-8"))
    assert list(stored) == list(FAMILIES)
    for name, rows in stored.items():
        np.testing.assert_allclose(sample(expected(root, name)), rows, rtol=0, atol=2e-5)
