"""`webgrad bench [MODEL]`: how quickly a model reads and writes on this machine's devices.

In: a model and devices. Out: medians of tokens a second for reading a prompt (prefill) and for writing after
it (decode), with the kernels and submissions that a token takes; texts a second for a model that embeds; of
an ONNX model the milliseconds of a call. A first run, which compiles kernels, is not counted.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import webgrad as wg

from . import protocols
from .chat import DEFAULT_MODEL
from .onnx_bench import PEERS, bench_onnx
from .onnx_models import add_inputs, is_onnx
from .options import Parser, add_json, count
from .protocols import EmbeddingModel, LanguageModel
from .terminal import Output

__all__ = ["main"]

TEXT = (
    "The old harbour lay quiet in the morning light. Boats came in one after another, gulls cried above the "
    "quay, and the women who sold fish laid out what the night had brought. "
)
TEXTS = 64  # that an embedding model gets at once
Row = dict[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Measure on each device asked for, and show a line for each."""
    parser = Parser(
        prog="webgrad bench",
        description="Measure a model on this machine: medians of several runs, the first one not counted.",
    )
    parser.add_argument("model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL", help="see webgrad models")
    parser.add_argument(
        "--device", action="append", metavar="DEVICE", help="may be given several times (default: the best)"
    )
    for name, default, sentence in (
        ("--runs", 5, "runs that are counted"),
        ("--prompt-tokens", 128, "tokens of the prompt"),
        ("--tokens", 32, "tokens written after it"),
    ):
        help_text = f"{sentence} (default: {default})"
        parser.add_argument(name, type=count, default=default, metavar="N", help=help_text)
    parser.add_argument(
        "--against", choices=PEERS, help="measure this in turns with an ONNX model, on the cpu"
    )
    add_inputs(parser)
    add_json(parser)
    options = parser.parse_args(arguments)
    if is_onnx(options.model):
        return bench_onnx(options)
    if options.against:
        parser.error(f"--against is for ONNX models, and {options.model} is none")
    wanted: list[str | None] = options.device or [None]
    for device in wanted:
        wg.open_device(device)  # one that is not there is told of before anything is measured
    screen = Output(sys.stdout)
    rows = []
    for device in wanted:
        row = _measured(options.model, device, options.runs, options.prompt_tokens, options.tokens)
        rows.append(row)
        if not options.json:
            screen.line(_text(row))
    if options.json:
        settings = {"runs": options.runs, "prompt_tokens": options.prompt_tokens, "tokens": options.tokens}
        print(json.dumps({"model": options.model, **settings, "devices": rows}, indent=2))
    return 0


def _measured(name: str, device: str | None, runs: int, prompt_tokens: int, tokens: int) -> Row:
    start = time.perf_counter()
    model = protocols.load(name, device)
    row: Row = {"device": model.device.name, "load_seconds": round(time.perf_counter() - start, 3)}
    if hasattr(model, "embed"):
        return row | _embedding(model, runs)
    return row | _writing(model, runs, prompt_tokens, tokens)


def _writing(model: LanguageModel, runs: int, prompt_tokens: int, tokens: int) -> Row:
    if prompt_tokens + tokens + 1 > model.context:
        raise wg.ArgumentError(
            f"{prompt_tokens} + {tokens} tokens do not fit in the model's context of {model.context}"
        )
    ids = model.tokenizer.encode(TEXT)
    ids = (ids * (prompt_tokens // len(ids) + 2))[: prompt_tokens + runs + 1]
    measured = [_run(model, ids[run : run + prompt_tokens], tokens) for run in range(runs + 1)][1:]
    return {name: _median([each[name] for each in measured]) for name in measured[0]}


def _run(model: LanguageModel, ids: Sequence[int], tokens: int) -> Row:
    """One prompt, which differs from the last run's at its first token: nothing of it is known yet."""
    start = time.perf_counter()
    times: list[float] = []
    for _ in model.generate_ids(ids, max_tokens=tokens + 1, temperature=0):
        if not times:
            wg.reset_stats(model.device)
        times.append(time.perf_counter())
    counters = wg.stats(model.device)
    if len(times) < 2:
        raise wg.ArgumentError("the model ended at once: there is nothing to measure; try other lengths")
    written = len(times) - 1
    return {
        "prefill_tokens_per_second": len(ids) / (times[0] - start),
        "decode_tokens_per_second": written / (times[-1] - times[0]),
        "kernels_per_token": counters["dispatches"] / written,
        "submissions_per_token": counters["submissions"] / written,
    }


def _embedding(model: EmbeddingModel, runs: int) -> Row:
    texts = [f"{number}. {TEXT}" for number in range(TEXTS)]
    seconds = [_seconds(lambda: model.embed(texts).numpy()) for _ in range(runs + 1)][1:]
    return {"texts_per_second": TEXTS / statistics.median(seconds)}


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2)


def _text(row: Row) -> str:
    """A device's figures in a line."""
    parts = [f"loaded in {row['load_seconds']:.1f} s"]
    if "texts_per_second" in row:
        parts.append(f"{row['texts_per_second']:.3g} texts/s")
    else:
        parts.append(f"prefill {row['prefill_tokens_per_second']:.3g} tokens/s")
        parts.append(f"decode {row['decode_tokens_per_second']:.3g} tokens/s")
        if row["kernels_per_token"]:
            parts.append(f"{row['kernels_per_token']:.4g} kernels a token")
            parts.append(f"{row['submissions_per_token']:.3g} submissions a token")
    return f"{row['device']}: " + " · ".join(parts)
