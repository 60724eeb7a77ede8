"""torch.optim.lr_scheduler: schedules of learning rates."""

import webgrad as _wg

__all__ = list(_wg.optim.lr_scheduler.__all__)
globals().update({name: getattr(_wg.optim.lr_scheduler, name) for name in __all__})
