"""torch.nn.utils.prune: masks of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import webgrad as wg

__all__ = list(wg.nn.utils.prune.__all__)
globals().update({name: getattr(wg.nn.utils.prune, name) for name in __all__})


class L1Unstructured:
    """The method of `global_unstructured` that takes the elements nearest to zero."""


class RandomUnstructured:
    """The method of `global_unstructured` that takes elements by chance."""


__all__ += ["L1Unstructured", "RandomUnstructured"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
