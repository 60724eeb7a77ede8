"""Write what other libraries' namespaces have and webgrad has not: `python -m scripts.namespaces`.

In: `webgrad/porting.py`, and the libraries' names. These are stored in scripts/names, so that pages can be
made and tested without the libraries; `--read torch` and `--read numpy` store those of an installed one. Out:
the parts between marks of docs/porting-pytorch.md and docs/porting-numpy.md. A test fails where they are not
what this would write.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from scripts.figures import put_between
from scripts.system import ROOT
from webgrad.porting import rows

__all__ = ["FOLDER", "absent_of_numpy", "main", "names_of", "pages"]

FOLDER = ROOT / "scripts" / "names"
BEGIN, END = "<!-- {}: made by `python -m scripts.namespaces` -->", "<!-- end of {} -->"
TORCH = """
torch torch.Tensor torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn
torch.nn.utils.parametrize torch.nn.utils.parametrizations torch.optim torch.optim.lr_scheduler torch.autograd
torch.autograd.functional torch.func torch.linalg torch.fft torch.special torch.signal.windows
torch.distributions torch.utils.data torch.utils.checkpoint torch.random torch.amp torch.cuda torch.compiler
"""
NUMPY = ("numpy", "numpy.linalg", "numpy.fft")


# The libraries' names


def names_of(library: str) -> dict[str, list[str]]:
    """The public names of a library by namespace, as they are stored."""
    lines = (FOLDER / f"{library}.txt").read_text("utf-8").splitlines()
    return {space: words.split() for space, _, words in (line.partition(": ") for line in lines if line)}


def read(library: str) -> str:
    """The public names of an installed library: a line for each namespace."""
    spaces = TORCH.split() if library == "torch" else NUMPY
    keep = _of_torch if library == "torch" else _of_numpy
    return "".join(f"{space}: {' '.join(keep(_module(space)))}\n" for space in spaces)


def _module(space: str) -> Any:
    parent, _, name = space.rpartition(".")
    return (
        getattr(importlib.import_module(parent), name) if name == "Tensor" else importlib.import_module(space)
    )


def _of_numpy(module: Any) -> list[str]:
    """Functions; classes are types and errors."""
    return sorted(
        name
        for name in module.__all__
        if callable(getattr(module, name)) and not inspect.isclass(getattr(module, name))
    )


def _of_torch(space: Any) -> list[str]:
    """What torch says is public, or documents; not what its compiler is made of."""
    whole = inspect.isclass(space) or space.__name__ == "torch"
    listed = None if whole else getattr(space, "__all__", None)
    return sorted(name for name in listed or dir(space) if _is_public(space, name, whole))


def _is_public(space: Any, name: str, whole: bool) -> bool:
    thing = getattr(space, name, None)
    if name.startswith("_") or inspect.ismodule(thing) or thing is None:
        return False
    if type(thing).__name__ == "dtype":
        return True
    own = str(getattr(thing, "__module__", None) or "torch")
    if not own.startswith("torch" if whole else space.__name__.rpartition(".")[0]):
        return False
    if inspect.isclass(thing) and whole:
        return name in _CLASSES.split()
    return bool(getattr(thing, "__doc__", None)) and (callable(thing) or inspect.isgetsetdescriptor(thing))


_CLASSES = """
Generator Size Tensor autocast device dtype enable_grad finfo iinfo inference_mode no_grad set_grad_enabled
"""


# What is there


@cache
def _here(space: str) -> Any:
    """webgrad's namespace of a name of torch's; None where there is none."""
    try:
        return _module(f"webgrad.{space}")
    except ModuleNotFoundError:
        return None


def absent_of_torch() -> dict[str, list[str]]:
    """The names of each namespace that webgrad.torch has not."""
    return {
        space: [name for name in names if not _has(_here(space), name)]
        for space, names in names_of("torch").items()
    }


def _has(space: Any, name: str) -> bool:
    return space is not None and hasattr(space, name)


def absent_of_numpy() -> list[str]:
    """NumPy's names that webgrad has not, as one writes them behind `np.`."""
    wg = importlib.import_module("webgrad")
    spaces = {space: [space.partition(".")[2]] if "." in space else [] for space in NUMPY}
    found = []
    for space, names in names_of("numpy").items():
        home = getattr(wg, spaces[space][0]) if spaces[space] else wg
        found += [".".join([*spaces[space], name]) for name in names if not hasattr(home, name)]
    return found


# The pages


def _names(source: str, title: str) -> str:
    lines = [f"| {row.theirs} | {row.here} |" for row in rows() if row.source == source and row.theirs != "*"]
    return "\n".join([f"| {title} | here |", "|---|---|", *lines])


def _coverage() -> str:
    """How many of torch's names there are, by namespace, and which are absent."""
    stored, absent = names_of("torch"), absent_of_torch()
    lines = ["| namespace | names | here | |", "|---|---|---|---|"]
    for space, names in [*stored.items(), ("all", [])]:
        whole = len(names) or sum(map(len, stored.values()))
        there = whole - (len(absent[space]) if names else sum(map(len, absent.values())))
        lines.append(f"| `{space}` | {whole} | {there} | {100 * there // whole} % |")
    lines[-1] = lines[-1].replace("`all`", "all")
    lists = [
        textwrap.fill(f"- `{space}`: {_words(names)}", 110, subsequent_indent="  ", break_on_hyphens=False)
        for space, names in absent.items()
        if names
    ]
    return "\n".join([*lines, "", "Absent, by namespace:", "", *lists])


def _words(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _instead() -> str:
    """NumPy's names that webgrad has not, with what there is instead."""
    absent = set(absent_of_numpy())
    lines = []
    for row in rows():
        names = [name for name in row.names.split() if name in absent]
        if row.source == "numpy" and row.scope == "wg" and names:
            lines.append(f"| {_words(names)} | {row.here} |")
            absent -= {*names}
    if absent:
        raise ValueError(f"webgrad/porting.py: say what there is instead of NumPy's {sorted(absent)}")
    return "\n".join(["| NumPy | instead |", "|---|---|", *lines])


PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "docs/porting-pytorch.md": {
        "names": lambda: _names("torch", "in PyTorch"),
        "coverage": _coverage,
    },
    "docs/porting-numpy.md": {
        "names": lambda: _names("numpy", "NumPy"),
        "missing names": _instead,
    },
}


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    made = {}
    for name, parts in PARTS.items():
        text = (ROOT / name).read_text("utf-8")
        for part, write in parts.items():
            text = put_between(name, text, (BEGIN.format(part), END.format(part)), f"\n{write()}\n")
        made[ROOT / name] = text
    return made


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--read", choices=("torch", "numpy"), help="store the names of the installed library")
    asked = parser.parse_args(arguments)
    if asked.read:
        (FOLDER / f"{asked.read}.txt").write_text(read(asked.read), encoding="utf-8")
        return 0
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
