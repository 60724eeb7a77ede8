"""Quantised blocks: GGUF's formats, their layout on a device, and their weights.

In: a format's blocks as in GGUF files, or as words. Out: words, blocks, or float32 weights. On a device a
tensor is one array of 32-bit words: GGUF's blocks cut into regions, each for all blocks one after the other,
so that loads are aligned. At most three bytes of padding are added at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..arrays import Array, np

Regions = Sequence[Array]  # (blocks, bytes) each


@dataclass(frozen=True, slots=True)
class Format:
    """A type of blocks: one row here, and a section of `kernels/blocks.pwgsl`.

    The first regions are multiples of 16 bytes, then those of 4, then those of 2: each begins aligned.
    """

    name: str
    number: int  # its number in GGUF files
    weights: int
    nbytes: int
    regions: tuple[tuple[int, int], ...]  # (start in GGUF's block, bytes)
    weights_of: Callable[[Regions], Array]  # float32 (blocks, weights) from the regions
    units: int = 1  # in a block: see kernels/blocks.pwgsl
    most_rows: int = 16  # of A by one unpacked weight: fewer where a column has three words to load
    can_quantise: bool = False  # whether `quantise` can make such blocks

    @property
    def pairs(self) -> int:
        """Pairs of planes in a block."""
        return self.weights // 32


# The weights of blocks


def _halves(region: Array) -> Array:
    """float16 numbers of a region, as float32 (blocks, count)."""
    return region.view(np.float16).astype(np.float32)


def _nibbles(qs: Array, run: int) -> Array:
    """(blocks, runs, 2, run): the lower nibbles of a run of bytes, then the upper ones."""
    bytes_ = qs.reshape(len(qs), -1, run)
    return np.stack([bytes_ & 15, bytes_ >> 4], axis=2)


def _fifth_bits(qh: Array) -> Array:
    """(blocks, 2, 16): bit i of a word belongs to weight i; as 0 or 16."""
    return np.unpackbits(qh, axis=1, bitorder="little").reshape(-1, 2, 16) << 4


def _by_scale(quants: Array, zero: int, scale: Array) -> Array:
    """(quants - zero) · scale; the scale is that of each run along the last axis."""
    centred = quants.view(np.int8) - np.int8(zero) if zero else quants
    product: Array = centred * scale[..., None]
    return product.reshape(len(quants), -1)


def _by_scale_and_offset(quants: Array, scale: Array, offset: Array) -> Array:
    result: Array = quants * scale[..., None]
    result += offset[..., None]
    return result.reshape(len(quants), -1)


def _q4_0(regions: Regions) -> Array:
    qs, d = regions
    return _by_scale(_nibbles(qs, 16)[:, 0], 8, _halves(d))


def _q4_1(regions: Regions) -> Array:
    qs, dm = regions
    d, m = np.split(_halves(dm), 2, axis=1)
    return _by_scale_and_offset(_nibbles(qs, 16)[:, 0], d, m)


def _q5_0(regions: Regions) -> Array:
    qs, qh, d = regions
    return _by_scale(_nibbles(qs, 16)[:, 0] | _fifth_bits(qh), 16, _halves(d))


def _q5_1(regions: Regions) -> Array:
    qs, qh, dm = regions
    d, m = np.split(_halves(dm), 2, axis=1)
    return _by_scale_and_offset(_nibbles(qs, 16)[:, 0] | _fifth_bits(qh), d, m)


def _q8_0(regions: Regions) -> Array:
    qs, d = regions
    return _by_scale(qs.view(np.int8), 0, _halves(d)[:, 0])


def _planes(qs: Array, bits: int, count: int) -> Array:
    """(blocks, 2, count, 2, 16): of two runs of 32 bytes, planes of `bits` bits, each as two groups of 16."""
    halves = qs.reshape(len(qs), 2, 1, 2, 16)
    shifts = (np.arange(count, dtype=np.uint8) * bits)[:, None, None]
    return halves >> shifts & ((1 << bits) - 1)


def _q2_k(regions: Regions) -> Array:
    qs, scales, dm = regions
    d, least = np.split(_halves(dm), 2, axis=1)
    shape = (len(qs), 2, 4, 2)
    scale = (d * (scales & 15)).reshape(shape)
    offset = -(least * (scales >> 4)).reshape(shape)
    return _by_scale_and_offset(_planes(qs, 2, 4), scale, offset)


def _q3_k(regions: Regions) -> Array:
    qs, mask, scales, d = regions
    # Bit 4 · half + plane of a mask byte is the third bit of that plane's weight.
    third = mask.reshape(len(qs), 1, 1, 2, 16) >> np.arange(8, dtype=np.uint8).reshape(2, 4, 1, 1) & 1
    low = np.concatenate([scales[:, :8] & 15, scales[:, :8] >> 4], axis=1)
    high = (scales[:, None, 8:] >> (2 * np.arange(4, dtype=np.uint8))[:, None]) & 3
    scale = (low | high.reshape(-1, 16) << 4).view(np.int8) - np.int8(32)
    return _by_scale(_planes(qs, 2, 4) | third << 2, 4, (_halves(d) * scale).reshape(-1, 2, 4, 2))


def _scales_and_offsets(head: Array) -> tuple[Array, Array]:
    """Of Q4_K and Q5_K: d and dmin, then eight scales and eight minima of six bits each."""
    d, least = np.split(_halves(head[:, :4]), 2, axis=1)
    first, second, third = head[:, 4:8], head[:, 8:12], head[:, 12:16]
    scale = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)
    minimum = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)
    return (d * scale).reshape(-1, 4, 2), -(least * minimum).reshape(-1, 4, 2)


def _q4_k(regions: Regions) -> Array:
    (block,) = regions
    return _by_scale_and_offset(
        _nibbles(np.ascontiguousarray(block[:, 16:]), 32),
        *_scales_and_offsets(np.ascontiguousarray(block[:, :16])),
    )


def _q5_k(regions: Regions) -> Array:
    (block,) = regions
    # Bit 2 · run + half of a byte is the fifth bit of that half's weight.
    fifth = block[:, 16:48].reshape(-1, 1, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(4, 2, 1) & 1
    quants = _nibbles(np.ascontiguousarray(block[:, 48:]), 32) | fifth << 4
    return _by_scale_and_offset(quants, *_scales_and_offsets(np.ascontiguousarray(block[:, :16])))


def _q6_k(regions: Regions) -> Array:
    ql, qh, scales, d = regions
    low = _nibbles(ql, 64).reshape(
        -1, 2, 4, 2, 16
    )  # of each half: lower nibbles of 64 bytes, then upper ones
    scale = (_halves(d) * scales.view(np.int8)).reshape(-1, 2, 4, 2)
    return _by_scale(low | _planes(qh, 2, 4) << 4, 32, scale)


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("Q4_0", 2, 32, 18, ((2, 16), (0, 2)), _q4_0, can_quantise=True),
        Format("Q4_1", 3, 32, 20, ((4, 16), (0, 4)), _q4_1, can_quantise=True),
        Format("Q5_0", 6, 32, 22, ((6, 16), (2, 4), (0, 2)), _q5_0),
        Format("Q5_1", 7, 32, 24, ((8, 16), (4, 4), (0, 4)), _q5_1),
        Format("Q8_0", 8, 32, 34, ((2, 32), (0, 2)), _q8_0, can_quantise=True),
        Format("Q2_K", 10, 256, 84, ((16, 64), (0, 16), (80, 4)), _q2_k, 4),
        Format("Q3_K", 11, 256, 110, ((32, 64), (0, 32), (96, 12), (108, 2)), _q3_k, 4),
        Format("Q4_K", 12, 256, 144, ((0, 144),), _q4_k, 8),
        Format("Q5_K", 13, 256, 176, ((0, 176),), _q5_k, 8),
        Format("Q6_K", 14, 256, 210, ((0, 128), (128, 64), (192, 16), (208, 2)), _q6_k, 4, 8),
    )
}


# Words


def word_count(format: Format, blocks: int) -> int:
    """How many words a number of blocks takes."""
    return -(-blocks * format.nbytes // 4)


def to_words(data: Array, format: Format) -> Array:
    """GGUF's blocks, as bytes, in the order of regions."""
    blocks = data.reshape(-1, format.nbytes)
    words = np.zeros(word_count(format, len(blocks)), np.uint32)
    _copy_regions(blocks, words.view(np.uint8), format, into_words=True)
    return words


