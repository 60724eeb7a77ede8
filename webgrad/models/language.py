"""Language models: text in, text out.

In: a decoder, its tokenizer, and a prompt or a conversation. Out: a `Generation`, whose pieces come as they
are made. What a conversation has in common with the last one is not read again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import webgrad as wg

from .decoder import Decoder, Decoding
from .sampling import Sampling
from .settings import Settings
from .stop_strings import Stopper, checked_stops

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = ["Generation", "LanguageModel", "Report"]


@dataclass(slots=True)
class Report:
    """How a generation went. Reading a prompt ends with its first new token."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    stopped_by: str = ""  # "end", "length", "stop" or "context"; nothing while it goes on

    @property
    def prefill_speed(self) -> float:
        """Tokens of the prompt that were read in a second."""
        return (self.prompt_tokens - self.cached_tokens) / max(self.prefill_seconds, 1e-9)

    @property
    def decode_speed(self) -> float:
        """Tokens that were made in a second, after the first."""
        return max(self.tokens - 1, 0) / max(self.decode_seconds, 1e-9)


class LanguageModel:
    """A model that goes on with a text. Made by `wg.models.load`."""

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer | None,
        context: int | None = None,
        device: Any = None,
        cache_dtype: Any = None,
    ) -> None:
        self.decoder = decoder
        self.settings: Settings = decoder.settings
        self.context = _checked_context(context, self.settings.context)
        self._tokenizer = tokenizer
        self._decoding = Decoding(
            decoder, self.context, device, cache_dtype=_checked_cache_dtype(cache_dtype, device)
        )
        self.stop_ids = frozenset(self.settings.stop_ids) | (tokenizer.stop_ids if tokenizer else frozenset())

    @property
    def device(self) -> Any:
        """Where the model is."""
        return self._decoding.device

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""
        if self._tokenizer is None:
            raise wg.ModelFileError(
                "this model came without a tokenizer: put tokenizer.json beside its weights, or use "
                "generate_ids and logits, which take ids"
            )
        return self._tokenizer

    def __repr__(self) -> str:
        told = self.settings
        return (
            f"LanguageModel({told.architecture}, {told.layers} layers of {told.width}, "
            f"context {self.context}, device={self.device.name!r})"
        )

    if not TYPE_CHECKING:  # where it would hide misspelt names

        def __getattr__(self, name: str) -> Any:
            hint = ": this model writes; one that embeds is minilm" if name == "embed" else ""
            raise AttributeError(f"LanguageModel has no attribute {name!r}{hint}", name=name, obj=self)

    # Texts

    def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 256,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
    ) -> Generation:
        """Go on with a text: an iterator over pieces of it.

        `temperature` 0 takes the likeliest token, 1 draws as the model learnt to. `top_k` (0: all), `top_p`
        (1: all) and `min_p` (0: all) bound which tokens may be drawn: the k likeliest, the likeliest that
        have p of the probability between them, those at least p times as likely as the likeliest. A
        `repetition_penalty` above 1 makes tokens of the text so far less likely. A `seed` gives the same text
        every time; `stop` is a text, or several, before which it ends.
        """
        if not isinstance(prompt, str):
            raise wg.DTypeError(
                f"generate takes a text, not a {type(prompt).__name__}; generate_ids takes ids"
            )
        sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
        ids = self.tokenizer.encode(prompt)
        if not ids:
            raise wg.ArgumentError(
                "the prompt is empty, and this model has no token that begins a text: write a word at least"
            )
        return Generation(self, ids, sampling, max_tokens, seed, stop)

    def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int = 1024,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
    ) -> Generation:
        """The answer to a list of {"role": …, "content": …}: an iterator over pieces of it.

        Roles are "user", "assistant" and, at the beginning, "system". Options are those of `generate`.
        """
        sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
        return Generation(self, self.tokenizer.encode_chat(messages), sampling, max_tokens, seed, stop)

    def generate_ids(
        self,
        ids: Sequence[int],
        *,
        max_tokens: int = 256,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
    ) -> Iterator[int]:
        """Go on with ids: an iterator over the next ones; one that ends answers is the last of them."""
        sampling = Sampling(temperature, top_k, top_p, min_p, repetition_penalty)
        draws = _draws(seed)
        return self._ids(self._checked(ids), sampling, _checked_count(max_tokens), draws, Report())

    def logits(self, ids: Sequence[int]) -> wg.Tensor:
        """The logits after every one of these ids: (length, vocabulary)."""
        return self._decoding.logits(self._checked(ids))

    def next_logits(self, ids: Sequence[int]) -> wg.Tensor:
        """The logits after these ids, (vocabulary,), by one step: what was read before is not read again."""
        return self._decoding.next_logits(self._checked(ids))

    # Ids

    def _checked(self, ids: Any) -> list[int]:
        """Ids of this vocabulary, at least one, that leave room for another."""
        try:
            given = [index(each) for each in (ids.tolist() if hasattr(ids, "tolist") else ids)]
        except TypeError:
            raise wg.DTypeError(f"ids are a list of integers, not {ids!r:.80}") from None
        if not given:
            raise wg.ArgumentError("there is no token to go on from: give one id at least")
        for each in given:
            if not 0 <= each < self.settings.vocabulary:
                raise wg.ArgumentError(
                    f"the id {each} is none of this model's, which are 0 to {self.settings.vocabulary - 1}"
                )
        if len(given) > self.context:
            more = min(self.settings.context, 2 * len(given))
            hint = f", or load the model with context={more} (a command: --context {more})"
            raise wg.ArgumentError(
                f"a text of {len(given):,} tokens does not fit the context of {self.context:,}: shorten it"
                + (hint if len(given) <= self.settings.context else "")
            )
        return given

    def _ids(
        self, prompt: list[int], sampling: Sampling, most: int, draws: Any, report: Report
    ) -> Iterator[int]:
        """The ids after a prompt; the report is kept up to date."""
        decoding, text = self._decoding, list(prompt)
        start = time.perf_counter()
        report.prompt_tokens = len(text)
        with decoding.lock:
            decoding.make_room(min(len(text) + most, self.context))
        held: list[int] | None = None
        while report.tokens < most:
            if len(text) > self.context:
                report.stopped_by = "context"
                return
            with decoding.lock:
                if decoding.held is not held:  # another text had its turn
                    cached = decoding.read(text[:-1])
                    report.cached_tokens = min(report.cached_tokens, cached) if held else cached
                    held = decoding.held
                    if sampling.kind.penalty:
                        decoding.note(text[:-1])
                number, draws = decoding.next(text[-1], sampling, draws)
                held.append(text[-1])
            text.append(number)
            report.tokens += 1
            now = time.perf_counter()
            if report.tokens == 1:
                report.prefill_seconds, start = now - start, now
            report.decode_seconds = now - start
            if number in self.stop_ids:
                report.stopped_by = "end"
                yield number
                return
            yield number
            start += time.perf_counter() - now  # what the caller did meanwhile is not ours
        report.stopped_by = "length"


