"""torch.utils beside data, and the namespaces that a program of one process asks and leaves alone."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque
from types import SimpleNamespace
from typing import Any

import pytest

import webgrad.torch as torch
from webgrad.torch import distributed, multiprocessing, profiler
from webgrad.torch.utils import _pytree as pytree
from webgrad.torch.utils import tensorboard
from webgrad.torch.utils.checkpoint import checkpoint, checkpoint_sequential


def test_checkpointed_layers_give_the_same_gradients() -> None:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(5)))
    x = torch.ones(2, 3)
    layers(x).sum().backward()
    expected = [each.grad.tolist() for each in layers.parameters()]
    runs: list[Any] = [
        lambda: checkpoint_sequential(layers, 2, x, use_reentrant=False),
        lambda: checkpoint(layers, x, use_reentrant=True),
    ]
    for run in runs:
        layers.zero_grad()
        run().sum().backward()
        assert [each.grad.tolist() for each in layers.parameters()] == expected


def test_a_checkpointed_function_gets_torchs_tensors() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    checkpoint(lambda x, dim: x.sum(dim=dim, keepdim=True).sum(), x, dim=1).backward()
    assert x.grad.tolist() == [[1.0] * 3] * 2


def test_trees_are_flattened_and_made_again() -> None:
    tree: Any = OrderedDict(a=[1, (2,)], b=deque([3], 5), c=defaultdict(int, d=4), e=None)
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, None]
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree
    assert again["c"].default_factory is int
    assert pytree.tree_map(lambda x, y: x + y, [1, 2], [3, 4]) == [4, 6]
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]
    with pytest.raises(ValueError, match="1 leaves for a tree of 5"):
        pytree.tree_unflatten([1], spec)


def test_one_process_has_no_group() -> None:
    assert not distributed.is_available()
    assert not distributed.is_initialized()
    with pytest.raises(ValueError, match="process group has not been initialized"):
        distributed.get_rank()
    with pytest.raises(RuntimeError, match="without torchrun"):
        distributed.init_process_group("nccl")
    assert multiprocessing.cpu_count() > 0
    with pytest.raises(RuntimeError, match="writes no ONNX"):
        torch.onnx.export(None, None)


def test_profiles_are_entered_and_have_no_records() -> None:
    activities = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=activities) as profile, profiler.record_function("step"):
        profile.step()
    assert profile.step_num == 1
    with pytest.raises(RuntimeError, match=r"webgrad\.profile"):
        profile.key_averages()


def test_a_missing_writer_of_summaries_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        tensorboard.SummaryWriter  # noqa: B018
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=list))
    assert tensorboard.SummaryWriter is list
