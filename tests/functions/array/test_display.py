"""Tensors as text: like NumPy's, and of large tensors only what is shown is read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from webgrad import dtypes
from webgrad.evaluate import evaluate
from webgrad.functions.array import display
from webgrad.functions.array.creation import arange, asarray, full, zeros
from webgrad.functions.array.display import MAX_SHOWN, html
from webgrad.tensor import Tensor


def cpu(value: Any, dtype: Any = None) -> Tensor:
    return asarray(value, dtype, device="cpu")


@pytest.fixture
def sizes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of elements of everything that is read."""
    sizes: list[int] = []

    def reading(node: Any) -> Any:
        array = real(node)
        sizes.append(array.size)
        return array

    real = evaluate.read
    monkeypatch.setattr(display, "read", reading)
    return sizes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.5, "tensor(1.5, dtype=float32, device=cpu)"),
        ([1.0, 2.0], "tensor([1., 2.], dtype=float32, device=cpu)"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]], dtype=int32, device=cpu)"),
        ([True, False], "tensor([ True, False], dtype=bool, device=cpu)"),
        ([np.nan, -np.inf], "tensor([ nan, -inf], dtype=float32, device=cpu)"),
        ([], "tensor([], dtype=float32, device=cpu)"),
        (np.zeros((0, 3), np.int8), "tensor([], shape=(0, 3), dtype=int8, device=cpu)"),
    ],
    ids=repr,
)
def test_repr(value: Any, expected: str) -> None:
    assert repr(cpu(value)) == expected


def test_repr_of_bfloat16() -> None:
    assert repr(cpu([1.5, 2], dtypes.bfloat16)) == "tensor([1.5, 2. ], dtype=bfloat16, device=cpu)"


def test_a_full_line_is_broken_before_the_dtype() -> None:
    lines = repr(cpu(np.arange(1000, 1011))).split("\n")
    assert lines[-1] == "       dtype=int64, device=cpu)"
    assert max(map(len, lines)) <= 75


@pytest.mark.parametrize(
    "shape", [(3,), (2, 3), (2, 2, 3), (40, 50), (2000,), (8, 9, 20), (3, 1000), (7, 7, 7, 7)]
)
def test_str_is_numpys(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    if len(shape) < 4:
        assert str(cpu(array)) == str(array)
    else:  # six a side would be 1,296 elements
        with np.printoptions(edgeitems=2):
            expected = str(array)
        assert str(cpu(array)) == expected


def test_what_is_left_out_has_no_part_in_the_format() -> None:
    array = np.ones(5000, np.float32)
    array[2500] = 123456.789
    assert str(cpu(array)) == "[1. 1. 1. ... 1. 1. 1.]"
    assert repr(cpu(array)).endswith("1.],\n       shape=(5000,), dtype=float32, device=cpu)")


@pytest.mark.parametrize(
    "shape", [(10**6,), (1000, 1000), (60, 70, 80), (10,) * 5, (9,) * 6, (2,) * 12, (1, 10**6, 1)]
)
def test_no_more_than_a_thousand_elements_are_read(shape: tuple[int, ...], sizes_read: list[int]) -> None:
    x = zeros(shape, device="cpu")
    for text in (repr(x), str(x), html(x)):
        assert "..." in text
    assert sum(sizes_read) <= 3 * MAX_SHOWN
    assert max(sizes_read, default=0) <= MAX_SHOWN


def test_print_options_do_not_lift_the_limit(sizes_read: list[int]) -> None:
    with np.printoptions(threshold=10**9, edgeitems=400):
        repr(zeros((2000, 2000), device="cpu"))
        repr(zeros(2000, device="cpu"))
    assert max(sizes_read) <= MAX_SHOWN


def test_print_options_count() -> None:
    with np.printoptions(precision=2, threshold=5, edgeitems=1):
        assert str(cpu([1.23456, 2, 3, 4, 5, 6])) == "[1.23 ... 6.  ]"


def test_html(sizes_read: list[int]) -> None:
    text = html(full((3, 5000), 1.5, device="cpu"))
    assert "3 × 5000" in text
    assert "float32" in text
    assert "1.5 1.5 1.5 ... 1.5" in text
    assert not re.search(r"https?:|<script|<link|<img|src=", text)
    assert text.count("<tr>") == text.count("</tr>") == 4
    assert max(sizes_read) <= MAX_SHOWN
    assert cpu(2.0)._repr_html_().count("a single number") == 1


def test_html_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    x = cpu([1.0])
    monkeypatch.setattr(x.device, "name", "<b>&")
    assert "&lt;b&gt;&amp;" in html(x)
    assert "<b>" not in html(x)


def test_format() -> None:
    assert f"{cpu(3.14159):.2f}" == "3.14"
    assert f"{cpu([7]):04d}" == "0007"
    assert f"{arange(3, device='cpu')}" == "[0 1 2]"
    with pytest.raises(ValueError, match=r"the format '.2f' needs a tensor of one element"):
        f"{cpu([1.0, 2.0]):.2f}"
