"""What torch's classes of modules do otherwise than webgrad's of the same names.

In: nothing. Out: `MEMBERS`: members that `counterpart` gives torch's classes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import webgrad as wg

from ..defaults import integer_of
from ..devices import place
from . import functional
from .module import own
from .signatures import INITS
from .state import Stateful

__all__ = ["MEMBERS"]


def _owned(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation whose result are torch's modules."""

    def owned(*args: Any) -> Any:
        return own(function(*args))

    return owned


def _listed(self: Any) -> str:
    """A list of parameters as text."""
    rows = [
        f"    ({name}): Parameter containing: [torch.{each.dtype.name} of size "
        f"{'x'.join(map(str, each.shape))}]"
        for name, each in self.named_parameters(recurse=False)
    ]
    return "\n".join([f"{type(self).__name__}(", *rows, ")"]).replace("(\n)", "()")


def _load_batch_norm(self: Any, state: Any, prefix: str, local: Any, *args: Any) -> None:
    """States of before counts were kept have no count."""
    key = f"{prefix}num_batches_tracked"
    if (local.get("version") or 1) < 2 and self.track_running_stats and key not in state:
        count = self.num_batches_tracked
        state[key] = wg.zeros((), dtype=wg.int32) if count is None else count.detach()
    Stateful._load_from_state_dict(self, state, prefix, local, *args)


def _shown(self: Any) -> str:
    """The options of a module that is a function, as torch shows them; losses show none."""
    hidden = {"return_indices", *(() if getattr(self, "inplace", False) else ("inplace",))}
    names = () if type(self).__name__.endswith("Loss") else self._options
    return ", ".join(f"{name}={getattr(self, name)!r}" for name in names if name not in hidden)


def _dropped(self: Any, input: Any) -> Any:
    """What a layer of dropout gives."""
    if not self.training:
        return input
    function = getattr(functional, type(self)._function.__name__)
    return function(input, self._watched("p"), True, self.inplace)


def _linear(self: Any, input: Any) -> Any:
    """What a linear layer gives."""
    return functional.linear(input, self.weight, self.bias)


def _sloped(self: Any, input: Any) -> Any:
    """What RReLU gives."""
    return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)


def _table(name: str) -> Callable[..., None]:
    """`__init__` of a table of vectors, which may be given its rows."""
    plain = INITS[name]

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **options: Any) -> None:
        given = inspect.signature(plain).bind(self, *args, **options).arguments
        plain(self, *args, **options)
        self.sparse = bool(given.get("sparse", False))  # gradients are dense all the same
        if (rows := given.get("_weight")) is not None:
            self.weight = wg.nn.Parameter(rows, not given.get("_freeze", False))

    return init


@classmethod  # type: ignore[misc]
def _from_pretrained(
    cls: Any, embeddings: Any, freeze: bool = True, padding_idx: int | None = None, *how: Any, **options: Any
) -> Any:
    """A table of rows that are there already; frozen unless told otherwise."""
    names = ("max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    options |= dict(zip(names, how, strict=False))
    rows, columns = embeddings.shape
    return cls(rows, columns, padding_idx=padding_idx, _weight=embeddings, _freeze=freeze, **options)


_BATCH_NORM = {
    "_count_dtype": lambda self, device: integer_of(place(device)),
    "_version": 2,
    "_load_from_state_dict": _load_batch_norm,
}
MEMBERS: dict[str, dict[str, Any]] = {
    "Sequential": {
        name: _owned(getattr(wg.nn.Sequential, name)) for name in ("__add__", "__mul__", "__rmul__")
    },
    "ModuleList": {"__add__": _owned(wg.nn.ModuleList.__add__)},
    "ParameterList": {"__repr__": _listed},
    "ParameterDict": {"__repr__": _listed},
    "_Running": _BATCH_NORM,
    "Applied": {"extra_repr": _shown},
    "Linear": {"forward": _linear},
    "_Dropout": {"forward": _dropped},
    "RReLU": {"forward": _sloped},
}
for _name, _init in INITS.items():
    MEMBERS.setdefault(_name, {})["__init__"] = _init
MEMBERS["Embedding"] = {"__init__": _table("Embedding"), "from_pretrained": _from_pretrained}
MEMBERS["EmbeddingBag"] = {"__init__": _table("EmbeddingBag")}
