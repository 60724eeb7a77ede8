"""einops' own functions and layers take tensors: webgrad's, and those of webgrad.torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import webgrad as wg
import webgrad.torch as torch
from tests.libraries.comparing import EVERYWHERE, Place, library, same, without_numpy
from tests.libraries.test_einops import REARRANGED, REDUCED, REPEATED, X
from webgrad.functions import einops_backend

einops = library("einops")
CASES: list[tuple[str, tuple[Any, ...], dict[str, int]]] = [
    *(("rearrange", (pattern,), sizes) for pattern, sizes in REARRANGED),
    *(("repeat", (pattern,), sizes) for pattern, sizes in REPEATED),
    *(("reduce", (pattern, reduction), sizes) for pattern, reduction, sizes in REDUCED),
]


@EVERYWHERE
@pytest.mark.parametrize(("name", "arguments", "sizes"), CASES)
def test_functions(
    device: str, name: str, arguments: tuple[Any, ...], sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(device)
    expected = getattr(einops, name)(X, *arguments, **sizes)
    with without_numpy(monkeypatch):
        found = getattr(einops, name)(place.put(X), *arguments, **sizes)
        of_torch = getattr(einops, name)(torch.asarray(place.put(X)), *arguments, **sizes)
    same(found, expected, place)
    assert type(found) is wg.Tensor
    same(of_torch, expected, place)
    assert type(of_torch) is torch.Tensor


@pytest.mark.parametrize("make", [wg.asarray, torch.as_tensor])
def test_products_lists_and_packs(make: Any) -> None:
    x = make(X)
    found = einops.einsum(x, x, "b c h w, b d h w -> b c d")
    np.testing.assert_allclose(found.numpy(), np.einsum("bchw,bdhw->bcd", X, X), rtol=1e-5)
    assert einops.rearrange([x, x], "n b c h w -> b (n c) h w").tolist() == np.concatenate([X, X], 1).tolist()
    packed, shapes = einops.pack([x, x[:, 0]], "b * w")
    assert packed.tolist() == np.concatenate([X.reshape(2, 12, 6), X[:, 0]], 1).tolist()
    assert einops.unpack(packed, shapes, "b * w")[1].tolist() == X[:, 0].tolist()
    assert einops.parse_shape(x, "b _ h w") == {"b": 2, "h": 4, "w": 6}
    assert type(packed) is type(x)


def test_gradients_and_captured_functions() -> None:
    x = torch.as_tensor(X).requires_grad_()
    einops.reduce(x * x, "b c h w -> b", "mean").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X / 72, rtol=1e-6)
    captured = wg.jit(lambda x: einops.rearrange(x, "b c h w -> (b w) (c h)") * 2)
    assert captured(wg.asarray(X)).tolist() == (X.transpose(0, 3, 1, 2).reshape(12, 12) * 2).tolist()


@pytest.fixture
def layers() -> Iterator[Any]:
    """`einops.layers.torch`, imported where `import torch` is webgrad.torch."""
    torch.install()
    try:
        yield importlib.import_module("einops.layers.torch")
    finally:
        torch.uninstall()
        for name in ("einops.layers.torch", "einops._torch_specific"):
            sys.modules.pop(name, None)


@pytest.mark.skipif("torch" in sys.modules, reason="torch itself is imported")
def test_layers(layers: Any) -> None:
    model = torch.nn.Sequential(
        layers.Rearrange("b c h w -> b (c h) w"),
        layers.Reduce("b t w -> b w", "max"),
        layers.EinMix("b w -> b o", weight_shape="w o", bias_shape="o", w=6, o=3),
    )
    weight, bias = model[2].weight, model[2].bias
    found = model(torch.as_tensor(X))
    expected = X.reshape(2, 12, 6).max(1) @ weight.numpy() + bias.numpy()
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    found.sum().backward()
    np.testing.assert_allclose(
        weight.grad.numpy(), np.tile(X.reshape(2, 12, 6).max(1).sum(0)[:, None], 3), rtol=1e-5
    )


def test_an_einops_that_is_imported_already_gets_our_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    class AbstractBackend:
        """As einops has it."""

    known: Any = ModuleType("einops._backends")
    known.AbstractBackend = AbstractBackend
    monkeypatch.setitem(sys.modules, "einops._backends", known)
    einops_backend.register()
    assert [each.__name__ for each in AbstractBackend.__subclasses__()] == ["WebgradBackend"]
    del known.AbstractBackend
    einops_backend.register()  # an einops that has another way is left alone
