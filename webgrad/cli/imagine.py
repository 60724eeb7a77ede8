"""`webgrad imagine PROMPT --model DIR`: pictures out of noise, by a diffusion model.

In: a model, and what its pictures are to be. Out: PNG files, with the settings that made them in their
metadata, and how quick it was on standard error. While it works the files hold previews; Ctrl-C leaves the
last of them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import webgrad as wg

from .diffusion_pictures import Run, numbered
from .diffusion_settings import ARGUMENTS, arguments_of, texts_of
from .options import Parser, add_device, add_json, checked, clean, count, pair, real, size, whole
from .terminal import Output

__all__ = ["main"]

MEGABYTE = 1 << 20
MOST_AT_ONCE = 1024


def main(arguments: Sequence[str]) -> int:
    """Make pictures."""
    parser = _parser()
    options = parser.parse_args(arguments)
    columns, rows = options.grid or (options.count, 1)
    if columns * rows > MOST_AT_ONCE:
        parser.error(f"--count and --grid are of at most {MOST_AT_ONCE} pictures, not {columns * rows}")
    for name in ("mask", "strength"):
        if getattr(options, name) is not None and options.from_ is None:
            parser.error(f"--{name} says what of a picture is made anew: give --from too")
    wg.open_device(options.device)  # one that is not there is told of before all the work
    wg.io.check_writable(options.output, (".png",))
    given = {name: getattr(options, name) for name in ARGUMENTS if getattr(options, name) is not None}
    given |= {name: wg.io.read_picture(given[name]) for name in ("from_", "mask") if name in given}
    pipe = _pipeline(options)
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    asked = arguments_of(pipe, options.model, given, columns * rows)
    paths = numbered(options.output, 1 if options.grid else columns * rows)
    run = Run(paths, columns if options.grid else None, texts_of(options, pipe, asked, seed), options.preview)
    code = run.follow(pipe.steps(**asked, seed=seed), show=not options.json)
    _report(run, pipe, options, seed)
    return code


def _parser() -> Parser:
    parser = Parser(prog="webgrad imagine", description="Make pictures with a diffusion model.")
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", type=clean, help="what they show, in words")
    parser.add_argument(
        "--model", required=True, metavar="MODEL", help="a folder, or a name of the catalogue"
    )
    parser.add_argument("--prior", metavar="DIR", help="the first stage, of models in two folders")
    parser.add_argument("--output", type=Path, default=Path("imagined.png"), metavar="FILE",
                        help="a .png file; several are numbered (imagined.png)")  # fmt: skip
    many = parser.add_mutually_exclusive_group()
    many.add_argument("--count", type=count, default=1, metavar="N", help="so many files (1)")
    grid = checked(pair, "columns x rows, as 4x4")
    many.add_argument("--grid", type=grid, metavar="CxR", help="columns and rows of pictures in one file")
    about = parser.add_argument_group("what they are; a model takes some of these")
    about.add_argument("--negative", type=clean, metavar="TEXT", help="what they should not show")
    about.add_argument("--class", dest="class_", type=_class, metavar="NAME", help="a class, or its number")
    about.add_argument("--guidance", type=checked(real(0, 1000), "a number from 0 to 1000"), metavar="N",
                       help="how much the prompt or the class counts")  # fmt: skip
    about.add_argument("--from", dest="from_", metavar="PICTURE", help="a picture to begin with")
    about.add_argument("--mask", metavar="PICTURE", help="white where that is made anew; all else stays")
    share = checked(real(0, 1), "a number from 0 to 1")
    about.add_argument("--strength", type=share, metavar="N", help="how much of that is made anew, 0 to 1")
    about.add_argument("--size", type=size, metavar="WxH", help="width and height of a picture")
    how = parser.add_argument_group("how they are made")
    how.add_argument("--steps", type=count, metavar="N", help="from noise to a picture")
    how.add_argument("--prior-steps", type=count, metavar="N", help="those of the first of two stages")
    how.add_argument("--scheduler", metavar="NAME", help="ddim, euler, dpm-solver … (the model's own)")
    seed = checked(whole(0, (1 << 63) - 1), "an integer, 0 or more")
    how.add_argument("--seed", type=seed, metavar="N", help="the same pictures every time (random)")
    every = checked(whole(0), "an integer, 0 or more")
    how.add_argument("--preview", type=every, metavar="N", help="rewrite the files every N steps; 0: never")
    how.add_argument("--dtype", choices=("float32", "float16", "bfloat16", "q8_0", "q4_0", "q4_1"),
                     help="what weights are kept in (as they are stored)")  # fmt: skip
    how.add_argument("--lora", type=_lora, action="append", metavar="FILE[@N]",
                     help="changes of the weights, and how much they count; several times")  # fmt: skip
    add_device(parser)
    add_json(parser)
    return parser


def _lora(text: str) -> tuple[str, float]:
    """A file and how much it counts; an @ may be a part of its name."""
    path, _, scale = text.rpartition("@")
    try:
        return (path, float(scale)) if path else (text, 1.0)
    except ValueError:
        return text, 1.0


def _class(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else clean(text)


# The model


def _pipeline(options: argparse.Namespace) -> Any:
    name = options.model
    if not Path(name).exists() and name not in wg.models.catalogue():
        raise wg.ArgumentError(
            f"there is no model {clean(name)}: give a folder of diffusers, one with the model.json of "
            "TensorFlow.js, or terrain, which the catalogue has"
        )
    where = {"device": options.device, "dtype": options.dtype}
    pipe = wg.diffusion.load(name, prior=options.prior, lora=options.lora, **where)
    if options.scheduler is None:
        return pipe
    if not hasattr(pipe, "with_scheduler"):
        raise wg.ArgumentError(f"{name} is sampled in one way: leave --scheduler out")
    return pipe.with_scheduler(wg.diffusion.scheduler_named(options.scheduler, pipe.scheduler))


# What is said at the end


def _report(run: Run, pipe: Any, options: argparse.Namespace, seed: int) -> None:
    device, memory = str(pipe.device), _memory(pipe.device)
    if options.json:
        files = [str(each) for each in run.paths]
        whole_run = run.last.step == run.last.steps
        print(json.dumps({
            "files": files, "seed": seed, "device": device, "steps": run.taken, "is_whole": whole_run,
            "seconds": round(run.seconds, 3), "steps_per_second": round(run.speed, 3), "bytes": memory,
        }))  # fmt: skip
        return
    output, notes = Output(sys.stdout), Output(sys.stderr)
    for path in run.paths:
        output.line(str(path))
    kept = [] if run.last.step == run.last.steps else [f"stopped after step {run.last.step}: a preview"]
    parts = [*kept, f"seed {seed}", f"{run.speed:.3g} steps/s on {device}", f"first step {run.first:.1f} s"]
    notes.line(" · ".join([*parts, f"{memory / MEGABYTE:,.0f} MB"]), notes.dim)


def _memory(device: Any) -> int:
    """The most bytes so far: a GPU's buffers, else all of the process."""
    if str(device) != "cpu":
        return int(wg.stats(device)["bytes_peak"])
    try:
        import resource
    except ImportError:  # Windows
        return int(wg.stats(device)["bytes_peak"])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
