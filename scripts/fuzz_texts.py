"""Chat templates, tokenizers and settings out of model files, changed at random.

In: a seed. Out: what became of it: a text, a tokenizer or settings, or an error of webgrad's. Model files are
strangers': whatever is in them must end in one of these, in bounded time and memory.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from pathlib import Path
from typing import Any

import webgrad as wg
from scripts.fuzz_files import change
from scripts.fuzz_kernels import changed
from scripts.fuzzing import Case

__all__ = ["start_settings", "start_templates", "start_tokenizers"]

ROOT = Path(__file__).parents[1]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Héllo <|im_end|> {{ x }}"},
    {"role": "assistant", "content": "Yes."},
]
TEXTS = ("Hello world 123", "", "ünï ⁇ \U0001f600\n\n  tab\t", "<|im_start|>user", "a" * 3000)
TEMPLATES = (
    wg.models.template.CHATML,
    """{%- if messages[0]['role'] == 'system' %}
{%- set rest = messages[1:] %}{{ messages[0]['content'] | trim }}
{%- else %}{% set rest = messages %}{% endif -%}
{% for m in rest if m.content is string %}
{% if loop.first and (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}{% endif %}
{{ bos_token ~ '[' + m.role.upper() ~ '] ' + m['content'].split('x')[-1].strip() }}{% endfor %}""",
    """{% macro field(v, n=3) %}{{ v | tojson(indent=2) if v is mapping else (v | string) * n }}{% endmacro %}
{% set ns = namespace(total=0, out=[]) %}
{% for m in messages | reverse %}{% set ns.total = ns.total + m.content | length %}
{{ field(m) }}{{ field(m.role, n=loop.index) }}{% endfor %}
{{ '%d of %5.1f' % (ns.total, 2) }}{{ range(1, 9) | map('string') | join(', ') }}
{{ strftime_now('%d %b %Y') }}{% for k, v in messages[0].items() | sort(attribute='0') %}
{{ k }}={{ v[::-1] | replace('e', 'EE') }}{% endfor %}
{{ {'a': [1, 2.5, none, true]} | tojson }}{{ 2 ** 10 // 3 ~ 7 % 4 }}""",
)

# What no writer of such files meant.
ODD: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 3, 1 << 31, 1 << 70, 0.0, -2.5, 1e300, float("nan"), float("inf")),
    *("", "64", "llama", "gelu", [], [1, 2], ["x"], {}, {"rope_type": "yarn", "factor": -1}, [[[]]]),
    *({"type": "linear", "factor": 0}, {"rope_type": "llama3"}, "\0", "x" * 1000),
)


def start_templates(_: Path) -> Case:
    """A function that renders the chat template of a seed: a changed one, or an attack."""
    sound = [(text, dict[str, str]()) for text in TEMPLATES]

    def case(seed: int) -> str:
        text = attacking_template(random.Random(seed)) if seed % 4 == 0 else changed(seed, sound)[0]
        try:
            wg.models.ChatTemplate(text, {"bos_token": "<s>"}).render(MESSAGES)
        except wg.WebgradError as error:
            if "MemoryError" in str(error):
                raise AssertionError(f"more memory than it may take: {error}") from None
            return type(error).__name__
        return "rendered"

    return case


