"""Tokenizers out of a GGUF file's metadata, built as `tokenizers.Tokenizer`s.

In come the keys under tokenizer.ggml; out come `Parts`, all that a `Tokenizer` is made of. Four kinds:
byte-level BPE ("gpt2"), SentencePiece's BPE by scores ("llama", "gemma4"), SentencePiece's unigrams ("t5")
and WordPiece ("bert"). Every id and length is checked against the list of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webgrad.errors import ModelFileError

from ..arrays import Array, np
from .growth import LONGEST_TOKEN, check_growth
from .merging import Merger
from .pretokenizers import PRETOKENIZERS
from .text_stream import SPACE
from .token_pairs import token_pairs

__all__ = ["Parts", "frame", "import_tokenizers", "parts_from_gguf", "protected", "stop_ids"]

UNKNOWN, CONTROL, USER_DEFINED, BYTE = 2, 3, 4, 6  # token types, as SentencePiece numbers them
CONTINUED = "##"  # before what goes on with a word, in WordPiece
MOST_TOKENS = 1_000_000
MOST_CUTS = 200_000_000  # letters of all ways to cut all tokens in two; published ones have 20 million
# What ends an answer, or a turn of it, where a vocabulary has it as a control token.
END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"),
    *("<end_of_turn>", "<turn|>", "<|end|>", "<|return|>", "<|call|>", "<EOT>", "[EOT]", "[EOS]"),
    *("<end_of_utterance>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<|end_of_turn|>", "<|eot|>"),
    "<|endofturn|>",
)


@dataclass(frozen=True)
class Parts:
    """A tokenizer before it gets its methods: the engine, and what the model's files say about its tokens."""

    engine: Any  # a tokenizers.Tokenizer; where there is a merger it gives letters
    bos_id: int | None = None
    eos_id: int | None = None
    stop_ids: frozenset[int] = frozenset()
    texts: dict[str, str] = field(default_factory=dict)  # bos_token, eos_token …, as templates ask for them
    template: str | None = None
    merger: Merger | None = None
    whole: Callable[[Any], Any] | None = None  # makes, of that engine, one that merges by itself


@dataclass(frozen=True)
class Listed:
    """The vocabulary as a file lists it."""

    tokens: list[str]
    places: dict[str, int]  # of each token
    types: Array
    scores: Array
    metadata: Mapping[str, Any]

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.metadata.get(f"tokenizer.ggml.{name}", default))

    def id(self, name: str, default: int | None = None) -> int | None:
        """The id under tokenizer.ggml.NAME_token_id, None for one that the list does not have."""
        value = self.metadata.get(f"tokenizer.ggml.{name}_token_id", default)
        return int(value) if isinstance(value, int) and 0 <= value < len(self.tokens) else None

    def of_type(self, *types: int) -> list[str]:
        return [self.tokens[place] for place in np.flatnonzero(np.isin(self.types, types)).tolist()]


def protected(make: Callable[[], Any], failure: str) -> Any:
    """The result of a call into the package, whose errors have no class of their own and whose panics are no
    Exceptions."""
    try:
        return make()
    except ModelFileError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelFileError(f"{failure}: {str(error)[:300]}") from None


def import_tokenizers() -> Any:
    """The package tokenizers, which is an extra."""
    try:
        import tokenizers
    except ImportError:
        raise ModelFileError(
            'texts need the package tokenizers, which is not installed: pip install "webgrad[lm]"'
        ) from None
    return tokenizers


def parts_from_gguf(metadata: Mapping[str, Any]) -> Parts:
    """The tokenizer that a GGUF file's metadata describe."""
    kind = str(metadata.get("tokenizer.ggml.model", ""))
    if not kind:
        raise ModelFileError(
            "this GGUF file has no tokenizer (tokenizer.ggml.model is missing). "
            "If the model is also published with a tokenizer.json, load that folder"
        )
    if kind not in KINDS:
        raise ModelFileError(
            f"tokenizer.ggml.model is {kind!r:.80}: webgrad reads {', '.join(sorted(KINDS))}. "
            "If the model is also published with a tokenizer.json, load that folder"
        )
    package = import_tokenizers()
    listed = read_list(metadata)
    bos, eos = chosen_ids(kind, listed)

    def build() -> Any:
        engine = KINDS[kind](package, listed)
        add_marked_tokens(package, engine, listed)
        set_frame(package, engine, listed, kind, bos, eos)
        longest = max(map(len, listed.tokens)) + len(CONTINUED)
        check_growth(engine, "the tokenizer in the GGUF file", longest)
        return engine

    engine = protected(build, "the tokenizer in the GGUF file cannot be built")
    texts = {f"{name}_token": listed.tokens[id] for name, id in special_ids(listed, bos, eos).items()}
    ends = {id for name in ("eos", "eot", "eom") if (id := listed.id(name)) is not None} | {eos} - {None}
    control = {token: listed.places[token] for token in listed.of_type(CONTROL)}
    template = metadata.get("tokenizer.chat_template")
    parts = Parts(
        engine, bos, eos, stop_ids(control, ends), texts, template if isinstance(template, str) else None
    )
    if KINDS[kind] is not sentencepiece_bpe or metadata.get("tokenizer.ggml.merges") is not None:
        return parts
    return replace(parts, merger=merger_of(listed), whole=lambda engine: with_merges(package, engine, listed))


