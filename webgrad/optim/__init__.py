"""Optimisers with PyTorch's names, arguments and arithmetic; `lr_scheduler` has the schedules of rates.

>>> model = wg.asarray([[1.0, -1.0]]).requires_grad_()
>>> opt = wg.optim.AdamW([model], lr=1e-2)
>>> rates = wg.optim.lr_scheduler.StepLR(opt, step_size=10)
"""

from __future__ import annotations

from webgrad.porting import refusing

from . import lr_scheduler
from .adam import LAMB, Adam, Adamax, AdamW, NAdam, RAdam
from .lbfgs import LBFGS
from .matrices import Adafactor, Muon
from .optimizer import Optimizer
from .sgd import ASGD, SGD, Adadelta, Adagrad, Lion, RMSprop, Rprop

__all__ = [
    "ASGD",
    "LAMB",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
__getattr__ = refusing("webgrad.optim", "optim", __all__)
