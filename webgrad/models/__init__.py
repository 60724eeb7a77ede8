"""Published models: language models that write, and models that embed.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

__all__: list[str] = []
