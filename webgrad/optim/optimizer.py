"""What all optimisers share: groups of parameters, state, counts of steps, how new values are put in place.

In: parameters with gradients. Out: the same parameters, changed in place. The invariants: all state is made
when parameters are added, so that a captured step changes it and makes none; nothing is read from the device.

An optimiser says three things. `_numbers` computes on the host, in double precision, what changes with its
settings; captured steps ask for it again at every call. `_shared` computes on the device, once a step, what
depends on the count of steps. `_update` gives the new values of one parameter and of its state, by the same
expression for each, so that one kernel takes many of them.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import ref

import webgrad as wg
from webgrad import Tensor

from .checks import EMPTY, check_numbers, groups_of

__all__ = ["Clock", "Group", "Inputs", "Numbers", "Optimizer", "State"]

Group = dict[str, Any]  # the settings of some parameters, by PyTorch's names, and the parameters: "params"
State = dict[str, Tensor]
Numbers = dict[str, Tensor]  # 0-d
# What schedules and people put into groups beside an optimiser's own settings.
NOTES = ("name", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum")


PLAIN_STEPS = 2  # before one is captured


class Inputs(NamedTuple):
    """What the new value of one parameter, and of its state, is computed of."""

    options: Group
    numbers: Numbers
    shared: Sequence[Tensor]
    parameter: Tensor
    gradient: Tensor
    state: State


class Clock:
    """The steps that the parameters of a group on one device have taken, and what they share in a step.

    `numbers` holds the count that they have in common, and behind it what the optimiser makes of it: one
    tensor, since devices bind few. A parameter without a gradient is skipped, and its count stays behind:
    `missed` says by how much.
    """

    def __init__(self, members: Sequence[Tensor], shared: int) -> None:
        device, dtype = members[0].device, _widest(members)
        self.members = list(members)
        self.places = {id(each): at for at, each in enumerate(members)}
        self.numbers = wg.zeros((1 + shared,), dtype=dtype, device=device)
        self.missed = wg.zeros((len(members),), dtype=dtype, device=device)
        self.late: set[int] = set()  # places of those that ever missed a step
        wg.eval(self.numbers, self.missed)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy's parameters, or a pickle's, are others."""
        self.__dict__.update(state)
        self.places = {id(each): at for at, each in enumerate(self.members)}

    def shared(self) -> list[Tensor]:
        """What all parameters share in the last step."""
        return [self.numbers[at] for at in range(1, self.numbers.size)]

    def of(self, parameter: Tensor) -> Tensor:
        """How many steps a parameter has taken."""
        place = self.places[id(parameter)]
        return self.numbers[0] - self.missed[place] if place in self.late else self.numbers[0]

    def set(self, counts: Mapping[int, float]) -> None:
        """Give parameters, by identity, the steps they have taken; others have taken none."""
        steps = [float(counts.get(each, 0.0)) for each in self.places]
        most = max(steps)
        self.late = {at for at, count in enumerate(steps) if count != most}
        self.numbers[...] = wg.full_like(self.numbers, most)
        self.missed[...] = wg.asarray([most - count for count in steps], device=self.missed.device)
        wg.eval(self.numbers, self.missed)

    def advance(
        self,
        with_gradient: Iterable[Tensor],
        shared: Callable[[Tensor], Sequence[Tensor]],
        put: Callable[[Tensor, Tensor], None],
    ) -> dict[int, Sequence[Tensor]]:
        """Count a step; gives what each parameter takes of `shared`, by identity."""
        count = self.numbers[0] + 1.0
        idle = set(self.places.values()) - {self.places[id(each)] for each in with_gradient}
        if idle:
            self.late |= idle
            mask = [float(place in idle) for place in range(len(self.places))]
            put(self.missed, self.missed + wg.asarray(mask, device=self.missed.device))
        put(self.numbers, wg.stack([count, *shared(count)]))
        common = self.shared()
        late = wg.watch(lambda: frozenset(self.late))
        return {
            identity: shared(count - self.missed[place]) if place in late else common
            for identity, place in self.places.items()
        }


