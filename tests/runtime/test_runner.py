"""runner.js on its own: hand-written plans in node with Dawn on a software driver, and one in Chromium.

Node runs once, all cases of runner_cases.mjs; each test looks at what one of them answered.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from scripts.browser import find
from scripts.npm import FOLDER, lacking
from tests.limits import HANG
from tests.runtime.runner_plans import (
    EXPECTED,
    FIRST,
    LOAD,
    RUNNER,
    SCALE,
    WEIGHT,
    Server,
    X,
    chain,
    echo,
    entry,
    served_chain,
    uncompilable,
    variants,
)

if TYPE_CHECKING:
    from tests.browser import Browser

CASES = Path(__file__).with_name("runner_cases.mjs")
VALUES: dict[str, tuple[str, list[float]]] = {
    "float32": ("Float32Array", [0.5, -2.25, 3e38]),
    "float16": ("Float32Array", [0.5, -2.25, 65504.0]),
    "bfloat16": ("Float32Array", [0.5, -2.25, 1.0]),
    "int32": ("Int32Array", [1, -(2**31), 2**31 - 1]),
    "uint32": ("Uint32Array", [1, 0, 2**32 - 1]),
    "int16": ("Int16Array", [1, -(2**15), 2**15 - 1]),
    "uint16": ("Uint16Array", [1, 0, 2**16 - 1]),
    "int8": ("Int8Array", [1, -128, 127]),
    "uint8": ("Uint8Array", [1, 0, 255]),
    "bool": ("Uint8Array", [1, 0, 1]),
}
ADAPTERS: dict[str, dict[str, Any]] = {
    "software, subgroups of 4": {"software": True, "features": ["subgroups"], "subgroupSizes": [4, 4]},
    "wide": {"software": False, "features": ["shader-f16"], "limits": {"maxBufferSize": 2**31}},
    "hardware": {"software": False, "features": ["shader-f16"], "limits": {"maxBufferSize": 2**28}},
    "any": {"software": True, "features": ["subgroups"], "subgroupSizes": [4, 8]},
}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"z": 1}, 'run has no input "z"; its inputs are: x, rate, shift, seed'),
    "size": ({"x": [1, 2, 3]}, r'"x" is float32 of shape \[2, 2\]: 4 values .* given 3 values'),
    "text": ({"x": [1, 2, 3, "four"]}, '"x" .* given the value four'),
    "number": ({"x": 3}, '"x" .* given 3'),
    "fraction": ({"shift": 1.5}, '"shift" is one int32, not 1.5'),
    "string": ({"rate": "1"}, '"rate" is one float32'),
    "list": ({"rate": [1]}, '"rate" is one float32'),
    "large": ({"shift": 2**31}, '"shift" is one int32, not 2147483648'),
    "inherited": ({"toString": 1}, 'run has no input "toString"'),
}


def singles() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Float32 values around every half and every tie between two of them, and any others."""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    finite = np.sort(halves[np.isfinite(halves)])
    ties = (finite[1:] + finite[:-1]) / np.float32(2)
    around = [np.nextafter(ties, np.float32(sign)) for sign in (-np.inf, np.inf)]
    anything = np.random.default_rng(0).integers(0, 2**32, 65536, np.uint32).view(np.float32)
    special = np.array([65519.99, 65520, 3.4e38, 1e-45, 3.39e38, np.inf, -np.inf, np.nan, -0.0], np.float32)
    return np.concatenate([halves, ties, *around, anything, special])


