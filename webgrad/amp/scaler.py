"""GradScaler: losses are multiplied before backward, so that small gradients are not lost in half precision.

In: a loss, then an optimiser whose parameters have gradients. Out: its step with gradients as they should be,
or none where one of them overflowed; the factor falls then, and grows after many good steps. The invariant:
nothing is read from the device, so all of it may be part of a captured function.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import webgrad as wg
from webgrad import Tensor

if TYPE_CHECKING:
    from webgrad.optim import Optimizer

__all__ = ["GradScaler"]


class GradScaler:
    """The loss's factor: `scale(loss).backward()`, `step(optimizer)`, `update()`.

    The defaults are PyTorch's. `device` is where the losses are.

    >>> scaler = wg.amp.GradScaler(init_scale=8.0)
    >>> scaler.scale(wg.asarray(0.5)).item()
    4.0
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
        *,
        device: Any = None,
    ) -> None:
        if not growth_factor > 1 or not 0 < backoff_factor < 1 or growth_interval < 1:
            raise wg.ArgumentError(
                f"GradScaler: growth_factor {growth_factor!r} must be above 1, backoff_factor "
                f"{backoff_factor!r} from 0 to 1, and growth_interval {growth_interval!r} at least 1"
            )
        self._enabled = enabled
        self._growth, self._backoff, self._interval = (
            float(growth_factor),
            float(backoff_factor),
            growth_interval,
        )
        self._scale = wg.full((), float(init_scale), dtype=wg.float32, device=device)
        self._good_steps = wg.zeros((), dtype=wg.int32, device=device)
        self._overflowed: dict[int, Tensor] = {}  # of each optimiser since the last update, by identity
        self._stepped: set[int] = set()
        wg.eval(self._scale, self._good_steps)

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """A loss, or a list or tuple of them, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)(map(self.scale, outputs))
        self._check_device(outputs)
        return outputs * self._scale.astype(outputs.dtype, copy=False)

    def _check_device(self, tensor: Tensor) -> None:
        if tensor.device is not self._scale.device:
            raise wg.DeviceError(
                f"GradScaler: the scaler is on {self._scale.device.name} and what it scales on "
                f"{tensor.device.name}: make it with GradScaler(device={tensor.device.name!r})"
            )

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the optimiser's gradients by the factor, to clip them say; `step` does it otherwise."""
        if not self._enabled:
            return
        if id(optimizer) in self._overflowed:
            raise wg.ArgumentError(
                "GradScaler.unscale_: this optimiser's gradients were unscaled already; call update() first"
            )
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        gradients = [each.grad for each in parameters if each.grad is not None]
        if not gradients:
            raise wg.ArgumentError(
                "GradScaler: no parameter of the optimiser has a gradient; call backward first"
            )
        with wg.no_grad():
            factor = 1.0 / self._scale
            fine = []
            for each in gradients:
                self._check_device(each)
                fine.append(wg.isfinite(each).all())
                each *= factor.astype(each.dtype, copy=False)
            self._overflowed[id(optimizer)] = ~reduce(wg.logical_and, fine)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """The optimiser's step, if all gradients are finite; else parameters and state stay as they are."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) in self._stepped:
            raise wg.ArgumentError(
                "GradScaler.step: called twice for one optimiser; call update() in between"
            )
        if id(optimizer) not in self._overflowed:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return optimizer.step(*args, skip=self._overflowed[id(optimizer)], **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Let the factor fall after an overflow, or grow after enough good steps; or set it."""
        if not self._enabled:
            return
        found = list(self._overflowed.values())
        self._overflowed.clear()
        self._stepped.clear()
        with wg.no_grad():
            if new_scale is not None:
                self._scale[...] = new_scale
            elif not found:
                raise wg.ArgumentError(
                    "GradScaler.update: no optimiser has made a step since the last update"
                )
            else:
                self._adapt(reduce(wg.logical_or, found))
        wg.eval()

    def _adapt(self, overflowed: Tensor) -> None:
        good = self._good_steps + 1
        due = good >= self._interval
        larger = self._scale * self._growth
        grown = wg.where(due & wg.isfinite(larger), larger, self._scale)
        self._scale[...] = wg.where(overflowed, self._scale * self._backoff, grown)
        self._good_steps[...] = wg.where(overflowed | due, 0, good)

    def get_scale(self) -> float:
        """The factor; this reads it from the device."""
        return float(self._scale) if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on, with PyTorch's names; this reads the factor."""
        if not self._enabled:
            return {}
        return {
            "scale": float(self._scale),
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": int(self._good_steps),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise wg.ArgumentError("GradScaler.load_state_dict: the state is empty: a disabled scaler's")
        self._growth, self._backoff = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._interval = state_dict["growth_interval"]
        self._scale[...] = float(state_dict["scale"])
        self._good_steps[...] = int(state_dict["_growth_tracker"])
        wg.eval(self._scale, self._good_steps)
