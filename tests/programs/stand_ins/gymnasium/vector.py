"""Several worlds at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["SyncVectorEnv"]


class SyncVectorEnv:
    """Worlds one after another; one that has ended begins again."""

    def __init__(self, makers: Sequence[Callable[[], Any]]) -> None:
        self.envs = [each() for each in makers]
        self.num_envs = len(self.envs)
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.action_space = self.single_action_space

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """All of them from their beginnings."""
        given = [None if seed is None else seed + number for number in range(self.num_envs)]
        return np.stack([each.reset(seed=one)[0] for each, one in zip(self.envs, given, strict=True)]), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of each."""
        told: tuple[list[Any], ...] = ([], [], [], [])
        last = np.full(self.num_envs, None, object)
        for number, (each, action) in enumerate(zip(self.envs, actions, strict=True)):
            state, reward, over, late, _ = each.step(action)
            if over or late:
                last[number] = state
                state = each.reset()[0]
            for values, value in zip(told, (state, reward, over, late), strict=True):
                values.append(value)
        about = {"final_observation": last} if any(each is not None for each in last) else {}
        states, *rest = told
        return np.stack(states), *map(np.array, rest), about  # type: ignore[return-value]

    def close(self) -> None:
        """Nothing is open."""
