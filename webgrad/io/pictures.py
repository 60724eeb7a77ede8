"""Pictures as arrays: PNG by code of our own, other formats by Pillow where that is installed.

In: a file. Out: an array (height, width, 3) of bytes, on white where the picture is transparent. The
invariant: nothing is allocated that the file's own length does not allow for. Written are PNG files.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .replace import replacing

__all__ = ["picture_texts", "png_bytes", "read_picture", "write_picture"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LARGEST = 1 << 28  # bytes of pixels: 16,000 × 5,000 in colours
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the kind of colours
_PALETTE = 3
_MOST_RATIO = 1100  # zlib packs no better than 1,032 to 1


def read_picture(path: str | os.PathLike[str]) -> Array:
    """A picture as an array (height, width, 3) of bytes: red, green, blue.

    PNG files are read without another package, others (JPEG, WebP …) by Pillow.

    >>> import base64, tempfile
    >>> dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
    >>> path = tempfile.mkdtemp() + "/dot.png"
    >>> with open(path, "wb") as file:
    ...     written = file.write(base64.b64decode(dot))
    >>> wg.io.read_picture(path).tolist()
    [[[255, 0, 0]]]
    """
    data = _bytes_of(Path(path))
    if data.startswith(_SIGNATURE):
        try:
            return _png(data)
        except (zlib.error, struct.error, ValueError, IndexError, KeyError) as error:
            raise wg.ModelFileError(f"{path} is a damaged PNG file: {error}") from None
    return _by_pillow(Path(path))


def write_picture(path: str | os.PathLike[str], picture: Any, texts: Mapping[str, str] | None = None) -> None:
    """Write a picture of bytes, (height, width) or (height, width, 1 or 3), as a PNG file.

    `texts` are put into the file by their names, as its metadata.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/grey.png"
    >>> wg.io.write_picture(path, [[0, 128, 255]], {"Title": "a ramp"})
    >>> wg.io.read_picture(path)[0, 1].tolist()
    [128, 128, 128]
    """
    data = png_bytes(picture, texts)
    with replacing(path) as aside:
        aside.write_bytes(data)


def png_bytes(picture: Any, texts: Mapping[str, str] | None = None) -> bytes:
    """A picture of bytes as a PNG file has it; arguments as of `write_picture`.

    >>> wg.io.png_bytes([[0, 255]])[1:4]
    b'PNG'
    """
    pixels = np.asarray(picture)
    pixels = pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    is_picture = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)
    if (
        not is_picture
        or not pixels.size
        or pixels.dtype.kind not in "iu"
        or (pixels != pixels.astype("u1")).any()
    ):
        raise wg.ShapeError(
            "a picture to write is bytes of shape (height, width) or (height, width, 1 or 3), not "
            f"{pixels.dtype} of shape {pixels.shape}"
        )
    height, width = pixels.shape[:2]
    rows = _filtered(pixels.astype(np.uint8).reshape(height, -1), pixels.size // (height * width))
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)),
        *((b"iTXt", _text(name, text)) for name, text in (texts or {}).items()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    ]
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _text(name: str, text: str) -> bytes:
    key = name.encode("latin-1", "replace")[:79] or b"Comment"
    return key.replace(b"\0", b" ") + _PLAIN_TEXT + text.encode(errors="replace")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _filtered(lines: Array, step: int) -> Array:
    """Rows behind the filter that leaves each of them the least to write, as bytes nearest to nothing."""
    around = np.zeros((len(lines) + 1, lines.shape[1] + step), np.int16)
    around[1:, step:] = lines
    left, up, corner = around[1:, :-step], around[:-1, step:], around[:-1, :-step]
    guesses = (np.zeros_like(left), left, up, (left + up) >> 1, _paeth(left, up, corner))
    every = np.stack([(lines - each).astype(np.uint8) for each in guesses], axis=1)
    best = abs(every.view(np.int8).astype(np.int32)).sum(axis=2).argmin(axis=1)
    chosen = every[np.arange(len(lines)), best]
    return np.concatenate([best.astype(np.uint8)[:, None], chosen], axis=1)


def picture_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that `write_picture` has put into a PNG file, by their names.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/grey.png"
    >>> wg.io.write_picture(path, [[0, 128, 255]], {"Title": "a ramp"})
    >>> wg.io.picture_texts(path)
    {'Title': 'a ramp'}
    """
    data, found = _bytes_of(Path(path)), {}
    try:
        chunks = list(_chunks(data)) if data.startswith(_SIGNATURE) else []
    except (struct.error, ValueError) as error:
        raise wg.ModelFileError(f"{path} is a damaged PNG file: {error}") from None
    for kind, contents in chunks:
        name, behind, text = contents.partition(_PLAIN_TEXT)
        if kind == b"iTXt" and behind:
            found[name.decode("latin-1")] = text.decode("utf-8", errors="replace")
    return found


_PLAIN_TEXT = b"\0" * 5  # not packed, of no language, with no other keyword


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise wg.ModelFileError(f"{path} cannot be read: {error.strerror or error}") from None


