"""Exports run in node with Dawn: many folders in a process, since starting it takes most of the time.

In: folders and the calls to make in each. Out: the outputs of every call, as NumPy arrays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scripts.adapter import LANES
from tests.web.dawn import run_text
from webgrad.web import bundle

__all__ = ["Call", "run_exports"]

RUNNER = Path(bundle.__file__).parents[1] / "runtime" / "runner.js"
Call = tuple[str, Mapping[str, Any]]  # function, inputs; the function "reset" sets state back
Job = tuple[Path, str, Sequence[Call]]  # a folder, the variant's label or ""

TEXT = """
import { load, openDevice } from "RUNNER";

async function calls(device, { plan, variant, calls }) {
  const model = await load(plan, { device, variant: variant ?? undefined });
  const answers = [];
  for (const [name, inputs] of calls) {
    if (name === "reset") await model.reset();
    else answers.push(await model.run(inputs, name));
  }
  return answers;
}

async function main(jobs) {
  const device = await openDevice();
  const results = [];
  for (const job of jobs) results.push(await calls(device, job));
  device.close();
  return results;
}

export { main };
"""


def run_exports(jobs: Sequence[Job]) -> list[list[Any]]:
    """The outputs of each job's calls, each on an adapter with the subgroups that its variant is for."""
    needed = [_lanes(folder, variant) for folder, variant, _ in jobs]
    found: dict[int, list[Any]] = {}
    for lanes in dict.fromkeys(needed):
        numbers = [number for number, each in enumerate(needed) if each == lanes]
        given = [_given(jobs[number]) for number in numbers]
        results = run_text(TEXT.replace("RUNNER", RUNNER.as_uri()), given, lanes=lanes)
        found |= dict(zip(numbers, results, strict=True))
    return [[_arrays(answer) for answer in found[number]] for number in range(len(jobs))]


def _given(job: Job) -> dict[str, Any]:
    folder, variant, calls = job
    return {
        "plan": (folder / "plan.json").resolve().as_uri(),
        "variant": variant or None,
        "calls": [[name, dict(inputs)] for name, inputs in calls],
    }


def _lanes(folder: Path, variant: str) -> int:
    variants = json.loads((folder / "plan.json").read_text())["variants"]
    needs: dict[str, Any] = next((each["needs"] for each in variants if each["label"] == variant), {})
    return int(needs.get("subgroupSize", LANES))


def _arrays(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(each["data"]).reshape(each["shape"]) for name, each in answer.items()}
