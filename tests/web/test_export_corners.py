"""Exports of odd functions: state that moves, is shared, odd or empty; any names; refusals; declarations."""

from __future__ import annotations

import copy
import gc
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
import webgrad.nn as nn
from tests.web.exported import Call, run_exports
from tests.web.random_exports import wrong_exports
from tests.web.typescript import type_errors
from webgrad.jit.pytree import flatten
from webgrad.runtime.device import opened_devices
from webgrad.web.declarations import declarations
from webgrad.web.paper import PaperDevice, tracing_device
from webgrad.web.trace import Graph

Program = Callable[[], tuple[Callable[..., Any], dict[str, Any]]]  # a function, and inputs to call it with
NAMES = ("__proto__", "constructor", "toString", "class", "naïve π", "a'\"`\n</script>", "")
ROWS = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
CALLS = 3


def _plan(page: Path) -> Any:
    return json.loads((page.parent / "plan.json").read_text())


def _old_state() -> Any:
    state = wg.asarray([1.0, 2.0, 3.0])

    def double() -> Any:
        old = state.detach()
        state[...] = state * 2
        return old, state

    return double, {}


def _rotated() -> Any:
    """Nothing is computed: three states move, and the old ones are given too."""
    states = [wg.asarray([float(each), each + 0.5]) for each in range(3)]

    def rotate() -> Any:
        old = [each.detach() for each in states]
        for at, each in enumerate(states):
            each[...] = old[(at + 1) % 3]
        return [*states, *old]

    return rotate, {}


def _rotated_and_computed() -> Any:
    states = [wg.asarray([float(each), each + 0.5]) for each in range(3)]

    def rotate() -> Any:
        first, second, third = [each.detach() for each in states]
        states[0][...], states[1][...], states[2][...] = second + 1, third, first
        return states[0] * 1, states[1], states[2], first, second, third

    return rotate, {}


def _one_value_of_two() -> Any:
    """Two tensors with one node: one of them changes, then both."""
    state = wg.asarray([1.0, 2.0])
    wg.eval(state)
    constant, other = state.detach(), state.detach()

    def step() -> Any:
        state.__iadd__(1)
        other.__imul__(2)
        return state, constant, other

    return step, {}


def _odd_bytes() -> Any:
    flags, small = wg.asarray([True, False, True]), wg.asarray([1, 2, 250], dtype=wg.uint8)

    def step(x: Any) -> Any:
        small.__iadd__(x.astype(wg.uint8))
        flags[...] = wg.logical_not(flags)
        return small, flags, small[1:], flags[:1]

    return step, {"x": np.ones(1, np.int32)}


def _empty() -> Any:
    nothing, state = wg.zeros((0, 3)), wg.zeros(0)
    wg.eval(nothing, state)

    def step(x: Any) -> Any:
        state[...] = state + 1
        return x + 1, nothing, wg.concat([x, nothing[:, 0]]), nothing.sum(), state, wg.ones((2, 0))

    return step, {"x": np.zeros(0, np.float32)}


def _odd_names() -> Any:
    def combine(**given: Any) -> Any:
        total = sum(each * 10.0**at for at, each in enumerate(given.values()))
        return {name: total * at for at, name in enumerate(NAMES)}

    numbers = {name: float(at) if at % 2 else np.full(1, at, np.float32) for at, name in enumerate(NAMES)}
    return combine, numbers


def _averaged() -> Any:
    """A model in training, with its running statistics, and a copy that shares its first weights."""
    wg.random.seed(1)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    average = copy.deepcopy(model)
    optimiser = wg.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimiser.zero_grad()
        loss = ((model(x) - 1) ** 2).mean()
        loss.backward()
        optimiser.step()
        with wg.no_grad():
            for mean, each in zip(average.parameters(), model.parameters(), strict=True):
                mean[...] = mean * 0.5 + each * 0.5
        return loss, average[0].weight * 1, model[1].running_var * 1

    return step, {"x": ROWS}


PROGRAMS: tuple[Program, ...] = (
    _old_state,
    _rotated,
    _rotated_and_computed,
    _one_value_of_two,
    _odd_bytes,
    _empty,
    _odd_names,
    _averaged,
)


