"""torch.nn.Module: webgrad's own, whose tensors are torch's.

In: webgrad's classes of modules. Out: classes of the same names whose calls return torch's tensors, and whose
parameters, buffers and parts are torch's: what a module is given, and what it makes itself, is adopted where
it is assigned.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import webgrad as wg

from ..defaults import float_dtype
from ..devices import device as Device
from ..devices import place
from ..tensor import Array, adopt
from . import functional
from .parameter import PLAIN, Buffer, TransientBuffer
from .state import Stateful

__all__ = ["Module", "counterpart", "own"]

# torch's names of what layers are called with, in their order; webgrad's go by position.
INPUTS = (
    *("input", "log_probs", "input1", "anchor", "input2", "positive", "negative", "target", "targets"),
    *("var", "input_lengths", "target_lengths", "offsets"),
)
_called = Stateful.__call__
_COUNTERPARTS: dict[type, type] = {}  # webgrad's class → torch's


class Module(Stateful):
    """What every layer and model is."""

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return adopt(_called(self, *inputs, **options))

    def _call_hook(self, hook: Callable[..., Any], *args: Any) -> Any:
        return hook(self, *adopt(args))

    # Members

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Buffer):
            self.register_buffer(name, value, not isinstance(value, TransientBuffer))
        else:
            super().__setattr__(name, value)

    def _put(self, place: str, name: str, value: Any) -> None:
        super()._put(place, name, own(value))

    def _check_name(self, name: str, place: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a name should be a string, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f'a name can\'t be empty, nor contain ".": {name!r}')
        if hasattr(self, name) and name not in self.__dict__.get(place, ()):
            raise KeyError(f"attribute '{name}' already exists")

    def set_submodule(self, target: str, module: wg.nn.Module, strict: bool = False) -> None:
        """Another module under a dotted name."""
        path, _, name = target.rpartition(".")
        home = self.get_submodule(path)
        if strict and name not in home._modules:
            raise AttributeError(f"{type(home).__name__} has no attribute `{name}`")
        home._put("_modules", name, module)

    register_backward_hook = Stateful.register_full_backward_hook

    def _settle(self, kind: type) -> None:
        """Be what a lazy layer becomes."""
        super()._settle(_COUNTERPARTS[kind])  # type: ignore[misc]

    # Devices and dtypes

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Every parameter and buffer, and the gradients, as a function gives them."""
        for child in self.children() if recurse else ():
            child._apply(fn)
        with wg.no_grad():
            for parameter in self._parameters.values():
                if parameter is not None:
                    gradient = parameter.grad
                    _assign(parameter, fn)
                    if gradient is not None:
                        parameter.grad = fn(adopt(gradient))
            for buffer in self._buffers.values():
                if buffer is not None:
                    _assign(buffer, fn)
        return self

    def to(
        self, *targets: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, **hints: Any
    ) -> Any:
        """To a device, a dtype, both, or another tensor's; only floats change their dtype."""
        given = [each for each in targets if not isinstance(each, bool) and each is not None]
        for each in given:
            if isinstance(each, str | int | Device):
                device = each
            elif isinstance(each, Array):
                dtype, device = each.dtype, each.device
            else:
                dtype = each
        kind = None if dtype is None else wg.as_dtype(dtype)
        if kind is not None and kind.kind not in "fc":
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        where = place(device)
        return self._apply(
            lambda each: (
                each.to(kind if each.dtype.kind in "fc" else each.dtype, device=where)
                if kind is not None
                else each.to_device(each.device if where is None else where)
            )
        )

    def cuda(self, device: Any = None) -> Any:
        """To the best device."""
        return self.to("cuda" if device is None else device)

    xpu = ipu = mtia = cuda

    def cpu(self) -> Any:
        """To the cpu."""
        return self.to("cpu")

    def float(self) -> Any:
        """Floats in float32."""
        return self.to(wg.float32)

    def double(self) -> Any:
        """Floats in float64."""
        return self.to(wg.float64)

    def half(self) -> Any:
        """Floats in float16."""
        return self.to(wg.float16)

    def bfloat16(self) -> Any:
        """Floats in bfloat16."""
        return self.to(wg.bfloat16)

    def type(self, dst_type: Any) -> Any:
        """Everything in another dtype."""
        kind = wg.as_dtype(getattr(dst_type, "dtype", dst_type))
        return self._apply(lambda each: each.to(kind))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """To a device, without the values."""
        where = place(device)
        return self._apply(lambda each: wg.empty_like(each, device=where), recurse)

    def share_memory(self) -> Any:
        """Itself: threads of a process share its tensors anyway."""
        return self

    def compile(self, *args: Any, **options: Any) -> None:
        """Capture its calls, as `torch.compile` does."""
        wg.torch.compile(self, *args, **options)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _assign(tensor: Any, fn: Callable[[Any], Any]) -> None:
    """Give a tensor, in place, what a function makes of its values."""
    values = tensor.detach()
    made = fn(adopt(values))
    if made is not values:
        tensor.data = made


