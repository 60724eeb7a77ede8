"""Damaged and hostile files of weights, of every kind that webgrad.io reads.

In: a seed. Out: a small sound file that was changed at random, and what became of opening it and reading all
its tensors. Each must give tensors or a ModelFileError; `python -m scripts.fuzz --only files` opens millions.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
import webgrad.torch as torch
from scripts.fuzzing import Case

__all__ = ["Damaged", "change", "damaged", "open_all", "seeds", "start"]

Damaged = tuple[str, bytes]  # suffix, contents

# Files to begin with


def seeds(folder: Path) -> list[Damaged]:
    """Small sound files of all kinds; the index is of the last of safetensors, as sound.safetensors."""
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(4, 64)).astype(np.float32)
    tensors: dict[str, Any] = {"token.weight": matrix, "norm": matrix[0, :5], "ids": np.arange(6)}
    blocks = {"q": wg.quantise(wg.asarray(matrix, device="cpu"), "Q4_1"), "half": matrix[:2, :3]}
    values = {
        "general.architecture": "llama",
        "general.alignment": 32,
        "tokens": ["a", "bc", "", "ü"],
        "nested": [[1, 2], [3]],
        "scores": [0.5, 1.0],
        "flag": True,
        "step": 1 << 40,
    }
    wg.io.save(folder / "a.gguf", tensors | blocks, values)
    wg.io.save(folder / "b.gguf", tensors, {"n": np.arange(1100, dtype=np.int8)}, format="Q8_0")
    wg.io.save(folder / "a.safetensors", tensors, {"format": "np"})
    wg.io.save(folder / "b.safetensors", {name: np.ones(3, np.int8) for name in "abcdefgh"})
    wg.io.save(folder / "a.npy", {"x": matrix})
    wg.io.save(folder / "a.npz", tensors)
    np.savez_compressed(folder / "b.npz", **tensors)
    torch.save(
        {"model": tensors | {"t": torch.tensor(matrix)}, "step": 3, "lr": [0.1, "x", None]}, folder / "a.pt"
    )
    for name in ("torch-zip.pt", "torch-legacy.pt"):
        shutil.copy(Path(__file__).parents[1] / "tests" / "io" / name, folder / f"{name[6]}.pt")
    index = {"metadata": {"total_size": 24}, "weight_map": dict.fromkeys("abcdefgh", "sound.safetensors")}
    (folder / "c.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    found = [(path.name[1:], path.read_bytes()) for path in sorted(folder.iterdir())]
    older = [(suffix, data[:4] + struct.pack("<I", 2) + data[8:]) for suffix, data in found[:1]]
    return found + older


# Changes

HUGE = (0, 1, 7, 31, 255, 1 << 16, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40)
HUGER = ((1 << 62) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 32)
DIGIT = re.compile(rb"[0-9]")
Change = Callable[[random.Random, bytearray, bytes], None]


def flip_bits(generator: random.Random, data: bytearray, other: bytes) -> None:
    for _ in range(generator.randint(1, 8)):
        data[_place(generator, data)] ^= 1 << generator.randrange(8)


def set_bytes(generator: random.Random, data: bytearray, other: bytes) -> None:
    for _ in range(generator.randint(1, 4)):
        data[_place(generator, data)] = generator.choice((0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)))


def set_number(generator: random.Random, data: bytearray, _: bytes) -> None:
    """A length, count, type or place becomes another: at any byte, four or eight of them."""
    width = generator.choice((2, 4, 8))
    value = generator.choice(HUGE + HUGER) if generator.random() < 0.7 else generator.randrange(1 << 12)
    place = _place(generator, data)
    data[place : place + width] = (value % (1 << 8 * width)).to_bytes(width, "little")


def change_digit(generator: random.Random, data: bytearray, _: bytes) -> None:
    """A number that is written out, as in JSON."""
    digits = [found.start() for found in DIGIT.finditer(data, 0, 2000)]
    if digits:
        at = generator.choice(digits)
        data[at : at + 1] = generator.choice(
            (b"0", b"9", b"-1", b"99999999999999999999", b"1e9", b"[]", b'"')
        )


def truncate(generator: random.Random, data: bytearray, _: bytes) -> None:
    del data[generator.randrange(len(data)) :]


def cut_out(generator: random.Random, data: bytearray, _: bytes) -> None:
    place = _place(generator, data)
    del data[place : place + generator.randint(1, 64)]


def repeat(generator: random.Random, data: bytearray, _: bytes) -> None:
    place = _place(generator, data)
    part = data[place : place + generator.randint(1, 200)]
    data[place:place] = part * generator.randint(1, 20)


def splice(generator: random.Random, data: bytearray, other: bytes) -> None:
    start = generator.randrange(len(other))
    part = other[start : start + generator.randint(1, 400)]
    place = _place(generator, data)
    data[place : place + len(part) * generator.randrange(2)] = part


def add_tail(generator: random.Random, data: bytearray, _: bytes) -> None:
    data += generator.randbytes(generator.randint(1, 300))


CHANGES: tuple[Change, ...] = (
    *(flip_bits, set_bytes, set_number, set_number, change_digit),
    *(truncate, cut_out, repeat, splice, add_tail),
)


def _place(generator: random.Random, data: bytearray) -> int:
    """Mostly near the beginning or the end, where lengths, counts and places are."""
    size = max(len(data), 1)
    near = min(size, 600)
    choice = generator.random()
    if choice < 0.7:
        return generator.randrange(near)
    return size - 1 - generator.randrange(near) if choice < 0.8 else generator.randrange(size)


def change(generator: random.Random, contents: bytes, others: Sequence[bytes]) -> bytes:
    """Contents with one to five changes, some of which take parts of others."""
    data = bytearray(contents)
    for _ in range(generator.choice((1, 1, 1, 2, 3, 5))):
        if data:
            generator.choice(CHANGES)(generator, data, generator.choice(others))
    return bytes(data)


def damaged(seed: int, sound: Sequence[Damaged]) -> Damaged:
    """The file of this seed: the same one again for the same seed."""
    suffix, contents = sound[seed % len(sound)]
    return suffix, change(random.Random(seed), contents, [data for _, data in sound])


# Opening


def open_all(path: Path) -> str:
    """Open a file and read all of it: "sound", "refused", or "refused later", when a tensor was asked for."""
    try:
        weights = wg.io.open(path)
    except wg.ModelFileError:
        return "refused"
    outcome = "sound"
    for name in weights:
        try:
            found = weights.host(name)
        except wg.ModelFileError:
            outcome = "refused later"
            continue
        array = found.data if isinstance(found, wg.io.Blocks) else found
        array.tobytes()  # which touches every byte
    return outcome


def start(folder: Path) -> Case:
    """A function that makes, writes and opens the file of a seed, in this folder."""
    (folder / "seeds").mkdir()
    sound = seeds(folder / "seeds")
    files: dict[str, tuple[Path, int]] = {}
    for suffix, data in sound:  # what is imported and made once
        (folder / f"sound{suffix}").write_bytes(data)
        open_all(folder / f"sound{suffix}")
        path = folder / f"file{suffix}"
        files.setdefault(suffix, (path, os.open(path, os.O_CREAT | os.O_WRONLY)))

    def case(seed: int) -> str:
        suffix, data = damaged(seed, sound)
        path, file = files[suffix]
        os.ftruncate(file, len(data))
        os.pwrite(file, data, 0)
        return f"{suffix} {open_all(path)}"

    return case
