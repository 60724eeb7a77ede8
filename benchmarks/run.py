"""Every workload on webgrad's devices and on the peers that are installed, in one run.

Processes stay alive and take turns (ours, a peer, ours …), so that what happens to the machine happens to all
of them. Results are compared with NumPy's before anything is timed. Prints a table and writes JSON, Markdown
and a plot to benchmarks/results/. Usage: run.py [--only a,b] [--quick] [--devices …] [--peers …]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from plot import svg
from results import Figure, figure, lines, markdown
from runners import HERE, ROOT, RUNNERS, Worker, make_peers
from start import cold_start, compile_time
from workloads import WORKLOADS

RESULTS = HERE / "results"
PARTS = RESULTS / "parts"  # of quick runs and of some workloads: not to be taken for a whole run
OWN = ("webgrad webgpu:0", "webgrad cpu")


def options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure webgrad beside its peers.")
    parser.add_argument("--only", default="", help=f"workloads: {', '.join(WORKLOADS)}, cold_start, compile")
    parser.add_argument("--quick", action="store_true", help="two short rounds: to see that all of it works")
    parser.add_argument("--devices", default="webgpu:0,cpu", help="webgrad's devices")
    others = ",".join(each for each in RUNNERS if each not in OWN)
    parser.add_argument("--peers", default=others, help=f"of {others}; 'none' for none")
    parser.add_argument("--rounds", type=int, default=0, help="how many turns; 9, or 2 with --quick")
    parser.add_argument("--seconds", type=float, default=0, help="of one turn; 0.3, or 0.02 with --quick")
    parser.add_argument("--results", type=Path, help="the folder that is written to")
    parser.add_argument("--make-peers", action="store_true", help="make the peers' environments, and end")
    chosen = parser.parse_args(words)
    chosen.rounds = chosen.rounds or (2 if chosen.quick else 9)
    chosen.seconds = chosen.seconds or (0.02 if chosen.quick else 0.3)
    chosen.runners = [f"webgrad {each}" for each in chosen.devices.split(",") if each]
    chosen.runners += [each for each in chosen.peers.split(",") if each and each != "none"]
    chosen.results = chosen.results or (PARTS if chosen.quick or chosen.only else RESULTS)
    known = [*WORKLOADS, "cold_start", "compile"]
    chosen.names = chosen.only.split(",") if chosen.only else known
    for words_given, known_words, what in (
        (chosen.names, known, "workload"),
        (chosen.runners, list(RUNNERS), "runner"),
    ):
        for each in words_given:
            if each not in known_words:
                parser.error(f"there is no {what} {each!r}; there are {', '.join(known_words)}")
    return chosen


class Workers:
    """The processes, started when they are first needed, by runner and environment."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [each for each in names if RUNNERS[each].python is not None]
        for each in names:
            if each not in self.names:
                print(f"{each} is not installed: make bench-peers installs it", flush=True)
        self.about: dict[str, dict[str, str]] = {}
        self._there: dict[tuple[str, tuple[tuple[str, str], ...]], Worker] = {}

    def get(self, name: str, more: tuple[tuple[str, str], ...]) -> Worker:
        """A live process; one that has ended is started again."""
        key = (name, more if name == OWN[0] else ())
        found = self._there.get(key)
        if found is None or not found.alive:
            found = self._there[key] = Worker(RUNNERS[name], key[1])
            if found.about:
                self.about[name] = found.about
        return found

    def close(self) -> None:
        """End all of them."""
        for each in self._there.values():
            each.close()


def measure(name: str, workers: Workers, rounds: int, seconds: float) -> dict[str, Figure]:
    """The figures of one workload, by runner."""
    work = WORKLOADS[name]
    figures: dict[str, Figure] = {}
    ready: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = work.inputs()
        for key, value in inputs.items():
            np.save(Path(folder, key), value)
        with np.errstate(all="ignore"):
            np.save(Path(folder, "answer"), work.answer(inputs))
        del inputs
        for runner in workers.names:
            if work.only and runner not in work.only:
                continue
            worker = workers.get(runner, work.environment)
            answer = {"failed": worker.problem} if worker.problem else worker.ask(prepare=name, folder=folder)
            figures[runner] = answer
            if "first" in answer and answer["error"] > work.tolerance:
                figures[runner] = {"wrong": f"off by {answer['error']:.1e} of the largest element"}
            elif "first" in answer:
                ready[runner] = worker
    times: dict[str, list[float]] = {each: [] for each in ready}
    for _ in range(rounds):
        for runner, worker in list(ready.items()):
            time.sleep(0.05)  # threads that spin for a while after their work are still
            answer = worker.ask(run=name, seconds=seconds)
            if "times" in answer:
                times[runner] += answer["times"]
            else:
                figures[runner] = answer
                del ready[runner]
    for runner, worker in ready.items():
        figures[runner] = figure(times[runner], figures[runner]["first"], figures[runner]["error"])
        worker.ask(drop=name)
    return figures


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        named = [each for each in information.read_text().splitlines() if each.startswith("model name")]
        processor = named[0].split(":", 1)[1].strip() if named else processor
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit or "unknown",
        "processor": f"{processor}, {os.cpu_count()} threads",
        "system": platform.platform(),
        "python": platform.python_version(),
        "load before": f"{load:.2f}",
    }


def main(words: Sequence[str]) -> int:
    chosen = options(words)
    if chosen.make_peers:
        return make_peers()
    about, workers = machine(), Workers(chosen.runners)
    figures: dict[str, dict[str, Figure]] = {}
    try:
        for name in chosen.names:
            if name in WORKLOADS:
                figures[name] = measure(name, workers, chosen.rounds, chosen.seconds)
                told = ", ".join(f"{runner} {_told(each)}" for runner, each in figures[name].items())
                print(f"{WORKLOADS[name].title}: {told}", flush=True)
        about |= {f"{each}": versions for each, versions in workers.about.items()}
    finally:
        workers.close()
    extra = {}
    if "cold_start" in chosen.names:
        extra["cold start"] = cold_start(workers.names, 1 if chosen.quick else 5)
    if "compile" in chosen.names:
        extra["driver compile"] = compile_time()
    return write(chosen.results, about, figures, extra, judge=not chosen.quick)


def _told(each: Figure) -> str:
    return f"{each['median'] * 1e3:.2f} ms" if "median" in each else next(iter(each))


def write(
    folder: Path,
    about: dict[str, Any],
    figures: dict[str, dict[str, Figure]],
    extra: dict[str, Any],
    *,
    judge: bool = True,
) -> int:
    """The files of a run, and the table on the screen; 1 where a result is wrong or a goal is missed."""
    folder.mkdir(parents=True, exist_ok=True)
    found = lines(figures)
    text = markdown(found, figures, about)
    if extra:
        text += "\n## Starting\n" + "".join(f"- {name}: {each['text']}\n" for name, each in extra.items())
    kept = {"machine": about, "figures": figures, "starting": extra}
    (folder / "latest.json").write_text(
        json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (folder / "latest.md").write_text(text, encoding="utf-8")
    (folder / "latest.svg").write_text(svg(found), encoding="utf-8")
    print("\n" + text)
    print(f"written to {folder}")
    wrong = any("wrong" in each for row in figures.values() for name, each in row.items() if name in OWN)
    missed = [each.title for each in found if each.reached is False]
    missed += [name for name, each in extra.items() if not each["reached"]]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if (missed and judge) or wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
