"""Nodes: the lazy graph. A node is a flyweight: its signature, its inputs, and its value once there is one.

In: an op, inputs, attributes. Out: a Node. Invariants: a signature (op, shape, dtype, device, attributes) is
interned, so inference runs once per (op, input signatures); a node that has storage is a leaf and holds no
inputs; nothing here recurses, and no node has a `__del__`, so graphs of any depth are built and dropped.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import chain
from operator import attrgetter, call
from pathlib import Path, PurePath
from types import CodeType
from typing import Any
from weakref import WeakSet, ref

from ..errors import DTypeError
from ..gradients.history import Composed, History, grad_mode
from .op import LEAF, SCALAR, Op
from .refcounts import LISTED


class Signature:
    """What is known of a node without its inputs. Interned: equal ones are the same object."""

    __slots__ = (
        "attributes",
        "device",
        "dtype",
        "form",
        "given",
        "kind",
        "leaf",
        "nbytes",
        "number",
        "op",
        "shape",
        "size",
        "smooth",
    )

    def __init__(
        self,
        op: Op,
        shape: tuple[int, ...],
        dtype: Any,
        device: Any,
        attributes: tuple[Any, ...],
        number: int,
        form: int,
    ) -> None:
        self.op = op
        self.kind = op.kind
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.attributes = attributes
        self.number = number
        self.form = form  # one number for those that differ only in where movement begins
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self.smooth = dtype.kind in "fc" and bool(op.gradient)  # whether gradients go through it
        self.leaf = self if op is LEAF else signature(LEAF, shape, dtype, device)  # of what is computed
        self.given = self if op is SCALAR else self.leaf  # of what stands for it in a recording

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        extra = f" {self.attributes}" if self.attributes else ""
        return f"{self.op.name}{extra} ({sizes}) {self.dtype.name}"


class Node:
    """A value that is computed when it is needed."""

    __slots__ = ("__weakref__", "history", "inputs", "sig", "storage", "where")

    def __init__(self, sig: Signature, inputs: tuple[Node, ...], storage: Any, where: Any) -> None:
        self.sig = sig
        self.inputs = inputs
        self.storage = storage
        self.where = where  # (code, offset) of the user's line; the frame itself would keep tensors alive
        self.history: Any = None  # where gradients are wanted: how it was computed

    def __repr__(self) -> str:
        return f"<Node {self.sig!r}{'' if self.storage is None else ', computed'}>"

    def settle(self, storage: Any) -> None:
        """Store the computed value: become a leaf and drop the inputs."""
        sig = self.sig
        settled = sig.leaf
        # No call from here on, so that Ctrl-C cannot come between these.
        self.storage = storage
        self.sig = settled
        self.inputs = ()


class Bundle(Node):
    """A composite of several results: it has no value, its items have."""

    __slots__ = ("items",)
    items: list[ref[Node]]

    def waiting(self) -> list[Node]:
        """The items that somebody holds and that are not computed."""
        return [each for each in map(call, self.items) if each is not None and each.storage is None]


_history_of, _inputs_of = attrgetter("history"), attrgetter("inputs")
_LIMIT = 1 << 16  # signatures kept of each table
_interned: dict[tuple[Any, ...], Signature] = {}
_forms: dict[tuple[Any, ...], int] = {}
_results: dict[tuple[Any, ...], Signature] = {}
_scalars: dict[tuple[Any, Any], Signature] = {}  # by dtype and device: the most frequent signatures
_numbers = itertools.count(1)


def clear_signatures() -> None:
    """Drop every signature; nodes keep theirs, and ids are never reused."""
    _interned.clear()
    _forms.clear()
    _results.clear()
    _scalars.clear()


def signature(
    op: Op, shape: tuple[int, ...], dtype: Any, device: Any, attributes: tuple[Any, ...] = ()
) -> Signature:
    """The one signature with these contents."""
    key = (op, shape, dtype, device, attributes)
    found = _interned.get(key)
    if found is None:
        if len(_interned) >= _LIMIT:
            clear_signatures()
        # Of several threads here at once, the first one's signature is used by all, and no id is given twice.
        number = next(_numbers)
        form = (
            _forms.setdefault((*key[:-1], op.form(attributes)), number) if op.form and attributes else number
        )
        made = Signature(op, shape, dtype, device, attributes, number, form)
        found = _interned.setdefault(key, made)
    return found


def make(op: Op, inputs: tuple[Node, ...], attributes: tuple[Any, ...] = ()) -> Node:
    """A node that is not computed yet. Inputs are on one device; a scalar may have any."""
    if len(inputs) == 2:  # the most frequent, and quicker by name
        first, second = inputs
        key: tuple[Any, ...] = (op, attributes, first.sig, second.sig)
        has_history = first.history is not None or second.history is not None
    else:
        key = (op, attributes, *[each.sig for each in inputs])
        has_history = any(map(_history_of, inputs))
    sig = _results.get(key)
    if sig is None:
        sig = _infer(op, inputs, attributes)
        if len(_results) >= _LIMIT:
            _results.clear()
        _results[key] = sig
    return made_of(sig, inputs, has_history)


def made_of(
    sig: Signature,
    inputs: tuple[Node, ...],
    has_history: bool,
    recording: Any = None,
    kind: type[Node] = Node,
) -> Node:
    """A node that is not computed yet, of a known signature; `has_history` says whether an input has one, and
    a composite has the recording that it is made by.
    """
    node = kind(sig, inputs, None, user_frame())
    if has_history:
        remember(node, recording)
    made = backlog.made
    made.append(ref(node))
    if len(made) >= backlog.limit:
        backlog.consider(node)
    return node


def items_of(bundle: Bundle, sigs: Sequence[Signature], has_history: bool) -> list[Node]:
    """The items of a bundle, made by the same line."""
    items = [Node(sig, (bundle,), None, bundle.where) for sig in sigs]
    if has_history:
        for each in items:
            remember(each)
    bundle.items = [*map(ref, items)]
    backlog.made.extend(bundle.items)
    return items


def remember(node: Node, recording: Any = None) -> None:
    """Keep a node's history, if gradients go through it and are wanted in this thread."""
    sig = node.sig
    if sig.smooth and grad_mode.on:
        inputs = node.inputs
        node.history = History(sig, inputs) if recording is None else Composed(sig, inputs, recording)
        if grad_mode.made is not None:
            grad_mode.made.add(id(node))