def every_plan() -> dict[str, Any]:
    count = len(singles())
    plans = {"chain": chain(), "variants": variants(), "uncompilable": uncompilable()}
    plans |= {f"echo {dtype}": echo(3, dtype, y=dtype) for dtype in VALUES}
    for dtype in ("float16", "bfloat16"):
        plans[f"{dtype} bits"] = echo(count, dtype, bits="uint16")
        plans[f"bits {dtype}"] = echo(65536, "uint16", y=dtype)
    return plans


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What each case answered; loudly skipped where node or Dawn is missing."""
    if why := lacking("webgpu"):
        pytest.skip(f"THE RUNNER WAS NOT TESTED IN NODE: {why}")
    given = {
        "plans": every_plan(),
        "scale": SCALE,
        "x": X,
        "values": {dtype: {"array": array, "list": values} for dtype, (array, values) in VALUES.items()},
        "singles": base64.b64encode(singles().tobytes()).decode(),
        "adapters": ADAPTERS,
        "wrong": {name: change for name, (change, _) in WRONG.items()},
    }
    dawn = FOLDER / "node_modules" / "webgpu" / "index.js"
    done = subprocess.run(
        [str(find("node")), str(CASES), RUNNER.as_uri(), dawn.as_uri()],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
        env=os.environ | {"LP_NUM_THREADS": "0"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def case(answers: dict[str, Any], name: str) -> Any:
    assert "failed" not in answers[name], answers[name]["failed"]
    return answers[name]


def refused(answer: Any, code: str, words: str) -> None:
    """That an answer is the runner's error of a code, whose message has these words (a pattern)."""
    assert answer["runner"], answer
    assert answer["code"] == code, answer
    assert re.search(words, answer["message"], re.DOTALL), answer["message"]


def test_the_file_is_small_and_in_the_form_that_pages_and_pyodide_rely_on() -> None:
    lines = RUNNER.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 500
    assert max(map(len, lines)) <= 110
    assert lines[-1] == "export { RunnerError, load, openDevice };"
    assert not [line for line in lines[:-1] if re.match(r"\s*(export|import)\b|await\b", line)]


def test_what_a_device_says_of_itself(answers: dict[str, Any]) -> None:
    info = case(answers, "info")
    assert "llvmpipe" in info["name"]
    assert info["software"] is True
    assert "subgroups" in info["features"]
    assert info["subgroupSizes"] == [4, 4]  # by tests/conftest.py, whatever the processor
    assert info["limits"] > 20
    assert info["lost"] is None


def test_prepared_lists_keep_their_parameters_when_the_block_grows(answers: dict[str, Any]) -> None:
    found = case(answers, "lists")
    assert found["first"] == [6.0, 12.0, 18.0, 24.0]
    assert found["second"] == [24.0, 72.0, 108.0, 144.0]  # times 6 again; b's second element is copied over
    assert found["third"] == [12.0, 24.0, 36.0, 48.0]
    refused(found["released"], "internal", "There is no")


def test_bytes_that_are_no_whole_words(answers: dict[str, Any]) -> None:
    found = case(answers, "bytes")
    assert found["whole"] == list(range(1, 12))
    assert found["part"] == [6, 7, 8]
    assert found["end"] == [0, 0, 1, 2, 3, 4]
    assert found["done"] is None


def test_calls_that_overlap_with_numbers_state_and_copies(answers: dict[str, Any]) -> None:
    found = case(answers, "chain")
    total = FIRST.copy()
    for rate, answer in zip((1, 2, 3), found["answers"], strict=True):
        before, total = total, total + np.array(X, np.float32) * np.float32(rate) - np.float32(rate)
        assert answer["total"] == {
            "data": total.tolist(),
            "shape": [2, 2],
            "dtype": "float32",
            "array": "Float32Array",
        }
        assert answer["y"]["data"] == (total * WEIGHT).tolist()
        # State that is copied is given as it was: "count" is the total of the call before.
        assert answer["count"]["data"] == (before.tolist() if rate > 1 else [0, 0, 0, 0])
        assert answer["bits"] == {"data": [5], "shape": [], "dtype": "uint32", "array": "Uint32Array"}
        assert answer["kept"]["data"] == FIRST.tolist()
    assert found["touched"] == (total + 2).tolist()
    assert len(set(found["drawn"])) == 3, "bits that are not given are drawn anew for each call"
    assert found["reset"]["total"]["data"] == FIRST.tolist()
    assert found["reset"]["count"]["data"] == [0, 0, 0, 0]
    assert found["variant"] == "plain"
    assert found["bytes"] == {"weights": 16, "state": 32, "working": 52}
    assert found["device"] is True
    assert found["closed"] is None, "a device that was given stays open"


