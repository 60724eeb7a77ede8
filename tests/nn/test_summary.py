"""summary: the table, its totals, and that a model stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn


def model() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5)),
        nn.Flatten(),
        nn.Linear(4 * 26 * 26, 10),
    )


def test_the_table() -> None:
    found = nn.summary(model(), input_size=(2, 1, 28, 28))
    lines = str(found).splitlines()
    assert lines[0].split() == ["layer", "output", "parameters", "bytes"]
    assert set(lines[1]) == set(lines[-2]) == {"─"}
    assert lines[3].split() == ["0:", "Conv2d", "(2,", "4,", "26,", "26)", "36", "144", "B"]
    assert lines[5].startswith("    0: BatchNorm2d  (2, 4, 26, 26)")
    assert lines[5].split()[-3:] == ["8", "68", "B"]
    assert lines[-1] == "parameters: 27,094 (27,094 trainable, 0 frozen); buffers: 9; 105.9 KiB"
    assert len(lines[1]) == len(lines[-2]) == len(lines[3])
    assert repr(found) == str(found)
    assert "<td" in found._repr_html_()
    assert "27,094 trainable" in found._repr_html_()


def test_totals() -> None:
    net = model()
    net[3].requires_grad_(False)
    found = nn.summary(net)
    assert found.trainable == 36 + 8
    assert found.frozen == 27050
    assert found.parameters == 27094
    assert found.buffers == 9
    assert found.nbytes == 4 * (27094 + 9)
    assert "output" not in str(found).splitlines()[0]


def test_a_shared_parameter_counts_once() -> None:
    net = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False))
    net[1].weight = net[0].weight
    found = nn.summary(net, wg.zeros((2, 3), dtype=wg.int32))
    assert found.parameters == 40
    assert [row.parameters for row in found.rows] == [0, 40, 0]
    assert [row.shape for row in found.rows] == ["(2, 3, 10)", "(2, 3, 4)", "(2, 3, 10)"]


def test_the_model_stays_as_it_is() -> None:
    net = model()
    state = {name: value.numpy() for name, value in net.state_dict().items()}
    before = wg.random.get_state()
    nn.summary(net, wg.ones((2, 1, 28, 28)))
    assert wg.random.get_state() == before
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name])
    for module in net.modules():
        assert not module._forward_hooks
    assert all(parameter.requires_grad for parameter in net.parameters())
    with pytest.raises(wg.ShapeError):
        nn.summary(net, input_size=(2, 3, 28, 28))
    assert not any(module._forward_hooks for module in net.modules())


def test_a_batch_of_one() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout().eval())
    assert "(1, 3)" in str(nn.summary(model, input_size=(1, 4)))
    assert [module.training for module in model.modules()] == [True, True, True, False]


def test_several_inputs_and_outputs() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Bilinear(3, 4, 2)

        def forward(self, x: wg.Tensor, y: wg.Tensor) -> Any:
            mixed = self.mix(x, y)
            return {"mixed": mixed, "pair": (x, [y])}

    found = nn.summary(Both(), input_size=[(5, 3), (5, 4)])
    assert found.rows[0].shape == "{mixed: (5, 2), pair: (5, 3), (5, 4)}"
    assert nn.summary(nn.Linear(3, 2), input_size=3).rows[0].shape == "(2,)"


def test_mistakes() -> None:
    with pytest.raises(wg.DTypeError, match="summary takes a Module, not a function"):
        nn.summary(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(wg.ArgumentError, match="inputs, or input_size, but not both"):
        nn.summary(model(), wg.ones(1), input_size=1)


def test_shapes_in_place_of_inputs() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    assert str(nn.summary(model, (1, 4))) == str(nn.summary(model, input_size=(1, 4)))
    both = nn.Bilinear(3, 4, 2)
    assert str(nn.summary(both, (5, 3), (5, 4))) == str(nn.summary(both, input_size=[(5, 3), (5, 4)]))
