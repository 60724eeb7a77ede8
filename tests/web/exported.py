"""Exports run in node with Dawn: several folders in one process, since starting it takes most of the time.

In: folders and the calls to make in each. Out: the outputs of every call, as NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.web.dawn import run_text
from webgrad.web import bundle

__all__ = ["Call", "run_exports"]

RUNNER = Path(bundle.__file__).parents[1] / "runtime" / "runner.js"
Call = tuple[str, Mapping[str, Any]]  # function, inputs; the function "reset" sets state back

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


def run_exports(jobs: Sequence[tuple[Path, str, Sequence[Call]]], **options: Any) -> list[list[Any]]:
    """The outputs of each job's calls: (folder, the variant's label or "", calls)."""
    given = [
        {
            "plan": (folder / "plan.json").resolve().as_uri(),
            "variant": variant or None,
            "calls": [[name, dict(inputs)] for name, inputs in calls],
        }
        for folder, variant, calls in jobs
    ]
    found = run_text(TEXT.replace("RUNNER", RUNNER.as_uri()), given, **options)
    return [[_arrays(answer) for answer in answers] for answers in found]


def _arrays(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(each["data"]).reshape(each["shape"]) for name, each in answer.items()}
