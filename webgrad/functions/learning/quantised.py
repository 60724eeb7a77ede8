"""Quantised weights: tensors of GGUF's blocks, which stay packed on their device.

In: blocks of a GGUF file, or tensors to quantise. Out: a `QuantisedTensor`, whose products, rows and weights
are Tensors. The invariant: a `QuantisedTensor` never changes, and takes as many bytes as its blocks.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...arrays import np
from ...errors import ArgumentError, DTypeError, IndexingError, ShapeError
from ...graph.node import make
from ...ops import primitives
from ...ops.blocks import FORMATS, Format, from_words, to_words
from ...ops.capabilities import has_host_memory
from ...ops.table import TABLE
from ...runtime.device import AnyDevice, DeviceLike, open_device
from ...runtime.stats import readable_bytes
from ...tensor import Tensor
from ..array.creation import as_shape, as_tensor, asarray
from ..array.elementwise import abs as absolute
from ..array.elementwise import minimum, trunc, where
from ..array.indexing import take, take_along_axis
from ..array.interop import move, place
from ..array.manipulation import concat
from ..array.products import matmul, with_bias


def _format(op: str, name: Any) -> Format:
    known = ", ".join(FORMATS)
    if not isinstance(name, str):
        raise ArgumentError(f"{op}: a format must be one of the names {known}, not a {type(name).__name__}")
    found = FORMATS.get(name.upper())
    if found is None:
        raise ArgumentError(f"{op}: {name!r} is not a known format of quantised blocks: {known}")
    return found


def _check_shape(op: str, shape: tuple[int, ...], format: Format) -> None:
    if not shape or shape[-1] % format.weights:
        raise ShapeError(
            f"{op}: {format.name} has blocks of {format.weights} weights along the last axis, whose size "
            f"must be a multiple of that; the shape is {shape}"
        )


class QuantisedTensor:
    """A tensor of quantised blocks, made by `from_blocks` or `quantise`.

    >>> q = wg.quantise(wg.ones((2, 32)), "Q8_0")
    >>> (wg.ones((1, 32)) @ q.T).shape, q[[1, 0, 1]].shape, q.nbytes
    ((1, 2), (3, 32), 68)
    """

    __slots__ = ("_format", "_words", "shape")
    formats = tuple(name for name, each in FORMATS.items() if each.can_quantise)  # that `quantise` knows
    __array_ufunc__ = None  # so that array @ q comes to __rmatmul__

    def __init__(self, words: Tensor, format: Format, shape: tuple[int, ...]) -> None:
        self._words = words
        self._format = format
        self.shape = shape

    # What it is

    @property
    def format(self) -> str:
        """The name of its format, as in GGUF."""
        return self._format.name

    @property
    def device(self) -> AnyDevice:
        """Where it is."""
        return self._words.device

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many weights it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes on its device."""
        return self._words.nbytes

    @property
    def T(self) -> QuantisedTranspose:
        """Its last two axes exchanged, for products: x @ q.T."""
        return QuantisedTranspose(self)

    mT = T

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return (
            f"QuantisedTensor({self.format}, shape={self.shape}, device={self.device.name!r}, "
            f"{readable_bytes(self.nbytes)})"
        )

    # Its values

    def dequantise(self) -> Tensor:
        """Its weights as float32.

        >>> wg.quantise(wg.zeros((1, 32)), "q4_0").dequantise().dtype
        webgrad.float32
        """
        return Tensor(make(TABLE["decode"], (self._words.node,), (self.format, self.shape)))

    def take(self, indices: Any) -> Tensor:
        """Rows of a matrix, by index, as float32: only these are unpacked.

        >>> wg.quantise(wg.ones((4, 32)), "Q8_0").take(wg.asarray([[0, 3]])).shape
        (1, 2, 32)
        """
        if self.ndim != 2:
            raise IndexingError(f"rows are taken of a matrix, and this {self!r} has {self.ndim} dimensions")
        _, index = take(self.dequantise(), indices, axis=0).node.inputs  # checked, or clamped
        return Tensor(make(TABLE["decode_rows"], (self._words.node, index), (self.format, self.shape)))

    def __getitem__(self, key: Any) -> Tensor:
        return self.take(key) if _names_rows(key) else self.dequantise()[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.dequantise(), dtype)  # else NumPy would take row after row

    def to_blocks(self) -> bytes:
        """Its blocks as GGUF has them."""
        blocks = self.size // self._format.weights
        return from_words(self._words.numpy(), self._format, blocks).tobytes()

    def to_device(self, device: DeviceLike) -> QuantisedTensor:
        """The same on another device; itself where it is there already."""
        words = move(self._words, open_device(device))
        return self if words is self._words else QuantisedTensor(words, self._format, self.shape)

    def __matmul__(self, other: Any) -> Tensor:
        result: Tensor = self.dequantise() @ other
        return result

    def __rmatmul__(self, other: Any) -> Tensor:
        return _product(other, self, transposed=False)


