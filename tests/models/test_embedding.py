"""Embedding models: pooled as their folders say, cut off, and the same whatever stands beside a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.random_models import FAMILIES, weights_of
from webgrad.models.embedding import EmbeddingModel, load_embedding, load_encoder

from .conftest import model_path

FAMILY = FAMILIES["bert"]
WORDS = ("a", "man", "is", "eating", "food", "bread", "girl", "baby", ".", "the")
TEXTS = [
    " ".join(WORDS[(3 * row + 7 * place) % 10] for place in range(1 + row * 5 % 23)) for row in range(64)
]
Array = np.ndarray[Any, Any]


def write(folder: Path, poolings: dict[str, Any], *, normalise: bool, limits: dict[str, Any]) -> Path:
    """A folder with a small BERT whose weights are random, and a tokenizer of ten words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    wg.io.save(folder / "model.safetensors", weights_of(FAMILY))
    (folder / "config.json").write_text(json.dumps(FAMILY.config), encoding="utf-8")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    tokenizer = Tokenizer(
        models.WordPiece({word: number for number, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(poolings), encoding="utf-8")
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalise else [])]
    modules = [
        {"idx": number, "type": f"sentence_transformers.models.{kind}", "path": f"{number}_{kind}"}
        for number, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "sentence_bert_config.json").write_text(json.dumps(limits), encoding="utf-8")
    return folder


def made(folder: Path, *modes: str, normalise: bool = False, longest: int = 24) -> EmbeddingModel:
    options = {f"pooling_mode_{mode}": True for mode in modes}
    return load_embedding(
        write(folder, options, normalise=normalise, limits={"max_seq_length": longest}), "cpu"
    )


@pytest.fixture
def model(tmp_path: Path) -> EmbeddingModel:
    return made(tmp_path, "mean_tokens", normalise=True)


def test_a_batch_is_its_texts_one_by_one(model: EmbeddingModel) -> None:
    together = model.embed(TEXTS)
    assert together.shape == (64, 64)
    alone = np.concatenate([model.embed([text]).numpy() for text in TEXTS])
    np.testing.assert_allclose(together.numpy(), alone, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.embed(TEXTS, batch_size=5).numpy(), alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
def test_minilm(device: str) -> None:
    """What sentence-transformers gives, and texts of other lengths beside them."""
    model: Any = wg.models.load(model_path("minilm"), device=device)
    texts = [
        "A man is eating food.",
        "A man is eating a piece of bread.",
        "The girl is carrying a baby.",
        "Nobody knows what the weather will be like in the mountains tomorrow, least of all the forecasters.",
    ]
    food, bread, baby, _ = model.embed(texts).numpy()
    assert food @ bread == pytest.approx(0.7553, abs=0.002)
    assert food @ baby == pytest.approx(-0.105, abs=0.002)
    np.testing.assert_allclose(model.embed(texts[:1]).numpy()[0], food, rtol=0, atol=1e-5)


def test_vectors_have_length_one(model: EmbeddingModel) -> None:
    np.testing.assert_allclose(np.linalg.norm(model.embed(TEXTS[:5]).numpy(), axis=1), 1, atol=1e-6)


def test_an_empty_text_is_its_two_special_tokens(model: EmbeddingModel) -> None:
    np.testing.assert_allclose(model.embed([""]).numpy(), model.embed(["  "]).numpy(), atol=1e-6)


def test_long_texts_are_cut_off_before_the_last_token(model: EmbeddingModel) -> None:
    words = ("man " * 22).strip()  # with two special tokens 24
    np.testing.assert_allclose(
        model.embed([f"{words} is eating bread"]).numpy(), model.embed([words]).numpy(), atol=1e-6
    )
    assert np.abs(model.embed([words]).numpy() - model.embed([words[4:]]).numpy()).max() > 1e-4


def test_poolings_stand_side_by_side(tmp_path: Path) -> None:
    model = made(tmp_path, "cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "lasttoken")
    ids = model.tokenizer.encode(TEXTS[3])
    found = model.embed([TEXTS[7], TEXTS[3]]).numpy()[1].reshape(5, 64)
    bert = load_encoder(tmp_path, "cpu")
    rows = bert(wg.asarray([ids]), wg.asarray([len(ids)])).numpy()[0]
    total = rows.sum(axis=0)
    expected = [rows[0], rows.max(axis=0), total / len(ids), total / len(ids) ** 0.5, rows[-1]]
    np.testing.assert_allclose(found, np.stack(expected), rtol=0, atol=1e-5)


def test_poolings_of_newer_files_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path, {"pooling_mode": "cls"}, normalise=False, limits={})
    model = load_embedding(folder, "cpu")
    assert model.settings.poolings == ("cls",)
    assert model.settings.longest == 64  # as many as there are positions


def test_a_folder_without_modules_takes_the_mean(tmp_path: Path) -> None:
    write(tmp_path, {}, normalise=True, limits={})
    (tmp_path / "modules.json").unlink()
    settings = load_embedding(tmp_path, "cpu").settings
    assert (settings.poolings, settings.normalise) == (("mean",), False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the list of texts is empty"),
        ("one text", r"not a str: write embed\(\[text\]\)"),
        (["a", 3], "number 1 is a int"),
        ([b"a"], "number 0 is a bytes"),
        (None, "not a NoneType"),
    ],
)
def test_what_is_no_list_of_texts(model: EmbeddingModel, given: Any, message: str) -> None:
    with pytest.raises(wg.ArgumentError, match=message):
        model.embed(given)


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_batch_sizes_that_are_none(model: EmbeddingModel, size: Any) -> None:
    with pytest.raises(wg.ArgumentError, match="batch_size"):
        model.embed(["a"], batch_size=size)


