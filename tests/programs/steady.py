"""What is made the same on both sides before a program runs: random numbers, dropout, weights.

In: the module `torch`, whichever it is. Out: the same module, whose random functions give NumPy's numbers
by the function, the shape and how many times that was asked for; and initial weights that one side writes
and the other reads, in the order in which modules are first called and optimisers made.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["Weights", "arrays", "steady", "without_dropout"]

Numbers = Callable[[np.random.Generator, tuple[int, ...]], Any]
# torch's name → numbers of a shape
SHAPED: dict[str, Numbers] = {
    "randn": lambda rng, shape: rng.standard_normal(shape).astype(np.float32),
    "rand": lambda rng, shape: rng.random(shape).astype(np.float32),
}


def steady(torch: Any) -> None:
    """Have random functions give the same numbers with every library."""
    random.seed(0)
    np.random.seed(0)  # programs draw from it
    torch.manual_seed(0)
    asked: Counter[tuple[Any, ...]] = Counter()

    def rng_of(name: str, *shape: int) -> np.random.Generator:
        asked[name, shape] += 1
        return np.random.default_rng((zlib.crc32(name.encode()), asked[name, shape], *shape))

    def made(values: Any, like: Any, options: dict[str, Any]) -> Any:
        tensor = torch.from_numpy(np.asarray(values))
        kind = options.get("dtype") or (like.dtype if like is not None and like.is_floating_point() else None)
        tensor = tensor.to(kind) if kind is not None else tensor
        place = options.get("device", None if like is None else like.device)
        tensor = tensor.to(place) if place is not None else tensor
        return tensor.requires_grad_() if options.get("requires_grad") else tensor

    for name, numbers in SHAPED.items():
        _put(torch, name, functools.partial(_shaped, name, numbers, rng_of, made))
        _put(torch, f"{name}_like", functools.partial(_like, name, numbers, rng_of, made))

    streams: dict[tuple[int, int], np.random.Generator] = {}

    def randint(*given: Any, **options: Any) -> Any:
        # One after another, since samplers draw as many at once as they like.
        low, high, size = _bounds(given, options)
        rng = streams.setdefault((low, high), np.random.default_rng((low & 0xFFFF, high)))
        return made((low + rng.random(tuple(size)) * (high - low)).astype(np.int64), None, options)

    def randperm(count: int, **options: Any) -> Any:
        # The same each time, since samplers ask once or twice for an order.
        return made(np.random.default_rng(count).permutation(count), None, options)

    def multinomial(weights: Any, num_samples: int, replacement: bool = False, **_: Any) -> Any:
        rows = np.atleast_2d(weights.detach().double().cpu().numpy())
        rng = rng_of("multinomial", num_samples, *rows.shape)
        drawn = [rng.choice(len(row), num_samples, replacement, row / row.sum()) for row in rows]
        return made(np.array(drawn).reshape((*weights.shape[:-1], num_samples)), None, {})

    def bernoulli(chances: Any, *_: Any, **__: Any) -> Any:
        shape = tuple(chances.shape)
        return (made(rng_of("bernoulli", *shape).random(shape).astype(np.float32), chances, {}) < chances).to(
            chances.dtype
        )

    def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **_: Any) -> Any:
        shapes = [tuple(each.shape) for each in (mean, std) if isinstance(each, torch.Tensor)]
        unit = torch.randn(np.broadcast_shapes(*shapes) if size is None else tuple(size))
        return mean + std * unit  # distributions draw by one or the other

    if (drawing := sys.modules.get("torch.distributions.normal")) is not None:
        vars(drawing)["_standard_normal"] = lambda shape, dtype, device: torch.randn(shape, dtype=dtype)

    for each in (randint, randperm, multinomial, bernoulli, normal):
        _put(torch, each.__name__, each)


def _put(torch: Any, name: str, function: Callable[..., Any]) -> None:
    setattr(torch, name, function)
    drawn = getattr(torch.random, "functions", None)  # where webgrad.torch's samplers look
    if drawn is not None and name in drawn:
        drawn[name] = function


def _shaped(name: str, numbers: Numbers, rng_of: Any, made: Any, *size: Any, **options: Any) -> Any:
    given = size or (options["size"],)
    flat = tuple(int(each) for each in (given[0] if isinstance(given[0], tuple | list) else given))
    return made(numbers(rng_of(name, *flat), flat), None, options)


def _like(name: str, numbers: Numbers, rng_of: Any, made: Any, like: Any, **options: Any) -> Any:
    return made(numbers(rng_of(name, *like.shape), tuple(like.shape)), like, options)


def _bounds(given: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, int, Sequence[int]]:
    """The arguments of randint, which has its lower bound in front or not at all."""
    rest = list(given)
    size = options["size"] if "size" in options else rest.pop()
    high = options["high"] if "high" in options else rest.pop()
    low = options["low"] if "low" in options else rest.pop() if rest else 0
    return int(low), int(high), tuple(size)


def without_dropout(module: Any) -> None:
    """Have nothing in a module dropped: what is dropped is the library's own choice."""
    for each in module.modules():
        for name in ("p", "dropout", "dropout_p", "drop_prob", "drop_rate"):
            if isinstance(each.__dict__.get(name), float):
                setattr(each, name, 0.0)


class Weights:
    """Initial weights in the order in which they are asked about: written, or read and put into place."""

    def __init__(self, torch: Any, known: dict[str, Any] | None) -> None:
        self.torch = torch
        self.known = known  # None: this side writes them
        self.seen: dict[str, Any] = {}
        self._count = itertools.count()
        self._met: dict[int, Any] = {}  # kept alive, so that an id is no other's

    def of(self, tensors: Iterator[Any]) -> None:
        """Write or read these tensors, unless that was done before."""
        for tensor in tensors:
            if id(tensor) in self._met:
                continue
            self._met[id(tensor)] = tensor
            name = f"weight.{next(self._count):05d}"
            if self.known is None:
                self.seen[name] = tensor.detach().cpu().numpy().copy()
                continue
            value = self.known[name]
            if tuple(tensor.shape) != value.shape:
                raise ValueError(f"{name} has shape {value.shape} with torch, and {tuple(tensor.shape)} here")
            tensor.data.copy_(self.torch.from_numpy(value))

    def of_module(self, module: Any) -> None:
        """A module's parameters and buffers, in the order of its state."""
        without_dropout(module)
        self.of(itertools.chain(module.parameters(), module.buffers()))


def arrays(value: Any, torch: Any) -> Iterator[Any]:
    """The tensors in a nest of tuples, lists, dicts and records, as NumPy's arrays."""
    if isinstance(value, torch.Tensor):
        yield value.detach().cpu().numpy().copy()
    elif isinstance(value, dict):
        for each in value.values():
            yield from arrays(each, torch)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from arrays(each, torch)
    elif hasattr(value, "__dataclass_fields__"):
        yield from arrays(vars(value), torch)
