"""Weights that are computed of others: by hooks, as parametrisations, and with masks."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from webgrad.nn import utils
from webgrad.nn.utils import parametrizations, parametrize, prune


def conv() -> Any:
    return wg.nn.Conv1d(2, 3, 2)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_keeps_the_weight_and_trains_its_parts(dim: int | None) -> None:
    plain = conv()
    wanted = plain.weight.numpy()
    x = wg.asarray(np.random.default_rng(0).normal(size=(1, 2, 5)).astype(np.float32))
    for made in (
        utils.weight_norm(copy.deepcopy(plain), dim=dim),
        parametrizations.weight_norm(copy.deepcopy(plain), dim=dim),
    ):
        layer: Any = made
        np.testing.assert_allclose(layer.weight.detach().numpy(), wanted, rtol=1e-5)
        np.testing.assert_allclose(layer(x).detach().numpy(), plain(x).detach().numpy(), rtol=1e-4, atol=1e-6)
        layer(x).sum().backward()
        assert all(each.grad is not None for each in layer.parameters())
        names = [name for name, _ in layer.named_parameters()]
        assert "weight" not in names
        again = copy.deepcopy(layer)
        with wg.no_grad():
            next(each for name, each in again.named_parameters() if name.endswith(("_g", "original0"))).mul_(
                2
            )
        np.testing.assert_allclose(again(x).detach().numpy(), (2 * (plain(x) - plain.bias.reshape((-1, 1))) +
            plain.bias.reshape((-1, 1))).detach().numpy(), rtol=1e-3, atol=1e-5)  # fmt: skip
        np.testing.assert_allclose(layer.weight.detach().numpy(), wanted, rtol=1e-5)


def test_a_plain_weight_comes_back() -> None:
    for on, off in (
        (utils.weight_norm, utils.remove_weight_norm),
        (utils.spectral_norm, utils.remove_spectral_norm),
        (parametrizations.weight_norm, lambda layer: parametrize.remove_parametrizations(layer, "weight")),
        (parametrizations.spectral_norm, lambda layer: parametrize.remove_parametrizations(layer, "weight")),
    ):
        layer: Any = on(conv())
        layer(wg.ones((1, 2, 4)))
        layer.eval()
        wanted = layer.weight.detach().numpy()
        off(layer)
        assert type(layer) is wg.nn.Conv1d
        assert sorted(layer.state_dict()) == ["bias", "weight"]
        np.testing.assert_allclose(layer.weight.detach().numpy(), wanted, rtol=1e-5)
        assert isinstance(layer.weight, wg.nn.Parameter)
    with pytest.raises(wg.ArgumentError, match="not found in"):
        utils.remove_weight_norm(conv())
    with pytest.raises(wg.ArgumentError, match="has no parametrisation"):
        parametrize.remove_parametrizations(conv(), "weight")


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_the_largest_stretch_becomes_one(device: str) -> None:
    wg.random.seed(2)
    x = wg.ones((1, 5), device=device)
    kinds = (utils.spectral_norm, parametrizations.spectral_norm)
    for make in kinds if device == "cpu" else kinds[:1]:
        layer: Any = make(wg.nn.Linear(5, 4).to(device), n_power_iterations=2)
        for _ in range(12):
            layer(x)
        assert np.linalg.svd(layer.weight.detach().numpy(), compute_uv=False)[0] == pytest.approx(1, rel=1e-2)
        layer.eval()
        before = {name: each.numpy() for name, each in layer.named_buffers()}
        layer(x).sum().backward()
        assert all((each.numpy() == before[name]).all() for name, each in layer.named_buffers())
        assert all(each.grad is not None for each in layer.parameters())


class Doubled(wg.nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2.0

    def right_inverse(self, x: Any) -> Any:
        return x / 2.0


def test_parametrisations_stand_one_behind_the_other_and_take_values() -> None:
    layer: Any = wg.nn.Linear(2, 2, bias=False)
    wanted = layer.weight.numpy()
    for _ in range(2):
        parametrize.register_parametrization(layer, "weight", Doubled())
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, wg.nn.Linear)
    assert parametrize.is_parametrized(layer, "weight")
    np.testing.assert_allclose(layer.weight.numpy(), wanted * 2)  # the second has no say in what was there
    layer.weight = wg.ones((2, 2))  # type: ignore[assignment]
    np.testing.assert_allclose(layer.weight.numpy(), 1.0)
    np.testing.assert_allclose(layer.parametrizations.weight.original.numpy(), 0.25)
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    other: Any = wg.nn.Linear(2, 2, bias=False)
    for _ in range(2):
        parametrize.register_parametrization(other, "weight", Doubled())
    other.load_state_dict(layer.state_dict())
    assert other.weight.tolist() == layer.weight.tolist()
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight.tolist() == [[0.25] * 2] * 2


def test_what_cannot_be_parametrised() -> None:
    with pytest.raises(wg.ArgumentError, match="no parameter, buffer"):
        parametrize.register_parametrization(conv(), "height", Doubled())
    with pytest.raises(wg.ArgumentError, match="unsafe=True"):
        parametrize.register_parametrization(conv(), "weight", wg.nn.Flatten(0))


def test_masks_take_the_least_and_what_is_gone_stays_gone() -> None:
    layer: Any = wg.nn.Linear(4, 2, bias=False)
    with wg.no_grad():
        layer.weight[...] = wg.asarray([[1.0, -2.0, 3.0, -4.0], [5.0, -6.0, 7.0, -8.0]])
    prune.l1_unstructured(layer, "weight", amount=3)
    assert layer.weight.tolist() == [[0, 0, 0, -4], [5, -6, 7, -8]]
    prune.l1_unstructured(layer, "weight", amount=0.4)  # of the five that are left
    assert layer.weight.tolist() == [[0, 0, 0, 0], [0, -6, 7, -8]]
    layer(wg.ones((1, 4))).sum().backward()
    assert (layer.weight_orig.grad.numpy() != 0).sum() == 3
    assert prune.is_pruned(wg.nn.Sequential(layer))
    prune.remove(layer, "weight")
    assert not prune.is_pruned(layer)
    assert layer.weight.tolist() == [[0, 0, 0, 0], [0, -6, 7, -8]]


def test_whole_slices_and_several_layers() -> None:
    layer: Any = wg.nn.Linear(3, 2)
    with wg.no_grad():
        layer.weight[...] = wg.asarray([[1.0, 9.0, 1.0], [1.0, 9.0, 2.0]])
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=1)
    assert layer.weight.tolist() == [[0, 9, 1], [0, 9, 2]]
    small: Any = wg.nn.Linear(2, 1)
    with wg.no_grad():
        small.weight[...] = wg.asarray([[0.5, 20.0]])
    prune.global_unstructured([(layer, "bias"), (small, "weight")], amount=2)
    assert int((layer.bias == 0).sum().item() + (small.weight == 0).sum().item()) == 2
    for amount in (-1, 1.5, 9):
        with pytest.raises(wg.ArgumentError, match="prune"):
            prune.random_unstructured(small, "bias", amount)


def test_a_batch_norm_becomes_part_of_the_layer_before() -> None:
    x = wg.asarray(np.random.default_rng(1).normal(size=(4, 3, 6)).astype(np.float32))
    for layer, norm, fuse, rows in (
        (wg.nn.Conv1d(3, 2, 2), wg.nn.BatchNorm1d(2), utils.fuse_conv_bn_eval, x),
        (wg.nn.Linear(6, 3, bias=False), wg.nn.BatchNorm1d(3), utils.fuse_linear_bn_eval, x[:, 0]),
    ):
        both = wg.nn.Sequential(layer, norm)
        both(rows)
        with pytest.raises(wg.ArgumentError, match=r"eval\(\) only"):
            fuse(layer, norm)
        both.eval()
        np.testing.assert_allclose(
            fuse(layer, norm)(rows).detach().numpy(), both(rows).detach().numpy(), rtol=1e-4, atol=1e-5
        )


def test_parameters_are_one_vector_and_back() -> None:
    layer = wg.nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,)
    utils.vector_to_parameters(vector * 2, layer.parameters())
    np.testing.assert_allclose(
        utils.parameters_to_vector(layer.parameters()).detach().numpy(), 2 * vector.detach().numpy()
    )
    with pytest.raises(wg.ShapeError, match="9 elements"):
        utils.vector_to_parameters(wg.ones(3), layer.parameters())


def test_a_module_whose_weights_are_not_drawn() -> None:
    layer: Any = utils.skip_init(wg.nn.Linear, 4, 3)
    assert not layer.weight.detach().numpy().any()
    assert wg.nn.Linear(4, 3).weight.detach().numpy().any()
    layer.load_state_dict({"weight": np.ones((3, 4)), "bias": np.zeros(3)})
    assert layer(wg.ones((1, 4))).tolist() == [[4.0] * 3]
