"""webgrad: tensors and machine learning on every GPU, in browsers, and on the CPU.

Importing it is light and touches no GPU: what needs the native library is loaded when it is first used.
"""

from __future__ import annotations

from . import startup as _startup  # noqa: F401  (first: the other imports are what Ctrl-C may hit)

# isort: split
import importlib
from math import e, inf, nan, pi
from typing import TYPE_CHECKING, Any

from . import errors, observing
from .config import settings as _settings
from .dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    promote,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .errors import *  # noqa: F403  (the error tree is public as it stands)
from .functions import methods as _methods  # noqa: F401  (which gives Tensor its methods)
from .functions import random
from .functions.array import (
    creation,
    elementwise,
    evaluation,
    histograms,
    indexing,
    interop,
    manipulation,
    products,
    pytorch,
    reductions,
    scans,
    scatters,
    sets,
    sorting,
    types,
)
from .functions.array.creation import *  # noqa: F403
from .functions.array.elementwise import *  # noqa: F403
from .functions.array.evaluation import *  # noqa: F403
from .functions.array.histograms import *  # noqa: F403
from .functions.array.indexing import *  # noqa: F403
from .functions.array.inspection import __array_namespace_info__
from .functions.array.interop import *  # noqa: F403
from .functions.array.manipulation import *  # noqa: F403
from .functions.array.maps import *  # noqa: F403
from .functions.array.products import *  # noqa: F403
from .functions.array.pytorch import *  # noqa: F403
from .functions.array.reductions import *  # noqa: F403
from .functions.array.scans import *  # noqa: F403
from .functions.array.scatters import *  # noqa: F403
from .functions.array.sets import *  # noqa: F403
from .functions.array.sorting import *  # noqa: F403
from .functions.array.types import *  # noqa: F403
from .functions.complex import parts
from .functions.complex.parts import *  # noqa: F403
from .functions.convolution import adaptive, convolution, pooling, unpooling, windows
from .functions.convolution.adaptive import *  # noqa: F403
from .functions.convolution.convolution import *  # noqa: F403
from .functions.convolution.pooling import *  # noqa: F403
from .functions.convolution.unpooling import *  # noqa: F403
from .functions.convolution.windows import *  # noqa: F403
from .functions.learning import activations, attention, images, losses, normalisation, positions
from .functions.learning.activations import *  # noqa: F403
from .functions.learning.attention import *  # noqa: F403
from .functions.learning.images import *  # noqa: F403
from .functions.learning.losses import *  # noqa: F403
from .functions.learning.normalisation import *  # noqa: F403
from .functions.learning.positions import *  # noqa: F403
from .jit.capture import jit  # now, since the folder would be the attribute otherwise
from .tensor import Tensor

if TYPE_CHECKING:
    from . import amp as amp
    from . import data as data
    from . import fft as fft
    from . import io as io
    from . import linalg as linalg
    from . import models as models
    from . import nn as nn
    from . import optim as optim
    from . import training as training
    from .batch import Batch as Batch
    from .batch import BatchArray as BatchArray
    from .custom import Kernel as Kernel
    from .custom import kernel as kernel
    from .functions.learning.quantised import QuantisedTensor as QuantisedTensor
    from .functions.learning.quantised import from_blocks as from_blocks
    from .functions.learning.quantised import quantise as quantise
    from .functions.learning.quantised import quantised_linear as quantised_linear
    from .gradients.autograd import checkpoint as checkpoint
    from .gradients.autograd import custom_gradient as custom_gradient
    from .gradients.autograd import enable_grad as enable_grad
    from .gradients.autograd import grad as grad
    from .gradients.autograd import is_grad_enabled as is_grad_enabled
    from .gradients.autograd import no_grad as no_grad
    from .gradients.autograd import set_grad_enabled as set_grad_enabled
    from .gradients.autograd import value_and_grad as value_and_grad
    from .jit.inputs import fresh as fresh
    from .jit.inputs import watch as watch
    from .runtime.adapters import devices as devices
    from .runtime.buffers import Buffer as Buffer
    from .runtime.context import Event as Event
    from .runtime.device import CpuDevice as CpuDevice
    from .runtime.device import default_device as default_device
    from .runtime.device import open_device as open_device
    from .runtime.device import open_device_async as open_device_async
    from .runtime.device import reset_stats as reset_stats
    from .runtime.device import set_default_device as set_default_device
    from .runtime.device import stats as stats
    from .runtime.device import synchronize as synchronize
    from .runtime.webgpu import Device as Device
    from .tools.checking.check import check as check
    from .tools.checking.verdict import CheckReport as CheckReport
    from .tools.explanation import Explanation as Explanation
    from .tools.explanation import explain as explain
    from .tools.memory import MemoryReport as MemoryReport
    from .tools.memory import memory as memory
    from .tools.recording.record import Recording as Recording
    from .tools.recording.record import record as record
    from .tools.recording.replay import replay as replay
    from .tools.recording.report import ReplayReport as ReplayReport
    from .tuning import tune as tune
    from .web.export import export as export

