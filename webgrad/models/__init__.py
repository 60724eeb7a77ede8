"""Published models: language models that write, and models that embed.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .known import Entry, catalogue
from .store import Pulled, locate, pull, pulled, remove

__all__ = ["Entry", "Pulled", "catalogue", "locate", "pull", "pulled", "remove"]
