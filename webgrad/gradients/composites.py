"""Gradients of composites, and rules of ops, recorded: what goes back through a node is built at once.

In: a node's history, its gradient, and which of its inputs need one. Out: the gradients of its inputs. The
gradient of a composite is the recording of its function run again, and gone back through; in the graph it is
one with what the composite computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import CaptureError
from ..functions.learning.autocast import autocast_dtype
from ..functions.recording import Recording, body_of, check_pure, placeholder, places_of
from ..graph.node import Node, Signature
from ..graph.trace import ImpureError, noting
from ..tensor import Tensor
from .history import Composed, History, grad_mode_set

Found = Sequence[Node | None]
PullBack = Callable[..., dict[int, Tensor]]
Rule = Callable[[Signature, Tensor, Tensor, tuple[Tensor, ...], tuple[bool, ...]], Sequence[Tensor | None]]
MOST_RULES = 1 << 13
_rules: dict[tuple[Any, ...], Recording | None] = {}


def by_rule(
    rule: Rule, history: History, gradient: Node, result: Node, wanted: tuple[bool, ...]
) -> Found | None:
    """The gradients of an op's inputs, by its rule; None where that cannot be recorded."""
    sig, inputs = history.sig, history.inputs
    sigs = [gradient.sig.given, sig.leaf, *[each.sig.given for each in inputs]]
    key = (sig, wanted, autocast_dtype(), *sigs)
    if key not in _rules:
        if len(_rules) >= MOST_RULES:
            _rules.clear()
        _rules[key] = _recorded(lambda: _of_rule(rule, sig, wanted, sigs))
    recording = _rules[key]
    return None if recording is None else recording((gradient, result, *inputs))


def _of_rule(rule: Rule, sig: Signature, wanted: tuple[bool, ...], sigs: Sequence[Signature]) -> Recording:
    given = [placeholder(each) for each in sigs]
    g, y, *xs = map(Tensor, given)
    with noting() as trace:
        found = rule(sig, g, y, tuple(xs), wanted)
        check_pure(trace)
        return Recording(given, [None if each is None else each.node for each in found])


def through(
    pull_back: PullBack,
    vertex: Node,
    history: Composed,
    gradients: Sequence[Node | None],
    wanted: tuple[bool, ...],
) -> Found | None:
    """The gradients of a composite's inputs; None where they cannot be recorded."""
    seeds = tuple([None if each is None else each.sig.given for each in gradients])
    known: dict[Any, Recording | None] = history.recording.backwards
    key = wanted, seeds, autocast_dtype()
    if key not in known:
        known[key] = _recorded(lambda: _of_composite(pull_back, history.recording, wanted, seeds))
    recording = known[key]
    if recording is None:
        return None
    result = (vertex,) if history.recording.is_single else ()
    given = (*history.inputs, *result, *[each for each in gradients if each is not None])
    return recording(given)


def _of_composite(
    pull_back: PullBack,
    recording: Recording,
    wanted: tuple[bool, ...],
    seeds: Sequence[Signature | None],
) -> Recording:
    given = list(map(placeholder, recording.sigs, recording.tracked))
    inputs = [node for node, each in zip(given, wanted, strict=False) if each]
    with noting() as trace:
        with grad_mode_set(True):
            roots = recording.computed(given)
        places = places_of(given)
        body, constants, _, walked = body_of(roots, len(given), places, whole=True)
        if body is not recording.body:
            raise ImpureError
        # of equal constants the body has one, and what goes back through it may meet another
        places = {id(node): body.given[at] for node, at in walked.numbers.items() if at in body.given}
        gradients = [None if each is None else placeholder(each) for each in seeds]
        pairs = [
            (root, Tensor(each)) for root, each in zip(roots, gradients, strict=True) if each is not None
        ]
        found = pull_back(pairs, {id(node): node for node in inputs}, keep=True)
        check_pure(trace)
        given += constants
        if recording.is_single:  # its result is there: what is computed of it need not compute it again
            (result,) = roots
            result.sig, result.inputs = result.sig.leaf, ()
            given.append(result)
        given += [each for each in gradients if each is not None]
        tensors = [found.get(id(node)) for node in given[: len(wanted)]]
        found_nodes = [None if each is None else each.node for each in tensors]
        return Recording(given, found_nodes, places=places)


def _recorded(make: Callable[[], Recording]) -> Recording | None:
    try:
        return make()
    except (ImpureError, CaptureError):
        return None
