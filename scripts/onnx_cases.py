"""Backend test cases of the ONNX standard on our devices: `python -m scripts.onnx_cases FOLDER [--only RE]`.

In: folders of cases, each a model.onnx with data sets of inputs and expected outputs, as the package onnx
writes them. Out: how many agree, and what the others say, sorted by message. No package is needed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg
from webgrad.io.memory_map import map_file
from webgrad.onnx.protobuf import parse
from webgrad.onnx.tensors import array_of

RTOL, ATOL = 1e-3, 1e-7  # the standard's own
ROUGH = {"bfloat16": 2.0**-6}  # types that its runner compares within two units of the last place
MISSING = "has operators that webgrad does not have"


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
    for case in _cases(options.folders, options.only):
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


def _cases(folders: list[Path], only: str) -> Iterator[Path]:
    for folder in folders:
        for model in sorted(folder.rglob("model.onnx")):
            if re.search(only, model.parent.name):
                yield model.parent


def run_case(case: Path, device: str) -> tuple[str, str]:
    """`ok`, or `missing`, `refused`, `wrong` or `failed` with a message."""
    try:
        model = wg.onnx.load(case / "model.onnx", device=device)
        for data in sorted(case.glob("test_data_set_*")):
            for _ in range(2):  # as captured, and as replayed
                _compare(model, data)
    except AssertionError as error:
        return "wrong", " ".join(str(error).split())[:200]
    except wg.WebgradError as error:
        text = " ".join(str(error).split())
        return ("missing" if MISSING in text else "refused"), text[-200:]
    except Exception as error:
        return "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return "ok", ""


def _compare(model: Any, data: Path) -> None:
    inputs = [_value(data / f"input_{at}.pb", each) for at, each in enumerate(model.inputs)]
    outputs = list(model(*inputs).values())
    for at, (value, found) in enumerate(zip(model.outputs, outputs, strict=True)):
        path = data / f"output_{at}.pb"
        if path.exists():
            _check(found, _value(path, value), value.name)


def _value(path: Path, declared: wg.onnx.Value) -> Any:
    if not path.exists():
        return None
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


def _check(found: Any, expected: Any, name: str) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected), f"{name} has {len(found)} values, not {len(expected)}"
        for ours, theirs in zip(found, expected, strict=True):
            _check(ours, theirs, name)
        return
    if expected is None:
        assert found is None, f"{name} is not empty"
        return
    ours = found.numpy() if isinstance(found, wg.Tensor) else np.asarray(found)
    assert ours.shape == expected.shape, f"{name} is {ours.shape}, not {expected.shape}"
    assert ours.dtype == expected.dtype, f"{name} is {ours.dtype}, not {expected.dtype}"
    if expected.dtype.kind in "OUSb":
        assert (ours == expected).all(), f"{name}: {ours!r}, not {expected!r}"
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    rtol = ROUGH.get(expected.dtype.name, RTOL)
    np.testing.assert_allclose(ours.astype(wide), expected.astype(wide), rtol, ATOL, err_msg=name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
