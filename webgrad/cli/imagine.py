"""`webgrad imagine PROMPT --model DIR`: pictures out of noise, by a diffusion model.

In: a model, and what its pictures are to be. Out: PNG files, with the settings that made them in their
metadata, and how quick it was on standard error. While it works the files hold previews; Ctrl-C leaves the
last of them. Which options a model takes, the arguments of its pipeline's `steps` say.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .options import Parser, add_device, add_json, checked, clean, count, pair, real, size, whole
from .terminal import Output

__all__ = ["main"]

MEGABYTE = 1 << 20
INTERRUPTED = 130
MOST_AT_ONCE = 1024
# option → the argument of `steps` that it is
ARGUMENTS: Mapping[str, str] = {
    "prompt": "prompt",
    "negative": "negative",
    "class_": "classes",
    "guidance": "guidance",
    "steps": "steps",
    "prior_steps": "prior_steps",
    "size": "size",
    "from_": "picture",
    "mask": "mask",
    "strength": "strength",
}


def main(arguments: Sequence[str]) -> int:
    """Make pictures."""
    parser = _parser()
    options = parser.parse_args(arguments)
    columns, rows = options.grid or (options.count, 1)
    if columns * rows > MOST_AT_ONCE:
        parser.error(f"--grid {columns}x{rows} is more than {MOST_AT_ONCE} pictures at once")
    wg.open_device(options.device)  # one that is not there is told of before all the work
    wg.io.check_writable(options.output, (".png",))
    given = {name: getattr(options, name) for name in ARGUMENTS if getattr(options, name) is not None}
    given |= {name: wg.io.read_picture(given[name]) for name in ("from_", "mask") if name in given}
    pipe = _pipeline(options)
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    asked = _arguments(pipe, options.model, given, columns * rows)
    paths = _paths(options.output, 1 if options.grid else columns * rows)
    run = _Run(
        paths, columns if options.grid else None, _settings(options, pipe, asked, seed), options.preview
    )
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


def _arguments(pipe: Any, model: str, given: Mapping[str, Any], number: int) -> dict[str, Any]:
    """What the pipeline's `steps` is called with; an option that it does not take is refused by its name."""
    known = inspect.signature(pipe.steps).parameters
    if "latents" in known:
        raise wg.ArgumentError(f"{model} is the second stage of a model in two folders: give --prior")
    for option, value in given.items():
        if ARGUMENTS[option] not in known:
            raise wg.ArgumentError(f"{model} takes no {_shown(option, value)}; it takes {_taken(known)}")
    for option, name in ARGUMENTS.items():
        is_needed = name in known and known[name].default is inspect.Parameter.empty
        if is_needed and option not in given:
            raise wg.ArgumentError(f"{model} needs {_words(option)}{_classes_of(pipe, name)}")
    asked = {_argument_of(option, known): value for option, value in given.items()}
    if "prompt" in known:
        return asked | {"prompt": [asked["prompt"]] * number}
    return asked | {"count": number}


def _argument_of(option: str, known: Mapping[str, Any]) -> str:
    """The argument that an option is; guidance of two stages is the first one's, as the second needs none."""
    return "prior_guidance" if option == "guidance" and "prior_guidance" in known else ARGUMENTS[option]


def _words(option: str) -> str:
    return "a PROMPT" if option == "prompt" else "--" + option.strip("_").replace("_", "-")


def _shown(option: str, value: Any) -> str:
    return f"prompt ({value!r:.60})" if option == "prompt" else _words(option)


def _taken(known: Mapping[str, Any]) -> str:
    return ", ".join(_words(option) for option, name in ARGUMENTS.items() if name in known)


def _classes_of(pipe: Any, name: str) -> str:
    labels = [str(each) for each in getattr(pipe, "labels", {}).values()] if name == "classes" else []
    return f": {', '.join(labels[:20])}" + (" …" if len(labels) > 20 else "") if labels else ""


