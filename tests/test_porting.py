"""What is written in place of other libraries' names: hints of errors, and that what they name is there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.porting import Row, hint, rows

SCOPES: dict[str, Any] = {
    "wg": wg,
    "x": wg.Tensor,
    "nn": wg.nn,
    "nn.functional": wg.nn.functional,
    "optim": wg.optim,
    "random": wg.random,
}
ROWS = rows()
NAMED = [row for row in ROWS if row.names]


@pytest.mark.parametrize("row", NAMED, ids=lambda row: row.names)
def test_a_row_is_for_names_that_are_not_there(row: Row) -> None:
    for name in row.names.split():
        assert hint(row.scope, name)
        with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}: ")) as raised:
            getattr(wg.ones(1) if row.scope == "x" else SCOPES[row.scope], name)
        first = next(each for each in NAMED if each.scope == row.scope and name in each.names.split())
        assert first.here.replace("`", "") in str(raised.value)


def resolved(words: str) -> Any:
    found: Any = {"wg": wg, "webgrad": wg, "x": wg.ones(1)}[words.partition(".")[0]]
    for name in words.split(".")[1:]:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.names + row.theirs)
def test_what_is_here_is_there(row: Row) -> None:
    code = " ".join(re.findall(r"`([^`]*)`", row.here))
    for words in re.findall(r"(?<![\w.\"'])(?:wg|webgrad|x)(?:\.[a-z_]\w*)+", code):
        resolved(words)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.names + row.theirs)
def test_numpys_names_are_numpys(row: Row) -> None:
    for name in re.findall(r"\bnp\.((?:random\.)?\w+)", row.theirs):
        assert hasattr(np.random if "." in name else np, name.rpartition(".")[2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: wg.softmx, AttributeError, "no attribute 'softmx': did you mean 'softmax'"),  # type: ignore[attr-defined]
        (lambda x: x.summ(), AttributeError, "a Tensor has no attribute 'summ': did you mean 'sum'"),
        (lambda x: wg.nn.Lineer(2, 3), AttributeError, "has no attribute 'Lineer': did you mean 'Linear'"),
        (lambda x: wg.optim.Adem, AttributeError, "did you mean 'Adam'"),
        (lambda x: wg.nn.functional.sofmax, AttributeError, "did you mean 'softmax'"),  # type: ignore[attr-defined]
        (lambda x: wg.__nothing__, AttributeError, "has no attribute '__nothing__'$"),  # type: ignore[attr-defined]
        (lambda x: x.exp_(), AttributeError, r"'exp_': write x\[...\] = x.exp\(…\), or x = x.exp"),
        (lambda x: x._nothing, AttributeError, "has no attribute '_nothing'$"),
        (
            lambda x: wg.scatter(x, 1, x.argsort(), x),
            wg.AxisError,
            r"scatter\(x, axis, index, updates\) is scatter\(x, index, updates, axis\)",
        ),
        (lambda x: wg.index_add(x, 0, x.argsort(), x), wg.AxisError, "the axis is the last argument"),
        (lambda x: wg.amp.autocast("cuda"), wg.DTypeError, "'cuda' is a device; autocast"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Callable[..., Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(wg.ones((2, 3), device="cpu"))


def test_a_missing_member_is_still_missing() -> None:
    x = wg.ones(2, device="cpu")
    assert not hasattr(x, "__cuda_array_interface__")
    assert getattr(x, "cuda", None) is None
    assert not hasattr(wg, "no_such_name")
