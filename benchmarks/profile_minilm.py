"""How much of a MiniLM batch's time a profile explains: at least 95 % on each device.

Embeds 32 sentences under `wg.profile` after a warm-up, on the cpu and on the best adapter, five times each.
Usage: profile_minilm.py [devices...]
"""

from __future__ import annotations

import statistics
import sys

from common import report

import webgrad as wg

SENTENCES = [
    f"Sentence {number} is about as long as those that people search their own notes for."
    for number in range(32)
]
FLOOR = 0.95


def main(devices: list[str]) -> int:
    good = []
    for device in devices:
        model = wg.models.load("minilm", device=device)
        model.embed(SENTENCES)
        found = []
        for _ in range(5):
            with wg.profile() as profile:
                model.embed(SENTENCES).numpy()
            found.append(profile.explained)
        worst, middle = min(found), statistics.median(found)
        print(profile)
        name = f"{device}: explained, worst of 5 (median {middle:.1%})"
        good.append(report(name, f"{worst:.1%}", f"≥ {FLOOR:.0%}", worst >= FLOOR))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["cpu", "webgpu"]))
