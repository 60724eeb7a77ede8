"""Functions written as ONNX files and read back: equal results, names, open sizes, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from scripts.onnx_saved import Case, maps, modules, others
from webgrad import nn
from webgrad.onnx.writing.table import PRIMITIVES
from webgrad.ops.table import TABLE

BUILT = {"leaf", "scalar", "as_real", "as_complex"}  # numbers and tensors; complex values are pairs


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, wg.Tensor):
        yield value.numpy()
    else:
        for each in value:
            yield from leaves(each)


def save(function: Callable[..., Any], inputs: Sequence[Any], folder: Path, **options: Any) -> wg.onnx.Model:
    path = wg.onnx.save(function, tuple(wg.asarray(each) for each in inputs), folder / "m.onnx", **options)
    return wg.onnx.load(path, device="cpu")


def check(case: Case, folder: Path, opset: int = 20) -> None:
    """The file gives what the function does, for its example and for inputs of other sizes."""
    if isinstance(case.function, nn.Module):
        case.function.eval()
    model = save(case.function, case.inputs, folder, opset=opset, **case.options)
    call: Any = case.function
    for inputs in (case.inputs, *([case.others] if case.others else [])):
        given = {each.name for each in model.inputs}
        assert given
        found = model(*inputs)
        expected = list(leaves(call(*(wg.asarray(each) for each in inputs))))
        assert len(found) == len(expected)
        for ours, theirs in zip(found.values(), expected, strict=True):
            assert ours.dtype == wg.as_dtype(theirs.dtype)
            wide = theirs.astype(np.float64)
            size = np.abs(wide[np.isfinite(wide)]).max(initial=1e-6)
            np.testing.assert_allclose(
                ours.numpy().astype(np.float64), wide, case.tolerance, case.tolerance * size
            )


def marked(case: Case) -> Any:
    """The largest one takes long."""
    return pytest.param(case, id=case.name, marks=[pytest.mark.long] if case.name == "MiniLM" else [])


@pytest.mark.parametrize("case", [marked(each) for each in modules()])
def test_modules(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.parametrize("case", [*others()], ids=lambda case: case.name)
def test_primitives(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.parametrize(
    "case",
    [each for each in maps() if each.name.endswith((" float32", " int32", " bool"))],
    ids=lambda x: x.name,
)
def test_maps(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("case", [*maps()], ids=lambda case: case.name)
def test_maps_of_every_type(case: Case, tmp_path: Path) -> None:
    with suppress(wg.DTypeError):  # what onnxruntime has no kernels for
        check(case, tmp_path)


@pytest.mark.parametrize("opset", [18, 24])
def test_other_opsets(opset: int, tmp_path: Path) -> None:
    for at, case in enumerate(each for each in modules() if each.name in ("linear stack", "norms")):
        (tmp_path / str(at)).mkdir()
        check(case, tmp_path / str(at), opset)


def test_every_primitive_has_a_row() -> None:
    assert sorted(set(TABLE) - BUILT - set(PRIMITIVES)) == []


def test_weights_have_the_names_of_the_state(tmp_path: Path) -> None:
    layer = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    model = save(layer, [np.zeros((1, 3, 5, 5), np.float32)], tmp_path)
    ours, theirs = layer.state_dict(), model.state_dict()
    wanted = {name for name, each in ours.items() if each.ndim}
    assert wanted <= set(theirs)
    assert all((ours[name].numpy() == theirs[name].numpy()).all() for name in wanted)


def test_names_that_collide_get_numbers(tmp_path: Path) -> None:
    weight = wg.ones(2)

    def output(constant: wg.Tensor, add: wg.Tensor) -> dict[str, wg.Tensor]:
        return {"constant": constant + 1, "add_2": add + weight}

    with pytest.raises(wg.ArgumentError, match="both an input and an output"):
        save(output, [np.zeros(2, np.float32), np.zeros(2, np.float32)], tmp_path)
    model = save(
        lambda constant, add: {"mul": constant * 2, "tensor": add + weight},
        [np.ones(2, np.float32), np.ones(2, np.float32)],
        tmp_path,
    )
    found = model(constant=np.ones(2, np.float32), add=np.ones(2, np.float32))
    assert found["mul"].tolist() == [2.0, 2.0]
    assert found.tensor.tolist() == [2.0, 2.0]


def test_an_input_may_be_a_result_twice_and_another_unused(tmp_path: Path) -> None:
    model = save(lambda x, y: (x, x), [np.ones(2, np.float32), np.ones(3, np.float32)], tmp_path)
    assert [each.name for each in model.inputs] == ["x", "y"]
    assert model(np.ones(2, np.float32), np.ones(3, np.float32))["output_1"].tolist() == [1.0, 1.0]


def test_weights_beside_the_file(tmp_path: Path) -> None:
    layer = nn.Linear(40, 30)
    x = np.ones((2, 40), np.float32)
    model = save(layer, [x], tmp_path, external=True)
    assert (tmp_path / "m.onnx").stat().st_size < 1000
    assert (tmp_path / "m.onnx.data").stat().st_size == 40 * 30 * 4
    np.testing.assert_allclose(model(x)[0].numpy(), layer(wg.asarray(x)).numpy(), rtol=1e-5, atol=1e-6)


def test_open_sizes_are_named_and_follow(tmp_path: Path) -> None:
    def function(x: wg.Tensor) -> wg.Tensor:
        batch, length, width = x.shape
        flat = x.reshape(batch * length, width)
        return wg.concat([flat, flat], axis=0)[1:].reshape(2 * batch * length - 1, width // 2, 2).sum(axis=1)

    sizes = {"x": {0: "batch", 1: "length"}}
    model = save(function, [np.zeros((1, 3, 4), np.float32)], tmp_path, dynamic=sizes)
    assert [str(each) for each in model.inputs] == ["x: float32[batch, length, 4]"]
    x = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    np.testing.assert_allclose(model(x)[0].numpy(), function(wg.asarray(x)).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x * (1.0 / x.shape[0]), "no rule for it is known"),
        (lambda x: x if x.shape[0] > 2 else -x, "other operations are done for other sizes"),
        (lambda x: x + wg.asarray(np.arange(x.shape[0], dtype=np.float32)), "(a table|known)"),
        (lambda x: x.reshape(2, -1) * 2, "does not take dynamic sizes"),
        (lambda x: wg.cummax(x), "the length of the scan is open"),
    ],
)
def test_what_depends_on_an_open_size_is_refused(function: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(wg.ArgumentError, match=message):
        save(function, [np.zeros(2, np.float32)], tmp_path, dynamic={"x": {0: "n"}})
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": 12}, "writes opsets 18 to"),
        ({"dynamic": {"y": {0: "n"}}}, "no input 'y' to be dynamic, only x"),
        ({"dynamic": {"x": {3: "n"}}}, "has no axis 3"),
        ({"dynamic": {"x": {0: "n", 1: "n"}}}, "the size 'n' is"),
    ],
)
def test_options_that_are_wrong(options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(wg.ArgumentError, match=message):
        save(wg.exp, [np.zeros((2, 3), np.float32)], tmp_path, **options)


def test_random_numbers_and_states_are_refused_by_name(tmp_path: Path) -> None:
    x = np.ones((4, 2), np.float32)
    with pytest.raises(wg.ArgumentError, match=r"random numbers are others .* model\.eval\(\)"):
        save(nn.Dropout(0.5), [x], tmp_path)
    with pytest.raises(wg.CaptureError, match=r"model\.eval\(\)"):
        save(nn.BatchNorm1d(2), [x], tmp_path)
    with pytest.raises(wg.DTypeError, match="no kernel for"):
        save(wg.erf, [x.astype(np.float64)], tmp_path)
    with pytest.raises(wg.DTypeError, match="complex64"):
        save(lambda x: wg.view_as_complex(x), [x], tmp_path)


def test_sizes_of_inputs_in_lists_are_refused(tmp_path: Path) -> None:
    with pytest.raises(wg.ArgumentError, match="tensors and numbers themselves"):
        wg.onnx.save(
            lambda several: several[0] + 1,
            ([wg.ones(2)],),
            tmp_path / "m.onnx",
            dynamic={"several_0": {0: "n"}},
        )


@pytest.mark.gpu
def test_a_model_on_a_gpu(tmp_path: Path) -> None:
    layer = nn.Sequential(nn.Linear(4, 3), nn.GELU()).to("webgpu")
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    given = wg.asarray(x[:2], device="webgpu")
    path = wg.onnx.save(layer, (given,), tmp_path / "m.onnx", dynamic={"x": {0: "batch"}})
    expected = layer(wg.asarray(x, device="webgpu")).numpy()
    np.testing.assert_allclose(wg.onnx.load(path, device="cpu")(x)[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_numbers_are_inputs(tmp_path: Path) -> None:
    path = wg.onnx.save(lambda x, rate: x * rate, (wg.ones(2), 0.5), tmp_path / "m.onnx")
    model = wg.onnx.load(path, device="cpu")
    assert model(np.ones(2, np.float32), np.float32(3))[0].tolist() == [3.0, 3.0]
