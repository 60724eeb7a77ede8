"""Von Mises' distribution of angles.

In: a direction and a concentration around it. Out: angles from -pi to pi.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad.torch as torch
from webgrad.torch import Size

from . import constraints
from .distribution import Distribution
from .utils import rules, unit

__all__ = ["VonMises"]

_TRIES = 24  # each is accepted with a chance above 0.65


class VonMises(Distribution):
    """Angles around a direction, the closer the larger the concentration is."""

    arg_constraints = rules(loc=constraints.real, concentration=constraints.positive)
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._take(validate_args, loc=loc, concentration=concentration)

    loc: Any
    concentration: Any

    @property
    def mean(self) -> Any:
        """The mean direction."""
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """1 minus the mean length of the sum of two such directions."""
        return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)

    def log_prob(self, value: Any) -> Any:
        part = torch.cos(self._checked(value) - self.loc) - 1
        return self.concentration * part - math.log(2 * math.pi) - torch.special.i0e(self.concentration).log()

    def sample(self, sample_shape: Any = ()) -> Any:
        """By Best and Fisher's rejection from a wrapped Cauchy distribution, several proposals at once."""
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            k = self.concentration
            tau = 1 + torch.sqrt(1 + 4 * k**2)
            rho = (tau - torch.sqrt(2 * tau)) / (2 * k)
            usual = (1 + rho**2) / (2 * rho)
            r = torch.where(k < 1e-3, 1 / k + k, usual)
            first, second, third = (unit((_TRIES, *shape), k) for _ in range(3))
            z = torch.cos(math.pi * first)
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = (c * (2 - c) - second > 0) | ((c / second).log() + 1 - c >= 0)
            angle = (third - 0.5).sign() * torch.acos(f.clamp(-1, 1))
            chosen = accepted.int().argmax(0, keepdim=True)
            found = torch.gather(angle, 0, chosen).squeeze(0)
            return (found + math.pi + self.loc) % (2 * math.pi) - math.pi