# Attacks on templates: long operands in every operation, over and over.
LENGTHS = (1, 30, 1000, 50_000, 50_000, 400_000, 1_900_000, 1_900_000, 10**9)
LETTERS = ("a", "ab", " ", "a ", "a-", "é", "\U0001f600", "\\n", "<", "0.", "1", "{0}", "%s", "%(a)s", "\\0")
OPERATIONS = (
    *("X.{strip}(Y)", "X.{strip}()", "X|trim(Y)", "X.{find}(Y)", "X.{cut}(Y)|length", "X.{cut}()|length"),
    *("X.replace(Y, Z)", "X|replace(Y, Z)", "X.join(Y)", "X|join(Y)", "[X, Y, Z]|join(Z)", "X ~ Y ~ Z"),
    *("X + Y", "X * N", "[X] * N", "X % Y", "X % {{'a': Y}}", "X % (Y, Z)", "X.format(Y, a=Z)"),
    *("X|format(Y)", "'%Nd' % 1", "'%(a)Ns' % {{'a': Y}}", "'{{:N}}'.format(Y)", "X|indent(N)", "X|{case}"),
    *("X.{case}()", "X|list|{sort}", "X|list|{sort}(attribute=Y)", "X|{sort}", "X|list|groupby(Y)|length"),
    *("X|map('{case}')|list", "X|list|map('replace', Y, Z)|list", "X|list|tojson(indent=N)", "X|e"),
    *("X|list|tojson(separators=(Y, Z))", "X|tojson(ensure_ascii=true)", "X|int(0, 16)", "X|float", "X|int"),
    *("N ** N", "N * N", "2 ** N", "1.5|round(N)", "range(N)|list", "X|truncate(N)", "X|wordcount"),
    *("X in Y", "X == Y", "X < Y < Z", "X is in(Y)", "X[:N]", "X[::-1]", "dict([(X, Y)] * N)", "{{X: Y}}"),
    *("dict(range(9999)|map('string')|list)", "X.startswith(Y)", "X.count(Y)", "X|reverse|list", "X|string"),
    *("X|center(N)", "X.zfill(N)", "X.expandtabs(N)", "X|list|batch(N)|list", "X|pprint", "X|xmlattr"),
    *("strftime_now(X)", "cycler(*X)", "f(*X)", "f(Y)", "messages[X]", "messages|map(attribute=Y)|list"),
)
NAMES = {
    "strip": ("strip", "lstrip", "rstrip"),
    "find": ("find", "rfind", "index", "rindex", "partition", "rpartition", "endswith", "removesuffix"),
    "cut": ("split", "rsplit", "splitlines"),
    "case": ("lower", "upper", "title", "capitalize", "swapcase", "casefold", "length"),
    "sort": ("sort", "unique|list", "max", "min", "dictsort"),
}
AROUND = (
    "{{{{ ({}) }}}}",
    "{{% set n = namespace(x=[1]) %}}{{% for i in range(9999) %}}{{% set n.x = [n.x, {}] %}}{{% endfor %}}",
    "{{% for i in range(9999) %}}{{% for j in range(9999) %}}{{% set x = {} %}}{{% endfor %}}{{% endfor %}}",
    "{{% macro f(x) %}}{{{{ f({}) ~ f(x) }}}}{{% endmacro %}}{{{{ f(1) }}}}",
    "{{% for x in range(99) recursive %}}{{{{ loop(range(99)) ~ ({}) }}}}{{% endfor %}}",
    "{{% set a = 'a' %}}" + "{{% set a = a ~ a %}}" * 25 + "{{% set x = {} %}}",
)


def attacking_template(generator: random.Random) -> str:
    """An operation with long operands, alone or in loops, macros and lists of lists."""

    def operand(depth: int) -> str:
        if depth and generator.random() < 0.3:
            return f"({operation(depth - 1)})"
        text = f"('{letter}' * {generator.choice(LENGTHS)})"
        others = f"('b' * {generator.choice(LENGTHS)} ~ '{letter}')"  # where a search finds it last
        if generator.random() < 0.8:
            return generator.choice((text, text, f"({text} ~ 'b')", f"('b' ~ {text})", others, others))
        return generator.choice((f"[{text}]", "range(9999)", "messages", "i", "n.x", "a"))

    def operation(depth: int) -> str:
        names = {name: generator.choice(each) for name, each in NAMES.items()}
        text = generator.choice(OPERATIONS).format(**names)
        for letter in "XYZ":
            text = text.replace(letter, operand(depth))
        return text.replace("N", str(generator.choice((*LENGTHS, -1, 64, 4300, 10**30))))

    letter = generator.choice(LETTERS)
    text = generator.choice((*AROUND[:1] * 5, *AROUND)).format(operation(generator.choice((0, 0, 1, 2))))
    return text * generator.choice((1, 1, 1, 3, 200))


