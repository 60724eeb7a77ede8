"""Backend test cases of the ONNX standard on our devices: `python -m scripts.onnx_cases FOLDER [--only RE]`.

In: folders of cases, each a model.onnx with data sets of inputs and expected outputs, as the package onnx
writes them; or a folder with models/ and data/, as opencv_extra has it. Out: how many agree, and what the
others say. No package is needed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from webgrad.io.memory_map import map_file
from webgrad.onnx.protobuf import parse
from webgrad.onnx.tensors import array_of

__all__ = ["Case", "cases_of", "main", "run_case"]

RTOL, ATOL = 1e-3, 1e-7  # the standard's own
OPENCV_ATOL = 1e-4  # OpenCV's own
# and that of its tests of quantised models: numbers are a few steps apart
OPENCV_STEPS = {
    **dict.fromkeys(("quantized_conv_int8_weights", "quantized_conv_int8_weights_qdq"), 0.5),
    **dict.fromkeys(("quantized_conv_per_channel_weights", "quantized_conv_per_channel_weights_qdq"), 0.4),
    **dict.fromkeys(("quantized_conv_uint8_weights", "quantized_conv_uint8_weights_qdq"), 0.02),
    "quantized_matmul_int8_weights": 0.2,
    "quantized_matmul_per_channel_weights": 0.22,
    "quantized_matmul_uint8_weights": 0.007,
    "quantized_constant": 0.008,
    **dict.fromkeys(("quantized_resize_bilinear", "quantized_resize_bilinear_align"), 0.003),
}
ROUGH = {"bfloat16": 2.0**-6}  # types that its runner compares within two units of the last place
MISSING = "has operators that webgrad does not have"


@dataclass(frozen=True, slots=True)
class Data:
    """Files of inputs and of what they give, in the order of the model's own; one may be missing."""

    inputs: Sequence[Path]
    outputs: Sequence[Path]


@dataclass(frozen=True, slots=True)
class Case:
    """A model, and what it gives for what."""

    name: str
    model: Path
    data: Sequence[Data]
    rtol: float = RTOL
    atol: float = ATOL
    is_exact: bool = True  # types and shapes are the model's; OpenCV's tests keep numbers only


