"""Published models: language models that write, and models that embed.

Like any other program this uses webgrad's public names only.
"""

from __future__ import annotations

from .embedding import EmbeddingModel
from .known_models import Entry, catalogue
from .language import Generation, LanguageModel, Report
from .loader import load
from .store import Pulled, locate, pull, pulled, remove
from .template import ChatTemplate
from .tokenizer import Tokenizer

__all__ = [
    "ChatTemplate",
    "EmbeddingModel",
    "Entry",
    "Generation",
    "LanguageModel",
    "Pulled",
    "Report",
    "Tokenizer",
    "catalogue",
    "load",
    "locate",
    "pull",
    "pulled",
    "remove",
]
