"""Modules: registration, trees of names, state dicts, modes, moving, hooks, copies, text."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad import nn
from webgrad.nn import module as nn_module


class Net(nn.Module):
    """A bit of everything: parameters, buffers saved and not, modules, a list."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(wg.ones(3))
        self.register_parameter("absent", None)
        self.register_buffer("seen", wg.zeros((), dtype=wg.int32))
        self.register_buffer("cache", wg.zeros(2), persistent=False)
        self.first = nn.Linear(3, 4)
        self.rest = nn.ModuleList([nn.Linear(4, 4), nn.BatchNorm1d(4)])

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        x = self.first(x * self.scale)
        for layer in self.rest:
            x = layer(x)
        return x


NAMES = [
    "scale",
    "first.weight",
    "first.bias",
    "rest.0.weight",
    "rest.0.bias",
    "rest.1.weight",
    "rest.1.bias",
]
STATE = [
    "scale",
    "seen",
    *NAMES[1:],
    "rest.1.running_mean",
    "rest.1.running_var",
    "rest.1.num_batches_tracked",
]


def test_what_is_assigned_is_found_by_its_name() -> None:
    net: Any = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert list(net.state_dict()) == STATE
    assert [name for name, _ in net.named_buffers()][:2] == ["seen", "cache"]
    assert [name for name, _ in net.named_children()] == ["first", "rest"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [name for name, _ in net.named_parameters("net", recurse=False)] == ["net.scale"]
    assert list(net.rest.state_dict(prefix="r."))[:2] == ["r.0.weight", "r.0.bias"]
    assert len(list(net.modules())) == 5
    assert len(list(net.children())) == 2
    assert {"scale", "first", "seen", "absent"} <= set(dir(net))
    assert net.absent is None


def test_members_by_dotted_names() -> None:
    net: Any = Net()
    assert net.get_submodule("rest.0") is net.rest[0]
    assert net.get_submodule("") is net
    assert net.get_parameter("first.weight") is net.first.weight
    assert net.get_buffer("rest.1.running_var") is net.rest[1].running_var
    with pytest.raises(AttributeError, match=r"no module 'rest.7'; there are: first, rest, rest.0"):
        net.get_submodule("rest.7")
    with pytest.raises(AttributeError, match=r"no parameter 'second.weight'; there are: scale"):
        net.get_parameter("second.weight")


def test_a_shared_parameter_is_one() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]  # as PyTorch has it
    assert len(list(model.named_parameters(remove_duplicate=False))) == 4
    again = copy.deepcopy(model)
    assert again[0].weight is again[1].weight


# Attributes


def test_what_is_assigned_takes_the_place_of_what_was_there() -> None:
    net: Any = Net()
    net.first = nn.Identity()
    assert [name for name, _ in net.named_parameters()][:2] == ["scale", "rest.0.weight"]
    net.scale = None
    assert "scale" not in net.state_dict()
    net.scale = nn.Parameter(wg.zeros(2))
    assert net.get_parameter("scale").shape == (2,)
    net.seen = wg.ones(())
    assert net.state_dict()["seen"].item() == 1
    del net.first
    assert not hasattr(net, "first")
    net.plain = 3
    net.plain = nn.Parameter(wg.zeros(1))  # a plain attribute gives way
    assert net.get_parameter("plain") is net.plain
    with pytest.raises(wg.DTypeError, match=r"Net.scale is a Parameter, and a Tensor is none: wrap it as"):
        net.scale = wg.zeros(2)
    with pytest.raises(wg.DTypeError, match=r"Net.rest is a Module, and a int is none"):
        net.rest = 3


def test_an_unknown_attribute_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"Net has no attribute 'second'; .*: scale, absent, seen"):
        Net().second  # noqa: B018
    assert getattr(Net(), "second", 7) == 7


def test_a_forgotten_init() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 2)

    class Never(nn.Module):
        def __init__(self) -> None:
            self.size = 2

        def forward(self, x: Any) -> Any:
            return self.layer(x)

    with pytest.raises(AttributeError, match=r"Early.__init__ must call super\(\).__init__\(\) before it"):
        Early()
    with pytest.raises(AttributeError, match=r"Never.__init__ must call super\(\).__init__\(\) before self"):
        Never()(wg.ones(2))


def test_names_and_kinds_are_checked() -> None:
    net: Any = Net()
    with pytest.raises(wg.ArgumentError, match=r"a word without dots, not 'a\.b'"):
        net.register_buffer("a.b", wg.zeros(1))
    with pytest.raises(wg.ArgumentError, match="has an attribute 'first' already"):
        net.register_buffer("first", wg.zeros(1))
    with pytest.raises(wg.DTypeError, match=r"register_parameter\('w'\): a Tensor is no Parameter"):
        net.register_parameter("w", wg.zeros(1))
    with pytest.raises(wg.DTypeError, match=r"register_buffer\('w'\): a ndarray is not a tensor"):
        net.register_buffer("w", np.zeros(1))
    with pytest.raises(wg.DTypeError, match=r"member 'w': a function is no Module"):
        net.register_module("w", lambda x: x)
    with pytest.raises(wg.DTypeError, match="int32 values have no gradients"):
        nn.Parameter(wg.zeros(1, dtype=wg.int32))
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