class Generation(Iterator[str]):
    """A text while it is made: an iterator over its pieces; `text`, `ids` and `report` grow with them."""

    def __init__(
        self,
        model: LanguageModel,
        prompt: Sequence[int],
        sampling: Sampling,
        max_tokens: int,
        seed: int | None,
        stop: str | Sequence[str],
    ) -> None:
        self.prompt_ids = model._checked(prompt)
        self.text = ""
        self.ids: list[int] = []
        self.report = Report()
        self._stops = checked_stops(stop)
        draws = _draws(seed)
        ids = model._ids(self.prompt_ids, sampling, _checked_count(max_tokens), draws, self.report)
        self._pieces = self._made(ids, model.tokenizer)

    def __next__(self) -> str:
        piece: str = next(self._pieces)
        self.text += piece
        return piece

    def __iter__(self) -> Generation:
        return self

    def __repr__(self) -> str:
        ended = self.report.stopped_by
        state = f"ended by {ended!r}" if ended else "to be iterated over"
        return f"Generation({self.text!r}, {self.report.tokens} tokens, {state})"

    def close(self) -> None:
        """Make no more of it."""
        self._pieces.close()

    def _made(self, ids: Iterator[int], tokenizer: Tokenizer) -> Any:
        stream, stopper = tokenizer.stream(), Stopper(self._stops)
        for each in ids:
            if self.report.stopped_by == "end":  # this token is no part of the text
                break
            self.ids.append(each)
            if piece := stopper.push(stream.push(each)):
                yield piece
            if stopper.found is not None:
                self.report.stopped_by = "stop"
                return
        if piece := stopper.push(stream.finish()) + stopper.finish():
            yield piece
        if stopper.found is not None:
            self.report.stopped_by = "stop"


def _checked_count(max_tokens: Any) -> int:
    try:
        count = index(max_tokens)
    except TypeError:
        raise wg.DTypeError(f"max_tokens must be an integer, not {max_tokens!r}") from None
    if count < 1:
        raise wg.ArgumentError(f"max_tokens is 1 or more, not {count}")
    return count


def _draws(seed: Any) -> tuple[int, int]:
    """The state of draws that a seed begins; told of now, and not when the first token is drawn."""
    try:
        number = None if seed is None else index(seed)
    except TypeError:
        raise wg.DTypeError(f"seed must be an integer, or None, not {seed!r}") from None
    if number is not None and not 0 <= number < 1 << 64:
        raise wg.ArgumentError(f"seed is from 0 to 2**64 - 1, not {number}")
    return wg.random.Generator(number).get_state()


def _checked_cache_dtype(given: Any, device: Any) -> wg.DType:
    """What keys and values are kept in: half floats, unless these would have to be unpacked at every step."""
    if given is None:
        where: Any = wg.open_device(device)
        return wg.float32 if where.is_gpu and "f16" not in where.features else wg.float16
    dtype = wg.as_dtype(given)
    if dtype not in (wg.float16, wg.float32):
        raise wg.ArgumentError(f"cache_dtype is float16 or float32, not {dtype.name}")
    return dtype


def _checked_context(context: int | None, most: int) -> int:
    if context is None:
        return most
    try:
        count = index(context)
    except TypeError:
        raise wg.DTypeError(f"context must be an integer, not {context!r}") from None
    if not 1 <= count <= most:
        raise wg.ArgumentError(f"context is from 1 to {most:,}, what the model was made for, not {count:,}")
    return count
