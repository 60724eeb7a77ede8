"""torch.utils.checkpoint: values between layers are computed again for gradients, not kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import webgrad as wg

from ..tensor import adopt

__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_debug_enabled"]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = None,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """A function's results, whose intermediate values are computed again for gradients.

    Random numbers are the same the second time, whatever `preserve_rng_state` says.

    >>> import webgrad.torch as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.utils.checkpoint.checkpoint(lambda x: (x * x).sum(), x, use_reentrant=False).backward()
    >>> x.grad.tolist()
    [2.0, 2.0]
    """

    def adopted(*args: Any, **kwargs: Any) -> Any:
        return function(*adopt(args), **adopt(kwargs))

    return adopt(wg.checkpoint(adopted, *args, **kwargs))


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **options: Any
) -> Any:
    """A chain of modules in so many segments, of which only the values between them are kept.

    >>> import webgrad.torch as torch
    >>> layers = [torch.nn.Linear(2, 2) for _ in range(4)]
    >>> torch.utils.checkpoint.checkpoint_sequential(layers, 2, torch.ones(1, 2)).shape
    torch.Size([1, 2])
    """
    layers: list[Any] = list(functions.children() if hasattr(functions, "children") else functions)
    size = max(len(layers) // segments, 1)
    starts = [at * size for at in range(min(segments, len(layers)))]
    for start, end in pairwise([*starts, len(layers)]):
        input = checkpoint(_chain(layers[start:end]), input)
    return input


def _chain(layers: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for each in layers:
            x = each(x)
        return x

    return run


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: Any) -> Any:
    """Taken, and means nothing here."""
    yield
