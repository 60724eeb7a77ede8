"""torch.optim: webgrad's optimisers, which have torch's names, arguments and arithmetic."""

import webgrad as _wg

from . import lr_scheduler as lr_scheduler

__all__ = list(_wg.optim.__all__)
globals().update({name: getattr(_wg.optim, name) for name in __all__ if name != "lr_scheduler"})
