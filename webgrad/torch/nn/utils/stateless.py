"""torch.nn.utils.stateless: modules called with other parameters; the same is in torch.func."""

from __future__ import annotations

from ...func import functional_call

__all__ = ["functional_call"]
