"""Counter-based random tensors: an element's bits are Threefry of its index, with a key for each draw.

In: a shape and a distribution. Out: lazy tensors; nothing is stored but a seed and the number of draws. The
invariant: the same seed, draw and index give the same 32 bits on every device, so integers, bernoulli and
permutations are equal everywhere, and floats to the last bits of the device's arithmetic.
"""

from __future__ import annotations

import functools
import math
import secrets
import threading
from collections.abc import Sequence
from operator import index
from typing import Any

from .. import dtypes
from ..arrays import has_numpy, np
from ..dtypes import DType, as_dtype
from ..errors import ArgumentError, DTypeError, ShapeError
from ..graph.node import Node, make, scalar
from ..graph.trace import words_of
from ..ops import primitives
from ..ops.host_arrays import check_dtype
from ..ops.primitives import elementwise
from ..ops.references import THREEFRY_PARITY, THREEFRY_ROTATIONS
from ..ops.shapes import broadcast, normalise_axis
from ..ops.table import TABLE
from ..porting import refusing
from ..runtime.device import DeviceLike, open_device
from ..tensor import Tensor
from .array.creation import as_number, as_shape, as_tensor
from .distributions import Sampling
from .spellings import spelled

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "binomial",
    "choice",
    "dirichlet",
    "exponential",
    "gamma",
    "get_state",
    "integers",
    "normal",
    "permutation",
    "poisson",
    "rand",
    "randint",
    "randn",
    "seed",
    "set_state",
    "uniform",
]

Shape = int | Sequence[int]
Key = tuple[int, int]
_WORD = 0xFFFFFFFF
_BLOCK = 256  # draws whose keys are made at once, but for the first, of generators that draw seldom
_DIGITS = {dtypes.float32: 24, dtypes.float16: 11, dtypes.bfloat16: 8}  # binary digits a float holds


def threefry(key: Key, counter: Key) -> Key:
    """Threefry-2x32 with 20 rounds over two 32-bit words: what derives a draw's key from the generator's."""
    keys = (*key, key[0] ^ key[1] ^ THREEFRY_PARITY)
    x, y = (counter[0] + keys[0]) & _WORD, (counter[1] + keys[1]) & _WORD
    for block in range(5):
        for turn in THREEFRY_ROTATIONS[block % 2]:
            x = (x + y) & _WORD
            y = ((y << turn | y >> (32 - turn)) & _WORD) ^ x
        x = (x + keys[(block + 1) % 3]) & _WORD
        y = (y + keys[(block + 2) % 3] + block + 1) & _WORD
    return x, y


def _key_of(key: Key, draw: int) -> Key:
    """The key of a draw. Whoever draws often has those of many draws made at once."""
    block, at = divmod(draw, _BLOCK)
    if not block or not has_numpy():
        return threefry(key, (draw & _WORD, draw >> 32))
    return _keys_of(key, block)[at]


@functools.lru_cache(64)
def _keys_of(key: Key, block: int) -> Sequence[Key]:
    """The keys of as many draws as a block has."""
    draws = np.arange(_BLOCK, dtype=np.uint64) + np.uint64(block * _BLOCK)
    first, second = threefry(key, (draws & np.uint64(_WORD), draws >> np.uint64(32)))  # type: ignore[arg-type]
    return [*zip(first.tolist(), second.tolist(), strict=True)]  # type: ignore[attr-defined]


