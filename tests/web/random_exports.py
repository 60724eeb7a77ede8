"""Random programs as exports: their leaves become inputs, weights, state, constants and numbers, by chance.

In: seeds of tests/properties/writing/. Out: what is wrong with the outputs of the exported programs, run in
one process of Dawn, each for one variant of its plan. State is exchanged or turned round by each call, so
that every second call has the values that the first had.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.helpers import Array, unlimited_backlog, wide
from tests.properties.programs import Program, values_of
from tests.properties.running import wrong
from tests.properties.writing import write_program
from tests.web.exported import Call, run_exports
from webgrad import dtypes

__all__ = ["wrong_exports"]

ROLES = {"input": 0.4, "weight": 0.25, "state": 0.25, "constant": 0.1}
NUMBERS = {dtypes.float32: float, dtypes.int32: int}  # what a run-time number can be
SPLIT = 0.3  # how often there are two functions


@dataclass(frozen=True, slots=True)
class Trial:
    """A program to export, and what to call: each function twice."""

    program: Program
    functions: dict[str, Callable[..., Any]]
    examples: dict[str, dict[str, Any]]
    calls: list[Call]
    roots: dict[str, list[int]]  # the steps that each function gives


def wrong_exports(seeds: Sequence[int], folder: Path) -> list[str]:
    """A line for each program whose export gives something else than NumPy."""
    jobs: list[tuple[Path, str, Sequence[Call]]] = []
    trials: list[tuple[str, Trial]] = []
    texts: list[str] = []
    for seed in seeds:
        try:
            with unlimited_backlog():
                trial = _trial(seed)
                place = wg.export(trial.functions, trial.examples, folder / str(seed)).parent
        except Exception as error:
            texts.append(f"seed {seed}: {type(error).__name__}: {error}")
            continue
        variants = json.loads((place / "plan.json").read_text())["variants"]
        label = variants[seed % len(variants)]["label"]
        jobs.append((place, label, trial.calls))
        trials.append((f"seed {seed}, {label}", trial))
    for (label, trial), answers in zip(trials, _answers(jobs), strict=True):
        if text := answers if isinstance(answers, str) else _difference(trial, answers):
            texts.append(f"{label}: {text}")
    return texts


def _answers(jobs: Sequence[tuple[Path, str, Sequence[Call]]]) -> list[Any]:
    """What each job gave, or its error: one that fails ends the process, so the halves are tried apart."""
    try:
        return list(run_exports(jobs)) if jobs else []
    except Exception as error:
        if len(jobs) == 1:
            return [f"{type(error).__name__}: {error}"]
        middle = len(jobs) // 2
        return _answers(jobs[:middle]) + _answers(jobs[middle:])


def _trial(seed: int) -> Trial:
    program, random = write_program(seed), np.random.default_rng(seed)
    inputs: dict[int, Any] = {}
    weights: dict[int, Any] = {}
    state: dict[int, Any] = {}
    for at, step in enumerate(program.steps):
        if step.op == "scalar" and step.dtype in NUMBERS and random.random() < 0.5:
            inputs[at] = NUMBERS[step.dtype](step.data)
        elif step.op == "leaf":
            role = random.choice(list(ROLES), p=list(ROLES.values()))
            holder = {"input": inputs, "weight": weights, "state": state}.get(role, {})
            holder[at] = wg.asarray(step.data)
    wg.eval(*weights.values(), *state.values())
    pairs = _pairs(state, random)
    given = {at for at in state if random.random() < 0.3}  # as it was before the call
    wanted = sorted({*program.roots, *program.held, *given})
    middle = len(wanted) // 2 if len(wanted) > 1 and random.random() < SPLIT else 0
    parts = [wanted[:middle], wanted[middle:]] if middle else [wanted]
    early, turned = random.random(2) < 0.5
    roots = {f"part_{number}": part for number, part in enumerate(parts)}

    def function(part: list[int]) -> Callable[..., Any]:
        def run(**given: Any) -> Any:
            held = {**{int(name[1:]): each for name, each in given.items()}, **weights, **state}
            nodes = {at: each.node for at, each in held.items()}
            if early:
                _exchange(state, pairs, turned=turned)
            some = Program(program.steps, tuple(part))
            results = some.build(wg.default_device(), nodes)[0]
            if not early:
                _exchange(state, pairs, turned=turned)
            return {f"root_{at}": wg.Tensor(node) for at, node in zip(part, results, strict=True)}

        return run

    calls: list[Call] = [
        (name, {f"x{at}": _given(each) for at, each in inputs.items()}) for name in roots for _ in "12"
    ]
    examples = {f"x{at}": each for at, each in inputs.items()}
    functions = {name: function(part) for name, part in roots.items()}
    return Trial(program, functions, dict.fromkeys(roots, examples), calls, roots)


def _pairs(state: Mapping[int, Any], random: np.random.Generator) -> dict[int, int]:
    """Which state gets whose value: its own, or by chance that of another, which gets its."""
    pairs: dict[int, int] = {}
    for at, tensor in state.items():
        fitting = [
            other
            for other, found in state.items()
            if other not in pairs and (found.shape, found.dtype) == (tensor.shape, tensor.dtype)
        ]
        if at not in pairs:
            other = int(random.choice(fitting))
            pairs |= {at: other, other: at}
    return pairs


def _exchange(state: Mapping[int, Any], pairs: Mapping[int, int], *, turned: bool) -> None:
    """Give every state its partner's value, perhaps the last element first; twice is as before."""
    before = {at: wg.flip(each) if turned and each.ndim else each.detach() for at, each in state.items()}
    for at, tensor in state.items():
        tensor[...] = before[pairs[at]]


def _given(value: Any) -> Any:
    """An input as JavaScript takes it."""
    if not isinstance(value, wg.Tensor):
        return value
    array = value.numpy()
    plain = {"f": np.float32, "b": np.uint8}.get(value.dtype.kind)
    return array if plain is None else array.astype(plain)


def _difference(trial: Trial, answers: Sequence[Mapping[str, Array]]) -> str:
    values = values_of(trial.program)
    texts = []
    for (name, _), answer in zip(trial.calls[::2], answers[::2], strict=True):
        for at in trial.roots[name]:
            found = wide(answer[f"root_{at}"]).astype(values[at].array.dtype)
            texts.append(wrong(at, values[at], found))
    return "; ".join(text for text in texts if text)