def test_progress_has_every_stage(answers: dict[str, Any]) -> None:
    progress = case(answers, "chain")["progress"]
    stages = list(dict.fromkeys(step["stage"] for step in progress))
    assert stages == ["adapter", "weights", "compile", "ready"]
    weights = [step for step in progress if step["stage"] == "weights"]
    assert weights[-1] == {"stage": "weights", "loaded": 36, "total": 36}
    assert [step["loaded"] for step in weights] == sorted(step["loaded"] for step in weights)
    assert {"stage": "compile", "loaded": 4, "total": 4} in progress


@pytest.mark.parametrize("dtype", VALUES)
def test_dtypes_in_and_out(answers: dict[str, Any], dtype: str) -> None:
    array, values = VALUES[dtype]
    expected = np.array(values, np.float32 if "float" in dtype else dtype).tolist()
    for way in ("typed", "listed"):
        answer = case(answers, "dtypes")[dtype][way]["y"]
        assert answer == {"data": expected, "shape": [3], "dtype": dtype, "array": array}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_those_of_numpy(answers: dict[str, Any], dtype: str) -> None:
    found = case(answers, "halves")[dtype]
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    given = singles()
    narrowed = np.frombuffer(base64.b64decode(found["narrowed"]), np.uint16)
    with np.errstate(all="ignore"):
        expected = given.astype(kind)
    number = ~np.isnan(given)
    np.testing.assert_array_equal(narrowed[number], expected.view(np.uint16)[number])
    assert np.isnan(narrowed.view(kind)[~number].astype(np.float32)).all()
    widened = np.frombuffer(base64.b64decode(found["widened"]), np.float32)
    every = np.arange(65536, dtype=np.uint16).view(kind).astype(np.float32)
    np.testing.assert_array_equal(widened, every)
    number = ~np.isnan(every)
    np.testing.assert_array_equal(np.signbit(widened[number]), np.signbit(every[number]))


def test_the_first_variant_whose_needs_are_met(answers: dict[str, Any]) -> None:
    found = case(answers, "variants")
    assert found["answers"] == {name: name for name in ADAPTERS}
    assert found["wanted"] == "wide"
    refused(found["missing"], "no-adapter", "none: software, subgroups of 4; wide; hardware; any")


@pytest.mark.parametrize("name", WRONG)
def test_inputs_that_are_refused(answers: dict[str, Any], name: str) -> None:
    refused(case(answers, "inputs")["refusals"][name], "input", WRONG[name][1])


def test_what_is_missing_is_named(answers: dict[str, Any]) -> None:
    found = case(answers, "inputs")["refusals"]
    refused(found["missing"], "input", 'run wants the input "shift"; its inputs are: x, rate, shift, seed')
    refused(found["array"], "input", '"x" .* Float32Array or a list; it was given Int32Array')
    refused(found["function"], "input", 'no function "walk": run, touch')
    refused(found["nothing"], "input", 'run wants the input "x"')
    for name in ("state", "inheritedState"):
        refused(found[name], "input", 'no state "(nothing|constructor)": total, count')


def test_what_is_refused_changes_nothing(answers: dict[str, Any]) -> None:
    assert case(answers, "inputs")["total"] == FIRST.tolist()


def test_weights_that_are_not_those_of_the_plan(answers: dict[str, Any]) -> None:
    found = case(answers, "weights")
    refused(found["truncated"], "weights", "one.safetensors .* 20 bytes are expected, 15 .* export .* again")
    refused(found["longer"], "weights", "20 bytes are expected, 21 were found")
    refused(found["corrupt"], "weights", "one.safetensors .* sha256")
    refused(found["version"], "internal", "webgrad-plan 1, not webgrad-plan 2")
    assert found["aborted"]["name"] == "AbortError"
    assert found["late"] == ["enough of weights", "enough of compile"]