def from_words(words: Array, format: Format, blocks: int) -> Array:
    """The words as bytes in GGUF's order."""
    data = np.empty((blocks, format.nbytes), np.uint8)
    _copy_regions(data, words.view(np.uint8), format, into_words=False)
    return data.reshape(-1)


def _copy_regions(blocks: Array, flat: Array, format: Format, *, into_words: bool) -> None:
    """Between GGUF's order and the words': one item of a region at a time, not byte by byte."""
    if not len(blocks):
        return
    place = 0
    for start, nbytes in format.regions:
        item = np.dtype((np.void, nbytes))
        there = np.ndarray(len(blocks), item, flat.data, place)
        here = np.ndarray(len(blocks), item, blocks.data, start, (format.nbytes,))
        if into_words:
            there[:] = here
        else:
            here[:] = there
        place += nbytes * len(blocks)


def decode_blocks(words: Array, format: Format, blocks: int, chosen: slice | Array) -> Array:
    """float32 (chosen blocks, weights): of a run of blocks, or of those an index array names."""
    flat, place, regions = words.view(np.uint8), 0, []
    for _, nbytes in format.regions:
        region = flat[place : place + nbytes * blocks].reshape(blocks, nbytes)
        regions.append(region[chosen])
        place += nbytes * blocks
    return format.weights_of(regions) if len(regions[0]) else np.empty((0, format.weights), np.float32)
