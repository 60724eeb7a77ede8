"""Write docs/one-matmul.md, every stage's output for `relu(x @ w + b)`: `python -m scripts.one_matmul`.

In: the compiler, and a written record of a device, so that no GPU is needed. Out: the page. A test fails
where the page is not what this would write.
"""

from __future__ import annotations

import string
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import webgrad as wg
from scripts.system import ROOT
from webgrad.device_profile import DeviceProfile
from webgrad.evaluate.evaluate import clear_plans, plans
from webgrad.graph.snapshot import Snapshot, Walk, snapshot, walk
from webgrad.kernels.launch import Launch
from webgrad.lower.compile import lower_bundle
from webgrad.lower.emit import emit
from webgrad.lower.ir import Kernel
from webgrad.lower.passes import PASSES
from webgrad.schedule.plan import Group, Schedule
from webgrad.schedule.schedule import schedule

__all__ = ["PAGE", "main", "page"]

PAGE = ROOT / "docs" / "one-matmul.md"
PROFILE = DeviceProfile("software", frozenset({"subgroups"}), subgroup_size=8, max_storage_buffers=48)
ROWS, DEPTH, COLUMNS = 64, 256, 128
CODES = {"f32": "<f", "u32": "<I", "i32": "<i"}

TEXT = """\
# One matmul, stage by stage

<!-- made by `python -m scripts.one_matmul` -->

What each stage makes of `relu(x @ w + b)`, as it really comes out; [architecture.md](architecture.md) says
why. The device is a written record of one: $device.

## The user's code

Every line but the last only builds nodes: shapes and dtypes are inferred and checked, nothing is computed.
`numpy()` needs the value, so the graph under `y` is walked and goes through the stages below.

```python
import numpy as np
import webgrad as wg

x = wg.asarray(np.ones(($rows, $depth), np.float32))
w = wg.asarray(np.ones(($depth, $columns), np.float32))
b = wg.asarray(np.ones($columns, np.float32))
y = wg.relu(x @ w + b)
print(y.numpy().max())  # $largest
```

## The graph

`walk` numbers the nodes and gives the structure's key; `Snapshot` is the graph as numbers. relu is
`clamp_min(0, …)`, a maximum whose gradient at a tie goes to the 0. The 0 is a scalar: a run-time number, of
which only the type is part of the structure.
The bias is not expanded: maps broadcast by themselves.

```
$graph
```

## The schedule

Which values are stored, and what is computed inside the kernels that store them. A contraction takes the maps
after it as its epilogue, since they have its shape and nobody else wants its result. So there is one group,
one launch, and neither the product nor the sum ever lies in memory.

```
$groups
```

## The kernel, before the passes

Matrix products are a hand-written template with three holes: what an element of A is, what one of B is, and
what becomes of a sum. Pulling fills them: `hole_c` asks for the result at an index, and finds the maximum,
the bias and the template's sum on the way back. Where the four lanes of an index lie side by side, the load
is one of four. `%4` is still a value of the graph; `v4` is a value of the kernel, and keeps this name in the
WGSL below. Numbers, arguments and scalars (`s0`) have no name of their own: they stand where they are used.

```
$lowered
```

## The kernel, after the passes

$counts.

Any choice of passes gives the same results.

```
$passed
```

## The WGSL

The template's text with the holes as functions before it, and of the library only the functions that are
called (compilers assume that there are no NaN, so a maximum looks at bits). Every size is a parameter, `p.p0`
and on; `p.s0` is the run-time 0. `b0` … `b3` are the bindings: the launch below says which value each holds.
The text is the key under which its pipeline is kept.

```wgsl
$wgsl
```

## The launch

What is recorded in the queue: pipeline, grid, parameters, buffers. Only the scalars are packed for each call;
the other parameters are ready-made bytes of the plan.

```
$launch
```

## The same again

Other values in the same structure give the same key, and the key finds the finished plan: nothing is
scheduled, lowered or written, and no pipeline is looked for. What is left is walking the graph, packing the
scalars and recording one command. Another length is another plan, but of the same text, and so the same
pipeline, unless it changes what the text leaves out: whether sizes are multiples of four, say.

```
$again
```
"""


def example(rows: int = ROWS, value: float = 0.0) -> wg.Tensor:
    """The value of the page, over arrays of one number."""
    shapes = ((rows, DEPTH), (DEPTH, COLUMNS), (COLUMNS,))
    x, w, b = (wg.asarray(np.full(shape, value, np.float32), device="cpu") for shape in shapes)
    return wg.relu(x @ w + b)


