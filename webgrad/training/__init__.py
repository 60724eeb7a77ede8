"""Training: a progress bar, checkpoints that resume bit by bit, and the loop that people expect.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .checkpoint import load_checkpoint, save_checkpoint
from .interrupt import finish_step
from .loop import History, fit
from .meter import Progress, progress

__all__ = ["History", "Progress", "finish_step", "fit", "load_checkpoint", "progress", "save_checkpoint"]