def test_modules_and_poolings_that_are_not_offered(tmp_path: Path) -> None:
    folder = write(tmp_path, {"pooling_mode_weightedmean_tokens": True}, normalise=False, limits={})
    with pytest.raises(wg.ModelFileError, match="weightedmean is not offered"):
        load_embedding(folder, "cpu")
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]', encoding="utf-8")
    with pytest.raises(
        wg.ModelFileError, match=r"type 'sentence_transformers\.models\.Dense' is not offered"
    ):
        load_embedding(folder, "cpu")
    (folder / "modules.json").write_text("{", encoding="utf-8")
    with pytest.raises(wg.ModelFileError, match=r"modules\.json cannot be read"):
        load_embedding(folder, "cpu")
    (folder / "modules.json").write_text(" " * (1 << 24) + "[]", encoding="utf-8")
    with pytest.raises(wg.ModelFileError, match="too large"):
        load_embedding(folder, "cpu")
    (folder / "modules.json").write_text("{}", encoding="utf-8")
    with pytest.raises(wg.ModelFileError, match="must hold a list"):
        load_embedding(folder, "cpu")


@pytest.mark.parametrize("mode", [3, [[]], {"mean": 1}, [], ["mean", "no"]])
def test_poolings_of_any_kind_are_refused_by_name(tmp_path: Path, mode: Any) -> None:
    folder = write(tmp_path, {"pooling_mode": mode}, normalise=False, limits={})
    with pytest.raises(wg.ModelFileError, match=r"1_Pooling.config\.json: the pooling .* is not offered"):
        load_embedding(folder, "cpu")


@pytest.mark.parametrize("longest", [1, "12", [5], 1e9])
def test_limits_that_are_none(tmp_path: Path, longest: Any) -> None:
    folder = write(tmp_path, {"pooling_mode": "cls"}, normalise=False, limits={"max_seq_length": longest})
    with pytest.raises(
        wg.ModelFileError, match=r"sentence_bert_config\.json: max_seq_length must be an integer"
    ):
        load_embedding(folder, "cpu")


def test_a_tokenizer_with_more_tokens_than_the_model(tmp_path: Path) -> None:
    folder = write(tmp_path, {"pooling_mode": "cls"}, normalise=False, limits={})
    path = folder / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"baby": 11', '"baby": 700'), encoding="utf-8")
    model = load_embedding(folder, "cpu")
    with pytest.raises(wg.ArgumentError, match="the id 700, and the model's vocabulary has 256 tokens"):
        model.embed(["the baby"])
