"""What came of torch's samples, for the end of `make test-torch` and for the file of counts.

In: a Tally for each entry. Out: lines of counts; build/opinfo.txt with what is absent, refused or different.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from tests.torch.checking import torch
from tests.torch.samples import Tally

__all__ = ["COUNTED", "FLOATS", "MOST", "MOST_OF_MODULES", "add", "counts", "lines", "write"]

MOST = 8  # samples of a function in one dtype
MOST_OF_MODULES = 5  # uses of a module in one dtype, in training and out of it
FLOATS = (torch.float32, torch.float64, torch.float16)
COUNTED = Path(__file__).parent / "counts.json"
REPORT = Path(__file__).parents[2] / "build" / "opinfo.txt"
TALLIES: dict[str, dict[str, Tally]] = defaultdict(dict)


def counts() -> dict[str, dict[str, list[int]]]:
    """How many samples and gradients of each entry were compared when the file was written."""
    read: dict[str, dict[str, list[int]]] = json.loads(COUNTED.read_text(encoding="utf-8"))
    return read


def add(kind: str, name: str, tally: Tally) -> None:
    """Note what came of an entry."""
    TALLIES[kind][name] = tally


def lines() -> list[str]:
    """A line of counts for each kind of entries."""
    made = []
    for kind, tallies in TALLIES.items():
        whole = Tally()
        for tally in tallies.values():
            whole.add(tally)
        made.append(
            f"{kind}: {len(tallies)} entries, {whole.compared} samples compared, {whole.gradients} with "
            f"gradients, {whole.refused.total()} refused, {whole.different.total()} different on purpose, "
            f"{len(whole.wrong)} wrong"
        )
    return made


def write(absent: dict[str, list[str]]) -> Path:
    """Write what is absent, refused and different, and say where."""
    text = [f"absent {kind}: {len(names)}\n    " + " ".join(names) for kind, names in absent.items()]
    for kind, tallies in TALLIES.items():
        text.append(f"\n{kind}: refused (R), different on purpose (D), wrong (W)")
        for name, tally in tallies.items():
            text += [f"{name}: R {count} {message}" for message, count in tally.refused.items()]
            text += [f"{name}: D {count} {why}" for why, count in tally.different.items()]
            text += [f"{name}: W {line}" for line in tally.wrong]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(text) + "\n", encoding="utf-8")
    return REPORT
