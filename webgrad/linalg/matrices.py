"""What the functions of this package share: arguments checked and made ready, and small pieces of matrices.

In: what a user gave. Out: tensors of our own (a user's may get another value before a gradient is asked for)
in a dtype that LAPACK knows. The invariant: what does not fit is refused here, at the call, by the function's
name.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg
from webgrad import Tensor

__all__ = [
    "adjoint",
    "alike",
    "asks_for_gradient",
    "given",
    "identity",
    "on_diagonal",
    "ready",
    "reciprocal_gaps",
    "refuse_gradient",
    "refuse_oblong",
    "restored",
    "square",
    "stacked",
    "wide",
]


def given(name: str, x: Any) -> Tensor:
    """A tensor of our own with the values that a user gave."""
    if isinstance(x, Tensor):
        return Tensor.__copy__(x)  # that of a parameter would be a parameter without its history
    if isinstance(x, bool | int | float | complex | str | bytes) or x is None:
        raise wg.DTypeError(f"linalg.{name} takes tensors, not a {type(x).__name__}: use webgrad.asarray")
    return wg.asarray(x)


def stacked(name: str, x: Any) -> Tensor:
    """A stack of matrices, or a single one."""
    matrices = given(name, x)
    if matrices.ndim < 2:
        raise wg.ShapeError(
            f"linalg.{name} takes matrices, or stacks of them along the first axes, and a tensor of shape "
            f"{matrices.shape} has no rows and columns: reshape it"
        )
    return matrices


def ready(name: str, x: Any) -> Tensor:
    """A stack of matrices of floats or complex numbers, the 16-bit ones in float32."""
    return wide(name, stacked(name, x))


def wide(name: str, x: Tensor) -> Tensor:
    """The same in a dtype that LAPACK knows; integers and bools are refused."""
    if x.dtype.kind not in "fc":
        raise wg.DTypeError(
            f"linalg.{name} is not offered for {x.dtype.name}, only for floats and complex numbers: convert "
            "with x.astype(webgrad.float32)"
        )
    return x.astype(x.dtype.wide, copy=False)


def square(name: str, x: Any) -> Tensor:
    """The same of square matrices."""
    matrices = ready(name, x)
    refuse_oblong(name, matrices)
    return matrices


def refuse_oblong(name: str, x: Tensor) -> None:
    """Raise where matrices have more rows than columns, or fewer."""
    if x.shape[-1] != x.shape[-2]:
        raise wg.ShapeError(
            f"linalg.{name} takes square matrices, and those of a tensor of shape {x.shape} have "
            f"{x.shape[-2]} rows and {x.shape[-1]} columns"
        )


def restored(result: Tensor, x: Any) -> Tensor:
    """A result in the 16-bit dtype that a user's tensor has; in its own where that has none."""
    dtype = getattr(x, "dtype", None)
    is_narrow = isinstance(dtype, wg.DType) and dtype.is_half
    return result.astype(dtype) if is_narrow and result.dtype.kind == "f" else result


def alike(name: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors of one device in the dtype that they promote to."""
    if a.device is not b.device:
        raise wg.DeviceError(
            f"linalg.{name}: one tensor is on {a.device.name}, the other on {b.device.name}: move one with "
            "to_device"
        )
    dtype = wg.promote(a.dtype, b.dtype)
    return a.astype(dtype, copy=False), b.astype(dtype, copy=False)


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return wg.conj(x).mT if x.dtype.kind == "c" else x.mT


def identity(x: Tensor) -> Tensor:
    """Where the diagonal of a stack's square matrices is, as bools."""
    return wg.eye(x.shape[-1], dtype=wg.bool, device=x.device)


def on_diagonal(values: Tensor, like: Tensor) -> Tensor:
    """Diagonal matrices of vectors along the last axis."""
    return wg.where(identity(values), values[..., None, :], 0.0).astype(like.dtype, copy=False)


def reciprocal_gaps(values: Tensor) -> Tensor:
    """1 / (values[j] - values[i]), and 0 on the diagonal; infinite where two are equal."""
    diagonal = identity(values)
    gaps = values[..., None, :] - values[..., :, None]
    return wg.where(diagonal, 0.0, 1.0 / wg.where(diagonal, 1.0, gaps))


def asks_for_gradient(x: Tensor) -> bool:
    """Whether a gradient may be asked for, so that what it needs should be computed with the rest."""
    return wg.is_grad_enabled() and x.requires_grad


def refuse_gradient(name: str, x: Tensor, otherwise: str) -> None:
    """Raise where a function without a gradient is given what asks for one."""
    if asks_for_gradient(x):
        raise wg.GradientError(
            f"linalg.{name} has no gradient, and this tensor of shape {x.shape} asks for one: {otherwise}, "
            "or call it with x.detach()"
        )
