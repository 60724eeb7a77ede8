"""A loaded model as a module: its weights are parameters, which train, save and load as those of any other.

In: a `Program`. Out: an `nn.Module`. The invariant: each weight of the file is one parameter or buffer, of
the same name, and none is another's.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

import webgrad as wg
from webgrad import nn

__all__ = ["OnnxModule"]

Call = Callable[[tuple[Any, ...], Mapping[str, Any], Mapping[str, wg.Tensor]], Any]


class OnnxModule(nn.Module):
    """An ONNX model with its weights as parameters, and integers as buffers. Made by `Model.to_module`."""

    def __init__(self, call: Call, weights: Mapping[str, wg.Tensor]) -> None:
        super().__init__()
        self._call_with = call
        self._names: dict[str, str] = {}  # in the file → here
        for name, tensor in weights.items():
            self._names[name] = self._entered(name, tensor)

    def _entered(self, name: str, tensor: wg.Tensor) -> str:
        """Register a weight, and give its name here; what is before a dot is a module of that name."""
        *path, last = name.split(".")
        owner: nn.Module = self
        found = []
        for each in path:
            found.append(_free_name(owner, each, dict(owner.named_children())))
            if not hasattr(owner, found[-1]):
                owner.register_module(found[-1], nn.Module())
            owner = getattr(owner, found[-1])
        found.append(_free_name(owner, last))
        if tensor.dtype.kind in "fc":
            owner.register_parameter(found[-1], nn.Parameter(tensor))
        else:
            owner.register_buffer(found[-1], tensor)
        return ".".join(found)

    def forward(self, *args: Any, **named: Any) -> Any:
        """The only output, or all of them by name."""
        every = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        weights = {name: every[here] for name, here in self._names.items()}
        found = self._call_with(args, named, weights)
        return found[0] if len(found) == 1 else found


def _free_name(owner: nn.Module, name: str, allowed: Container[str] = ()) -> str:
    """A name that a module's own attributes do not have."""
    name = name or "_"
    while hasattr(owner, name) and name not in allowed:
        name += "_"
    return name
