"""einops on tensors: `einops.rearrange(x, …)` takes webgrad's tensors, and webgrad.torch's.

In: nothing. Out: einops' own list of backends with ours in it, as soon as a program has imported einops. It
finds backends among the subclasses of a class of its own, so that ours can only be made then.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["register"]

_BACKENDS = "einops._backends"


class _Finder:
    """Waits for einops: it finds the module where it is, and adds our backends once it has run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _BACKENDS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec and spec.loader
        if loader is None:
            return None
        run = loader.exec_module

        def run_and_add(module: ModuleType) -> None:
            run(module)
            _add_to(module)

        loader.exec_module = run_and_add
        return spec


def register() -> None:
    """Add our backends to einops: now where it is imported, else when it will be."""
    known = sys.modules.get(_BACKENDS)
    if known is not None:
        _add_to(known)
    else:
        sys.meta_path.insert(0, _Finder())


def _add_to(einops: ModuleType) -> None:
    """Subclasses of einops' own classes, which einops keeps and makes one of each when it meets a tensor."""
    base = getattr(einops, "AbstractBackend", None)
    if base is None:  # an einops that has no such class finds backends in another way
        return
    einops.WebgradBackend = type("WebgradBackend", (base,), dict(_METHODS))  # type: ignore[attr-defined]
    of_torch = getattr(einops, "TorchBackend", None)
    if of_torch is not None:
        own = {"framework_name": "webgrad.torch", "__init__": _with_torchs_namespace}
        einops.WebgradTorchBackend = type("WebgradTorchBackend", (of_torch,), own)  # type: ignore[attr-defined]


def _with_torchs_namespace(self: Any) -> None:
    self.torch = sys.modules["webgrad.torch"]


def _wg() -> Any:
    return sys.modules["webgrad"]


def _is_ours(self: Any, tensor: Any) -> bool:
    """Whether it is webgrad's; those of webgrad.torch have a backend of their own."""
    torch = sys.modules.get("webgrad.torch")
    return isinstance(tensor, _wg().Tensor) and not (torch and isinstance(tensor, torch.Tensor))


def _repeated(self: Any, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
    """New axes with their lengths: as views, nothing is copied."""
    for place in sorted(pos2len):
        x = _wg().unsqueeze(x, place)
    return _wg().expand(x, tuple(pos2len.get(axis, size) for axis, size in enumerate(x.shape)))


_METHODS: dict[str, Any] = {
    "framework_name": "webgrad",
    "is_appropriate_type": _is_ours,
    "from_numpy": lambda self, x: _wg().asarray(x),
    "to_numpy": lambda self, x: x.detach().numpy(),
    "arange": lambda self, start, stop: _wg().arange(start, stop),
    "reshape": lambda self, x, shape: _wg().reshape(x, tuple(shape)),
    "transpose": lambda self, x, axes: _wg().permute_dims(x, tuple(axes)),
    "reduce": lambda self, x, operation, axes: getattr(_wg(), operation)(x, axis=tuple(axes)),
    "stack_on_zeroth_dimension": lambda self, tensors: _wg().stack(tensors),
    "add_axis": lambda self, x, place: _wg().unsqueeze(x, place),
    "add_axes": _repeated,
    "tile": lambda self, x, repeats: _wg().tile(x, tuple(repeats)),
    "concat": lambda self, tensors, axis: _wg().concat(tensors, axis=axis),
    "is_float_type": lambda self, x: x.dtype.kind == "f",
    "einsum": lambda self, pattern, *x: _wg().einsum(pattern, *x),
}
