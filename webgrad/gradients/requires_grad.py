"""Tensors that require gradients: `requires_grad`, `grad`, `backward`, hooks, and tensors without a history.

In: tensors. Out: gradients in their slots. `differentiate.py` computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DTypeError, GradientError
from ..functions.array.creation import asarray
from ..graph.node import Node
from ..graph.trace import current_trace
from ..ops import primitives
from ..ops.views import share
from ..tensor import Tensor
from .differentiate import accumulate, order_of, pull_back
from .history import SLOT, History, grad_mode_set
from .hooks import HookHandle
from .slots import GradientSlot


def ask_for_gradient(x: Tensor, wanted: bool) -> None:
    """Make a tensor require a gradient, or not."""
    history = x.node.history
    if bool(wanted) is (history is not None):
        return
    if isinstance(history, History):
        raise GradientError(
            "requires_grad = False on a tensor that was computed from others which require a gradient: use "
            "x.detach(), or compute it under webgrad.no_grad()"
        )
    if wanted and x.dtype.kind not in "fc":
        raise GradientError(
            f"only floats have gradients, not {x.dtype.name}: convert with x.astype(webgrad.float32)"
        )
    trace = current_trace()
    if trace is not None:
        trace.note(x)
    with grad_mode_set(False):
        node = primitives.alias(x.node)
    node.history = _slot_for(x) if wanted else None
    x.node = node


def _slot_for(x: Tensor) -> GradientSlot:
    """An empty slot for a tensor; in a captured function the slot that it had before it was frozen there."""
    trace = current_trace()
    slot = None if trace is None else trace.before(x).history
    if not isinstance(slot, GradientSlot):
        return GradientSlot(x)
    slot.grad = None
    return slot


def detached(x: Tensor) -> Tensor:
    """The same values without a history."""
    if x.node.history is None:
        return Tensor(x.node)
    if x.node.storage is not None and current_trace() is None:
        return Tensor(Node(x.node.sig, (), x.node.storage, x.node.where))
    with grad_mode_set(False):
        return Tensor(primitives.alias(x.node))


def set_data(x: Tensor, value: Any) -> None:
    """Make a tensor hold and share the values of another, which may differ in shape and dtype.

    It still requires a gradient, and tensors that shared elements with it before keep those.
    """
    if not isinstance(value, Tensor):
        raise DTypeError(
            f"x.data = …: a {type(value).__name__} is not a tensor: make one with webgrad.asarray, or write "
            "x[...] = values under webgrad.no_grad()"
        )
    if _is_data_of(value, x):
        return
    history = x.node.history
    if history is not None and value.dtype.kind not in "fc":
        raise GradientError(
            f"x.data = …: x requires a gradient, and {value.dtype.name} values have none: convert them with "
            "astype(webgrad.float32)"
        )
    trace = current_trace()
    if trace is not None:
        trace.note(x)
    with grad_mode_set(False):
        node = primitives.alias(value.node)
    node.history = history
    x.node = node
    share(value, x, "detach", ())


def _is_data_of(value: Tensor, x: Tensor) -> bool:
    """Whether a tensor is x, or x.data: `p.data = p.data.clamp_(0, 1)` has changed x already."""
    alias = value.alias
    return value is x or (
        alias is not None and alias.parent is x.alias and alias.kind == "detach" and not alias.moves
    )


def copied(x: Tensor) -> Tensor:
    """A copy that requires its own gradient, which starts as a copy of x's."""
    copy = detached(x).requires_grad_()
    copy.grad = None if x.grad is None else Tensor(x.grad.node)
    return copy


def _slot_of(x: Tensor) -> GradientSlot | None:
    history = x.node.history
    return history.slot if isinstance(history, History) else history  # type: ignore[no-any-return]


def gradient_of(x: Tensor) -> Tensor | None:
    """The gradient in a tensor's slot."""
    slot = _slot_of(x)
    return None if slot is None else slot.grad


def set_gradient(x: Tensor, value: Any) -> None:
    """Put a gradient into a tensor's slot."""
    slot = _slot_of(x)
    if slot is None:
        if value is None:
            return
        raise GradientError(
            "grad is set on a tensor that does not require a gradient: call x.requires_grad_() first"
        )
    slot.grad = None if value is None else gradient_like("grad", value, x)


def gradient_like(what: str, value: Any, x: Tensor) -> Tensor:
    """A gradient for a tensor: of its shape, device and dtype."""
    found = value if isinstance(value, Tensor) else asarray(value, dtype=x.dtype, device=x.device)
    if found.shape != x.shape:
        raise GradientError(f"{what}: a gradient of shape {found.shape} for a tensor of shape {x.shape}")
    if found.device is not x.device:
        raise GradientError(
            f"{what}: a gradient on {found.device.name} for a tensor on {x.device.name}: use to_device"
        )
    return found if found.dtype is x.dtype else found.astype(x.dtype)