class Generator(Sampling):
    """A stream of random draws; threads may share one. Without a seed it starts at a random one.

    >>> one, same = wg.random.Generator(7), wg.random.Generator(7)
    >>> one.integers(0, 10, 5).tolist() == same.integers(0, 10, 5).tolist()
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = threading.Lock()
        self._seed = 0
        self._draws = 0
        self.seed(seed)

    def __repr__(self) -> str:
        return f"Generator(seed={self._seed}, draws={self._draws})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self.get_state()  # a lock can be neither copied nor pickled

    # State

    def seed(self, seed: int | None = None) -> None:
        """Start the stream of a seed, 0 to 2**64 - 1; None takes a random seed.

        >>> wg.random.seed(7)
        >>> first = wg.random.uniform(3).tolist()
        >>> wg.random.seed(7)
        >>> wg.random.uniform(3).tolist() == first
        True
        """
        self.set_state((secrets.randbits(64) if seed is None else seed, 0))

    def get_state(self) -> tuple[int, int]:
        """The seed, and how many draws were taken; `set_state` goes on from there.

        >>> wg.random.seed(7)
        >>> x = wg.random.uniform(3)
        >>> wg.random.get_state()
        (7, 1)
        """
        with self._lock:
            return self._seed, self._draws

    def set_state(self, state: tuple[int, int]) -> None:
        """Go on from what `get_state` gave.

        >>> state = wg.random.get_state()
        >>> first = wg.random.uniform(3).tolist()
        >>> wg.random.set_state(state)
        >>> wg.random.uniform(3).tolist() == first
        True
        """
        try:
            first, draws = (index(each) for each in state)
        except (TypeError, ValueError):
            raise DTypeError(f"random: a state is (seed, draws), two integers, not {state!r}") from None
        if not (0 <= first < 2**64 and 0 <= draws < 2**64):
            raise ArgumentError(
                f"random: seed and draws must be from 0 to 2**64 - 1, not {first} and {draws}"
            )
        with self._lock:
            self._seed, self._draws = first, draws

    def _words(self, count: int) -> Sequence[int]:
        """The words of the next draws' keys."""
        draw = functools.partial(self._next_words, count)
        return words_of(draw, 2 * count, self is default_generator)

    def _next_words(self, count: int) -> list[int]:
        return [word for key in self._next_keys(count) for word in key]

    def _next_keys(self, count: int) -> list[Key]:
        with self._lock:
            first, key = self._draws, (self._seed & _WORD, self._seed >> 32)
            self._draws = (first + count) % 2**64
        return [_key_of(key, draw % 2**64) for draw in range(first, first + count)]

    def _bits(self, op: str, shape: tuple[int, ...], device: Any, count: int = 1) -> list[Node]:
        """`count` uint32 words for each element. The keys are parameters, so all draws share a kernel."""
        size = math.prod(shape)
        if size > 2**32:
            raise ShapeError(f"random.{op}: {shape} has more than 2**32 elements; make it in parts")
        place = primitives.reshape(primitives.iota(size, dtypes.uint32, device), shape)
        words = [scalar(word, dtypes.uint32, device) for word in self._words(count)]
        return [make(TABLE["random_bits"], (place, *words[at : at + 2])) for at in range(0, 2 * count, 2)]

    def _unit(self, op: str, shape: tuple[int, ...], dtype: DType, device: Any) -> Node:
        """From 0 to 1 without 1, in steps of the float's precision."""
        if dtype is dtypes.float64:
            high, low = self._bits(op, shape, device, 2)
            coarse = _scaled(high, dtype, 2.0**-32)
            return elementwise(_ADD, coarse, _scaled(elementwise(_SHIFT, low, 11), dtype, 2.0**-53))
        digits = _DIGITS[dtype]
        (bits,) = self._bits(op, shape, device)
        return _scaled(elementwise(_SHIFT, bits, 32 - digits), dtypes.float32, 2.0**-digits)

    # Distributions

    @spelled
    def uniform(
        self,
        shape: Shape = (),
        *numbers: Any,
        low: float = 0.0,
        high: float = 1.0,
        dtype: Any = dtypes.float32,
        device: DeviceLike = None,
    ) -> Tensor:
        """Floats from `low` up to and without `high`, all equally likely; both are given by name.

        From 0 to 1 they are the multiples of 2**-24 (float64: 2**-53, float16: 2**-11, bfloat16: 2**-8);
        another range is rounded, and may round to `high`.

        >>> wg.random.uniform((2, 3)).shape
        (2, 3)
        """
        _refuse_numbers("uniform", (shape, *numbers), "low", "high")
        sizes, wanted, where = _target("uniform", shape, dtype, device)
        first, last = _finite("uniform", low, "low"), _finite("uniform", high, "high")
        if first > last:
            raise ArgumentError(f"random.uniform: low {first} is above high {last}")
        unit = self._unit("uniform", sizes, wanted, where)
        if last - first != 1:
            unit = elementwise(_MULTIPLY, unit, last - first)
        return Tensor(primitives.cast(elementwise(_ADD, unit, first) if first else unit, wanted))

    @spelled
    def normal(
        self,
        shape: Shape = (),
        *numbers: Any,
        mean: float = 0.0,
        std: float = 1.0,
        dtype: Any = dtypes.float32,
        device: DeviceLike = None,
    ) -> Tensor:
        """Floats of the normal distribution, by Box and Muller's method; none is further than 6.8 `std` away.

        The mean and the standard deviation are given by name.

        >>> wg.random.normal(4).dtype
        webgrad.float32
        """
        _refuse_numbers("normal", (shape, *numbers), "mean", "std")
        sizes, wanted, where = _target("normal", shape, dtype, device)
        centre, width = _finite("normal", mean, "mean"), _finite("normal", std, "std")
        if width < 0:
            raise ArgumentError(f"random.normal: std must be 0 or more, not {width}")
        computed = dtypes.float64 if wanted is dtypes.float64 else dtypes.float32
        if computed is dtypes.float64:
            distance = elementwise(TABLE["subtract"], 1.0, self._unit("normal", sizes, computed, where))
        else:
            (bits,) = self._bits("normal", sizes, where)  # all 32 bits: small numbers give the tails
            middle = elementwise(_ADD, primitives.cast(bits, computed), 0.5)
            distance = elementwise(_MULTIPLY, middle, 2.0**-32)
        radius = elementwise(TABLE["sqrt"], elementwise(_MULTIPLY, elementwise(TABLE["log"], distance), -2.0))
        angle = elementwise(_MULTIPLY, self._unit("normal", sizes, computed, where), 2 * math.pi)
        value = elementwise(_MULTIPLY, radius, elementwise(TABLE["cos"], angle))
        scaled = elementwise(_MULTIPLY, value, width) if width != 1 else value
        return Tensor(primitives.cast(elementwise(_ADD, scaled, centre) if centre else scaled, wanted))

    @spelled
    def integers(
        self,
        low: int,
        high: int | None = None,
        shape: Shape = (),
        dtype: Any = dtypes.int32,
        device: DeviceLike = None,
    ) -> Tensor:
        """Integers from `low` (0 where only one is given) up to and without `high`.

        The range is at most 2**32 wide; how likely two numbers are differs by less than its width / 2**32.

        >>> wg.random.integers(5, shape=3).dtype
        webgrad.int32
        """
        first, last = (
            (0, _whole("integers", low))
            if high is None
            else (_whole("integers", low), _whole("integers", high))
        )
        sizes, where = as_shape("random.integers", shape), open_device(device)
        wanted = as_dtype(dtype)
        check_dtype("random.integers", wanted, where)
        if wanted.kind not in "iu":
            raise DTypeError(f"random.integers gives integers, not {wanted.name}: use uniform, or astype")
        if not 0 < last - first <= 2**32:
            raise ArgumentError(
                f"random.integers: from {first} up to {last} there must be 1 to 2**32 numbers"
            )
        for each in (first, last - 1):
            primitives.constant("random.integers", each, wanted, where)
        (bits,) = self._bits("integers", sizes, where)
        part = bits if last - first == 2**32 else _multiply_high(bits, last - first)
        computed = dtypes.int32 if wanted.is_packed else wanted
        number = primitives.cast(part, computed)
        if first:
            number = elementwise(_ADD, number, first)
        return Tensor(primitives.cast(number, wanted))

    @spelled
    def bernoulli(
        self,
        p: float | Tensor,
        shape: Shape | None = None,
        dtype: Any = dtypes.bool,
        device: DeviceLike = None,
    ) -> Tensor:
        """True with probability p, to 2**-24; p may be a tensor, whose shape is taken if none is given.

        >>> wg.random.bernoulli(1.0, 3).tolist()
        [True, True, True]
        """
        if isinstance(p, Tensor):
            if p.dtype.kind != "f":
                raise DTypeError(f"random.bernoulli: probabilities are floats, not {p.dtype.name}")
            where: Any = p.device
            sizes = p.shape if shape is None else as_shape("random.bernoulli", shape)
            if broadcast("random.bernoulli", [p.shape, sizes]) != sizes:
                raise ShapeError(f"random.bernoulli: p of shape {p.shape} does not broadcast to {sizes}")
            chance: Node | float = primitives.cast(p.node, dtypes.float32)
        else:
            where = open_device(device)
            sizes = as_shape("random.bernoulli", () if shape is None else shape)
            chance = _finite("bernoulli", p, "p")
            if not 0 <= chance <= 1:
                raise ArgumentError(f"random.bernoulli: p must be a probability, 0 to 1, not {chance}")
        wanted = as_dtype(dtype)
        check_dtype("random.bernoulli", wanted, where)
        unit = self._unit("bernoulli", sizes, dtypes.float32, where)
        return Tensor(primitives.cast(elementwise(TABLE["less"], unit, chance), wanted))

    @spelled
    def permutation(self, x: int | Tensor, axis: int = 0, device: DeviceLike = None) -> Tensor:
        """The numbers below x in random order, int32; or a tensor's slices along an axis in random order.

        It is the order of random 32-bit keys. Equal keys, one pair in 2**32, leave the smaller number first.

        >>> sorted(wg.random.permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if isinstance(x, Tensor):
            along = normalise_axis("random.permutation", axis, x.ndim)
            return Tensor(
                primitives.take(x.node, self._shuffled("permutation", x.shape[along], x.device), along)
            )
        return Tensor(self._shuffled("permutation", _length("permutation", x), open_device(device)))

    def _shuffled(self, op: str, length: int, device: Any) -> Node:
        (bits,) = self._bits(op, (length,), device)
        return primitives.sort_order(bits)

    @spelled
    def choice(
        self,
        x: int | Tensor,
        shape: Shape = (),
        replace: bool = True,
        axis: int = 0,
        device: DeviceLike = None,
    ) -> Tensor:
        """Numbers below x, or slices of a tensor along an axis; without `replace` each at most once.

        >>> wg.random.choice(wg.asarray([10, 20, 30]), 3, replace=False).sum().item()
        60
        """
        sizes = as_shape("random.choice", shape)
        along = normalise_axis("random.choice", axis, x.ndim) if isinstance(x, Tensor) else 0
        length = x.shape[along] if isinstance(x, Tensor) else _length("choice", x)
        where: Any = x.device if isinstance(x, Tensor) else open_device(device)
        count = math.prod(sizes)
        if count and (length == 0 or (not replace and count > length)):
            how = "" if replace else " without replacement"
            raise ArgumentError(f"random.choice: cannot choose {count} of {length}{how}")
        if replace and count:
            indices = self.integers(0, length, sizes, device=where).node
        else:
            chosen = primitives.slice_(self._shuffled("choice", length, where), ((0, count, 1),))
            indices = primitives.reshape(chosen, sizes)
        return Tensor(primitives.take(x.node, indices, along) if isinstance(x, Tensor) else indices)

    # By PyTorch's names

    def rand(self, *shape: Any, dtype: Any = dtypes.float32, device: DeviceLike = None) -> Tensor:
        """`uniform` from 0 to 1, the shape given as sizes or as one sequence.

        >>> wg.random.rand(2, 3).shape
        (2, 3)
        """
        return self.uniform(_shape_of(shape), dtype=dtype, device=device)

    def randn(self, *shape: Any, dtype: Any = dtypes.float32, device: DeviceLike = None) -> Tensor:
        """`normal` of mean 0 and standard deviation 1, the shape given as sizes or as one sequence.

        >>> wg.random.randn(2, 3).shape
        (2, 3)
        """
        return self.normal(_shape_of(shape), dtype=dtype, device=device)

    def randint(
        self,
        low: int,
        high: Any = None,
        size: Any = None,
        dtype: Any = dtypes.int32,
        device: DeviceLike = None,
    ) -> Tensor:
        """`integers`, as randint(high, size) or randint(low, high, size).

        >>> wg.random.randint(10, (2, 2)).shape
        (2, 2)
        """
        if size is None and isinstance(high, (tuple, list)):
            high, size = None, high
        return self.integers(low, high, () if size is None else size, dtype, device)


def _restored(seed: int, draws: int) -> Generator:
    """A generator from its state."""
    generator = Generator(seed)
    generator.set_state((seed, draws))
    return generator


# Arguments


def _target(op: str, shape: Shape, dtype: Any, device: DeviceLike) -> tuple[tuple[int, ...], DType, Any]:
    sizes, wanted, where = as_shape(f"random.{op}", shape), as_dtype(dtype), open_device(device)
    check_dtype(f"random.{op}", wanted, where)
    if wanted.kind != "f":
        way = "webgrad.complex of two of them" if wanted.kind == "c" else "random.integers, or astype"
        raise DTypeError(f"random.{op} gives floats, not {wanted.name}: use {way}")
    return sizes, wanted, where


def _refuse_numbers(op: str, given: tuple[Any, ...], first: str, second: str) -> None:
    """Refuse normal(0, 1, 10), NumPy's order, and normal(10, 0, 1): neither can be told from the other."""
    if len(given) > 1:
        raise TypeError(
            f"random.{op} takes its shape by place and the rest by name: {op}(shape, {first}=…, {second}=…), "
            f"not {op}({', '.join(map(repr, given))}): NumPy's order is another one"
        )