class QuantisedTranspose:
    """A `QuantisedTensor` with its last two axes exchanged: what x @ q.T multiplies with."""

    __slots__ = ("of",)
    __array_ufunc__ = None

    def __init__(self, of: QuantisedTensor) -> None:
        if of.ndim < 2:
            raise ShapeError(f"{of!r} has one axis: there is nothing to exchange")
        self.of = of

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return (*self.of.shape[:-2], self.of.shape[-1], self.of.shape[-2])

    @property
    def T(self) -> QuantisedTensor:
        """The quantised tensor itself."""
        return self.of

    mT = T

    def __repr__(self) -> str:
        return f"{self.of!r}.T"

    def dequantise(self) -> Tensor:
        """Its weights as float32."""
        return self.of.dequantise().mT

    def __matmul__(self, other: Any) -> Tensor:
        result: Tensor = self.dequantise() @ other
        return result

    def __rmatmul__(self, other: Any) -> Tensor:
        return _product(other, self.of, transposed=True)


def _names_rows(key: Any) -> bool:
    """Whether a key is an integer, or a list, array or tensor of integers, not of bools."""
    if isinstance(key, Tensor):
        return key.dtype.kind in "iu"
    if not isinstance(key, (int, list, np.integer, np.ndarray)):
        return False
    try:
        found = np.asarray(key)
    except ValueError:  # lists of several lengths: no index of anything
        return False
    return found.dtype.kind in "iu" or not found.size


def _product(x: Any, q: QuantisedTensor, *, transposed: bool) -> Tensor:
    """x @ q or x @ q.T, computed in float32 and converted to x's dtype."""
    if isinstance(x, np.ndarray):
        x = place("matmul", x, q.device)
    if not isinstance(x, Tensor):
        return NotImplemented  # type: ignore[no-any-return]
    if x.dtype.kind != "f":
        raise DTypeError(
            f"matmul of {x.dtype.name} with {q!r}: weights are floats; convert with x.astype(webgrad.float32)"
        )
    weights = q.dequantise()
    wide = x.astype(x.dtype.wide, copy=False)
    result = matmul(wide, weights.mT if transposed else weights)
    return result.astype(x.dtype, copy=False)


def from_blocks(data: Any, format: str, shape: Any, device: DeviceLike = None) -> QuantisedTensor:
    """A tensor of the quantised blocks of a GGUF file, from their bytes; the last axis is a row.

    >>> wg.from_blocks(bytes(2 * 18), "Q4_0", (2, 32)).dequantise().tolist()[0][:2]
    [-0.0, -0.0]
    """
    kind = _format("from_blocks", format)
    sizes = as_shape("from_blocks", shape)
    _check_shape("from_blocks", sizes, kind)
    try:
        flat = np.frombuffer(np.ascontiguousarray(data) if isinstance(data, np.ndarray) else data, np.uint8)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"from_blocks takes bytes or an array of them: {error}") from None
    wanted = math.prod(sizes) // kind.weights * kind.nbytes
    if len(flat) != wanted:
        raise ShapeError(
            f"from_blocks: {kind.name} of shape {sizes} is {wanted:,} bytes ({kind.nbytes} for each "
            f"{kind.weights} weights), and {len(flat):,} were given"
        )
    where = open_device(device)
    words = to_words(flat, kind)
    return QuantisedTensor(
        place("from_blocks", words, where, copy=False if has_host_memory(where) else None), kind, sizes
    )


