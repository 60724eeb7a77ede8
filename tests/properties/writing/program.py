"""Writing a program: moves of the game by chance, then what of it is wanted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.properties.programs import Program, needed
from tests.properties.writing.elements import binary, cast, compare, unary, where
from tests.properties.writing.folds import matmul, reduce, row_pattern, scan
from tests.properties.writing.movement import concat, move, roll, take
from tests.properties.writing.patterns import (
    between_transposes,
    complex_pairs,
    in_order,
    one_hot,
    scatter,
    transform,
)
from tests.properties.writing.writer import Refused, Writer

__all__ = ["write_program"]


MOVES: dict[Callable[[Writer], object], float] = {
    unary: 4,
    binary: 6,
    compare: 1,
    where: 1,
    cast: 1,
    reduce: 3,
    move: 8,
    take: 1,
    concat: 1,
    scan: 0.5,
    matmul: 1.5,
    row_pattern: 2,
    between_transposes: 5,
    roll: 0.5,
    one_hot: 0.5,
    in_order: 0.4,
    scatter: 0.4,
    complex_pairs: 1,
    transform: 1,
}


def write_program(seed: int, *, small: bool = False) -> Program:
    """A program of about 3 to 30 steps, with one to four roots; a small one has up to 6, and nothing long."""
    w = Writer(seed, 0.0 if small else 0.06)
    for _ in range(int(w.random.integers(1, 4))):
        w.leaf(w.shape())
    moves, weights = list(MOVES), np.array(list(MOVES.values()))
    wanted = int(w.random.integers(2, 7) if small else w.random.integers(3, 31))
    for _ in range(200):
        if sum(bool(step.inputs) for step in w.steps) >= wanted:
            break
        try:
            moves[w.random.choice(len(moves), p=weights / weights.sum())](w)
        except Refused:
            continue
    made = [at for at, step in enumerate(w.steps) if step.inputs]
    if not made:
        return write_program(seed + 1_000_003, small=small)
    used = {each for step in w.steps for each in step.inputs}
    ends = [at for at in made if at not in used]
    roots = {made[-1], *[w.one(ends if w.chance(0.7) else made) for _ in range(w.random.integers(0, 4))]}
    held = {w.one(made) for _ in range(w.random.integers(0, 3))} if w.chance(0.4) else set()
    return needed(Program(tuple(w.steps), tuple(sorted(roots)), tuple(sorted(held - roots))))
