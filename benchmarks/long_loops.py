"""Training or decoding over and over: memory must stay flat, and every round give the same.

What is live is counted after every round, besides resident memory, which also has what allocators keep, and
comes to rest only after several rounds. Where it did not, as many rounds are run again: what leaks goes on.

Usage: long_loops.py training|decoding DEVICE [seconds]
"""

from __future__ import annotations

import gc
import hashlib
import sys
import time
from collections.abc import Callable

from common import inline_dispatches, report, resident_bytes

inline_dispatches()

import numpy as np  # noqa: E402

import webgrad as wg  # noqa: E402

SECONDS, FEWEST, TRIES = 120.0, 12, 3
LIMIT = 0.01
PROMPT = "Explain photosynthesis."


def training(device: str) -> Callable[[], tuple[str, int]]:
    """A round: 60 captured steps of a small classifier from the same start; gives its weights."""
    images = np.random.default_rng(0).normal(size=(64, 1, 16, 16)).astype(np.float32)
    labels = np.random.default_rng(1).integers(0, 10, 64)

    def run() -> tuple[str, int]:
        wg.random.seed(5)
        model = wg.nn.Sequential(
            wg.nn.Conv2d(1, 8, 3, padding=1),
            wg.nn.ReLU(),
            wg.nn.MaxPool2d(2),
            wg.nn.Flatten(),
            wg.nn.Linear(512, 10),
        ).to(device)
        optimiser = wg.optim.AdamW(model.parameters(), lr=1e-3)

        @wg.jit
        def step(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
            optimiser.zero_grad()
            loss = wg.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            return loss

        for number in range(60):
            batch = slice(number % 4 * 16, number % 4 * 16 + 16)
            step(wg.asarray(images[batch], device=device), wg.asarray(labels[batch], device=device))
        data = b"".join(each.numpy().tobytes() for each in model.parameters())
        return hashlib.sha256(data).hexdigest(), 60

    return run


def decoding(device: str) -> Callable[[], tuple[str, int]]:
    """A round: an answer of 32 tokens by SmolLM2, the likeliest each time."""
    model = wg.models.load("smollm2:135m", device=device)

    def run() -> tuple[str, int]:
        ids = list(model.generate_ids(model.tokenizer.encode(PROMPT), max_tokens=32, temperature=0))
        return str(ids), len(ids)

    return run


def steady(values: list[int]) -> list[int]:
    """The second half: what allocators and caches keep, they have by then."""
    return values[len(values) // 2 :]


def change(values: list[int]) -> float:
    """The farthest that there is from the first, as a part of it."""
    return max(((value - values[0]) / max(values[0], 1) for value in values), key=abs)


def main(kind: str, device: str, seconds: float) -> int:
    run = {"training": training, "decoding": decoding}[kind](device)
    unit = {"training": "steps", "decoding": "tokens"}[kind]
    results, count, kept = [], 0, dict[str, list[int]]()
    began = time.perf_counter()
    for _ in range(TRIES):
        kept = {"resident memory": [], "live bytes of tensors": [], "live objects": []}
        last = len(results) + FEWEST
        while len(results) < last or time.perf_counter() - began < seconds:
            result, done = run()
            gc.collect()
            results.append(result)
            found = resident_bytes(), wg.stats(device)["bytes_live"], len(gc.get_objects())
            for values, value in zip(kept.values(), found, strict=True):
                values.append(value)
            count += done
        if abs(change(steady(kept["resident memory"]))) <= LIMIT:
            break
    elapsed = time.perf_counter() - began
    memory = steady(kept["resident memory"])
    print(f"{count:,} {unit} in {elapsed:.0f} s, {len(results):,} rounds")
    print(f"resident memory: {memory[0] >> 20} MiB warmed up, {memory[-1] >> 20} MiB at the end")
    different = len(set(results)) - 1
    good = [report(f"{unit} in all", f"{count:,}", f"≥ {FEWEST} rounds", len(results) >= FEWEST)]
    for name, values in kept.items():
        farthest = change(steady(values))
        what = f"{name}, farthest from the first"
        good.append(report(what, f"{farthest:+.2%}", "± 1 %", abs(farthest) <= LIMIT))
    good.append(report("results unlike the first round's", f"{different}", "0", different == 0))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else SECONDS))
