"""A language model for tests of the commands: it answers with what it was told, word by word.

It keeps to the protocols of `webgrad.cli.protocols`; a token is a word. Run as a program it is
`webgrad ARGUMENTS` with this model in the place of every other, for tests at a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import webgrad as wg
from webgrad.cli.protocols import Message


@dataclass
class FakeReport:
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    prefill_seconds: float = 0.5
    decode_seconds: float = 0.25
    stopped_by: str = "end"

    @property
    def prefill_speed(self) -> float:
        return (self.prompt_tokens - self.cached_tokens) / self.prefill_seconds

    @property
    def decode_speed(self) -> float:
        return self.tokens / self.decode_seconds


@dataclass
class FakeGeneration:
    words: Sequence[str]
    prompt: int
    pause: float
    limit: int
    text: str = ""
    ids: list[int] = field(default_factory=list)
    report: FakeReport = field(default_factory=FakeReport)

    def __iter__(self) -> Iterator[str]:
        for number, word in enumerate(self.words[: self.limit]):
            time.sleep(self.pause)
            self.text += " " + word
            self.ids.append(number)
            yield " " + word
        self.report = FakeReport(self.prompt, 0, len(self.ids))
        if len(self.words) > self.limit:
            self.report.stopped_by = "length"


class FakeTokenizer:
    has_chat = True

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(range(len(text.split())))

    def encode_chat(self, messages: Sequence[Any], add_generation_prompt: bool = True) -> list[int]:
        return self.encode(" ".join(each["content"] for each in messages))


class FakeModel:
    """Echoes; "count" counts for minutes, "fail" cannot be answered, "raw" has what terminals obey."""

    def __init__(self, context: int = 1000) -> None:
        self.context = context
        self.device = wg.open_device("cpu")
        self.tokenizer = FakeTokenizer()
        self.asked: list[list[Message]] = []
        self.settings: list[dict[str, Any]] = []

    def generate(self, prompt: str, **settings: Any) -> FakeGeneration:
        self.settings.append(settings)
        return self._answer(prompt, len(prompt.split()), settings["max_tokens"])

    def chat(self, messages: Sequence[Message], **settings: Any) -> FakeGeneration:
        self.asked.append(list(messages))
        self.settings.append(settings)
        length = len(self.tokenizer.encode_chat(messages))
        if length > self.context:
            raise wg.ArgumentError(f"a text of {length} tokens does not fit the context of {self.context}")
        return self._answer(messages[-1]["content"], length, settings["max_tokens"])

    def generate_ids(self, ids: Sequence[int], **settings: Any) -> Iterator[int]:
        self.asked.append([{"content": str(list(ids))}])
        for number in range(settings["max_tokens"]):
            time.sleep(0.001)
            yield number

    def _answer(self, text: str, length: int, limit: int) -> FakeGeneration:
        if text == "fail":
            raise wg.ArgumentError("this cannot\nbe answered")
        if text == "count":
            return FakeGeneration([str(each) for each in range(100_000)], length, 0.05, limit)
        if text == "raw":
            return FakeGeneration(["\x1b[2Jred", "\x07bell"], length, 0, limit)
        return FakeGeneration([f"you said {text}"], length, 0, limit)


class FakeEmbedder:
    """A text's length, and one."""

    def __init__(self) -> None:
        self.device = wg.open_device("cpu")

    def embed(self, texts: Sequence[str], batch_size: int = 32) -> wg.Tensor:
        return wg.asarray(np.array([[len(each), 1.0] for each in texts], np.float32), device="cpu")


if __name__ == "__main__":
    from webgrad.cli import main, protocols

    protocols.load = lambda name, device, context=None: FakeModel()
    sys.exit(main(sys.argv[1:]))
