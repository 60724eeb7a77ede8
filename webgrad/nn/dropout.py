"""Dropout as modules: while `training` they drop, in `eval()` they give x back.

In: a tensor of floats. Out: one of the same shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import webgrad as wg

from . import dropout_functions
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    _function: Callable[..., wg.Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        dropout_functions.check_probability(type(self).__name__, p)
        self.p, self.inplace = p, inplace

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x with some of it dropped."""
        return type(self)._function(x, self._watched("p"), self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """y = x · m / (1 - p), m being 0 with probability p for each element, else 1.

    >>> wg.nn.Dropout(0.9).eval()(wg.ones(2)).tolist()
    [1.0, 1.0]
    """

    _function = staticmethod(dropout_functions.dropout)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of x (N, C, L).

    >>> wg.nn.Dropout1d(1.0)(wg.ones((1, 2, 3))).sum().item()
    0.0
    """

    _function = staticmethod(dropout_functions.dropout1d)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of x (N, C, H, W).

    >>> wg.nn.Dropout2d(1.0)(wg.ones((1, 2, 3, 3))).sum().item()
    0.0
    """

    _function = staticmethod(dropout_functions.dropout2d)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of x (N, C, D, H, W).

    >>> wg.nn.Dropout3d(1.0)(wg.ones((1, 2, 3, 3, 3))).sum().item()
    0.0
    """

    _function = staticmethod(dropout_functions.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout beside `SELU`: dropped elements are its floor, mean and variance stay.

    >>> wg.nn.AlphaDropout(0.5).eval()(wg.ones(2)).tolist()
    [1.0, 1.0]
    """

    _function = staticmethod(dropout_functions.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels of x (N, C, …).

    >>> wg.nn.FeatureAlphaDropout(0.5).eval()(wg.ones((1, 2))).tolist()
    [[1.0, 1.0]]
    """

    _function = staticmethod(dropout_functions.feature_alpha_dropout)
