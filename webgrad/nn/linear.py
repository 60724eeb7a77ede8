"""Layers of products: linear, bilinear, and tables of vectors, read one by one or in bags.

In: tensors whose last axis is the features (of an embedding: integers). Out: tensors with other features
along it. Weights lie as PyTorch's: (out, in).
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from . import functional as F
from . import init
from .checks import check_features, check_sizes
from .module import Module
from .parameter import Parameter

__all__ = ["Bilinear", "Embedding", "EmbeddingBag", "Linear"]


class Linear(Module):
    """y = x Wᵀ + b, along the last axis.

    >>> layer = wg.nn.Linear(3, 2)
    >>> layer(wg.zeros((5, 3))).shape, layer.weight.shape
    ((5, 2), (2, 3))
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        check_sizes("Linear", in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(wg.empty((out_features, in_features), dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(wg.empty(out_features, dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All uniform within ± 1 / √in_features."""
        bound = 1 / math.sqrt(self.in_features)
        for parameter in self.parameters(recurse=False):
            init.uniform_(parameter, -bound, bound)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (…, in_features) → (…, out_features)."""
        check_features(self, x, self.in_features)
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class Bilinear(Module):
    """y = x₁ᵀ A x₂ + b, with one matrix A for each feature of the output.

    >>> wg.nn.Bilinear(3, 4, 2)(wg.zeros((5, 3)), wg.zeros((5, 4))).shape
    (5, 2)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes(
            "Bilinear", in1_features=in1_features, in2_features=in2_features, out_features=out_features
        )
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(wg.empty(shape, dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(wg.empty(out_features, dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All uniform within ± 1 / √in1_features."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters(recurse=False):
            init.uniform_(parameter, -bound, bound)

    def forward(self, x1: wg.Tensor, x2: wg.Tensor) -> wg.Tensor:
        """x1 (…, in1_features), x2 (…, in2_features) → (…, out_features)."""
        check_features(self, x1, self.in1_features)
        check_features(self, x2, self.in2_features)
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class _Table(Module):
    """What tables of vectors share: the weight, and which rows are special."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_sizes(name, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise wg.ArgumentError(
                f"{name}: padding_idx {padding_idx} is not a row of {num_embeddings} embeddings"
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.weight = Parameter(wg.empty((num_embeddings, embedding_dim), dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal; the row of padding_idx zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with wg.no_grad():
                self.weight[self.padding_idx] = 0.0

    @classmethod
    def from_pretrained(
        cls, embeddings: wg.Tensor, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> Any:
        """A layer of rows that are there already; frozen unless told otherwise.

        >>> wg.nn.Embedding.from_pretrained(wg.eye(3))(wg.asarray(1)).tolist()
        [0.0, 1.0, 0.0]
        """
        if embeddings.ndim != 2:
            raise wg.ShapeError(
                f"{cls.__name__}: the rows are a matrix (rows, features), not {embeddings.shape}"
            )
        rows, features = embeddings.shape
        layer: Any = cls(rows, features, padding_idx=padding_idx, **options)
        layer.weight = Parameter(embeddings, requires_grad=not freeze)
        return layer

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Embedding(_Table):
    """y = W[x]: a row of the weight for each integer; the row of padding_idx is zero and stays zero.

    With `max_norm` rows that are read and longer than it become shorter. With `scale_grad_by_freq` a row's
    gradient is divided by how often the row occurs.

    >>> wg.nn.Embedding(10, 4)(wg.asarray([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        how = (padding_idx, max_norm, norm_type, scale_grad_by_freq)
        super().__init__(num_embeddings, embedding_dim, *how, device, dtype)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (…) → (…, embedding_dim)."""
        how = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)
        return F.embedding(x, self.weight, *how)


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the rows that each bag of integers names.

    >>> layer = wg.nn.EmbeddingBag(10, 4, mode="sum")
    >>> layer(wg.asarray([1, 2, 3]), wg.asarray([0, 2])).shape
    (2, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        how = (padding_idx, max_norm, norm_type, scale_grad_by_freq)
        super().__init__(num_embeddings, embedding_dim, *how, device, dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(
        self, x: wg.Tensor, offsets: wg.Tensor | None = None, per_sample_weights: wg.Tensor | None = None
    ) -> wg.Tensor:
        """x (bags, entries), or x (entries,) with the offsets of bags → (bags, embedding_dim)."""
        return F.embedding_bag(
            x,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"
