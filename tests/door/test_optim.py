"""torch.optim: arguments and groups as torch has them, programs' own optimisers, schedules, hooks, states."""

from __future__ import annotations

import copy
import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import webgrad.torch as torch
from webgrad.torch.optim import lr_scheduler, optimizer

Optimizer: Any = optimizer.Optimizer
required = optimizer.required


def weights(*values: float) -> Any:
    return torch.nn.Parameter(torch.tensor([*values]))


def given(x: Any, *values: float) -> None:
    x.grad = torch.tensor([*values])


class Signs(Optimizer):  # type: ignore[misc]
    """A program's own optimiser, written for torch."""

    def __init__(self, params: Any, lr: Any = required, beta: float = 0.5) -> None:
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["mean"] = torch.zeros_like(p)
                state["step"] += 1
                state["mean"].mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                p.add_(state["mean"].sign(), alpha=-group["lr"])
        return loss


def test_a_programs_own_optimiser() -> None:
    w = weights(1.0, -1.0)
    opt = Signs([{"params": [w], "depth": 3}], lr=0.5)
    assert isinstance(opt, torch.optim.Optimizer)
    assert opt.param_groups[0]["depth"] == 3
    given(w, 2.0, -2.0)
    opt.step()
    assert w.tolist() == [0.5, -0.5]
    saved = copy.deepcopy(opt.state_dict())
    assert saved["param_groups"] == [{"depth": 3, "lr": 0.5, "beta": 0.5, "params": [0]}]
    assert saved["state"][0]["step"] == 1
    other = Signs([weights(0.0, 0.0)], lr=9.0)
    other.load_state_dict(saved)
    assert other.param_groups[0]["lr"] == 0.5
    assert other.state[other.param_groups[0]["params"][0]]["mean"].tolist() == [1.0, -1.0]
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Signs([w])


def test_a_class_over_one_of_torchs_may_call_its_step_or_keep_its_own_state() -> None:
    class Warm(torch.optim.Adam):  # type: ignore[misc]
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                group["lr"] = 0.1
            return super().step(closure)

    class Own(torch.optim.SGD):  # type: ignore[misc]
        def step(self, closure: Any = None) -> None:
            for each in self.param_groups[0]["params"]:
                state = self.state[each]
                state["count"] = state.get("count", 0) + 1
                each.data.add_(each.grad, alpha=-1.0)

    for kind, wanted in ((Warm, 0.9), (Own, 0.5)):
        w = weights(1.0)
        opt = kind([w], lr=5.0)
        assert len(opt.state[w]) == 0
        given(w, 0.5)
        opt.step()
        np.testing.assert_allclose(w.detach().numpy(), [wanted], rtol=1e-5)
        assert opt.state_dict()["state"][0]


def test_how_torch_computes_is_a_setting_that_changes_nothing() -> None:
    w = weights(1.0)
    opt = torch.optim.Adam([w], 0.1, (0.9, 0.99), 1e-8, 0.0, True, foreach=True, fused=False, capturable=True)
    group = opt.state_dict()["param_groups"][0]
    assert (group["foreach"], group["fused"], group["capturable"], group["amsgrad"]) == (
        True,
        False,
        True,
        True,
    )
    given(w, 3.0)
    opt.step()
    assert round(w.item(), 5) == 0.9
    with pytest.raises(NotImplementedError, match="differentiable"):
        torch.optim.SGD([w], differentiable=True)
    with pytest.raises(NotImplementedError, match=r"use torch\.optim\.Adam"):
        torch.optim.SparseAdam([w])
    assert torch.optim.SGD([w], torch.tensor(0.5)).param_groups[0]["lr"] == 0.5