def main(arguments: list[str]) -> int:
    """Run the cases that a command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="a regular expression that names must hold")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quiet", action="store_true", help="counts only")
    options = parser.parse_args(arguments)
    found: Counter[str] = Counter()
    for case in cases_of(options.folders, options.only):
        start = time.process_time()
        outcome, message = run_case(case, options.device)
        found[outcome] += 1
        seconds = time.process_time() - start
        if outcome != "ok" and not options.quiet:
            print(f"{outcome:8} {case.name}: {message}", flush=True)
        if seconds > 10:
            print(f"slow     {case.name}: {seconds:.1f} s", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in found.most_common()), f"of {found.total()}")
    return 0 if found["ok"] == found.total() else 1


# Finding cases


def cases_of(folders: Sequence[Path], only: str = "") -> Iterator[Case]:
    """The cases in folders, of either layout, whose names hold a regular expression."""
    for folder in folders:
        layout = _opencv_cases if (folder / "models").is_dir() else _standard_cases
        yield from (case for case in layout(folder) if re.search(only, case.name))


def _standard_cases(folder: Path) -> Iterator[Case]:
    for model in sorted(folder.rglob("model.onnx")):
        sets = sorted(model.parent.glob("test_data_set_*"))
        data = [Data(*(_numbered(each, kind) for kind in ("input", "output"))) for each in sets]
        yield Case(model.parent.name, model, data, *_tolerance(model.parent / "tolerance"))


def _numbered(folder: Path, kind: str) -> list[Path]:
    """The paths that a data set has for its inputs or outputs, up to the last that is there."""
    places = [int(each.stem.rpartition("_")[2]) for each in folder.glob(f"{kind}_*.pb")]
    return [folder / f"{kind}_{at}.pb" for at in range(max(places, default=-1) + 1)]


def _tolerance(path: Path) -> tuple[float, float]:
    """What the case itself allows, where it says so."""
    if not path.exists():
        return RTOL, ATOL
    rtol, atol = map(float, path.read_text().split())
    return rtol, atol


def _opencv_cases(folder: Path) -> Iterator[Case]:
    """Models, and files by their names: input_NAME.npy; several as input_NAME_0.npy, sets as _0_0, _1_0."""
    models = {each.stem: each for each in sorted((folder / "models").glob("*.onnx"))}
    files: dict[str, dict[str, dict[tuple[int, ...], Path]]] = {}
    for path in sorted((folder / "data").iterdir()):
        kind, _, name = path.stem.partition("_")
        owner, numbers = name, tuple[int, ...]()
        while owner not in models and (found := re.fullmatch(r"(.*)_(\d+)", owner)):
            owner, numbers = found[1], (int(found[2]), *numbers)
        files.setdefault(owner, {"input": {}, "output": {}}).get(kind, {})[numbers] = path
    for name, model in models.items():
        given = files.get(name, {"input": {}, "output": {}})
        atol = OPENCV_STEPS.get(name, OPENCV_ATOL)
        yield Case(name, model, list(_opencv_sets(**given)), RTOL, atol, is_exact=False)


def _opencv_sets(
    input: dict[tuple[int, ...], Path],
    output: dict[tuple[int, ...], Path],
) -> Iterator[Data]:
    sets = sorted({key[0] for key in input if len(key) == 2})
    for number in sets:
        yield Data([input[key] for key in sorted(input) if key[0] == number], [output[number,]])
    if not sets and output:
        yield Data([input[key] for key in sorted(input)], [output[key] for key in sorted(output)])


# Running


def run_case(case: Case, device: str) -> tuple[str, str]:
    """`ok`, or `missing`, `refused`, `wrong`, `failed` or `no data`, with a message."""
    try:
        model = wg.onnx.load(case.model, device=device)
        for data in case.data:
            for _ in range(2):  # as captured, and as replayed
                _compare(case, model, data)
    except AssertionError as error:
        return "wrong", " ".join(str(error).split())[:200]
    except wg.WebgradError as error:
        text = " ".join(str(error).split())
        return ("missing" if MISSING in text else "refused"), text[-200:]
    except Exception as error:
        return "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ("ok", "") if case.data else ("no data", "there is nothing to compare with")


def _compare(case: Case, model: Any, data: Data) -> None:
    inputs = [_input(each, path) for each, path in zip(model.inputs, data.inputs, strict=False)]
    outputs = model(*inputs).values()
    for value, found, path in zip(model.outputs, outputs, data.outputs, strict=False):
        if path.exists():
            _check(case, found, _value(path, value), value.name)


def _input(declared: Any, path: Path) -> Any:
    """A value from a file; OpenCV's are floats, and have the type that the model declares."""
    value = _value(path, declared)
    if path.suffix == ".npy" and declared.element is not None:
        return value.astype(declared.element.numpy)
    return value


def _value(path: Path, declared: wg.onnx.Value) -> Any:
    if not path.exists():
        return None
    if path.suffix == ".npy":
        return np.load(path)
    kind = declared.kind
    if kind == "sequence":
        return [_array(each) for each in parse(map_file(path), "Sequence", str(path)).tensor_values]
    if kind == "optional":
        optional = parse(map_file(path), "Optional", str(path))
        several = optional.sequence_value
        return [_array(each) for each in several.tensor_values] if several else _array(optional.tensor_value)
    found = _array(parse(map_file(path), "Tensor", str(path)))
    if found.dtype == np.uint16 and declared.element and declared.element.name == "bfloat16":
        return found.view(declared.element.numpy)  # older cases have the bits of these alone
    return found


def _array(message: Any) -> Any:
    return None if message is None else array_of(message, None)


def _check(case: Case, found: Any, expected: Any, name: str) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected), f"{name} has {len(found)} values, not {len(expected)}"
        for ours, theirs in zip(found, expected, strict=True):
            _check(case, ours, theirs, name)
        return
    if expected is None:
        assert found is None, f"{name} is not empty"
        return
    ours = found.numpy() if isinstance(found, wg.Tensor) else np.asarray(found)
    if not case.is_exact and ours.size == expected.size:
        ours = ours.reshape(expected.shape).astype(expected.dtype)
    assert ours.shape == expected.shape, f"{name} is {ours.shape}, not {expected.shape}"
    assert ours.dtype == expected.dtype, f"{name} is {ours.dtype}, not {expected.dtype}"
    if expected.dtype.kind in "OUSb":
        assert (ours == expected).all(), f"{name}: {ours!r}, not {expected!r}"
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    rtol = ROUGH.get(expected.dtype.name, case.rtol)
    np.testing.assert_allclose(ours.astype(wide), expected.astype(wide), rtol, case.atol, err_msg=name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
