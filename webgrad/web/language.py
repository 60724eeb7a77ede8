"""A language model as a chat page: its steps over caches that the page keeps, its tokenizer and its template.

In: a `LanguageModel`. Out: a folder, or one HTML file. The functions are read_128, read_32 and read_8, which
take that many tokens into the caches, and greedy and sample, which take one and give the next. The invariant:
they are the functions that the model itself runs, traced, so the page writes what Python would.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import index
from pathlib import Path
from typing import Any

import webgrad as wg
from webgrad.errors import ArgumentError, ModelFileError
from webgrad.models import LanguageModel
from webgrad.models.decoder import Decoding
from webgrad.models.sampling import Kind, Sampling

from ..jit.tensor_names import named_tensors
from .bundle import Bundle
from .chat_segments import chat_segments
from .folder import write_export
from .tokenizer_data import tokenizer_file

__all__ = ["CHUNKS", "export_language_model", "language_bundle"]

CHUNKS = (128, 32, 8)  # tokens that are read at once; larger ones are slow to wait for on small GPUs
MOST_CONTEXT = 2048
MOST_CACHE = 256 << 20  # bytes of all caches, where no context is asked for
DEFAULTS = {"temperature": 0.8, "top_p": 1.0, "min_p": 0.05}
LEAST = 1e-6  # in place of zeros, which nothing is divided by
DRAWS = Kind(draws=True, top_k=False, top_p=True, min_p=True, penalty=False)
CHAT_EXAMPLES = ["What is a tensor?", "Name three rivers of Europe.", "Write a haiku about rain."]
TEXT_EXAMPLES = ["Once upon a time", "The three largest rivers of Europe are"]
Report = Callable[[str], None]


@wg.no_grad()
def export_language_model(
    model: LanguageModel,
    path: str | os.PathLike[str],
    *,
    context: int | None = None,
    single_file: bool = False,
    overwrite: bool = False,
    name: str = "",
    report: Report = lambda line: None,
) -> Path:
    """Write a page that talks with a language model, and give the path of its HTML file.

    `context` is how many tokens a conversation may have: 2048, or less where the model's own or 256 MiB of
    caches are less. A model without a chat template, or with one that a page cannot follow, goes on with
    plain text. `report` hears of what is being done.
    """
    title = name or model.settings.architecture
    tokenizer = tokenizer_file(model.tokenizer)
    chat = _chat(model, report)
    bundle, decoding = language_bundle(model, title, context)
    caches = sum(each.stored.nbytes for each in decoding.caches)
    report(
        f"planning {', '.join(bundle.graphs)}; context {decoding.context:,} tokens, "
        f"for which caches take {caches / 1e6:,.0f} MB"
    )
    facts = {
        "title": title,
        "context": decoding.context,
        "room": decoding.room,
        "chunks": list(decoding.chunks),
        "stopIds": sorted(model.stop_ids),
        "functions": {"read": "read_{size}", "greedy": "greedy", "sample": "sample"},
        "sampling": DEFAULTS,
        "tokenizer": "tokenizer.json",
        "chat": chat,
        "welcome": "Ask something" if chat else "Begin a text",
        "examples": CHAT_EXAMPLES if chat else TEXT_EXAMPLES,
    }
    files = {"tokenizer.json": tokenizer}
    return write_export(bundle, path, "chat", facts, files, single_file=single_file, overwrite=overwrite)


@wg.no_grad()
def language_bundle(
    model: LanguageModel, title: str, context: int | None = None, chunks: Sequence[int] = CHUNKS
) -> tuple[Bundle, Decoding]:
    """The functions of a language model, and what they were traced of; its caches are the bundle's state."""
    # Nothing is computed, so the caches need not be where the model is.
    decoding = Decoding(model.decoder, _context(model, context), wg.open_device("cpu"), chunks)
    decoding.make_room(decoding.context)
    wg.eval([each.stored for each in decoding.caches])

    def greedy(token: Any, position: Any) -> Any:
        sampling = Sampling(temperature=0)
        return {"token": decoding.step(token, position, sampling.numbers, sampling.kind)}

    def sample(token: Any, position: Any, temperature: Any, top_p: Any, min_p: Any) -> Any:
        log_min_p = wg.log(wg.maximum(min_p, LEAST))
        numbers = (wg.maximum(temperature, LEAST), 0, top_p, log_min_p, 1.0)
        return {"token": decoding.step(token, position, numbers, DRAWS)}

    caches = [(f"cache.{number}", each.stored) for number, each in enumerate(decoding.caches)]
    bundle = Bundle(title, [*named_tensors([model.decoder]), *caches])
    for size in decoding.chunks:
        ids = wg.zeros(size, dtype=wg.int32, device="cpu")
        bundle.add(f"read_{size}", decoding.read_chunk, {"ids": ids, "position": 0})
    bundle.add("greedy", greedy, (0, 0))
    bundle.add("sample", sample, (0, 0, *DEFAULTS.values()))
    return bundle, decoding


def _context(model: LanguageModel, wanted: int | None) -> int:
    """How many tokens a conversation may have."""
    settings = model.settings
    if wanted is None:
        position = 4 * 2 * settings.layers * settings.key_heads * settings.head_width
        return max(1, min(model.context, MOST_CONTEXT, MOST_CACHE // position - CHUNKS[0]))
    try:
        count = index(wanted)
    except TypeError:
        raise ArgumentError(f"export: context must be an integer, not {wanted!r}") from None
    if not 1 <= count <= model.context:
        raise ArgumentError(f"export: context is from 1 to {model.context:,}, the model's own, not {count:,}")
    return count


def _chat(model: LanguageModel, report: Report) -> dict[str, Any] | None:
    """The texts around messages; None where the page goes on with plain text."""
    if not model.tokenizer.has_chat:
        report("the model has no chat template: the page goes on with plain text")
        return None
    try:
        return chat_segments(model.tokenizer)
    except ModelFileError as error:
        report(f"{error}; the page goes on with plain text")
        return None