def test_groups_take_any_setting_and_may_be_empty() -> None:
    w, frozen = weights(1.0), weights(2.0).requires_grad_(False)
    opt = torch.optim.SGD(
        [{"params": [], "lr": 1.0}, {"params": w, "name": "w"}, {"params": [frozen]}], lr=0.1
    )
    assert [len(group["params"]) for group in opt.param_groups] == [0, 1, 1]
    given(w, 1.0)
    opt.step()
    assert w.item() == pytest.approx(0.9)
    opt.zero_grad()
    assert w.grad is None


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (list, ValueError, "empty"),
        (lambda: weights(1.0), TypeError, "should be an iterable"),
        (lambda: [3.0], TypeError, "can only optimize Tensors"),
        (lambda: [weights(1.0) * 2], ValueError, "non-leaf"),
        (lambda: [{"params": {weights(1.0)}}], TypeError, "ordered collections"),
    ],
)
def test_misuse_is_torchs_error(params: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        torch.optim.SGD(params(), lr=0.1)


def test_a_parameter_is_in_one_group() -> None:
    w = weights(1.0)
    with pytest.raises(ValueError, match="more than one parameter group"):
        torch.optim.SGD([{"params": [w]}, {"params": [w]}], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        torch.optim.SGD([w]).load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match=r"lr.*must not be negative"):
        torch.optim.SGD([w], lr=-1.0)


def test_hooks_stand_around_a_step_and_a_state() -> None:
    seen: list[str] = []
    for make in (lambda w: torch.optim.SGD([w], lr=1.0), lambda w: Signs([w], lr=1.0)):
        w = weights(1.0)
        opt = make(w)
        first = opt.register_step_pre_hook(lambda opt, args, kwargs: seen.append("before"))
        opt.register_step_post_hook(lambda opt, args, kwargs: seen.append("after"))
        opt.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
        given(w, 1.0)
        opt.step()
        first.remove()
        opt.step()
        assert opt.state_dict()["more"] == 1
    assert seen == ["before", "after", "after"] * 2


def test_lbfgs_follows_its_closure() -> None:
    w = weights(3.0, -2.0)
    opt = torch.optim.LBFGS([w], lr=1, line_search_fn="strong_wolfe")

    def closure() -> Any:
        opt.zero_grad()
        loss = ((w - 1) ** 2 * torch.tensor([1.0, 10.0])).sum()
        loss.backward()
        return loss

    assert opt.step(closure).item() == 94.0
    np.testing.assert_allclose(w.detach().numpy(), [1, 1], atol=1e-3)
    state = opt.state_dict()
    assert state["state"][0]["n_iter"] > 0
    other = torch.optim.LBFGS([weights(0.0, 0.0)])
    other.load_state_dict(state)
    assert other.state_dict()["state"][0]["func_evals"] == state["state"][0]["func_evals"]


class Warmup(lr_scheduler._LRScheduler):
    """A program's own schedule, as many repositories have it."""

    def __init__(self, optimizer: Any, steps: int, last_epoch: int = -1) -> None:
        self.steps = steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * min(1.0, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]


def test_a_programs_own_schedule() -> None:
    opt = torch.optim.SGD([weights(1.0)], lr=1.0)
    rates = Warmup(opt, 4)
    found = []
    for _ in range(5):
        found.append(opt.param_groups[0]["lr"])
        opt.step()
        rates.step()
    assert found == [0.25, 0.5, 0.75, 1.0, 1.0]
    rates.step(1)
    assert (rates.get_last_lr(), rates.last_epoch) == ([0.5], 1)
    with pytest.raises(TypeError, match="is not an Optimizer"):
        Warmup(None, 4)
    with pytest.raises(KeyError, match="initial_lr"):
        Warmup(torch.optim.SGD([weights(1.0)], lr=1.0), 4, last_epoch=3)


@pytest.mark.parametrize(
    ("make", "closed"),
    [
        (lambda opt: lr_scheduler.StepLR(opt, 2, 0.5), lambda t: 0.5 ** (t // 2)),
        (lambda opt: lr_scheduler.ExponentialLR(opt, 0.9), lambda t: 0.9**t),
        (lambda opt: lr_scheduler.CosineAnnealingLR(opt, 8), lambda t: (1 + math.cos(math.pi * t / 8)) / 2),
        (lambda opt: lr_scheduler.LambdaLR(opt, lambda t: 1 / (1 + t)), lambda t: 1 / (1 + t)),
    ],
)
def test_schedules_go_to_a_step(make: Any, closed: Any) -> None:
    opt = torch.optim.Adam([weights(1.0)], lr=1.0)
    rates = make(opt)
    assert isinstance(rates, lr_scheduler.LRScheduler)
    for step in (3, 1, 6):
        rates.step(step)
        assert rates.get_last_lr() == pytest.approx([closed(step)])
    rates.step()
    assert opt.param_groups[0]["lr"] == pytest.approx(closed(7))


def test_a_scaler_skips_a_programs_own_step() -> None:
    w = weights(1.0)
    opt, scaler = Signs([w], lr=0.5), torch.amp.GradScaler("cpu", init_scale=2.0)
    given(w, math.inf)
    scaler.step(opt)
    scaler.update()
    assert (w.item(), scaler.get_scale()) == (1.0, 1.0)
    given(w, 2.0)
    scaler.step(opt)
    assert w.item() == 0.5


def test_import_paths() -> None:
    assert import_module("webgrad.torch.optim.adamw").AdamW is torch.optim.AdamW
    assert import_module("webgrad.torch.optim.sgd").SGD is torch.optim.SGD
    assert issubclass(torch.optim.AdamW, torch.optim.Adam)


def test_models_are_averaged() -> None:
    from webgrad.torch.optim import swa_utils

    model = torch.nn.Linear(1, 1, bias=False)
    plain = swa_utils.AveragedModel(model)
    moving = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        torch.nn.init.constant_(model.weight, value)
        plain.update_parameters(model)
        moving.update_parameters(model)
    assert plain(torch.ones(1, 1)).item() == 3.0
    assert moving.module.weight.item() == 3.75
    assert list(plain.state_dict()) == ["n_averaged", "module.weight"]
    opt = torch.optim.SGD(model.parameters(), lr=1.0)
    rates = swa_utils.SWALR(opt, swa_lr=0.2, anneal_epochs=4, anneal_strategy="linear")
    found = []
    for _ in range(6):
        found.append(opt.param_groups[0]["lr"])
        opt.step()
        rates.step()
    assert found == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_statistics_are_computed_anew() -> None:
    from webgrad.torch.optim import swa_utils

    model = torch.nn.Sequential(torch.nn.BatchNorm1d(1)).eval()
    swa_utils.update_bn([torch.tensor([[1.0], [3.0]]), (torch.tensor([[5.0], [9.0]]), 0)], model)
    assert model[0].running_mean.tolist() == [4.5]
    assert (model.training, model[0].momentum) == (False, 0.1)
