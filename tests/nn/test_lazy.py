"""Lazy layers: sizes from the first input, states that come first, and what waits."""

from __future__ import annotations

from typing import Any

import pytest

import webgrad as wg

LAYERS = [
    (lambda: wg.nn.LazyLinear(2), wg.nn.Linear, (5, 3), "in_features"),
    (lambda: wg.nn.LazyConv1d(4, 2), wg.nn.Conv1d, (1, 3, 6), "in_channels"),
    (lambda: wg.nn.LazyConv2d(4, 2, groups=3 - 2), wg.nn.Conv2d, (3, 6, 6), "in_channels"),
    (lambda: wg.nn.LazyConvTranspose2d(4, 2), wg.nn.ConvTranspose2d, (1, 3, 6, 6), "in_channels"),
    (lambda: wg.nn.LazyBatchNorm1d(), wg.nn.BatchNorm1d, (4, 3), "num_features"),
    (
        lambda: wg.nn.LazyInstanceNorm1d(affine=True, track_running_stats=True),
        wg.nn.InstanceNorm1d,
        (2, 3, 5),
        "num_features",
    ),
]


@pytest.mark.parametrize(("make", "kind", "shape", "size"), LAYERS, ids=[each[1].__name__ for each in LAYERS])
def test_the_first_input_says_the_size(make: Any, kind: Any, shape: Any, size: str) -> None:
    layer = make()
    before = dict(layer.named_parameters())
    assert layer.has_uninitialized_params()
    assert isinstance(layer, kind)
    layer(wg.ones(shape))
    assert type(layer) is kind
    assert getattr(layer, size) == 3
    after = dict(layer.named_parameters())
    assert all(before[name] is each for name, each in after.items())  # an optimiser's are the same
    assert all(type(each) is wg.nn.Parameter and each.size for each in after.values())
    assert {name: each.shape for name, each in layer.state_dict().items() if each.ndim} == {
        name: each.shape for name, each in kind_like(layer, kind).items() if each.ndim
    }


def kind_like(layer: Any, kind: Any) -> Any:
    """The state of a plain layer of the same sizes."""
    if kind is wg.nn.Linear:
        return wg.nn.Linear(3, 2).state_dict()
    if hasattr(layer, "kernel_size"):
        return kind(3, 4, 2).state_dict()
    return kind(3, affine=True, track_running_stats=True).state_dict()


def test_a_state_that_comes_first_stays() -> None:
    plain, layer = wg.nn.Linear(3, 2), wg.nn.LazyLinear(2)
    layer.load_state_dict(plain.state_dict())
    x = wg.ones((1, 3))
    assert layer(x).tolist() == plain(x).tolist()
    assert layer.in_features == 3


def test_an_optimiser_waits_for_the_first_call() -> None:
    layer = wg.nn.LazyLinear(2)
    with pytest.raises(wg.ArgumentError, match="call the model once"):
        wg.optim.SGD(layer.parameters(), lr=0.1)
    layer(wg.ones((1, 3)))
    wg.optim.SGD(layer.parameters(), lr=0.1)


def test_an_input_without_channels_is_refused() -> None:
    with pytest.raises(wg.ShapeError, match="not enough axes"):
        wg.nn.LazyConv2d(4, 2)(wg.ones(3))
