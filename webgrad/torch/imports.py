"""Whole programs: `import torch` and its submodules resolved to webgrad.torch.

In: names of modules that a program imports. Out: webgrad's modules under them, the same objects that
`webgrad.torch` has. The invariant: torch itself is not imported once this is installed, and a module that
there is none for is an ImportError that says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["install", "uninstall"]

_HERE = "webgrad.torch"


def install() -> None:
    """From now on `import torch`, in every module of this process, imports webgrad.torch.

    >>> import webgrad.torch
    >>> webgrad.torch.install()
    >>> import torch.nn.functional as F
    >>> F.__name__
    'webgrad.torch.nn.functional'
    >>> webgrad.torch.uninstall()
    """
    known = sys.modules.get("torch")
    if known is not None and known.__name__ != _HERE:
        raise ImportError(
            "torch itself is imported already, so webgrad.torch cannot take its place: call "
            "webgrad.torch.install() before anything imports torch, or run the program by "
            "`python -m webgrad.torch program.py`",
            name="torch",
        )
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """`import torch` is torch again; what was imported before stays what it is."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for name in [each for each in sys.modules if each == "torch" or each.startswith("torch.")]:
        if sys.modules[name].__name__.startswith(_HERE):
            del sys.modules[name]


class _Finder:
    """Finds modules of torch's names in webgrad.torch."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch" and not name.startswith("torch."):
            return None
        ours = _HERE + name.removeprefix("torch")
        if _is_module(ours):
            return ModuleSpec(name, _Loader(), is_package=True)  # type: ignore[arg-type]
        parent, _, last = ours.rpartition(".")
        raise ModuleNotFoundError(
            f"{parent} has no module {last!r}, so {name} cannot be imported: webgrad.torch has the parts of "
            "torch that docs/porting-pytorch.md lists",
            name=name,
        )

    def find_distributions(self, context: Any = None) -> Iterable[Any]:
        """What `importlib.metadata.version("torch")` reads."""
        if getattr(context, "name", None) != "torch":
            return ()
        from .distribution import TorchDistribution  # here: few programs ask, and its parent takes time

        return (TorchDistribution(),)


class _Loader:
    """Gives the module of webgrad.torch itself, with the spec that it has."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _module(_HERE + spec.name.removeprefix("torch"))
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has replaced it


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        return getattr(importlib.import_module(parent), last)  # type: ignore[no-any-return]


def _is_module(name: str) -> bool:
    """Whether there is one: a file, or a module that another one holds under this name."""
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        return True
    parent, _, last = name.rpartition(".")
    return isinstance(getattr(importlib.import_module(parent), last, None), ModuleType)


_FINDER: Any = _Finder()
