"""torch.nn.utils and torch.nn.init: torch's names and arguments, and torch's tensors as results."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import webgrad.torch as torch
from webgrad.torch import nn
from webgrad.torch.nn.utils import parametrizations, parametrize, prune, rnn


def test_packed_sequences_go_through_layers() -> None:
    x = torch.randn(3, 4, 2)
    packed = rnn.pack_padded_sequence(x, torch.tensor([2, 4, 1]), batch_first=True, enforce_sorted=False)
    assert isinstance(packed, rnn.PackedSequence)
    assert isinstance(packed.data, torch.Tensor)
    output, (h, _) = nn.LSTM(2, 5, batch_first=True, bidirectional=True)(packed)
    assert isinstance(output, rnn.PackedSequence)
    padded, lengths = rnn.pad_packed_sequence(output, batch_first=True)
    assert (padded.shape, lengths.tolist(), h.shape) == ((3, 4, 10), [2, 4, 1], (2, 3, 5))
    assert isinstance(padded, torch.Tensor)
    assert output.to("cpu").double().data.dtype is torch.float64
    assert not output.is_cuda
    made: Any = rnn.PackedSequence(packed.data, packed.batch_sizes, packed.sorted_indices)
    assert made.unsorted_indices.tolist() == rnn.invert_permutation(packed[2]).tolist()
    with pytest.raises(RuntimeError, match="enforce_sorted"):
        rnn.pack_padded_sequence(x, [1, 2, 4], batch_first=True)


def test_weights_that_are_computed_are_torchs_tensors() -> None:
    for make in (nn.utils.weight_norm, nn.utils.spectral_norm, parametrizations.weight_norm):
        layer: Any = make(nn.Linear(3, 2))
        assert type(layer.weight) is torch.Tensor
        assert all(type(each) is nn.Parameter for each in layer.parameters())
        assert type(layer(torch.ones(1, 3))) is torch.Tensor
    assert isinstance(layer.parametrizations.weight, parametrize.ParametrizationList)
    assert isinstance(layer.parametrizations, nn.ModuleDict)
    pruned: Any = prune.random_unstructured(nn.Linear(4, 4), name="weight", amount=0.25)
    assert (pruned.weight == 0).sum().item() == 4
    assert nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Conv2d(1, 1, 1))).weight.requires_grad


def test_clipping_takes_torchs_arguments() -> None:
    w = nn.Parameter(torch.zeros(2))
    w.grad = torch.tensor([3.0, 4.0])
    norm = nn.utils.clip_grad_norm_(w, 2.5, 2, False, foreach=True)
    assert type(norm) is torch.Tensor
    assert norm.item() == 5.0
    np.testing.assert_allclose(w.grad.numpy(), [1.5, 2.0], rtol=1e-5)
    nn.utils.clip_grad_value_([w], 1.75, foreach=False)
    assert w.grad.tolist() == pytest.approx([1.5, 1.75])
    vector = nn.utils.parameters_to_vector([w])
    assert type(vector) is torch.Tensor
    assert import_module("webgrad.torch.nn.utils.clip_grad").clip_grad_norm_ is nn.utils.clip_grad_norm_


def test_first_values_follow_a_generator() -> None:
    found = []
    state = torch.get_rng_state()
    for _ in range(2):
        generator = torch.Generator().manual_seed(4)
        found.append(nn.init.kaiming_normal_(torch.empty(3, 2), generator=generator).tolist())
        found.append(nn.init.uniform_(torch.empty(2), 1.0, 2.0, generator).tolist())
    assert found[:2] == found[2:]
    assert str(torch.get_rng_state()) == str(state)
    assert nn.init.constant(torch.empty(2), 3.0).tolist() == [3.0, 3.0]
    assert nn.init._calculate_correct_fan(torch.empty(3, 2), "fan_out") == 3
    with pytest.raises(ValueError, match="Mode most"):
        nn.init._calculate_correct_fan(torch.empty(3, 2), "most")
    x = torch.empty(4)
    assert nn.init.ones_(x) is x


def test_features_are_dropped_of_other_numbers_of_dimensions_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="2-D input to dropout2d"):
        found = nn.functional.dropout2d(torch.ones(50, 20), 0.5)
    assert set(found.flatten().tolist()) == {0.0, 2.0}
    with pytest.warns(UserWarning, match="5-D input"):
        rows = nn.Dropout2d(0.5)(torch.ones(4, 6, 2, 2, 2))
    assert {tuple(each) for each in rows.reshape(24, 8).tolist()} <= {(0.0,) * 8, (2.0,) * 8}
