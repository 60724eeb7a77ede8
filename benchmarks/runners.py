"""The libraries as processes: which there are, where their environments lie, and talking to one.

In: a runner's name. Out: `Worker`, a live process that answers requests. An environment is a venv in the
folder BENCH_PEERS (by default `.peers` beside this repository's files), named as in `PEERS`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from scripts.environments import ensure, interpreter
from scripts.torch_tests import TORCH, install_torch

__all__ = ["PEERS", "RUNNERS", "Runner", "Worker", "make_peers", "peers_folder"]

HERE = Path(__file__).parent
ROOT = HERE.parent

# Environment → what pip installs into it
PEERS: dict[str, tuple[str, ...]] = {
    "tinygrad": ("tinygrad==0.14.0", "dawn-python==0.3.0", "numpy"),
    "onnxruntime": ("onnxruntime-webgpu==1.27.0", "onnx==1.18.0", "numpy"),
    "iree": ("iree-base-compiler", "iree-base-runtime", "onnx==1.18.0", "numpy"),
    "torch": (TORCH, "numpy"),
}


@dataclass(frozen=True)
class Runner:
    """A script of peers/, its arguments, and its environment; "" is ours."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    environment: str = ""
    webgpu: bool = False

    @property
    def python(self) -> Path | None:
        """Its Python; None where it is not installed."""
        if not self.environment:
            return Path(sys.executable)
        python = interpreter(peers_folder() / self.environment)
        return python if python.exists() else None


RUNNERS: dict[str, Runner] = {
    each.name: each
    for each in (
        Runner("webgrad webgpu:0", "webgrad_tensors", ("webgpu:0",), webgpu=True),
        Runner("webgrad cpu", "webgrad_tensors", ("cpu",)),
        Runner("tinygrad", "tinygrad_webgpu", environment="tinygrad", webgpu=True),
        Runner("onnxruntime", "onnxruntime_webgpu", environment="onnxruntime", webgpu=True),
        Runner("iree", "iree_vulkan", environment="iree", webgpu=True),
        Runner("torch", "torch_eager", environment="torch"),
        Runner("numpy", "plain_numpy"),
    )
}


def peers_folder() -> Path:
    """Where the peers' environments lie."""
    return Path(os.environ.get("BENCH_PEERS") or ROOT / ".peers")


def make_peers() -> int:
    """Make the environments that are missing or old; the code of the first command that fails, else 0."""
    for name, packages in PEERS.items():

        def install(pip: Callable[..., int], packages: tuple[str, ...] = packages) -> int:
            # torch first: its wheels for CPUs may lie in an index of their own.
            return (install_torch(pip) if TORCH in packages else 0) or pip(*packages)

        if code := ensure(peers_folder() / name, " ".join(packages), packages, install):
            return code
    return 0


class Worker:
    """A process of a runner, stopped while it is not asked: some libraries' threads spin while they wait.

    `close` ends it; what it prints goes to a file that `log` reads.
    """

    def __init__(self, runner: Runner, more: tuple[tuple[str, str], ...] = ()) -> None:
        assert runner.python is not None
        self.runner = runner
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  (as long as the process)
        environment = {
            "XDG_RUNTIME_DIR": tempfile.gettempdir(),
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(HERE), str(HERE / "peers"), *([] if runner.environment else [str(ROOT)])]
            ),
            **dict(more),
        }
        self._process = subprocess.Popen(
            [str(runner.python), str(HERE / "peers" / f"{runner.script}.py"), *runner.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
            cwd=tempfile.gettempdir(),
        )
        answer = self._read()
        self.about: dict[str, str] = answer.get("ready", {})
        self.problem: str = answer.get("failed", "")
        self._signal("SIGSTOP")

    def _signal(self, name: str) -> None:
        """Stop it, or let it go on, where the system can do that."""
        number = getattr(signal, name, None)
        if number is not None and self.alive:
            self._process.send_signal(number)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer; a process that ended answers {"failed": …}."""
        stdin = self._process.stdin
        assert stdin is not None
        self._signal("SIGCONT")
        with contextlib.suppress(OSError):  # it ended: reading says so
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        answer = self._read()
        self._signal("SIGSTOP")
        return answer

    def _read(self) -> dict[str, Any]:
        stdout: TextIO | None = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = self._process.wait()
        said = self.log().strip().splitlines()
        return {
            "failed": f"the process ended with code {code}: {said[-1] if said else 'it said nothing'}"[:300]
        }

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def log(self) -> str:
        """All that it printed."""
        self._log.seek(0)
        return self._log.read()

    def close(self) -> None:
        """End it."""
        self._signal("SIGCONT")
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # it ended, and did not read all
                    stream.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
