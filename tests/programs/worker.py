"""One program with one library: `python -m tests.programs.worker torch|webgrad NAME FOLDER WRITTEN [READ]`.

In: a program's name, the folder of its files, and for webgrad the record that torch's run wrote. Out: a
record (.npz) of initial weights, outputs and losses. Both libraries run the same lines; only `install()`
differs.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main"]

LARGEST = 200_000  # elements of an output that are kept
MOST = 100  # arrays that are kept


class Enough(Exception):
    """A script has done as many steps as are wanted."""


def main(side: str, name: str, folder: str, written: str, read: str | None = None) -> None:
    """Run a program and write its record."""
    if side == "webgrad":
        import webgrad.torch

        webgrad.torch.install()
    import torch

    from tests.programs.program import STAND_INS, Script, inert
    from tests.programs.steady import Weights, steady
    from tests.programs.table import PROGRAMS

    inert("torch.utils.tensorboard")
    program = PROGRAMS[name]
    home = Path(folder) / program.folder
    sys.path[:0] = [str(home), str(STAND_INS)]
    steady(torch)
    known = dict(np.load(read)) if read else None
    weights = Weights(torch, known)
    watch = Watch(torch, weights)
    enter = program.enter
    if isinstance(enter, Script):
        inert(*enter.without)
        if enter.double:
            torch.set_default_dtype(torch.float64)
        with tempfile.TemporaryDirectory() as work, contextlib.chdir(work):
            shutil.copytree(home, work, dirs_exist_ok=True)
            enter.prepare(Path(work))
            run_script(watch, enter, Path(work))
    else:
        run_model(watch, enter)
    np.savez(written, **weights.seen, **watch.record, seconds=np.array(watch.seconds))


class Watch:
    """What a run shows: arrays by numbered names, and when each step ended."""

    def __init__(self, torch: Any, weights: Any) -> None:
        self.torch, self.weights = torch, weights
        self.record: dict[str, Any] = {}
        self.seconds: list[float] = []
        self.losses = 0
        self._began = time.perf_counter()

    def add(self, kind: str, value: Any) -> None:
        """Keep the arrays of a value."""
        from tests.programs.steady import arrays

        for each in arrays(value, self.torch):
            if kind == "output" and len(self.record) > MOST:
                return
            self.record[f"{kind}.{len(self.record):05d}"] = each.reshape(-1)[:LARGEST]

    def tick(self) -> None:
        """A step has ended."""
        now = time.perf_counter()
        self.seconds.append(now - self._began)
        self._began = now


def run_model(watch: Watch, enter: Callable[[], Any]) -> None:
    """The steps of an adapter's model."""
    entered = enter()
    for module in entered.modules.values():
        watch.weights.of_module(module)
    watch.tick()
    for batch in entered.batches:
        *outputs, loss = entered.step(*batch)
        watch.add("output", outputs)
        watch.add("loss", loss)
        watch.tick()


def run_script(watch: Watch, script: Any, home: Path) -> None:
    """A script, with its losses, and the outputs of the modules that it calls itself."""
    sys.argv = [str(home / script.path), *script.arguments]
    sys.path[:0] = [str((home / script.path).parent), str(home)]
    quiet = contextlib.redirect_stdout(io.StringIO())
    with watched(watch, script.most), contextlib.suppress(Enough, SystemExit), quiet:
        runpy.run_path(sys.argv[0], run_name="__main__")
    if not watch.losses:
        raise ValueError(f"{script.path} ended without a loss")


@contextlib.contextmanager
def watched(watch: Watch, most: int) -> Iterator[None]:
    """Modules, optimisers and `backward` that tell the watch of themselves."""
    torch = watch.torch
    call, backward = torch.nn.Module.__call__, torch.Tensor.backward
    start = torch.optim.Optimizer.__init__
    depth = 0

    def called(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal depth
        if not depth:
            watch.weights.of_module(self)
        depth += 1
        try:
            output = call(self, *args, **options)
        finally:
            depth -= 1
        if not depth:
            watch.add("output", output)
        return output

    def gone_back(self: Any, *args: Any, **options: Any) -> Any:
        if watch.losses == most:
            raise Enough
        watch.losses += 1
        if self.numel() == 1:
            watch.add("loss", self)
        result = backward(self, *args, **options)
        watch.tick()
        return result

    def started(self: Any, params: Any, *args: Any, **options: Any) -> None:
        start(self, params, *args, **options)
        watch.weights.of(each for group in self.param_groups for each in group["params"])

    torch.nn.Module.__call__, torch.Tensor.backward = called, gone_back
    torch.optim.Optimizer.__init__ = started
    try:
        yield
    finally:
        torch.nn.Module.__call__, torch.Tensor.backward = call, backward
        torch.optim.Optimizer.__init__ = start


if __name__ == "__main__":
    main(*sys.argv[1:])
