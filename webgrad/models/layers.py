"""The layers that published models share: projections, norms and embeddings over stored weights.

In: matrices, dense or quantised. Out: modules. A projection may hold several matrices that read the same
input, joined into one where they are stored alike: queries, keys and values are one product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import webgrad as wg
from webgrad import nn

from .published_weights import Matrix, Published

__all__ = ["ACTIVATIONS", "Embedding", "LayerNorm", "Projection", "RMSNorm"]


def _gelu_tanh(x: wg.Tensor) -> wg.Tensor:
    return wg.gelu(x, approximate="tanh")


ACTIVATIONS: Mapping[str, Any] = {"silu": wg.silu, "gelu": wg.gelu, "gelu_tanh": _gelu_tanh, "relu": wg.relu}


def _frozen(value: Matrix) -> Any:
    """A dense tensor as a parameter that asks for no gradient; quantised ones as they are."""
    return nn.Parameter(value, requires_grad=False) if isinstance(value, wg.Tensor) else value


class Projection(nn.Module):
    """x by one or several matrices (outputs, inputs); biases where there are any or `biased` says so."""

    def __init__(
        self,
        published: Published,
        names: Sequence[str],
        inputs: int,
        outputs: Sequence[int],
        biased: bool = False,
    ) -> None:
        super().__init__()
        self.outputs = tuple(outputs)
        shapes = [(each, inputs) for each in outputs]
        weights = published.matrix([f"{each}.weight" for each in names], shapes)
        biases: list[wg.Tensor | None] = [
            published.vector(f"{name}.bias", count) if biased or f"{name}.bias" in published else None
            for name, count in zip(names, outputs, strict=True)
        ]
        if len(weights) == 1 and len(outputs) > 1:
            biases = [_joined(biases, outputs)]
        self._stored = [("weight", "bias"), *((f"weight{at}", f"bias{at}") for at in range(1, len(weights)))]
        for (weight, bias), matrix, vector in zip(self._stored, weights, biases, strict=True):
            setattr(self, weight, _frozen(matrix))
            setattr(self, bias, None if vector is None else _frozen(vector))

    def forward(self, x: wg.Tensor) -> list[wg.Tensor]:
        """One result for each matrix that was named."""
        results = [wg.linear(x, getattr(self, weight), getattr(self, bias)) for weight, bias in self._stored]
        if len(results) == len(self.outputs):
            return results
        ends = [sum(self.outputs[: number + 1]) for number in range(len(self.outputs))]
        return [results[0][..., end - count : end] for end, count in zip(ends, self.outputs, strict=True)]

    def extra_repr(self) -> str:
        """The matrices."""
        return ", ".join(_told(getattr(self, weight)) for weight, _ in self._stored)


def _joined(biases: Sequence[wg.Tensor | None], outputs: Sequence[int]) -> wg.Tensor | None:
    given = [each for each in biases if each is not None]
    if not given:
        return None
    device = given[0].device
    return wg.concat(
        [
            wg.zeros(count, device=device) if each is None else each
            for each, count in zip(biases, outputs, strict=True)
        ]
    )


def _told(weight: Matrix) -> str:
    kind = weight.dtype.name if isinstance(weight, wg.Tensor) else weight.format
    return f"{kind} {tuple(weight.shape)}"


class RMSNorm(nn.RMSNorm):
    """A norm with stored weights; `offset` is added to them."""

    def __init__(self, published: Published, name: str, size: int, eps: float, offset: float = 0.0) -> None:
        super().__init__(size, eps=eps, device=published.device)
        self.weight = _frozen(published.vector(f"{name}.weight", size) + offset)


class LayerNorm(nn.LayerNorm):
    """A norm with a mean, with stored weights and biases."""

    def __init__(self, published: Published, name: str, size: int, eps: float) -> None:
        super().__init__(size, eps=eps, device=published.device)
        self.weight = _frozen(published.vector(f"{name}.weight", size))
        self.bias = _frozen(published.vector(f"{name}.bias", size))


class Embedding(nn.Module):
    """Rows of a matrix by token; the same matrix may give the logits."""

    def __init__(self, published: Published, name: str, count: int, width: int) -> None:
        super().__init__()
        (weight,) = published.matrix([f"{name}.weight"], [(count, width)])
        self.weight = _frozen(weight)

    def forward(self, ids: wg.Tensor) -> wg.Tensor:
        """Rows in float32."""
        weight = self.weight
        rows = wg.take(weight, ids, axis=0) if isinstance(weight, wg.Tensor) else weight.take(ids)
        return rows.astype(wg.float32, copy=False)

    def logits(self, x: wg.Tensor) -> wg.Tensor:
        """How well each token's row fits."""
        return wg.linear(x, self.weight)

    def extra_repr(self) -> str:
        """The matrix."""
        return _told(self.weight)
