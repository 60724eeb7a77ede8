"""einops on tensors: its functions for the array API give what its own give for NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.libraries.comparing import EVERYWHERE, Place, library, same, without_numpy

einops = library("einops")
portable = library("einops.array_api")

X = np.random.default_rng(1).normal(size=(2, 3, 4, 6)).astype(np.float32)
REARRANGED: list[tuple[str, dict[str, int]]] = [
    ("b c h w -> b h w c", {}),
    ("b c h w -> b (c h w)", {}),
    ("b c (h p) (w q) -> b (h w) (p q c)", {"p": 2, "q": 3}),
    ("b c h w -> (b h) (c w)", {}),
    ("b ... -> ... b", {}),
    ("b c h (w two) -> two b c h w", {"two": 2}),
]
REDUCED: list[tuple[str, str, dict[str, int]]] = [
    ("b c h w -> b c", "mean", {}),
    ("b c h w -> b 1 h w", "max", {}),
    ("b c (h p) (w q) -> b c h w", "min", {"p": 2, "q": 2}),
    ("... w -> ...", "sum", {}),
    ("b c h w ->", "prod", {}),
]
REPEATED: list[tuple[str, dict[str, int]]] = [
    ("b c h w -> b c (h 2) (w 3)", {}),
    ("b c h w -> copies b c h w", {"copies": 3}),
    ("b c h w -> b (c copies) h w", {"copies": 2}),
]


@EVERYWHERE
@pytest.mark.parametrize(
    ("name", "pattern", "sizes"),
    [("rearrange", *each) for each in REARRANGED] + [("repeat", *each) for each in REPEATED],
)
def test_rearrange_and_repeat(
    device: str, name: str, pattern: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(device)
    expected = getattr(einops, name)(X, pattern, **sizes)
    with without_numpy(monkeypatch):
        found = getattr(portable, name)(place.put(X), pattern, **sizes)
    same(found, expected, place)


@EVERYWHERE
@pytest.mark.parametrize(("pattern", "reduction", "sizes"), REDUCED)
def test_reduce(
    device: str, pattern: str, reduction: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(device)
    expected = einops.reduce(X, pattern, reduction, **sizes)
    with without_numpy(monkeypatch):
        found = portable.reduce(place.put(X), pattern, reduction, **sizes)
    same(found, expected, place)


@EVERYWHERE
def test_reduce_by_a_function(device: str) -> None:
    place = Place(device)
    found = portable.reduce(place.put(X), "b c h w -> b c", lambda x, axes: wg.logsumexp(x, axis=axes))
    same(found, np.log(np.exp(X).sum((2, 3))), place)


@EVERYWHERE
def test_a_list_of_tensors_is_stacked(device: str) -> None:
    place = Place(device)
    found = portable.rearrange([place.put(each) for each in X], "b c h w -> c (b h w)")
    same(found, einops.rearrange(X, "b c h w -> c (b h w)"), place)


@EVERYWHERE
def test_pack_and_unpack(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(device)
    arrays = [X[:, 0], X[:, 1, :, 0], X[:, :, :, :3]]  # (2, 4, 6), (2, 4), (2, 3, 4, 3)
    expected, shapes = einops.pack(arrays, "b *")
    with without_numpy(monkeypatch):
        packed, found_shapes = portable.pack([place.put(each) for each in arrays], "b *")
        unpacked = portable.unpack(packed, found_shapes, "b *")
    assert [tuple(each) for each in found_shapes] == [tuple(each) for each in shapes]
    same(packed, expected, place)
    same(unpacked, arrays, place)


@EVERYWHERE
def test_whole_numbers_and_complex_ones(device: str) -> None:
    place = Place(device)
    for dtype in (np.int32, np.uint8, np.bool_, np.complex64):
        array = (X * 100).astype(np.int32).astype(dtype)
        found = portable.rearrange(place.put(array), "b c h w -> w (h c) b")
        same(found, einops.rearrange(array, "b c h w -> w (h c) b"), place)


def test_gradients_go_through() -> None:
    x = wg.asarray(X, device="cpu").requires_grad_()
    portable.reduce(x * x, "b c h w -> b", "sum").sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * X)


def test_mistakes_are_named_by_einops() -> None:
    with pytest.raises(einops.EinopsError, match="can't divide axis of length 3"):
        portable.rearrange(wg.asarray(X, device="cpu"), "b (c two) h w -> two b c h w", two=2)


def test_patterns_count_for_what_is_captured() -> None:
    def patches(x: Any) -> Any:
        return portable.rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2) * 2

    x = wg.asarray(X, device="cpu")
    np.testing.assert_array_equal(wg.jit(patches)(x).numpy(), patches(x).numpy())