def test_parameters_are_leaves_of_their_own() -> None:
    source = wg.ones(2).requires_grad_()
    parameter = nn.Parameter(source * 2)
    assert parameter.requires_grad
    assert parameter.is_leaf
    assert parameter.tolist() == [2.0, 2.0]
    assert "Parameter" in repr(parameter)
    frozen = nn.Parameter([1, 2], requires_grad=False)
    assert not frozen.requires_grad
    assert type(copy.copy(parameter)) is nn.Parameter


# State


def test_state_goes_from_one_to_another_in_place() -> None:
    one: Any = Net()
    two: Any = Net()
    held = two.first.weight
    state = one.state_dict()
    assert two.load_state_dict(state) == ([], [])
    assert two.first.weight is held
    assert held.requires_grad
    for name, value in two.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name].numpy())
    with wg.no_grad():
        two.first.weight += 1  # the state that was taken is another value
    np.testing.assert_array_equal(one.first.weight.numpy(), state["first.weight"].numpy())


def test_arrays_are_converted_and_not_shared() -> None:
    layer: Any = nn.Linear(2, 1)
    weight = np.ones((1, 2), np.float64)
    layer.load_state_dict({"weight": weight, "bias": np.zeros(1, np.float16)})
    weight[:] = 7
    assert layer.weight.dtype is wg.float32
    assert layer.weight.tolist() == [[1.0, 1.0]]


