"""Mixed precision: products in half precision, float32 everywhere else, and gradients kept from vanishing.

Like any other program this uses webgrad's public names, but for `autocast`, which is where products are.

>>> scaler = wg.amp.GradScaler()
>>> w = wg.ones((3, 2)).requires_grad_()
>>> opt = wg.optim.SGD([w], lr=0.1)
>>> with wg.amp.autocast():
...     loss = (wg.ones((4, 3)) @ w).mean()
>>> scaler.scale(loss).backward()
>>> scaler.step(opt)
>>> scaler.update()
>>> round(w[0, 0].item(), 3)
0.95
"""

from __future__ import annotations

from webgrad.functions.learning.autocast import autocast

from .scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
