"""Checkpoints hold any state, come back bit by bit, and are refused whole where they do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import webgrad as wg
from webgrad.training import load_checkpoint, save_checkpoint
from webgrad.training.checkpoint import _KEY


class Thing:
    """Something with a state."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.was_loaded = False

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        self.state = state
        self.was_loaded = True


def tensor(*values: float, dtype: Any = wg.float32) -> wg.Tensor:
    return wg.asarray(list(values), dtype=dtype, device="cpu")


def optimiser(first: float = 0.5) -> Thing:
    return Thing(
        {
            "state": {0: {"exp_avg": tensor(first, 2.0), "step": tensor(3)}, 1: {}},
            "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 1], "name": None, "on": True}],
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


def test_nested_states_come_back(path: Path) -> None:
    halves = tensor(1.5, -0.25, dtype=wg.bfloat16)
    save_checkpoint(
        path,
        model=Thing({"weight": tensor(1e-45, np.inf), "half": halves}),
        optimiser=optimiser(),
        schedule=Thing({"last": 3, "rate": 0.1 + 0.2}),
        step=12,
        extra={"best": 0.75, "far": float("inf"), "losses": np.arange(3.0), "notes": ["a", ("b", 2**63)]},
    )
    model, other = Thing({"weight": tensor(0, 0), "half": tensor(0, 0, dtype=wg.bfloat16)}), optimiser(9.0)
    schedule = Thing({"last": 0, "rate": 0.0})
    found = load_checkpoint(path, model, other, schedule)
    assert model.state["weight"].numpy().tobytes() == np.array([1e-45, np.inf], np.float32).tobytes()
    assert model.state["half"].tolist() == [1.5, -0.25]
    assert other.state["state"][0]["exp_avg"].tolist() == [0.5, 2.0]
    assert other.state["state"][1] == {}
    assert other.state["param_groups"] == optimiser().state["param_groups"]
    assert schedule.state == {"last": 3, "rate": 0.1 + 0.2}
    assert found.step == 12
    assert found.extra["notes"] == ["a", ("b", 2**63)]
    assert found.extra["far"] == float("inf")
    assert found.extra["losses"].dtype is wg.float64


class Phase(NamedTuple):
    end: int
    rate: float


def test_named_tuples_come_back(path: Path) -> None:
    save_checkpoint(path, schedule=Thing({"phases": [Phase(3, 0.5), Phase(9, 0.1)]}))
    schedule = Thing({"phases": [Phase(0, 0.0), Phase(0, 0.0)]})
    load_checkpoint(path, schedule=schedule)
    assert [each.end for each in schedule.state["phases"]] == [3, 9]


def test_random_numbers_go_on(path: Path) -> None:
    wg.random.seed(2**64 - 1)
    wg.random.normal(3, device="cpu")
    save_checkpoint(path)
    expected = wg.random.uniform(4, device="cpu").tolist()
    wg.random.seed(0)
    load_checkpoint(path, random=False)
    assert wg.random.get_state() == (0, 0)
    load_checkpoint(path)
    assert wg.random.uniform(4, device="cpu").tolist() == expected


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"weight": tensor(1, 2, 3)}, r"model.weight has shape \(2,\) there, \(3,\) here"),
        ({"weight": tensor(1, 2, dtype=wg.float16)}, "model.weight is float32 there, float16 here"),
        ({"weight": tensor(1, 2), "bias": tensor(1)}, "model.bias is missing"),
        ({}, "model.weight is not expected"),
        ([tensor(1, 2)], "no parts there, 1 here"),
    ],
)
def test_what_does_not_fit_changes_nothing(state: Any, words: str, path: Path) -> None:
    save_checkpoint(path, model=Thing({"weight": tensor(1, 2)}), optimiser=optimiser())
    model, other = Thing(state), optimiser()
    before = wg.random.get_state()
    wg.random.seed(1)
    with pytest.raises(wg.ModelFileError, match=words + r".*Nothing was changed"):
        load_checkpoint(path, model=model, optimiser=other)
    assert not model.was_loaded
    assert not other.was_loaded
    assert wg.random.get_state() == (1, 0)
    wg.random.set_state(before)


def test_settings_of_others_do_no_harm(path: Path) -> None:
    one = optimiser()
    one.state["param_groups"][0]["initial_lr"] = 0.1
    save_checkpoint(path, optimiser=one)
    load_checkpoint(path, optimiser=optimiser())


