"""Random tensors, seeds and generators.

In: sizes and options as torch has them. Out: tensors. `manual_seed` repeats what follows; the numbers are not
torch's, since every GPU gives the same ones here.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any

import webgrad as wg

from .binding import bind
from .creation import OPTIONS, factory, made, sizes
from .defaults import integer_of
from .devices import place
from .tensor import Array, written

__all__ = ["Generator", "base_seed", "default_generator", "fork_rng", "functions", "own_stream"]

ROWS = """
[function]
rand_like(input, *, generator=None, $like) = made(_rand(tuple(input.shape), dtype or input.dtype,
    place(device) or input.device, generator), requires_grad)
randn_like(input, *, generator=None, $like) = made(_randn(tuple(input.shape), dtype or input.dtype,
    place(device) or input.device, generator), requires_grad)
randint_like(input, low=0, high=None, *, generator=None, $like) = made(integers(low, high, tuple(input.shape),
    dtype or input.dtype, place(device) or input.device, generator), requires_grad)
randint(low=0, high=None, size=None, *, generator=None, out=None, $options) = made(integers(*limits(low, high,
    size), dtype, place(device), generator), requires_grad)
randperm(n, *, generator=None, out=None, $options) = source(generator).permutation(n,
    device=place(device)).astype(dtype or integer_of(place(device)))
normal(mean=0.0, std=1.0, size=None, *, generator=None, out=None, $options) = made(normal_of(mean, std, size,
    generator, dtype, place(device)), requires_grad)
poisson(input, generator=None) = source(generator).poisson(input, dtype=input.dtype)
binomial(count, prob, generator=None) = source(generator).binomial(count, prob, dtype=count.dtype)
manual_seed(seed) = seeded(seed)
seed() = fresh_seed()
initial_seed() = current().initial_seed()
get_rng_state() = current().get_state()
set_rng_state(new_state) = current().set_state(new_state)

[function method]
bernoulli(input, p=None, *, generator=None, out=None) = drawn(input, p, generator)
multinomial(input, num_samples, replacement=False, *, generator=None, out=None) = chosen(input, num_samples,
    replacement, generator)

[method]
normal_(input, mean=0, std=1, *, generator=None) = written(input,
    source(generator).normal(shape=tuple(input.shape), mean=float(mean), std=float(std),
    dtype=floating(input), device=input.device))
uniform_(input, from_=0, to=1, *, generator=None) = written(input,
    source(generator).uniform(shape=tuple(input.shape), low=float(from_), high=float(to),
    dtype=floating(input), device=input.device))
bernoulli_(input, p=0.5, *, generator=None) = written(input, source(generator).bernoulli(p,
    tuple(input.shape), device=input.device).astype(input.dtype))
random_(input, from_=0, to=None, *, generator=None) = written(input, integers(*span(input, from_, to),
    tuple(input.shape), None, input.device, generator).astype(input.dtype))
exponential_(input, lambd=1, *, generator=None) = written(input,
    -wg.log1p(-source(generator).uniform(shape=tuple(input.shape), dtype=floating(input),
    device=input.device)) / above(0, lambd, "exponential_", "lambda"))
log_normal_(input, mean=1, std=2, *, generator=None) = written(input,
    wg.exp(source(generator).normal(shape=tuple(input.shape), mean=mean, std=above(0, std, "log_normal_",
    "std"), dtype=floating(input), device=input.device)))
geometric_(input, p, *, generator=None) = written(input,
    wg.ceil(wg.log1p(-source(generator).uniform(shape=tuple(input.shape), device=input.device)) /
    wg.log1p(wg.asarray(-p, dtype=wg.float32, device=input.device))).astype(input.dtype))
cauchy_(input, median=0, sigma=1, *, generator=None) = written(input, median + above(0, sigma, "cauchy_",
    "sigma") * wg.tan(3.141592653589793 * (source(generator).uniform(shape=tuple(input.shape),
    dtype=floating(input), device=input.device) - 0.5)))
