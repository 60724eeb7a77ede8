"""The tokenizer of exported pages gives the ids and texts of Python's, and what it cannot do is refused."""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers

import webgrad as wg
from tests.models.conftest import model_path
from tests.web.tokens import check_ids, check_same, difficult_texts, tokenize
from webgrad.models.gguf_tokenizer import Parts
from webgrad.models.pretokenizers import PRETOKENIZERS
from webgrad.models.sentencepiece_file import read_model
from webgrad.models.tokenizer import Tokenizer
from webgrad.web.expressions import PROBE
from webgrad.web.tokenizer_data import engine_spec, tokenizer_file, tokenizer_spec

MODELS = Path(__file__).parents[1] / "models"
FIXTURE = MODELS / "smollm2_tokens.json"
# Ways to cut words, by the names in GGUF files: those of most models, and one name of each other.
USUAL = frozenset({"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "deepseek-llm", "bailingmoe"})
OTHERS = frozenset({rules.cuts: name for name, rules in PRETOKENIZERS.items()}.values()) - USUAL


@cache
def trained(byte_level: bool = False) -> str:
    """A small vocabulary whose tokens reach over words and lines, so that any other cut gives other ids."""
    engine = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=None if byte_level else "<unk>"))
    if byte_level:
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        engine.decoder = decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=800 if byte_level else 2000,
        special_tokens=[] if byte_level else ["<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if byte_level else [],
        show_progress=False,
    )
    engine.train_from_iterator(difficult_texts(600, seed=1), trainer)
    return str(engine.to_str())


def made(byte_level: bool = False, model: dict[str, Any] | None = None, **parts: Any) -> Tokenizer:
    """The small vocabulary with other parts around it, given as objects of the package or as settings."""
    state = json.loads(trained(byte_level))
    state["model"] |= model or {}
    for name, part in parts.items():
        state[name] = part if part is None or isinstance(part, list) else settings_of(part)
    return Tokenizer(Parts(tokenizers.Tokenizer.from_str(json.dumps(state))))


def settings_of(part: Any) -> Any:
    return part if isinstance(part, dict) else json.loads(part.__getstate__())


def added(content: str, place: int, **flags: bool) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": place, "content": content} | dict.fromkeys(names, False) | flags


def sentencepiece(name: str) -> Tokenizer:
    data = json.loads((MODELS / "sentencepiece.json").read_text(encoding="utf-8"))[name]["model"]
    metadata = read_model(base64.b64decode(data))
    return Tokenizer.from_gguf(metadata | {"tokenizer.ggml.precompiled_charsmap": b""})


def wordpiece(lowercase: bool = True, **model: Any) -> Tokenizer:
    """BERT's kind over the characters and some pieces of the small vocabulary."""
    pieces = [token for token in json.loads(trained())["model"]["vocab"] if not token.isspace()]
    pieces = ["[UNK]", "[CLS]", "[SEP]", *pieces, *(f"##{piece}" for piece in pieces)]
    settings = {"unk_token": "[UNK]", "max_input_chars_per_word": 100} | model
    engine = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(dict(zip(dict.fromkeys(pieces), range(10**6), strict=False)), **settings)
    )
    engine.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    engine.decoder = decoders.WordPiece()
    engine.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    return Tokenizer(Parts(engine))


@pytest.mark.parametrize(
    "names", [pytest.param(USUAL, id="usual"), pytest.param(OTHERS, id="others", marks=pytest.mark.web)]
)
def test_every_way_to_cut_words_that_gguf_files_name(names: frozenset[str]) -> None:
    ways = {}
    for name in names:
        cuts = PRETOKENIZERS[name].cuts
        steps: list[Any] = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in cuts]
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        ways[name] = made(
            True,
            {"ignore_merges": PRETOKENIZERS[name].ignore_merges},
            pre_tokenizer=pre_tokenizers.Sequence(steps),
        )
    check_same(ways, difficult_texts(200))


