"""torch's optimisers: signatures, and webgrad's classes of the same names.

In: rows of signatures. Out: classes. Arguments that webgrad does not know say how torch computes, not what;
they are settings of the groups, as in torch, and change nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import webgrad as wg

from .optimizer import Optimizer

__all__ = ["CLASSES"]

HOW = "foreach=None, maximize=False, capturable=False, differentiable=False"
ROWS = f"""
SGD(params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
    foreach=None, differentiable=False, fused=None)
Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *, {HOW}, fused=None,
    decoupled_weight_decay=False)
AdamW(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01, amsgrad=False, *, {HOW}, fused=None)
Adamax(params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, foreach=None, *, maximize=False,
    differentiable=False, capturable=False)
NAdam(params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, momentum_decay=0.004,
    decoupled_weight_decay=False, *, {HOW})
RAdam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, decoupled_weight_decay=False, *, {HOW})
RMSprop(params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False, capturable=False,
    foreach=None, maximize=False, differentiable=False)
Adagrad(params, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
    maximize=False, differentiable=False, fused=None)
Adadelta(params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, foreach=None, *, capturable=False,
    maximize=False, differentiable=False)
ASGD(params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0, foreach=None, maximize=False,
    differentiable=False, capturable=False)
Rprop(params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, capturable=False, foreach=None,
    maximize=False, differentiable=False)
Adafactor(params, lr=0.01, beta2_decay=-0.8, eps=(None, 0.001), d=1.0, weight_decay=0.0, *, foreach=None,
    maximize=False)
Muon(params, lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775,
    2.0315), eps=1e-07, ns_steps=5, adjust_lr_fn=None)
LBFGS(params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-07, tolerance_change=1e-09,
    history_size=100, line_search_fn=None)
"""


def _init(name: str, signature: str) -> Callable[..., None]:
    """`__init__` by torch's signature."""
    known = inspect.signature(getattr(wg.optim, name)).parameters
    text = f"def __init__(self, {signature}):\n    made(self, locals())\n"

    def made(self: Any, given: dict[str, Any]) -> None:
        given.pop("self")
        if given.pop("differentiable", False):
            raise NotImplementedError(
                f"{name}(differentiable=True): gradients do not go through a step: write the update with "
                "functions of tensors, or use torch.func.functional_call"
            )
        arguments = {key: given.pop(key) for key in list(given) if key in known}
        for key, value in arguments.items():
            if key != "params" and isinstance(value, wg.Tensor):
                arguments[key] = value.item()
        self._hints = {**given, **self._hints}
        getattr(wg.optim, name).__init__(self, **arguments)

    scope: dict[str, Any] = {"made": made}
    exec(compile(text, f"<webgrad.torch.optim {name}>", "exec"), scope)
    scope["__init__"].__qualname__ = f"{name}.__init__"
    return scope["__init__"]  # type: ignore[no-any-return]


CLASSES: dict[str, type] = {}
for _line in re.sub(r"\n +", " ", ROWS.strip()).splitlines():
    _name, _, _signature = _line.removesuffix(")").partition("(")
    _original = getattr(wg.optim, _name)
    _above = CLASSES.get(_original.__mro__[1].__name__, Optimizer)
    _scope = {
        "__init__": _init(_name, _signature),
        "__module__": "webgrad.torch.optim",
        "__doc__": _original.__doc__,
    }
    CLASSES[_name] = type(_name, (_original, _above), _scope)