class Backlog:
    """The nodes that wait to be computed: a loop that never reads must not grow without bound.

    A full backlog is computed: all nodes that are still held. That happens at a node like the one where it
    happened before: it comes again when a program loops, and the same plan with it. Without such a node it
    happens at twice the length.
    """

    def __init__(self) -> None:
        self.made: list[ref[Node]] = []  # nodes made; some of them may be computed or dropped by now
        self.most = 2000  # nodes that may wait
        self.limit = 2000  # the length of `made` at which to look
        self.nbytes = 0  # of leaves made since the last look
        self.most_bytes = 1 << 40
        self.full = False
        self.mark: Signature | None = None
        self.gradients = 0  # how many computations of gradients are under way
        self.pauses: list[None] = []  # one for each open batch, which is computed when its user says so
        self.failed: WeakSet[Node] = WeakSet()  # what failed when it was computed, and what that is made of
        # Is given what waits and is held, and the node that is being made.
        self.compute: Callable[[list[Node], Node], None] = lambda held, newest: None

    def consider(self, node: Node) -> None:
        """Compute the backlog if it is full and this is a good node to do so."""
        if self.pauses or self._waits_for_gradients(node) or (not self.full and not self._fills()):
            return
        far = self.nbytes > self.most_bytes or len(self.made) >= 2 * self.most
        if far or self.mark in (None, node.sig):
            self.mark = node.sig
            held = self.held()
            self.restart()
            self.compute(held, node)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A context in which the backlog is not computed."""
        self.pauses.append(None)  # atomic
        try:
            yield
        finally:
            self.pauses.pop()

    def _waits_for_gradients(self, node: Node) -> bool:
        """Whether gradients are or will be computed: values not stored now would be computed again."""
        is_short = len(self.made) < 8 * self.most and self.nbytes <= self.most_bytes
        return is_short and (self.gradients > 0 or node.history is not None)

    def _fills(self) -> bool:
        """Whether the backlog is full; where it is not, count again."""
        waiting = self.waiting()
        self.full = len(waiting) >= self.most or self.nbytes > self.most_bytes
        if not self.full:
            self.restart(waiting)
        return self.full

    def held(self) -> list[Node]:
        """The waiting nodes held by more than waiting nodes: once these are computed, nothing waits.

        The others must not be held here either, since held values are stored.
        """
        waiting = self.waiting()
        uses = Counter(map(id, chain.from_iterable(map(_inputs_of, waiting))))
        counts = list(map(sys.getrefcount, waiting))
        return [
            node
            for node, count in zip(waiting, counts, strict=True)
            if count - uses.get(id(node), 0) > LISTED and node.sig.kind != "bundle"
        ]

    def waiting(self) -> list[Node]:
        """The nodes that are neither computed nor dropped."""
        return [each for each in map(call, self.made) if each is not None and each.storage is None]

    def restart(self, waiting: Sequence[Node] = ()) -> None:
        """Count again, from the waiting nodes."""
        self.made = [ref(each) for each in waiting]
        self.limit = len(waiting) + max(1, self.most - len(waiting) // 2)
        self.nbytes, self.full = 0, False

    def leave_out(self, nodes: Set[Node]) -> None:
        """Let nodes wait without being computed, until somebody asks for them."""
        self.made = [each for each in self.made if each() not in nodes]

    def note_failure(self, roots: Sequence[Node]) -> None:
        """Remember what could not be computed, with all that waits under it."""
        stack = [*roots]
        while stack:
            node = stack.pop()
            if node.storage is None and node not in self.failed:
                self.failed.add(node)
                stack += node.inputs

    def forget_placeholders(self, start: int) -> None:
        """Leave out what was made of placeholders since there were `start` nodes: an exception that somebody
        keeps may hold it, and it can never be computed.
        """
        made, end = self.made, len(self.made)
        opened: set[Node] = set()
        kept: list[ref[Node]] = []
        for each in made[start:end]:
            node = each()
            if node is not None and any(map(_is_placeholder, node.inputs)):
                opened.add(node)
            elif node is not None:
                (kept.append(each) if opened.isdisjoint(node.inputs) else opened.add(node))
        made[start:end] = kept  # one step: other threads append behind these

    def added(self, nbytes: int) -> None:
        """A leaf was made."""
        self.nbytes += nbytes
        if self.nbytes > self.most_bytes:
            self.limit = 0


def _is_placeholder(node: Node) -> bool:
    return node.storage is None and node.sig.op is LEAF


backlog = Backlog()


def _infer(op: Op, inputs: tuple[Node, ...], attributes: tuple[Any, ...]) -> Signature:
    assert op.infer is not None, op
    sigs = tuple(each.sig for each in inputs)
    shape, dtype = op.infer(sigs, attributes)
    if op.kind == "map" and sigs[0].device.is_gpu:
        check_offered(op, sigs[-1].dtype)
    return signature(op, shape, dtype, sigs[0].device, attributes)


def source(op: Op, shape: tuple[int, ...], dtype: Any, device: Any, attributes: tuple[Any, ...] = ()) -> Node:
    """A node without inputs, such as an iota."""
    return Node(signature(op, shape, dtype, device, attributes), (), None, user_frame())


def leaf(storage: Any, shape: tuple[int, ...], dtype: Any, device: Any, where: Any = None) -> Node:
    """A node that has its value; `where` is the user's line that made it, by default the current one."""
    sig = signature(LEAF, shape, dtype, device)
    backlog.added(sig.nbytes)
    return Node(sig, (), storage, where or user_frame())


