"""jit: what makes a function be captured anew, what does not, and the warning that says what did."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import webgrad as wg
from webgrad import nn

CALLS = 8


def captures_of(forward: Callable[[wg.Tensor], wg.Tensor]) -> int:
    """How often a training step with this in it is captured in a few calls."""
    model = nn.Linear(3, 3)
    optimiser = wg.optim.SGD(model.parameters(), lr=0.01)
    x, y = wg.ones((4, 3)), wg.asarray([0, 1, 2, 0])
    runs = 0

    @wg.jit
    def train(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        nonlocal runs
        runs += 1
        optimiser.zero_grad()
        loss: wg.Tensor = nn.CrossEntropyLoss()(forward(model(x)), y)
        loss.backward()
        optimiser.step()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            train(x, y)
    return runs


class Doubled(nn.Module):
    """Asks for no mode."""

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return x * 2.0


class Moded(nn.Module):
    """Branches on its mode."""

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        return x * (2.0 if self.training else 1.0)


def run(program: str) -> dict[str, Any]:
    """The globals of a script after it ran."""
    names: dict[str, Any] = {"wg": wg, "nn": nn}
    exec(textwrap.dedent(program), names)
    return names


def test_an_attribute_is_not_the_global_of_its_name() -> None:
    names = run("""
        model = nn.Linear(3, 1)
        optimiser = wg.optim.SGD(model.parameters(), lr=0.1)
        runs = []
        @wg.jit
        def train(x):
            runs.append(0)
            optimiser.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimiser.step()
            return loss
        for step in range(4):
            train(wg.ones((2, 3)))
    """)
    assert len(names["runs"]) == 1


@pytest.mark.parametrize(
    "expression",
    [
        "x * rate",
        "(lambda: x * rate)()",
        "sum([x * rate for _ in range(1)])",
        "(lambda: (lambda: x * rate)())()",
    ],
)
def test_a_global_that_is_read_is_watched_wherever_the_code_is(expression: str) -> None:
    names = run(f"""
        rate = 2.0
        @wg.jit
        def scaled(x):
            return {expression}
        first = scaled(wg.ones(1)).item()
        rate = 3.0
        second = scaled(wg.ones(1)).item()
    """)
    assert (names["first"], names["second"]) == (2.0, 3.0)


def test_another_function_or_module_under_a_name_is_seen_while_the_first_lives() -> None:
    names = run("""
        models = [nn.Linear(1, 1), nn.Linear(1, 1)]
        for each, value in zip(models, (2.0, 3.0)):
            nn.init.constant_(each.weight, value)
            nn.init.zeros_(each.bias)
        shifts = [lambda x: x, lambda x: x + 1]
        found = []
        @wg.jit
        def applied(x):
            return shift(model(x)) if mode == "sum" else model(x) - 5
        for mode, model, shift in [
            ("sum", models[0], shifts[0]), ("sum", models[1], shifts[0]), ("sum", models[1], shifts[1]),
            ("less", models[1], shifts[1]),
        ]:
            found.append(applied(wg.ones((1, 1))).item())
    """)
    assert names["found"] == [2.0, 3.0, 4.0, -2.0]


@pytest.mark.parametrize(
    "make",
    [
        nn.ReLU,
        lambda: nn.Softmax(dim=1),
        lambda: nn.Dropout(0.5),
        lambda: nn.Sequential(nn.ReLU(), nn.Dropout(0.5)),
        Doubled,
        Moded,
    ],
)
def test_a_module_that_is_made_inside_is_no_reason_to_capture_anew(make: Callable[[], nn.Module]) -> None:
    assert captures_of(lambda x: make()(x)) == 1


def test_a_dropout_that_is_made_inside_drops_others_at_every_call() -> None:
    dropped = wg.jit(lambda x: nn.Dropout(0.5)(x))
    wg.random.seed(0)
    first, second = (dropped(wg.ones(64)).tolist() for _ in range(2))
    assert first != second
    assert {*first} == {0.0, 2.0}


def test_a_module_that_dies_later_is_a_reason() -> None:
    module: nn.Module = Moded()
    applied = wg.jit(lambda x: module(x))
    assert applied(wg.ones(1)).item() == 2.0
    module = Doubled()
    assert applied(wg.ones(1)).item() == 2.0
    module = nn.ReLU()
    assert applied(wg.ones(1)).item() == 1.0


def test_what_a_watched_value_is_of_may_be_gone() -> None:
    alive = True

    def mode() -> bool:
        if not alive:
            raise ReferenceError
        return True

    scaled = wg.jit(lambda x: x * 2 if alive and wg.watch(mode) else x)
    assert scaled(wg.ones(1)).item() == 2.0
    alive = False
    assert scaled(wg.ones(1)).item() == 1.0


# The warning


def warned_of(function: Callable[[int], Any], calls: int = CALLS) -> str:
    """The one warning that calls of a function with 0, 1, 2 … give."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for at in range(calls):
            function(at)
    assert len(found) == 1
    assert found[0].filename == __file__
    return str(found[0].message)


