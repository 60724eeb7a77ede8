"""A new length is not a new pipeline: over a hundred random shapes there are few texts, the keys."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.graph.helpers import apply, tensor, value
from tests.lower.helpers import texts
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import gelu, softmax
from webgrad.functions.learning.attention import scaled_dot_product_attention
from webgrad.functions.learning.normalisation import layer_norm
from webgrad.graph.node import Node
from webgrad.ops import primitives
from webgrad.tensor import Tensor

pytestmark = pytest.mark.golden

SHAPES = 100
MOST = 12
Build = Callable[[random.Random], Node | Tensor]


def size(draw: random.Random, most: int = 600) -> int:
    """Any length, or one that goes by fours, as most lengths in programs do."""
    return draw.choice([draw.randint(2, most), 4 * draw.randint(1, most // 4)])


def some_gelu(draw: random.Random) -> Tensor:
    shape = [size(draw, 200) for _ in range(draw.randint(1, 3))]
    return gelu(tensor(*shape) * tensor(*shape) + tensor(*shape))


def some_softmax(draw: random.Random) -> Tensor:
    return softmax(tensor(size(draw), size(draw, 5000)))


def some_layer_norm(draw: random.Random) -> Tensor:
    width = size(draw, 5000)
    return layer_norm(tensor(size(draw), width), width, tensor(width), tensor(width))


def some_transposed_slice(draw: random.Random) -> Node:
    rows, columns = size(draw) + 2, size(draw) + 2
    starts = [draw.randint(0, each - 2) for each in (columns, rows)]
    ranges = tuple(
        (start, draw.randint(start + 1, most), 1) for start, most in zip(starts, (columns, rows), strict=True)
    )
    return apply("exp", primitives.slice_(primitives.permute(value(rows, columns), (1, 0)), ranges))


def some_middle_broadcast(draw: random.Random) -> Node:
    a, b, c = size(draw, 200) + 1, size(draw, 200) + 1, size(draw, 200) + 1
    return apply("add", value(a, 1, c), value(a, b, c))


def some_matmul(draw: random.Random) -> Node:
    m, k, n = size(draw), size(draw), size(draw)
    return primitives.contract(value(m, k), value(k, n))


def some_attention(draw: random.Random) -> Tensor:
    """Several batches and heads, any number of queries and keys; heads of 64 columns."""
    batches, heads = draw.randint(2, 3), draw.randint(2, 4)
    q, k = (tensor(batches, heads, size(draw), 64) for _ in range(2))
    causal = draw.random() < 0.5
    return scaled_dot_product_attention(
        q, k, tensor(*k.shape), is_causal=causal, window=draw.choice([None, size(draw)]), length=1
    )


BUILDERS: dict[str, Build] = {
    "gelu": some_gelu,
    "softmax": some_softmax,
    "layer_norm": some_layer_norm,
    "transposed_slice": some_transposed_slice,
    "middle_broadcast": some_middle_broadcast,
    "matmul": some_matmul,
    "attention": some_attention,
}


@pytest.mark.parametrize("name", BUILDERS)
def test_random_shapes_share_pipelines(name: str, profile: DeviceProfile) -> None:
    draw = random.Random(name)
    found: set[str] = set()
    for _ in range(SHAPES):
        found.update(texts(BUILDERS[name](draw), profile=profile))
    assert 1 <= len(found) <= MOST


@pytest.mark.parametrize("name", BUILDERS)
def test_the_same_shapes_give_the_same_texts(name: str) -> None:
    first = texts(BUILDERS[name](random.Random(1)))
    again = texts(BUILDERS[name](random.Random(1)))
    assert first == again
    assert first


def test_run_time_numbers_are_not_in_the_text() -> None:
    def scaled(factor: float) -> list[str]:
        return texts(apply("multiply", value(100), factor))

    assert scaled(2.0) == scaled(0.123) == scaled(float("nan"))


@pytest.mark.parametrize("queries", [1, 40])
def test_lengths_and_windows_of_attention_are_not_in_the_text(queries: int, profile: DeviceProfile) -> None:
    def cache(length: int, window: int | None, room: int) -> list[str]:
        q, k = tensor(1, 4, queries, 64), tensor(1, 4, room, 64)
        made = scaled_dot_product_attention(q, k, tensor(*k.shape), window=window, length=length)
        return texts(made, profile=profile)

    assert cache(1, None, 2048) == cache(2000, None, 2048) == cache(5, 100, 2048)
    assert cache(1, None, 1536) == cache(1, None, 1024)