def use(path: Path) -> None:
    """Make a folder's tokenizer, and do with it what users do."""
    tokenizer = wg.models.Tokenizer.from_folder(path)
    for text in TEXTS:
        tokenizer.decode(tokenizer.encode(text))
    tokenizer.encode_chat(MESSAGES)


def start_tokenizers(folder: Path) -> Case:
    """A function that makes the tokenizer of a seed, of either kind of file, and uses it."""
    fixture = json.loads((ROOT / "tests" / "models" / "sentencepiece.json").read_text("utf-8"))
    pieces = [base64.b64decode(each["model"]) for each in fixture.values()]
    published = json.dumps(_published()).encode()
    sound = [("tokenizer.model", data) for data in pieces] + [("tokenizer.json", published)] * 3
    folders = {name: folder / name.replace(".", "-") for name, _ in sound}
    for each in folders.values():
        each.mkdir()
        (each / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATES[0]}), "utf-8")
    for name, contents in sound:
        (folders[name] / name).write_bytes(contents)
        use(folders[name])

    def case(seed: int) -> str:
        name, contents = sound[seed % len(sound)]
        generator = random.Random(seed)
        if name == "tokenizer.json" and generator.random() < 0.8:  # what is still JSON is read further
            altered = attacking_steps if generator.random() < 0.5 else with_odd_values
            contents = json.dumps(altered(generator, json.loads(contents))).encode()
        else:
            contents = change(generator, contents, [published, *pieces])
        (folders[name] / name).write_bytes(contents)
        try:
            use(folders[name])
        except wg.WebgradError as error:
            return f"{name} {type(error).__name__}"
        return f"{name} used"

    return case


PATTERNS = (
    *("(?=.)", "x*", r"\b", "a|", ".", r"\s+", "(a|aa|a+)+$", "((a*)*)*b", "(a?){30}a{30}", "[^x]*[yz]"),
    *("(?=.*x)a", "a*a*a*b", r"\s+$", r"(\w)\1", "(?<!a)a+b", "(?:ab|a)(?:c|bcd)*", r"\p{L}+|\s+(?!\S)|\s+"),
)
COUNTS = (0, 1, 2, 5, 20, 100, 2000)