def test_a_closure_that_changes_is_named_with_its_values() -> None:
    epoch = 0

    @wg.jit
    def scaled(x: wg.Tensor) -> wg.Tensor:
        return x * epoch

    def call(at: int) -> None:
        nonlocal epoch
        epoch = at
        scaled(wg.ones(1))

    message = warned_of(call)
    assert "scaled" in message
    assert "5 times in a row" in message
    assert "'epoch' was 3 and is 4" in message
    assert "pass it as an argument" in message


def test_a_global_and_a_module_attribute_are_named() -> None:
    names = run("""
        rate = 0.0
        dropout = nn.Dropout(0.0)
        @wg.jit
        def scaled(x):
            return x * rate
        @wg.jit
        def dropped(x):
            return dropout(x)
    """)

    def change_global(at: int) -> None:
        names["rate"] = at / 2
        names["scaled"](wg.ones(1))

    def change_attribute(at: int) -> None:
        names["dropout"].p = at / 10
        names["dropped"](wg.ones(1))

    assert "the global name 'rate' was 1.5 and is 2.0" in warned_of(change_global)
    assert "Dropout.p was 0.3 and is 0.4" in warned_of(change_attribute)


def test_arguments_are_named() -> None:
    shaped, flagged = wg.jit(lambda x: x), wg.jit(lambda x, flag="": x)

    def function(x: wg.Tensor, steps: int) -> wg.Tensor:
        return x * steps

    static = wg.jit(function, static="steps")
    many = 20
    shapes = warned_of(lambda at: shaped(wg.ones(at + 1)), many)
    assert "argument 0 was float32 (15,) and is float32 (16,)" in shapes
    assert "pad" in shapes
    assert "argument 'flag' was '14' and is '15'" in warned_of(
        lambda at: flagged(wg.ones(1), flag=str(at)), many
    )
    assert "argument 1 was 14 and is 15" in warned_of(lambda at: static(wg.ones(1), at), many)


def test_an_object_that_is_made_for_every_call_is_named() -> None:
    applied = wg.jit(lambda model, x: model(x))
    keep: list[nn.Module] = []

    def call(at: int) -> None:
        keep.append(nn.ReLU())
        applied(keep[-1], wg.ones(1))

    assert "argument 0 was another ReLU" in warned_of(call, 20)


def test_a_tensor_that_is_replaced_is_named() -> None:
    state = wg.ones(1)
    added = wg.jit(lambda x: x + state)

    def call(at: int) -> None:
        nonlocal state
        state = wg.ones(1) * at
        added(wg.ones(1))

    message = warned_of(call)
    assert "'state' is another tensor" in message
    assert "state[...] = new" in message


def test_changing_back_and_forth_is_no_reason_to_warn() -> None:
    model = nn.Dropout(0.1)
    applied = wg.jit(lambda x: model(x))
    for at in range(20):
        model.train(at % 2 == 0)
        applied(wg.ones(1))
    assert applied.captures == 2  # type: ignore[attr-defined]
