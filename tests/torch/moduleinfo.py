"""torch's table of modules, run through `webgrad.torch`.

In: an entry of `module_db`. Out: a Tally over some of its inputs. Both modules are made with the same
arguments and get the same parameters; results, gradients and buffers must agree, in training and out of it.
"""

from __future__ import annotations

import warnings
from typing import Any

from tests.torch.checking import torch
from tests.torch.namespace import attribute
from tests.torch.opinfo import chosen, excused
from tests.torch.samples import Call, Learnt, Tally, as_ours, compare, leaves, mapped, seeded

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_modules import module_db

__all__ = ["MODULES", "counterpart", "examined_module"]

MODULES: dict[str, Any] = {info.name: info for info in module_db}
FACTORY = frozenset({"device", "dtype"})


def counterpart(name: str) -> Any:
    """The class of `webgrad.torch`, or None."""
    return attribute(name)


def call_of(name: str, info: Any, given: Any, dtype: Any, training: bool, device: str) -> Call:
    """One construction and one use of a module, as a call of both libraries with its state as an argument."""
    made, used = given.constructor_input, given.forward_input
    options = {key: value for key, value in made.kwargs.items() if key not in FACTORY}
    theirs = info.module_cls(*made.args, **options).to(dtype).train(training)
    if isinstance(theirs, torch.nn.modules.lazy.LazyModuleMixin):
        theirs(*used.args, **used.kwargs)
    learnt = {key for key, _ in theirs.named_parameters()}
    state = {
        key: value.detach().clone().requires_grad_(key in learnt)
        for key, value in theirs.state_dict().items()
    }

    def by_torch(state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        result = torch.func.functional_call(theirs, state, args, kwargs)
        return result, [value for key, value in state.items() if key not in learnt]

    def by_webgrad(state: dict[str, Any], *args: Any, **kwargs: Any) -> Learnt:
        convert = mapped((made.args, options), lambda each: as_ours(each, device))
        ours = counterpart(name)(*convert[0], **convert[1]).to(device, as_ours(dtype, device)).train(training)
        ours.load_state_dict({key: value.detach() for key, value in state.items()})
        result = ours(*args, **kwargs)
        parameters, after = dict(ours.named_parameters()), ours.state_dict()
        asked = [parameters[key] for key in state if key in learnt]
        buffers = [after[key] for key in state if key not in learnt]
        return Learnt((result, buffers), asked + leaves((args, kwargs)))

    words = ", ".join([*map(repr, made.args), *(f"{key}={value!r}" for key, value in options.items())])
    title = f"{name}({words[:120]}){'' if training else '.eval()'}"
    return Call(title, by_webgrad, by_torch, (state, *used.args), used.kwargs, device=device)


def examined_module(name: str, most: int, dtypes: tuple[Any, ...], device: str = "cpu") -> Tally:
    """What comes of an entry's inputs, in training and out of it."""
    info, tally = MODULES[name], Tally()
    for dtype in dtypes:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        for training in (True, False):
            seeded(f"{name} {dtype} {training}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                inputs = info.module_inputs_func(
                    info, device="cpu", dtype=dtype, requires_grad=True, training=training
                )
                for given in chosen([each for each in inputs if each.forward_input], most):
                    call = call_of(name, info, given, dtype, training, device)
                    tally.add(excused(compare(call)))
    return tally
