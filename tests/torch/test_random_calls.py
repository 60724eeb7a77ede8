"""Random programs over torch's interface give with `webgrad.torch` the dtypes, shapes and values of torch.

What torch refuses may have an answer here; what has one there may only be refused for a reason.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import webgrad.torch as ours
from tests.torch.checking import torch
from tests.torch.random_calls import run, write_program

EACH = 100  # programs of one test

# What is refused here and not by torch: what matches the error → why
REFUSED = {
    "of an expanded tensor": "expand repeats elements, of which one write would be several",
    "only one ellipsis": "as in NumPy and the array API",
    "asarray: .* does not fit uint8": "a number that a dtype does not hold is a mistake where it is made",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 1500, EACH))
def test_random_programs(first: int) -> None:
    wrong = [text for seed in range(first, first + EACH) if (text := difference(seed))]
    assert not wrong, "\n\n".join(wrong)


def difference(seed: int) -> str:
    """A program that does not give what torch does, and how; nothing, if all is well."""
    program = write_program(seed)
    their_errors, theirs = run(program, torch)
    our_errors, found = run(program, ours)
    for line, theirs_said, ours_said in zip(program.lines, their_errors, our_errors, strict=True):
        if ours_said and not theirs_said:
            known = any(re.search(each, ours_said) for each in REFUSED)
            return "" if known else f"seed {seed}\n{program}\n{line}: {ours_said}"
        if theirs_said and not ours_said:
            return ""  # from here on the programs differ
    for at, (a, b) in enumerate(zip(found, theirs, strict=True)):
        if why := _unlike(a, b):
            if b.dtype in (torch.uint8, torch.int32, torch.int64) and any(map(_has_nan, theirs)):
                return ""  # what NaN and infinities are as integers is the processor's
            return f"seed {seed}\n{program}\nv{at}: {why}"
    return ""


def _has_nan(x: torch.Tensor) -> bool:
    return bool(x.is_floating_point() and not x.isfinite().all())


def _unlike(a: object, b: object) -> str:
    """How a value of ours is not torch's."""
    names = [str(each.dtype).rpartition(".")[2] for each in (a, b)]  # type: ignore[attr-defined]
    if names[0] != names[1]:
        return f"{names[0]}, torch has {names[1]}"
    x, y = (
        each.detach().to(library.float64).numpy()  # type: ignore[attr-defined]
        for each, library in ((a, ours), (b, torch))
    )
    near = 2e-2 if names[0] == "float16" else 1e-4
    if x.shape != y.shape:
        return f"shape {x.shape}, torch has {y.shape}"
    return "" if np.allclose(x, y, rtol=near, atol=1e-5, equal_nan=True) else f"{x}, torch has {y}"
