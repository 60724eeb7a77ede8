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
TEXTS = ("Hello world 123", "", "ünï ⁇ \U0001f600\n\n  tab\t", "<|im_start|>user", "a" * 300)
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
    """A function that renders the chat template of a seed."""
    sound = [(text, dict[str, str]()) for text in TEMPLATES]

    def case(seed: int) -> str:
        text, _ = changed(seed, sound)
        try:
            wg.models.ChatTemplate(text, {"bos_token": "<s>"}).render(MESSAGES)
        except wg.WebgradError as error:
            return type(error).__name__
        return "rendered"

    return case


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
        if name == "tokenizer.json" and generator.random() < 0.7:  # what is still JSON is read further
            contents = json.dumps(with_odd_values(generator, json.loads(contents))).encode()
        else:
            contents = change(generator, contents, [published, *pieces])
        (folders[name] / name).write_bytes(contents)
        try:
            use(folders[name])
        except wg.WebgradError as error:
            return f"{name} {type(error).__name__}"
        return f"{name} used"

    return case


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