NORMALIZERS = {
    **{form: getattr(normalizers, form)() for form in ("NFC", "NFD", "NFKC", "NFKD")},
    "lower": normalizers.Lowercase(),
    "accents": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "strip": normalizers.Strip(),
    "strip left": normalizers.Strip(left=True, right=False),
    "prepend": normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    "replace": normalizers.Replace(Regex(r"\s+$|[a-f&&[^c]]|(?<=l)o"), "$&x"),
}
PRE_TOKENIZERS = {
    "bytes": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "whitespace": pre_tokenizers.Whitespace(),
    "whitespace split": pre_tokenizers.WhitespaceSplit(),
    "punctuation": pre_tokenizers.Punctuation("merged_with_previous"),
    "digits": pre_tokenizers.Digits(individual_digits=True),
    "numbers": pre_tokenizers.Digits(individual_digits=False),
    "delimiter": pre_tokenizers.CharDelimiterSplit("e"),
    **{
        f"marks {scheme}": pre_tokenizers.Metaspace(prepend_scheme=scheme, split=scheme != "first")
        for scheme in ("always", "first", "never")
    },
    **{
        f"split {behavior} {invert}": pre_tokenizers.Split(
            Regex(r"[el]{2}|\s|\p{P}"), behavior, invert=invert
        )
        for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
        for invert in (False, True)
    },
    "text": pre_tokenizers.Split(" ", "merged_with_previous"),
}


def test_normalizers_and_pre_tokenizers() -> None:
    ways = {name: made(normalizer=part) for name, part in NORMALIZERS.items()}
    ways |= {name: made(pre_tokenizer=part) for name, part in PRE_TOKENIZERS.items()}
    ways["unknown"] = made(model={"fuse_unk": True})
    check_same(ways, difficult_texts(60))


ADDED = [
    added("<|left|>", 2000, lstrip=True, special=True),
    added("<|right|>", 2001, rstrip=True, special=True),
    added("word", 2002, single_word=True),
    added("Größe", 2003, normalized=True),
    added("<|a", 2004),
    added("<|a|>", 2005),
    added(" x", 2006, normalized=True),
]