def test_all_that_is_wrong_is_said_and_nothing_changed() -> None:
    net: Any = Net()
    before = net.scale.numpy()
    state: dict[str, Any] = {name: value.numpy() for name, value in net.state_dict().items()}
    state["scale"] = np.zeros(3)
    state["more"] = state.pop("first.bias")
    state["first.weight"], state["rest.0.weight"] = np.zeros((4, 2)), np.zeros(3)
    with pytest.raises(wg.ShapeError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    assert "missing keys: first.bias\n" in text
    assert "unexpected keys: more\n" in text
    assert "first.weight is (4, 3) in the module and (4, 2) in the state; rest.0.weight is (4, 4)" in text
    with pytest.raises(wg.ShapeError, match=r"shapes that differ: first.weight"):
        net.load_state_dict(state, strict=False)
    np.testing.assert_array_equal(net.scale.numpy(), before)
    del state["first.weight"], state["rest.0.weight"]
    with pytest.raises(wg.ArgumentError, match=r"missing keys: first.weight, first.bias, rest.0.weight"):
        net.load_state_dict(state)
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["first.weight", "first.bias", "rest.0.weight"]
    assert found.unexpected_keys == ["more"]
    assert net.scale.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(wg.DTypeError, match="takes a dict of tensors by their names, not a list"):
        net.load_state_dict([])


def test_a_captured_function_sees_what_was_loaded() -> None:
    layer: Any = nn.Linear(2, 1)
    fast = wg.jit(lambda x: layer(x))
    x = wg.ones((1, 2))
    fast(x), fast(x)
    layer.load_state_dict({"weight": np.full((1, 2), 3.0), "bias": np.ones(1)})
    assert fast(x).tolist() == [[7.0]]


# Modes, dtypes, gradients


def test_train_and_eval_reach_everything() -> None:
    net: Any = Net()
    assert net.training
    assert net.eval() is net
    assert [module.training for module in net.modules()] == [False] * 5
    net.train().rest.eval()
    assert net.training
    assert not net.rest[1].training
    with pytest.raises(wg.ArgumentError, match="the mode is True or False, not 'yes'"):
        net.train("yes")


def test_captured_functions_follow_train_and_eval() -> None:
    layer = nn.Dropout(1.0)
    fast = wg.jit(lambda x: layer(x))
    x = wg.ones(3)
    assert fast(x).tolist() == fast(x).tolist() == [0.0, 0.0, 0.0]
    layer.eval()
    assert fast(x).tolist() == fast(x).tolist() == [1.0, 1.0, 1.0]
    layer.train()
    assert fast(x).tolist() == [0.0, 0.0, 0.0]


def test_dtypes_change_in_place() -> None:
    net: Any = Net()
    held, tracked = net.first.weight, net.rest[1].num_batches_tracked
    net(wg.random.normal((5, 3))).sum().backward()
    assert net.half() is net
    assert net.first.weight is held
    assert held.dtype is wg.float16
    assert held.requires_grad
    assert held.grad is not None
    assert held.grad.dtype is wg.float16
    assert tracked.dtype is wg.int32
    assert net.rest[1].running_mean.dtype is wg.float16
    assert net.float().first.weight.dtype is wg.float32
    assert net.to("float64").first.weight.dtype is wg.float64
    assert net.to(dtype=wg.bfloat16).first.bias.dtype is wg.bfloat16
    assert net.double().bfloat16().cpu().scale.dtype is wg.bfloat16
    assert net.to(wg.zeros(1)).scale.dtype is wg.float32
    assert net.requires_grad_(False).to(wg.float16).first.weight.requires_grad is False
    with pytest.raises(wg.DTypeError, match="parameters are floats, and int32 is none"):
        net.to(wg.int32)


@pytest.mark.parametrize("target", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_complex_parameters_stay_complex(target: str) -> None:
    net = nn.ParameterList([nn.Parameter(wg.asarray([1 + 2j, 3j])), nn.Parameter(wg.ones(2))])
    whole, real = net.parameters()
    assert whole.requires_grad
    net.to(target, wg.float16)
    assert (whole.dtype, real.dtype) == (wg.complex64, wg.float16)
    assert whole.device.name.startswith(target)
    assert whole.tolist() == [1 + 2j, 3j]


@pytest.mark.gpu
def test_modules_go_to_a_device_and_back() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU()).eval()
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    expected = net(wg.asarray(x)).numpy()
    held = net[0].weight
    net.to("webgpu")
    assert net[0].weight is held
    assert held.device.name.startswith("webgpu")
    assert net[1].num_batches_tracked.device is held.device
    found = net(wg.asarray(x, device="webgpu"))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
    found.sum().backward()
    net.cpu()
    assert held.grad is not None
    assert held.grad.device is held.device is wg.zeros(1).device


def test_gradients_are_cleared() -> None:
    layer: Any = nn.Linear(2, 1)
    layer(wg.ones((1, 2))).sum().backward()
    assert layer.weight.grad is not None
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    layer.zero_grad()
    assert layer.weight.grad is None
    layer.requires_grad_(False)
    assert not layer(wg.ones((1, 2))).requires_grad


def test_apply_goes_from_below() -> None:
    seen: list[str] = []
    Net().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Linear", "BatchNorm1d", "ModuleList", "Net"]


# Hooks, copies, text


def test_hooks() -> None:
    layer: Any = nn.Linear(2, 2)
    seen: list[tuple[int, ...]] = []
    before = layer.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 0,))
    after = layer.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    changed = layer.register_forward_hook(lambda module, inputs, output: output + 1)
    np.testing.assert_allclose(layer(wg.ones((3, 2)))[0].numpy(), layer.bias.numpy() + 1)
    for handle in (before, changed, after, after):
        handle.remove()
    assert seen == [(3, 2)]
    with layer.register_forward_hook(lambda module, inputs, output: 7):
        after.remove()  # which was taken away before: nobody else's is
        assert layer(wg.ones((3, 2))) == 7
    assert layer(wg.ones((3, 2))).shape == (3, 2)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_independent(again: Any) -> None:
    net: Any = Net()
    net.first.bias.requires_grad = False
    other = again(net)
    assert other.first.weight is not net.first.weight
    assert type(other.first.weight) is nn.Parameter
    assert [each.requires_grad for each in other.parameters()] == [True, True, False, *[True] * 4]
    with wg.no_grad():
        net.first.weight += 1
    np.testing.assert_allclose(other.first.weight.numpy() + 1, net.first.weight.numpy())
    net.eval()
    assert other.training
    other(wg.random.normal((5, 3))).sum().backward()
    assert net.first.weight.grad is None
    assert net.rest[1].num_batches_tracked.item() == 0
    assert other.rest[1].num_batches_tracked.item() == 1


def test_text() -> None:
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (rest): ModuleList(\n"
        "    (0): Linear(in_features=4, out_features=4, bias=True)\n"
        "    (1): BatchNorm1d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
        "  )\n"
        ")"
    )


