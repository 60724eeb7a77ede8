"""Pictures for the examples, as SVG and without another library: matrices, curves, sounds, boxes of text."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["write_boxes", "write_curve", "write_matrix", "write_sound"]

_STYLE = "font-family:system-ui,sans-serif"


def _page(width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" style="{_STYLE}" font-size="12">\n'
        '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(text)}</text>'


def write_matrix(path: Path, matrix: Any, names: Sequence[str], title: str) -> None:
    """A square table of counts: rows are what things are, columns what they are taken for."""
    cell, left, top = 46, 110, 130
    size = len(names)
    parts = [_text(left, 24, title, 'font-size="16" font-weight="bold"')]
    parts.append(_text(left, 44, "rows: what it is · columns: what it is taken for", 'fill="#666"'))
    for at, name in enumerate(names):
        middle = cell * at + cell / 2
        parts.append(_text(left - 8, top + middle + 4, name, 'text-anchor="end"'))
        turn = f'transform="rotate(-45 {left + middle:g} {top - 8})"'
        parts.append(_text(left + middle, top - 8, name, turn))
    for row in range(size):
        total = max(1, int(sum(matrix[row])))
        for column in range(size):
            count = int(matrix[row][column])
            share = count / total
            shade = math.sqrt(share)  # so that a few mistakes can be seen
            base = (31, 119, 180) if row == column else (214, 39, 40)
            colour = ",".join(str(round(255 + (each - 255) * shade)) for each in base)
            x, y = left + cell * column, top + cell * row
            parts.append(
                f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="rgb({colour})" stroke="#eee"/>'
            )
            if count:
                ink = "#fff" if shade > 0.6 else "#333"
                parts.append(
                    _text(x + cell / 2, y + cell / 2 + 4, str(count), f'text-anchor="middle" fill="{ink}"')
                )
    path.write_text(_page(left + cell * size + 60, top + cell * size + 20, parts), encoding="utf-8")


def write_curve(
    path: Path,
    curves: dict[str, Sequence[tuple[float, float]]],
    title: str,
    x_label: str,
    goal: float | None = None,
) -> None:
    """Curves through points (x, y), each under its name; `goal` is a dashed line at that height."""
    width, height, left, top = 720, 400, 60, 50
    right, bottom = width - 20, height - 50
    points = [point for curve in curves.values() for point in curve]
    most_x = max((x for x, _ in points), default=1.0) or 1.0
    heights = [y for _, y in points] + ([goal] if goal is not None else [])
    low, high = _rounded(min(heights, default=0.0), max(heights, default=1.0))

    def place(x: float, y: float) -> str:
        across, up = x / most_x, (y - low) / (high - low)
        return f"{left + (right - left) * across:.1f},{bottom - (bottom - top) * up:.1f}"

    parts = [_text(left, 28, title, 'font-size="16" font-weight="bold"')]
    for at in range(5):
        y = low + (high - low) * at / 4
        first, second = place(0, y).split(","), place(most_x, y).split(",")
        parts.append(f'<path d="M{",".join(first)} L{",".join(second)}" stroke="#ddd"/>')
        parts.append(_text(left - 8, float(first[1]) + 4, f"{y:.3g}", 'text-anchor="end"'))
    for x in _marks(most_x):
        across = float(place(x, low).split(",")[0])
        parts.append(_text(across, bottom + 18, f"{x:,g}", 'text-anchor="middle"'))
    parts.append(_text((left + right) / 2, height - 10, x_label, 'text-anchor="middle" fill="#666"'))
    if goal is not None:
        ends = f"M{place(0, goal)} L{place(most_x, goal)}"
        parts.append(f'<path d="{ends}" stroke="#2ca02c" stroke-dasharray="6 4"/>')
    colours = ("#1f77b4", "#d62728", "#9467bd", "#8c564b")
    for at, (name, curve) in enumerate(curves.items()):
        colour = colours[at % len(colours)]
        line = " L".join(place(x, y) for x, y in curve)
        if len(curve) == 1:
            x, y = line.split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        elif line:
            parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(right - 8, top + 16 + 18 * at, name, f'text-anchor="end" fill="{colour}"'))
    path.write_text(_page(width, height, parts), encoding="utf-8")


def write_sound(
    path: Path,
    sound: Any,
    seconds: float,
    chances: Sequence[float],
    spans: Sequence[tuple[float, float]],
    title: str,
) -> None:
    """A sound's samples with how likely each part is to be speech, and the spans that are taken for it."""
    width, left, top, height = 960, 20, 50, 200
    middle, scale = top + height / 2, (width - 2 * left) / max(seconds, 1e-9)
    parts = [_text(left, 28, title, 'font-size="16" font-weight="bold"')]
    for begin, end in spans:
        where = f'x="{left + begin * scale:.1f}" width="{(end - begin) * scale:.1f}"'
        parts.append(f'<rect class="span" {where} y="{top}" height="{height}" fill="#2ca02c" opacity="0.2"/>')
    columns = min(len(sound), width - 2 * left)
    for at in range(columns):
        some = sound[at * len(sound) // columns : (at + 1) * len(sound) // columns]
        x, high, low = left + (at + 0.5) * (width - 2 * left) / columns, max(some), min(some)
        ends = f"M{x:.1f},{middle - high * height / 2:.1f}V{middle - low * height / 2 + 0.5:.1f}"
        parts.append(f'<path d="{ends}" stroke="#1f77b4"/>')
    step = (width - 2 * left) / max(len(chances), 1)
    line = " L".join(
        f"{left + (at + 0.5) * step:.1f},{top + height * (1 - each):.1f}" for at, each in enumerate(chances)
    )
    if line:
        parts.append(f'<path class="chances" d="M{line}" fill="none" stroke="#d62728" stroke-width="1.5"/>')
    parts += [
        _text(left + at * scale, top + height + 20, f"{at:g} s", 'text-anchor="middle"')
        for at in _marks(seconds)
    ]
    path.write_text(_page(width, top + height + 40, parts), encoding="utf-8")


def write_boxes(
    path: Path, picture: Path, size: tuple[int, int], boxes: Sequence[Any], texts: Sequence[str]
) -> None:
    """A picture with boxes of four corners drawn on it, and beside it the text of each at its place."""
    width, height = size
    kind = "png" if picture.suffix.lower() == ".png" else "jpeg"
    data = base64.b64encode(picture.read_bytes()).decode()
    image = f'<image href="data:image/{kind};base64,{data}" width="{width}" height="{height}"/>'
    parts = [image, f'<rect x="{width}" width="{width}" height="{height}" fill="#fff" stroke="#ccc"/>']
    for box, text in zip(boxes, texts, strict=True):
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in box)
        parts.append(f'<polygon points="{corners}" fill="none" stroke="#d62728" stroke-width="2"/>')
        high = max(8.0, 0.6 * math.dist(box[0], box[3]))
        length = f'textLength="{math.dist(box[0], box[1]):.1f}" lengthAdjust="spacingAndGlyphs"'
        parts.append(
            _text(width + box[3][0], box[3][1] - 0.2 * high, text, f'font-size="{high:.1f}" {length}')
        )
    path.write_text(_page(2 * width, height, parts), encoding="utf-8")


def _marks(most: float) -> list[float]:
    """Four to nine round numbers from 0 up to `most`."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(power * part for part in (1.0, 0.5, 0.25, 0.2, 0.1) if most / (power * part) >= 3)
    return [step * at for at in range(int(most / step) + 1)]


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Limits for an axis: a little outside, at round numbers."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-6))) / 2
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    return low, high if high > low else low + step