def retain_gradient(x: Tensor) -> None:
    """Give a computed tensor a slot."""
    history = x.node.history
    if history is None:
        raise GradientError(
            "retain_grad: no gradient goes through this tensor; call requires_grad_() on its inputs"
        )
    if isinstance(history, History) and history.slot is None:
        history.slot = GradientSlot()


def add_hook(x: Tensor, hook: Callable[[Tensor], Any]) -> HookHandle:
    """Call a function with a tensor's gradient."""
    history = x.node.history
    if history is None:
        raise GradientError(
            "register_hook: no gradient goes through this tensor; call x.requires_grad_() first"
        )
    if history.hooks is None:
        history.hooks = {}

    def checked(gradient: Tensor) -> Tensor | None:
        found = hook(gradient)
        return None if found is None else gradient_like("a hook's result", found, gradient)

    return HookHandle(history.hooks, checked)


def backward(x: Tensor, gradient: Any, retain_graph: bool | None, create_graph: bool) -> None:
    """Add the gradients of all that x was computed from to their slots."""
    if x.node.history is None:
        raise GradientError(
            f"backward of a tensor of shape {x.shape} that no gradient goes through: nothing it was computed "
            "from requires one. Call w.requires_grad_() before, and compute neither under webgrad.no_grad() "
            "nor by ops without a gradient (argmax, comparisons, integers)"
        )
    seed = _seed("backward", x, gradient)
    order = order_of([x.node])
    with grad_mode_set(create_graph):
        keep = create_graph if retain_graph is None else bool(retain_graph)
        found = pull_back([(x.node, seed)], None, keep=keep, order=order)
        slots: list[Any] = [node for node in order if node.history.sig is SLOT]
        del order  # it would count as a holder of every node
        for node in slots:
            known = found.get(id(node))
            accumulate(node.history, zeros_for(node) if known is None else known)


def grad_of(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    gradients: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of tensors with respect to others, as they are: nothing is added to their `grad`.

    `gradients` are those of the outputs, one for each; an output of one element needs none. What no output
    depends on has None.

    >>> w = wg.asarray(3.0).requires_grad_()
    >>> [each.item() for each in wg.grad_of(w * w, w)]
    [6.0]
    """
    results = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    wanted = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    given = [gradients] if gradients is None or isinstance(gradients, Tensor) else list(gradients)
    if len(given) != len(results):
        given = given * len(results) if gradients is None else given
        if len(given) != len(results):
            raise GradientError(
                f"grad_of: {len(given)} gradients for {len(results)} outputs: give one for each"
            )
    for each in wanted:
        if each.node.history is None:
            raise GradientError(
                "grad_of: one of the inputs does not require a gradient: call requires_grad_() on it before "
                "the outputs are computed"
            )
    seeds = [
        (result.node, _seed("grad_of", result, gradient))
        for result, gradient in zip(results, given, strict=True)
        if result.node.history is not None
    ]
    with grad_mode_set(create_graph):
        keep = create_graph if retain_graph is None else bool(retain_graph)
        found = pull_back(seeds, {id(each.node): each.node for each in wanted}, keep=keep)
    return tuple(found.get(id(each.node)) for each in wanted)


def _seed(what: str, x: Tensor, gradient: Any) -> Tensor:
    """The gradient of a result: ones, where it is a single real number and none is given."""
    if gradient is None and x.size != 1:
        raise GradientError(
            f"{what} of a tensor of shape {x.shape}: only a tensor of one element needs no gradient=. "
            f"Reduce it with sum() or mean(), or call {what}(gradient=…) with that shape"
        )
    if gradient is None and x.dtype.kind == "c":
        raise GradientError(
            f"{what} of a {x.dtype.name} tensor: only a real number needs no gradient=. Take abs(x), "
            f"x.real or x.imag of it, or call {what}(gradient=…)"
        )
    if gradient is None:
        one = primitives.constant(what, 1.0, x.dtype, x.device)
        return Tensor(primitives.expand(one, x.node.sig.shape))
    return gradient_like(what, gradient, x)


def zeros_for(node: Node) -> Tensor:
    """The gradient of a node that no result depends on."""
    zero = primitives.constant("gradient", 0, node.sig.dtype, node.sig.device)
    return Tensor(primitives.expand(zero, node.sig.shape))