def stop_ids(control: Mapping[str, int], ends: set[Any]) -> frozenset[int]:
    """Every id that ends an answer: the file's own, and the usual ends of turns among the control tokens."""
    found = {control[token] for token in END_TOKENS if token in control}
    # A format with channels ends messages, not answers, with <|end|>.
    if "<|return|>" in control and "<|call|>" in control:
        found.discard(control.get("<|end|>", -1))
    return frozenset(found | ends)


def read_list(metadata: Mapping[str, Any]) -> Listed:
    """The tokens with their types and scores, one of each."""
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, Sequence) or isinstance(tokens, str) or not 0 < len(tokens) <= MOST_TOKENS:
        raise ModelFileError("the GGUF file has no list of tokens (tokenizer.ggml.tokens)")
    if not all(issubclass(kind, str) for kind in set(map(type, tokens))):
        raise ModelFileError("tokenizer.ggml.tokens is not a list of texts")
    tokens = [token or f"[EMPTY_{place}]" for place, token in enumerate(tokens)]
    places = dict(zip(tokens, range(len(tokens)), strict=True))
    if len(places) != len(tokens):
        raise ModelFileError("tokenizer.ggml.tokens has the same token twice")
    if (longest := max(map(len, tokens))) > LONGEST_TOKEN:
        raise ModelFileError(
            f"tokenizer.ggml.tokens has a token of {longest:,} characters; {LONGEST_TOKEN:,} are read"
        )
    return Listed(
        tokens,
        places,
        read_numbers(metadata, "token_type", len(tokens), 1, int),
        read_numbers(metadata, "scores", len(tokens), 0.0, float),
        metadata,
    )


def read_numbers(metadata: Mapping[str, Any], name: str, count: int, default: Any, kind: type) -> Array:
    values = metadata.get(f"tokenizer.ggml.{name}")
    if values is None:
        return np.full(count, default)
    if isinstance(values, (str, Mapping)) or not hasattr(values, "__len__") or len(values) < count:
        raise ModelFileError(f"tokenizer.ggml.{name} must have a number for each of the {count} tokens")
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    try:
        return np.fromiter(map(kind, values), np.dtype(kind), count)
    except (TypeError, ValueError, OverflowError):
        raise ModelFileError(f"tokenizer.ggml.{name} is not a list of numbers") from None


def byte_level_bpe(package: Any, listed: Listed) -> Any:
    """GPT-2's kind: bytes written as characters, merged inside of words."""
    name = listed.metadata.get("tokenizer.ggml.pre") or ""
    if name not in PRETOKENIZERS:
        raise ModelFileError(
            f"tokenizer.ggml.pre is {name!r:.80}, a way to cut words that webgrad does not know. If the "
            "model is also published with a tokenizer.json, load that folder"
        )
    rules = PRETOKENIZERS[name]
    engine = package.Tokenizer(
        package.models.BPE(listed.places, read_merges(listed), ignore_merges=rules.ignore_merges)
    )
    split = package.pre_tokenizers.Split
    cuts = [split(package.Regex(cut), behavior="isolated") for cut in rules.cuts]
    byte_level = package.pre_tokenizers.ByteLevel(
        add_prefix_space=listed.flag("add_space_prefix", False), use_regex=False
    )
    engine.pre_tokenizer = package.pre_tokenizers.Sequence([*cuts, byte_level])
    engine.decoder = package.decoders.ByteLevel()
    return engine


def read_merges(listed: Listed) -> list[tuple[str, str]]:
    merges, vocabulary = listed.metadata.get("tokenizer.ggml.merges"), listed.places
    if not isinstance(merges, Sequence) or isinstance(merges, str):
        raise ModelFileError("the GGUF file has no merges (tokenizer.ggml.merges)")
    pairs = []
    for merge in merges:
        if not isinstance(merge, str):
            raise ModelFileError("tokenizer.ggml.merges is not a list of texts")
        cut = merge.find(" ", 1)
        first, second = merge[:cut], merge[cut + 1 :]
        # Some files list merges of tokens that they do not have; these can never be used.
        if cut > 0 and first in vocabulary and second in vocabulary and first + second in vocabulary:
            pairs.append((first, second))
    return pairs


