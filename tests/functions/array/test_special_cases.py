"""The special cases of the array API standard hold: signed zeros, infinities, NaN, for every function.

All cases of a function are elements of one tensor, so that a function is one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.properties.helpers import on
from tests.selection import first
from webgrad.functions.array.creation import asarray

from .special_cases import BINARY, CLASSES, COMPLEX, UNARY

WHERE = pytest.mark.parametrize(
    ("device", "dtype"),
    [
        ("cpu", "float32"),
        ("cpu", "float64"),
        ("cpu", "float16"),
        pytest.param("webgpu", "float32", marks=pytest.mark.gpu),
        pytest.param("webgpu", "float64", marks=pytest.mark.gpu),
    ],
)
Case = tuple[str, tuple[float, ...], str]  # its line, the operands, the result


def cases_of_one(name: str) -> Iterator[Case]:
    for kind, result in UNARY[name].items():
        for x in CLASSES[kind]:
            yield f"{name}({kind}): {result}", (x,), result


def cases_of_two(table: str, name: str) -> Iterator[Case]:
    for line in filter(None, map(str.strip, table.splitlines())):
        kinds, result = line.split(": ")
        first, second = kinds.split(", ")
        for x1 in CLASSES[first]:
            for x2 in CLASSES[second]:
                yield f"{name}({kinds}): {result}", (x1, x2), result


def minus(x: Any) -> bool:
    return math.copysign(1, x) < 0


def holds(found: Any, wanted: str, operands: tuple[float, ...]) -> bool:
    """Whether a result is what the case says; zeros by their sign too, where the case names one."""
    if wanted in ("True", "False"):
        return bool(found) is (wanted == "True")
    if wanted == "nan":
        return math.isnan(found)
    if wanted in ("+nan", "-nan"):
        return math.isnan(found) and minus(found) is (wanted == "-nan")
    if wanted in "+-":
        return not math.isnan(found) and minus(found) is (wanted == "-")
    if wanted.startswith("~"):
        return math.isclose(found, float(wanted[1:]), rel_tol=1e-3)
    if wanted == "inf":
        return math.isinf(found)
    value = exact(wanted, operands)
    return bool(found == value) and (wanted == "0" or minus(found) is minus(value))


def exact(wanted: str, operands: tuple[float, ...]) -> float:
    sign, name = (-1, wanted[1:]) if wanted.startswith("-|") else (1, wanted)
    if "x" not in name:
        return float(name)
    value = operands[int(name.strip("|x")) - 1]
    return sign * abs(value) if "|" in name else value


def placed(device: str, dtype: str) -> Any:
    found: Any = on(device)
    if device == "webgpu" and dtype == "float64" and "f64" not in found.features:
        pytest.skip(f"{found.name} has no float64")
    return found


def check(name: str, cases: list[Case], device: str, dtype: str) -> None:
    columns = zip(*(operands for _, operands, _ in cases), strict=True)
    place = placed(device, dtype)
    found = getattr(wg, name)(*[asarray(np.array(each, dtype), device=place) for each in columns]).numpy()
    report(found, cases)


def report(found: Any, cases: list[Case]) -> None:
    wrong = [
        f"{line}, but {operands} gave {value}"
        for value, (line, operands, result) in zip(found, cases, strict=True)
        if not holds(value.item(), result, operands)
    ]
    assert not wrong, "\n".join(wrong)


@WHERE
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name: str, device: str, dtype: str) -> None:
    check(name, list(cases_of_one(name)), device, dtype)


@WHERE
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name: str, device: str, dtype: str) -> None:
    check(name, list(cases_of_two(BINARY[name], name)), device, dtype)


@WHERE
@pytest.mark.parametrize("side", first(1, [1, 0]))
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_one_and_a_number(name: str, side: int, device: str, dtype: str) -> None:
    """NumPy has ways of its own where one operand is the same for all."""
    place, function = placed(device, dtype), getattr(wg, name)
    groups: dict[tuple[str, bool], list[Case]] = {}
    for case in cases_of_two(BINARY[name], name):
        number = case[1][side]
        groups.setdefault((repr(number), minus(number)), []).append(case)
    for cases in groups.values():
        values = [operands[1 - side] for _, operands, _ in cases]
        operands = [asarray(np.array(values, dtype), device=place)] * 2
        operands[side] = asarray(np.array(cases[0][1][side], dtype), device=place)
        report(function(*operands).numpy(), cases)


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        ("cpu", "complex64"),
        ("cpu", "complex128"),
        pytest.param("webgpu", "complex64", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_complex_numbers(name: str, device: str, dtype: str) -> None:
    cases = list(cases_of_two(COMPLEX[name], name))
    values = np.array([complex(*operands) for _, operands, _ in cases], dtype)
    function = getattr(wg, name)
    found = function(asarray(values, device=on(device))).numpy()
    wrong = []
    for value, (line, operands, result) in zip(found, cases, strict=True):
        parts = zip((value.real.item(), value.imag.item()), result.split(", "), strict=True)
        if not all(holds(part, wanted, operands) for part, wanted in parts):
            wrong.append(f"{line}, but {operands} gave {value}")
    assert not wrong, "\n".join(wrong)
    mirrored = function(asarray(np.conj(values), device=on(device))).numpy()
    np.testing.assert_array_equal(np.conj(mirrored), found)


@WHERE
def test_clip_gives_nan_where_one_is(device: str, dtype: str) -> None:
    place = placed(device, dtype)
    x, low, high = np.array([[math.nan, 1, 1, 1], [0, math.nan, 0, 0], [2, 2, math.nan, 2]], dtype)
    found = wg.clip(*[asarray(each, device=place) for each in (x, low, high)]).tolist()
    assert [math.isnan(each) for each in found] == [True, True, True, False]


def test_every_function_of_floats_is_in_the_table() -> None:
    """The 67 of the standard are these, and those that have no special cases of floats."""
    bits = {each for each in dir(wg) if each.startswith("bitwise_")} - {"bitwise_not"}  # NumPy's name
    others = {"conj", "imag", "logical_and", "logical_not", "logical_or", "logical_xor", "real"}
    assert len({*UNARY, *BINARY, "clip"} | others | bits) == 67
