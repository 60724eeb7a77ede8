"""Figures as tables: medians, ratios to the best peer, and whether goals are reached.

In: the times of every runner for every workload. Out: `Line`s, and Markdown of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runners import RUNNERS
from workloads import WORKLOADS, Goal

__all__ = ["Figure", "Line", "figure", "lines", "markdown"]

OURS, CPU, PEER = "webgrad webgpu:0", "webgrad cpu", "torch"
Figure = dict[str, Any]  # of one runner and workload: median, min, runs; or missing, failed, wrong
Figures = Mapping[str, Mapping[str, Figure]]  # workload → runner → figure


@dataclass(frozen=True)
class Line:
    """One goal: our time, what it is compared with, how many times as quick we are, and what is asked."""

    workload: str
    title: str
    ours: float | None  # seconds
    other: str
    theirs: float | None
    ratio: float | None
    goal: str
    reached: bool | None  # None: there is nothing to compare with


def figure(times: Sequence[float], first: float, error: float) -> Figure:
    """What is kept of some runs."""
    return {
        "median": statistics.median(times),
        "min": min(times),
        "runs": len(times),
        "first": first,
        "error": error,
    }


def lines(figures: Figures) -> list[Line]:
    """A line for each workload that was measured, and one more where the cpu has a goal of its own."""
    found: list[Line] = []
    for name, row in figures.items():
        work = WORKLOADS[name]
        if OURS in row and not work.only:
            found.append(_webgpu(name, work.title, work.goal, row, figures))
    for name, row in figures.items():
        work = WORKLOADS[name]
        if CPU in row and not work.only:
            found.append(_cpu(name, f"cpu: {work.title}", work.goal, row))
    return found


def _median(row: Mapping[str, Figure], runner: str) -> float | None:
    return row.get(runner, {}).get("median")


def _webgpu(name: str, title: str, goal: Goal, row: Mapping[str, Figure], figures: Figures) -> Line:
    ours = _median(row, OURS)
    if goal.against is not None:
        other, most = goal.against
        theirs = _median(figures.get(other, {}), OURS)
        ratio = theirs / ours if ours and theirs else None
        reached = None if ratio is None else ratio >= 1 / most
        return Line(
            name, title, ours, WORKLOADS[other].title, theirs, ratio, f"≤ {most:g} × its time", reached
        )
    peers = {
        each: time
        for each in row
        if each != OURS and RUNNERS[each].webgpu and (time := _median(row, each)) is not None
    }
    best = min(peers, key=peers.__getitem__, default="")
    theirs = peers.get(best)
    ratio = theirs / ours if ours and theirs else None
    if goal.milliseconds is not None:
        reached = None if ours is None else ours * 1e3 <= goal.milliseconds
        return Line(name, title, ours, best, theirs, ratio, f"≤ {goal.milliseconds:g} ms", reached)
    if goal.ratio is None:
        return Line(name, title, ours, best, theirs, ratio, "", None)
    reached = None if ratio is None else ratio >= goal.ratio
    return Line(name, title, ours, best, theirs, ratio, f"≥ {goal.ratio:g} ×", reached)


def _cpu(name: str, title: str, goal: Goal, row: Mapping[str, Figure]) -> Line:
    """Against torch; and never slower than plain NumPy, by more than a tenth that is noise."""
    ours, theirs, plain = _median(row, CPU), _median(row, PEER), _median(row, "numpy")
    ratio = theirs / ours if ours and theirs else None
    parts = []
    checks: list[bool] = []
    if goal.cpu is not None:
        parts.append("faster" if goal.cpu == 1 else f"≤ {goal.cpu:g} × its time")
        if ratio is not None:
            checks.append(ratio >= 1 / goal.cpu)
    if ours and plain:
        parts.append(f"NumPy {plain / ours:.2f} ×")
        checks.append(plain / ours >= 0.9)
    return Line(name, title, ours, PEER, theirs, ratio, ", ".join(parts), all(checks) if checks else None)


# Text


def shown(seconds: float | None) -> str:
    """Milliseconds with three digits that count."""
    if seconds is None:
        return "–"
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def markdown(every: Sequence[Line], figures: Figures, machine: Mapping[str, Any]) -> str:
    """The report: the machine, the goals, then all medians."""
    about = [f"- {key}: {value}" for key, value in machine.items() if not isinstance(value, Mapping)]
    about += [
        f"- {key}: {', '.join(str(each) for each in value.values() if each)}"
        for key, value in machine.items()
        if isinstance(value, Mapping)
    ]
    goals = [
        "| workload | webgrad, ms | compared with | ms | ratio | goal | |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in every:
        ratio = "–" if each.ratio is None else f"{each.ratio:.2f} ×"
        mark = {True: "reached", False: "**missed**", None: ""}[each.reached]
        cells = [each.title, shown(each.ours), each.other or "–", shown(each.theirs), ratio, each.goal, mark]
        goals.append("| " + " | ".join(cells) + " |")
    runners = [each for each in RUNNERS if any(each in row for row in figures.values())]
    medians = [
        "| median ms (least) | " + " | ".join(runners) + " |",
        "|---|" + "---|" * len(runners),
    ]
    for name, row in figures.items():
        cells = [WORKLOADS[name].title, *(_cell(row.get(each)) for each in runners)]
        medians.append("| " + " | ".join(cells) + " |")
    notes = [
        f"- {runner}, {WORKLOADS[name].title}: {word}, {each[word]}"
        for name, row in figures.items()
        for runner, each in row.items()
        for word in ("missing", "failed", "wrong")
        if word in each
    ]
    parts = ["# Benchmark results", *about, "", "## Goals", *goals, "", "## All medians", *medians]
    return "\n".join([*parts, *(["", "## Without a figure", *notes] if notes else [])]) + "\n"


def _cell(found: Figure | None) -> str:
    if not found:
        return ""
    if "median" in found:
        return f"{shown(found['median'])} ({shown(found['min'])})"
    return next(word for word in ("missing", "failed", "wrong") if word in found)
