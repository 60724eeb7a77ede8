"""Products with a long k in parts: which are, into what, and that results stay what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import CPU, apply, graph_of, numbers
from tests.lower.helpers import lowered
from tests.properties.helpers import gpu
from tests.properties.running import profiled
from tests.schedule.graphs import INTEGRATED, PORTABLE, SOFTWARE
from tests.schedule.test_split_reductions import computed, leaves_of
from webgrad import dtypes
from webgrad.device_profile import DeviceProfile
from webgrad.evaluate.evaluate import read
from webgrad.graph.node import Node, leaf
from webgrad.graph.snapshot import Snapshot
from webgrad.ops import primitives
from webgrad.schedule.split_products import split_products

Array = np.ndarray[Any, Any]
GENERATOR = np.random.default_rng(4)


def values(*shape: int) -> Array:
    return GENERATOR.normal(size=shape).astype(np.float32)


def split(root: Node, profile: DeviceProfile = SOFTWARE) -> tuple[Snapshot, tuple[int, ...]]:
    """The rewritten graph, and the shape of its product."""
    graph = graph_of(root)
    split_products(graph, profile)
    (product,) = [graph.sigs[each] for each in graph.order() if graph.sigs[each].kind == "contract"]
    return graph, product.shape


def product_of(a: tuple[int, ...], b: tuple[int, ...]) -> Node:
    return primitives.contract(
        numbers(np.broadcast_to(np.float32(1), a)), numbers(np.broadcast_to(np.float32(1), b))
    )


@pytest.mark.parametrize("profile", [SOFTWARE, PORTABLE], ids=["software", "portable"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((8, 16384), (16384, 8)),
        ((5, 16381), (16381, 3)),  # a prime number
        ((1, 8193), (8193, 1)),
        ((2, 3, 16384), (16384, 4)),  # one B for all
        ((2, 3, 8200), (2, 8200, 4)),
        ((2, 1, 3, 8200), (1, 8200, 4)),
        ((3, 8192), (2, 8192, 5)),
    ],
    ids=str,
)
def test_results_stay(first: tuple[int, ...], second: tuple[int, ...], profile: DeviceProfile) -> None:
    a, b = values(*first), values(*second)
    graph, shape = split(primitives.contract(numbers(a), numbers(b)), profile)
    assert len(shape) > 2, "it was to be split"
    (found,) = computed(graph, leaves_of(graph, a, b))
    exact = a.astype(np.float64) @ b
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("profile", [SOFTWARE, PORTABLE, INTEGRATED])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((256, 256), (256, 256)),
        ((4, 512), (512, 4)),
        ((128, 2048), (2048, 512)),
        ((3, 0), (0, 5)),
        ((0, 9000), (9000, 5)),
    ],
    ids=str,
)
def test_others_stay_whole(first: tuple[int, ...], second: tuple[int, ...], profile: DeviceProfile) -> None:
    graph = graph_of(product_of(first, second))
    before = len(graph)
    split_products(graph, profile)
    assert len(graph) == before


def test_parts_divide_k_where_they_can() -> None:
    graph, shape = split(product_of((8, 65536), (65536, 8)))
    assert shape == (16, 8, 8)
    assert not any(sig.op.name == "pad" for sig in graph.sigs)
    graph, shape = split(product_of((8, 65537), (65537, 8)))
    assert shape[1:] == (8, 8)
    assert sum(sig.op.name == "pad" for sig in graph.sigs) == 2


def test_thin_products_walk_along_long_rows_on_software_adapters() -> None:
    """32 rows of B at once: in so many places processors fetch ahead."""
    assert split(product_of((1, 2048), (2048, 8192)))[1] == (64, 1, 8192)
    assert split(product_of((1, 2048), (2048, 8192)), PORTABLE)[1] == (1, 8192)
    assert split(product_of((64, 2048), (2048, 8192)))[1] == (64, 8192)
    along_k = primitives.permute(numbers(np.broadcast_to(np.float32(1), (8192, 2048))), (1, 0))
    row = numbers(np.broadcast_to(np.float32(1), (1, 2048)))
    assert split(primitives.contract(row, along_k))[1] == (1, 8192)


def test_parts_are_whole_stretches_of_merged_axes() -> None:
    """A weight's gradient: k is (samples, height, width), and a part of it begins where a row begins."""
    gradient = numbers(np.broadcast_to(np.float32(1), (16, 4, 30, 28)))
    turned = primitives.reshape(primitives.permute(gradient, (1, 0, 2, 3)), (4, 16 * 30 * 28))
    inputs = numbers(np.broadcast_to(np.float32(1), (16, 6, 30, 28)))
    other = primitives.reshape(primitives.permute(inputs, (0, 2, 3, 1)), (16 * 30 * 28, 6))
    for profile in (SOFTWARE, PORTABLE):
        _, shape = split(primitives.contract(turned, other), profile)
        assert len(shape) == 3
        assert (16 * 30 * 28 // shape[0]) % 28 == 0
        for kernel in lowered(primitives.contract(turned, other), profile=profile):
            for hole in kernel.holes:
                if hole.name in ("hole_a", "hole_b"):
                    assert not any(each.op == "arithmetic" and each.data in "/%" for each in hole.body)


def test_it_is_two_kernels() -> None:
    for k in (65536, 65537):
        root = apply("maximum", apply("add", product_of((8, k), (k, 8)), numbers(np.ones(8))), 0.0)
        assert len(lowered(root)) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["software", "discrete"])
@pytest.mark.parametrize("k", [8192, 8195])
def test_on_a_device(kind: str, k: int) -> None:
    device = gpu() if kind == "software" else profiled(kind="discrete", subgroup_size=0)
    a, b = values(5, k), values(k, 3)
    a[0, 0] = np.inf
    b[1, 2] = np.nan

    def up(array: Array) -> Node:
        return leaf(device.upload(array), array.shape, dtypes.float32, device)

    found = read(primitives.contract(up(a), up(b)))
    with np.errstate(invalid="ignore"):
        exact = a.astype(np.float64) @ b
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-3)


def test_half_floats_are_summed_in_float32() -> None:
    a, b = (
        leaf(
            np.ones((4, 9000) if first else (9000, 4), np.float16),
            (4, 9000) if first else (9000, 4),
            dtypes.float16,
            CPU,
        )
        for first in (True, False)
    )
    kernels = lowered(primitives.contract(a, b))
    assert [kernel.buffers[-1].dtype.name for kernel in kernels] == ["float32", "float16"]
