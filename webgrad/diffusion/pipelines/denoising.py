"""From noise to a picture: the loop that all pipelines share, of one captured function.

In: a network as a function of x, a time step and conditions; a schedule; noise. Out: x after each step. What
differs between steps are numbers, so nothing is compiled or created from the second step on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import webgrad as wg

from ..schedulers import Schedule, next_picture

__all__ = ["Denoiser", "Moment", "last_of", "with_guidance"]

Item = TypeVar("Item")
Predict = Callable[[wg.Tensor, Any, Mapping[str, Any]], wg.Tensor]


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a picture is after a step."""

    step: int  # from 1
    steps: int
    latents: wg.Tensor
    original: wg.Tensor  # what the step takes for the picture without noise


class Denoiser:
    """A network and a scheduler's arithmetic, captured once for each shape."""

    def __init__(self, predict: Predict) -> None:
        def step(
            x: wg.Tensor,
            before: Sequence[wg.Tensor],
            noise: wg.Tensor | None,
            numbers: list[float],
            earlier: Sequence[float],
            told: tuple[float, float],
            conditions: Mapping[str, Any],
            clip: float | None,
        ) -> tuple[wg.Tensor, wg.Tensor, wg.Tensor]:
            entering, timestep = told
            prediction = predict(x * entering, timestep, conditions)
            last, older = before[0], before[1:]
            found, original = next_picture(x, prediction, last, noise, numbers, clip, older, earlier)
            return found, original, prediction

        self._step = wg.jit(step, static=("clip",))

    def run(
        self,
        x: wg.Tensor,
        schedule: Schedule,
        conditions: Mapping[str, Any],
        generator: Any,
        *,
        begin: int = 0,
        keep: Callable[[wg.Tensor, int], wg.Tensor] | None = None,
    ) -> Iterator[Moment]:
        """x after each step from number `begin` on; `keep` may put back what is to stay as it was."""
        rows, scatters = schedule.rows[begin:], any(row.by_noise for row in schedule.rows)
        earlier = schedule.earlier[begin:] or [()] * len(rows)
        before = [wg.zeros(x.shape, dtype=x.dtype, device=x.device) for _ in range(1 + len(earlier[0]))]
        for number, (row, shares) in enumerate(zip(rows, earlier, strict=True), 1):
            with wg.no_grad():  # not around the yield, where it would hold for whoever asks for previews
                noise = generator.normal(x.shape, dtype=x.dtype, device=x.device) if scatters else None
                told = (row.entering, row.timestep)
                x, original, prediction = self._step(
                    x, before, noise, row.numbers, shares, told, conditions, clip=schedule.clip
                )
                before = [prediction if schedule.keeps_prediction else original, *before[:-1]]
                if keep is not None:
                    x = keep(x, begin + number)
                wg.eval(x, original, before[0])
            yield Moment(number, len(rows), x, original)


def last_of(items: Iterator[Item]) -> Item:
    """The last of some items, of which there is one."""
    return deque(items, maxlen=1).pop()


def _guided(prediction: wg.Tensor, scale: Any) -> wg.Tensor:
    """Of predictions without a prompt and with one, one behind the other, more of what the prompt changes."""
    plain, prompted = wg.split(prediction, 2, axis=0)
    found: wg.Tensor = plain + (prompted - plain) * scale
    return found


def with_guidance(predict: Predict) -> Predict:
    """The same prediction, guided where conditions have a scale: these are for twice as many pictures."""

    def prediction(x: wg.Tensor, timestep: Any, conditions: Mapping[str, Any]) -> wg.Tensor:
        if "scale" not in conditions:
            return predict(x, timestep, conditions)
        return _guided(predict(wg.concat([x, x], axis=0), timestep, conditions), conditions["scale"])

    return prediction
