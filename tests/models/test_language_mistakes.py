"""What a language model says of itself, and to arguments that make no sense; texts are tested elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import webgrad as wg
from tests.models.tiny import CONFIG, weights_of, write_folder
from webgrad.models import LanguageModel


class Letters:
    """A tokenizer of one letter for each id."""

    stop_ids: frozenset[int] = frozenset()

    def encode(self, text: str) -> list[int]:
        return [ord(each) % 90 for each in text]

    def stream(self) -> Letters:
        return self

    def push(self, token_id: int) -> str:
        return chr(32 + token_id % 90)

    def finish(self) -> str:
        return ""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    folder: Path = write_folder(tmp_path_factory.mktemp("model"), CONFIG, weights_of(CONFIG))
    loaded = wg.models.load(folder, device="cpu")
    assert isinstance(loaded, LanguageModel)
    letters: Any = Letters()
    return LanguageModel(loaded.decoder, letters)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "told"),
    [
        ([5], {}, wg.DTypeError, "generate takes a text, not a int"),
        ([""], {}, wg.ArgumentError, "the prompt is empty"),
        (["a"], {"max_tokens": 0}, wg.ArgumentError, "max_tokens is 1 or more"),
        (["a"], {"stop": 3}, wg.DTypeError, "stop is a text"),
        (["a"], {"seed": "x"}, wg.DTypeError, "seed must be an integer, or None, not 'x'"),
        (["a"], {"seed": -1}, wg.ArgumentError, "seed is from 0 to"),
    ],
)
def test_mistakes_are_told_at_the_call(
    model: LanguageModel, arguments: list[Any], options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        model.generate(*arguments, **options)


def test_a_seed_of_ids_is_told_of_at_the_call(model: LanguageModel) -> None:
    with pytest.raises(wg.ArgumentError, match="seed is from 0 to"):
        model.generate_ids([1], seed=1 << 64)


def test_a_generation_says_how_far_it_is(model: LanguageModel) -> None:
    generation = model.generate("ab", max_tokens=2, temperature=0)
    assert repr(generation) == "Generation('', 0 tokens, to be iterated over)"
    text = "".join(generation)
    assert repr(generation) == f"Generation({text!r}, 2 tokens, ended by 'length')"


def test_what_only_the_other_kind_can_do(model: LanguageModel) -> None:
    other: Any = model
    assert not hasattr(other, "embed")
    with pytest.raises(AttributeError, match="'embed': this model writes; one that embeds is minilm"):
        other.embed(["a"])
    with pytest.raises(AttributeError, match=r"no attribute 'generat'$"):
        other.generat("a")
