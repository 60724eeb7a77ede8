"""`webgrad check model.onnx`: whether every device gives what the cpu gives, on inputs given or random.

In: the options of `webgrad check`. Out: a line for each output and device; where one differs, the ops of the
model kernel by kernel. Operators that webgrad does not have are told of when the model is loaded.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..tools.checking.check import check
from .onnx_models import load, random_inputs
from .run import array_of
from .terminal import clean_line
from .text import encodable

__all__ = ["Difference", "check_onnx", "differences"]

MOST = 1e-3  # that a number may be off, of the largest in its output


@dataclass(frozen=True, slots=True)
class Difference:
    """How far an output is from the one that it is compared with."""

    output: str
    what: str  # type and shape
    largest: float  # difference, as a share of the largest number; inf where types or shapes differ

    @property
    def ok(self) -> bool:
        """Whether rounding may do that much."""
        return self.largest <= MOST

    def __str__(self) -> str:
        told = f"{self.output}: {self.what}, off by {self.largest:.1e} at most, of its largest number"
        return told if self.ok else f"{told}  ABOVE {MOST}"


def check_onnx(options: Any) -> int:
    """Run a model on the cpu and on other devices; 0 where they agree, 1 where they do not."""
    reference = load(options.what, "cpu")
    given = random_inputs(reference, options)
    wanted = {name: array_of(value) for name, value in reference(**given).items()}
    say: Callable[[str], None] = _say if not options.json else lambda line: None
    say(_summary(reference, given))
    rows = []
    for device in _devices(options.device):
        model = load(options.what, device)
        found = {name: array_of(value) for name, value in model(**given).items()}
        every = differences(found, wanted)
        for each in every:
            say(f"{device}: {each}")
        is_ok = all(each.ok for each in every)
        if not is_ok:
            say(str(check(model, *given.values(), device=device)))
        rows.append({"device": device, "ok": is_ok, "outputs": [asdict(each) for each in every]})
    if options.json:
        print(json.dumps({"model": options.what, "ok": all(row["ok"] for row in rows), "devices": rows}))
    if not rows:
        say("there is no other device here: nothing was compared")
    return 0 if all(row["ok"] for row in rows) else 1


def _say(line: str) -> None:
    shown = "\n".join(each if each.isprintable() else clean_line(each) for each in line.split("\n"))
    print(encodable(shown, sys.stdout.encoding or "ascii"), flush=True)


def _devices(wanted: str | None) -> list[str]:
    if wanted is not None:
        return [wg.open_device(wanted).name]
    return [each.device for each in wg.devices() if each.type != "cpu" or each.software]


def _summary(model: wg.onnx.Model, given: Mapping[str, Array]) -> str:
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in given.items())
    waits = f"; it waits for {len(model.waits)} values: {', '.join(model.waits[:4])}" if model.waits else ""
    nodes = len(model.contents.graph.nodes)
    return f"cpu: all operators of {nodes:,} nodes are known and run on {shapes or 'no inputs'}{waits}"


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[Difference]:
    """Each output held against the one of the same name."""
    return [Difference(name, _kind(value), _largest(found[name], value)) for name, value in wanted.items()]


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"{len(value)} values" if isinstance(value, Sequence) else "nothing"


def _largest(found: Any, wanted: Any) -> float:
    """The largest difference as a share of the largest finite number."""
    if isinstance(wanted, list):
        if len(found) != len(wanted):
            return math.inf
        return max((_largest(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)
    if wanted is None or found is None:
        return 0.0 if found is wanted else math.inf
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return math.inf
    if found.dtype.kind not in "fiuV":
        return 0.0 if (found == wanted).all() else math.inf
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    is_finite = np.isfinite(b)
    if (
        not np.array_equal(a[~is_finite], b[~is_finite], equal_nan=True)
        or not np.isfinite(a[is_finite]).all()
    ):
        return math.inf
    off = np.abs(a[is_finite] - b[is_finite]).max(initial=0.0)
    scale = np.abs(b[is_finite]).max(initial=0.0)
    return float(off / scale) if scale else float(off)
