"""torch.utils.tensorboard: as with torch, the package tensorboard is needed, and its writer with it."""

from __future__ import annotations

import importlib

importlib.import_module("tensorboard")  # a ModuleNotFoundError that names it, as torch raises
raise ImportError(
    "webgrad.torch has no SummaryWriter: import tensorboardX's, which takes arrays: "
    "`from tensorboardX import SummaryWriter`",
    name="torch.utils.tensorboard",
)