class Stages:
    """The records that stand between the stages, for one value."""

    def __init__(self, value: wg.Tensor) -> None:
        roots = [value.node]
        self.walked: Walk = walk(roots)
        self.graph: Snapshot = snapshot(self.walked, roots)
        self.graph_text = repr(self.graph)  # before scheduling, which may rewrite it
        self.schedule: Schedule = schedule(self.graph, PROFILE)
        (bundle,) = self.schedule.bundles
        kernel = lower_bundle(self.graph, [self.schedule.groups[each] for each in bundle], PROFILE)
        self.kernels: list[Kernel] = [kernel]
        for each in PASSES:
            self.kernels.append(each(self.kernels[-1]))
        self.emitted: Launch = emit(self.kernels[-1], PROFILE)


def page() -> str:
    """The page as it should be."""
    stages = Stages(example())
    return string.Template(TEXT).substitute(
        device=f"a {PROFILE.kind} adapter with subgroups of {PROFILE.subgroup_size}",
        rows=ROWS,
        depth=DEPTH,
        columns=COLUMNS,
        largest=float(DEPTH + 1),
        graph=stages.graph_text,
        groups="\n".join(_groups(stages)),
        lowered=stages.kernels[0],
        counts=_counts(stages),
        passed=stages.kernels[-1],
        wgsl=stages.emitted.program.text.rstrip("\n"),
        launch="\n".join(_launch(stages)),
        again="\n".join(_again(stages)),
    )


def _groups(stages: Stages) -> Iterator[str]:
    for number, group in enumerate(stages.schedule.groups):
        yield f"group {number}: {group.kind}" + (f" around %{group.center}" if group.center >= 0 else "")
        for title, numbers in _members(group):
            values = (f"%{each} {stages.graph.sigs[each]!r}" for each in numbers)
            yield f"  {title:8} " + ", ".join(values)
    yield f"launches: {', '.join(map(str, stages.schedule.bundles))}"


def _members(group: Group) -> list[tuple[str, tuple[int, ...]]]:
    members = [
        ("inside", group.inside),
        ("reads", group.reads),
        ("scalars", group.scalars),
        ("outputs", group.outputs),
    ]
    return [each for each in members if each[1]]


def _counts(stages: Stages) -> str:
    """How many instructions each pass leaves."""
    first, *others = (
        len(kernel.body) + sum(len(hole.body) for hole in kernel.holes) for kernel in stages.kernels
    )
    left = ", ".join(f"`{each.__name__}` {count}" for each, count in zip(PASSES, others, strict=True))
    return f"{first} instructions come in. Each pass leaves:\n{left}"


def _launch(stages: Stages) -> Iterator[str]:
    emitted = stages.emitted
    yield f"workgroups  {' × '.join(map(str, emitted.grid))}, of {emitted.kernel.workgroup} threads"
    yield f"needs       {', '.join(sorted(emitted.program.requires)) or 'nothing'}"
    numbers = [stages.walked.nodes[each].storage for each in emitted.scalars]
    data = emitted.front.pack(*numbers) + emitted.params
    for field in emitted.program.params:
        value: Any = struct.unpack_from(CODES[field.type], data, field.offset)[0]
        yield f"parameter   {field.name}: {field.type} = {value}"
    for at, (binding, bound) in enumerate(zip(emitted.program.bindings, emitted.bound, strict=True)):
        sig = stages.graph.sigs[bound.value]
        yield f"binding {at}   {binding.name}: %{bound.value}, {binding.access}, {sig.nbytes:,} bytes"


def _again(stages: Stages) -> Iterator[str]:
    clear_plans()
    before = plans()
    wg.eval(example())
    first = plans() - before
    wg.eval(example(value=2.0))
    more = plans() - before - first
    second = Stages(example(value=2.0))
    short, long = Stages(example(100)), Stages(example(150))
    facts = {
        "key of other values is equal": second.walked.key == stages.walked.key,
        "key of 100 rows is that of 150": short.walked.key == long.walked.key,
        "text of 100 rows is that of 150": short.emitted.program.text == long.emitted.program.text,
    }
    yield f"{'plans made by two calls':34}{first}, then {more}"
    yield from (f"{what:34}{'yes' if fact else 'no'}" for what, fact in facts.items())


def main() -> int:
    """The command line."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