def merged_tokens(listed: Listed) -> tuple[Array, Array]:
    """What pairs may be merged to, or may be merged themselves: their places, and ranks by their scores."""
    places = np.flatnonzero(np.isin(listed.types, (CONTROL, UNKNOWN, BYTE), invert=True))
    ranks = np.empty(len(places), np.int64)
    ranks[np.argsort(-listed.scores[places], kind="stable")] = np.arange(len(places))
    return places, ranks


def merger_of(listed: Listed) -> Merger:
    """SentencePiece's BPE: any two tokens that make a third are merged, those with the best score first."""
    places, ranks = merged_tokens(listed)
    all_ranks = np.full(len(listed.tokens), -1)
    all_ranks[places] = ranks
    return Merger(listed.tokens, listed.places, all_ranks.tolist())


def merges_of_scores(listed: Listed) -> list[tuple[str, str]]:
    """The same as merges, best first."""
    places, ranks = merged_tokens(listed)
    tokens = [listed.tokens[place] for place in places.tolist()]
    return token_pairs(tokens, np.fromiter(map(len, tokens), np.int64, len(tokens)), ranks)


def check_cuts(listed: Listed) -> None:
    """Refuse a vocabulary whose merges would take long to find."""
    lengths = np.fromiter(map(len, listed.tokens), np.int64, len(listed.tokens))
    lengths = lengths[np.isin(listed.types, (CONTROL, UNKNOWN, BYTE), invert=True)]
    if (letters := int(lengths @ lengths)) > MOST_CUTS:
        raise ModelFileError(
            f"tokenizer.ggml.tokens has too many long tokens: all ways to cut them in two have {letters:,} "
            f"letters, and at most {MOST_CUTS:,} are allowed"
        )


def sentencepiece_bpe(package: Any, listed: Listed) -> Any:
    """Llama's and Gemma's kind: spaces are marks, what no token has is written as bytes. Without merges in
    the file, it gives letters.
    """
    merges: list[tuple[str, str]] = []
    if listed.metadata.get("tokenizer.ggml.merges") is not None:
        merges = read_merges(listed)
    else:
        check_cuts(listed)
    engine = package.Tokenizer(bpe_model(package, listed, merges))
    marks = [package.normalizers.Replace(" ", SPACE)]
    strip = []
    if listed.flag("add_space_prefix", listed.metadata["tokenizer.ggml.model"] == "llama"):
        marks.insert(0, package.normalizers.Prepend(SPACE))
        strip.append(package.decoders.Strip(" ", 1, 0))
    engine.normalizer = package.normalizers.Sequence(marks)
    engine.decoder = sentencepiece_decoder(package, strip)
    return engine


def bpe_model(package: Any, listed: Listed, merges: list[tuple[str, str]]) -> Any:
    unknown = listed.id("unknown", 0)
    return package.models.BPE(
        listed.places,
        merges,
        unk_token=None if unknown is None else listed.tokens[unknown],
        fuse_unk=True,
        byte_fallback="<0x00>" in listed.places,
    )


def with_merges(package: Any, engine: Any, listed: Listed) -> Any:
    """An engine that merges letters by itself, otherwise like one that gives them."""
    whole = package.Tokenizer(bpe_model(package, listed, merges_of_scores(listed)))
    whole.normalizer, whole.decoder = engine.normalizer, engine.decoder
    add_marked_tokens(package, whole, listed)
    whole.post_processor = engine.post_processor
    return whole


def sentencepiece_decoder(package: Any, strip: list[Any]) -> Any:
    decoders = package.decoders
    return decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])


def unigram(package: Any, listed: Listed) -> Any:
    """T5's kind: of all ways to cut a text into tokens, the likeliest."""
    unknown = listed.id("unknown", 2)
    engine = package.Tokenizer(
        package.models.Unigram(
            list(zip(listed.tokens, listed.scores.tolist(), strict=True)), unknown, "<0x00>" in listed.places
        )
    )
    normalizers = package.normalizers
    steps = []
    table = listed.metadata.get("tokenizer.ggml.precompiled_charsmap")
    if table is not None and len(table):
        steps.append(normalizers.Precompiled(bytes(int(byte) & 255 for byte in table)))
    if listed.flag("remove_extra_whitespaces", True):
        steps += [
            normalizers.Replace(package.Regex(cut), to)
            for cut, to in ((r"\A +|(?<! ) +\z", ""), (" {2,}", " "))
        ]
    if steps:
        engine.normalizer = normalizers.Sequence(steps)
    scheme = "always" if listed.flag("add_space_prefix", True) else "never"
    engine.pre_tokenizer = package.pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme)
    engine.decoder = sentencepiece_decoder(
        package, [package.decoders.Strip(" ", 1, 0)] if scheme == "always" else []
    )
    return engine


