"""The text in a picture of a page: PP-OCRv4, three networks that find lines, turn them, and read them.

    python examples/read_text.py page.png --boxes boxes.svg

PNG files need nothing more; JPEG and others need Pillow. The geometry between the networks is in
`text_boxes.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pictures
import text_boxes
from arguments import above_zero, file_to_write, run

import webgrad as wg

HEIGHT = 48  # of a line, for the two networks that see lines
STEP = 160  # lines are filled up to widths that are multiples of it, so that there are few shapes
TURNED = 0.9  # how sure it must be that a line is upside down
POOREST = 0.5  # the least mean score of a line's letters that is told


class Line(NamedTuple):
    """A line of text: its four corners from the upper left on, what stands there, and how sure that is."""

    box: Any
    text: str
    score: float


def normalised(pixels: Any) -> Any:
    """A picture (height, width, 3) as networks see it: (1, 3, height, width), from -1 to 1, blue first."""
    return ((pixels[:, :, ::-1].astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None]


def resized(pixels: Any, height: int, width: int) -> Any:
    """A picture of another size."""
    planes = wg.asarray(pixels.astype(np.float32).transpose(2, 0, 1)[None].copy(), device="cpu")
    found = wg.interpolate(planes, size=(height, width), mode="bilinear", antialias=True)
    return np.moveaxis(found.numpy()[0], 0, 2)


def find_lines(model: Any, pixels: Any, longest: int) -> list[Any]:
    """The boxes of lines, in the order in which they are read."""
    height, width = pixels.shape[:2]
    scale = min(1.0, longest / max(height, width))
    size = [max(32, round(side * scale / 32) * 32) for side in (height, width)]
    chances = model(normalised(resized(pixels, *size)))[0].numpy()[0, 0]
    boxes = text_boxes.boxes_of(chances)
    return text_boxes.in_reading_order(box * (width / size[1], height / size[0]) for box in boxes)


def line_of(pixels: Any, box: Any) -> Any:
    """What is in a box, upright and of the height that networks want."""
    crop = text_boxes.cut_out(pixels, box)
    if crop.shape[0] > 1.5 * crop.shape[1]:
        crop = np.rot90(crop)
    return resized(crop, HEIGHT, max(8, round(HEIGHT * crop.shape[1] / crop.shape[0])))


def filled(line: Any, width: int) -> Any:
    """A line as a network sees it, with nothing (0) behind it."""
    seen = normalised(line[:, :width])
    return np.pad(seen, ((0, 0), (0, 0), (0, 0), (0, width - seen.shape[3])))


def upright(model: Any, line: Any) -> Any:
    """The line, turned by half a turn where it is upside down."""
    _, turned = model(filled(line, 192))[0].numpy()[0]
    return line[::-1, ::-1] if turned > TURNED else line


def read(model: Any, line: Any, letters: Sequence[str]) -> tuple[str, float]:
    """A line's text, and how sure its letters are in the mean."""
    scores = model(filled(line, -(-line.shape[1] // STEP) * STEP))[0].numpy()[0]
    best, sure = scores.argmax(1), scores.max(1)
    is_new = np.concatenate([[True], best[1:] != best[:-1]]) & (best > 0)  # 0 parts equal letters
    text = "".join(letters[each - 1] for each in best[is_new])
    return text.strip(), float(sure[is_new].mean()) if is_new.any() else 0.0


def read_picture(pixels: Any, device: str | None = None, longest: int = 960) -> list[Line]:
    """The lines of text in a picture (height, width, 3) of bytes."""
    finder, turner, reader = (wg.onnx.load(f"pp-ocr-{name}", device=device) for name in ("det", "cls", "rec"))
    letters = [*reader.contents.metadata["character"].split("\n"), " "]
    found = []
    for box in find_lines(finder, pixels, longest):
        text, score = read(reader, upright(turner, line_of(pixels, box)), letters)
        if text and score >= POOREST:
            found.append(Line(box, text, score))
    return found


def main() -> None:
    """Print the lines of a picture, and draw where they are."""
    parser = argparse.ArgumentParser(description="Read the text in a picture.")
    parser.add_argument("picture", type=Path, help="a PNG file, or any that Pillow reads")
    parser.add_argument("--boxes", type=file_to_write, metavar="SVG", help="draw the picture with its lines")
    parser.add_argument(
        "--longest", type=above_zero, default=960, help="pixels of the longer side that are seen"
    )
    parser.add_argument("--scores", action="store_true", help="say how sure each line is")
    parser.add_argument("--device", help="cpu, webgpu, webgpu:N … (default: the best)")
    options = parser.parse_args()
    pixels = wg.io.read_picture(options.picture)
    lines = read_picture(pixels, options.device, options.longest)
    for line in lines:
        print(f"{line.score:6.1%}  {line.text}" if options.scores else line.text)
    if options.boxes:
        size = (pixels.shape[1], pixels.shape[0])
        boxes, texts = [line.box.tolist() for line in lines], [line.text for line in lines]
        pictures.write_boxes(options.boxes, options.picture, size, boxes, texts)


if __name__ == "__main__":
    run(main)
