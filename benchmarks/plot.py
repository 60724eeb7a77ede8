"""The plot of ratios: a bar for each goal, on a logarithmic scale, as an SVG file written by hand.

In: `Line`s. Out: text. A bar to the right of 1 means that webgrad is quicker; a tick on it shows the goal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from results import Line
from workloads import WORKLOADS

__all__ = ["svg"]

LEFT, WIDTH, RIGHT, ROW, TOP = 270, 520, 150, 22, 50  # pixels
LEAST, MOST = 0.25, 64.0
HEADING = "times as quick as the best peer (cpu: as torch); green: the goal is reached"
COLOURS = {True: "#2a7f4f", False: "#c0392b", None: "#7f8c8d"}


def place(ratio: float) -> float:
    """How far to the right a ratio is."""
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + WIDTH * share


def svg(lines: Sequence[Line]) -> str:
    """The drawing."""
    drawn = [each for each in lines if each.ratio is not None]
    height = TOP + ROW * len(drawn) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="18">{HEADING}</text>',
    ]
    tick = LEAST
    while tick <= MOST:
        x = place(tick)
        colour = "#333" if tick == 1 else "#ddd"
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{height - 15}" stroke="{colour}"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{TOP - 14}" text-anchor="middle" fill="#555">{tick:g} ×</text>')
        tick *= 2
    for at, each in enumerate(drawn):
        parts += _bar(each, TOP + ROW * at)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(line: Line, y: int) -> list[str]:
    assert line.ratio is not None
    start, end = sorted((place(1), place(line.ratio)))
    parts = [
        f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(line.title)}</text>',
        f'<rect x="{start:.1f}" y="{y + 3}" width="{max(end - start, 1):.1f}" height="{ROW - 7}" '
        f'fill="{COLOURS[line.reached]}"/>',
        f'<text x="{end + 6:.1f}" y="{y + 14}" fill="#333">{line.ratio:.2f} × {escape(line.other)}</text>',
    ]
    wanted = _wanted(line)
    if wanted is not None:
        x = place(wanted)
        parts.append(
            f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + ROW - 1}" stroke="#000" stroke-width="2"/>'
        )
    return parts


def _wanted(line: Line) -> float | None:
    goal = WORKLOADS[line.workload].goal
    if line.title.startswith("cpu"):
        return 1 / goal.cpu if goal.cpu is not None else None
    return 1 / goal.against[1] if goal.against is not None else goal.ratio
