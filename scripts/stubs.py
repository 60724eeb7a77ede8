"""Write the stubs of what is made of tables, for type checkers and editors: `python -m scripts.stubs`.

In: webgrad's table of public names, the rows of `webgrad.ops.table`, and what `webgrad.functions` makes of
them. Out: `.pyi` files beside the
modules. A test fails where they are not what this would write.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import webgrad as wg
from scripts.system import ROOT
from webgrad.functions.array import maps
from webgrad.functions.method_table import FUNCTIONS
from webgrad.functions.spellings import other_names, spelled
from webgrad.nn import functional

__all__ = ["in_order", "main", "stubs"]

EMPTY, KEYWORD = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
STARRED = inspect.Parameter.VAR_POSITIONAL
NOTE = "# made by `python -m scripts.stubs`"
UNSORTED = "# ruff: noqa: I001, E501  (in the order of their homes, a line each)\n"
OWN_LINES = "\n# fmt: off\n"
NAMES = """
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


class Text(str):
    """Text that stands in a signature as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def stubs() -> dict[Path, str]:
    """The stubs as they should be, by their files."""
    folder = ROOT / "webgrad"
    return {
        folder / "__init__.pyi": _names(),
        folder / "nn" / "functional.pyi": _namespace(functional),
        folder / "linalg" / "__init__.pyi": _namespace(wg.linalg),
        folder / "fft.pyi": _namespace(wg.fft),
        folder / "functions" / "array" / "maps.pyi": _maps(),
        folder / "functions" / "method_table.pyi": _methods(),
    }


def _names() -> str:
    homes = {**dict.fromkeys(wg._LIBRARIES | {"errors", "observing"}, ""), "random": "functions", **wg._HOMES}
    spelled = {name: each for name in homes if other_names_of(each := getattr(wg, name))}
    lines = sorted(
        f"from .{home} import {name} as {name}\n" for name, home in homes.items() if name not in spelled
    )
    needed: dict[str, str] = {}
    defined = [_with_other_names(name, spelled[name], needed) for name in sorted(spelled, key=in_order)]
    types = sorted(f"from {home} import {name} as _{name}\n" for name, home in needed.items())
    heads = "".join([*types, *lines])
    return f"{NOTE}\n{UNSORTED}{NAMES}{heads}{CONSTANTS}{OWN_LINES}{''.join(defined)}"


def other_names_of(thing: Any) -> dict[str, str]:
    """The names by which a public function takes its arguments beside its own."""
    original = getattr(thing, "__wrapped__", None)
    return other_names(original) if original and spelled(original) is thing else {}


def _with_other_names(name: str, function: Any, needed: dict[str, str]) -> str:
    """A function that takes other names too; `needed` gets the types of its annotations and their homes."""
    signature, found = inspect.signature(function), []
    others = other_names_of(function)
    named = {**signature.parameters}
    named |= {other: named[own].replace(name=other, kind=KEYWORD) for other, own in others.items()}
    optional = False
    for each in named.values():
        optional = optional or each.default is not EMPTY or each.name in others.values()
        annotation = Text(_annotation(each.annotation, function.__module__, needed))
        default = Text("...") if (optional or each.name in others) and each.kind is not STARRED else EMPTY
        found.append(each.replace(annotation=annotation, default=default))
    result = _annotation(signature.return_annotation, function.__module__, needed)
    return f"def {name}{inspect.Signature(found)} -> {result}: ...\n"


def _annotation(text: str, module: str, needed: dict[str, str]) -> str:
    """An annotation in the names of the stub, where `bool` and `int` are webgrad's own."""

    def name_in_stub(match: re.Match[str]) -> str:
        name = match[0]
        if name in ("None", "Tensor"):
            return name
        needed[name] = "builtins" if hasattr(builtins, name) else _home_of(name, module)
        return f"_{name}"

    return re.sub(r"[A-Za-z_]\w*", name_in_stub, text.replace("wg.Tensor", "Tensor"))


@functools.cache
def _imports(module: str) -> dict[str, str]:
    """Where a module has the names from that it imports."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            found |= {each.asname or each.name: home for each in node.names}
    return found


def _home_of(name: str, module: str) -> str:
    return _imports(module).get(name, module)


def _namespace(module: ModuleType) -> str:
    """The public names of a library: webgrad's, its modules', and functions with other names of arguments."""
    own = module.__name__
    base = own if hasattr(module, "__path__") else own.rpartition(".")[0]
    lines, aliases, defined = [], [], []
    needed: dict[str, str] = {}
    for name in sorted(module.__all__, key=in_order):
        thing = getattr(module, name)
        home = str(getattr(thing, "__module__", "webgrad"))
        if getattr(wg, name, None) is thing:
            lines.append(f"from webgrad import {name} as {name}\n")
        elif not home.startswith(base):
            lines.append(f"from webgrad import {thing.__name__} as _{thing.__name__}\n")
            aliases.append(f"{name} = _{thing.__name__}\n")
        elif other_names_of(thing) or home == own:
            defined.append(_with_other_names(name, thing, needed))
        else:
            lines.append(f"from {home.removeprefix(base)} import {name} as {name}\n")
    types = [f"from {home} import {name} as _{name}\n" for name, home in needed.items() if home != own]
    unnamed = [f"_{name} = _Any\n" for name, home in sorted(needed.items()) if home == own]
    if unnamed:
        aliases += unnamed
        types.append("from typing import Any as _Any\n")
    if defined:
        types.append("from webgrad import Tensor\n")
    heads = "".join([*sorted({*types}), *sorted(lines)])
    return f"{NOTE}\n{UNSORTED}\n{heads}\n{''.join(aliases)}__all__: list[str]\n{OWN_LINES}{''.join(defined)}"


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
