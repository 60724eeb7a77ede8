"""Texts of a small model: pieces, stops, seeds, and what is left after Ctrl-C and other early ends."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import webgrad as wg
from tests.models.test_llama import IDS, made, model_of
from tests.models.test_tokenizer import byte_level
from tests.models.tiny import CONFIG, weights_of, write_folder
from webgrad.models.language import LanguageModel
from webgrad.models.tokenizer import Tokenizer

LONG = [int(each) for each in np.random.default_rng(5).integers(3, 96, 650)]
GREEDY: dict[str, Any] = {"temperature": 0}


@pytest.fixture
def model(tmp_path: Path) -> LanguageModel:
    """A model that writes bytes by chance; it has more tokens than its tokenizer."""
    bare, _, _ = made(tmp_path, "cpu", vocab_size=272)
    found = LanguageModel(bare.decoder, Tokenizer.from_gguf(byte_level()), None, bare.device)
    found.stop_ids = frozenset()
    return found


def endless(tmp_path: Path, **changes: Any) -> LanguageModel:
    found, _, _ = made(tmp_path, "cpu", max_position_embeddings=4096, **changes)
    found.stop_ids = frozenset()
    return found


# Texts


def test_pieces_are_the_text_of_the_ids(model: LanguageModel) -> None:
    made = model.generate("hello", max_tokens=60, temperature=1.0, seed=3)
    pieces = list(made)
    assert "".join(pieces) == made.text == model.tokenizer.decode(made.ids)
    assert "\ufffd" in made.text  # characters whose bytes never all came
    assert (made.report.stopped_by, made.report.tokens, len(made.ids)) == ("length", 60, 60)


@pytest.mark.parametrize("seed", range(4))
def test_a_stop_ends_the_text_wherever_tokens_end(model: LanguageModel, seed: int) -> None:
    whole = model.generate("hello", max_tokens=40, temperature=1.0, seed=seed)
    text = "".join(whole)
    stop = text[12:15]
    stopped = model.generate("hello", max_tokens=40, temperature=1.0, seed=seed, stop=["never there", stop])
    assert "".join(stopped) == stopped.text == text[: text.find(stop)]
    assert stopped.report.stopped_by == "stop"


def test_a_stop_that_only_the_end_completes(model: LanguageModel) -> None:
    """Half a character is shown when nothing more can come, and a stop may be found in that."""
    whole = model.generate("hello", max_tokens=200, temperature=1.0, seed=1)
    pieces = list(whole)
    cut = next(at for at in range(200) if not model.tokenizer.stream().push(whole.ids[at]))
    ended = model.generate("hello", max_tokens=cut + 1, temperature=1.0, seed=1, stop="\ufffd")
    assert "\ufffd" not in "".join(ended)
    assert ended.report.stopped_by == "stop"
    assert len(pieces) < 200


def test_a_text_ends_with_a_token_that_ends_texts(model: LanguageModel) -> None:
    ids = list(model.generate_ids(IDS, max_tokens=6, temperature=1.0, seed=2))
    model.stop_ids = frozenset({ids[3]})
    expected = ids[: ids.index(ids[3]) + 1]
    assert list(model.generate_ids(IDS, max_tokens=6, temperature=1.0, seed=2)) == expected
    text = model.generate("hello", max_tokens=60, temperature=1.0, seed=3)
    assert "".join(text)
    last = text.ids[-1]
    model.stop_ids = frozenset({last})
    ended = model.generate("hello", max_tokens=60, temperature=1.0, seed=3)
    assert "".join(ended) == model.tokenizer.decode(text.ids[: text.ids.index(last)])
    assert last not in ended.ids
    assert ended.report.stopped_by == "end"
    made = model.generate("hello", max_tokens=1, **GREEDY)
    assert len(list(made)) <= 1
    assert made.report.tokens == 1


def test_prompts_and_seeds_that_are_none(model: LanguageModel) -> None:
    with pytest.raises(wg.ArgumentError, match="the prompt is empty, and this model has no token"):
        model.generate("")
    with pytest.raises(wg.ArgumentError, match="seed"):  # at the call, not at the first piece
        model.generate("hello", seed=-1)
    with pytest.raises(wg.DTypeError, match="seed"):
        model.generate_ids([3], seed="a")  # type: ignore[arg-type]
    with pytest.raises(wg.ArgumentError, match=r"300 tokens does not fit the context of 256: shorten it$"):
        model.generate_ids([3] * 300)
    assert len(list(model.generate_ids([3], max_tokens=3, top_k=5000))) == 3  # more than there are


@pytest.mark.parametrize("options", [GREEDY, {"seed": 4, "repetition_penalty": 1.5, "top_p": 0.9}])
def test_a_seed_gives_the_same_text_whatever_comes_between(
    model: LanguageModel, options: dict[str, Any]
) -> None:
    first = "".join(model.generate("hello", max_tokens=12, **options))
    half = model.generate("another", max_tokens=12, seed=8)
    next(half)
    half.close()
    del half
    third = model.generate("hell", max_tokens=9, seed=9)
    pieces = []
    for piece in model.generate("hello", max_tokens=12, **options):
        pieces.append(piece)
        next(third, None)
    assert "".join(pieces) == first


# What is left


def test_threads_share_a_model(tmp_path: Path) -> None:
    model = endless(tmp_path)
    prompts = [[3 + number, 9, 20 + number] for number in range(3)]

    def ids(number: int) -> list[int]:
        return list(model.generate_ids(prompts[number], max_tokens=8, temperature=0.7, seed=number))

    alone = [ids(number) for number in range(3)]
    together: list[list[int]] = [[], [], []]

    def run(number: int) -> None:
        together[number] = ids(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert together == alone


def test_two_texts_of_which_one_makes_the_cache_grow(tmp_path: Path) -> None:
    alone = endless(tmp_path / "alone")
    options: dict[str, Any] = {"max_tokens": 6, "seed": 1, "repetition_penalty": 1.3}
    expected = [list(alone.generate_ids(each, **options)) for each in (IDS, LONG)]
    model = endless(tmp_path / "turns")
    first, second = (model.generate_ids(each, **options) for each in (IDS, LONG))
    turns = [(next(first), next(second)) for _ in range(6)]
    assert [list(each) for each in zip(*turns, strict=True)] == expected


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_ctrl_c_while_a_prompt_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Between chunks, before and after one: what is held stays true."""
    model = endless(tmp_path)
    expected = list(model.generate_ids(LONG, max_tokens=3, **GREEDY))
    list(model.generate_ids(LONG[:20], max_tokens=1, **GREEDY))
    decoding, calls = model._decoding, 0
    read = decoding._chunk

    def interrupted(*args: Any) -> None:
        nonlocal calls
        if calls == count // 2:
            calls = 99
            if count % 2:
                read(*args)
            raise KeyboardInterrupt
        calls += 1
        read(*args)

    monkeypatch.setattr(decoding, "_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(model.generate_ids(LONG, max_tokens=3, **GREEDY))
    monkeypatch.undo()
    assert list(model.generate_ids(LONG, max_tokens=3, **GREEDY)) == expected


def test_ctrl_c_while_a_cache_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the larger cache and what is put into it."""
    model = endless(tmp_path)
    first = model.generate_ids(IDS, max_tokens=6, **GREEDY)
    taken = [next(first)]

    def interrupted(self: wg.Tensor, *_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wg.Tensor, "__setitem__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model._decoding.make_room(2000)
    monkeypatch.undo()
    assert [*taken, *first] == list(endless(tmp_path / "b").generate_ids(IDS, max_tokens=6, **GREEDY))


def test_a_caller_that_fails_half_way(tmp_path: Path) -> None:
    model = endless(tmp_path)
    expected = list(model.generate_ids(IDS, max_tokens=6, **GREEDY))
    for number, _ in enumerate(model.generate_ids(IDS, max_tokens=6, **GREEDY)):
        if number == 2:
            break
    assert list(model.generate_ids(IDS, max_tokens=6, **GREEDY)) == expected


def test_logits_take_no_room_in_the_cache(tmp_path: Path) -> None:
    model = endless(tmp_path)
    list(model.generate_ids(IDS, max_tokens=1, **GREEDY))
    before = [each.stored.shape for each in model._decoding.caches]
    model.logits(LONG * 2)
    assert [each.stored.shape for each in model._decoding.caches] == before


@pytest.mark.gpu
def test_a_model_that_is_dropped_leaves_nothing_on_its_device(tmp_path: Path) -> None:
    def live() -> int:
        gc.collect()
        wg.synchronize("webgpu:0")
        return int(wg.stats("webgpu:0")["bytes_live"])

    wg.zeros(1, device="webgpu:0").numpy()
    before = live()
    model, _, _ = made(tmp_path, "webgpu:0")
    assert len(list(model.generate_ids(IDS, max_tokens=2, temperature=0.5))) <= 2
    assert live() > before + 100_000
    del model
    assert live() <= before


# Weights


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu:0", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("kind", [np.float16, bfloat16, np.float64])
def test_other_floats_give_what_their_values_give(tmp_path: Path, device: str, kind: Any) -> None:
    stored = {name: each.astype(kind) for name, each in weights_of(CONFIG).items()}
    plain = {name: each.astype(np.float32) for name, each in stored.items()}
    models = [
        model_of(write_folder(tmp_path / name, CONFIG, values), CONFIG, where)
        for name, values, where in (("a", stored, device), ("b", plain, "cpu"))
    ]
    found, expected = (each.logits(IDS).numpy() for each in models)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def test_weights_that_are_no_floats(tmp_path: Path) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    weights = {**weights_of(CONFIG), name: np.ones((96, 64), np.int32)}
    with pytest.raises(wg.ModelFileError, match=rf"{name} is of int32, and weights are floats"):
        model_of(write_folder(tmp_path, CONFIG, weights), CONFIG, "cpu")