@pytest.mark.usefixtures("dawn")
def test_programs_give_what_they_give_in_python(tmp_path: Path) -> None:
    jobs: list[tuple[Path, str, list[Call]]] = []
    expected = []
    for program in PROGRAMS:
        function, inputs = program()
        examples = {
            name: wg.asarray(each) if isinstance(each, np.ndarray) else each for name, each in inputs.items()
        }
        page = wg.export(program()[0], examples, tmp_path / program.__name__)
        jobs.append((page.parent, _plan(page)["variants"][-1]["label"], [("run", inputs)] * CALLS))
        expected.append([_arrays(function(**examples)) for _ in range(CALLS)])
    for program, wanted, answers in zip(PROGRAMS, expected, run_exports(jobs), strict=True):
        for number, (arrays, answer) in enumerate(zip(wanted, answers, strict=True)):
            for array, (name, found) in zip(arrays, answer.items(), strict=True):
                message = f"{program.__name__}, call {number}, {name}"
                np.testing.assert_allclose(found, array, 1e-4, 1e-4, err_msg=message)


def _arrays(result: Any) -> list[Any]:
    leaves: list[Any] = []
    flatten(result, leaves, numbers=False)
    return [np.array(each.numpy()) for each in leaves]


@pytest.mark.usefixtures("dawn")
def test_random_programs(tmp_path: Path) -> None:
    """`make fuzz` tries thousands."""
    assert wrong_exports(range(3), tmp_path) == []


weight = wg.asarray([1.0, 2.0])
weight.requires_grad = True


def _accumulate() -> Any:
    (weight * weight).sum().backward()
    return weight.grad


def _within(x: Any) -> Any:
    wg.export(abs, x, "x")
    return x


