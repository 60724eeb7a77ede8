"""The tables of `webgrad.torch`: every row names things that there are, and every name has one meaning.

torch is not needed for this.
"""

from __future__ import annotations

import builtins
import dis
import importlib
from types import FunctionType
from typing import Any

import pytest

import webgrad.torch as door
from webgrad.torch.binding import read
from webgrad.torch.methods import FAMILIES

MODULES = [importlib.import_module("webgrad.torch.methods"), *FAMILIES]


def functions_of(module: Any) -> dict[str, FunctionType]:
    """The functions that the module's own rows made."""
    made = vars(module).get("functions") or module._MEMBERS
    return {name: each for name, each in made.items() if each.__globals__ is vars(module)}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_rows_name_what_there_is(module: Any) -> None:
    functions = functions_of(module)
    assert functions
    for name, function in functions.items():
        named = [each.argval for each in dis.get_instructions(function) if each.opname == "LOAD_GLOBAL"]
        unknown = [each for each in named if each not in vars(module) and not hasattr(builtins, each)]
        assert unknown == [], name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_name_has_two_rows(module: Any) -> None:
    rows = list(read(module.ROWS, getattr(module, "OPTIONS", {})))
    names = [name for row in rows for name in row.names]
    assert len(names) == len(set(names)) > 5


def test_a_keyword_of_numpys_is_taken_and_an_unknown_one_names_the_right_one() -> None:
    x = door.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum(axis=0, keepdims=True).tolist() == [[4.0, 6.0]]
    with pytest.raises(
        TypeError, match=r"sum\(\) got an unexpected keyword argument 'keep_dim': did you mean 'keepdim'"
    ):
        x.sum(0, keep_dim=True)


def test_a_row_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="this is no row"):
        list(read("[function]\nabs(input) is wg.abs(input)"))
    with pytest.raises(ValueError, match="there are no forms"):
        list(read("[functoin]\nabs(input) = wg.abs(input)"))