def quantised_linear(x: Tensor, weight: QuantisedTensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias, with a quantised weight of (outputs, inputs).

    >>> q = wg.quantise(wg.ones((3, 32)), "Q8_0")
    >>> wg.quantised_linear(wg.ones((2, 32)), q, wg.zeros(3)).shape
    (2, 3)
    """
    x = as_tensor("quantised_linear", x)
    if not isinstance(weight, QuantisedTensor):
        raise DTypeError(
            f"quantised_linear takes a QuantisedTensor as its weight, not a {type(weight).__name__}: use "
            "webgrad.linear for tensors"
        )
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"quantised_linear of x {x.shape} with weight {weight.shape}: the weight is (outputs, inputs), "
            "and the last axis of x must have size inputs"
        )
    return with_bias("quantised_linear", x @ weight.T, bias)


# Quantising


def quantise(x: Tensor, format: str) -> QuantisedTensor:
    """x in blocks of Q8_0, Q4_0 or Q4_1, computed on its device, as GGUF's reference does.

    >>> wg.quantise(wg.ones((2, 64)), "Q8_0")
    QuantisedTensor(Q8_0, shape=(2, 64), device='cpu', 136 B)
    """
    x = as_tensor("quantise", x)
    kind = _format("quantise", format)
    if kind.name not in QUANTISERS:
        raise ArgumentError(
            f"quantise: to {kind.name} is not done here, only to {', '.join(QUANTISERS)}; its blocks can be "
            "made elsewhere and taken in with webgrad.from_blocks"
        )
    if x.dtype.kind != "f":
        raise DTypeError(f"quantise takes floats, not {x.dtype.name}: convert with astype(webgrad.float32)")
    _check_shape("quantise", x.shape, kind)
    blocks = x.astype(dtypes.float32, copy=False).reshape(-1, kind.weights)
    if not x.size:
        return from_blocks(b"", kind.name, x.shape, x.device)
    return QuantisedTensor(QUANTISERS[kind.name](blocks), kind, x.shape)


def _inverse(d: Tensor) -> Tensor:
    """1 / d, and 0 for 0."""
    zero = d == 0
    return where(zero, 0.0, 1 / where(zero, 1.0, d))


def _half_bits(x: Tensor) -> Tensor:
    """The bits of numbers rounded to float16, as uint32."""
    half = primitives.cast(x.node, dtypes.float16)
    bits = make(TABLE["bitcast"], (half,), (dtypes.uint16,))
    return Tensor(primitives.cast(bits, dtypes.uint32))


def _paired(bits: Tensor) -> Tensor:
    """Numbers of 16 bits (count,), two in each word."""
    flat = primitives.pad(bits.node, ((0, bits.shape[0] % 2),))
    pairs = Tensor(flat).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << 16


def _joined(quants: Tensor, shifts: list[int]) -> Tensor:
    """Numbers along the last axis combined by `or`, each shifted; they have no bits in common."""
    shifted = quants << asarray(shifts, dtypes.uint32, device=quants.device)
    return Tensor(primitives.reduce(TABLE["sum"], shifted.node, (1,)))


def _nibble_words(quants: Tensor) -> Tensor:
    """(blocks, 32) numbers below 16 as words: byte j of word i is 4·i + j (low), 4·i + j + 16 (high)."""
    grouped = quants.astype(dtypes.uint32).reshape(-1, 2, 4, 4).permute(0, 2, 1, 3).reshape(-1, 8)
    return _joined(grouped, [8 * byte + 4 * high for high in range(2) for byte in range(4)])


def _q8_0(x: Tensor) -> Tensor:
    d = absolute(x).max(axis=1) / 127
    scaled = x * _inverse(d).reshape(-1, 1)
    whole = trunc(scaled)
    rest = scaled - whole  # exact: halves go away from zero, and nothing is rounded twice
    away = where(rest >= 0.5, 1.0, where(rest <= -0.5, -1.0, 0.0))
    bytes_ = (whole + away).astype(dtypes.int32).astype(dtypes.uint32) & 255
    words = _joined(bytes_.reshape(-1, 4), [0, 8, 16, 24])
    return concat([words, _paired(_half_bits(d))])


def _q4_0(x: Tensor) -> Tensor:
    largest = take_along_axis(x, absolute(x).argmax(axis=1, keepdims=True), axis=1)
    d = where(largest == 0, 0.0, largest) / -8.0
    quants = minimum(trunc(x * _inverse(d) + 8.5), 15.0)
    return concat([_nibble_words(quants), _paired(_half_bits(d.reshape(-1)))])


def _q4_1(x: Tensor) -> Tensor:
    least = take_along_axis(x, x.argmin(axis=1, keepdims=True), axis=1)
    d = (x.max(axis=1, keepdims=True) - least) / 15.0
    quants = minimum(trunc((x - least) * _inverse(d) + 0.5), 15.0)
    scales = _half_bits(d.reshape(-1)) | _half_bits(least.reshape(-1)) << 16
    return concat([_nibble_words(quants), scales])


QUANTISERS = {"Q8_0": _q8_0, "Q4_0": _q4_0, "Q4_1": _q4_1}
