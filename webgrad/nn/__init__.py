"""Neural networks, with PyTorch's names: modules, layers, losses; `functional` has the functions they are of.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from webgrad.porting import refusing

from . import (
    activations,
    adaptive,
    class_losses,
    containers,
    convolution,
    dropout,
    functional,
    hooks,
    images,
    init,
    lazy,
    linear,
    losses,
    normalisation,
    pooling,
    recurrent,
    transformer,
    utils,
)
from .activations import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .attention import MultiheadAttention
from .class_losses import *  # noqa: F403
from .containers import *  # noqa: F403
from .convolution import *  # noqa: F403
from .dropout import *  # noqa: F403
from .hooks import *  # noqa: F403
from .images import *  # noqa: F403
from .lazy import *  # noqa: F403
from .linear import *  # noqa: F403
from .losses import *  # noqa: F403
from .module import Module
from .normalisation import *  # noqa: F403
from .parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .pooling import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .summary import Summary, summary
from .transformer import *  # noqa: F403

__all__ = [
    "Module", "MultiheadAttention", "Parameter", "Summary", "UninitializedBuffer", "UninitializedParameter",
    "functional", "init", "summary", "utils",
]  # fmt: skip
__all__ += activations.__all__
__all__ += adaptive.__all__
__all__ += class_losses.__all__
__all__ += containers.__all__
__all__ += convolution.__all__
__all__ += dropout.__all__
__all__ += hooks.__all__
__all__ += images.__all__
__all__ += lazy.__all__
__all__ += linear.__all__
__all__ += losses.__all__
__all__ += normalisation.__all__
__all__ += pooling.__all__
__all__ += recurrent.__all__
__all__ += transformer.__all__
__getattr__ = refusing("webgrad.nn", "nn", __all__)
