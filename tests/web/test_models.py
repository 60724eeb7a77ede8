"""Exported models give in Dawn and in browsers what they give in Python, and their pages answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.web.exported import Call, run_exports
from tests.web.small_models import small_bert, small_llama
from webgrad.models import EmbeddingModel, LanguageModel
from webgrad.web.embedding import embedding_bundle
from webgrad.web.language import language_bundle

TOLERANCE = 1e-4
IDS = [int(each) for each in np.random.default_rng(5).integers(3, 250, 45)]
ROWS = [[int(each) for each in row] for row in np.random.default_rng(6).integers(3, 250, (8, 16))]
LENGTHS = [16, 1, 7, 3, 16, 9, 2, 5]
LIKELIEST = {"temperature": 0.7, "top_p": 1e-6, "min_p": 0.0}
ANY = {"temperature": 50.0, "top_p": 1.0, "min_p": 0.0}


def exported_llama(folder: Path) -> LanguageModel:
    """A model, and its functions in the folder; "logits" is one more, of a step."""
    model = small_llama(folder / "model")
    bundle, decoding = language_bundle(model, "llama", context=96)
    with wg.no_grad():
        bundle.add("logits", decoding.step_logits, {"token": 0, "position": 0})
    bundle.write(folder)
    return model


def llama_calls(model: LanguageModel) -> tuple[list[Call], list[Any]]:
    """A text that is read in chunks, the last one filled up, then gone on with; another after a reset."""
    expected = model.logits(IDS).numpy()
    written = list(model.generate_ids(IDS, max_tokens=4, temperature=0))
    first = list(model.generate_ids(IDS[:1], max_tokens=1, temperature=0))
    calls: list[Call] = [
        ("read_32", {"ids": IDS[:32], "position": 0}),
        ("read_8", {"ids": IDS[32:40], "position": 32}),
        ("read_8", {"ids": [*IDS[40:43], *[7] * 5], "position": 40}),
        ("logits", {"token": IDS[43], "position": 43}),
        ("logits", {"token": IDS[44], "position": 44}),
        ("sample", {"token": IDS[44], "position": 44, **LIKELIEST}),
    ]
    results: list[Any] = [{}, {}, {}, {"output": expected[43]}, {"output": expected[44]}]
    results.append({"token": written[0]})
    for place, token in enumerate([IDS[44], *written[:-1]]):
        calls.append(("greedy", {"token": token, "position": 44 + place}))
        results.append({"token": written[place]})
    calls += [("reset", {}), ("greedy", {"token": IDS[0], "position": 0})]
    return calls, [*results, {"token": first[0]}]


def bert_calls(model: EmbeddingModel) -> tuple[list[Call], list[Any]]:
    batches = [(ROWS, LENGTHS, "embed_16_8"), (ROWS[2:3], LENGTHS[2:3], "embed_16_1")]
    calls: list[Call] = [(name, {"ids": ids, "lengths": lengths}) for ids, lengths, name in batches]
    results = []
    for ids, lengths, _ in batches:
        with wg.no_grad():
            found = model.pooled(wg.asarray(ids, device="cpu"), wg.asarray(lengths, device="cpu"))
        results.append({"output": found.numpy()})
    return calls, results


def check(found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name, values in other.items():
            wanted = np.asarray(values)
            if wanted.dtype.kind == "i":
                assert np.asarray(one[name]).tolist() == wanted.tolist()
            else:
                np.testing.assert_allclose(one[name], wanted, atol=TOLERANCE, rtol=0)


@pytest.mark.usefixtures("dawn")
def test_small_models_give_what_they_give_in_python(tmp_path: Path) -> None:
    llama = exported_llama(tmp_path / "llama")
    bert = small_bert(tmp_path / "bert" / "model")
    embedding_bundle(bert, "bert")[0].write(tmp_path / "bert")
    calls, expected = llama_calls(llama)
    more, vectors = bert_calls(bert)
    draws: list[Call] = [("sample", {"token": 3, "position": 45, **ANY})] * 6
    jobs = [(tmp_path / "llama", "", [*calls, *draws]), (tmp_path / "bert", "", more)]
    found, rows = run_exports(jobs)
    check(found[: len(expected)], expected)
    check(rows, vectors)
    tokens = [int(each["token"]) for each in found[len(expected) :]]
    assert all(0 <= token < llama.settings.vocabulary for token in tokens)
    assert len(set(tokens)) > 1
