"""SmolLM2-135M-Instruct from the catalogue: the tokens that transformers takes greedily, and its logits.

tests/models/smollm2.json has them, made by scripts/smollm2_fixture.py in float32 of the same file. CI runs
a few prompts; `make soak` and `make test-transformers` run all.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg

from .conftest import model_path

FIXTURE = json.loads((Path(__file__).parent / "smollm2.json").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = FIXTURE["cases"]
STEPS, SAMPLE = FIXTURE["steps"], FIXTURE["sample"]
CLOSE = 1e-3  # logits that may change places


@cache
def model(device: str) -> wg.models.LanguageModel:
    found = wg.models.load(model_path("smollm2:135m"), device=device, context=256)
    assert isinstance(found, wg.models.LanguageModel)
    return found


def differing(case: dict[str, Any], device: str) -> int:
    """How many tokens are others than the fixture's; where they are, the two logits must be close.

    The text goes on with the fixture's token, so that every step is looked at.
    """
    text, answer, wrong, start = case["ids"], case["answer"], 0, 0
    while start < STEPS:
        given = [*text, *answer[:start]]
        for found in model(device).generate_ids(given, max_tokens=STEPS - start, temperature=0):
            start += 1
            if found != answer[start - 1]:
                margin = case["margins"][start - 1]
                assert margin < CLOSE, f"token {start} is {found}, not {answer[start - 1]}: {margin} apart"
                wrong += 1
                break
        else:
            assert start == STEPS, "the answer ended early"
    return wrong


def check_logits(case: dict[str, Any], device: str) -> None:
    found = model(device).logits(case["ids"]).numpy()[-1].astype(np.float64)
    kept, stored = found[::SAMPLE], np.array(case["logits"])
    cosine = kept @ stored / np.linalg.norm(kept) / np.linalg.norm(stored)
    assert cosine >= 0.9999
    assert np.linalg.norm(found) == pytest.approx(case["norm"], rel=1e-3)


@pytest.mark.parametrize(
    ("device", "numbers"),
    [
        ("cpu", (2,)),
        pytest.param("webgpu:0", (2,), marks=pytest.mark.gpu),
        pytest.param("cpu", range(len(CASES)), marks=pytest.mark.soak),
        pytest.param("webgpu:0", range(len(CASES)), marks=[pytest.mark.gpu, pytest.mark.soak]),
    ],
)
def test_the_tokens_and_logits_of_transformers(device: str, numbers: range) -> None:
    wrong = 0
    for number in numbers:
        check_logits(CASES[number], device)
        wrong += differing(CASES[number], device)
    assert wrong <= len(numbers) * STEPS / 100


@pytest.mark.parametrize("case", CASES)
def test_prompts_are_the_same_tokens(case: dict[str, Any]) -> None:
    tokenizer = model("cpu").tokenizer
    prompt = case["prompt"]
    ids = tokenizer.encode(prompt) if isinstance(prompt, str) else tokenizer.encode_chat(prompt)
    assert ids == case["ids"]