def _finite(op: str, value: Any, name: str) -> float:
    number = float(as_number(f"random.{op} ({name})", value))
    if not math.isfinite(number):
        raise ArgumentError(f"random.{op}: {name} must be a finite number, not {number}")
    return number


def _whole(op: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise DTypeError(f"random.{op} takes integers, not {value!r}") from None


def _length(op: str, value: Any) -> int:
    if not hasattr(value, "__index__"):
        as_tensor(f"random.{op}", value)
    length = _whole(op, value)
    if not 0 <= length < 2**31:
        raise ShapeError(f"random.{op}: a length must be from 0 to 2**31 - 1, not {length}")
    return length


def _shape_of(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape


# Arithmetic


def _scaled(words: Node, dtype: DType, factor: float) -> Node:
    return elementwise(_MULTIPLY, primitives.cast(words, dtype), factor)


def _multiply_high(bits: Node, factor: int) -> Node:
    """The high word of bits * factor, by products of 16-bit halves: from 0 to factor - 1."""
    low, high = elementwise(_AND, bits, 0xFFFF), elementwise(_SHIFT, bits, 16)
    factor_low, factor_high = factor & 0xFFFF, factor >> 16
    carried = elementwise(_SHIFT, elementwise(_MULTIPLY, low, factor_low), 16)
    crossed = elementwise(_ADD, elementwise(_MULTIPLY, high, factor_low), carried)
    others = elementwise(_ADD, elementwise(_MULTIPLY, low, factor_high), elementwise(_AND, crossed, 0xFFFF))
    tops = elementwise(_ADD, elementwise(_SHIFT, crossed, 16), elementwise(_SHIFT, others, 16))
    return elementwise(_ADD, elementwise(_MULTIPLY, high, factor_high), tops)


_ADD, _MULTIPLY, _SHIFT, _AND = (TABLE[name] for name in ("add", "multiply", "right_shift", "bitwise_and"))

# The functions of this module share one generator.
default_generator = Generator()
seed, get_state, set_state = default_generator.seed, default_generator.get_state, default_generator.set_state
uniform, normal = default_generator.uniform, default_generator.normal
integers, bernoulli = default_generator.integers, default_generator.bernoulli
permutation, choice = default_generator.permutation, default_generator.choice
exponential, gamma, beta = default_generator.exponential, default_generator.gamma, default_generator.beta
dirichlet, poisson = default_generator.dirichlet, default_generator.poisson
binomial = default_generator.binomial
rand, randn, randint = default_generator.rand, default_generator.randn, default_generator.randint
__getattr__ = refusing("webgrad.random", "random", __all__)
