"""One library in a process of its own, told by lines on its input what to run.

In: JSON lines, {"prepare": name, "folder": path}, {"run": name, "seconds": s} and {"drop": name}. Out: a JSON
line for each: {"first": s, "error": e} after the result was compared with NumPy's; {"times": [s, …]}; or
{"missing": why}, {"failed": why}. The library's own output goes to the error stream.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

__all__ = ["Missing", "Run", "serve"]

Array = np.ndarray[Any, Any]
Run = tuple[Callable[[], Any], Callable[[Any], Array]]  # does all of the work; its result as an array
Build = Callable[[str, dict[str, Array]], Run]
MOST_RUNS = 1000


class Missing(Exception):
    """The library does not have this, or it cannot be asked here; the message says why."""


def serve(build: Build, about: dict[str, str]) -> None:
    """Answer requests until the input ends. `build` makes a workload's run from its inputs."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    ready: dict[str, Run] = {}
    _answer(answers, {"ready": about})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _handle(request, build, ready)
        except Missing as why:
            answer = {"missing": str(why)}
        except Exception as error:
            traceback.print_exc()
            answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        _answer(answers, answer)


def _answer(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _handle(request: dict[str, Any], build: Build, ready: dict[str, Run]) -> dict[str, Any]:
    if "prepare" in request:
        return _prepare(request["prepare"], Path(request["folder"]), build, ready)
    if "run" in request:
        return {"times": _times(ready[request["run"]][0], request["seconds"])}
    ready.pop(request["drop"], None)
    return {}


def _prepare(name: str, folder: Path, build: Build, ready: dict[str, Run]) -> dict[str, Any]:
    inputs = {each.stem: np.load(each) for each in sorted(folder.glob("*.npy")) if each.stem != "answer"}
    run, read = build(name, inputs)
    start = time.perf_counter()
    result = run()
    first = time.perf_counter() - start
    got, want = np.asarray(read(result), np.float32), np.load(folder / "answer.npy")
    del result
    if got.shape != want.shape and got.size == want.size:
        got = got.reshape(want.shape)
    if got.shape != want.shape:
        return {"failed": f"the result has the shape {got.shape}, not {want.shape}"}
    error = float(np.max(np.abs(got - want)) / max(float(np.max(np.abs(want))), 1e-30))
    for _ in range(2):  # libraries that capture or compile at a later call
        run()
    ready[name] = run, read
    return {"first": first, "error": error if np.isfinite(error) else 1e30}


def _times(run: Callable[[], Any], seconds: float) -> list[float]:
    """Runs for about so many seconds, at least one."""
    times: list[float] = []
    while len(times) < MOST_RUNS and sum(times) < seconds:
        start = time.perf_counter()
        kept = run()
        times.append(time.perf_counter() - start)
        del kept
    return times
