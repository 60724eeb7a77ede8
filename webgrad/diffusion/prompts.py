"""Prompts as token ids: CLIP's tokenizer of a folder, and any other that a tokenizer.json describes.

In: texts. Out: ids (n, length), cut or padded to one length, as networks of pictures want them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .configs import read_text

__all__ = ["Prompts"]

LARGEST = 16 << 20  # bytes of a vocabulary
LONGEST = 1 << 16  # tokens of a prompt
SPLIT = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


class Prompts:
    """A tokenizer that gives ids of one length."""

    def __init__(self, engine: Any, length: int, start: int | None, end: int, padding: int) -> None:
        self._engine = engine
        self.length, self.start, self.end, self.padding = length, start, end, padding

    @classmethod
    def from_folder(cls, folder: Path, length: int | None = None) -> Prompts:
        """The tokenizer of a folder of diffusers, which says the length where none is given."""
        settings = (
            _json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
        )
        longest = length or settings.get("model_max_length", 77)
        if not isinstance(longest, int) or not 2 <= longest <= LONGEST:
            raise wg.ModelFileError(f"{folder}: model_max_length is {longest!r}, not 2 to {LONGEST:,}")
        if (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
            return cls._of_clip(folder, settings, longest)
        tokenizer = wg.models.Tokenizer.from_folder(folder)
        if tokenizer.eos_id is None:
            raise wg.ModelFileError(f"{folder} says nothing of a token that ends texts")
        padding = tokenizer.id(str(_content(settings.get("pad_token")) or "")) or 0
        return cls(tokenizer.engine, longest, tokenizer.bos_id, tokenizer.eos_id, padding)

    @classmethod
    def _of_clip(cls, folder: Path, settings: dict[str, Any], length: int) -> Prompts:
        try:
            import tokenizers
        except ImportError:
            raise wg.ModelFileError(
                'prompts need the package tokenizers, which is not installed: pip install "webgrad[lm]"'
            ) from None
        vocabulary = _json(folder / "vocab.json")
        lines = read_text(folder / "merges.txt", LARGEST).splitlines()
        cut = [each.partition(" ") for each in lines if each and not each.startswith("#version")]
        merges = [(left, right) for left, _, right in cut]
        if not all(left + right in vocabulary for left, right in merges):
            raise wg.ModelFileError(f"{folder / 'merges.txt'} has a merge that is no token of vocab.json")
        try:
            pairs = tokenizers.models.BPE(
                vocabulary, merges, unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False
            )
        except Exception as error:  # the package has no class of its own for what it refuses
            raise wg.ModelFileError(f"{folder} has no vocabulary: {error}") from None
        engine = tokenizers.Tokenizer(pairs)
        normalizers, splits = tokenizers.normalizers, tokenizers.pre_tokenizers
        engine.normalizer = normalizers.Sequence(
            [normalizers.NFC(), normalizers.Replace(tokenizers.Regex(r"\s+"), " "), normalizers.Lowercase()]
        )
        pattern = tokenizers.Regex(SPLIT)
        engine.pre_tokenizer = splits.Sequence(
            [splits.Split(pattern, "removed", invert=True), splits.ByteLevel(add_prefix_space=False)]
        )
        start, end = (vocabulary.get(each) for each in ("<|startoftext|>", "<|endoftext|>"))
        if end is None:
            raise wg.ModelFileError(f"{folder / 'vocab.json'} has no token <|endoftext|>")
        padding = vocabulary.get(str(_content(settings.get("pad_token")) or ""), end)
        return cls(engine, length, start, end, padding)

    def ids(self, texts: Sequence[str]) -> Array:
        """Ids (n, length): the beginning of a text that is too long, and padding behind one that is short."""
        return self.tokens(texts)[0]

    def tokens(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """Ids (n, length), and for each of them whether it is of the text, and no padding."""
        rows, counts = [], []
        for text in texts:
            found = self._engine.encode(text, add_special_tokens=False).ids
            begun = [] if self.start is None else [self.start]
            ids = [*begun, *found[: self.length - len(begun) - 1], self.end]
            rows.append(ids + [self.padding] * (self.length - len(ids)))
            counts.append(len(ids))
        return np.asarray(rows, np.int32), np.arange(self.length) < np.asarray(counts)[:, None]


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, dict) else token


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path, LARGEST))
    except (ValueError, RecursionError) as error:
        raise wg.ModelFileError(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise wg.ModelFileError(f"{path} is no table of tokens")
    return found
