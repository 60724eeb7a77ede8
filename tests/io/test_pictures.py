"""Pictures and sounds: every kind of PNG file, damage, and .wav files of every width."""

from __future__ import annotations

import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg

KINDS = [
    (0, 1),
    (0, 2),
    (0, 4),
    (0, 8),
    (0, 16),
    (2, 8),
    (2, 16),
    (3, 1),
    (3, 4),
    (3, 8),
    (4, 8),
    (6, 8),
    (6, 16),
]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def filtered(row: bytes, above: bytes, kind: int, step: int) -> bytes:
    """A row of bytes as a PNG file has it."""
    found = [kind]
    for at, value in enumerate(row):
        left = row[at - step] if at >= step else 0
        up, corner = above[at], above[at - step] if at >= step else 0
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda each: abs(guess - each))
        found.append((value - (0, left, up, (left + up) // 2, nearest)[kind]) % 256)
    return bytes(found)


def png(samples: np.ndarray, bits: int, colours: int, *more: bytes, interlaced: int = 0) -> bytes:
    height, width, channels = samples.shape
    if bits == 16:
        lines = samples.astype(">u2").reshape(height, -1).view(np.uint8)
    else:
        ones = (samples.reshape(height, -1, 1) >> np.arange(bits - 1, -1, -1)) & 1
        lines = np.packbits(ones.astype(np.uint8).reshape(height, -1), axis=1)
    step = max(1, bits * channels // 8)
    rows = [bytes(row) for row in lines]
    above = [bytes(len(rows[0])), *rows]
    data = b"".join(filtered(row, above[at], at % 5, step) for at, row in enumerate(rows))
    header = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, interlaced)
    parts = [chunk(b"IHDR", header), *more, chunk(b"IDAT", zlib.compress(data)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(("colours", "bits"), KINDS)
def test_png_files(colours: int, bits: int, tmp_path: Path) -> None:
    random = np.random.default_rng(bits + colours)
    samples = random.integers(0, 1 << bits, (13, 7, CHANNELS[colours]))
    palette = random.integers(0, 256, (1 << min(bits, 8), 3)).astype(np.uint8)
    more = [chunk(b"PLTE", palette.tobytes())] if colours == 3 else []
    (tmp_path / "a.png").write_bytes(png(samples, bits, colours, *more))
    bytes_ = samples >> 8 if bits == 16 else samples * (255 // ((1 << bits) - 1))
    expected: Any
    if colours == 3:
        expected = palette[samples[:, :, 0]]
    elif CHANNELS[colours] in (2, 4):
        opacity = bytes_[:, :, -1:] / 255
        expected = np.rint(bytes_[:, :, :-1] * opacity + 255 * (1 - opacity)).astype(int)
    else:
        expected = bytes_
    found = wg.io.read_picture(tmp_path / "a.png")
    assert (found.shape, found.dtype) == ((13, 7, 3), np.uint8)
    assert (found == np.broadcast_to(expected, found.shape)).all()


def test_a_palette_with_opacities(tmp_path: Path) -> None:
    more = chunk(b"PLTE", bytes([10, 20, 30, 40, 50, 60])), chunk(b"tRNS", bytes([0]))
    (tmp_path / "a.png").write_bytes(png(np.asarray([[[0], [1]]]), 1, 3, *more))
    assert wg.io.read_picture(tmp_path / "a.png").tolist() == [[[255, 255, 255], [40, 50, 60]]]


def test_damaged_and_foreign_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = png(np.zeros((4, 4, 3), int), 8, 2)
    huge = whole.replace(struct.pack(">II", 4, 4), struct.pack(">II", 20000, 20000))
    interlaced = png(np.zeros((4, 4, 3), int), 8, 2, interlaced=1)
    for data, told in (
        (whole[:40], "is a damaged PNG file"),
        (huge, "20000 × 20000 pixels cannot be in it"),
        (interlaced, "it is interlaced"),
    ):
        (tmp_path / "a.png").write_bytes(data)
        with pytest.raises(wg.ModelFileError, match=told):
            wg.io.read_picture(tmp_path / "a.png")
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8")
    with pytest.raises(wg.ModelFileError, match="other pictures are read by Pillow: pip install pillow"):
        wg.io.read_picture(tmp_path / "a.jpg")
    with pytest.raises(wg.ModelFileError, match=r"none\.png cannot be read: No such file"):
        wg.io.read_picture(tmp_path / "none.png")


def test_written_pictures_are_read_again(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "a.png"
    for shape in ((1, 1), (5, 3), (5, 3, 1), (2, 7, 3)):
        picture = random.integers(0, 256, shape)
        wg.io.write_picture(path, picture, {"Prompt": "ein Bär", "": ""})
        colours = picture if len(shape) == 3 else picture[:, :, None]
        np.testing.assert_array_equal(wg.io.read_picture(path), np.broadcast_to(colours, (*shape[:2], 3)))
    assert b"iTXtPrompt\0\0\0\0\0" + "ein Bär".encode() in path.read_bytes()
    for wrong in (np.zeros((2, 2, 4), int), np.zeros((0, 2), int), np.zeros((2, 2)), np.full((2, 2), 256)):
        with pytest.raises(wg.ShapeError, match="a picture to write is bytes"):
            wg.io.write_picture(path, wrong)
    assert wg.io.picture_texts(path) == {"Prompt": "ein Bär", "Comment": ""}
    Image = pytest.importorskip("PIL.Image")
    with Image.open(path) as opened:
        assert opened.text["Prompt"] == "ein Bär"


def test_rows_are_filtered_where_that_is_shorter(tmp_path: Path) -> None:
    slope = np.add.outer(np.arange(120), np.arange(130))[:, :, None] + np.asarray([0, 3, 5])
    wg.io.write_picture(tmp_path / "a.png", slope)
    assert (wg.io.read_picture(tmp_path / "a.png") == slope).all()
    assert (tmp_path / "a.png").stat().st_size < 1000  # bytes of 46,800


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sounds(width: int, tmp_path: Path) -> None:
    wanted = np.asarray([[0, 0.5], [-0.5, -1], [0.25, 0]], np.float32)
    whole = (wanted * 2 ** (8 * width - 1)).astype(np.int64) + (128 if width == 1 else 0)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((2, width, 8000, 0, "NONE", ""))
        file.writeframes(
            b"".join(int(each).to_bytes(width, "little", signed=width > 1) for each in whole.flat)
        )
    samples, rate = wg.io.read_sound(tmp_path / "a.wav")
    assert rate == 8000
    np.testing.assert_array_equal(samples, wanted)


def test_files_that_are_no_sounds(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(wg.ModelFileError, match=r"a\.wav is no \.wav file"):
        wg.io.read_sound(tmp_path / "a.wav")
    with pytest.raises(wg.ModelFileError, match=r"none\.wav cannot be read"):
        wg.io.read_sound(tmp_path / "none.wav")
