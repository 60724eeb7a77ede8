"""Groups, state, saving, and what is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.functions.devices import device_of
from tests.optim.helpers import DEVICES, drawn, parameters, trained
from webgrad.optim import SGD, Adam, AdamW, Lion, Optimizer, RMSprop

MADE: list[tuple[type[Optimizer], dict[str, Any]]] = [
    (SGD, {"lr": 0.1, "momentum": 0.9}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    (SGD, {"lr": 0.1}),
    (Adam, {"amsgrad": True}),
    (AdamW, {"lr": 0.1}),
    (RMSprop, {"momentum": 0.9}),
    (Lion, {}),
    (wg.optim.NAdam, {}),
]


def test_groups_have_settings_of_their_own() -> None:
    first, second, third, last = parameters()
    opt = SGD([{"params": [first], "lr": 0.5, "name": "head"}, {"params": second}], lr=0.1, momentum=0.9)
    opt.add_param_group({"params": [third, last], "momentum": 0.0})
    assert [(group["lr"], group["momentum"]) for group in opt.param_groups] == [
        (0.5, 0.9),
        (0.1, 0.9),
        (0.1, 0.0),
    ]
    before = [each.numpy() for each in (first, second, third)]
    for each in (first, second, third):
        each.grad = wg.ones_like(each)
    opt.param_groups[2]["lr"] = 0.01
    opt.step()
    changes = [old - each.numpy() for old, each in zip(before, (first, second, third), strict=True)]
    for change, rate in zip(changes, (0.5, 0.1, 0.01), strict=True):
        np.testing.assert_allclose(change, rate, rtol=1e-4)
    assert "group 0: 1 parameters, lr=0.5" in repr(opt)


def test_named_parameters_are_taken() -> None:
    opt = SGD([("weight", parameters()[0])], lr=0.1)
    assert len(opt.param_groups[0]["params"]) == 1


def test_gradients_are_forgotten_or_zeroed() -> None:
    params = parameters()
    opt = SGD(params)
    params[0].grad = wg.ones_like(params[0])
    opt.zero_grad(set_to_none=False)
    assert params[0].grad is not None
    assert not params[0].grad.numpy().any()
    assert params[1].grad is None
    opt.zero_grad()
    assert params[0].grad is None


def test_a_closure_computes_the_loss_anew() -> None:
    (w,) = parameters(shapes=[(3,)])
    opt = SGD([w], lr=0.5)
    start = w.numpy()

    def closure() -> wg.Tensor:
        opt.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == pytest.approx(float((start * start).sum()), rel=1e-6)
    np.testing.assert_allclose(w.numpy(), 0, atol=1e-7)


def test_without_gradients_nothing_changes() -> None:
    params = parameters()
    before = [each.numpy() for each in params]
    opt = Adam(params)
    opt.step()
    assert all(np.array_equal(old, new.numpy()) for old, new in zip(before, params, strict=True))
    assert opt.state_dict()["state"][0]["step"].item() == 0


@DEVICES
@pytest.mark.parametrize(("made", "options"), MADE, ids=str)
def test_a_saved_state_goes_on_bit_by_bit(made: type[Optimizer], options: dict[str, Any], kind: str) -> None:
    params = parameters(kind)
    opt = made(params, **options)
    idle = {(1, 0), (2, 2)} if kind == "cpu" else ()
    trained(opt, 3, idle=idle)
    copies = [wg.asarray(each.numpy(), device=each.device).requires_grad_() for each in params]
    other = made(copies, **{**options, "lr": 9.0})
    other.load_state_dict(opt.state_dict())
    trained(opt, 3, first=3)
    trained(other, 3, first=3)
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(params, copies, strict=True))


def test_the_layout_of_a_state_is_pytorchs() -> None:
    params = parameters()
    opt = Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}])
    trained(opt, 2, idle={(0, 1)})
    saved = opt.state_dict()
    assert sorted(saved) == ["param_groups", "state"]
    assert [group["params"] for group in saved["param_groups"]] == [[0], [1, 2, 3]]
    assert [group["lr"] for group in saved["param_groups"]] == [1e-3, 0.5]
    assert list(saved["state"]) == [0, 1, 2, 3]
    assert sorted(saved["state"][0]) == ["exp_avg", "exp_avg_sq", "step"]
    assert [saved["state"][at]["step"].item() for at in range(4)] == [2, 1, 2, 2]
    assert not any(each.requires_grad for each in saved["state"][0].values())


def test_a_copy_of_a_state_does_not_change_with_the_optimiser() -> None:
    opt = Adam(parameters())
    trained(opt, 1)
    state = opt.state_dict()
    saved, live = (each["state"][0]["exp_avg"] for each in (copy.deepcopy(state), state))
    before = saved.numpy()
    trained(opt, 1, first=1)
    assert np.array_equal(saved.numpy(), before)
    assert np.array_equal(live.numpy(), opt.state_dict()["state"][0]["exp_avg"].numpy())


@DEVICES
@pytest.mark.parametrize("made", [SGD, Adam, wg.optim.NAdam, wg.optim.Adagrad])
def test_complex_parameters_step_as_their_parts_do(made: Callable[..., Optimizer], kind: str) -> None:
    parts = drawn(1, (3, 2))
    real = wg.nn.Parameter(wg.asarray(parts, device=device_of(kind)))
    whole = wg.nn.Parameter(wg.view_as_complex(real.detach()))
    options: dict[str, Any] = {"initial_accumulator_value": 0.5} if made is wg.optim.Adagrad else {}
    optimisers = [made([each], lr=0.1, **options) for each in (real, whole)]
    for step in range(3):
        real.grad = wg.asarray(drawn(2 + step, (3, 2)), device=real.device)
        whole.grad = wg.view_as_complex(real.grad)
        for each in optimisers:
            each.step()
    np.testing.assert_array_equal(wg.view_as_real(whole.detach()).numpy(), real.detach().numpy())
    fresh = made([whole], lr=0.1, **options)
    fresh.load_state_dict(optimisers[1].state_dict())
    for name, value in fresh.state[whole].items():
        np.testing.assert_array_equal(value.numpy(), optimisers[1].state[whole][name].numpy())


def test_pytorchs_own_state_is_taken() -> None:
    """SGD there saves no count, groups have more keys, and betas may have become a list in a file."""
    params = parameters(shapes=[(3,)])
    opt = SGD(params, momentum=0.9, dampening=0.5)
    groups = [{"lr": 0.5, "momentum": 0.9, "dampening": 0.5, "foreach": None, "fused": None, "params": [0]}]
    opt.load_state_dict({"state": {0: {"momentum_buffer": np.ones(3, np.float32)}}, "param_groups": groups})
    before = params[0].numpy()
    params[0].grad = wg.ones_like(params[0])
    opt.step()
    np.testing.assert_allclose(before - params[0].numpy(), 0.5 * (0.9 + 0.5), rtol=1e-5)
    assert "foreach" not in opt.param_groups[0]
    adam = Adam(parameters())
    saved = adam.state_dict()
    saved["param_groups"][0]["betas"] = [0.5, 0.6]
    adam.load_state_dict({"state": {}, "param_groups": saved["param_groups"]})
    assert adam.param_groups[0]["betas"] == (0.5, 0.6)


def test_a_step_may_be_skipped_by_a_tensor() -> None:
    params = parameters()
    opt = Adam(params, lr=0.1)
    trained(opt, 2)
    before = [each.numpy() for each in params]
    saved = {key: value.numpy() for key, value in opt.state_dict()["state"][0].items()}
    for each in params:
        each.grad = wg.full_like(each, np.nan)
    opt.step(skip=wg.asarray(True, device="cpu"))
    assert all(np.array_equal(old, new.numpy()) for old, new in zip(before, params, strict=True))
    for key, value in opt.state_dict()["state"][0].items():
        assert np.array_equal(value.numpy(), saved[key]), key
    for each in params:
        each.grad = wg.ones_like(each)
    opt.step(skip=wg.asarray(False, device="cpu"))
    assert opt.state_dict()["state"][0]["step"].item() == 3
    assert not np.array_equal(before[0], params[0].numpy())


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "list of parameters is empty"),
    (iter(()), {}, "list of parameters is empty"),
    ([{"params": []}], {}, "list of parameters is empty"),
    ([], {}, "plain list, where they are not seen"),
    (wg.nn.Linear(2, 2), {}, r"optimises parameters, not a Linear: give it model.parameters\(\)"),
    (wg.nn.Sequential(wg.nn.ReLU()), {}, r"not a Sequential: give it model.parameters\(\)"),
    (0.1, {}, "not a float: give it a list of tensors"),
    ([{"lr": 0.1}], {}, "dict with 'params'"),
    ("leaf", {"lr": -0.1}, "lr is -0.1, and must not be negative"),
    ("leaf", {"betas": (1.0, 0.9)}, r"betas\[0\] is 1.0"),
    ("leaf", {"eps": float("nan")}, "eps is nan"),
    ("leaf", {"weight_decay": -1.0}, "weight_decay is -1.0"),
    ("plain", {}, "none of the 1 parameters requires a gradient"),
    ("computed", {}, "was computed from others"),
    ("twice", {}, "given twice"),
    ("unknown", {}, "no setting 'momentum'; it has lr, betas"),
    ("tensor rate", {}, "lr is a tensor: give a number"),
]


@pytest.mark.parametrize(("params", "options", "message"), REFUSED, ids=lambda each: str(each)[:20])
def test_what_cannot_be_right_is_refused(params: Any, options: dict[str, Any], message: str) -> None:
    (leaf,) = parameters(shapes=[(3,)])
    given: dict[str, Any] = {
        "leaf": [leaf],
        "plain": [wg.ones(3)],
        "computed": [leaf * 2],
        "twice": [leaf, leaf],
        "unknown": [{"params": [leaf], "momentum": 0.9}],
        "tensor rate": [{"params": [leaf], "lr": wg.asarray(0.1)}],
    }
    with pytest.raises(wg.ArgumentError, match=message):
        Adam(given[params] if isinstance(params, str) else params, **options)


def test_what_is_no_tensor_of_floats_is_refused() -> None:
    (leaf,) = parameters(shapes=[(3,)])
    with pytest.raises(wg.DTypeError, match="optimises tensors, not a float"):
        SGD([1.0])
    with pytest.raises(wg.DTypeError, match="floats or complex numbers, not int32"):
        SGD([wg.ones(3, dtype=wg.int32)])
    with pytest.raises(wg.ArgumentError, match=r"as a list, not as one tensor: write \[tensor\]"):
        SGD(leaf)
    with pytest.raises(wg.ArgumentError, match="list of tensors, or of dicts"):
        SGD({"params": [leaf]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"momentum": -0.1}, "momentum is -0.1"),
        ({"nesterov": True}, "nesterov needs a momentum"),
        ({"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "dampening of zero"),
    ],
)
def test_sgds_settings_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wg.ArgumentError, match=message):
        SGD(parameters(), **options)


def test_a_momentum_that_comes_later_is_refused() -> None:
    (leaf,) = parameters(shapes=[(3,)])
    opt = SGD([leaf])
    opt.param_groups[0]["momentum"] = 0.9
    leaf.grad = wg.ones_like(leaf)
    with pytest.raises(wg.ArgumentError, match="no momentum_buffer: make the optimiser with a momentum"):
        opt.step()


def test_the_state_of_another_model_is_refused() -> None:
    opt = Adam(parameters(shapes=[(3,), (4, 2)]))
    with pytest.raises(
        wg.ArgumentError, match=r"groups have \[1\] parameters, and this optimiser's have \[2\]"
    ):
        opt.load_state_dict(Adam(parameters(shapes=[(3,)])).state_dict())
    with pytest.raises(wg.ArgumentError, match=r"parameter 1 \(4, 2\): 'exp_avg' has shape \(2, 4\)"):
        opt.load_state_dict(Adam(parameters(shapes=[(3,), (2, 4)])).state_dict())
    with pytest.raises(wg.ArgumentError, match="'momentum_buffer' is not part of it"):
        opt.load_state_dict(SGD(parameters(shapes=[(3,), (4, 2)]), momentum=0.9).state_dict())
    with pytest.raises(wg.ArgumentError, match="'exp_avg_sq' is missing"):
        opt.load_state_dict(Lion(parameters(shapes=[(3,), (4, 2)])).state_dict())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copy_of_a_model_and_its_optimiser_goes_on_alone(copied: Callable[[Any], Any]) -> None:
    x = wg.asarray(np.arange(6.0).reshape(2, 3), wg.float32, device="cpu")

    def step(model: Any, optimiser: Any) -> None:
        optimiser.zero_grad()
        (model(x) ** 2).sum().backward()
        optimiser.step()

    model = wg.nn.Linear(3, 1, device="cpu")
    optimiser = wg.optim.Adam(model.parameters(), lr=0.1)
    step(model, optimiser)
    other = copied((model, optimiser))
    before = model.weight.numpy()
    step(*other)
    assert np.array_equal(model.weight.numpy(), before)
    step(model, optimiser)
    assert not np.array_equal(model.weight.numpy(), before)
    np.testing.assert_array_equal(other[0].weight.numpy(), model.weight.numpy())
    assert other[1].state_dict()["state"][0]["step"].item() == 2


@pytest.mark.gpu
def test_a_model_that_is_moved_later_is_refused_and_its_state_is_not_lost() -> None:
    model = wg.nn.Linear(3, 2, device="cpu")
    optimizer = wg.optim.Adam(model.parameters())
    trained(optimizer, 2)
    model.to(device_of("software"))
    with pytest.raises(wg.DeviceError, match=r"was moved to .* move the model first"):
        trained(optimizer, 1)
    again = wg.optim.Adam(model.parameters())
    again.load_state_dict(optimizer.state_dict())
    trained(again, 1)
    assert again.state_dict()["state"][0]["step"].item() == 3


def quadratic(w: Any, opt: Any) -> Any:
    """A closure for a valley whose lowest place is at ones."""

    def closure() -> Any:
        opt.zero_grad()
        loss = ((w - 1.0) ** 2 * wg.asarray([1.0, 10.0, 100.0], device=w.device)).sum()
        loss.backward()
        return loss

    return closure


@DEVICES
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_goes_down_a_valley(kind: str, search: str | None) -> None:
    w = wg.asarray([3.0, -2.0, 0.5], device=device_of(kind)).requires_grad_()
    opt = wg.optim.LBFGS([w], lr=0.5 if search is None else 1.0, line_search_fn=search)
    closure = quadratic(w, opt)
    first = float(opt.step(closure))
    for _ in range(3):
        opt.step(closure)
    assert first == pytest.approx(119.0)
    np.testing.assert_allclose(w.numpy(), 1.0, atol=1e-2)


def test_lbfgs_goes_on_from_its_state() -> None:
    results = []
    for stop in (False, True):
        w = wg.asarray([3.0, -2.0, 0.5]).requires_grad_()
        opt = wg.optim.LBFGS([w], max_iter=3)
        opt.step(quadratic(w, opt))
        if stop:
            state, opt = opt.state_dict(), wg.optim.LBFGS([w], max_iter=9)
            opt.load_state_dict(state)
        opt.step(quadratic(w, opt))
        results.append(w.tolist())
    assert results[0] == results[1]
    with pytest.raises(wg.ArgumentError, match="takes a closure"):
        opt.step()
    with pytest.raises(wg.ArgumentError, match="one group"):
        wg.optim.LBFGS([{"params": [w]}, {"params": [wg.zeros(1).requires_grad_()]}])
    with pytest.raises(wg.ArgumentError, match="line_search_fn is"):
        wg.optim.LBFGS([w], line_search_fn="armijo")


def test_muon_moves_matrices_by_orthogonal_ones() -> None:
    w = wg.zeros((4, 6)).requires_grad_()
    opt = wg.optim.Muon([w], lr=0.1, weight_decay=0.0)
    w.grad = wg.asarray(np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32))
    opt.step()
    sizes = np.linalg.svd(w.numpy() / 0.1, compute_uv=False)
    assert (sizes > 0.5).all()
    assert (sizes < 1.3).all()
    with pytest.raises(wg.ShapeError, match="Muon optimises matrices"):
        wg.optim.Muon([wg.zeros(3).requires_grad_()])
    with pytest.raises(wg.ArgumentError, match="adjust_lr_fn is"):
        wg.optim.Muon([w], adjust_lr_fn="most")


@pytest.mark.parametrize("mixed", [False, True])
def test_doubles_are_stepped_in_double_precision(mixed: bool) -> None:
    start = np.linspace(0.5, 1.5, 7)
    weights, expected = wg.asarray(start).requires_grad_(), start.copy()
    others = [wg.ones(3).requires_grad_()] if mixed else []
    optimiser = wg.optim.Adam([weights, *others], lr=0.003, betas=(0.9, 0.99))
    first, second = np.zeros(7), np.zeros(7)
    for step in range(1, 7):  # the third and later ones are captured
        optimiser.zero_grad()
        ((weights**3).sum() + sum((each**3).sum() for each in others)).backward()
        optimiser.step()
        slope = 3 * expected**2
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        expected -= 0.003 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    assert weights.dtype is wg.float64
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-13)
    assert all(each.dtype is wg.float32 for each in others)
