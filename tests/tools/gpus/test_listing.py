"""The hot loop of a listing: innermost, most multiply-adds, else most instructions."""

from __future__ import annotations

import pytest

from webgrad.tools.gpus.listing import Instruction, count_kinds, hot_loop

ADD = Instruction("vector")
FUSED = Instruction("vector", 1)
DUAL = Instruction("vector", 2)


def back(label: str) -> Instruction:
    return Instruction("branch", target=label)


def test_no_loop() -> None:
    assert hot_loop([ADD, back("end"), FUSED, "end", ADD]) is None


def test_the_innermost_loop() -> None:
    loop = hot_loop(["outer", ADD, FUSED, "inner", FUSED, DUAL, back("inner"), FUSED, back("outer")])
    assert loop is not None
    assert (loop.instructions, loop.multiply_adds) == (3, 3)
    assert loop.kinds == {"vector": 2, "branch": 1}
    assert loop.share == 1


def test_a_loop_ends_at_its_last_branch_back() -> None:
    loop = hot_loop(["top", FUSED, back("top"), ADD, back("top"), ADD])
    assert loop is not None
    assert loop.instructions == 4


def test_several_loops() -> None:
    loop = hot_loop(["a", *[ADD] * 9, FUSED, back("a"), "b", FUSED, FUSED, back("b")])
    assert loop is not None
    assert loop.multiply_adds == 2
    plain = hot_loop(["a", *[ADD] * 9, back("a"), "b", ADD, back("b")])
    assert plain is not None
    assert plain.instructions == 10


def test_kinds() -> None:
    assert count_kinds([ADD, back("a"), FUSED]) == {"vector": 2, "branch": 1}


def test_share_of_nothing_is_nothing() -> None:
    loop = hot_loop(["a", ADD, back("a")])
    assert loop is not None
    assert loop.share == pytest.approx(0)
