"""Pruning: masks that keep some elements of a parameter at zero, by PyTorch's names.

In: a module, the name of a parameter, and how much of it goes: a number of elements, or a part. Out: the
module, whose parameter is `name_orig` times the buffer `name_mask`; `remove` makes it plain again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import webgrad as wg

from ..module import Module
from .computed import Computed

__all__ = [
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class Mask(Computed):
    """A parameter whose elements are partly zero."""

    def compute(self, module: Any) -> wg.Tensor:
        """The parameter."""
        masked: wg.Tensor = getattr(module, f"{self.name}_orig") * getattr(module, f"{self.name}_mask")
        return masked


def custom_from_mask(module: Module, name: str, mask: wg.Tensor) -> Module:
    """Keep the elements of a parameter that a mask marks with 1; masks of before stay.

    >>> layer = wg.nn.utils.prune.custom_from_mask(wg.nn.Linear(2, 1), "weight", wg.asarray([[1, 0]]))
    >>> layer.weight[0, 1].item(), sorted(layer.state_dict())
    (0.0, ['bias', 'weight_mask', 'weight_orig'])
    """
    target: Any = getattr(module, name)
    if mask.shape != target.shape:
        raise wg.ShapeError(f"prune: the mask is {mask.shape}, and {name} {target.shape}")
    mask = mask.to(target.dtype, device=target.device)
    if name in module._parameters:
        hook = Mask(name)
        hook.put(module, orig=target)
        module.register_buffer(f"{name}_mask", mask)
        hook.begin(module)
    else:
        old = getattr(module, f"{name}_mask")
        old[...] = old * mask
        module.__dict__[name] = module.__dict__["_computed"][name][0].compute(module)
    return module


def identity(module: Module, name: str) -> Module:
    """A mask that keeps everything.

    >>> wg.nn.utils.prune.is_pruned(wg.nn.utils.prune.identity(wg.nn.Linear(2, 1), "weight"))
    True
    """
    return custom_from_mask(module, name, wg.ones_like(getattr(module, name)))


def _count(amount: Any, size: int) -> int:
    """How many go, of so many."""
    if isinstance(amount, bool) or not isinstance(amount, int | float) or amount < 0:
        raise wg.ArgumentError(
            f"prune: amount is a number of elements, or a part from 0 to 1, not {amount!r}"
        )
    if isinstance(amount, float) and amount > 1:
        raise wg.ArgumentError(f"prune: a part is from 0 to 1, not {amount!r}")
    count = round(amount * size) if isinstance(amount, float) else amount
    if count > size:
        raise wg.ArgumentError(f"prune: amount={amount!r} is more than the {size} elements that there are")
    return count


def _kept(scores: wg.Tensor, amount: float, old: wg.Tensor | None = None) -> wg.Tensor:
    """A mask without the least scores; of what is masked already nothing more is counted."""
    flat = scores.detach().reshape((-1,))
    gone = 0
    if old is not None:
        flat = wg.where(old.reshape((-1,)) == 0, -1.0, flat)
        gone = int((old == 0).sum().item())
    order = wg.argsort(wg.argsort(flat))
    return (order >= _count(amount, flat.size - gone) + gone).reshape(scores.shape).astype(wg.float32)


def _old_mask(module: Any, name: str) -> wg.Tensor | None:
    return module._buffers.get(f"{name}_mask")  # type: ignore[no-any-return]


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: wg.Tensor | None = None
) -> Module:
    """Without the elements that are nearest to zero.

    >>> layer = wg.nn.Linear(4, 1)
    >>> _ = wg.nn.utils.prune.l1_unstructured(layer, "weight", amount=3)
    >>> int((layer.weight == 0).sum().item())
    3
    """
    scores = wg.abs(getattr(module, name)) if importance_scores is None else importance_scores
    return custom_from_mask(module, name, _kept(scores, amount, _old_mask(module, name)))


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Without elements drawn by chance.

    >>> layer = wg.nn.utils.prune.random_unstructured(wg.nn.Linear(4, 1), "weight", amount=0.5)
    >>> int((layer.weight == 0).sum().item())
    2
    """
    target: Any = getattr(module, name)
    scores = wg.random.rand(*target.shape, device=target.device)
    return custom_from_mask(module, name, _kept(scores, amount, _old_mask(module, name)))


def ln_structured(module: Module, name: str, amount: float, n: float, dim: int) -> Module:
    """Without the slices of an axis that have the least n-norms.

    >>> layer = wg.nn.utils.prune.ln_structured(wg.nn.Linear(2, 4), "weight", amount=0.5, n=2, dim=0)
    >>> int((layer.weight == 0).all(axis=1).sum().item())
    2
    """
    target: Any = getattr(module, name)
    axes = tuple(each for each in range(target.ndim) if each != dim % target.ndim)
    return _by_slices(module, name, amount, wg.vector_norm(target.detach(), axis=axes, ord=n), dim)


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Without slices of an axis drawn by chance.

    >>> layer = wg.nn.utils.prune.random_structured(wg.nn.Linear(2, 4), "weight", amount=1, dim=0)
    >>> int((layer.weight == 0).all(axis=1).sum().item())
    1
    """
    target: Any = getattr(module, name)
    scores = wg.random.rand(target.shape[dim], device=target.device)
    return _by_slices(module, name, amount, scores, dim)


def _by_slices(module: Any, name: str, amount: float, scores: wg.Tensor, dim: int) -> Module:
    target = getattr(module, name)
    shape = [1] * target.ndim
    shape[dim] = target.shape[dim]
    mask = _kept(scores, amount).reshape(tuple(shape))
    return custom_from_mask(module, name, wg.broadcast_to(mask, target.shape))


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any = None,
    importance_scores: Mapping[tuple[Module, str], wg.Tensor] | None = None,
    *,
    amount: float,
) -> None:
    """Without the elements of several parameters that are nearest to zero, wherever these are.

    >>> one, two = wg.nn.Linear(2, 1), wg.nn.Linear(4, 1)
    >>> wg.nn.utils.prune.global_unstructured([(one, "weight"), (two, "weight")], amount=3)
    >>> int((one.weight == 0).sum().item() + (two.weight == 0).sum().item())
    3
    """
    pairs, given = list(parameters), importance_scores or {}
    scores = [given.get(pair, wg.abs(getattr(*pair).detach())) for pair in pairs]
    if pruning_method is not None and "Random" in getattr(pruning_method, "__name__", str(pruning_method)):
        scores = [wg.random.rand(*each.shape, device=each.device) for each in scores]
    mask = _kept(wg.concat([each.reshape((-1,)) for each in scores]), amount)
    at = 0
    for (module, name), each in zip(pairs, scores, strict=True):
        custom_from_mask(module, name, mask[at : at + each.size].reshape(each.shape))
        at += each.size


def is_pruned(module: Module) -> bool:
    """Whether a module, or one below it, has a mask.

    >>> wg.nn.utils.prune.is_pruned(wg.nn.Linear(2, 1))
    False
    """
    hooks = (hook for each in module.modules() for hook, _ in each.__dict__.get("_computed", {}).values())
    return any(isinstance(hook, Mask) for hook in hooks)


def remove(module: Module, name: str) -> Module:
    """The masked parameter as a plain one.

    >>> layer = wg.nn.utils.prune.l1_unstructured(wg.nn.Linear(4, 1), "weight", amount=3)
    >>> sorted(wg.nn.utils.prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    return Mask.taken_off(module, name, "orig", "mask")  # type: ignore[no-any-return]
