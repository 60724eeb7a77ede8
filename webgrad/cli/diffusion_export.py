"""`webgrad export FOLDER OUT` of a diffusion model: a page that paints step by step.

In: the options of `webgrad export`. Out: the page, and what kind it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import webgrad as wg

from ..web.painters import LEAST_GUIDANCE, MOST_GUIDANCE
from ..web.painting import export_diffusion
from .options import checked, count, real, size

__all__ = ["add_painting", "export_painting", "is_diffusion"]

INDEXES = ("model_index.json", "model.json")  # of diffusers' folders, and of graphs of TensorFlow.js


def is_diffusion(model: str) -> bool:
    """Whether a word is the path of a folder with a diffusion model."""
    return any((Path(model) / each).is_file() for each in INDEXES)


def export_painting(
    options: argparse.Namespace, title: str, report: Callable[[str], None]
) -> tuple[Path, str]:
    """Write the page; gives its path and kind."""
    page = export_diffusion(
        wg.diffusion.load(options.model, device=options.device),
        options.out,
        counts=options.count,
        sizes=options.size,
        guidance=options.guidance,
        name=title,
        single_file=options.single_file,
        overwrite=options.force,
        report=report,
    )
    return page, "painting"


def add_painting(parser: argparse.ArgumentParser) -> None:
    """The options of a page that paints; each may stand there several times but for the last."""
    some = "of a diffusion model: how many pictures at once; several give a choice"
    parser.add_argument("--count", type=count, action="append", default=[], metavar="N", help=some)
    sizes = "of a diffusion model: width and height of pictures (default: as it was trained for)"
    parser.add_argument("--size", type=size, action="append", default=[], metavar="WxH", help=sizes)
    much = "of a diffusion model: what the page begins with; 1 leaves guidance out, which halves the work"
    allowed = f"a number from {LEAST_GUIDANCE} to {MOST_GUIDANCE}"
    guidance = checked(real(LEAST_GUIDANCE, MOST_GUIDANCE), allowed)
    parser.add_argument("--guidance", type=guidance, metavar="G", help=much)
