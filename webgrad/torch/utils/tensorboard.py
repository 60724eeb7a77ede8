"""torch.utils.tensorboard: `SummaryWriter` is that of the package tensorboardX, which takes these tensors.

In: nothing. Out: the class, or an ImportError that says what to install.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name != "SummaryWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module("tensorboardX").SummaryWriter
    except ImportError as error:
        raise ImportError(
            "SummaryWriter needs the package tensorboardX, whose files TensorBoard shows: "
            "`pip install tensorboardX`",
            name="tensorboardX",
        ) from error