# public name → the module that has it, loaded when the name is first used
_HOMES = {
    "Batch": "batch",
    "BatchArray": "batch",
    "Buffer": "runtime.buffers",
    "CheckReport": "tools.checking.verdict",
    "CpuDevice": "runtime.device",
    "Device": "runtime.webgpu",
    "Event": "runtime.context",
    "Explanation": "tools.explanation",
    "Kernel": "custom",
    "MemoryReport": "tools.memory",
    "Profile": "tools.profiling.profile",
    "QuantisedTensor": "functions.learning.quantised",
    "check": "tools.checking.check",
    "Recording": "tools.recording.record",
    "ReplayReport": "tools.recording.report",
    "checkpoint": "gradients.autograd",
    "custom_gradient": "gradients.autograd",
    "default_device": "runtime.device",
    "devices": "runtime.adapters",
    "enable_grad": "gradients.autograd",
    "explain": "tools.explanation",
    "export": "web.export",
    "fresh": "jit.inputs",
    "from_blocks": "functions.learning.quantised",
    "grad": "gradients.autograd",
    "is_grad_enabled": "gradients.autograd",
    "kernel": "custom",
    "memory": "tools.memory",
    "no_grad": "gradients.autograd",
    "set_grad_enabled": "gradients.autograd",
    "open_device": "runtime.device",
    "open_device_async": "runtime.device",
    "profile": "tools.profiling.profile",
    "quantise": "functions.learning.quantised",
    "quantised_linear": "functions.learning.quantised",
    "record": "tools.recording.record",
    "replay": "tools.recording.replay",
    "reset_stats": "runtime.device",
    "set_default_device": "runtime.device",
    "stats": "runtime.device",
    "synchronize": "runtime.device",
    "tune": "tuning",
    "value_and_grad": "gradients.autograd",
    "watch": "jit.inputs",
}

# namespaces and libraries built on webgrad, loaded when they are first used
_LIBRARIES = frozenset({"amp", "data", "fft", "io", "linalg", "models", "nn", "optim", "training"})

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
newaxis = None  # x[newaxis] has a new axis, as x[None] has
__all__ = [
    "DType",
    "Tensor",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "e",
    "float16",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "nan",
    "newaxis",
    "pi",
    "promote",
    "random",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
__all__ += errors.__all__
__all__ += creation.__all__
__all__ += interop.__all__
__all__ += elementwise.__all__
__all__ += parts.__all__
__all__ += indexing.__all__
__all__ += manipulation.__all__
__all__ += reductions.__all__
__all__ += scans.__all__
__all__ += sorting.__all__
__all__ += scatters.__all__
__all__ += sets.__all__
__all__ += types.__all__
__all__ += histograms.__all__
__all__ += products.__all__
__all__ += pytorch.__all__
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += normalisation.__all__
__all__ += losses.__all__
__all__ += images.__all__
__all__ += positions.__all__
__all__ += convolution.__all__
__all__ += pooling.__all__
__all__ += adaptive.__all__
__all__ += unpooling.__all__
__all__ += windows.__all__
__all__ += evaluation.__all__
__all__ += _HOMES
__all__ += _LIBRARIES


def _enter_wanted() -> None:
    """Start what WEBGRAD_DEBUG and WEBGRAD_DUMP ask for."""
    settings = _settings()
    if settings.debug or settings.dump:
        from .tools.debug import enter  # here: tools are loaded by those who ask for them

        enter(settings)
    observing.wanted.enter = None


observing.wanted.enter = _enter_wanted


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if name in _LIBRARIES:
        return importlib.import_module(f"webgrad.{name}")  # which is an attribute from then on
    if home is None:
        raise AttributeError(f"module 'webgrad' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"webgrad.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_LIBRARIES})
