"""Composed ops on a GPU: fused kernels give what the cpu gives, special values, small types and all."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scripts.accuracy import lacks
from webgrad.functions.array import manipulation as move
from webgrad.functions.array import products, reductions, reshaping, scans, sorting
from webgrad.functions.array.creation import asarray
from webgrad.functions.learning import activations, images, losses, normalisation, positions
from webgrad.tensor import Tensor

INF, NAN = np.inf, np.nan
pytestmark = pytest.mark.gpu


def inputs(device: str) -> Any:
    """The same tensors on any device."""
    generator = np.random.default_rng(0)

    def normal(*shape: int, dtype: Any = np.float32) -> Tensor:
        return asarray(generator.normal(size=shape).astype(dtype), device=device)

    special = [[NAN, 1, 2], [INF, -INF, 0], [-INF, -INF, -INF], [1, 2, NAN], [0, -0.0, 3]]
    return SimpleNamespace(
        x=normal(5, 7),
        y=normal(5, 7),
        half=normal(5, 7, dtype=np.float16),
        seven=normal(7),
        six=normal(6),
        positive=asarray(generator.random(6).astype(np.float32) + 0.5, device=device),
        share=asarray(generator.random((5, 7)).astype(np.float32), device=device),
        images=normal(2, 6, 4, 5),
        left=normal(2, 3, 4),
        right=normal(2, 4, 5),
        places=asarray(np.array([0, 3, -100, 6, 2], np.int32), device=device),
        whole=asarray(generator.integers(-9, 9, size=(5, 7)).astype(np.int32), device=device),
        bytes=asarray(generator.integers(0, 5, size=(5, 7)).astype(np.uint8), device=device),
        flags=asarray(generator.random((5, 7)) < 0.5, device=device),
        special=asarray(np.array(special, np.float32), device=device),
        empty=asarray(np.zeros((0, 3), np.float32), device=device),
    )


def at_special(function: Callable[[Tensor], Tensor]) -> Callable[[Any], Tensor]:
    return lambda of: function(of.special)


SPECIAL_ACTIVATIONS = (
    *("relu", "relu6", "leaky_relu", "elu", "selu", "silu", "mish", "softplus"),
    *("hardswish", "hardsigmoid", "hardtanh", "softmax", "log_softmax"),
    *("celu", "logsigmoid", "softsign", "tanhshrink", "softshrink", "hardshrink"),
)
CASES: dict[str, Callable[[Any], Tensor]] = {
    # Reductions
    "sum": lambda of: reductions.sum(of.x, 0),
    "sum of all": lambda of: reductions.sum(of.images),
    "sum of bytes": lambda of: reductions.sum(of.bytes),
    "sum of nothing": lambda of: reductions.sum(of.empty, 0),
    "prod": lambda of: reductions.prod(of.x, 1),
    "max with NaN": lambda of: reductions.max(of.special, 1),
    "min with NaN": lambda of: reductions.min(of.special, 0),
    "max of flags": lambda of: reductions.max(of.flags, 0),
    "mean": lambda of: reductions.mean(of.images, (1, 3), keepdims=True),
    "mean of halves": lambda of: reductions.mean(of.half, 0),
    "mean of nothing": lambda of: reductions.mean(of.empty, 0),
    "var": lambda of: reductions.var(of.x, 1, correction=1),
    "var by nothing": lambda of: reductions.var(of.x, 1, correction=7),
    "std": lambda of: reductions.std(of.x),
    "any": lambda of: reductions.any(of.flags, 1),
    "all": lambda of: reductions.all(of.whole, 0),
    "argmax with NaN": lambda of: reductions.argmax(of.special, 1),
    "argmin with NaN": lambda of: reductions.argmin(of.special, 1),
    "argmax of all": lambda of: reductions.argmax(of.x),
    "count_nonzero": lambda of: reductions.count_nonzero(of.whole, 1),
    "norm": lambda of: reductions.norm(of.x, axis=1),
    "norm 3": lambda of: reductions.norm(of.x, 3, 1),
    "logsumexp": lambda of: reductions.logsumexp(of.special, 1),
    # Movement
    "roll": lambda of: move.roll(of.x, (2, 3), (0, 1)),
    "roll of all": lambda of: move.roll(of.x, 11),
    "concat of many": lambda of: move.concat([of.x + number for number in range(8)], 1),
    "concat of bytes": lambda of: move.concat([of.bytes, of.bytes + 1], 0),
    "stack": lambda of: move.stack([of.x, of.y], 1),
    "repeat": lambda of: move.repeat(of.x, 3, 1),
    "repeat each": lambda of: move.repeat(of.x, [1, 0, 2, 3, 1], 0),
    "tile": lambda of: move.tile(of.x, (2, 1, 3)),
    "pad": lambda of: move.pad(of.x, ((1, 2), (0, 3)), constant_values=2.5),
    "pad bytes": lambda of: move.pad(of.bytes, 1),
    "pad by edges": lambda of: move.pad(of.x, 4, "edge"),
    "pad by reflection": lambda of: move.pad(of.x, 9, "reflect"),
    "tril": lambda of: move.tril(of.x, 1),
    "triu of flags": lambda of: move.triu(of.flags, -1),
    "diagonal": lambda of: move.diagonal(of.images, 1, 1, 3),
    "diag": lambda of: move.diag(of.seven, -2),
    "one_hot": lambda of: move.one_hot(of.bytes, 5),
    "flip": lambda of: reshaping.flip(of.images, (1, 3)),
    "moveaxis": lambda of: reshaping.moveaxis(of.images, 0, 2) + 1,
    "split": lambda of: move.split(of.x, [2, 3], 1)[1],
    "unstack": lambda of: move.unstack(of.images, 1)[3],
    # Activations
    **{name: at_special(getattr(activations, name)) for name in SPECIAL_ACTIVATIONS},
    "gelu": lambda of: activations.gelu(of.x),
    "gelu by tanh": lambda of: activations.gelu(of.x, "tanh"),
    "glu": lambda of: activations.glu(of.images, 1),
    "softmax of halves": lambda of: activations.softmax(of.half),
    "softmax of columns": lambda of: activations.softmax(of.x, 0),
    "softmax of all": lambda of: activations.softmax(of.x, (0, 1)),
    # Normalisation
    "layer_norm": lambda of: normalisation.layer_norm(of.x, 7, of.seven, of.seven),
    "layer_norm of halves": lambda of: normalisation.layer_norm(of.half, 7, of.seven),
    "rms_norm": lambda of: normalisation.rms_norm(of.x, 7, of.seven),
    "group_norm": lambda of: normalisation.group_norm(of.images, 3, of.six, of.six),
    "batch_norm": lambda of: normalisation.batch_norm(of.images, of.six, of.positive, of.six, of.six),
    "batch_norm, training": lambda of: normalisation.batch_norm(of.images, None, None, training=True),
    "instance_norm": lambda of: normalisation.instance_norm(of.images, None, None, of.six),
    "normalize": lambda of: normalisation.normalize(of.x),
    # Losses
    "cross_entropy": lambda of: losses.cross_entropy(of.x, of.places),
    "cross_entropy, all of it": lambda of: losses.cross_entropy(
        of.x, of.places, of.share[0], label_smoothing=0.1
    ),
    "cross_entropy, none": lambda of: losses.cross_entropy(of.x, of.places, reduction="none"),
    "cross_entropy of shares": lambda of: losses.cross_entropy(of.x, of.share),
    "nll_loss": lambda of: losses.nll_loss(of.x, of.places),
    "mse_loss": lambda of: losses.mse_loss(of.x, of.y),
    "huber_loss": lambda of: losses.huber_loss(of.x, of.y),
    "bce with logits": lambda of: losses.binary_cross_entropy_with_logits(
        of.x, of.share, pos_weight=of.seven
    ),
    "bce": lambda of: losses.binary_cross_entropy(of.share, of.share),
    "kl_div": lambda of: losses.kl_div(of.x, of.share),
    # Products
    "matmul": lambda of: of.left @ of.right,
    "matmul of integers": lambda of: of.whole @ of.whole.T,
    "matrix by vector": lambda of: of.x @ of.seven,
    "vector by vector": lambda of: of.seven @ of.seven,
    "tensordot": lambda of: products.tensordot(of.left, of.right, ((0, 2), (0, 1))),
    "einsum, permuted": lambda of: products.einsum("bij,bjk->ikb", of.left, of.right),
    "einsum of three": lambda of: products.einsum("bij,bjk,bk->i", of.left, of.right, of.right[:, 0]),
    "einsum without a matrix": lambda of: products.einsum("ij,ij->j", of.x, of.y),
    "einsum of a diagonal": lambda of: products.einsum("ii->i", of.x[:, :5]),
    "outer": lambda of: products.outer(of.six, of.seven),
    "linear": lambda of: products.linear(of.x, of.y, of.x[:, 0]),
    # Images and positions
    "nearest": lambda of: images.interpolate(of.images, (7, 3)),
    "bilinear": lambda of: images.interpolate(of.images, (7, 3), mode="bilinear"),
    "bicubic": lambda of: images.interpolate(of.images, (7, 9), mode="bicubic"),
    "rotary": lambda of: positions.rotary_embedding(of.images, dims=4, offset=3),
    "rotary, interleaved": lambda of: positions.rotary_embedding(of.images[..., :4], interleaved=True),
}


@pytest.fixture(scope="module")
def on_both() -> tuple[Any, Any]:
    return inputs("webgpu"), inputs("cpu")


@pytest.mark.parametrize("name", CASES)
def test_a_gpu_gives_what_the_cpu_gives(name: str, on_both: tuple[Any, Any]) -> None:
    found, expected = (CASES[name](each) for each in on_both)
    assert found.dtype is expected.dtype
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
        return
    tolerance = 2**-10 if found.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(
        found.numpy().astype(np.float64), expected.numpy().astype(np.float64), rtol=tolerance, atol=1e-5
    )


IN_FLOAT64: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda x: reductions.mean(x, 1),
    "var": lambda x: reductions.var(x, 0),
    "std": reductions.std,
    "logsumexp": lambda x: reductions.logsumexp(x, 1),
    "softmax": activations.softmax,
    "log_softmax": activations.log_softmax,
    "layer_norm": lambda x: normalisation.layer_norm(x, (7,)),
    "cumulative_sum": lambda x: scans.cumulative_sum(x, axis=1),
    "sort": sorting.sort,
    "searchsorted": lambda x: sorting.searchsorted(sorting.sort(x[0]), x),
    "matmul": lambda x: x @ x.T,
    "narrowed": lambda x: x.astype("float32").astype("float64"),
}


@pytest.mark.parametrize("name", IN_FLOAT64)
def test_float64_on_a_gpu_has_its_digits(name: str) -> None:
    if lacks("f64"):
        pytest.skip("the adapter has no f64")
    values = np.random.default_rng(1).normal(size=(5, 7)) * 9
    found, expected = (IN_FLOAT64[name](asarray(values, device=each)) for each in ("webgpu", "cpu"))
    assert found.dtype is expected.dtype
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-14, atol=1e-14)
