"""Signals at random moments, forks at random moments, and damaged caches: each many times over, and counted.

In: how many, a seed. Out: for every kind of work a count of what followed; "WRONG" is what must not follow.
The workloads are a user's: tensors, gradients, captured functions, files, on the cpu and on a GPU.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from scripts.fuzz_files import change

__all__ = ["caches", "forks", "interrupts", "interrupts_apart"]

Outcomes = Counter[str]
Work = tuple[Callable[[], object], Callable[[], object]]  # what is disturbed; then a check, which raises
X = np.random.default_rng(0).normal(size=(24, 40)).astype(np.float32)


# Signals


def commands() -> Work:
    """The runtime's own commands: upload, record, flush, read, drop; then the pool's books must balance."""
    from tests.runtime.faults.harness import check_books, sane
    from tests.runtime.faults.test_interrupts import work
    from tests.runtime.helpers import bench

    private = bench()

    def check() -> None:
        check_books(private)
        sane(private)

    return lambda: work(private), check


def tensors(device: str) -> Work:
    """Lazy arithmetic, a product, a sum over rows, read."""

    def run() -> Any:
        x = wg.asarray(X, device=device)
        return wg.softmax(wg.relu(x @ x.T) * 0.25 + 1.0, axis=-1).numpy()

    expected = run()
    return run, lambda: np.testing.assert_array_equal(run(), expected)


def training(device: str) -> Work:
    """Steps of an optimiser; afterwards the same steps from the same start must give the same numbers."""

    def run() -> Any:
        wg.random.seed(3)
        model = wg.nn.Sequential(wg.nn.Linear(40, 16), wg.nn.ReLU(), wg.nn.Linear(16, 1)).to(device)
        optimiser = wg.optim.Adam(model.parameters(), lr=0.01)
        x = wg.asarray(X, device=device)
        for _ in range(3):
            optimiser.zero_grad()
            wg.mean(model(x) ** 2).backward()
            optimiser.step()
        return [each.numpy() for each in model.parameters()]

    expected = run()

    def check() -> None:
        for found, wanted in zip(run(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)

    return run, check


def captured(device: str) -> Work:
    """A captured function over a state that it changes: afterwards the state is that of some whole call."""
    state = wg.nn.Parameter(wg.zeros((64,), device=device))
    state.requires_grad = False

    @wg.jit
    def step(x: Any) -> Any:
        state[:] = state + 1.0
        return wg.sum(x * state)

    x = wg.ones((64,), device=device)
    step(x)

    def run() -> None:
        for _ in range(5):
            step(x).item()

    def check() -> None:
        before = state.numpy()
        assert (before == before[0]).all(), "the state is torn"
        assert before[0] == round(float(before[0]))
        assert step(x).item() == 64 * (float(before[0]) + 1)

    return run, check


def saving() -> Work:
    """A file of weights is written over: it is the old one or the new one, whole, with nothing beside it."""
    folder = Path(tempfile.mkdtemp(prefix="webgrad-fault-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, turn, found = folder / "weights.safetensors", [0], [0]
    tensors = {f"w{n}": X + n for n in range(8)}
    wg.io.save(path, tensors)

    def run() -> None:
        turn[0] += 1
        wg.io.save(path, {name: value + turn[0] for name, value in tensors.items()})
        found[0] = turn[0]

    def check() -> None:
        with wg.io.open(path) as weights:
            offsets = {
                round(float(weights[name][0, 0].item() - X[0, 0] - n)) for n, name in enumerate(tensors)
            }
        assert len(offsets) == 1, f"parts of several files: {offsets}"
        assert offsets <= {found[0], turn[0]}, f"neither the file before nor the new one: {offsets}"
        found[0] = offsets.pop()
        left = [each.name for each in folder.iterdir() if each != path]
        assert not left, f"left behind: {left}"

    return run, check


WORKS: dict[str, Callable[[], Work]] = {
    "runtime commands, GPU": commands,
    "tensors, GPU": lambda: tensors("webgpu"),
    "tensors, cpu": lambda: tensors("cpu"),
    "training steps, GPU": lambda: training("webgpu"),
    "training steps, cpu": lambda: training("cpu"),
    "a captured function, GPU": lambda: captured("webgpu"),
    "a captured function, cpu": lambda: captured("cpu"),
    "saving a file": saving,
}


class Struck(Exception):
    """What a handler of a user's own raises."""


