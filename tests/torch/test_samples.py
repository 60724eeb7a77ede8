"""The comparison of samples sees what is wrong: values, dtypes, gradients, crashes; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import webgrad as wg
from tests.torch.checking import torch
from tests.torch.samples import Call, Tally, compare


def tally(ours: Callable[..., Any], theirs: Callable[..., Any], *args: Any, **kwargs: Any) -> Tally:
    return compare(Call("case", ours, theirs, args, kwargs))


def numbers(dtype: Any = torch.float32) -> Any:
    return torch.linspace(-2, 2, 6, dtype=dtype).reshape(2, 3).requires_grad_()


def test_what_is_the_same_is_compared_with_its_gradient() -> None:
    found = tally(wg.sin, torch.sin, numbers())
    assert (found.compared, found.gradients, found.wrong) == (1, 1, [])


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        (wg.cos, "6 of 6 differ"),
        (lambda x: wg.sin(x)[0], r"shape (3,), torch (2, 3)"),
        (lambda x: wg.sin(x).astype(wg.float64), "dtype float64, torch float32"),
        (lambda x: wg.sin(x).detach() + x - x.detach(), "gradient 0: 6 of 6 differ"),
        (lambda x: (wg.sin(x), x), "2 results, torch 1"),
        (lambda x: [x][1], "IndexError"),
    ],
)
def test_what_is_wrong_is_told(ours: Callable[..., Any], says: str) -> None:
    (line,) = tally(ours, torch.sin, numbers()).wrong
    assert says in line


def test_what_is_refused_is_counted() -> None:
    for ours, says in (
        (lambda x: wg.sum(x), "unexpected keyword"),
        (lambda x, dim: wg.sum(x, dim + 5), "AxisError"),
    ):
        found = tally(ours, torch.sum, numbers(), dim=0)
        assert (found.compared, found.wrong) == (0, [])
        assert [says in message for message in found.refused] == [True]


def test_rounding_is_measured_in_double_precision() -> None:
    x = torch.full((1000,), 0.1, dtype=torch.float32)

    def one_after_another(x: Any) -> Any:
        total = x[0]
        for each in x[1:]:
            total = total + each
        return total

    assert tally(wg.sum, one_after_another, x).wrong == []  # torch is further from the truth
    assert tally(lambda x: wg.sum(x) * 1.01, one_after_another, x).wrong != []