class Optimizer:
    """The base of all optimisers; its subclasses are what is used.

    >>> w = wg.asarray([1.0, 2.0]).requires_grad_()
    >>> opt = wg.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [0.0, 0.0]
    """

    _shares = 0  # how many numbers `_shared` gives

    def __init__(self, params: Iterable[Any], defaults: Group) -> None:
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = defaultdict(dict)
        self._clocks: list[dict[Any, Clock]] = []  # of each group, by device
        self._steps = 0
        groups = groups_of(type(self).__name__, params)
        for group in groups:
            self.add_param_group(group)

    # What an optimiser is

    def _check(self, group: Group) -> None:
        """Raise where a setting is not allowed."""
        check_numbers(type(self).__name__, group)

    def _counts(self, group: Group) -> bool:
        """Whether the count of steps matters."""
        return True

    def _options(self, group: Group) -> Group:
        """The settings that say which expression is computed; with others a step is captured anew."""
        return {}

    def _numbers(self, group: Group) -> dict[str, float]:
        """The numbers in the expression."""
        raise NotImplementedError

    def _shared(self, options: Group, numbers: Numbers, step: Tensor) -> tuple[Tensor, ...]:
        """What all parameters share in a step, from its count: 1, 2, …"""
        return ()

    def _state_names(self, group: Group) -> tuple[str, ...]:
        """What is kept for each parameter."""
        return ()

    def _is_number(self, name: str) -> bool:
        """Whether what is kept is one number for a parameter, not one for each of its elements."""
        return False

    def _state_shapes(self, parameter: Tensor, group: Group) -> dict[str, tuple[int, ...]]:
        """What is kept for a parameter, and its shape."""
        return {name: () if self._is_number(name) else parameter.shape for name in self._state_names(group)}

    def _initial(self, name: str, group: Group) -> float:
        """What state begins with."""
        return 0.0

    def _update(self, inputs: Inputs) -> tuple[Tensor, State]:
        """A parameter's new value, and what of its state is new."""
        raise NotImplementedError

    # What a user calls

    def add_param_group(self, param_group: Any) -> None:
        """Take more parameters, with settings of their own; those not given are the optimiser's defaults."""
        name = type(self).__name__
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise wg.ArgumentError(
                f"{name}: a group of parameters is a dict with 'params', not {param_group!r}"
            )
        given = param_group["params"]
        params = [given] if isinstance(given, Tensor) else list(given)
        unknown = set(param_group) - {"params", *self.defaults, *NOTES}
        if unknown:
            raise wg.ArgumentError(
                f"{name} has no setting {', '.join(map(repr, sorted(unknown)))}; it has "
                f"{', '.join(self.defaults)}"
            )
        group = {"params": params, **self.defaults, **{k: v for k, v in param_group.items() if k != "params"}}
        self._check_parameters(params)
        self._check(group)
        self.param_groups.append(group)
        for each in params:
            self.state[each] = self._new_state(each, group)
        # Not as a part of the first step, whose plan is then that of the others
        wg.eval(params, [tensor for each in params for tensor in self.state[each].values()])
        devices = dict.fromkeys(each.device for each in params)
        self._clocks.append(
            {one: Clock([each for each in params if each.device is one], self._shares) for one in devices}
        )

    def _check_parameters(self, params: list[Any]) -> None:
        name = type(self).__name__
        if not params:
            raise wg.ArgumentError(f"{name}: {EMPTY}")
        for each in params:
            if not isinstance(each, Tensor):
                raise wg.DTypeError(f"{name} optimises tensors, not a {type(each).__name__}")
            if isinstance(each, wg.nn.UninitializedParameter):
                raise wg.ArgumentError(
                    f"{name}: a parameter of a lazy layer has no shape yet: call the model once, then make "
                    "the optimiser"
                )
            if each.dtype.kind not in "fc":
                raise wg.DTypeError(
                    f"{name} optimises tensors of floats or complex numbers, not {each.dtype.name}"
                )
            if not each.is_leaf:
                raise wg.ArgumentError(
                    f"{name}: a parameter of shape {each.shape} was computed from others that require "
                    "gradients, and has none of its own: optimise those, or take x.detach().requires_grad_()"
                )
        if not any(each.requires_grad for each in params):
            raise wg.ArgumentError(
                f"{name}: none of the {len(params)} parameters requires a gradient: call "
                "parameter.requires_grad_() first"
            )
        if len({*map(id, params), *map(id, self.state)}) < len(params) + len(self.state):
            raise wg.ArgumentError(f"{name}: a parameter is given twice; each belongs to one group, once")

    def _new_state(self, parameter: Tensor, group: Group) -> State:
        dtype = _state_dtype(parameter)
        state = {}
        for name, shape in self._state_shapes(parameter, group).items():
            is_number = self._is_number(name)
            state[name] = wg.full(
                shape,
                self._beginning(name, group, dtype),
                dtype=_part(dtype) if is_number else dtype,
                device=parameter.device,
            )
        return state

    def _beginning(self, name: str, group: Group, dtype: wg.DType) -> float | complex:
        """What state begins with; of complex numbers both parts."""
        value = self._initial(name, group)
        return complex(value, value) if dtype.kind == "c" and not self._is_number(name) else value

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or make them zero."""
        for group in self.param_groups:
            for each in group["params"]:
                if set_to_none:
                    each.grad = None
                elif each.grad is not None:
                    each.grad = wg.zeros_like(each.grad)

    def step(self, closure: Callable[[], Any] | None = None, *, skip: Tensor | None = None) -> Any:
        """Change every parameter that has a gradient. `closure` computes the loss anew, which is returned.

        `skip` is a 0-d tensor: where it is true, parameters, state and counts stay as they are. Nothing is
        read for that, so it works in captured functions.
        """
        loss = None
        if closure is not None:
            with wg.enable_grad():
                loss = closure()
        self._steps += 1
        is_on_cpu = self._is_on_cpu()
        if is_on_cpu:
            wg.eval()  # the loss and the gradients together: their plan is the same at every step
        if self._steps > PLAIN_STEPS and is_on_cpu:
            self._captured(skip, self._identity())
        else:
            self._take(skip)
            wg.eval()
        return loss

    def _take(self, skip: Tensor | None) -> None:
        """The work of a step."""

        def put(target: Tensor, new: Tensor) -> None:
            target[...] = new if skip is None else wg.where(skip, target, new)

        with wg.no_grad():
            for group, clocks in zip(self.param_groups, self._clocks, strict=True):
                for device, clock in clocks.items():
                    self._step_group(group, device, clock, put)

    # Steps on the cpu are captured, since building the graph of one takes longer than computing it

    def _is_on_cpu(self) -> bool:
        return not any(each.is_gpu for clocks in self._clocks for each in clocks)

    def _identity(self) -> tuple[int, ...]:
        """What a captured step is for: these parameters, in their groups."""
        return tuple([id(each) for group in self.param_groups for each in (group, *group["params"])])

    @functools.cached_property
    def _captured(self) -> Callable[[Tensor | None, tuple[int, ...]], None]:
        """`_take`, captured. It does not keep the optimiser alive, whose attribute it is."""
        itself = ref(self)

        def step(skip: Tensor | None, identity: tuple[int, ...]) -> None:
            _alive(itself)._take(skip)

        return wg.jit(step, static=("identity",))

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "_captured"}

    def _step_group(
        self, group: Group, device: Any, clock: Clock, put: Callable[[Tensor, Tensor], None]
    ) -> None:
        ready = [each for each in group["params"] if each.grad is not None and id(each) in clock.places]
        if not ready:
            return
        for each in ready:
            if each.device is not wg.open_device(device):  # another stands for all while a step is exported
                raise wg.DeviceError(
                    f"{type(self).__name__}: a parameter of shape {each.shape} was moved to "
                    f"{each.device.name}, and its state is on {device.name}: move the model first, then make "
                    "the optimiser; load_state_dict of the old one's state_dict() goes on from there"
                )
        itself = ref(self)  # in functions that a captured step keeps
        options = wg.watch(lambda: _alive(itself)._options(group))
        names = tuple(self._numbers(group))
        numbers = dict(
            zip(
                names,
                wg.fresh(
                    lambda: tuple(map(float, _alive(itself)._numbers(group).values())),
                    device=device,
                    dtype=clock.numbers.dtype,
                ),
                strict=True,
            )
        )
        shared: Mapping[int, Sequence[Tensor]] = {}
        if wg.watch(lambda: _alive(itself)._counts(group)):
            shared = clock.advance(ready, lambda count: self._shared(options, numbers, count), put)
        for parameter in ready:
            self._step_one(options, numbers, shared.get(id(parameter), ()), parameter, parameter.grad, put)

    def _step_one(
        self,
        options: Group,
        numbers: Numbers,
        shared: Sequence[Tensor],
        parameter: Tensor,
        gradient: Tensor,
        put: Callable[[Tensor, Tensor], None],
    ) -> None:
        state = self.state[parameter]
        dtype = _state_dtype(parameter)
        wide, slope = (_floats(each.astype(dtype, copy=False)) for each in (parameter, gradient))
        known = {name: _floats(value) for name, value in state.items()}
        numbers = {name: value.astype(wide.dtype, copy=False) for name, value in numbers.items()}
        shared = [each.astype(wide.dtype, copy=False) for each in shared]
        new, changed = self._update(Inputs(options, numbers, shared, wide, slope, known))
        put(parameter, _as_before(new, parameter))
        for name, value in changed.items():
            put(state[name], _as_before(value, state[name]))

    # Saving and going on

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on, in PyTorch's layout: state by the parameters' numbers."""
        places: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for each in group["params"]:
                places[id(each)] = len(places)
            groups.append({**group, "params": [places[id(each)] for each in group["params"]]})
        state: dict[int, State] = {}
        for group, clocks in zip(self.param_groups, self._clocks, strict=True):
            clock_of = {identity: clock for clock in clocks.values() for identity in clock.places}
            for each in group["params"]:
                counted = {"step": clock_of[id(each)].of(each).detach()} if self._counts(group) else {}
                kept = {name: value.detach() for name, value in self.state[each].items()}
                if counted or kept:
                    state[places[id(each)]] = {**counted, **kept}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, PyTorch's too: settings, counts and state become those."""
        name = type(self).__name__
        saved_groups, saved = state_dict["param_groups"], state_dict["state"]
        sizes = [len(group["params"]) for group in self.param_groups]
        saved_sizes = [len(group["params"]) for group in saved_groups]
        if sizes != saved_sizes:
            raise wg.ArgumentError(
                f"{name}.load_state_dict: the state is another model's: its groups have {saved_sizes} "
                f"parameters, and this optimiser's have {sizes}"
            )
        pairs = [
            (parameter, saved.get(number, {}), group)
            for group, other in zip(self.param_groups, saved_groups, strict=True)
            for parameter, number in zip(group["params"], other["params"], strict=True)
        ]
        wrong = [
            f"parameter {number} {parameter.shape}: {difference}"
            for number, (parameter, entry, _) in enumerate(pairs)
            for difference in _differences(parameter, self.state[parameter], entry)
        ]
        if wrong:
            raise wg.ArgumentError(f"{name}.load_state_dict: the state does not fit: {'; '.join(wrong)}")
        with wg.no_grad():
            for parameter, entry, group in pairs:
                self._restore(parameter, entry, group)
        wg.eval([tensor for each in self.state.values() for tensor in each.values()])
        counts = {id(parameter): _count_of(entry) for parameter, entry, _ in pairs}
        for group, other, clocks in zip(self.param_groups, saved_groups, self._clocks, strict=True):
            group.update({k: v for k, v in other.items() if k in self.defaults or k in NOTES})
            if "betas" in group:
                group["betas"] = tuple(group["betas"])  # files may have made a list of it
            for clock in clocks.values():
                clock.set(counts)

    def _restore(self, parameter: Tensor, entry: Mapping[str, Any], group: Group) -> None:
        for key, target in self.state[parameter].items():
            value = entry.get(key)
            if value is None:
                value = self._beginning(key, group, target.dtype)
            elif isinstance(value, Tensor):
                value = value.detach().to_device(target.device)
            target[...] = value

    def __repr__(self) -> str:
        lines = [
            f"  group {at}: {len(group['params'])} parameters, "
            + ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
            for at, group in enumerate(self.param_groups)
        ]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def _alive(itself: ref[Optimizer]) -> Optimizer:
    found = itself()
    assert found is not None, "a captured step that outlived its optimiser"
    return found


