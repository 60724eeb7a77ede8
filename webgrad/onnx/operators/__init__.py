"""ONNX's operators, a small function each, by family; importing this fills the table from every module."""

from __future__ import annotations

import importlib
import pkgutil

from .table import Call, Operator, find, operator, rows

__all__ = ["Call", "Operator", "find", "operator", "rows"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