def test_a_captured_function_sees_members_that_are_replaced() -> None:
    """An optimiser, say, still holds the old head: it must not be used any more."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))

    def call(x: Any) -> Any:
        return model(x)

    captured: Any = wg.jit(call)
    x = wg.ones((2, 3))
    old = model[1], model[0].weight
    assert captured(x).shape == (2, 1)
    model[1] = nn.Linear(4, 2)
    assert captured(x).shape == (2, 2)
    model[0].weight = nn.Parameter(wg.zeros((4, 3)))
    np.testing.assert_allclose(captured(x).numpy(), model(x).numpy(), rtol=1e-6)
    handle = model.register_forward_hook(lambda module, inputs, output: output * 0)
    assert not captured(x).numpy().any()
    handle.remove()
    assert captured(x).numpy().any()
    del model[0].bias
    model[0].register_parameter("bias", None)
    np.testing.assert_allclose(captured(x).numpy(), model(x).numpy(), rtol=1e-6)
    count = captured.captures
    for _ in range(3):
        captured(x)
    assert captured.captures == count
    assert old


def test_members_that_are_changed_in_place_need_no_other_capture() -> None:
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", wg.zeros(()))
            self.scale = nn.Parameter(wg.ones(2))
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x: Any) -> Any:
            self.count += 1
            with wg.no_grad():
                self.scale *= 2
            return self.norm(x) * self.scale

    model: Any = Counted()

    def call(x: Any) -> Any:
        return model(x)

    captured: Any = wg.jit(call)
    for _ in range(4):
        captured(wg.random.normal((4, 2)))
    assert captured.captures == 1
    assert (model.count.item(), model.scale.tolist()) == (4, [16.0, 16.0])
    assert model.norm.num_batches_tracked.item() == 4


def test_a_module_that_keeps_a_device_is_copied() -> None:
    model = nn.Linear(2, 2)
    model.place = model.weight.device
    for other in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert other.place is model.weight.device


def captured_call(model: Any) -> Any:
    def call(x: Any) -> Any:
        return model(x)

    return wg.jit(call)


def test_modules_are_asked_only_after_one_of_them_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    members_of = nn_module._members_of

    def noted(module: Any) -> Any:
        asked.append(module)
        return members_of(module)

    monkeypatch.setattr(nn_module, "_members_of", noted)
    model, other = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Dropout(0.5)).eval(), nn.Linear(2, 2)
    captured, x = captured_call(model), wg.ones((1, 2))
    captured(x), captured(x)
    asked.clear()
    captured(x)
    assert not asked
    other.note = "changed"
    captured(x)
    assert len(asked) == 4
    captured(x)
    assert (len(asked), captured.captures) == (4, 1)


@pytest.mark.filterwarnings("ignore:webgrad.jit")  # as it should say, at every call
@pytest.mark.parametrize("seen", [False, True])
def test_a_captured_function_sees_each_change_of_a_module(seen: bool) -> None:
    """After calls that asked the modules, and after those that did not need to."""
    model: Any = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.0), nn.Sequential(nn.ReLU()))
    captured, x = captured_call(model), wg.asarray([[1.0, -2.0], [3.0, 4.0]])
    handles: list[Any] = []
    changes: list[Any] = [
        lambda: model.eval(),
        lambda: model.train(),
        lambda: setattr(model[0], "momentum", 1.0),
        lambda: setattr(model[1], "p", 1.0),
        lambda: setattr(model[1], "p", 0.0),
        lambda: setattr(model, "1", nn.Identity()),
        lambda: handles.append(model[2][0].register_forward_pre_hook(lambda module, inputs: inputs[0] * 3)),
        lambda: handles.append(model.register_forward_hook(lambda module, inputs, output: output + 7)),
        lambda: handles.pop(0).remove(),
        lambda: handles.pop().__exit__(),
        lambda: model[2].append(nn.Tanh()),
        lambda: delattr(model, "2"),
    ]
    for change in changes:
        for _ in range(3 if seen else 1):
            captured(x)
        change()
        mine = copy.deepcopy(model)
        np.testing.assert_allclose(captured(x).numpy(), mine(x).numpy(), rtol=1e-5, atol=1e-6)
        for name, buffer in model.named_buffers():
            np.testing.assert_allclose(buffer.numpy(), mine.get_buffer(name).numpy(), rtol=1e-5)


def test_a_module_without_parameters_that_is_gone_is_seen() -> None:
    class Holder:
        act: Any = nn.ReLU()

    holder = Holder()
    holder.act = nn.ReLU()

    def call(x: Any) -> Any:
        return holder.act(x)

    captured: Any = wg.jit(call)
    x = wg.asarray([-1.0, 2.0])
    for _ in range(3):
        assert captured(x).tolist() == [0.0, 2.0]
    other = nn.Identity()
    captured(x)
    holder.act = other
    assert captured(x).tolist() == [-1.0, 2.0]


def test_settings_that_change_by_themselves_are_asked_for() -> None:
    probability = [0.0]

    class Scheduled(nn.Dropout):
        @property
        def p(self) -> Any:
            return probability[0]

        @p.setter
        def p(self, value: float) -> None: ...

    kind: Any = Scheduled
    captured: Any = captured_call(kind())
    x = wg.ones(4)
    for _ in range(3):
        assert captured(x).tolist() == [1.0] * 4
    probability[0] = 1.0
    assert captured(x).tolist() == [0.0] * 4
