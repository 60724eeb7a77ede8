"""torch's own table of functions, OpInfo, run through `webgrad.torch` as it is written.

In: an entry of `op_db`. Out: a Tally over some of its samples, chosen in the same way in every run.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from tests.torch.checking import torch
from tests.torch.exclusions import (
    CHANCES,
    DIFFERENT,
    HERMITIAN,
    INVARIANTS,
    RANDOM,
    ROUNDING,
    THEIRS,
    TRIANGULAR,
)
from tests.torch.namespace import found
from tests.torch.samples import Call, Tally, compare, raised, seeded, title

pytest.importorskip("expecttest", reason="torch's tables import expecttest: `make test-torch` installs it")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

__all__ = [
    "DTYPES",
    "OPS",
    "PASSING",
    "chosen",
    "examined",
    "excused",
    "function",
    "misuses",
    "passing",
    "verdict",
]

PASSING = (torch.float32, torch.float16, torch.complex64, torch.int32, torch.bool)  # what an entry passes by
DTYPES = (*PASSING, torch.float64, torch.int64)


def titled(op: Any) -> str:
    """The name of an entry, with its variant's."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


OPS: dict[str, Any] = {titled(op): op for op in op_db}


def passing(name: str) -> tuple[Any, ...]:
    """The dtypes by which an entry passes: those of all entries, or what an entry has instead."""
    return PASSING if any(each in OPS[name].dtypes for each in PASSING) else DTYPES


def function(name: str) -> Any:
    """The function of `webgrad.torch` for an entry, or None."""
    return found(OPS[name])


def chained(last: Any, first: Any) -> Any:
    """A function of another one's result."""
    return lambda *args, **kwargs: last(first(*args, **kwargs))


def hermitian(function: Any) -> Any:
    """A function of the sum of a matrix and its adjoint."""
    return lambda x, *args, **kwargs: function(x + x.mH, *args, **kwargs)


def triangular(function: Any, place: int) -> Any:
    """A function of one triangle of an argument."""

    def call(*args: Any, upper: bool = False, **kwargs: Any) -> Any:
        x = args[place]
        given = (*args[:place], x.triu() if upper else x.tril(), *args[place + 1 :])
        return function(*given, upper=upper, **kwargs)

    return call


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


def called(name: str, sample: Any, device: str) -> Call:
    """A sample of an entry as a call of both libraries."""
    op = OPS[name]
    ours, theirs = function(name), THEIRS.get(name, op.op)
    if name in HERMITIAN:
        ours, theirs = hermitian(ours), hermitian(theirs)
    if name in TRIANGULAR:
        ours, theirs = triangular(ours, TRIANGULAR[name]), triangular(theirs, TRIANGULAR[name])
    if name in INVARIANTS:
        ours, theirs = chained(INVARIANTS[name], ours), chained(INVARIANTS[name], theirs)
    rounding, _ = ROUNDING.get(name, (1.0, ""))
    arguments = (sample.input, *sample.args)
    by_chance = name in RANDOM or any(sample.kwargs.get(each) for each in CHANCES)
    return Call(name, ours, theirs, arguments, sample.kwargs, not by_chance, device, rounding)


def examined(name: str, most: int, dtypes: tuple[Any, ...] = DTYPES, device: str = "cpu") -> Tally:
    """What comes of an entry's samples, some of each dtype."""
    op, tally = OPS[name], Tally()
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
                tally.add(excused(compare(called(name, sample, device))))
    return tally


def verdict(name: str, tally: Tally) -> str:
    """Why an entry does not pass, in a line; nothing where it does."""
    if function(name) is None:
        return "absent"
    if tally.wrong:
        return f"wrong ({len(tally.wrong)}) {tally.wrong[0]}"
    if tally.refused:
        return f"refused ({tally.refused.total()}) {next(iter(tally.refused))}"
    return "" if tally.compared or tally.different else "nothing to compare"


def misuses(name: str, device: str = "cpu") -> list[str]:
    """Calls that torch refuses and `webgrad.torch` takes, or refuses with an error of another class."""
    op, lines = OPS[name], []
    if op.error_inputs_func is None or function(name) is None:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in op.error_inputs("cpu"):
            call = called(name, given.sample_input, device)
            error = raised(call)
            if error is None or not isinstance(error, given.error_type):
                lines.append(f"{title(call)}: {error!r:.90}, torch {given.error_type.__name__}")
    return lines
