"""Where there is speech in a sound: Silero VAD, frame by frame, and a picture of what it finds.

    python examples/voice_activity.py speech.wav --picture speech.svg

Each frame of 32 ms is judged by itself, with what the network remembers of those before it. Speech begins
where it is likely and ends after a pause.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pictures
from arguments import file_to_write, run

import webgrad as wg

RATE = 16_000  # of the network
FRAME, CONTEXT = 512, 64  # samples that are judged, and those before them that it sees too
LIKELY, UNLIKELY = 0.5, 0.35  # speech begins above the first, and pauses below the second
PAUSE, SHORTEST, AROUND = 0.1, 0.25, 0.03  # seconds: that end speech, of speech at least, kept around it
TAPS = 32  # of the filter, in samples of the slower rate


def resampled(sound: Any, rate: int) -> Any:
    """A sound at the network's rate: each sample is a weighted sum of those near it (a windowed sinc)."""
    if rate == RATE:
        return sound
    step = rate / RATE
    cutoff = min(1.0, 1 / step)
    places = np.arange(int(len(sound) / step)) * step
    half = int(np.ceil(TAPS / cutoff / 2))
    padded = np.pad(sound, half)
    near = np.floor(places).astype(int)[:, None] + np.arange(-half + 1, half + 1)
    distance = places[:, None] - near
    window = np.cos(np.pi * np.clip(distance / half, -1, 1) / 2) ** 2
    return (padded[near + half] * np.sinc(distance * cutoff) * window * cutoff).sum(1).astype(np.float32)


def chances(sound: Any, device: str | None = None) -> Any:
    """How likely it is that there is speech in each frame."""
    model = wg.onnx.load("silero-vad", device=device)
    state: Any = np.zeros((2, 1, 128), np.float32)
    count = -(-len(sound) // FRAME)
    padded = np.pad(sound, (CONTEXT, count * FRAME - len(sound)))
    found = []
    for start in range(0, count * FRAME, FRAME):
        outputs = model(padded[None, start : start + CONTEXT + FRAME], state, np.asarray(RATE))
        state = outputs["stateN"]  # stays on the device
        found.append(outputs["output"])
    return wg.concat(found).numpy()[:, 0] if found else np.zeros(0, np.float32)


def spans(found: Sequence[float], seconds: float) -> list[tuple[float, float]]:
    """The times at which speech begins and ends."""
    frame = FRAME / RATE
    kept: list[tuple[float, float]] = []
    begin = pause = None
    for at, chance in enumerate((*found, *[0.0] * (int(PAUSE / frame) + 2))):
        time = at * frame
        if chance >= LIKELY:
            begin, pause = (time if begin is None else begin), None
        elif begin is not None and chance < UNLIKELY:
            pause = time if pause is None else pause
            if time - pause >= PAUSE:
                kept.append((begin, pause))
                begin = pause = None
    long = [each for each in kept if each[1] - each[0] >= SHORTEST]
    return [(max(0.0, begin - AROUND), min(seconds, end + AROUND)) for begin, end in long]


def main() -> None:
    """Print the spans of speech, and draw them."""
    parser = argparse.ArgumentParser(description="Find speech in a sound.")
    parser.add_argument("sound", type=Path, help="a .wav file")
    parser.add_argument("--picture", type=file_to_write, metavar="SVG", help="draw the sound and its speech")
    parser.add_argument("--device", help="cpu, webgpu, webgpu:N … (default: the best)")
    options = parser.parse_args()
    samples, rate = wg.io.read_sound(options.sound)
    sound = resampled(samples.mean(1), rate)
    seconds = len(sound) / RATE
    found = chances(sound, options.device)
    speech = spans(found.tolist(), seconds)
    for begin, end in speech:
        print(f"{begin:8.2f} s to {end:8.2f} s")
    total = sum(end - begin for begin, end in speech)
    print(f"{total:.2f} s of speech in {seconds:.2f} s")
    if options.picture:
        pictures.write_sound(options.picture, sound, seconds, found, speech, options.sound.name)


if __name__ == "__main__":
    run(main)