def _settings(options: argparse.Namespace, pipe: Any, asked: Mapping[str, Any], seed: int) -> dict[str, str]:
    """What made a picture, in words, as other programs write it under `parameters`."""
    lines = [options.prompt] if options.prompt else []
    lines += [f"Negative prompt: {options.negative}"] if options.negative else []
    numbers = _numbers(pipe, asked)
    scheduler = getattr(pipe, "scheduler", None)
    facts = {
        **{name.replace("_", " ").capitalize(): _fact(value) for name, value in numbers.items()},
        **({"From": options.from_} if options.from_ else {}),
        **({"Mask": options.mask} if options.mask else {}),
        **({"LoRA": " ".join(f"{path}@{scale:g}" for path, scale in options.lora)} if options.lora else {}),
        **({"Scheduler": type(scheduler).__name__} if scheduler is not None else {}),
        **({"Dtype": options.dtype} if options.dtype else {}),
        "Seed": seed,
        "Model": Path(options.model).name,
        **({"Prior": Path(options.prior).name} if options.prior else {}),
        "Version": f"webgrad {wg.__version__}",
    }
    lines.append(", ".join(f"{name}: {value}" for name, value in facts.items()))
    return {"parameters": "\n".join(lines), "Software": f"webgrad {wg.__version__}"}


def _numbers(pipe: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What `steps` is called with, its own defaults included, but for words and pictures."""
    known = inspect.signature(pipe.steps).parameters
    left_out = {
        "prompt",
        "negative",
        "picture",
        "mask",
        "count",
        *(() if "picture" in asked else ("strength",)),
    }
    found = {name: asked.get(name, each.default) for name, each in known.items() if name not in left_out}
    if found.get("size", ()) is None:
        found["size"] = pipe.size
    return {name: value for name, value in found.items() if value is not None}


def _fact(value: Any) -> str:
    return f"{value[1]}x{value[0]}" if isinstance(value, tuple) else str(value)


# The pictures


@dataclass
class _Run:
    """Steps on their way to files."""

    paths: list[Path]
    columns: int | None  # of a grid, which is one file
    texts: dict[str, str]
    every: int | None  # steps between previews; None: an eighth of all
    last: Any = None
    taken: int = 0
    seconds: float = 0.0  # of all steps
    first: float = 0.0  # of the first one, compiling included
    writing: float = 0.0  # of previews: decoding and files

    def follow(self, previews: Any, *, show: bool) -> int:
        """Take all steps, and write what there is: 0, or Ctrl-C's code."""
        bar = None
        begun = time.perf_counter()
        try:
            for self.last in previews:
                self.taken += 1
                wg.synchronize(self.last.latents.device)  # a GPU may still be at work on it
                self.seconds = time.perf_counter() - begun - self.writing
                self.first = self.first or self.seconds
                if bar is None:  # what the first step took says nothing of the others
                    bar = _bar(self.last.steps, show)
                else:
                    bar.advance()
                if self._is_due():
                    self.write(is_preview=True)
        except KeyboardInterrupt:
            if self.last is None:
                raise
            self.write(is_preview=True)
            return INTERRUPTED
        finally:
            if bar is not None:
                bar.close()
        self.write(is_preview=False)
        return 0

    @property
    def speed(self) -> float:
        """Steps a second, after the first one where there are more."""
        if self.taken > 1 and self.seconds > self.first:
            return (self.taken - 1) / (self.seconds - self.first)
        return 1 / self.seconds

    def _is_due(self) -> bool:
        every = math.ceil(self.last.steps / 8) if self.every is None else self.every
        return bool(every) and self.last.step % every == 0 and self.last.step < self.last.steps

    def write(self, *, is_preview: bool) -> None:
        begun = time.perf_counter()
        pictures = self.last.pictures()
        texts = self.texts | (
            {"Preview": f"step {self.last.step} of {self.last.steps}"} if is_preview else {}
        )
        made = [in_grid(pictures, self.columns)] if self.columns else list(pictures)
        for path, picture in zip(self.paths, made, strict=True):
            wg.io.write_picture(path, picture, texts)
        self.writing += time.perf_counter() - begun


def _bar(total: int, show: bool) -> Any:
    """A bar after the first step."""
    return wg.training.progress(total=total, label="steps", unit="step", start=1, show=show)


def in_grid(pictures: Array, columns: int) -> Array:
    """Pictures (n, height, width, channels) beside and below each other."""
    n, height, width, channels = pictures.shape
    rows = pictures.reshape(n // columns, columns, height, width, channels)
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(n // columns * height, columns * width, channels)


def _paths(output: Path, number: int) -> list[Path]:
    if number == 1:
        return [output]
    digits = len(str(number))
    return [output.with_stem(f"{output.stem}-{at:0{digits}}") for at in range(1, number + 1)]


# What is said at the end


def _report(run: _Run, pipe: Any, options: argparse.Namespace, seed: int) -> None:
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