def test_added_tokens() -> None:
    words = [token["content"] for token in ADDED] + [
        "words",
        " word ",
        "ä",
        "größe",
        "\t",
        "<|",
        "a|>",
        "x",
        "_",
    ]
    ways = {
        "written": made(added_tokens=ADDED),
        "lower": made(added_tokens=ADDED, normalizer=normalizers.Lowercase()),
        "marks": made(added_tokens=ADDED, pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first")),
    }
    check_same(ways, difficult_texts(300, more=words * 20))


def test_sentencepiece_and_wordpiece() -> None:
    ways = {name: sentencepiece(name) for name in ("llama", "gemma", "t5")}
    ways |= {"bert": wordpiece(), "cased": wordpiece(lowercase=False, max_input_chars_per_word=5)}
    check_same(ways, difficult_texts(200))


def test_long_texts_take_little_time() -> None:
    text = "".join(difficult_texts(2500))[:100_000]
    spec = tokenizer_spec(sentencepiece("gemma"))  # which merges over the whole text
    found = tokenize({"gemma": {"spec": spec, "texts": [text, "a" * 100_000]}})["gemma"]["ids"]
    assert found[0] == sentencepiece("gemma").encode(text)


def frames() -> dict[str, Any]:
    processors = tokenizers.processors
    template = processors.TemplateProcessing("a:0 $A b:0 a:0", special_tokens=[("a", 5), ("b", 6)])
    return {
        "template": template,
        "roberta": processors.RobertaProcessing(("</s>", 2), ("<s>", 1)),
        "sequence": processors.Sequence([processors.ByteLevel(), template]),
    }


def test_what_is_put_around_texts() -> None:
    check_same({name: made(post_processor=part) for name, part in frames().items()}, ["", "a", "hello"])


@pytest.mark.parametrize("byte_level", [False, True])
def test_tokens_that_end_words(byte_level: bool) -> None:
    """Words are cut at spaces, and what is last in one has </w>, as CLIP's tokenizer has it."""
    engine = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    cuts: list[Any] = [
        pre_tokenizers.Split(Regex(r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True)
    ]
    cuts += [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)] * byte_level
    engine.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    engine.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    engine.train_from_iterator(difficult_texts(600, seed=1), trainer)
    texts = difficult_texts(400, seed=2)
    given = {"clip": {"spec": engine_spec(engine), "texts": texts, "ids": []}}
    wanted = [engine.encode(text).ids for text in texts]
    check_ids("clip", texts, tokenize(given)["clip"]["ids"], wanted)


REFUSED: dict[str, dict[str, Any]] = {
    "a normalizer of the kind Nmt": {"normalizer": normalizers.Nmt()},
    "a normalizer of the kind ByteLevel": {"normalizer": normalizers.ByteLevel()},
    "a pre-tokenizer of the kind UnicodeScripts": {"pre_tokenizer": pre_tokenizers.UnicodeScripts()},
    "BPE with dropout=0.5": {"model": {"dropout": 0.5}},
    "a decoder of the kind BPEDecoder": {"decoder": decoders.BPEDecoder()},
    "after ByteLevel": {
        "pre_tokenizer": pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(), pre_tokenizers.Digits()])
    },
}
EXPRESSIONS = {
    r"\bword": "has '\\\\b' in",
    r"(a)\1": "has '\\\\1' in",
    "a{2}+": "has '{2}+' in",
    "(?i:ss)": "several ones",
    "(?i:ß)": "several ones",
    "(?i)a": "has '(?i)' in",
    "a*": "matches the empty text",
    "a**b": "has '**' in",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_pages_cannot_do_is_refused(message: str) -> None:
    with pytest.raises(wg.ModelFileError, match="other ids than the model's own") as caught:
        tokenizer_spec(made(**REFUSED[message]))
    assert message in str(caught.value)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_that_pages_cannot_have(expression: str) -> None:
    split = pre_tokenizers.Split(Regex(expression), "isolated")
    with pytest.raises(wg.ModelFileError, match=re.escape(EXPRESSIONS[expression])):
        tokenizer_spec(made(pre_tokenizer=split))


def test_scores_are_written_short() -> None:
    spec = tokenizer_spec(sentencepiece("t5"))["model"]
    scores = [score for _, score in json.loads(sentencepiece("t5").engine.to_str())["model"]["vocab"]]
    assert spec["single"]
    assert np.array(spec["scores"], np.float32).tolist() == scores
    assert len(json.dumps(spec["scores"])) < 0.8 * len(json.dumps(scores))


def test_the_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_file(made()))
    assert json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8")) == tokenizer_spec(made())


# Real models


@cache
def smollm2() -> Tokenizer:
    with wg.io.open(model_path("smollm2:135m")) as weights:
        return Tokenizer.from_gguf(weights.metadata)


@pytest.mark.web
def test_smollm2_as_other_programs_read_it() -> None:
    fixture = json.loads(FIXTURE.read_text(encoding="utf-8"))
    texts, wanted = map(list, zip(*fixture["texts"], strict=True))
    ids, decoded = map(list, zip(*fixture["decoded"], strict=True))
    answers = tokenize({"smol": {"spec": tokenizer_spec(smollm2()), "texts": texts, "ids": ids}})["smol"]
    check_ids("smol", texts, answers["ids"], wanted)
    assert [plain for plain, _ in answers["texts"]] == decoded


@pytest.mark.web
def test_real_models_on_difficult_texts() -> None:
    ways = {"smol": smollm2(), "minilm": Tokenizer.from_folder(model_path("minilm"))}
    check_same(ways, difficult_texts(4000, seed=3))


@pytest.mark.web
def test_every_character_has_the_same_ids() -> None:
    shown = [f"a{each}b {each}{each}1" for each in PROBE]
    texts = [" ".join(shown[start : start + 50]) for start in range(0, len(shown), 50)]
    for name, tokenizer in {"smol": smollm2(), "minilm": Tokenizer.from_folder(model_path("minilm"))}.items():
        found = tokenize({name: {"spec": tokenizer_spec(tokenizer), "texts": texts}})[name]["ids"]
        check_ids(name, texts, found, [encoding.ids for encoding in tokenizer.engine.encode_batch(texts)])
