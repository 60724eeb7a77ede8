"""Parameters as one vector, and back.

In: parameters. Out: a vector of all their elements, which gradients go through; or the parameters, changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import webgrad as wg
from webgrad import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other.

    >>> wg.nn.utils.parameters_to_vector([wg.ones((1, 2)), wg.zeros(1)]).tolist()
    [1.0, 1.0, 0.0]
    """
    return wg.concat([each.reshape((-1,)) for each in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the elements of a vector, in order.

    >>> w = wg.nn.Parameter(wg.zeros((1, 2)))
    >>> wg.nn.utils.vector_to_parameters(wg.asarray([3.0, 4.0]), [w])
    >>> w.tolist()
    [[3.0, 4.0]]
    """
    if not isinstance(vec, Tensor):
        raise wg.DTypeError(f"vector_to_parameters takes a tensor, not a {type(vec).__name__}")
    every, at = list(parameters), 0
    count = sum(each.numel() for each in every)
    if vec.shape != (count,):
        raise wg.ShapeError(f"vector_to_parameters: the parameters have {count} elements, not {vec.shape}")
    with wg.no_grad():
        for each in every:
            each[...] = vec[at : at + each.numel()].detach().reshape(each.shape)
            at += each.numel()
