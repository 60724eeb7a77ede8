"""torch.testing: comparing tensors in tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import webgrad as wg

from . import creation, random

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    msg: Any = None,
    **options: Any,
) -> None:
    """Fail unless two tensors, or sequences of them, have the same shape and dtype and are close.

    >>> import webgrad.torch as torch
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2))
    """
    if isinstance(actual, tuple | list):
        assert len(actual) == len(expected), "The length of the sequences mismatch"
        for one, other in zip(actual, expected, strict=True):
            assert_close(
                one, other, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=check_dtype, msg=msg
            )
        return
    first, second = (each if isinstance(each, wg.Tensor) else wg.asarray(each) for each in (actual, expected))
    assert first.shape == second.shape, (
        f"The values for attribute 'shape' do not match: {first.shape} != {second.shape}."
    )
    if check_dtype:
        assert first.dtype is second.dtype, (
            f"The values for attribute 'dtype' do not match: {first.dtype} != {second.dtype}."
        )
    relative, absolute = _TOLERANCES.get(first.dtype.name, (0.0, 0.0))
    np.testing.assert_allclose(
        _values(first),
        _values(second),
        rtol=relative if rtol is None else rtol,
        atol=absolute if atol is None else atol,
        equal_nan=equal_nan,
        err_msg="" if msg is None else str(msg),
    )


def _values(x: Any) -> Any:
    wide = x.detach().to(wg.float64) if x.dtype.kind == "f" else x.detach()
    return wide.numpy()


assert_allclose = assert_close


def make_tensor(
    *shape: Any, dtype: Any, device: Any = None, low: Any = None, high: Any = None, **options: Any
) -> Any:
    """Random numbers between two bounds."""
    sizes = creation.sizes(shape)
    kind = wg.as_dtype(dtype).kind
    first, last = (-9 if low is None else low), (10 if high is None else high)
    if kind == "f":
        return creation.made(
            wg.random.uniform(shape=sizes, low=first, high=last, dtype=dtype),
            options.get("requires_grad", False),
        )
    return random.integers(0 if kind != "i" else int(first), int(last), sizes, wg.int32, None, None).to(dtype)