def scalar(value: Any, dtype: Any, device: Any) -> Node:
    """A number known to the host, of no dimensions: kernels take it as a parameter."""
    sig = _scalars.get((dtype, device))
    if sig is None:
        sig = _scalars[dtype, device] = signature(SCALAR, (), dtype, device)
    return Node(sig, (), value, None)


def check_offered(op: Op, dtype: Any) -> None:
    """Refuse a map op for a dtype that GPUs do not compute it in."""
    if not isinstance(op.wgsl, str) and dtype.compute not in op.wgsl:
        raise DTypeError(
            f"{op.name} of {dtype.name} is not offered on GPUs: convert with x.astype(webgrad.float32), or "
            "compute it on the cpu with x.to_device('cpu')"
        )


# The user's line

_LAUNCHERS = ("webgrad", "webgrad.exe")  # the latter is a zip, with the script inside
_OURS = {str(path) for path in Path(__file__).parent.parent.rglob("*.py")}


def user_frame() -> tuple[CodeType, int]:
    """The user's line that runs now, as nodes keep it."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_filename in _OURS and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def _is_launcher(code: CodeType) -> bool:
    """Whether it only starts our commands: `python -m webgrad.cli`, or the script that pip makes."""
    file = code.co_filename
    return file.startswith("<frozen ") or PurePath(file.removesuffix("__main__.py")).name in _LAUNCHERS


def where_made(node: Node) -> str:
    """The user's line that made a node: "train.py:12"; empty where it is not known."""
    return line_of(node.where)


def line_of(where: tuple[CodeType, int] | None) -> str:
    """A line of a user's code as text: "train.py:12"; empty where there is none."""
    if where is None:
        return ""
    code, offset = where
    if _is_launcher(code):
        return ""
    line = next((line for start, end, line in code.co_lines() if start <= offset < end), None)
    return f"{code.co_filename}:{line or code.co_firstlineno}"
