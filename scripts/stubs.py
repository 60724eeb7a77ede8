"""Write the stubs of what is made of tables, for type checkers and editors: `python -m scripts.stubs`.

In: webgrad's table of public names, the rows of `webgrad.ops.table`, and what `webgrad.functions` makes of
them. Out: `.pyi` files beside the
modules. A test fails where they are not what this would write.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import webgrad as wg
from scripts.system import ROOT
from webgrad.functions.array import maps
from webgrad.functions.method_table import FUNCTIONS
from webgrad.nn import functional

__all__ = ["in_order", "main", "stubs"]

NOTE = "# made by `python -m scripts.stubs`"
NAMES = """
# ruff: noqa: I001  (in the order of their homes)

from collections.abc import Mapping

"""
CONSTANTS = """
__version__: str
__array_api_version__: str
newaxis: None
e: float
inf: float
nan: float
pi: float
__all__: list[str]

_NAMES: Mapping[str, str]
_HOMES: Mapping[str, str]
_LIBRARIES: frozenset[str]
"""
MAPS = """
from typing import Any

from ...tensor import Tensor

"""
METHODS = """
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ..tensor import Tensor

FUNCTIONS: Mapping[ModuleType, str]

class FunctionMethods:
    __slots__ = ()
"""


def stubs() -> dict[Path, str]:
    """The stubs as they should be, by their files."""
    folder = ROOT / "webgrad"
    return {
        folder / "__init__.pyi": _names(),
        folder / "nn" / "functional.pyi": _functional(),
        folder / "functions" / "array" / "maps.pyi": _maps(),
        folder / "functions" / "method_table.pyi": _methods(),
    }


def _names() -> str:
    homes = {**dict.fromkeys(wg._LIBRARIES | {"errors", "observing"}, ""), "random": "functions", **wg._HOMES}
    lines = sorted(f"from .{home} import {name} as {name}\n" for name, home in homes.items())
    return f"{NOTE}\n{NAMES}{''.join(lines)}{CONSTANTS}"


def _functional() -> str:
    homes = {
        name: getattr(functional, name).__module__.removeprefix("webgrad.nn") for name in functional.__all__
    }
    lines = [
        f"from {home if home.startswith('.') else 'webgrad'} import {name} as {name}\n"
        for name, home in homes.items()
    ]
    return f"{NOTE}\n# ruff: noqa: I001\n\n{''.join(sorted(lines))}\n__all__: list[str]\n"


def _maps() -> str:
    ordered = sorted(maps.__all__, key=in_order)
    names = "".join(f'    "{name}",\n' for name in ordered)
    lines = [f"def {name}{inspect.signature(getattr(maps, name))}: ..." for name in ordered]
    text = "\n".join(lines).replace("'", "")
    return f"{NOTE}\n{MAPS}__all__ = [\n{names}]\n\n{text}\n"


def _methods() -> str:
    lines = []
    for module, names in FUNCTIONS.items():
        for name in names.split():
            result = inspect.signature(getattr(module, name)).return_annotation
            lines.append(f"    {name}: Callable[..., {'Tensor' if result == 'Tensor' else 'Any'}]")
    return f"{NOTE}\n{METHODS}" + "\n".join(lines) + "\n"


def in_order(name: str) -> list[int | str]:
    """Names in alphabetical order, numbers in them as numbers: log2 before log10."""
    return [int(each) if each.isdigit() else each for each in re.split(r"(\d+)", name)]


def main() -> int:
    """The command line."""
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
