"""Softmax over very many classes, rare ones in clusters with fewer features (Grave et al., 2017).

In: features (N, in_features), and classes in the order of how frequent they are. Out: log-probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import webgrad as wg

from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class AdaptiveLoss(NamedTuple):
    """The log-probability of each sample's class, and minus their mean."""

    output: wg.Tensor
    loss: wg.Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probabilities of classes of which rare ones are in clusters, from `cutoffs` on; and the loss.

    The frequent classes and the clusters are classes of a head; each cluster projects its features to
    div_value times fewer than the one before.

    >>> layer = wg.nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> output, loss = layer(wg.ones((3, 16)), wg.asarray([0, 7, 19]))
    >>> output.shape, loss.shape, layer.log_prob(wg.ones((3, 16))).shape
    ((3,), (), (3, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        limits = [int(each) for each in cutoffs]
        rising = all(a < b for a, b in zip([0, *limits], [*limits, n_classes], strict=True))
        if not limits or not rising:
            raise wg.ArgumentError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs are integers that rise, above 0 and below the "
                f"{n_classes} classes, not {list(cutoffs)}"
            )
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs, self.head_bias = [*limits, n_classes], head_bias
        self.shortlist_size, self.n_clusters = limits[0], len(limits)
        self.head_size = self.shortlist_size + self.n_clusters
        place = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for at in range(self.n_clusters):
            features = int(in_features // (div_value ** (at + 1)))
            classes = self.cutoffs[at + 1] - self.cutoffs[at]
            self.tail.append(
                Sequential(
                    Linear(in_features, features, bias=False, **place),
                    Linear(features, classes, bias=False, **place),
                )
            )

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        self.head.reset_parameters()
        for into, out in map(tuple, self.tail):
            into.reset_parameters()
            out.reset_parameters()

    def forward(self, x: wg.Tensor, target: wg.Tensor) -> AdaptiveLoss:
        """The log-probability of each sample's class, and the loss."""
        if (x.ndim, target.ndim) not in ((2, 1), (1, 0)) or x.shape[:-1] != target.shape:
            raise wg.ShapeError(
                f"AdaptiveLogSoftmaxWithLoss takes x (N, {self.in_features}) and classes (N,), not {x.shape} "
                f"and {target.shape}"
            )
        index = wg.unsqueeze(target, -1)
        head = wg.log_softmax(self.head(x), axis=-1)
        found = wg.take_along_axis(head, wg.clip(index, max=self.shortlist_size - 1), -1)
        for at, part in enumerate(self.tail):
            low, high = self.cutoffs[at : at + 2]
            inside = wg.log_softmax(part(x), axis=-1)
            place = wg.clip(index - low, 0, high - low - 1)
            own = head[..., self.shortlist_size + at : self.shortlist_size + at + 1]
            rare = own + wg.take_along_axis(inside, place, -1)
            found = wg.where((index >= low) & (index < high), rare, found)
        known = (index >= 0) & (index < self.n_classes)
        output = wg.squeeze(wg.where(known, found, wg.nan), -1)
        return AdaptiveLoss(output, -wg.mean(output))

    def log_prob(self, x: wg.Tensor) -> wg.Tensor:
        """The log-probabilities of all classes."""
        head = wg.log_softmax(self.head(x), axis=-1)
        parts = [head[..., : self.shortlist_size]]
        for at, part in enumerate(self.tail):
            own = head[..., self.shortlist_size + at : self.shortlist_size + at + 1]
            parts.append(own + wg.log_softmax(part(x), axis=-1))
        return wg.concat(parts, axis=-1)

    def predict(self, x: wg.Tensor) -> wg.Tensor:
        """The most probable class of each sample."""
        return wg.argmax(self.log_prob(x), -1)