"""


class Generator:
    """A sequence of random numbers of its own: `Generator().manual_seed(7)`, given as `generator=`."""

    def __init__(self, device: Any = "cpu", numbers: Any = None) -> None:
        self.device = device
        self._seed = 0
        self.numbers = wg.random.Generator(0) if numbers is None else numbers

    def manual_seed(self, seed: int) -> Generator:
        """Begin anew with a seed."""
        self._seed = int(seed)
        if self.numbers is wg.random:
            wg.random.seed(self._seed % (1 << 64))
        else:
            self.numbers = wg.random.Generator(self._seed % (1 << 64))
        return self

    def seed(self) -> int:
        """Begin anew with a seed that nobody knows."""
        self.manual_seed(secrets.randbits(63))
        return self._seed

    def initial_seed(self) -> int:
        """The seed that it began with."""
        return self._seed

    def get_state(self) -> Any:
        """What `set_state` goes on from."""
        return self.numbers.get_state()

    def set_state(self, state: Any) -> None:
        """Go on from a state."""
        self.numbers.set_state(state)


default_generator = Generator(numbers=wg.random)
_streams = threading.local()  # generators of threads that have one of their own


def source(generator: Any) -> Any:
    """What draws: a generator's numbers, or the common ones."""
    return (current() if generator is None else generator).numbers


def current() -> Generator:
    """The generator of what names none: the common one, and in a thread that has its own stream that one."""
    return getattr(_streams, "generator", default_generator)


@contextlib.contextmanager
def own_stream(generator: Generator) -> Iterator[None]:
    """While it is entered, what this thread draws comes from a generator of its own."""
    _streams.generator = generator
    try:
        yield
    finally:
        del _streams.generator


def base_seed(generator: Any = None) -> int:
    """A seed for generators that follow from this one."""
    return int(integers(0, 1 << 31, (), wg.int64, "cpu", generator).item())


def seeded(seed: int) -> Any:
    """The common generator, begun anew."""
    return current().manual_seed(seed)


def fresh_seed() -> int:
    """A new seed for the common generator."""
    return current().seed()


def above(least: float, value: Any, name: str, what: str) -> Any:
    """A parameter that is larger than a number."""
    if not value > least:
        raise RuntimeError(f"{name} expects {what} > {least}, but found {what}={value}")
    return value


def floating(x: Any) -> Any:
    """The dtype of floats to draw for a tensor."""
    return x.dtype if x.dtype.kind == "f" else wg.float32


