"""A diffusion model as a page that paints: noise, a step and a picture, over tensors that the page keeps.

In: a pipeline of `wg.diffusion`. Out: a folder, or one HTML file. The functions are begin, step and show, for
each layout: so many pictures of a size. The invariant: they are what the pipeline itself runs, traced, and
their noise is of the same draws, so the page paints what Python would.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import webgrad as wg
from webgrad.diffusion import ClassConditional, StableDiffusion, Unconditional
from webgrad.diffusion.schedulers.rows import NUMBERS, Row, Schedule, next_picture
from webgrad.errors import ArgumentError

from ..jit.tensor_names import named_tensors
from .bundle import Bundle
from .folder import write_export
from .painters import ClassPainter, LatentClassPainter, Layout, Painter, TextPainter

__all__ = ["export_diffusion", "painting_bundle"]

STEPS = (1, 2, 4, 8, 15, 25, 50)  # that a page offers
USUAL_STEPS, FEW_STEPS = 25, 4  # those that it begins with; few are for samplers that were made for few
OF_ROW = [each.name for each in fields(Row)]
PAINTERS: Mapping[type, Callable[..., Any]] = {
    Unconditional: ClassPainter,
    ClassConditional: LatentClassPainter,
    StableDiffusion: TextPainter,
}
Report = Callable[[str], None]


@wg.no_grad()
def export_diffusion(
    pipe: Any,
    path: str | os.PathLike[str],
    *,
    counts: Sequence[int] = (),
    sizes: Sequence[tuple[int, int]] = (),
    guidance: float | None = None,
    single_file: bool = False,
    overwrite: bool = False,
    name: str = "",
    report: Report = lambda line: None,
) -> Path:
    """Write a page that paints with a diffusion model, and give the path of its HTML file.

    `counts` are how many pictures it may be asked for at once, and `sizes` of which (height, width); where
    none are given, one, or a few of small ones, of the size that the model was trained for. `guidance` is
    what the page begins with; 1 leaves it out, which halves the work. `report` hears of what is being done.
    """
    painter = _painter(pipe, guidance)
    bundle, facts = painting_bundle(painter, name or type(pipe).__name__, counts, sizes)
    made = ", ".join(f"{each['count']} of {each['height']} × {each['width']}" for each in facts["layouts"])
    report(f"planning pictures: {made}; {painter.told}")
    files = painter.files()
    return write_export(bundle, path, "paint", facts, files, single_file=single_file, overwrite=overwrite)


def _painter(pipe: Any, guidance: float | None) -> Painter:
    for kind, make in PAINTERS.items():
        if isinstance(pipe, kind):
            made: Painter = make(pipe, guidance)
            return made
    known = ", ".join(each.__name__ for each in PAINTERS)
    raise ArgumentError(f"export: there is no page for a {type(pipe).__name__}, only for {known}")


@wg.no_grad()
def painting_bundle(
    painter: Painter, title: str, counts: Sequence[int] = (), sizes: Sequence[tuple[int, int]] = ()
) -> tuple[Bundle, dict[str, Any]]:
    """The functions of a diffusion model, and what the page is told of them."""
    schedules = _schedules(painter.pipe.scheduler)
    layouts = [
        Layout(count, *size)
        for size in sizes or (painter.pipe.size,)
        for count in counts or painter.usual_counts(size)
    ]
    earlier = _earlier(next(iter(schedules.values())))
    states = {each: _state_of(painter, each, earlier) for each in layouts}
    names = [(f"{name}_{each.name}", kept) for each in layouts for name, kept in states[each].items()]
    bundle = Bundle(title, [*named_tensors(painter.modules), *painter.state, *names])
    painter.add_to(bundle)
    for layout, state in states.items():
        _add_layout(bundle, painter, layout, state, list(schedules.values()))
    steps = FEW_STEPS if max(schedules) < USUAL_STEPS else USUAL_STEPS
    return bundle, {
        "title": title,
        "layouts": [each.facts for each in layouts],
        "numbers": _numbers_of_step(next(iter(schedules.values()))),
        "schedules": {str(count): _numbers_of(each) for count, each in schedules.items()},
        "steps": min(schedules, key=lambda count: abs(count - steps)),
        "draws": {each: _drawn(bundle, f"{each}_{layouts[0].name}") for each in ("begin", "step")},
        **painter.facts,
    }


def _schedules(scheduler: Any) -> dict[int, Schedule]:
    """The steps of a sampler, for each number of them that it can take."""
    found = {}
    for count in STEPS:
        try:
            found[count] = scheduler.schedule(count)
        except ArgumentError:
            continue
    return found


def _earlier(schedule: Schedule) -> list[str]:
    """What is asked of steps before the one before, by how long ago they are: as many names as shares."""
    return [f"earlier_{at}" for at in range(len(schedule.earlier[0]) if schedule.earlier else 0)]


def _numbers_of_step(schedule: Schedule) -> list[str]:
    return [*OF_ROW, *_earlier(schedule)]


def _numbers_of(schedule: Schedule) -> dict[str, Any]:
    shares = schedule.earlier or [()] * len(schedule.rows)
    rows = [(*astuple(row), *more) for row, more in zip(schedule.rows, shares, strict=True)]
    return {"start": schedule.start, "rows": rows}


def _drawn(bundle: Bundle, name: str) -> list[str]:
    """The words of keys that a function's noise is drawn with, in the order of draws."""
    return [each.name for each in bundle.graphs[name].inputs if each.kind == "random"]


def _state_of(painter: Painter, layout: Layout, earlier: Sequence[str]) -> dict[str, wg.Tensor]:
    """What stays from step to step: x, and what was predicted before."""
    found = {name: wg.zeros(painter.latents(layout), device="cpu") for name in ("x", "before", *earlier)}
    wg.eval(*found.values())
    return found


def _add_layout(
    bundle: Bundle,
    painter: Painter,
    layout: Layout,
    state: Mapping[str, wg.Tensor],
    schedules: Sequence[Schedule],
) -> None:
    """The functions of one layout."""
    x, *before = state.values()
    shape, schedule = x.shape, schedules[0]
    scatters = any(row.by_noise for each in schedules for row in each.rows)

    def begin(start: Any) -> None:
        x[...] = wg.random.normal(shape, device=x.device) * start
        for each in before:
            each[...] = wg.zeros(shape, device=x.device)

    def step(**given: Any) -> None:
        prediction = painter.prediction(x * given["entering"], given["timestep"], layout, given)
        noise = wg.random.normal(shape, device=x.device) if scatters else None
        numbers, shares = ([given[name] for name in names] for names in (NUMBERS, _earlier(schedule)))
        last, *older = before
        found, original = next_picture(x, prediction, last, noise, numbers, schedule.clip, older, shares)
        kept = [prediction if schedule.keeps_prediction else original, *before[:-1]]
        # The oldest first, whose value the next one still has.
        for each, value in reversed([*zip((x, *before), (found, *kept), strict=True)]):
            each[...] = value

    def show() -> dict[str, wg.Tensor]:
        return {"pictures": painter.decoded(x).astype(wg.float32)}

    bundle.add(f"begin_{layout.name}", begin, {"start": 1.0})
    bundle.add(
        f"step_{layout.name}", step, dict.fromkeys(_numbers_of_step(schedule), 1.0) | painter.examples(layout)
    )
    bundle.add(f"show_{layout.name}", show, ())
