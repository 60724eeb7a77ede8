"""In gymnasium's place: a pole on a cart, and a pendulum, for programs that learn what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from . import spaces, vector, wrappers

__all__ = ["Env", "make", "spaces", "vector", "wrappers"]


class Env:
    """A world: a state, and what an action makes of it."""

    spec = SimpleNamespace(reward_threshold=475.0)
    size = 4
    state: Any
    observation_space: Any
    action_space: Any

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """The state at the beginning."""
        self.steps = 0
        if seed is not None or not hasattr(self, "rng"):
            self.rng = np.random.default_rng(seed or 0)
        self.state = self.rng.uniform(-0.05, 0.05, self.size)
        return self.observed(), {}

    def observed(self) -> Any:
        """What is seen of the state."""
        return self.state.astype(np.float32)

    def close(self) -> None:
        """Nothing is open."""


class CartPole(Env):
    """A pole that stands on a cart, by Euler's method."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-5.0, 5.0, (4,))
        self.action_space = spaces.Discrete(2)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A push to the left or the right."""
        place, speed, angle, turning = self.state
        push = 10.0 if int(action) == 1 else -10.0
        part = (push + 0.05 * turning**2 * np.sin(angle)) / 1.1
        bend = (9.8 * np.sin(angle) - np.cos(angle) * part) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        pull = part - 0.05 * bend * np.cos(angle) / 1.1
        self.state = np.array(
            [place + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turning, turning + 0.02 * bend]
        )
        self.steps += 1
        fallen = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095)
        return self.observed(), 1.0, fallen, self.steps >= 500, {}


class Pendulum(Env):
    """A pendulum that is turned."""

    size = 2

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-8.0, 8.0, (3,))
        self.action_space = spaces.Box(-2.0, 2.0, (1,))

    def observed(self) -> Any:
        angle, turning = self.state
        return np.array([np.cos(angle), np.sin(angle), turning], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """A turn with some force."""
        angle, turning = self.state
        force = float(np.clip(np.asarray(action).reshape(-1)[0], -2, 2))
        turning = np.clip(turning + (15 * np.sin(angle) + 3 * force) * 0.05, -8, 8)
        self.state = np.array([angle + turning * 0.05, turning])
        self.steps += 1
        cost = ((angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * turning**2 + 0.001 * force**2
        return self.observed(), -float(cost), False, self.steps >= 200, {}


def make(name: str, **_: Any) -> Env:
    """A world by its name: with a pole, or for all that take forces a pendulum."""
    return CartPole() if name.startswith("CartPole") else Pendulum()
