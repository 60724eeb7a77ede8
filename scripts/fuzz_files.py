"""Damaged and hostile files by the thousand: `python -m scripts.fuzz_files --count 200000`.

Small files of every kind that webgrad.io reads are changed at random and opened, and all their tensors read.
Each must give tensors or a ModelFileError, within a second of processor time and with little memory. Workers
are processes with a limit on memory: one that dies leaves its last file behind, and its name is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg

__all__ = ["Damaged", "damaged", "main", "open_all", "seeds"]

SECONDS = 1.0
MEMORY = 256 << 20  # bytes that a worker may take beyond those it begins with
PORTION = 10_000  # files of one worker
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
    index = {"metadata": {"total_size": 24}, "weight_map": dict.fromkeys("abcdefgh", "sound.safetensors")}
    (folder / "c.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    found = [(path.name[1:], path.read_bytes()) for path in sorted(folder.iterdir())]
    older = [(suffix, data[:4] + struct.pack("<I", 2) + data[8:]) for suffix, data in found[:1]]
    return found + older


# Changes

HUGE = (0, 1, 7, 31, 255, 1 << 16, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40)
HUGER = ((1 << 62) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 32)
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
    digits = [at for at, byte in enumerate(data[:2000]) if chr(byte).isdigit()]
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


def damaged(number: int, sound: Sequence[Damaged]) -> Damaged:
    """The file of this number: the same one again for the same number."""
    generator = random.Random(number)
    suffix, contents = sound[number % len(sound)]
    data = bytearray(contents)
    for _ in range(generator.choice((1, 1, 1, 2, 3, 5))):
        if data:
            generator.choice(CHANGES)(generator, data, generator.choice(sound)[1])
    return suffix, bytes(data)


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


class _Slow(BaseException):
    """The time is over; nothing that is opened may catch this."""


def _too_slow(number: int, frame: object) -> None:
    raise _Slow


def work(first: int, count: int, folder: Path) -> dict[str, Any]:
    """Open so many files, and say how it went."""
    (folder / "seeds").mkdir(exist_ok=True)
    sound = seeds(folder / "seeds")
    for suffix, data in sound:  # what is imported and made once
        (folder / f"sound{suffix}").write_bytes(data)
        open_all(folder / f"sound{suffix}")
    before = _peak()
    _limit_memory()
    signal.signal(signal.SIGPROF, _too_slow)
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    slowest = (0.0, -1)
    log = os.open(folder / "number", os.O_CREAT | os.O_WRONLY)
    for number in range(first, first + count):
        suffix, data = damaged(number, sound)
        path = folder / f"file{suffix}"
        path.unlink(missing_ok=True)  # some file systems wait for the disk where a file is written over
        path.write_bytes(data)
        os.pwrite(log, f"{number:<20}".encode(), 0)
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            outcome = open_all(path)
        except BaseException as error:  # whatever is not a ModelFileError is what this looks for
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome = "FAILED"
            failures.append(f"{number}: {type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, (time.process_time() - start, number))
        outcomes[f"{suffix} {outcome}"] += 1
    return {
        "outcomes": outcomes,
        "failures": failures,
        "slowest": slowest,
        "memory": _peak() - before,
    }


def _peak() -> int:
    import resource  # which Windows has not; the tests of files use the rest of this module there

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _limit_memory() -> None:
    """A limit on the address space, where the system says how much of it is in use."""
    import resource

    try:
        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))


# All of them


def main(arguments: Sequence[str]) -> int:
    """Open so many files in workers, one after the other; 1 where one of them failed."""
    parser = argparse.ArgumentParser(prog="fuzz_files", description=__doc__)
    parser.add_argument("--count", type=int, default=200_000, help="how many files")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps(work(options.first, options.count, Path(options.worker))))
        return 0
    outcomes: Counter[str] = Counter()
    failures: list[str] = []
    slowest, memory = (0.0, -1), 0
    for first in range(options.first, options.first + options.count, PORTION):
        count = min(PORTION, options.first + options.count - first)
        found = _run_worker(first, count)
        outcomes.update(found["outcomes"])
        failures += found["failures"]
        slowest = max(slowest, tuple(found["slowest"]))
        memory = max(memory, found["memory"])
        print(f"{sum(outcomes.values()):,} files, {len(failures)} failures", flush=True)
    print("\n".join(f"{count:>8,}  {what}" for what, count in sorted(outcomes.items())))
    print(f"slowest: number {slowest[1]}, {slowest[0] * 1000:.1f} ms; memory: {memory / 2**20:.1f} MiB more")
    print("\n".join(failures[:20]))
    return 1 if failures else 0


def _run_worker(first: int, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="webgrad-fuzz-") as folder:
        command = [sys.executable, "-m", "scripts.fuzz_files", "--worker", folder]
        command += ["--first", str(first), "--count", str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout)
            return found
        at = Path(folder, "number")
        last = at.read_text().strip() if at.exists() else "none"
    text = f"{last}: the worker ended with {done.returncode}: {done.stderr[-400:]}"
    return {"outcomes": {"CRASHED": 1}, "failures": [text], "slowest": (0.0, -1), "memory": 0}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