def wordpiece(package: Any, listed: Listed) -> Any:
    """BERT's kind. GGUF marks tokens that start a word by ▁; the package marks the others by ##."""
    vocabulary = {}
    for place, (token, kind) in enumerate(zip(listed.tokens, listed.types.tolist(), strict=True)):
        is_plain = kind not in (CONTROL, UNKNOWN, USER_DEFINED)
        vocabulary[with_hashes(token) if is_plain else token] = place
    if len(vocabulary) != len(listed.tokens):
        raise ModelFileError("tokenizer.ggml.tokens has the same token twice")
    unknown = listed.id("unknown", 100)
    if unknown is None:
        raise ModelFileError(
            "the GGUF file names no token for unknown words (tokenizer.ggml.unknown_token_id)"
        )
    engine = package.Tokenizer(package.models.WordPiece(vocabulary, unk_token=listed.tokens[unknown]))
    lowercase = listed.flag("normalizer.lowercase", True)
    engine.normalizer = package.normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=listed.flag("normalizer.strip_accents", lowercase)
    )
    engine.pre_tokenizer = package.pre_tokenizers.BertPreTokenizer()
    engine.decoder = package.decoders.WordPiece()
    return engine


def with_hashes(token: str) -> str:
    if token.startswith("[") and token.endswith("]") and len(token) > 2:
        return token  # [unused7], which converters leave as it is
    return token[1:] if token.startswith(SPACE) else f"{CONTINUED}{token}"


KINDS: dict[Any, Callable[[Any, Listed], Any]] = {
    "gpt2": byte_level_bpe,
    "llama": sentencepiece_bpe,
    "gemma4": sentencepiece_bpe,
    "t5": unigram,
    "bert": wordpiece,
}


def add_marked_tokens(package: Any, engine: Any, listed: Listed) -> None:
    """Control tokens are special, user-defined ones only whole; both are found before anything else."""
    added = package.AddedToken
    engine.add_special_tokens(
        [added(token, normalized=False, special=True) for token in listed.of_type(CONTROL, UNKNOWN)]
    )
    engine.add_tokens([added(token, normalized=False) for token in listed.of_type(USER_DEFINED)])
    if engine.get_vocab_size() != len(listed.tokens):
        raise ModelFileError("tokenizer.ggml.tokens and tokenizer.ggml.token_type do not fit each other")


# By kind of vocabulary, as (bos, eos): the ids where a file names none, and whether texts get them.
DEFAULT_IDS: dict[str, tuple[int | None, int | None]] = {
    "llama": (1, 2),
    "bert": (101, None),
    "t5": (None, 1),
}
DEFAULT_FRAME: dict[str, tuple[bool, bool]] = {
    "llama": (True, False),
    "t5": (False, True),
    "gemma4": (True, False),
}


def chosen_ids(kind: str, listed: Listed) -> tuple[int | None, int | None]:
    bos, eos = DEFAULT_IDS.get(kind, (None, None))
    return listed.id("bos", bos), listed.id("eos", eos)


def special_ids(listed: Listed, bos: int | None, eos: int | None) -> dict[str, int]:
    named = {
        "bos": bos,
        "eos": eos,
        "unk": listed.id("unknown"),
        "pad": listed.id("padding"),
        "sep": listed.id("seperator"),  # as the format spells it
        "cls": listed.id("cls"),
        "mask": listed.id("mask"),
    }
    return {name: id for name, id in named.items() if id is not None}


def set_frame(package: Any, engine: Any, listed: Listed, kind: str, bos: int | None, eos: int | None) -> None:
    """What a text gets before and after it."""
    rules = PRETOKENIZERS.get(listed.metadata.get("tokenizer.ggml.pre") or "")
    add_bos, add_eos = DEFAULT_FRAME.get(kind, (bool(rules and rules.add_bos and kind == "gpt2"), False))
    first = bos if listed.flag("add_bos_token", add_bos) else None
    last = eos if listed.flag("add_eos_token", add_eos) else None
    if kind == "bert":
        first = listed.id("cls", listed.id("bos", 101))
        last = listed.id("seperator", 102)
    engine.post_processor = frame(
        package, *((listed.tokens[id], id) if id is not None else None for id in (first, last))
    )


def frame(package: Any, first: tuple[str, int] | None, last: tuple[str, int] | None) -> Any:
    """A post-processor that puts these tokens before and after a text."""
    # Under names of their own, because a colon in a token would be read as part of the pattern.
    named = {"first": first, "last": last}
    specials = [
        {"id": name, "ids": [pair[1]], "tokens": [pair[0]]}
        for name, pair in named.items()
        if pair is not None
    ]
    single = [*(["first"] if first else []), "$A", *(["last"] if last else [])]
    return package.processors.TemplateProcessing(single=single, special_tokens=specials)
