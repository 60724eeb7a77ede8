"""Names that come with gradients, as far as they are there yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import webgrad as wg

no_grad: Callable[[], AbstractContextManager[Any]] = getattr(wg, "no_grad", nullcontext)
watch: Callable[[Callable[[], Any]], Any] = getattr(wg, "watch", lambda get: get())
