"""How byte-level BPE vocabularies cut text into words, by the name that GGUF files give
(tokenizer.ggml.pre).

A vocabulary's merges were learnt inside of such words, so another cut gives other tokens. Each entry is a
list of regular expressions, applied in turn: what one matches, and what lies between its matches, are words
for the next.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRETOKENIZERS", "PreTokenizer"]


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """The cuts, whether a word that is a token needs no merges, and whether texts begin with bos."""

    cuts: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False


CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES_AND_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT = r"\p{N}"


def by_digits(digits: str) -> str:
    """The cut of GPT-4's kind, which differs in how many digits are a word."""
    words, others = r"[^\r\n\p{L}\p{N}]?\p{L}+", r" ?[^\s\p{L}\p{N}]+[\r\n]*"
    return f"{CONTRACTIONS}|{words}|{digits}|{others}|{LINES_AND_SPACES}"


def by_case(digits: str, ending: str = "") -> str:
    """The cut of GPT-4o's kind: words start where capitals start."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    before = r"[^\r\n\p{L}\p{N}]?"
    return (
        f"{before}{upper}*{lower}+{ending}|{before}{upper}+{lower}*{ending}|{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{LINES_AND_SPACES}"
    )


DEEPSEEK3 = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{LINES_AND_SPACES}",
)
# The letters with two cases, as DeepSeek's first models list them.
CASED = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-"
    "ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-"
    "ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
LLAMA3 = PreTokenizer((by_digits(r"\p{N}{1,3}"),), ignore_merges=True, add_bos=True)
GPT2_WORDS = PreTokenizer((GPT2,))
SINGLE_DIGITS = PreTokenizer((DIGIT, GPT2))
QWEN2 = PreTokenizer((by_digits(DIGIT),))
GPT4O = PreTokenizer((by_case(r"\p{N}{1,3}", CONTRACTIONS + "?"),))
BLOOM = PreTokenizer((r" ?[^(\s|.,!?…。，、।۔،)]+",))
DEFAULT = PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"))

PRETOKENIZERS: dict[str, PreTokenizer] = {
    "default": DEFAULT,
    "": DEFAULT,
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "lfm2"), LLAMA3),
    **dict.fromkeys(("dbrx", "smaug-bpe", "chatglm-bpe", "glm4"), PreTokenizer(LLAMA3.cuts)),
    **dict.fromkeys(
        ("gpt-2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "jina-v2-es"), GPT2_WORDS
    ),
    **dict.fromkeys(("jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe", "gigachat"), GPT2_WORDS),
    **dict.fromkeys(
        ("modern-bert", "exaone4", "trillion", "granite-docling", "a.x-4.0", "mellum"), GPT2_WORDS
    ),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"), SINGLE_DIGITS),
    **dict.fromkeys(("minerva-7b", "mellum2"), SINGLE_DIGITS),
    **dict.fromkeys(
        ("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "grok-2", "solar-open"), QWEN2
    ),
    "qwen35": PreTokenizer(
        (
            rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{LINES_AND_SPACES}",
        )
    ),
    "tekken": PreTokenizer((by_case(DIGIT),), ignore_merges=True, add_bos=True),
    **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "minimax-m2"), GPT4O),
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm"), PreTokenizer(DEEPSEEK3)),
    "deepseek-llm": PreTokenizer(
        (
            "[\r\n]",
            rf"\s?[{CASED}]+",
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"(?<!\s)\s+$",  # \s+$, which is searched for from each space of a run
            "[一-龥ࠀ-一가-퟿]+",
            r"\p{N}+",
        )
    ),
    "deepseek-coder": PreTokenizer(
        ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", DIGIT),
    ),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]")),
    **dict.fromkeys(("bloom", "poro-chat", "gpt3-finnish"), BLOOM),
    "viking": PreTokenizer((*BLOOM.cuts, DIGIT)),
    **dict.fromkeys(
        ("bailingmoe", "bailingmoe2", "llada-moe"),
        PreTokenizer(
            (
                r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}"
                r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    "seed-coder": PreTokenizer(
        (
            rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{N}}\r\n]+|{LINES_AND_SPACES}",
        )
    ),
}
