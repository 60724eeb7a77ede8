"""Published ONNX models beside onnxruntime, in turns: `python -m benchmarks.onnx_models [NAME …]`.

In: the models and real inputs of scripts/onnx_inputs.py; onnxruntime in a process of its own (`--peer` names
its Python; with `--device webgpu:0` one that has onnxruntime-webgpu). Out: for each model the least processor
time of a call here and there, of one thread each, or with `--threads 2` and on GPUs the least time by the
clock, and their ratio. Results are compared first. What the peer cannot run is told, and not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
TEN = (
    *("pp-ocr-det", "pp-ocr-cls", "pp-ocr-rec", "silero-vad", "magika"),
    *("basic-pitch", "minilm-int8", "piper-joe", "terrain", "retsim"),
)
TURN = 0.4  # seconds of a turn, about; a call at least
PEER = """
import json, sys, time
import numpy as np, onnxruntime
onnxruntime.set_default_logger_severity(3)
model, inputs, threads, provider = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
if provider not in onnxruntime.get_available_providers():
    sys.exit(f"this onnxruntime has no {provider}, only {onnxruntime.get_available_providers()}")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(model, options, providers=[provider])
with np.load(inputs) as kept:
    given = {name: kept[name] for name in kept.files}
clock = time.process_time if threads == 1 and provider.startswith("CPU") else time.perf_counter
session.run(None, given)
for line in sys.stdin:
    times = []
    end = time.perf_counter() + float(line)
    while not times or time.perf_counter() < end:
        start = clock()
        outputs = session.run(None, given)
        times.append(clock() - start)
    print(json.dumps(times), flush=True)
"""


def main(arguments: Sequence[str]) -> int:
    """Time models, and print a line for each."""
    parser = argparse.ArgumentParser(prog="benchmarks.onnx_models", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"without one: {', '.join(TEN)}")
    parser.add_argument(
        "--device", default="cpu", help="cpu, webgpu:N …: onnxruntime's provider is of its kind"
    )
    parser.add_argument("--threads", type=int, default=1, help="of the cpu")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each (7)")
    parser.add_argument(
        "--peer", help="a Python that has onnxruntime (of GPUs: onnxruntime-webgpu) and Pillow"
    )
    options = parser.parse_args(arguments)
    is_gpu = options.device != "cpu"
    if options.threads == 1 and not is_gpu and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    from scripts import onnx_inputs, onnx_models  # once the processors are chosen

    python = options.peer or onnx_models.peer_python(onnx_models.ON_GPU if is_gpu else onnx_models.ON_CPU)
    onnx_inputs.make_files(onnx_models.FILES, python)
    ratios = []
    print(f"{'model':14}{'webgrad':>12}{'onnxruntime':>14}{'ratio':>8}")
    for name in options.names or TEN:
        row = _measured(name, python, options)
        if isinstance(row, str):
            print(f"{name:14}{row}", flush=True)
            continue
        ratios.append(row[1] / row[0])
        print(f"{name:14}{1000 * row[0]:>9.3f} ms{1000 * row[1]:>11.3f} ms{ratios[-1]:>8.2f}", flush=True)
    goal = 4 if is_gpu else 1
    reached = sum(each >= goal for each in ratios)
    print(f"{reached} of {len(ratios)} at {goal} or more, the least is {min(ratios, default=0):.2f}")
    return 0


def _measured(name: str, python: str, options: argparse.Namespace) -> tuple[float, float] | str:
    """Least seconds of a call here and in onnxruntime; or why that has none."""
    import webgrad as wg
    from scripts.onnx_inputs import INPUTS, source_of
    from scripts.onnx_models import FILES, peers_outputs
    from webgrad.cli.onnx_check import differences
    from webgrad.cli.run import array_of

    path = str(wg.models.locate(source_of(name)))
    given = INPUTS[name](FILES)[0]
    model = wg.onnx.load(path, device=options.device)

    def ours() -> dict[str, Any]:
        return {key: array_of(value) for key, value in model(**given).items()}

    wanted = peers_outputs(python, path, [given])[0]
    for _ in range(3):  # compiled, captured, replayed
        found = ours()
    worst = max(each.largest for each in differences(found, dict(zip(found, wanted, strict=True))))
    if not worst <= 1e-3:
        print(f"{name}: off by {worst:.1e} of the largest number", file=sys.stderr)
    inputs = FILES / f"{name}.npz"
    np.savez(inputs, **given)
    is_cpu = options.device == "cpu"
    clock = time.process_time if is_cpu and options.threads == 1 else time.perf_counter
    provider = "CPUExecutionProvider" if is_cpu else "WebGpuExecutionProvider"
    command = [python, "-c", PEER, path, str(inputs), str(options.threads), provider]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None

        def theirs() -> list[float]:
            print(TURN, file=peer.stdin, flush=True)
            return list(json.loads(peer.stdout.readline() or "[]"))

        if not theirs():  # the first is not counted
            return f"not run by onnxruntime: it ended with {peer.wait()}, see above"
        turns = [(_turn(ours, clock), theirs()) for _ in range(options.rounds)]
        peer.stdin.close()
    return min(each for mine, _ in turns for each in mine), min(each for _, other in turns for each in other)


def _turn(run: Callable[[], object], clock: Callable[[], float]) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + TURN
    while not times or time.perf_counter() < end:
        start = clock()
        run()
        times.append(clock() - start)
    return times


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
