"""torch.nn.functional: the functions of neural networks.

In: tensors, and torch's arguments. Out: tensors. The rows are in `activations`, `losses` and `layers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import activations, layers, losses

__all__: list[str] = []
for _family in (activations, losses, layers):
    globals().update(_family.functions)
    __all__ += _family.functions

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
