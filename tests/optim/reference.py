"""Every optimiser's step as its paper, or PyTorch, has it: for one parameter, in NumPy and float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["RULES"]

Array = np.ndarray[Any, Any]
State = dict[str, Any]
Rule = Callable[..., Any]  # of the parameter, the gradient, the state, and settings


def _decayed(p: Array, g: Array, weight_decay: float, maximize: bool) -> Array:
    return (-g if maximize else g) + weight_decay * p


def sgd(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-3,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
) -> Any:
    g = _decayed(p, g, weight_decay, maximize)
    if momentum:
        first = "buffer" not in state
        state["buffer"] = g if first else momentum * state["buffer"] + (1 - dampening) * g
        g = g + momentum * state["buffer"] if nesterov else state["buffer"]
    return p - lr * g


def adam(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    amsgrad: bool = False,
    maximize: bool = False,
    decoupled: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g = -g if maximize else g
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    if amsgrad:
        v = state["most"] = np.maximum(state.get("most", 0.0), v)
    return p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


def adamw(p: Array, g: Array, state: State, weight_decay: float = 1e-2, **settings: Any) -> Any:
    return adam(p, g, state, weight_decay=weight_decay, decoupled=True, **settings)


def adamax(
    p: Array,
    g: Array,
    state: State,
    lr: float = 2e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g = _decayed(p, g, weight_decay, maximize)
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    u = state["u"] = np.maximum(betas[1] * state.get("u", 0), np.abs(g) + eps)
    return p - lr / (1 - betas[0] ** t) * m / u


def nadam(
    p: Array,
    g: Array,
    state: State,
    lr: float = 2e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum_decay: float = 4e-3,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g = -g if maximize else g
    if decoupled_weight_decay:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    now, after = (betas[0] * (1 - 0.5 * 0.96 ** (at * momentum_decay)) for at in (t, t + 1))
    product = state["product"] = state.get("product", 1.0) * now
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    scale = np.sqrt(v / (1 - betas[1] ** t)) + eps
    return p - lr * (1 - now) / (1 - product) * g / scale - lr * after / (1 - product * after) * m / scale


def radam(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g = _decayed(p, g, weight_decay, maximize)
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    unbiased = m / (1 - betas[0] ** t)
    most = 2 / (1 - betas[1]) - 1
    length = most - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    if length <= 5:
        return p - lr * unbiased
    trust = np.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
    return p - lr * unbiased * trust * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)


def rmsprop(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-2,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
    maximize: bool = False,
) -> Any:
    g = _decayed(p, g, weight_decay, maximize)
    v = state["v"] = alpha * state.get("v", 0) + (1 - alpha) * g * g
    if centered:
        mean = state["mean"] = alpha * state.get("mean", 0) + (1 - alpha) * g
        v = v - mean * mean
    change = g / (np.sqrt(v) + eps)
    if momentum:
        change = state["buffer"] = momentum * state.get("buffer", 0) + change
    return p - lr * change


def adagrad(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-2,
    lr_decay: float = 0.0,
    weight_decay: float = 0.0,
    initial_accumulator_value: float = 0.0,
    eps: float = 1e-10,
    maximize: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g = _decayed(p, g, weight_decay, maximize)
    total = state["sum"] = state.get("sum", initial_accumulator_value) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(total) + eps)


def adadelta(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1.0,
    rho: float = 0.9,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> Any:
    g = _decayed(p, g, weight_decay, maximize)
    v = state["v"] = rho * state.get("v", 0) + (1 - rho) * g * g
    change = np.sqrt(state.get("moved", 0) + eps) / np.sqrt(v + eps) * g
    state["moved"] = rho * state.get("moved", 0) + (1 - rho) * change * change
    return p - lr * change


def asgd(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-2,
    lambd: float = 1e-4,
    alpha: float = 0.75,
    t0: float = 1e6,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g = _decayed(p, g, weight_decay, maximize)
    rate = lr / (1 + lambd * lr * (t - 1)) ** alpha
    return p * (1 - lambd * rate) - rate * g


def rprop(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-2,
    etas: tuple[float, float] = (0.5, 1.2),
    step_sizes: tuple[float, float] = (1e-6, 50.0),
    maximize: bool = False,
) -> Any:
    g = -g if maximize else g
    same = np.sign(g * state.get("g", 0 * g))
    factor = np.where(same > 0, etas[1], np.where(same < 0, etas[0], 1.0))
    size = state["size"] = np.clip(state.get("size", lr) * factor, *step_sizes)
    g = state["g"] = np.where(same < 0, 0.0, g)
    return p - np.sign(g) * size


def adafactor(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-2,
    beta2_decay: float = -0.8,
    eps: tuple[float | None, float] = (None, 1e-3),
    d: float = 1.0,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g, new = -g if maximize else g, t**beta2_decay
    small = np.finfo(np.float32).eps if eps[0] is None else eps[0]
    length = max(eps[1], np.sqrt((p * p).mean())) * min(lr, 1 / np.sqrt(t))
    kept = {}
    for name, axis in (("rows", -1), ("columns", -2)) if p.ndim > 1 else (("all", ()),):
        mean = (g * g).mean(axis, keepdims=True)
        kept[name] = state[name] = state.get(name, 0 * mean) * (1 - new) + mean * new
    found = kept.get("all")
    if found is None:
        found = kept["rows"] * kept["columns"] / np.maximum(kept["rows"].mean(-2, keepdims=True), small)
    update = g / np.sqrt(np.maximum(found, small**2))
    return p * (1 - lr * weight_decay) - length * update / max(1.0, np.sqrt((update * update).mean()) / d)


def lion(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-4,
    betas: tuple[float, float] = (0.9, 0.99),
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> Any:
    g = -g if maximize else g
    m = state.get("m", 0)
    state["m"] = betas[1] * m + (1 - betas[1]) * g
    return p * (1 - lr * weight_decay) - lr * np.sign(betas[0] * m + (1 - betas[0]) * g)


def lamb(
    p: Array,
    g: Array,
    state: State,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    g = -g if maximize else g
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    change = (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps) + weight_decay * p
    length, other = np.sqrt((p * p).sum()), np.sqrt((change * change).sum())
    return p - lr * (length / other if length > 0 and other > 0 else 1.0) * change


RULES: dict[str, Rule] = {
    "SGD": sgd,
    "Adam": adam,
    "AdamW": adamw,
    "Adamax": adamax,
    "NAdam": nadam,
    "RAdam": radam,
    "RMSprop": rmsprop,
    "Adagrad": adagrad,
    "Adadelta": adadelta,
    "ASGD": asgd,
    "Rprop": rprop,
    "Adafactor": adafactor,
    "Lion": lion,
    "LAMB": lamb,
}
