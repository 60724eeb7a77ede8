"""Tokenizers out of a folder: tokenizer.json, or a SentencePiece tokenizer.model, and the files beside it.

Those say which tokens begin and end texts and turns, and hold the chat template. Out come `Parts`, as from
GGUF metadata.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from webgrad.errors import ModelFileError

from ..arrays import np
from .gguf_tokenizer import Parts, frame, import_tokenizers, parts_from_gguf, protected, stop_ids
from .growth import check_growth
from .reader import read_json, read_text
from .sentencepiece_file import metadata_of_sentencepiece

__all__ = ["parts_from_folder"]

LARGEST_VOCABULARY = 64 << 20  # the largest published ones have 35 MB
LARGEST_TEMPLATE = 1 << 20
# The cut \s+$ of published files, which takes the square of a run of spaces if it may begin inside of one.
ENDS_IN_SPACES = re.compile(r'("Regex"\s*:\s*")(\\\\s\+\$")')
NAMES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")


def parts_from_folder(folder: Path) -> Parts:
    """The tokenizer of a folder as Hugging Face publishes models."""
    settings = read_json(folder / "tokenizer_config.json", {})
    texts = token_texts(settings) or token_texts(read_json(folder / "special_tokens_map.json", {}))
    found = first_file(folder, ("tokenizer.json", "tokenizer.model", "spiece.model"))
    if found.name == "tokenizer.json":
        engine = engine_of_json(found)
        parts = Parts(engine)
    else:
        parts = parts_from_gguf(metadata_of_sentencepiece(found))
        engine = parts.engine
        texts = parts.texts | texts
    bos, eos = (engine.token_to_id(texts[name]) if name in texts else None for name in NAMES[:2])
    set_frame(engine, settings, texts, bos, eos)
    control = {
        str(token.content): place
        for place, token in engine.get_added_tokens_decoder().items()
        if token.special
    }
    ends = {eos} - {None} | ids_of(folder / "generation_config.json") | ids_of(folder / "config.json")
    return dataclasses.replace(
        parts,
        bos_id=bos,
        eos_id=eos,
        stop_ids=stop_ids(control, {place for place in ends if engine.id_to_token(place) is not None}),
        texts=texts,
        template=read_template(folder, settings),
    )


def first_file(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ModelFileError(
        f"{folder} has no tokenizer ({', '.join(names)}). Older kinds are converted by "
        "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
    )


def engine_of_json(path: Path) -> Any:
    """The engine of a tokenizer.json, which neither cuts nor pads: lengths are the caller's business."""
    text = ENDS_IN_SPACES.sub(r"\1(?<!\\\\s)\2", read_text(path, LARGEST_VOCABULARY))
    package = import_tokenizers()
    engine = protected(lambda: package.Tokenizer.from_str(text), f"{path} cannot be read")
    added = engine.get_added_tokens_decoder().values()
    if any(token.special and token.normalized for token in added):
        engine = protected(
            lambda: package.Tokenizer.from_str(without_normalized(text)), f"{path} cannot be read"
        )
    engine.no_truncation()
    engine.no_padding()
    protected(lambda: check_growth(engine, str(path), longest_text(text)), f"{path} cannot be read")
    return engine


def longest_text(text: str) -> int:
    """How many letters the texts of a JSON file have at most: a text lies between two quotation marks without
    backslashes, and has no such mark inside.
    """
    data = np.frombuffer(text.encode(), np.uint8)
    marks = np.flatnonzero(data == ord('"'))
    marks = marks[data[marks - 1] != ord("\\")]
    return int(np.diff(marks).max(initial=0))


def without_normalized(text: str) -> str:
    """Special tokens are looked for in texts as written: no message's words may normalize to one."""
    settings = json.loads(text)
    for token in settings["added_tokens"]:
        token["normalized"] = token["normalized"] and not token["special"]
    return json.dumps(settings, ensure_ascii=False)


def set_frame(engine: Any, settings: dict[str, Any], texts: dict[str, str], bos: Any, eos: Any) -> None:
    """Settings that say whether texts get bos and eos go before what tokenizer.json does by itself."""
    if not isinstance(settings.get("add_bos_token", settings.get("add_eos_token")), bool):
        return
    first = (texts["bos_token"], bos) if settings.get("add_bos_token") and bos is not None else None
    last = (texts["eos_token"], eos) if settings.get("add_eos_token") and eos is not None else None
    engine.post_processor = frame(import_tokenizers(), first, last)


def token_texts(settings: dict[str, Any]) -> dict[str, str]:
    """bos_token and the others, which are texts or records with a content."""
    found = {}
    for name in NAMES:
        value = settings.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str) and value:
            found[name] = value
    return found


def ids_of(path: Path) -> set[int]:
    """eos_token_id of a settings file: a number or a list of them."""
    value = read_json(path, {}).get("eos_token_id")
    values = value if isinstance(value, list) else [value]
    return {place for place in values if isinstance(place, int) and 0 <= place < 1 << 31}


def read_template(folder: Path, settings: dict[str, Any]) -> str | None:
    """The chat template: a file of its own, or among the settings, where there may be several by name."""
    if (folder / "chat_template.jinja").is_file():
        return read_text(folder / "chat_template.jinja", LARGEST_TEMPLATE)
    value = settings.get("chat_template") or read_json(folder / "chat_template.json", {}).get("chat_template")
    if isinstance(value, list):
        named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
        value = named.get("default")
    return value if isinstance(value, str) else None