def own(value: Any) -> Any:
    """A parameter, buffer or module as torch's."""
    if isinstance(value, wg.nn.Module):
        for each in value.modules():
            _become(each)
    elif value.__class__ in PLAIN:
        value.__class__ = PLAIN[value.__class__]
    elif isinstance(value, Array):
        adopt(value)
    return value


def _become(module: Any) -> None:
    """One module, as torch's, with its own tensors."""
    wanted = _COUNTERPARTS.get(module.__class__)
    if wanted is None:
        return
    module.__class__ = wanted
    for each in (*module._parameters.values(), *module._buffers.values()):
        own(each)


def _forward(original: Callable[..., Any]) -> Callable[..., Any]:
    """A layer's `forward` with torch's names of its inputs, and torch's tensors as results."""
    names = {*inspect.signature(original).parameters}

    @functools.wraps(original)
    def forward(self: Any, *inputs: Any, **options: Any) -> Any:
        if options:
            ahead = [each for each in INPUTS if each in options and each not in names]
            inputs = (*inputs, *[options.pop(each) for each in ahead])
        return adopt(original(self, *inputs, **options))

    return forward


def _of_default_dtype(init: Callable[..., None]) -> Callable[..., None]:
    """A layer's `__init__` whose parameters are of the default dtype where none is given."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def made(self: Any, *args: Any, **options: Any) -> None:
        if (default := float_dtype()) is not wg.float32:
            given = signature.bind(self, *args, **options)
            if given.arguments.get("dtype") is None:
                given.arguments["dtype"] = default
            return init(*given.args, **given.kwargs)
        return init(self, *args, **options)

    return made


def counterpart(original: type, members: Mapping[str, dict[str, Any]] = MappingProxyType({})) -> type:
    """torch's class of one of webgrad's modules; classes derived from each other stay so.

    `members` are what it does otherwise, by names of classes.
    """
    if original is wg.nn.Module:
        return Module
    if original not in _COUNTERPARTS:
        above = [each for each in original.__bases__ if issubclass(each, wg.nn.Module)]
        scope: dict[str, Any] = {"__module__": "webgrad.torch.nn", "__doc__": original.__doc__}
        scope |= members.get(original.__name__, {})
        if "function" in original.__dict__:  # torch's, which takes torch's arguments
            scope["function"] = staticmethod(
                getattr(functional, original.__dict__["function"].__func__.__name__)
            )
            scope["renamed"] = {}
        if "__init__" in original.__dict__:  # before one of the class above
            scope.setdefault("__init__", original.__dict__["__init__"])
        init = scope.get("__init__", original.__dict__.get("__init__"))
        if init is not None and "dtype" in inspect.signature(init).parameters:
            scope["__init__"] = _of_default_dtype(init)
        if "forward" in original.__dict__:
            scope.setdefault("forward", _forward(original.__dict__["forward"]))
        _COUNTERPARTS[original] = type(
            original.__name__, (*(counterpart(each, members) for each in above), original), scope
        )
    return _COUNTERPARTS[original]
