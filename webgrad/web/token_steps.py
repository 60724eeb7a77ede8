"""The steps that a text takes before a tokenizer's model sees it, reduced to the few kinds that pages know.

In come the normalizer and pre-tokenizer of a tokenizer.json, out come lists whose first item is the kind:
replace, replaceText, surround, form, lower and prepend change texts; split, prefix and marks cut them. Sets
of characters are asked of the package tokenizers, whose tables are of several Unicode versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from .expressions import PROBE, Classes, Ranges, literal, members, ranges_of, refusal, translate

__all__ = ["normalizer_steps", "pre_tokenizer_steps", "steps_of", "word_characters"]

Step = list[Any]
INNER = ("normalizers", "pretokenizers", "processors", "decoders")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def steps_of(part: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The steps of a part, those inside of sequences one by one."""
    if part is None:
        return
    inner = next((part[key] for key in INNER if key in part), None)
    if part["type"] != "Sequence" or inner is None:
        yield part
        return
    for each in inner:
        yield from steps_of(each)


# What the package does with single characters


@cache
def images(**settings: bool) -> dict[str, str]:
    """What BERT's normalizer makes of each character."""
    from tokenizers import normalizers

    off = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
    normalize = normalizers.BertNormalizer(**(off | settings)).normalize_str
    others = PROBE[128:]
    # One text, with a digit before each character, which nothing but itself is written as.
    written = normalize("".join(f"7{each}" for each in others)).split("7")[1:]
    return {each: normalize(each) for each in PROBE[:128]} | dict(zip(others, written, strict=True))


def changed(images: dict[str, str], is_so: Callable[[str], bool]) -> Ranges:
    """The characters of which something like this is made."""
    return ranges_of("".join(each for each, image in images.items() if is_so(image)))


@cache
def accents() -> Ranges:
    """What the normalizer StripAccents takes away."""
    from tokenizers import normalizers

    return ranges_of(normalizers.StripAccents().normalize_str(PROBE), are_members=False)


def members_of_words(cut: Any, is_so: Callable[[str], bool]) -> Ranges:
    """The characters of the words of which this is true, told by their first characters."""
    return ranges_of("".join(word for word, _ in cut.pre_tokenize_str(PROBE) if is_so(word[0])))


@cache
def punctuation() -> Ranges:
    """What the pre-tokenizers of BERT's kind take for punctuation: of "!!" they make two words."""
    from tokenizers import pre_tokenizers

    isolated = pre_tokenizers.Punctuation("isolated").pre_tokenize_str
    return members_of_words(
        pre_tokenizers.Punctuation("contiguous"), lambda first: len(isolated(first * 2)) == 2
    )


@cache
def numerals() -> Ranges:
    """What the pre-tokenizer Digits takes for one."""
    from tokenizers import pre_tokenizers

    isolated = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str
    return members_of_words(pre_tokenizers.Digits(), lambda first: len(isolated(first * 2)) == 2)


@cache
def word_characters() -> Ranges:
    """The characters of words to the pre-tokenizer Whitespace."""
    from tokenizers import pre_tokenizers

    words = pre_tokenizers.Whitespace()
    return members_of_words(words, lambda first: len(words.pre_tokenize_str(f"{first}a")) == 1)


# Normalizers


def normalizer_steps(part: dict[str, Any] | None, classes: Classes) -> list[Step]:
    """A normalizer as the steps that pages know."""
    steps: list[Step] = []
    for step in steps_of(part):
        if step["type"] not in NORMALIZERS:
            raise refusal(f"a normalizer of the kind {step['type']}")
        steps += NORMALIZERS[step["type"]](step, classes)
    return steps


def replace(step: dict[str, Any], classes: Classes) -> list[Step]:
    pattern, content = step["pattern"], step["content"]
    if "Regex" in pattern:
        return [["replace", translate(pattern["Regex"], classes), content]]
    if not pattern["String"]:
        raise refusal("a normalizer that replaces the empty text")
    return [["replaceText", pattern["String"], content]]


def strip(step: dict[str, Any], classes: Classes) -> list[Step]:
    space = classes.name(members(r"\s"))
    left = [["replace", f"^{space}+", ""]] if step["strip_left"] else []
    # Looking back keeps a run of spaces in the middle from being tried from each of its places.
    right = [["replace", f"(?<!{space}){space}+$", ""]] if step["strip_right"] else []
    return [*left, *right]


