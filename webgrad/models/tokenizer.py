"""Text to token ids and back, and conversations to the ids a model was trained on.

A `Tokenizer` is made of a model's folder or of a GGUF file's metadata; Hugging Face's `tokenizers` does the
work. A plain prompt may write special tokens; the contents of a conversation cannot: what looks like one
there is encoded as the characters it is written with.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from webgrad.errors import ArgumentError, ModelFileError

from .folder_tokenizer import parts_from_folder
from .gguf_tokenizer import Parts, import_tokenizers, parts_from_gguf, protected
from .template import CHATML, ChatTemplate, check_messages
from .text_stream import StreamDecoder, spelling_of

__all__ = ["Tokenizer"]

# A character to which Unicode never gives a meaning. Put into what a message writes like a special token, it
# keeps that from being found as one; the normalizer takes it out before anything else looks at the text.
BREAK = "\ufdd0"
LETTERS_PER_TOKEN = 0.25  # of the vocabulary: merged by ourselves before an engine with all merges is made


class Tokenizer:
    """Text to token ids and back; `from_folder` and `from_gguf` make one."""

    def __init__(self, parts: Parts) -> None:
        self._engine = parts.engine
        self._merger, self._whole = parts.merger, parts.whole
        self._letters = 0  # that the merger has merged
        self.bos_id, self.eos_id, self.stop_ids = parts.bos_id, parts.eos_id, parts.stop_ids
        self._spelling = spelling_of(self._engine)
        added = self._engine.get_added_tokens_decoder()
        self._special = {place: str(token.content) for place, token in added.items() if token.special}
        self._forgeries = Forgeries(self._special.values())
        self._template = self._choose_template(parts)
        self._take_out_breaks()

    @classmethod
    def from_folder(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """The tokenizer of a folder with a tokenizer.json or a SentencePiece tokenizer.model."""
        folder = Path(path)
        if not folder.is_dir():
            raise ModelFileError(f"{folder} is not a folder")
        return cls(parts_from_folder(folder))

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> Tokenizer:
        """The tokenizer that a GGUF file's metadata describe."""
        return cls(parts_from_gguf(metadata))

    @property
    def engine(self) -> Any:
        """The `tokenizers.Tokenizer` that does the work."""
        whole = self._whole
        if whole is not None:
            self._engine = protected(lambda: whole(self._engine), "the tokenizer cannot be built")
            self._merger = self._whole = None
        return self._engine

    @property
    def template(self) -> ChatTemplate | None:
        """How conversations are written, None if the model knows none."""
        return self._template

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return int(self._engine.get_vocab_size())

    def __repr__(self) -> str:
        chat = "a chat template" if self.has_chat else "no chat template"
        return f"Tokenizer({self.size} tokens, {chat})"

    def token(self, token_id: int) -> str:
        """A token as the vocabulary writes it."""
        token = self._engine.id_to_token(check_id(token_id))
        if token is None:
            raise ArgumentError(f"there is no token {token_id}; the vocabulary has {self.size} of them")
        return str(token)

    def id(self, token: str) -> int | None:
        """The id of a token as the vocabulary writes it, None if there is none."""
        found = self._engine.token_to_id(token)
        return None if found is None else int(found)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text; special tokens in it are taken as such."""
        return self._encode(text, add_special_tokens)[0]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of ids. Ids beyond the vocabulary, which padded models have, are nothing."""
        stream = self.stream(skip_special_tokens)
        return "".join([*(stream.push(check_id(token_id)) for token_id in ids), stream.finish()])

    def stream(self, skip_special_tokens: bool = True) -> StreamDecoder:
        """A decoder for ids that come one by one."""
        skipped = frozenset(self._special) if skip_special_tokens else frozenset()
        return StreamDecoder(self._engine, self._spelling, skipped)

    @property
    def has_chat(self) -> bool:
        """Whether the model knows conversations: it has a template, or the tokens of ChatML."""
        return self._template is not None

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """A conversation as the text that the model was trained on."""
        return self._chat_template().render(messages, add_generation_prompt)

    def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True
    ) -> list[int]:
        """The ids of a conversation. Special tokens come from the template only, never out of a content."""
        guarded = [
            {
                name: value if name == "role" else self._forgeries.broken(value)
                for name, value in message.items()
            }
            for message in check_messages(messages)
        ]
        text = self._chat_template().render(guarded, add_generation_prompt)
        ids, encoding = self._encode(text, add_special_tokens=False)
        if BREAK in text:
            for place, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
                if place in self._special and BREAK in text[start:end]:
                    raise ArgumentError(
                        f"a message writes the control token {self._special[place]!r}, and this model's "
                        "vocabulary has no other way to write it: take it out of the message"
                    )
        return ids

    def _encode(self, text: str, add_special_tokens: bool) -> tuple[list[int], Any]:
        """The ids of a text; and what the engine makes of it, which may be its letters."""
        if not isinstance(text, str):
            raise ArgumentError(f"only a text can be encoded, not {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(f"the text has half a surrogate pair at character {error.start}") from None
        merger = self._merger  # before the engine: what merges by itself may be merged once more
        if merger is not None:
            self._letters += len(text)
            # An engine with all merges is quicker at long texts, and takes longer to make than short ones do.
            if self._letters > LETTERS_PER_TOKEN * self.size:
                merger = None
        engine = self._engine if merger is not None else self.engine
        encoding = protected(
            lambda: engine.encode(text, add_special_tokens=add_special_tokens),
            "the tokenizer failed on a text",
        )
        if merger is None:
            return list(encoding.ids), encoding
        return merger.merged(encoding.ids, encoding.word_ids), encoding

    def _chat_template(self) -> ChatTemplate:
        if self._template is None:
            raise ModelFileError(
                "this model has no chat template: it was not trained on conversations. Use generate() with a "
                "plain prompt, or put a chat_template.jinja into its folder"
            )
        return self._template

    def _choose_template(self, parts: Parts) -> ChatTemplate | None:
        if parts.template is not None:
            return ChatTemplate(parts.template, parts.texts)
        has_tokens = {"<|im_start|>", "<|im_end|>"} <= set(self._special.values())
        return ChatTemplate(CHATML, parts.texts) if has_tokens else None

    def _take_out_breaks(self) -> None:
        normalizers = import_tokenizers().normalizers
        before = [] if self._engine.normalizer is None else [self._engine.normalizer]
        self._engine.normalizer = normalizers.Sequence([normalizers.Replace(BREAK, ""), *before])


class Forgeries:
    """Finds what is written like special tokens in what users write, and breaks it apart."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = {token for token in tokens if token}
        self._ordered = sorted(self._tokens)
        self._lengths = sorted({len(token) for token in self._tokens})
        firsts = {re.escape(token[0]) for token in self._tokens}
        self._firsts = re.compile(f"[{''.join(sorted(firsts))}]") if firsts else None

    def broken(self, value: Any) -> Any:
        """The same value, broken after the first character of all that could become a special token."""
        if isinstance(value, dict):
            return {name: self.broken(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.broken(part) for part in value]
        return self._broken_text(value.replace(BREAK, "")) if isinstance(value, str) else value

    def _broken_text(self, text: str) -> str:
        if self._firsts is None:
            return text
        places = {
            found.start() for found in self._firsts.finditer(text) if self._is_token(text, found.start())
        }
        # Templates join contents, some trim them first: what ends like a token's start could be completed.
        for tail in (text, text.rstrip()):
            lengths = range(1, min(len(tail), self._lengths[-1] - 1) + 1)
            places |= {len(tail) - length for length in lengths if self._begins_token(tail[-length:])}
        parts, last = [], 0
        for place in sorted(places):
            parts += [text[last : place + 1], BREAK]
            last = place + 1
        return "".join([*parts, text[last:]])

    def _is_token(self, text: str, place: int) -> bool:
        """Whether a special token is written here."""
        return any(text[place : place + length] in self._tokens for length in self._lengths)

    def _begins_token(self, text: str) -> bool:
        """Whether a special token begins so: those that do are the next ones in order."""
        at = bisect_left(self._ordered, text)
        return at < len(self._ordered) and self._ordered[at].startswith(text)


def check_id(token_id: Any) -> int:
    try:
        place = int(token_id)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{token_id!r} is not a token id") from None
    if not 0 <= place < 1 << 32:
        raise ArgumentError(f"{place} is not a token id")
    return place
