"""torch.nn.functional and the modules that are its functions: torch's arguments, and changes in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webgrad as wg
import webgrad.torch as torch
from webgrad.torch import nn
from webgrad.torch.nn import functional as F


def test_in_place_activations_change_their_input() -> None:
    for act in (
        lambda x: F.relu(x, inplace=True),
        F.relu_,
        nn.ReLU(inplace=True),
        nn.ReLU(True),
        torch.relu_,
    ):
        x = torch.tensor([-1.0, 2.0])
        assert act(x) is x
        assert x.tolist() == [0.0, 2.0]
    kept = torch.tensor([-1.0, 2.0])
    assert nn.ReLU()(kept).tolist() == [0.0, 2.0]
    assert kept.tolist() == [-1.0, 2.0]


def test_gradients_go_through_what_is_in_place() -> None:
    w = torch.tensor([-1.0, 2.0], requires_grad=True)
    x = w * 3
    y = nn.LeakyReLU(0.5, inplace=True)(x)
    (x + y).sum().backward()  # both are the activation's result
    assert w.grad.tolist() == [3.0, 6.0]


@pytest.mark.parametrize(
    ("old", "new"),
    [((False, None), "sum"), ((True, None), "mean"), ((None, False), "none"), ((None, None), "mean")],
)
def test_the_old_arguments_are_reductions(old: Any, new: str) -> None:
    x, t = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0])
    wanted = {"sum": 10.0, "mean": 5.0, "none": [1.0, 9.0]}[new]
    assert F.mse_loss(x, t, *old).tolist() == wanted
    assert nn.MSELoss(*old)(x, t).tolist() == wanted
    assert nn.MSELoss(size_average=old[0], reduce=old[1])(input=x, target=t).tolist() == wanted


def test_weights_of_classes_and_smoothing_stand_where_torch_has_them() -> None:
    x, t = torch.zeros(2, 2), torch.tensor([0, 1])
    loss = nn.CrossEntropyLoss(torch.tensor([1.0, 3.0]), None, 1, None, "sum", 0.0)
    assert round(loss(x, t).item(), 5) == round(math.log(2), 5)
    assert list(loss.state_dict()) == ["weight"]
    assert (
        F.nll_loss(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]), None, None, -100, None, "sum").item() == 2
    )


def test_targets_of_another_shape_are_broadcast_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="different to the input size"):
        loss = F.mse_loss(torch.zeros(2, 1), torch.tensor([1.0, 2.0]), reduction="sum")
    assert loss.item() == 10.0
    with pytest.raises(ValueError, match="is deprecated"):
        F.binary_cross_entropy(torch.full((2, 1), 0.5), torch.zeros(2))
    weighed = F.mse_loss(torch.zeros(2), torch.tensor([1.0, 2.0]), weight=torch.tensor([3.0, 1.0]))
    assert weighed.item() == 7 / 4


def test_softmax_without_a_dimension_and_in_another_dtype() -> None:
    x = torch.zeros(2, 4)
    assert F.softmax(x).tolist() == [[0.25] * 4] * 2
    assert nn.Softmax()(torch.zeros(2, 4, 1)).tolist()[0][0] == [0.5]
    assert F.log_softmax(x.half(), -1, dtype=torch.float32).dtype is torch.float32
    assert F.softmax(torch.tensor(3.0), 0).item() == 1.0


def test_places_of_largest_elements_are_torchs_integers() -> None:
    x = torch.tensor([[[1.0, 5.0, 2.0, 3.0]]])
    values, places = nn.MaxPool1d(2, return_indices=True)(x)
    assert (values.tolist(), places.tolist(), places.dtype) == ([[[5.0, 3.0]]], [[[1, 3]]], torch.int64)
    assert nn.MaxUnpool1d(2)(values, places).tolist() == [[[0.0, 5.0, 0.0, 3.0]]]
    assert F.max_pool2d_with_indices(torch.ones(1, 2, 2), 2)[1].tolist() == [[[0]]]
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_operands_of_products_have_one_dtype() -> None:
    calls: list[Any] = [
        lambda: F.linear(torch.zeros(1, 2), torch.zeros(3, 2).half()),
        lambda: F.conv1d(torch.zeros(1, 1, 3), torch.zeros(1, 1, 2), torch.zeros(1).double()),
        lambda: nn.Linear(2, 2)(torch.zeros(1, 2).double()),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="should be the same"):
            call()


def test_dropout_takes_torchs_arguments() -> None:
    x = torch.ones(1000)
    assert F.dropout(x, 0.5, False).tolist() == x.tolist()
    dropped = F.dropout(x, 0.25)
    assert {0.0, round(4 / 3, 5)} == {round(each, 5) for each in dropped.tolist()}
    layer = nn.Dropout(1.0, inplace=True)
    assert layer(x) is x
    assert x.sum().item() == 0.0
    assert torch.dropout(torch.ones(2), 1.0, True).tolist() == [0.0, 0.0]


def test_attention_drops_weights() -> None:
    torch.manual_seed(0)
    q, v = torch.zeros(1, 400, 4), torch.eye(4)[None]
    found = F.scaled_dot_product_attention(q, torch.zeros(1, 4, 4), v, dropout_p=0.5)
    values = found.numpy()
    assert set(np.unique(values)) == {0.0, 0.5}
    np.testing.assert_allclose(values.mean(), 0.25, atol=0.03)


def test_multi_head_attention_forward_is_the_layers() -> None:
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(4, 2), torch.randn(3, 2, 4)
    wanted = layer(x, x, x)
    found = F.multi_head_attention_forward(
        x, x, x, 4, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0,
        layer.out_proj.weight, layer.out_proj.bias,
    )  # fmt: skip
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=1e-5)


def test_tables_take_torchs_arguments() -> None:
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert nn.Embedding(2, 2, _weight=rows)(torch.tensor([1])).tolist() == [[3.0, 4.0]]
    fixed = nn.Embedding.from_pretrained(rows, True, None, None, 2.0, False, True)
    assert not fixed.weight.requires_grad
    assert nn.EmbeddingBag(2, 2, mode="sum", _weight=rows)(torch.tensor([[0, 1]])).tolist() == [[4.0, 6.0]]
    assert F.embedding_bag(torch.tensor([0, 1]), rows, torch.tensor([0]), mode="max").tolist() == [[3.0, 4.0]]


def test_lazy_layers_are_torchs() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert isinstance(model[0].weight, nn.parameter.UninitializedParameter)
    assert nn.parameter.is_lazy(model[0].weight)
    assert isinstance(model[0], nn.Conv2d)
    assert isinstance(model[3], nn.Linear)
    assert model(torch.zeros(2, 3, 4, 4)).shape == (2, 2)
    assert [type(each) for each in model] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert type(model[3].weight) is nn.Parameter
    assert isinstance(model(torch.zeros(2, 3, 4, 4)), torch.Tensor)


def test_batches_are_counted_in_torchs_integers() -> None:
    layer = nn.BatchNorm1d(2)
    layer(torch.randn(3, 2))
    assert (layer.num_batches_tracked.dtype, layer.num_batches_tracked.item()) == (torch.int64, 1)
    layer(torch.zeros(0, 2))
    assert layer.running_mean.isfinite().all()
    with pytest.raises(ValueError, match="two values or more"):
        layer(torch.zeros(1, 2))


def test_a_class_keeps_its_own_beginning_over_that_of_the_class_above() -> None:
    x = torch.arange(4.0).reshape(1, 1, 2, 2)
    found = nn.UpsamplingBilinear2d(scale_factor=2)(x)
    np.testing.assert_allclose(found.numpy()[0, 0, 0], [0, 1 / 3, 2 / 3, 1], rtol=1e-5)
    assert nn.UpsamplingNearest2d(size=3)(x).shape == (1, 1, 3, 3)
    for name in nn.__all__:
        original, kind = getattr(wg.nn, name, None), getattr(nn, name)
        if isinstance(original, type) and "__init__" in vars(original) and issubclass(original, wg.nn.Module):
            assert "__init__" in vars(kind) or kind is nn.Module, name


def test_modules_of_several_names() -> None:
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)))
    assert isinstance(model[1], nn.BatchNorm2d)
    assert nn.SyncBatchNorm(2)(torch.randn(3, 2, 4)).shape == (3, 2, 4)
    assert isinstance(nn.GRU(2, 2), nn.RNNBase)
    assert isinstance(nn.GRUCell(2, 2), nn.RNNCellBase)
    assert nn.NLLLoss2d()(torch.zeros(1, 2, 1, 1), torch.zeros(1, 1, 1, dtype=torch.long)).item() == 0
    same = nn.LocalResponseNorm(3)(torch.ones(1, 4, 2, 2)) == nn.CrossMapLRN2d(3)(torch.ones(1, 4, 2, 2))
    assert same.all()