def _state_dtype(parameter: Tensor) -> wg.DType:
    """State and arithmetic of half-precision parameters are float32."""
    return parameter.dtype.wide


def _widest(parameters: Iterable[Tensor]) -> wg.DType:
    """The floats in which numbers that several parameters share are exact enough for each of them."""
    wide = any(_part(_state_dtype(each)) is wg.float64 for each in parameters)
    return wg.float64 if wide else wg.float32


def _part(dtype: wg.DType) -> wg.DType:
    """The floats that complex numbers are pairs of; floats are their own."""
    return {wg.complex64: wg.float32, wg.complex128: wg.float64}.get(dtype, dtype)


def _floats(x: Tensor) -> Tensor:
    """Complex numbers as pairs, since every formula is one of real numbers, as in PyTorch."""
    return wg.view_as_real(x) if x.dtype.kind == "c" else x


def _as_before(values: Tensor, target: Tensor) -> Tensor:
    """Pairs as complex numbers again, where the target has such."""
    return wg.view_as_complex(values) if target.dtype.kind == "c" else values


def _differences(parameter: Tensor, state: State, entry: Mapping[str, Any]) -> list[str]:
    """What keeps a saved entry from being the state of a parameter."""
    if not entry:
        return []
    found = {key: value for key, value in entry.items() if key != "step" and value is not None}
    differences = [f"{key!r} is missing" for key in state.keys() - found.keys() if key in entry or found]
    differences += [f"{key!r} is not part of it" for key in sorted(found.keys() - state.keys())]
    differences += [
        f"{key!r} has shape {tuple(found[key].shape)}, not {state[key].shape}"
        for key in state
        if key in found and tuple(found[key].shape) != state[key].shape
    ]
    return differences


def _count_of(entry: Mapping[str, Any]) -> float:
    """Steps taken; state without a count, as PyTorch's SGD saves it, is that of at least one."""
    return float(entry["step"]) if "step" in entry else float(bool(entry))
