"""The mechanics of torch.nn.Module: members, hooks, state dicts, containers, copies, text."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections import OrderedDict
from typing import Any

import pytest

import webgrad.torch as torch
from webgrad.torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)
        self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))

    def forward(self, x: Any, gain: float = 1.0) -> Any:
        return self.body(x * self.scale) * gain


def numbers(*shape: int) -> Any:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 10


# Hooks


def test_hooks_before_and_after_see_keywords_in_order() -> None:
    net, calls = Net(), []

    def before(module: Any, args: Any, kwargs: Any) -> Any:
        calls.append("before")
        return args, {"gain": 3.0}

    def after(module: Any, args: Any, kwargs: Any, output: Any) -> None:
        calls.append(f"after {kwargs['gain']}")

    plain = net(numbers(4, 2))
    handles = [
        net.register_forward_pre_hook(before, with_kwargs=True),
        net.register_forward_hook(after, with_kwargs=True),
        net.register_forward_hook(lambda module, args, output: calls.append("first"), prepend=True),
    ]
    assert torch.allclose(net(numbers(4, 2)), plain * 3)
    assert calls == ["before", "first", "after 3.0"]
    for each in handles:
        each.remove()
    assert not net._forward_hooks
    assert torch.equal(net(numbers(4, 2)), plain)


def test_hooks_that_are_always_called() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    called: list[Any] = []
    module = Broken()
    module.register_forward_hook(lambda module, args, output: called.append(output), always_call=True)
    module.register_forward_hook(lambda module, args, output: called.append("never"))
    with pytest.raises(ValueError, match="no"):
        module(numbers(2))
    assert called == [None]


def test_backward_hooks_see_and_change_gradients() -> None:
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.weight.data.fill_(2.0)

    def after(module: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    before = layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 3,))
    handle = layer.register_full_backward_hook(after)
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [([[6.0, 6.0]], [[3.0]])]
    assert x.grad.tolist() == [[60.0, 60.0]]
    assert layer.weight.grad.tolist() == [[3.0, 3.0]]
    before.remove()
    handle.remove()
    x.grad = None
    layer(x).sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0]]


def test_backward_hooks_of_inputs_without_gradients() -> None:
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda module, before, after: seen.append((before, after[0].tolist())))
    layer(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_hooks_of_all_modules() -> None:
    names: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, args, output: names.append(type(module).__name__)
    )
    Net()(numbers(1, 2))
    handle.remove()
    Net()(numbers(1, 2))
    assert names == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


# Members


def test_members_by_name() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()][:2] == ["scale", "body.0.weight"]
    assert [name for name, _ in net.named_buffers()] == ["seen", "scratch"]
    assert net.get_submodule("body.2") is net.body[2]
    assert net.get_parameter("body.0.bias") is net.body[0].bias
    assert "scale" in dir(net)
    net.add_module("extra", nn.Identity())
    net.set_submodule("body.1", nn.Tanh())
    assert isinstance(net.body[1], nn.Tanh)
    del net.scale
    assert not hasattr(net, "scale")
    net.scale = None  # type: ignore[assignment]
    net.scale = nn.Parameter(torch.ones(1))
    assert "scale" in net._parameters
    with pytest.raises(TypeError):
        net.scale = torch.ones(1)
    with pytest.raises(KeyError):
        net.register_buffer("scale", torch.ones(1))
    with pytest.raises(AttributeError):
        net.get_submodule("body.7")


def test_a_module_whose_init_was_forgotten() -> None:
    class Forgotten(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError):
        Forgotten()


def test_buffers_as_objects() -> None:
    module = nn.Module()
    module.table = nn.Buffer(torch.ones(2))
    module.passing = nn.Buffer(torch.ones(2), persistent=False)
    assert list(module.state_dict()) == ["table"]
    assert [name for name, _ in module.named_buffers()] == ["table", "passing"]


def test_apply_to_tensors_and_conversions_keep_the_objects() -> None:
    net = Net()
    held = net.body[0].weight
    net.body[0].weight.grad = torch.ones(3, 2)
    assert net.double() is net
    assert net.body[0].weight is held
    assert held.dtype == torch.float64 == held.grad.dtype == net.seen.dtype
    assert net.to(torch.float16).scale.dtype == torch.float16
    assert net.float().to("cpu").scale.dtype == torch.float32
    with pytest.raises(TypeError):
        net.to(torch.int32)
    assert net.to_empty(device="cpu").scale.shape == (2,)


def test_own_forms_of_layers_get_torchs_tensors() -> None:
    class Mine(nn.Linear):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x).max(dim=1, keepdim=True).values

    assert Mine(2, 3)(numbers(4, 2)).size() == (4, 1)


# State


def test_state_dicts_alias_the_values() -> None:
    net = Net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert list(state)[:3] == ["scale", "seen", "body.0.weight"]
    state["scale"].mul_(5)
    assert net.scale.tolist() == [5.0, 5.0]
    assert state._metadata["body"] == {"version": 1}  # type: ignore[attr-defined]


def test_what_does_not_fit_is_said_in_torchs_words() -> None:
    net, state = Net(), Net().state_dict()
    state["body.0.bias"] = torch.ones(7)
    state["more"] = torch.ones(1)
    del state["seen"]
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    assert text.startswith(
        'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "seen". '
    )
    assert 'Unexpected key(s) in state_dict: "more". ' in text
    assert (
        "size mismatch for body.0.bias: copying a param with shape torch.Size([7]) from checkpoint, the "
        "shape in current model is torch.Size([3])." in text
    )
    del state["body.0.bias"]
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["seen", "body.0.bias"]
    assert found.unexpected_keys == ["more"]
    assert str(net.load_state_dict(Net().state_dict())) == "<All keys matched successfully>"


def test_assign_takes_the_tensors_themselves() -> None:
    net, state = Net(), {name: each.double() for name, each in Net().state_dict().items()}
    net.load_state_dict(state, assign=True)
    assert net.scale.dtype == torch.float64
    assert isinstance(net.scale, nn.Parameter)


def test_overridden_saving_and_loading() -> None:
    class Versioned(nn.Module):
        _version = 3

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))
            self.note = "new"

        def _load_from_state_dict(self, state: Any, prefix: str, local: Any, *args: Any) -> None:
            if prefix + "old_weight" in state:
                state[prefix + "weight"] = state.pop(prefix + "old_weight")
            super()._load_from_state_dict(state, prefix, local, *args)

        def get_extra_state(self) -> Any:
            return {"note": self.note}

        def set_extra_state(self, state: Any) -> None:
            self.note = state["note"]

    net = nn.Sequential(Versioned())
    state = net.state_dict()
    assert state["0._extra_state"] == {"note": "new"}
    state["0._extra_state"] = {"note": "loaded"}
    state["0.old_weight"] = state.pop("0.weight") + 4
    net.load_state_dict(state)
    assert (net[0].weight.tolist(), net[0].note) == ([4.0, 4.0], "loaded")


def test_hooks_of_state_dicts() -> None:
    net, calls = Net(), []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: calls.append("saving"))
    net._register_state_dict_hook(without_seen)
    net.register_load_state_dict_post_hook(lambda module, found: found.missing_keys.clear())
    net._register_load_state_dict_pre_hook(lambda state, prefix, *args: state.pop(prefix + "junk", None))
    state = net.state_dict()
    assert calls == ["saving"]
    assert "seen" not in state
    net.load_state_dict({**state, "junk": torch.ones(1)})


def without_seen(module: Any, state: Any, prefix: str, local: Any) -> None:
    del state["seen"]


def test_batch_norms_of_old_states() -> None:
    norm = nn.BatchNorm1d(2)
    state = {name: each for name, each in norm.state_dict().items() if name != "num_batches_tracked"}
    norm.load_state_dict(state)


# Copies and containers


def test_copies_and_pickles() -> None:
    net = Net()
    net.register_forward_hook(print_nothing)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(other.body[0].weight) is nn.Parameter
        assert torch.equal(other(numbers(3, 2)), net(numbers(3, 2)))
        other.scale.data.zero_()
        assert net.scale.tolist() == [1.0, 1.0]
        assert len(other._forward_hooks) == 1
        (other(numbers(1, 2)).sum()).backward()
        assert net.scale.grad is None


def print_nothing(module: Any, args: Any, output: Any) -> None:
    """A hook that can be pickled."""


def test_rows_of_modules() -> None:
    row = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    assert type(row[:2]) is nn.Sequential
    assert type(row + nn.Sequential(nn.Tanh())) is nn.Sequential
    assert len(row + nn.Sequential(nn.Tanh())) == 4
    row.insert(1, nn.Tanh())
    row.append(nn.Sigmoid()).extend([nn.Identity()])
    assert [type(each).__name__ for each in row] == [
        *("Linear", "Tanh", "ReLU", "Linear", "Sigmoid", "Identity"),
    ]
    del row[1:3]
    assert isinstance(row.pop(-1), nn.Identity)
    assert list(row._modules) == ["0", "1", "2"]
    assert row(numbers(1, 2)).shape == (1, 2)
    assert len(nn.Sequential(nn.ReLU()) * 3) == 3
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    layers += [nn.ReLU()]
    assert type(layers[1:]) is nn.ModuleList
    assert type(layers + layers) is nn.ModuleList
    assert repr(layers) == (
        "ModuleList(\n  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n  (3): ReLU()\n)"
    )
    table = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    table.update({"c": nn.Identity()})
    assert list(table.keys()) == ["a", "b", "c"]
    table.pop("a")
    assert "a" not in table
    table.clear()
    assert len(table) == 0


def test_lists_and_tables_of_parameters() -> None:
    row = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1))])
    row.append(torch.ones(3))
    row += [torch.ones(1)]
    assert [tuple(each.shape) for each in row] == [(2,), (1,), (3,), (1,)]
    assert all(isinstance(each, nn.Parameter) for each in row)
    assert "(0): Parameter containing: [torch.float32 of size 2" in repr(row)
    table = nn.ParameterDict({"a": torch.ones(2)})
    table["b"] = nn.Parameter(torch.ones(1))
    assert table.get("c") is None
    assert set(table.keys()) == {"a", "b"}
    assert len(list(table.parameters())) == 2


def test_text() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Dropout(0.5)

        def extra_repr(self) -> str:
            return "of=me"

        def _get_name(self) -> str:
            return "Renamed"

    assert repr(Named()) == "Renamed(\n  of=me\n  (layer): Dropout(p=0.5, inplace=False)\n)"
    assert repr(nn.Parameter(torch.ones(1))).startswith("Parameter containing:\ntensor([1.]")


def test_parameters_are_leaves() -> None:
    parameter = nn.Parameter(torch.ones(2))
    assert parameter.is_leaf
    assert parameter.requires_grad
    assert type(parameter * 2) is torch.Tensor
    assert type(parameter.data) is torch.Tensor
    parameter.data = torch.zeros(2)
    assert parameter.tolist() == [0.0, 0.0]
    assert not nn.Parameter(torch.ones(1, dtype=torch.int32), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError):
        nn.Parameter(torch.ones(1, dtype=torch.int32))


def test_the_files_of_torchs_modules() -> None:
    _BatchNorm = importlib.import_module("webgrad.torch.nn.modules.batchnorm")._BatchNorm
    conv = importlib.import_module("webgrad.torch.nn.modules.conv")
    _ConvNd, _ConvTransposeNd = conv._ConvNd, conv._ConvTransposeNd
    from webgrad.torch.nn.modules.loss import _Loss, _WeightedLoss
    from webgrad.torch.nn.modules.utils import _pair, _reverse_repeat_tuple

    assert _pair(3) == (3, 3)
    assert _pair([1, 2]) == (1, 2)
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert isinstance(nn.BatchNorm2d(2), _BatchNorm)
    assert not isinstance(nn.InstanceNorm2d(2), _BatchNorm)
    assert isinstance(nn.Conv2d(1, 1, 1), _ConvNd)
    assert not isinstance(nn.Conv2d(1, 1, 1), _ConvTransposeNd)
    assert isinstance(nn.ConvTranspose2d(1, 1, 1), (_ConvTransposeNd, _ConvNd))
    assert _Loss(reduction="sum").reduction == "sum"
    assert _WeightedLoss(torch.ones(2)).weight.shape == (2,)
    assert nn.modules.activation.ReLU is nn.ReLU


def test_inputs_by_torchs_names() -> None:
    x, y = numbers(2, 3), numbers(2, 3) + 1
    assert nn.MSELoss()(target=y, input=x).item() == pytest.approx(1.0)
    assert nn.Linear(3, 1)(input=x).shape == (2, 1)
    assert nn.ReLU()(input=x).shape == (2, 3)
