"""`webgrad bench model.onnx`: how long a call of an ONNX model takes here, and in onnxruntime.

In: the options of `webgrad bench`. Out: the median of calls whose results are read, for each device; with
`--against onnxruntime` both take turns on the same inputs, and the ratio is told.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import webgrad as wg

from ..arrays import Array
from .onnx_models import load, random_inputs
from .run import array_of
from .terminal import Output

__all__ = ["PEERS", "bench_onnx"]

Row = dict[str, Any]


def bench_onnx(options: Any) -> int:
    """Measure on each device asked for, and show a line for each."""
    wanted: list[str | None] = options.device or [None]
    for device in wanted:
        wg.open_device(device)  # one that is not there is told of before anything is measured
    peer = (
        PEERS[options.against](wg.onnx.load(options.model, device="cpu").source) if options.against else None
    )
    screen = Output(sys.stdout)
    rows = []
    for device in wanted:
        row = _measured(options, device, peer)
        rows.append(row)
        if not options.json:
            screen.line(_text(row, options.against))
    if options.json:
        facts = {"model": options.model, "runs": options.runs, "against": options.against}
        print(json.dumps(facts | {"devices": rows}, indent=2))
    return 0


def _measured(options: Any, device: str | None, peer: Callable[..., Any] | None) -> Row:
    start = time.perf_counter()
    model = load(options.model, device)
    loaded = time.perf_counter() - start
    given = random_inputs(model, options)

    def ours() -> None:
        for value in model(**given).values():
            array_of(value)

    first = _seconds(ours)
    ours()  # what is captured at the second call
    wg.reset_stats(model.device)
    ours()
    kernels = wg.stats(model.device)["dispatches"]
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    if peer is not None:
        peer(given)
    for _ in range(options.runs):  # in turns, so that what else runs here slows both
        times["ours"].append(_seconds(ours))
        if peer is not None:
            times["theirs"].append(_seconds(lambda: peer(given)))
    row: Row = {"device": model.device.name, "load_seconds": round(loaded, 3)}
    row |= {"first_call_seconds": round(first, 3), "milliseconds": _median(times["ours"])}
    row |= {"kernels": kernels, "waits": len(model.waits)}
    if peer is not None:
        row |= {"peer_milliseconds": _median(times["theirs"])}
        row |= {"ratio": round(row["peer_milliseconds"] / row["milliseconds"], 3)}
    return row


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _median(seconds: list[float]) -> float:
    return round(1000 * statistics.median(seconds), 4)


def _text(row: Row, against: str | None) -> str:
    parts = [f"loaded in {row['load_seconds']:.1f} s", f"first call {row['first_call_seconds']:.2f} s"]
    parts.append(f"{row['milliseconds']:.4g} ms a call")
    parts += [f"{row['kernels']} kernels"] if row["kernels"] else []
    parts += [f"{row['waits']} waits"] if row["waits"] else []
    if "ratio" in row:
        parts.append(f"{against} {row['peer_milliseconds']:.4g} ms: {row['ratio']:.2f} times its speed")
    return f"{row['device']}: " + " · ".join(parts)


def _onnxruntime(path: str) -> Callable[[Mapping[str, Array]], Any]:
    try:
        import onnxruntime
    except ImportError:
        raise wg.ArgumentError(
            "--against onnxruntime: it is not installed here: pip install onnxruntime"
        ) from None
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda given: session.run(None, dict(given))


PEERS: Mapping[str, Callable[[str], Callable[[Mapping[str, Array]], Any]]] = {"onnxruntime": _onnxruntime}
