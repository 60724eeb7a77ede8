"""torch.FloatTensor, torch.LongTensor and the like: types of tensors from before there were dtypes.

In: sizes, values, or another tensor. Out: tensors of the type's dtype. `isinstance` asks for the dtype and
the device, `x.type(torch.LongTensor)` converts.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from .devices import place
from .tensor import Tensor, adopt, legacy

__all__ = ["NAMES", "TensorType", "types_of"]

# dtype → the name of its type, without what is in front and behind
NAMES = {
    wg.float32: "Float", wg.float64: "Double", wg.float16: "Half", wg.bfloat16: "BFloat16", wg.int32: "Int",
    wg.int64: "Long", wg.int16: "Short", wg.int8: "Char", wg.uint8: "Byte", wg.bool: "Bool",
}  # fmt: skip


class TensorType:
    """What makes tensors of a dtype, on the default device or on the best one.

    >>> import webgrad.torch as torch
    >>> torch.LongTensor([1, 2]).dtype, isinstance(torch.zeros(2), torch.FloatTensor)
    (webgrad.int64, True)
    """

    def __init__(self, dtype: Any, on_gpu: bool) -> None:
        self.dtype, self.on_gpu = dtype, on_gpu
        self.__name__ = f"{NAMES[dtype]}Tensor"
        self.__module__ = "torch.cuda" if on_gpu else "torch"

    def __call__(self, *data: Any, device: Any = None) -> Any:
        where = place("cuda") if self.on_gpu else place(device)
        return adopt(legacy(data, where, self.dtype))

    def __instancecheck__(self, value: Any) -> bool:
        if not isinstance(value, Tensor) or value.dtype is not self.dtype:
            return False
        return not self.on_gpu or value.device.type != "cpu"

    def __repr__(self) -> str:
        return f"<class '{self.__module__}.{self.__name__}'>"


def types_of(on_gpu: bool) -> dict[str, TensorType]:
    """All types by their names, of torch or of torch.cuda."""
    return {f"{name}Tensor": TensorType(dtype, on_gpu) for dtype, name in NAMES.items()}