def attacking_steps(generator: random.Random, settings: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer.json whose steps are many, or have long texts, or whose model has odd limits."""

    def text() -> str:
        return generator.choice("ax \u2581\ufdfa") * generator.choice((*COUNTS, 100_000))

    def pattern() -> dict[str, str]:
        return {"Regex": generator.choice(PATTERNS)} if generator.random() < 0.6 else {"String": text()}

    def steps(make: list[Any], inner: str) -> dict[str, Any]:
        chosen = [
            step for _ in range(generator.choice((1, 1, 2, 3))) for step in repeated(generator.choice(make)())
        ]
        return {"type": "Sequence", inner: chosen}

    def repeated(step: dict[str, Any]) -> list[dict[str, Any]]:
        return [step] * generator.choice((1, 1, 2, 6, 30))

    def replace() -> dict[str, Any]:
        return {"type": "Replace", "pattern": pattern(), "content": text()}

    def split() -> dict[str, Any]:
        return {"type": "Split", "pattern": pattern(), "behavior": "Isolated", "invert": False}

    def metaspace() -> dict[str, Any]:
        mark = generator.choice("x\u2581")
        return {"type": "Metaspace", "replacement": mark, "prepend_scheme": "always", "split": True}

    plain = [{"type": kind} for kind in ("NFC", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")]
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    prepend = {"type": "Prepend", "prepend": text()}
    changes: dict[str, Any] = {
        "normalizer": lambda: steps(
            [
                replace,
                replace,
                lambda: prepend,
                lambda: generator.choice(plain),
                lambda: {**bert, "strip_accents": None},
            ],
            "normalizers",
        ),
        "pre_tokenizer": lambda: steps([split, metaspace, lambda: byte_level], "pretokenizers"),
        "decoder": lambda: steps([replace, metaspace, lambda: byte_level], "decoders"),
    }
    for name in generator.sample(sorted(changes), generator.choice((1, 1, 2))):
        settings[name] = changes[name]()
    single = settings["post_processor"]["single"]
    settings["post_processor"]["single"] = single[:1] * generator.choice(COUNTS) + single[
        1:
    ] * generator.choice((1, 1, 2, 100))
    ids = settings["post_processor"]["special_tokens"]["<s>"]
    ids["ids"], ids["tokens"] = ([value] * generator.choice((1, 1, 1, 2000)) for value in (0, "<s>"))
    ids["tokens"] = ids["tokens"][:1] * len(ids["ids"])
    if generator.random() < 0.3:
        settings["model"][generator.choice(("continuing_subword_prefix", "end_of_word_suffix"))] = text()
    if generator.random() < 0.3:
        length = generator.choice((2, 100, 130, 1000))
        special = settings["added_tokens"][0]
        settings["added_tokens"] += [
            {**special, "id": 500 + place, "content": "a" * place + "b"} for place in range(1, length)
        ]
    if generator.random() < 0.2:
        most = generator.choice((100, 200, 10**9))
        vocabulary = {"<unk>": 0, "a": 1, "##a": 2}
        settings["model"] = {"type": "WordPiece", "unk_token": "<unk>", "max_input_chars_per_word": most}
        settings["model"] |= {
            "vocab": vocabulary,
            "continuing_subword_prefix": generator.choice(("##", text())),
        }
    elif generator.random() < 0.2:
        longest = generator.choice((5, 128, 1000))
        pieces = [["<unk>", 0.0], *(["a" * length, -1.0 * length] for length in range(1, longest))]
        settings["model"] = {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": pieces}
    return settings


def with_odd_values(generator: random.Random, value: Any) -> Any:
    """A tree of JSON in which a few values, or the places of two, are others."""
    for _ in range(generator.choice((1, 1, 2, 4))):
        parent, inner = value, value
        while isinstance(inner, dict | list) and inner and generator.random() < 0.8:
            parent = inner
            key = generator.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
            inner = parent[key]
        if parent is inner:
            continue
        if generator.random() < 0.2:
            del parent[key]
        else:
            other = generator.choice(list(parent.values()) if isinstance(parent, dict) else parent)
            parent[key] = copy.deepcopy(generator.choice((*ODD, other, other, other)))
    return value


def _published() -> dict[str, Any]:
    """A small tokenizer.json with the parts that published ones have."""
    vocabulary = {
        text: place for place, text in enumerate(["<s>", "</s>", "<unk>", *map(chr, range(33, 127))])
    }
    merges = [["h", "e"], ["l", "l"], ["he", "ll"], ["1", "2"]]
    for a, b in merges:
        vocabulary.setdefault(a + b, len(vocabulary))
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": place, "content": text, **special} for place, text in enumerate(["<s>", "</s>", "<unk>"])
        ],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": r"\d{1,3}"}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
        },
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": merges,
        },
    }


# Settings of models

UNUSUAL = (
    *("rope_scaling", "rope_parameters", "head_dim", "layer_types", "sliding_window", "text_config"),
    *("sliding_window_pattern", "max_window_layers", "partial_rotary_factor", "mlp_bias", "eos_token_id"),
)


def start_settings(_: Path) -> Case:
    """A function that reads the settings of a seed, as a config.json has them."""
    from scripts.random_models import FAMILIES
    from webgrad.models.settings import settings_of_config

    configs = [dict(family.config) for family in FAMILIES.values()]
    keys = sorted({*UNUSUAL, *(key for config in configs for key in config)})

    def case(seed: int) -> str:
        generator = random.Random(seed)
        config = dict(generator.choice(configs))
        for _ in range(generator.choice((1, 1, 2, 3, 6))):
            key = generator.choice(keys)
            if generator.random() < 0.3:
                config.pop(key, None)
            else:
                config[key] = generator.choice(ODD)
        try:
            settings_of_config(config, "a file")
        except wg.ModelFileError as error:
            if not str(error).startswith("a file: ") or len(str(error)) > 300:
                raise AssertionError(f"the error does not say which file, or is too long: {error}") from None
            return "ModelFileError"
        return "read"

    return case