# signal → what its handler raises: Ctrl-C, a time-out (which is an OSError), an orderly end, anything else
SIGNALS: dict[str, type[BaseException]] = {
    "SIGINT": KeyboardInterrupt,
    "SIGALRM": TimeoutError,
    "SIGTERM": SystemExit,
    "SIGUSR1": Struck,
}

STRIKER = """
import os, sys, time
for line in sys.stdin:
    number, seconds = line.split()
    time.sleep(float(seconds))
    os.kill(int(sys.argv[1]), int(number))
"""


class Striker:
    """Another process, which sends this one a signal after a while, so that no step of ours decides when."""

    def __init__(self) -> None:
        self.calls: list[int] = []  # of the handlers
        self._process = subprocess.Popen(
            [sys.executable, "-c", STRIKER, str(os.getpid())], stdin=subprocess.PIPE, text=True
        )
        self._before = {
            getattr(signal, name): signal.signal(getattr(signal, name), partial(self._handle, error))
            for name, error in SIGNALS.items()
        }

    def _handle(self, error: type[BaseException], number: int, frame: object) -> None:
        self.calls.append(number)
        raise error

    def send(self, name: str, delay: float) -> None:
        """Send one signal; whoever asked goes on with its work until it has come."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{getattr(signal, name):d} {delay:.9f}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """Put the handlers back; what was asked for and has not come does not come any more."""
        self._process.kill()
        self._process.communicate()
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _round(striker: Striker, name: str, run: Callable[[], object], delay: float) -> str:
    """Work until a signal's handler has raised; what followed. Every call of a handler is one exception."""
    striker.calls.clear()
    try:
        striker.send(name, delay)
        while not striker.calls:
            run()
    except SIGNALS[name] as error:
        if error.__traceback__ is None or len(striker.calls) != 1:
            return f"WRONG {name}: {len(striker.calls)} calls of the handler, and one exception"
        return f"{name} raised, right afterwards"
    return f"WRONG {name}: what its handler raised was swallowed"


def _lost(lost: Any) -> str:
    """What was raised where nobody can catch it, and where."""
    frames = [f"{each.filename}:{each.lineno}" for each in traceback.extract_tb(lost.exc_traceback)]
    return f"{lost.exc_type.__name__} was lost in {lost.object!r}: {' > '.join(frames)}"


def interrupts(work: str, count: int, seed: int) -> Outcomes:
    """Strike one of WORKS so many times with one of SIGNALS."""
    generator, outcomes = random.Random(f"{work}:{seed}"), Counter[str]()
    run, check = WORKS[work]()
    run()
    began = time.perf_counter()
    run()
    usual = time.perf_counter() - began
    check()
    striker = Striker()
    loud = sys.unraisablehook
    sys.unraisablehook = lambda lost: outcomes.update([f"WRONG {_lost(lost)}"])
    try:
        for _ in range(count):
            name, delay = generator.choice(list(SIGNALS)), generator.uniform(0, 1.1 * usual)
            try:
                followed = _round(striker, name, run, delay)
                check()
            except BaseException as error:
                lines = traceback.extract_tb(error.__traceback__)
                where = " > ".join(f"{Path(each.filename).name}:{each.lineno}" for each in lines[-12:])
                text = " ".join(str(error).split())[:160]
                followed = f"WRONG {name}: {type(error).__name__}: {text} after {striker.calls} at {where}"
            outcomes[followed] += 1
            if followed.startswith("WRONG"):  # a signal may still be on its way: it is not the next round's
                break
    finally:
        striker.close()
        sys.unraisablehook = loud
    return outcomes


