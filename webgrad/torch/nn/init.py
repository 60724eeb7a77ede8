"""torch.nn.init: values that parameters begin with.

In: a tensor. Out: the same tensor, with other values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import webgrad as wg

from ..binding import bind
from ..random import source

__all__: list[str] = []

ROWS = """
[function]
uniform_ uniform(tensor, a=0.0, b=1.0, generator=None) = by(generator, init.uniform_, tensor, a, b)
normal_ normal(tensor, mean=0.0, std=1.0, generator=None) = by(generator, init.normal_, tensor, mean, std)
trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None) = by(generator, init.trunc_normal_,
    tensor, mean, std, a, b)
constant_ constant(tensor, val) = init.constant_(tensor, val)
ones_(tensor) = init.ones_(tensor)
zeros_(tensor) = init.zeros_(tensor)
eye_ eye(tensor) = init.eye_(tensor)
dirac_ dirac(tensor, groups=1) = init.dirac_(tensor, groups)
xavier_uniform_ xavier_uniform(tensor, gain=1.0, generator=None) = by(generator, init.xavier_uniform_, tensor,
    gain)
xavier_normal_ xavier_normal(tensor, gain=1.0, generator=None) = by(generator, init.xavier_normal_, tensor,
    gain)
kaiming_uniform_ kaiming_uniform(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None) =
    by(generator, init.kaiming_uniform_, tensor, a, mode, nonlinearity)
kaiming_normal_ kaiming_normal(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None) =
    by(generator, init.kaiming_normal_, tensor, a, mode, nonlinearity)
orthogonal_ orthogonal(tensor, gain=1, generator=None) = by(generator, init.orthogonal_, tensor, gain)
sparse_ sparse(tensor, sparsity, std=0.01, generator=None) = by(generator, init.sparse_, tensor, sparsity,
    std)
calculate_gain(nonlinearity, param=None) = init.calculate_gain(nonlinearity, param)
_calculate_fan_in_and_fan_out(tensor) = init.fan_in_and_fan_out(tensor)
_calculate_correct_fan(tensor, mode) = init.fan_in_and_fan_out(tensor)[fans(mode)]
_no_grad_uniform_(tensor, a, b, generator=None) = by(generator, init.uniform_, tensor, a, b)
_no_grad_normal_(tensor, mean, std, generator=None) = by(generator, init.normal_, tensor, mean, std)
_no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None) = by(generator, init.trunc_normal_, tensor,
    mean, std, a, b)
_no_grad_fill_(tensor, val) = init.constant_(tensor, val)
_no_grad_zero_(tensor) = init.zeros_(tensor)
"""

init = wg.nn.init


def by(generator: Any, function: Callable[..., Any], *args: Any) -> Any:
    """A function that draws, from a generator's numbers."""
    if generator is None:
        return function(*args)
    numbers, before = source(generator), wg.random.get_state()
    wg.random.set_state(numbers.get_state())
    try:
        return function(*args)
    finally:
        numbers.set_state(wg.random.get_state())
        if numbers is not wg.random:
            wg.random.set_state(before)


def fans(mode: str) -> int:
    """Which of the two numbers a mode is."""
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return modes.index(mode.lower())


functions = bind(ROWS, globals())
globals().update(functions)
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ += [each for each in functions if each[0] != "_"]