def limits(low: Any, high: Any, size: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """randint(high, size) or randint(low, high, size)."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    return low, high, sizes((size,))


def span(x: Any, first: int, last: int | None) -> tuple[int, int]:
    """The range of random_: all integers that the dtype holds exactly, up to 2**32, where none is given."""
    if last is not None:
        return first, last
    exact = {"float32": 1 << 24, "float16": 1 << 11, "bfloat16": 1 << 8, "bool": 2}
    if first:
        return 0, first
    return 0, exact.get(x.dtype.name, min(1 << 31, 1 << (x.dtype.bits - (x.dtype.kind == "i"))))


def integers(low: Any, high: Any, shape: Any, dtype: Any, device: Any, generator: Any) -> Any:
    """Integers from low up to and without high."""
    if high is None:
        low, high = 0, low
    wanted = wg.as_dtype(dtype) if dtype is not None else integer_of(device)
    drawn = wanted if wanted.kind in "iu" and wanted.itemsize >= 4 else wg.int32
    found = source(generator).integers(int(low), int(high), shape=shape, dtype=drawn, device=device)
    return found if drawn is wanted else found.astype(wanted)


def normal_of(mean: Any, std: Any, size: Any, generator: Any, dtype: Any, device: Any) -> Any:
    """Normal numbers whose mean and deviation are numbers or tensors."""
    like = mean if isinstance(mean, Array) else std if isinstance(std, Array) else None
    if like is None:
        shape = sizes((size,)) if size is not None else ()
        return source(generator).normal(
            shape=shape, mean=float(mean), std=float(std), dtype=dtype or wg.float32, device=device
        )
    both = [each for each in (mean, std) if isinstance(each, Array)]
    shape = wg.broadcast_shapes(*(tuple(each.shape) for each in both))
    unit = source(generator).normal(shape=shape, dtype=like.dtype, device=like.device)
    return mean + std * unit


def drawn(x: Any, p: Any, generator: Any) -> Any:
    """1 with the probability that each element is, or with p."""
    chance = x if p is None else p
    return source(generator).bernoulli(chance, tuple(x.shape), device=x.device).astype(x.dtype)


def chosen(x: Any, count: int, replacement: bool, generator: Any) -> Any:
    """Indices of a row's weights, drawn by them."""
    if x.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if count < 1:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if x.dtype.kind != "f":
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {x.dtype.name}")
    if not replacement and count > x.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    return _largest(x.detach(), count, replacement, _uncommon(generator))


def choices(chances: Any, count: int, shape: tuple[int, ...]) -> Any:
    """So many indices of each row of chances, drawn by them, in a shape that begins with their number."""
    return _choices(chances, count, shape, _uncommon(None))


def _uncommon(generator: Any) -> Any:
    """What draws, or None if that is the common generator: pure functions draw from that one alone."""
    numbers = source(generator)
    return None if numbers is wg.random else numbers


@wg.pure
def _choices(chances: Any, count: int, shape: tuple[int, ...], numbers: Any) -> Any:
    rows = wg.reshape(chances, (-1, chances.shape[-1]))
    return wg.reshape(wg.swapaxes(_largest(rows, count, True, numbers), 0, 1), shape)


@wg.pure
def _largest(x: Any, count: int, replacement: bool, numbers: Any) -> Any:
    """Where log weight + Gumbel noise is largest; without a generator the noise is the common one's."""
    weights = wg.log(x.astype(wg.float32) if x.dtype.is_half else x)
    shape = tuple(x.shape)
    if replacement:
        shape = (*shape[:-1], count, shape[-1])
        weights = wg.expand(wg.unsqueeze(weights, -2), shape)
    unit = (numbers or wg.random).uniform(shape=shape, dtype=weights.dtype, device=x.device)
    keys = weights - wg.log(-wg.log(wg.clip(unit, 1e-20, 1 - 1e-7)))
    found = wg.argmax(keys, -1) if replacement else wg.topk(keys, count, axis=-1)[1]
    return found.astype(integer_of(x.device))


def in_parts(draw: Callable[[Any], Any], dtype: Any) -> Any:
    """Numbers of a dtype; complex ones have two parts."""
    kind = wg.as_dtype(dtype)
    if kind.kind != "c":
        return draw(kind)
    part = wg.float32 if kind is wg.complex64 else wg.float64
    return wg.complex(draw(part), draw(part))


def _rand(shape: Any, dtype: Any, device: Any, generator: Any = None) -> Any:
    return in_parts(lambda kind: source(generator).uniform(shape=shape, dtype=kind, device=device), dtype)


def _randn(shape: Any, dtype: Any, device: Any, generator: Any = None) -> Any:
    found = in_parts(lambda kind: source(generator).normal(shape=shape, dtype=kind, device=device), dtype)
    return found * 0.5**0.5 if found.dtype.kind == "c" else found


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **names: Any) -> Iterator[None]:
    """What is drawn while it is entered changes nothing for what is drawn afterwards."""
    state = current().get_state()
    try:
        yield
    finally:
        if enabled:
            current().set_state(state)


functions = bind(ROWS, globals(), OPTIONS) | {"rand": factory(_rand), "randn": factory(_randn)}
_own = ("get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state")  # torch.random's own
globals().update({name: functions[name] for name in _own})
__all__ += _own