def bert(step: dict[str, Any], classes: Classes) -> list[Step]:
    """BERT's normalizer: clean, ideographs apart, without accents, without capitals."""
    steps: list[Step] = []
    if step["clean_text"]:
        cleaned = images(clean_text=True)
        gone, space = changed(cleaned, lambda image: not image), changed(cleaned, lambda image: image == " ")
        steps += [["replace", classes.name(gone), ""], ["replace", classes.name(space), " "]]
    if step["handle_chinese_chars"]:
        apart = images(handle_chinese_chars=True)
        steps.append(["surround", classes.name(changed(apart, lambda image: len(image) == 3)), " "])
    accents_too = step["lowercase"] if step["strip_accents"] is None else step["strip_accents"]
    if accents_too:
        bare = images(strip_accents=True)
        steps += [["form", "NFD"], ["replace", classes.name(changed(bare, lambda image: not image)), ""]]
    return [*steps, ["lower"]] if step["lowercase"] else steps


NORMALIZERS: dict[str, Callable[[dict[str, Any], Classes], list[Step]]] = {
    **dict.fromkeys(("NFC", "NFD", "NFKC", "NFKD"), lambda step, classes: [["form", step["type"]]]),
    "Lowercase": lambda step, classes: [["lower"]],
    "Prepend": lambda step, classes: [["prepend", step["prepend"]]],
    "StripAccents": lambda step, classes: [["replace", classes.name(accents()), ""]],
    "Strip": strip,
    "Replace": replace,
    "BertNormalizer": bert,
}


# Pre-tokenizers


def pre_tokenizer_steps(part: dict[str, Any] | None, classes: Classes) -> tuple[list[Step], bool]:
    """A pre-tokenizer as the steps that pages know, and whether words are written as bytes in the end."""
    steps: list[Step] = []
    takes_bytes = False
    for step in steps_of(part):
        if step["type"] not in PRE_TOKENIZERS:
            raise refusal(f"a pre-tokenizer of the kind {step['type']}")
        if takes_bytes:
            raise refusal(f"a pre-tokenizer of the kind {step['type']} after ByteLevel")
        if step.get("prepend_scheme") == "first" and steps:
            raise refusal("a pre-tokenizer of the kind Metaspace, prepend_scheme first, after others")
        steps += PRE_TOKENIZERS[step["type"]](step, classes)
        takes_bytes = step["type"] == "ByteLevel"
    return steps, takes_bytes


BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def split(expression: str, behavior: str, invert: bool = False) -> Step:
    """Cut by an expression; behavior says what becomes of its matches, by invert of all but its matches."""
    if behavior not in BEHAVIORS:
        raise refusal(f"a pre-tokenizer with the behavior {behavior}")
    return ["split", expression, behavior, invert]


def split_by_pattern(step: dict[str, Any], classes: Classes) -> list[Step]:
    pattern = step["pattern"]
    is_text = "String" in pattern
    if is_text and not pattern["String"]:
        raise refusal("a pre-tokenizer that cuts at the empty text")
    source = literal(pattern["String"]) if is_text else translate(pattern["Regex"], classes)
    return [split(source, step["behavior"], step["invert"])]


def byte_level(step: dict[str, Any], classes: Classes) -> list[Step]:
    prefix: list[Step] = [["prefix", " "]] if step["add_prefix_space"] else []
    return [*prefix, split(translate(GPT2, classes), "Isolated")] if step["use_regex"] else prefix


def metaspace(step: dict[str, Any], classes: Classes) -> list[Step]:
    mark = step["replacement"]
    marks: Step = ["marks", mark, step["prepend_scheme"]]
    return [marks, split(literal(mark), "MergedWithNext")] if step["split"] else [marks]


def digits(step: dict[str, Any], classes: Classes) -> list[Step]:
    number = classes.name(numerals())
    return [split(number, "Isolated" if step["individual_digits"] else "Contiguous")]


def bert_words(step: dict[str, Any], classes: Classes) -> list[Step]:
    return [
        split(classes.name(members(r"\s")), "Removed"),
        split(classes.name(punctuation()), "Isolated"),
    ]


def whitespace(step: dict[str, Any], classes: Classes) -> list[Step]:
    words, space = classes.name(word_characters()), classes.name(members(r"\s"))
    return [split(space, "Removed"), split(f"{words}+", "Isolated")]


PRE_TOKENIZERS: dict[str, Callable[[dict[str, Any], Classes], list[Step]]] = {
    "Split": split_by_pattern,
    "ByteLevel": byte_level,
    "Metaspace": metaspace,
    "Digits": digits,
    "BertPreTokenizer": bert_words,
    "Whitespace": whitespace,
    "WhitespaceSplit": lambda step, classes: [split(classes.name(members(r"\s")), "Removed")],
    "Punctuation": lambda step, classes: [split(classes.name(punctuation()), step["behavior"])],
    "CharDelimiterSplit": lambda step, classes: [split(literal(step["delimiter"]), "Removed")],
}