ONE = wg.ones(1)
PICTURE = (nn.Flatten(), wg.ones((1, 2, 1)), "x")
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "names of inputs": (
        lambda: wg.export(lambda a, a_b: a["b"] + a_b, ({"b": ONE}, ONE), "x"),
        "2 inputs of run would be called 'a_b'",
    ),
    "names of outputs": (lambda: wg.export(lambda x: {1: x, "1": x}, ONE, "x"), "2 outputs of run"),
    "gradients": (lambda: wg.export(_accumulate, (), "x"), "gradients that an earlier call left"),
    "an export within": (lambda: wg.export(_within, ONE, "x"), "Export it outside"),
    "unused doubles": (
        lambda: wg.export(lambda x, y: x, (ONE, wg.ones(1, dtype=wg.float64)), "x"),
        "float64, which GPUs in browsers have not",
    ),
    "a mean that is none": (lambda: wg.export(*PICTURE, labels="ab", mean=float("nan")), "must be finite"),
    "a mean of words": (lambda: wg.export(*PICTURE, labels="ab", std="x"), "one for each channel"),  # type: ignore[arg-type]
    "a sample of words": (
        lambda: wg.export(*PICTURE, labels="ab", samples=["a.png"]),
        "a sample is an array",
    ),
    "an empty sample": (lambda: wg.export(*PICTURE, labels="ab", samples=[np.ones((0, 2))]), r"\(0, 2\)"),
    "too large": (lambda: wg.export(lambda x: wg.zeros(75 << 20) + x, ONE, "x"), "314,572,800 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_exported_says_why(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, words = REFUSED[name]
    with pytest.raises(wg.WebgradError, match=words):
        function()
    assert not (tmp_path / "x" / "index.html").exists()


def test_a_number_that_json_has_not_is_no_default(tmp_path: Path) -> None:
    plan = _plan(wg.export(lambda x: x * wg.fresh(lambda: float("inf")), ONE, tmp_path))
    assert plan["functions"]["run"]["inputs"]["number_1"] == {"kind": "number", "dtype": "float32"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_tensors_are_where_they_were_after_an_error(error: type[BaseException], tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    wg.eval(*model.parameters())
    before = [each.node for each in model.parameters()]

    def function(x: Any) -> Any:
        with wg.no_grad():
            model.weight[...] = model(x)
        raise error

    with pytest.raises(error):
        wg.export(function, wg.ones(2), tmp_path)
    assert all(each.node is node for each, node in zip(model.parameters(), before, strict=True))
    assert wg.ones(1).device == "cpu"


def test_an_export_is_nobody_elses_business(tmp_path: Path) -> None:
    """Devices on paper are not among those that are open, profiled or tuned."""
    before = opened_devices()
    kept: list[Any] = []

    def function(x: Any) -> Any:
        thread = threading.Thread(target=lambda: kept.append(wg.zeros(1).device))
        thread.start()
        thread.join()
        return wg.sum(x * 2, axis=1)

    with wg.profile() as profile, wg.tune():
        wg.export(function, wg.ones((300, 300)), tmp_path)
    assert opened_devices() == before
    assert kept == ["cpu"]
    assert "browser" not in str(profile)
    assert "browser" not in str(wg.memory())


def test_nothing_stays_of_an_export(tmp_path: Path) -> None:
    """But for the one device that functions are traced on."""
    model = nn.Linear(2, 2)
    for _ in range(2):
        wg.export(model, wg.ones(2), tmp_path)
    gc.collect()
    assert [each for each in gc.get_objects() if isinstance(each, PaperDevice)] == [tracing_device()]
    assert not [each for each in gc.get_objects() if isinstance(each, Graph)]


# Declarations


def _any_kind(x: Any, half: Any, flags: Any, whole: Any, rate: Any, count: Any, **odd: Any) -> Any:
    total = x * rate + count + sum(odd.values()) + wg.random.normal((2,)) * wg.fresh(lambda: 0.5)
    return {"total": total, "half": half, "__proto__": flags, "class": whole, "a b": total * 2}


KINDS = {
    "x": wg.ones(2),
    "half": wg.ones(2, dtype=wg.float16),
    "flags": wg.ones(2, dtype=wg.bool),
    "whole": wg.ones(2, dtype=wg.int16),
    "rate": 0.5,
    "count": 3,
    **dict.fromkeys(NAMES[:-1], ONE),
}
USER = """
import { open } from "./model.js";
const model = await open({ onProgress: ({ loaded, total }) => console.log(loaded / total) });
const list = [1, 2];
const given = { x: list, half: new Float32Array(2), flags: [true, false], whole: new Int16Array(2), rate: 1,
  count: 2, ["__proto__"]: [1], constructor: [1] as any, toString: [1] as any, class: [1], "naïve π": [1],
  "a'\\"`\\n</script>": [1] };
const outputs = await model.functions.step_one(given);
const total: Float32Array = outputs.total.data;
const half: Float32Array = outputs.half.data;
const whole: Int16Array = outputs.class.data;
const both: number[] = [...outputs["a b"].data, ...outputs["__proto__"].data];
const other = await model.functions.stepOne({ x: [[1], [2]] });
const same: Float32Array = other.output.data;
model.submit("stepOne", { x: { data: list } });
model.reset();
export { both, half, same, total, whole };
"""


def test_types_of_functions_with_like_names_are_apart(tmp_path: Path) -> None:
    name = "a\nexport const b = 1;\u2028c"
    plan = _plan(
        wg.export({"step_one": abs, "stepOne": abs}, {"step_one": ONE, "stepOne": ONE}, tmp_path, name=name)
    )
    text = declarations(plan)
    assert text.startswith("// a export const b = 1; c: the functions")
    assert [text.count(f"export interface {each} ") for each in ("StepOneInputs", "StepOne2Inputs")] == [1, 1]


@pytest.mark.web
@pytest.mark.usefixtures("typescript")
def test_declarations_of_every_kind_of_input_and_output(tmp_path: Path) -> None:
    functions: dict[str, Any] = {"step_one": _any_kind, "stepOne": abs}
    wg.export(functions, {"step_one": KINDS, "stepOne": wg.ones((2, 1))}, tmp_path, name="a\nb")
    user = tmp_path / "user.ts"
    user.write_text(USER, encoding="utf-8")
    assert type_errors([user]) == []
    user.write_text(USER.replace("rate: 1", 'rate: "1"'), encoding="utf-8")
    assert "rate" in "".join(type_errors([user]))
