"""What happens once: a process's way to its first result, and the driver's compiling.

In: the runners that are installed. Out: what was measured as text and numbers, and whether the goal is
reached.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from runners import HERE, ROOT, RUNNERS

__all__ = ["cold_start", "compile_time"]

COLD, COMPILE = 1.2, 0.6  # seconds, at most
PROGRAMS = {
    "webgrad webgpu:0": "import webgrad as wg; print((wg.ones(4, device='webgpu:0') + 1).numpy())",
    "webgrad cpu": "import webgrad as wg; print((wg.ones(4, device='cpu') + 1).numpy())",
    "tinygrad": "import tinygrad_webgpu; from tinygrad import Tensor; print((Tensor.ones(4) + 1).numpy())",
    "torch": "import torch; print((torch.ones(4) + 1).numpy())",
    "numpy": "import numpy as np; print(np.ones(4) + 1)",
}


def cold_start(names: Sequence[str], rounds: int) -> dict[str, Any]:
    """Seconds of a process that computes one thing, the runners taking turns."""
    taken: dict[str, list[float]] = {each: [] for each in names if each in PROGRAMS}
    for _ in range(rounds):
        for name in taken:
            runner = RUNNERS[name]
            path = os.pathsep.join(
                [str(HERE), str(HERE / "peers"), *([] if runner.environment else [str(ROOT)])]
            )
            environment = {"XDG_RUNTIME_DIR": tempfile.gettempdir(), **os.environ, "PYTHONPATH": path}
            start = time.perf_counter()
            command = [str(runner.python), "-c", PROGRAMS[name]]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if not done.returncode:
                taken[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(each) for name, each in taken.items() if each}
    ours = medians.get("webgrad webgpu:0")
    text = ", ".join(f"{name} {each:.2f} s" for name, each in medians.items())
    return {"text": f"{text} (goal ≤ {COLD} s)", "medians": medians, "reached": ours is None or ours <= COLD}


def compile_time() -> dict[str, Any]:
    """The driver's slowest compile, by the script that measures all of them."""
    done = subprocess.run(
        [sys.executable, str(HERE / "compile_times.py")],
        env={"XDG_RUNTIME_DIR": tempfile.gettempdir(), "PYTHONPATH": str(ROOT), **os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"slowest driver compile of a kernel\s+([\d.]+) s \((.*?)\)", done.stdout)
    if found is None:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        return {"text": f"failed: {said}", "reached": False}
    seconds = float(found[1])
    text = f"{seconds:.2f} s at most ({found[2]}; goal ≤ {COMPILE} s)"
    return {"text": text, "seconds": seconds, "output": done.stdout, "reached": seconds <= COMPILE}