HANGS = 600  # seconds; a portion takes some


def interrupts_apart(work: str, count: int, seed: int) -> Outcomes:
    """The same in a process of its own, which must also end."""
    command = [sys.executable, "-m", "scripts.fault_cases", work, str(count), str(seed)]
    environment = os.environ | {"WEBGRAD_COMPILE": "always"}  # results are compared by their bits
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            output, errors = process.communicate(timeout=HANGS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # Python's stacks are in what it prints
            output, errors = process.communicate()
            return Counter([f"WRONG hung after {count} signals: {errors[-2000:]}"])
    try:
        outcomes = Counter[str](json.loads(output.splitlines()[-1]))
    except (ValueError, IndexError):
        return Counter([f"WRONG ended by {process.returncode}: {(output + errors)[-600:]}"])
    if process.returncode:
        outcomes[f"WRONG exit {process.returncode}: {errors[-600:]}"] += 1
    return outcomes


# Forks


def _child(use: Callable[[], str]) -> str:
    """What a forked child says in its exit code, within twenty seconds."""
    process = os.fork()
    if process == 0:
        signal.alarm(20)
        code = 9
        try:
            code = list(ENDS).index(use())
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status == -signal.SIGALRM:
        return "WRONG: it hung"
    return list(ENDS)[status] if 0 <= status < len(ENDS) else f"WRONG: ended with {status}"


ENDS = ("refused by ForkError", "right", "WRONG result", "WRONG: no error")


def _use_gpu(pending: Any) -> str:
    for use in (
        pending.numpy,
        lambda: wg.ones((3,), device="webgpu").numpy(),
        lambda: wg.open_device("webgpu"),
    ):
        try:
            use()
        except wg.ForkError:
            continue
        return "WRONG: no error"
    gc.collect()
    return "refused by ForkError"


def _use_cpu(pending: Any) -> str:
    x = wg.asarray(X, device="cpu")
    found = (x @ x.T + wg.sum(x)).numpy()
    return "right" if np.allclose(found, X @ X.T + X.sum(), rtol=1e-3, atol=1e-3) else "WRONG result"


USES = {"the GPU": _use_gpu, "the cpu": _use_cpu}


def forks(use: str, count: int, seed: int) -> Outcomes:
    """Fork so many times while another thread computes; the child uses a device, and the parent goes on."""
    generator, outcomes = random.Random(seed), Counter[str]()
    stop, wrong = threading.Event(), list[BaseException]()

    def compute() -> None:
        try:
            devices = ("webgpu", "cpu")
            while not stop.is_set():
                for device in devices:
                    x = wg.asarray(X, device=device)
                    np.testing.assert_allclose((x + 1.0).numpy(), X + 1, rtol=1e-6)
                    # No products: NumPy's own hang where a process forks while a thread is in one.
                    assert wg.sum(wg.ones((300, 300), device=device) * 2.0).item() == 180_000
        except BaseException as error:
            wrong.append(error)

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        for _ in range(count):
            pending = wg.exp(wg.asarray(X, device="webgpu")) + 1.0
            time.sleep(generator.uniform(0, 0.004))
            outcomes[_child(partial(USES[use], pending))] += 1
            np.testing.assert_allclose(pending.numpy(), np.exp(X) + 1, rtol=1e-5)
    finally:
        stop.set()
        thread.join()
    outcomes.update(f"WRONG in the parent: {error!r}" for error in wrong)
    return outcomes


# Caches


def tuned(folder: Path) -> tuple[Path, Callable[[], str]]:
    """What was measured for a kernel: damaged, it is measured again, or what it says is checked."""
    from webgrad.evaluate.evaluate import clear_plans
    from webgrad.tuning import choice

    x = np.random.default_rng(1).normal(size=(96, 520)).astype(np.float32)
    rows = np.exp(x - x.max(axis=1, keepdims=True))
    expected = rows / rows.sum(axis=1, keepdims=True)

    def use() -> str:
        clear_plans()
        choice._entries.cache_clear()
        with wg.tune():
            found = wg.softmax(wg.asarray(x, device="webgpu"), axis=-1).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        return "right"

    use()
    [entry] = (folder / "tuning").glob("*.json")
    return entry, use


def noted(folder: Path) -> tuple[Path, Callable[[], str]]:
    """The note beside a pulled model: damaged, the model counts as not there, or is found as it is."""
    name = "pypi:tiny-model==1.0/tiny/config.json"
    from webgrad.models import store

    wanted = store._wanted(name)
    assert not isinstance(wanted, Path)
    model = folder / "models" / wanted.key
    model.mkdir(parents=True)
    (model / "config.json").write_bytes(b"{}")
    files = {"config.json": {"size": 2, "sha256": "0" * 64}}
    note = {"name": name, "source": str(wanted.source), "main": "config.json", "files": files}
    (model / "pulled.json").write_text(json.dumps(note), "utf-8")
    assert wg.models.locate(name, pull=False) == model / "config.json"

    def use() -> str:
        for each in wg.models.pulled():
            _ = each.size, each.path
            each.damaged()
        try:
            path = wg.models.locate(name, pull=False)
        except wg.ModelFileError:
            return "not there"
        assert path.resolve().is_relative_to(model.resolve()), f"led to {path}"
        return "found"

    return model / "pulled.json", use


def configured(folder: Path) -> tuple[Path, Callable[[], str]]:
    """webgrad.toml: damaged, it gives settings or a ConfigError."""
    from webgrad.config import load_settings

    path = folder / "webgrad.toml"
    path.write_text('device = "cpu"\nmemory = "50%"\ngraph = 2000\ntune = true\ncache = "/tmp/x"\n', "utf-8")

    def use() -> str:
        try:
            load_settings({"WEBGRAD_CONFIG": str(path)})
        except wg.ConfigError:
            return "ConfigError"
        return "read"

    return path, use


def compiled(folder: Path) -> tuple[Path, Callable[[], str]]:
    """Native code: damaged, it is compiled again; the machine runs no byte of it."""
    from webgrad.native import compiler
    from webgrad.native.text import Function

    text = Function("run", [("ptr", "fields")], "i64").module(last="ret i64 424242")
    path = folder / "native" / "none.o"

    def use() -> str:
        if not compiler.is_available():
            return "no native code here"
        compiler._loaded.clear()
        assert compiler.callable_at(compiler.functions(text, ["run"])["run"])[0](0) == 424242
        return "right"

    if use() == "right":
        [path] = path.parent.glob("*.o")
    else:
        path.parent.mkdir()
        path.write_bytes(b"none")
    return path, use


CACHES = {
    "measured kernels": tuned,
    "notes of pulled models": noted,
    "webgrad.toml": configured,
    "native code": compiled,
}


def caches(kind: str, count: int, seed: int) -> Outcomes:
    """Damage a file of one of CACHES so many times, and use it."""
    from webgrad import config

    outcomes = Counter[str]()
    before = os.environ.get("WEBGRAD_CACHE")
    with tempfile.TemporaryDirectory(prefix="webgrad-fault-") as folder:
        os.environ["WEBGRAD_CACHE"] = folder
        config.reload()
        try:
            path, use = CACHES[kind](Path(folder))
            sound = path.read_bytes()
            for number in range(seed, seed + count):
                path.write_bytes(change(random.Random(number), sound, [sound]))
                try:
                    outcomes[use()] += 1
                except Exception as error:
                    outcomes[f"WRONG, seed {number}: {type(error).__name__}: {str(error)[:160]}"] += 1
        finally:
            if before is None:
                del os.environ["WEBGRAD_CACHE"]
            else:
                os.environ["WEBGRAD_CACHE"] = before
            config.reload()
    return outcomes


if __name__ == "__main__":
    faulthandler.enable()
    found = interrupts(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps(found))