def test_loaders_are_asked(path: Path) -> None:
    loader = wg.data.DataLoader(np.arange(9), 3, shuffle=True, seed=4, device="cpu")
    expected = [each.tolist() for each in loader]
    loader.load_state_dict(loader.state_dict() | {"epoch": 0})
    for at, _ in enumerate(loader):
        if at == 1:
            save_checkpoint(path, loader=loader)
    other = wg.data.DataLoader(np.arange(9), 3, shuffle=True, device="cpu")
    load_checkpoint(path, loader=other)
    assert [each.tolist() for each in other] == expected[2:]
    model = Thing({})
    with pytest.raises(wg.ArgumentError, match="batch_size=3, and this one has batch_size=2"):
        load_checkpoint(path, loader=wg.data.DataLoader(np.arange(9), 2, shuffle=True))
    assert not model.was_loaded


def test_files_that_are_no_checkpoints(path: Path) -> None:
    wg.io.save(path, {"x": np.ones(2)})
    with pytest.raises(wg.ModelFileError, match=r"not a checkpoint.*webgrad\.io\.load"):
        load_checkpoint(path)
    for text in (
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 1, "tree": {"model": {"tensor": "none"}}}',
        '{"version": 1, "tree": {}}',
    ):
        wg.io.save(path, {}, {_KEY: text})
        with pytest.raises(wg.ModelFileError, match="damaged"):
            load_checkpoint(path)
    wg.io.save(path, {}, {_KEY: json.dumps({"version": 2, "tree": {}})})
    with pytest.raises(wg.ModelFileError, match="version 2; this webgrad reads version 1"):
        load_checkpoint(path)
    save_checkpoint(path, step=1)
    with pytest.raises(wg.ModelFileError, match="it has no model"):
        load_checkpoint(path, model=Thing({}))


def test_what_cannot_be_saved(path: Path) -> None:
    with pytest.raises(wg.DTypeError, match=r"extra\.hook is a function"):
        save_checkpoint(path, extra={"hook": test_what_cannot_be_saved})
    with pytest.raises(wg.DTypeError, match="model is a list, which has no state_dict"):
        save_checkpoint(path, model=[])
    assert not path.exists()
    with pytest.raises(wg.DTypeError, match=r"extra\.a has \(1, 2\)"):
        save_checkpoint(path, extra={"a": {(1, 2): 3}})


@pytest.mark.gpu
def test_tensors_go_to_the_device_of_those_they_replace(path: Path) -> None:
    save_checkpoint(path, model=Thing({"x": tensor(1, 2)}))
    model = Thing({"x": wg.zeros(2, device="webgpu")})
    load_checkpoint(path, model=model)
    assert model.state["x"].device.is_gpu
    assert model.state["x"].tolist() == [1.0, 2.0]


def test_names_that_are_joined_alike_stay_apart(path: Path) -> None:
    extra = {"a.b": tensor(1), "a": {"b": tensor(2)}, "c": {1: tensor(3), "1": tensor(4)}}
    save_checkpoint(path, extra=extra)
    found = load_checkpoint(path).extra
    values = [found["a.b"], found["a"]["b"], found["c"][1], found["c"]["1"]]
    assert [each.item() for each in values] == [1, 2, 3, 4]


def test_a_file_that_is_replaced_while_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(path, step=1, extra={"x": tensor(1)})
    load = wg.io.load

    def slow(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(wg.io, "load", load)
        save_checkpoint(path, step=2, extra={"x": tensor(2)})
        return load(*arguments, **options)

    monkeypatch.setattr(wg.io, "load", slow)
    found = load_checkpoint(path)
    assert (found.step, found.extra["x"].item()) == (2, 2.0)


def test_schedules_with_counts_go_on(path: Path) -> None:
    def made() -> Any:
        parameter = wg.nn.Parameter(tensor(1.0))
        return wg.optim.lr_scheduler.MultiStepLR(wg.optim.SGD([parameter], lr=1.0), [2, 4, 4], gamma=0.5)

    one, other = made(), made()
    for _ in range(3):
        one.step()
    save_checkpoint(path, optimiser=one.optimizer, schedule=one)
    load_checkpoint(path, optimiser=other.optimizer, schedule=other)
    for _ in range(2):
        other.step()
    assert other.get_last_lr() == [0.125]
