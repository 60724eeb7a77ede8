"""Random misuse: sequences of calls of everything public, with arguments that are often wrong.

    python -m tests.runtime.faults.sequences --seed 1 --first 0 --count 100

Each sequence is a function of its seed and number alone. A call may succeed or raise an error of webgrad, a
TypeError, ValueError or OverflowError. After each sequence a computation on every device must be right, and
the pool's books must balance. The last line of the output is a JSON summary, with what broke and where.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import random
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import webgrad as wg
from tests.runtime.faults.harness import check_books, sane
from tests.runtime.faults.misuse import ACTIONS, Actor, interrupted
from tests.runtime.helpers import Bench, bench
from webgrad.errors import DeviceLostError, WebgradError

__all__ = ["ALLOWED", "Outcome", "World", "main", "run_sequence"]

ALLOWED = (WebgradError, TypeError, ValueError, OverflowError)
STEPS = (5, 30)


class World:
    """The devices that all sequences of a process share, so that the damage of one would show in the next."""

    def __init__(self) -> None:
        self.main = bench()
        self.other = bench(immediates=False, encoder="plain")
        self.shared = Bench(self._shared_device())
        self.benches = (self.main, self.other, self.shared)

    @staticmethod
    def _shared_device() -> wg.Device:
        device = wg.open_device("webgpu")
        assert isinstance(device, wg.Device)
        return device

    def check(self) -> None:
        """Raise unless everything still works."""
        for each in self.benches:
            with contextlib.suppress(*ALLOWED):  # what is pending may be what a shader compiler refuses
                each.device.flush()
            _once_more(partial(sane, each))
            check_books(each)
        _once_more(self._check_batch)

    def _check_batch(self) -> None:
        batch = wg.Batch(self.shared.device)
        values = np.arange(-8, 8, dtype=np.float32).reshape(4, 4)
        result = batch.relu(batch.matmul(batch.upload(values), batch.upload(np.eye(4, dtype=np.float32))))
        batch.execute()
        np.testing.assert_array_equal(batch.read(result), np.maximum(values, 0))


def _once_more(check: Callable[[], None]) -> None:
    """A sequence may have left a lost device behind, which is found at the next use."""
    try:
        check()
    except DeviceLostError:
        check()


class Outcome:
    """What the calls of a run came to."""

    def __init__(self) -> None:
        self.calls = 0
        self.errors: Counter[str] = Counter()
        self.failures: list[str] = []

    def summary(self) -> dict[str, Any]:
        return {"calls": self.calls, "errors": dict(self.errors), "failures": self.failures}


def attempt(call: Callable[[], Any], outcome: Outcome) -> str:
    """Make a call; what it came to. Anything but success and the allowed errors is raised."""
    outcome.calls += 1
    try:
        call()
    except ALLOWED as error:
        name = type(error).__name__
        outcome.errors[name] += 1
        return name
    return "ok"


def run_sequence(world: World, seed: int, number: int, outcome: Outcome) -> None:
    """Run one sequence; what must not happen is noted as a failure, with all that was called."""
    source = random.Random(f"{seed}:{number}")
    log: list[str] = []
    try:
        actor = Actor(world.benches, source)
        for _ in range(source.randint(*STEPS)):
            _step(actor, source, log, outcome)
        actor.close()
        del actor
        gc.collect()
        log.append("check")
        world.check()
    except Exception:
        steps = "\n".join(f"  {line}" for line in log)
        outcome.failures.append(f"seed {seed} sequence {number}\n{steps}\n{traceback.format_exc()}")


def _step(actor: Actor, source: random.Random, log: list[str], outcome: Outcome) -> None:
    name = source.choice(list(ACTIONS))
    way = source.random()
    if way < 0.9:
        log.append(name)
        log[-1] += f": {attempt(lambda: ACTIONS[name](actor), outcome)}"
    elif way < 0.95:
        log.append(f"{name} with Ctrl-C")
        try:
            interrupted(source.uniform(10e-6, 2e-3), lambda: attempt(lambda: ACTIONS[name](actor), outcome))
        except (KeyboardInterrupt, asyncio.CancelledError):  # the latter is what asyncio.run may make of it
            outcome.errors["KeyboardInterrupt"] += 1
    else:
        names = source.choices(list(ACTIONS), k=4)
        log.append(f"in threads: {', '.join(names)}")
        _in_threads(actor, names, outcome)


def _in_threads(actor: Actor, names: list[str], outcome: Outcome) -> None:
    wrong: list[BaseException] = []

    def run(name: str, own: Actor) -> None:
        try:
            for _ in range(3):
                attempt(lambda: ACTIONS[name](own), outcome)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(name, actor.fork())) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def main(arguments: list[str] | None = None) -> int:
    """Run sequences in this process; each is announced before it runs, as it may be the last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args(arguments)
    sys.unraisablehook = lambda _: None  # a Ctrl-C in a finalizer: Python swallows it, and says so
    outcome = Outcome()
    world = World()
    for number in range(options.first, options.first + options.count):
        print(f"sequence {number}", flush=True)
        run_sequence(world, options.seed, number, outcome)
    print(json.dumps(outcome.summary()), flush=True)
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