def _by_pillow(path: Path) -> Array:
    try:
        from PIL import Image
    except ImportError:
        raise wg.ModelFileError(
            f"{path} is no PNG file, and other pictures are read by Pillow: pip install pillow"
        ) from None
    try:
        with Image.open(path) as picture:
            layers = picture.convert("RGBA")
    except Exception as error:  # Pillow's own kinds of errors, which formats add to
        raise wg.ModelFileError(f"{path} is no picture that Pillow reads: {error}") from None
    return _on_white(np.asarray(layers))


# PNG


def _png(data: bytes) -> Array:
    chunks = list(_chunks(data))
    width, height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", dict(chunks)[b"IHDR"])
    if interlaced:
        raise ValueError("it is interlaced, which webgrad does not read")
    channels = _CHANNELS[colours]
    row = (width * channels * bits + 7) // 8
    packed = b"".join(contents for name, contents in chunks if name == b"IDAT")
    size = height * (row + 1)
    if not width or not height or height * width * 4 > _LARGEST or size > len(packed) * _MOST_RATIO:
        raise ValueError(f"{width} × {height} pixels cannot be in it")
    raw = zlib.decompressobj().decompress(packed, size)
    if len(raw) != size:
        raise ValueError(f"it has {len(raw)} bytes of pixels, not {size}")
    lines = np.frombuffer(raw, np.uint8).reshape(height, row + 1)
    samples = _samples(
        _unfiltered(lines[:, 0], lines[:, 1:], max(1, channels * bits // 8)), width, bits, channels
    )
    return _in_colours(samples, bits, colours, dict(chunks))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, place)
        contents = data[place + 8 : place + 8 + length]
        if len(contents) != length:
            raise ValueError("it ends too early")
        yield name, contents
        place += 12 + length


def _unfiltered(kinds: Array, lines: Array, step: int) -> Array:
    """Rows without their filters: what each adds is made of the pixels to the left, above, and above that.

    All rows are gone through at once, each a pixel behind the one above it, since a pixel needs these only.
    """
    height, width = lines.shape
    if kinds.max(initial=0) > 4:
        raise ValueError(f"a row has the filter {kinds.max()}")
    columns = -(-width // step)
    there = np.zeros((height + 1, (columns + 1) * step), np.int16)
    there[1:, step : step + width] = lines
    pixels = there.reshape(height + 1, columns + 1, step)
    rows = np.flatnonzero(kinds) + 1  # the others are as they are
    kinds = kinds[rows - 1]
    for diagonal in range(columns + height):
        column = diagonal - (rows - 1) + 1
        inside = (column >= 1) & (column <= columns)
        if not inside.any():
            continue
        at, by, kind = rows[inside], column[inside], kinds[inside, None]
        left, up, corner = pixels[at, by - 1], pixels[at - 1, by], pixels[at - 1, by - 1]
        added = np.choose(kind - 1, (left, up, (left + up) >> 1, _paeth(left, up, corner)))
        pixels[at, by] = (pixels[at, by] + added) & 255
    return there[1:, step : step + width].astype(np.uint8)


def _paeth(left: Array, up: Array, corner: Array) -> Array:
    """Whichever of the three is nearest to left + up − corner."""
    from_left, from_up, from_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    nearest = np.where(from_up <= from_corner, up, corner)
    return np.where((from_left <= from_up) & (from_left <= from_corner), left, nearest)


def _samples(lines: Array, width: int, bits: int, channels: int) -> Array:
    """Numbers of a picture, (height, width, channels): of 16 bits the upper 8, smaller ones as they are."""
    height = len(lines)
    if bits == 16:
        lines = lines[:, ::2]
    elif bits < 8:
        shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
        lines = (lines[:, :, None] >> shifts & ((1 << bits) - 1)).reshape(height, -1)[:, :width]
    return np.ascontiguousarray(lines).reshape(height, width, channels)


def _in_colours(samples: Array, bits: int, colours: int, chunks: dict[bytes, Any]) -> Array:
    if colours == _PALETTE:
        palette = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
        opacity = np.full(len(palette), 255, np.uint8)
        given = np.frombuffer(chunks.get(b"tRNS", b""), np.uint8)[: len(palette)]
        opacity[: len(given)] = given
        return _on_white(np.concatenate([palette, opacity[:, None]], 1)[samples[:, :, 0]])
    if bits < 8:
        samples = samples * (255 // ((1 << bits) - 1))
    if samples.shape[2] < 3:
        samples = np.concatenate([samples[:, :, :1]] * 3 + [samples[:, :, 1:]], 2)
    return _on_white(samples) if samples.shape[2] == 4 else samples


def _on_white(picture: Array) -> Array:
    colours, opacity = picture[:, :, :3].astype(np.uint16), picture[:, :, 3:].astype(np.uint16)
    return ((colours * opacity + 255 * (255 - opacity) + 127) // 255).astype(np.uint8)
