"""PyTorch's namespace over webgrad: `import webgrad.torch as torch`, and a program for PyTorch runs.

Functions are rows of tables in the modules of this folder (`binding.py` reads them), in torch's own
structure: `torch`, `torch.nn`, `torch.optim` … Their values, promotion of types, views and errors are
torch's; what differs is in docs/porting-pytorch.md.
"""

from __future__ import annotations

import importlib
from math import e, inf, nan, pi
from typing import Any

import webgrad as _wg

from . import methods as _methods
from . import return_types as return_types
from . import settings as _settings
from .binding import public as _public
from .compiling import compile
from .creation import tensor
from .defaults import get_default_dtype, set_default_dtype
from .devices import device, get_default_device, set_default_device
from .imports import install, uninstall
from .random import Generator, default_generator
from .shapes_of import Size
from .tensor import Tensor
from .tensor import adopt as adopt
from .typed import types_of as _types_of

__all__ = [
    "Generator", "Size", "Tensor", "compile", "default_generator", "device", "e", "get_default_device",
    "get_default_dtype", "inf", "install", "nan", "pi", "set_default_device",
    "set_default_dtype", "tensor", "uninstall",
]  # fmt: skip
__version__ = "2.13.0+webgrad"
newaxis = None
bool, uint8, int8, int16, int32, int64 = _wg.bool, _wg.uint8, _wg.int8, _wg.int16, _wg.int32, _wg.int64
uint16, uint32, uint64 = _wg.uint16, _wg.uint32, _wg.uint64
float16, bfloat16, float32, float64 = _wg.float16, _wg.bfloat16, _wg.float32, _wg.float64
complex64, complex128 = _wg.complex64, _wg.complex128
half, float, double, cfloat, cdouble = float16, float32, float64, complex64, complex128
short, int, long = int16, int32, int64
dtype = _wg.DType
finfo, iinfo = _wg.finfo, _wg.iinfo
no_grad, enable_grad, set_grad_enabled = _wg.no_grad, _wg.enable_grad, _wg.set_grad_enabled
is_grad_enabled = _wg.is_grad_enabled
strided, contiguous_format, channels_last, preserve_format = (
    "torch.strided", "torch.contiguous_format", "torch.channels_last", "torch.preserve_format",
)  # fmt: skip

_FUNCTIONS: dict[str, Any] = {}
for _family in (*_methods.FAMILIES, _methods):
    _FUNCTIONS |= _public(_family.functions)
_FUNCTIONS |= {name: getattr(_settings, name) for name in _settings.__all__}
_FUNCTIONS |= _types_of(on_gpu=False)
globals().update(_FUNCTIONS)
__all__ += _FUNCTIONS


class inference_mode(_wg.no_grad):
    """As no_grad: results need no gradient."""

    def __init__(self, mode: Any = True) -> None:
        super().__init__()
        self._on = not mode


def is_tensor(obj: Any) -> Any:
    """Whether it is a tensor."""
    return isinstance(obj, _wg.Tensor)


def numel(input: Any) -> Any:
    """How many elements there are."""
    return input.numel()


_LIBRARIES = frozenset(
    {
        "_dynamo",
        "accelerator",
        "amp",
        "autograd",
        "backends",
        "cuda",
        "distributed",
        "distributions",
        "fft",
        "func",
        "hub",
        "jit",
        "linalg",
        "masked",
        "multiprocessing",
        "nn",
        "onnx",
        "optim",
        "profiler",
        "serialization",
        "signal",
        "special",
        "testing",
        "utils",
    }
)  # loaded when they are first used


_LATER = {
    "autocast": "amp",
    "load": "serialization",
    "save": "serialization",
    "vmap": "func",
}  # functions of modules that few programs need


def __getattr__(name: str) -> Any:
    if name in _LIBRARIES:
        return importlib.import_module(f"webgrad.torch.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"webgrad.torch.{_LATER[name]}"), name)
    raise AttributeError(f"module 'webgrad.torch' has no attribute {name!r}")
