"""Containers: rows and dicts of modules and parameters, and what their state dicts are named."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn


def layers(count: int) -> list[nn.Module]:
    return [nn.Linear(2, 2) for _ in range(count)]


def test_sequential() -> None:
    one, two, three = layers(3)
    model = nn.Sequential(one, nn.ReLU(), two)
    x = wg.random.normal((4, 2))
    np.testing.assert_array_equal(model(x).numpy(), two(wg.relu(one(x))).numpy())
    assert model[0] is one
    assert model[-1] is two
    assert list(model[1:].state_dict()) == ["2.weight", "2.bias"]  # names stay, as in PyTorch
    assert type(model[:1]) is nn.Sequential
    assert model.append(three) is model
    assert len(model) == 4
    assert one in model
    assert [type(each).__name__ for each in model] == ["Linear", "ReLU", "Linear", "Linear"]
    del model[1]
    assert list(model.state_dict())[2] == "1.weight"
    model[0] = nn.Identity()
    model.insert(1, nn.Tanh())
    assert model.pop() is three
    assert repr(model) == (
        "Sequential(\n  (0): Identity()\n  (1): Tanh()\n"
        "  (2): Linear(in_features=2, out_features=2, bias=True)\n)"
    )
    with pytest.raises(wg.IndexingError, match="Sequential has 3 members, and no index 3"):
        model[3]
    with pytest.raises(wg.DTypeError, match="integers and slices as indices, not 'first'"):
        model["first"]
    with pytest.raises(wg.DTypeError, match="a function is no Module"):
        nn.Sequential(lambda x: x)
    with pytest.raises(wg.DTypeError, match=r"ReLU is a class, and no Module yet: write ReLU\(\)"):
        nn.Sequential(nn.ReLU)
    with pytest.raises(wg.DTypeError, match=r"a list is no Module: give its modules one by one, with \*"):
        nn.Sequential([nn.ReLU()])


def test_sequential_with_names() -> None:
    model = nn.Sequential(OrderedDict(fc=nn.Linear(2, 3), act=nn.ReLU()))
    assert list(model.state_dict()) == ["fc.weight", "fc.bias"]
    assert model.fc is model[0]
    assert model(wg.ones((1, 2))).shape == (1, 3)


def test_module_list() -> None:
    row = nn.ModuleList(layers(2))
    row.append(nn.ReLU()).extend(layers(1))
    assert len(row) == 4
    assert list(row.state_dict()) == [f"{at}.{name}" for at in (0, 1, 3) for name in ("weight", "bias")]
    assert len(row[1:3]) == 2
    row.insert(0, nn.Tanh())
    assert type(row[0]) is nn.Tanh
    assert type(row.pop(0)) is nn.Tanh
    del row[:2]
    assert [type(each).__name__ for each in row] == ["ReLU", "Linear"]
    assert nn.Identity() not in row
    row += [nn.Tanh()]
    assert [type(each).__name__ for each in row + layers(1)] == ["ReLU", "Linear", "Tanh", "Linear"]
    both = nn.Sequential(nn.ReLU()) + nn.Sequential(nn.Tanh())
    assert repr(both) == repr(nn.Sequential(nn.ReLU(), nn.Tanh()))


def test_a_place_of_a_list_may_be_empty() -> None:
    row = nn.ModuleList([nn.Linear(2, 2), None])
    first, *rest = row
    assert len(row) == 2
    assert rest == [None]
    assert first is row[0]
    assert list(row.state_dict()) == ["0.weight", "0.bias"]
    row.append(nn.ReLU())
    del row[0]
    assert [type(each).__name__ for each in row] == ["NoneType", "ReLU"]


def test_module_dict() -> None:
    named = nn.ModuleDict({"a": nn.Linear(2, 2)})
    named["b"] = nn.ReLU()
    named.update({"c": nn.Tanh()})
    assert list(named) == list(named.keys()) == ["a", "b", "c"]
    assert [type(each).__name__ for each in named.values()] == ["Linear", "ReLU", "Tanh"]
    assert [name for name, _ in named.items()] == ["a", "b", "c"]
    assert type(named.pop("c")) is nn.Tanh
    del named["b"]
    assert len(named) == 1
    assert "b" not in named
    assert list(named.state_dict()) == ["a.weight", "a.bias"]
    named["again"] = named["a"]
    assert [name for name, _ in named.items()] == ["a", "again"], "a shared one under both of its names"
    assert len(list(named.values())) == 2
    with pytest.raises(KeyError, match="ModuleDict has no 'z'; there are: a"):
        named["z"]


def test_parameters_in_rows_and_by_names() -> None:
    row = nn.ParameterList([wg.ones(2), nn.Parameter(wg.zeros(1))])
    row.append(wg.zeros((2, 2)))
    row[0] = wg.zeros(5)
    assert [each.shape for each in row] == [(5,), (1,), (2, 2)]
    assert row[-1].requires_grad
    assert len(row) == 3
    assert [each.shape for each in row[1:]] == [(1,), (2, 2)]
    assert "(0): Parameter of shape (5,), float32" in repr(row)
    named = nn.ParameterDict({"a": wg.ones(2)})
    named["b"] = [1.0]
    assert list(named.state_dict()) == list(named.keys()) == list(named) == ["a", "b"]
    assert "b" in named
    assert [each.shape for each in named.values()] == [(2,), (1,)]
    assert dict(named.items())["a"] is named["a"]
    named["c"] = named["a"]
    assert [name for name, _ in named.items()] == ["a", "b", "c"]
    del named["c"]
    del named["a"]
    assert len(named) == 1
    assert "Parameter of shape (1,)" in repr(named)
    with pytest.raises(KeyError, match="ParameterDict has no 'a'; there are: b"):
        named["a"]


def test_flatten_and_unflatten() -> None:
    x = wg.arange(24.0).reshape(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12)
    assert nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Unflatten(-1, (2, 2))(x).shape == (2, 3, 2, 2)
    assert nn.Unflatten(1, [-1, 1])(x).shape == (2, 3, 1, 4)
    assert nn.Identity(1, two=2)(x) is x
    with pytest.raises(wg.AxisError, match=r"a tensor of shape \(2, 3, 4\) has no axis 3"):
        nn.Unflatten(3, (2, 2))(x)
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