def test_a_compile_error_names_its_kernel(answers: dict[str, Any]) -> None:
    found = case(answers, "compile")
    refused(found["ready"], "compile", '"bad kernel": .*expected')
    refused(found["model"], "compile", '"softmax of rows": .*nothing')
    assert found["after"] is None, "an error is told once"


def test_errors_that_come_late_are_told_by_the_next_read(answers: dict[str, Any]) -> None:
    found = case(answers, "validation")
    refused(found["first"], "validation", "refused an operation")
    assert found["second"] == [0, 0, 0, 0]
    refused(found["handle"], "internal", "There is no")


def test_a_lost_device(answers: dict[str, Any]) -> None:
    found = case(answers, "lost")
    for way in ("read", "done", "again"):
        refused(found[way], "lost", "Load the page again")
    assert [each["code"] for each in found["heard"]] == ["lost"]
    assert found["said"] == found["heard"][0]["message"]


def test_a_closed_model(answers: dict[str, Any]) -> None:
    found = case(answers, "closed")
    refused(found["run"], "lost", "closed")
    assert found["heard"] == [], "closing is no loss"


def test_without_a_gpu_the_message_says_what_to_do(answers: dict[str, Any]) -> None:
    found = case(answers, "missing")
    refused(found["browser"], "no-webgpu", "Chrome and Edge .* Safari .* Firefox")
    refused(found["insecure"], "insecure", "https, or from localhost")
    refused(found["refused"], "no-adapter", "Update the driver")
    refused(found["thrown"], "no-adapter", "block list")
    refused(found["device"], "no-device", "could not be opened")
    refused(found["model"], "no-webgpu", "This browser has no WebGPU")


def test_out_of_memory(answers: dict[str, Any]) -> None:
    found = case(answers, "memory")
    refused(found["large"], "out-of-memory", "MB are wanted")
    refused(found["done"], "out-of-memory", r"8 MB are wanted beside 0.000064 MB in use. Close other pages")
    refused(
        found["model"], "out-of-memory", "The model wants .* of weights, .* of state and .* of working memory"
    )


@pytest.fixture
def served() -> Iterator[Server]:
    """The chain's plan and weights, the runner, and an empty page."""
    with served_chain() as server:
        yield server


def test_a_page_loads_a_plan_and_keeps_its_weights(browser: Browser, served: Server) -> None:
    page = browser.page()
    page.open(f"{served.url}/page.html")
    first = page.evaluate(LOAD)
    assert first["y"] == EXPECTED
    assert {"stage": "weights", "loaded": 36, "total": 36} in first["steps"]
    assert len(first["kept"]) == 2
    served.asked.clear()
    assert page.evaluate(LOAD)["y"] == EXPECTED
    assert served.asked == ["plan.json"], "the weights come from the cache"
    # Exported again with other weights: the older ones go.
    plan = json.loads(served.files["plan.json"])
    served.files["one.safetensors"] = b"head" + (2 * WEIGHT).tobytes()
    plan["weights"][0] = entry("one.safetensors", served.files["one.safetensors"])
    served.files["plan.json"] = json.dumps(plan).encode()
    again = page.evaluate(LOAD)
    assert again["y"] == [2 * each for each in EXPECTED]
    assert len(again["kept"]) == 2
    assert again["kept"] != first["kept"]
    # What the server has is not what the plan tells of.
    plan["weights"][0]["sha256"] = "0" * 64
    served.files["plan.json"] = json.dumps(plan).encode()
    served.broken = "one.safetensors"
    refused(page.evaluate(LOAD), "weights", "one.safetensors cannot be used: network error")
    served.broken = ""
    refused(page.evaluate(LOAD), "weights", "one.safetensors .* sha256")
    served.files["one.safetensors"] = b"head"
    refused(page.evaluate(LOAD), "weights", "20 bytes are expected, 4 were found")
    del served.files["one.safetensors"]
    refused(page.evaluate(LOAD), "weights", "one.safetensors .* 404")
    del served.files["plan.json"]
    refused(page.evaluate(LOAD), "weights", "plan.json .* 404")
