"""What a diffusion model is asked for, and the words for it in a picture's metadata.

In: the options of `webgrad imagine`, and a pipeline. Out: arguments of its `steps`, which say what it takes:
any other option is refused by name; and all settings of a picture, those that nobody gave included.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import webgrad as wg

__all__ = ["ARGUMENTS", "arguments_of", "texts_of"]

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


def arguments_of(pipe: Any, model: str, given: Mapping[str, Any], number: int) -> dict[str, Any]:
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


def texts_of(options: argparse.Namespace, pipe: Any, asked: Mapping[str, Any], seed: int) -> dict[str, str]:
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
