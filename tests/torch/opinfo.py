"""torch's own tables of tests, OpInfo and ModuleInfo, run through webgrad.

In: an entry of `op_db`. Out: a Tally over some of its samples, chosen in the same way in every run.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from tests.torch.checking import torch
from tests.torch.op_names import ABSENT_VALUES, DIFFERENT, INVARIANTS, ROUNDING, THEIRS, found
from tests.torch.samples import Call, Tally, compare, seeded

pytest.importorskip("expecttest", reason="torch's tables import expecttest: `make test-torch` installs it")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

__all__ = ["DTYPES", "OPS", "examined"]

DTYPES = (torch.float32, torch.float64, torch.float16, torch.complex64, torch.int64, torch.bool)


def titled(op: Any) -> str:
    """The name of an entry, with its variant's."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


OPS: dict[str, Any] = {titled(op): op for op in op_db}


def function(name: str) -> Any:
    """webgrad's function for an entry, or None."""
    op = OPS[name]
    return found(name, op.name, *(each.name for each in op.aliases))


def chained(last: Any, first: Any) -> Any:
    """A function of another one's result."""
    return lambda *args, **kwargs: last(first(*args, **kwargs))


def chosen(samples: list[Any], most: int) -> list[Any]:
    """At most so many samples, evenly spread."""
    if len(samples) <= most:
        return samples
    return [samples[at * len(samples) // most] for at in range(most)]


def excused(tally: Tally) -> Tally:
    """The same with deliberate differences counted as such."""
    for line in list(tally.wrong):
        if why := next((why for pattern, why in DIFFERENT.items() if re.search(pattern, line)), None):
            tally.wrong.remove(line)
            tally.different[why] += 1
    return tally


def examined(name: str, most: int, dtypes: tuple[Any, ...] = DTYPES, device: str = "cpu") -> Tally:
    """What comes of an entry's samples, some of each dtype."""
    op, tally = OPS[name], Tally()
    ours, theirs = function(name), THEIRS.get(name, op.op)
    rounding, _ = ROUNDING.get(name, (1.0, ""))
    if name in INVARIANTS:
        ours, theirs = chained(INVARIANTS[name], ours), chained(INVARIANTS[name], theirs)
    for dtype in dtypes:
        if dtype not in op.dtypes:
            continue
        seeded(f"{name} {dtype}")
        floats = dtype.is_floating_point or dtype.is_complex
        learnt = op.supports_autograd and floats and dtype in op.backward_dtypes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=learnt))
            for sample in chosen(samples, most):
                arguments = (sample.input, *sample.args)
                call = Call(
                    name, ours, theirs, arguments, sample.kwargs, name not in ABSENT_VALUES, device, rounding
                )
                tally.add(excused(compare(call)))
    return tally
