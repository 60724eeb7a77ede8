"""A loaded model as users hold it: how it is called, what it says of itself, and how it is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.onnx.models import floats, loaded, model, node
from webgrad import nn

INPUTS = {"x": ["n", 2], "scale": ("float32", []), "ids": ("int64", ["n"])}
NODES = [
    node("MatMul", "x layer.weight", "h"),
    node("Add", "h layer.bias", "a"),
    node("Mul", "a scale", "y"),
    node("Identity", "ids", "same"),
]
WEIGHTS = {"layer.weight": np.array([[1, 2, 3], [4, 5, 6]], np.float32), "layer.bias": floats(1, 1, 1)}
OUTPUTS = {"y": ["n", 3], "same": ("int64", ["n"])}
X, IDS = np.ones((1, 2), np.float32), np.zeros(1, np.int64)


@pytest.fixture
def small(tmp_path: Path) -> wg.onnx.Model:
    return loaded(tmp_path, model(NODES, INPUTS, OUTPUTS, WEIGHTS, producer_name="me"))


def test_calls_by_place_by_name_and_with_tensors(small: wg.onnx.Model) -> None:
    expected = [[12.0, 16.0, 20.0]]
    assert small(X, 2, IDS)["y"].tolist() == expected
    assert small(X, ids=IDS, scale=np.float32(2)).y.tolist() == expected
    assert small(wg.asarray(X), wg.asarray(2.0), wg.asarray(IDS))[0].tolist() == expected
    assert small([[1, 1]], 2.0, [0])[-2].tolist() == expected


def test_outputs_say_what_there_is(small: wg.onnx.Model) -> None:
    out = small(X, 2, IDS)
    assert list(out) == ["y", "same"]
    with pytest.raises(KeyError, match="no output 'z', only y, same"):
        out["z"]
    with pytest.raises(AttributeError, match="no output 'z', only y, same"):
        _ = out.z
    with pytest.raises(IndexError, match="2 outputs, y, same, and no place 2"):
        out[2]


@pytest.mark.parametrize(
    ("args", "named", "kind", "message"),
    [
        ((X, 2), {}, wg.ArgumentError, r"without ids; it takes x: float32\[n, 2\], scale"),
        ((X, 2, IDS, 1), {}, wg.ArgumentError, "4 inputs by place"),
        ((X,), {"x": X}, wg.ArgumentError, "given twice"),
        ((X,), {"xs": X}, wg.ArgumentError, "no input 'xs'; it takes x"),
        ((X[0], 2, IDS), {}, wg.ShapeError, r"x: float32\[n, 2\] is given a value of shape \[2\]"),
        ((np.ones((1, 3), np.float32), 2, IDS), {}, wg.ShapeError, r"shape \[1, 3\]"),
        ((X.astype(np.float64), 2, IDS), {}, wg.DTypeError, r"given float64; .* x\.astype\(numpy\.float32\)"),
        ((wg.asarray(X, wg.float64), 2, IDS), {}, wg.DTypeError, r"x\.astype\(webgrad\.float32\)"),
        ((X, 2, [0.5]), {}, wg.DTypeError, "not of floats"),
        ((X, "two", IDS), {}, wg.DTypeError, "it must be of float32"),
        (([[1], [2, 3]], 2, IDS), {}, wg.DTypeError, "lists of one length"),
        ((None, 2, IDS), {}, wg.DTypeError, "it must be of float32"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_runs(
    small: wg.onnx.Model, args: Any, named: Any, kind: Any, message: str
) -> None:
    with pytest.raises(kind, match=message):
        small(*args, **named)


def test_types_that_lose_nothing_are_converted(small: wg.onnx.Model) -> None:
    out = small(X.astype(np.float16), 2, IDS.astype(np.int32))
    assert (out.y.dtype, out.same.dtype) == (wg.float32, wg.int64)


def test_texts(tmp_path: Path) -> None:
    m = loaded(
        tmp_path,
        model(
            [node("Equal", "a b", "y")], {"a": ("string", [2]), "b": ("string", [2])}, {"y": None}, opset=19
        ),
    )
    assert m(["x", "y"], np.array(["x", "z"]))[0].tolist() == [True, False]
    with pytest.raises(wg.DTypeError, match="of texts"):
        m([1, 2], ["a", "b"])


def test_summary_and_repr(small: wg.onnx.Model) -> None:
    summary = small.summary()
    assert (summary.parameters, summary.nbytes, summary.opsets) == (9, 36, {"": 18})
    assert summary.operators == {"MatMul": 1, "Add": 1, "Mul": 1, "Identity": 1}
    text = str(summary)
    assert "by me: ai.onnx 18" in text
    assert "  scale: float32[]" in text
    assert "weights: 9 in 36 B" in text
    assert "x: float32[n, 2]" in repr(small)


def test_gradients_go_to_inputs_and_weights(small: wg.onnx.Model) -> None:
    x = wg.asarray(X)
    x.requires_grad = True
    small(x, 1, IDS).y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[6.0, 15.0]]
    small.requires_grad_()
    small(X, 1, IDS).y.sum().backward()
    state = small.state_dict()
    gradients = [each.grad for each in state.values() if each.grad is not None]
    assert [each.tolist() for each in gradients] == [[[1.0] * 3] * 2, [1.0] * 3]
    small.requires_grad_(False)
    assert not small(X, 1, IDS).y.requires_grad


def test_training_a_model(small: wg.onnx.Model) -> None:
    small.requires_grad_()
    optimiser = wg.optim.SGD([*small.parameters()], lr=0.02)
    before = small(X, 1, IDS).y.numpy()
    for _ in range(40):
        loss = ((small(X, 1, IDS).y - 1.0) ** 2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = small(X, 1, IDS).y.numpy()
    assert np.abs(after - 1).max() < 0.05 * np.abs(before - 1).max()


def test_a_module_of_its_own(small: wg.onnx.Model) -> None:
    module = small.to_module()
    assert isinstance(module, nn.Module)
    assert list(module.state_dict()) == ["layer.weight", "layer.bias"]
    assert module(X, 2, IDS).y.tolist() == small(X, 2, IDS).y.tolist()
    with wg.no_grad():
        for each in module.parameters():
            each *= 2
    assert module(X, 2, IDS).y.tolist() == [[24.0, 32.0, 40.0]]
    assert small(X, 2, IDS).y.tolist() == [[12.0, 16.0, 20.0]]
    module.load_state_dict(small.state_dict())
    assert module(X, 2, IDS).y.tolist() == [[12.0, 16.0, 20.0]]


def test_a_module_trains_and_captures(small: wg.onnx.Model) -> None:
    module = small.to_module()
    optimiser = wg.optim.SGD(module.parameters(), lr=0.02)

    @wg.jit
    def step(x: wg.Tensor) -> wg.Tensor:
        optimiser.zero_grad()
        loss: wg.Tensor = ((module(x, 1, IDS).y - 1.0) ** 2).sum()
        loss.backward()
        optimiser.step()
        return loss

    losses = [step(wg.asarray(X)).item() for _ in range(30)]
    assert losses[-1] < 0.01 * losses[0]


def test_names_that_a_module_has_itself(tmp_path: Path) -> None:
    weights = {"forward": floats(1), "a": floats(2), "a.b": floats(3), "": floats(4), "eval.x": floats(5)}
    nodes = [
        node("Add", "x forward", "p"),
        node("Add", "p a", "q"),
        node("Add", "q a.b", "r"),
        node("Add", "r eval.x", "y"),
    ]
    m = loaded(tmp_path, model(nodes, {"x": [1]}, {"y": [1]}, weights))
    module = m.to_module()
    assert module(floats(0)).tolist() == [11.0]
    assert len(module.state_dict()) == len(m.state_dict())


def test_progress_is_told_where_there_is_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("webgrad.onnx.model.LARGE", 1 << 20)
    weights = {name: np.full(1 << 19, at, np.float32) for at, name in enumerate("abc")}
    nodes = [node("Add", "x a", "p"), node("Add", "p b", "q"), node("Add", "q c", "y")]
    data = model(nodes, {"x": [1 << 19]}, {"y": None}, weights)
    loaded(tmp_path, data)
    assert "m.onnx 6/6" in capsys.readouterr().err
    wg.onnx.load(tmp_path / "m.onnx", device="cpu", progress=False)
    assert not capsys.readouterr().err
