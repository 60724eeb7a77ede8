"""A model of one node, run: `run("Add", x, y)` gives its outputs as arrays.

Inputs are arrays, or None where one is left out; those in `known` are weights of the model, not inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from tests.onnx.models import loaded, model, node

__all__ = ["run", "run_one"]

OPSET = 22


def run(
    kind: str,
    *inputs: Any,
    outputs: int = 1,
    opset: int = OPSET,
    known: Collection[int] = (),
    device: str = "cpu",
    **attributes: Any,
) -> list[Any]:
    """The outputs; texts and types of few bits come as they are."""
    names = ["-" if each is None else f"x{at}" for at, each in enumerate(inputs)]
    wanted = [f"y{at}" for at in range(outputs)]
    given = {f"x{at}": each for at, each in enumerate(inputs) if each is not None and at not in known}
    weights = {f"x{at}": inputs[at] for at in known}
    nodes = [node(kind, " ".join(names), " ".join(wanted), **attributes)]
    types: dict[str, Any] = {
        name: ("string" if each.dtype == object else each.dtype.name, None) for name, each in given.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        m = loaded(Path(folder), model(nodes, types, dict.fromkeys(wanted), weights, opset), device)
        found = list(m(**given).values())
    return [each.numpy() if isinstance(each, wg.Tensor) else np.asarray(each) for each in found]


def run_one(kind: str, *inputs: Any, **settings: Any) -> Any:
    """The only output of an operator."""
    return run(kind, *inputs, **settings)[0]
