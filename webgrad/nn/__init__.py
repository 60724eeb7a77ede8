"""Neural networks, with PyTorch's names: `webgrad.nn.functional` has the functions that layers are made of.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from . import functional, init
from .containers import (
    Flatten,
    Identity,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
    Unflatten,
)
from .linear import Bilinear, Embedding, Linear
from .module import Module
from .parameter import Parameter

__all__ = [
    "Bilinear",
    "Embedding",
    "Flatten",
    "Identity",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "Unflatten",
    "functional",
    "init",
]
