"""What is done to the parameters and gradients of modules, and sequences of different lengths.

`parametrize`, `parametrizations`, `prune` and `rnn` are modules of their own, as in PyTorch.
"""

from __future__ import annotations

from . import clipping, fusion, parametrizations, parametrize, prune, rnn, vectors, weights
from .clipping import *  # noqa: F403
from .fusion import *  # noqa: F403
from .vectors import *  # noqa: F403
from .weights import *  # noqa: F403

__all__ = ["parametrizations", "parametrize", "prune", "rnn"]
__all__ += clipping.__all__
__all__ += fusion.__all__
__all__ += vectors.__all__
__all__ += weights.__all__
