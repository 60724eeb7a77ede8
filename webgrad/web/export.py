"""`webgrad.export`: a function's plan as files that run in a browser.

In: a function or several, examples of their inputs, a path. Out: a folder, or one HTML file, with a page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..jit.tensor_names import named_tensors
from .bundle import Bundle
from .folder import check_target, write_export
from .pictures import picture_facts, picture_inputs

__all__ = ["export"]

Function = Callable[..., Any]


def export(
    function: Function | Mapping[str, Function],
    example_inputs: Any,
    path: str | os.PathLike[str],
    *,
    name: str = "",
    labels: Sequence[str] = (),
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    shares: bool = False,
    inverted: bool = False,
    samples: Sequence[Any] = (),
    single_file: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write a function's plan, weights and a page that runs it in a browser, and give the page's path.

    The function is traced once with inputs like the examples (a tuple in the order of its arguments, or a
    dict by name), and planned for every kind of adapter that browsers have; nothing is computed. The folder
    has plan.json, weights as .safetensors, runner.js, a typed module model.js (`const model = await open();
    await model.run({ x })`) and index.html, and works from any static server: `webgrad serve-static out/`.

    - Numbers among the inputs are run-time numbers. Tensors that the function changes in place are state,
      which the page keeps from call to call. Random numbers are drawn anew at each call.
    - Several functions that share weights and state are exported together as a dict, with their examples as
      a dict by the same names.
    - `labels` make the page an image classifier: the first input is a picture, or a batch of one, and the
      output its scores, or with `shares` what softmax makes of them. `mean` and `std` are taken from and
      divided by, of values from 0 to 1, `inverted` means light on dark, `samples` are pictures to try:
      arrays of (height, width), with channels last or first, of bytes or of floats from 0 to 1, or pairs of
      a label and such an array.
    - Without labels an input that is a batch of one picture may be picked as a file or taken by a camera;
      `mean` and `std` hold for it too.
    - `single_file`, or a path that ends in .html, makes one HTML file, which works from a disk.
    - An earlier export in the same place is replaced; other files of the same names only with `overwrite`.

    Call `model.eval()` first: dropout of a model in training is exported too.

    >>> import tempfile, webgrad.nn as nn
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    >>> page = wg.export(model, (wg.zeros((1, 3)),), tempfile.mkdtemp())
    >>> sorted(each.name for each in page.parent.glob("*.json"))
    ['page.json', 'plan.json']
    """
    functions = function if isinstance(function, Mapping) else {"run": function}
    examples = example_inputs if isinstance(function, Mapping) else {"run": example_inputs}
    if not functions:
        raise ArgumentError("export: there is no function in the dict")
    if not isinstance(examples, Mapping) or set(examples) != set(functions):
        raise ArgumentError(
            f"export: the functions are {', '.join(functions)}, and the examples must be a dict with the "
            "same names"
        )
    check_target(path, overwrite=overwrite)  # before all the work
    title = name or _title(next(iter(functions.values())))
    bundle = Bundle(title, named_tensors(functions.values()))
    for key, each in functions.items():
        bundle.add(key, each, examples[key])
    if labels:
        facts = picture_facts(
            next(iter(bundle.graphs.items())), labels, mean=mean, std=std, inverted=inverted, samples=samples
        )
        page, facts = "classifier", {"title": title, **facts, "scores": "shares" if shares else "logits"}
    else:
        page, facts = "plain", {"title": title, "pictures": picture_inputs(bundle.graphs, mean, std)}
    return write_export(bundle, path, page, facts, single_file=single_file, overwrite=overwrite)


def _title(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__).strip("<>") or "model"
