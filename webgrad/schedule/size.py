"""How large a kernel's text is for a driver's compiler, and how large one may be.

In: the nodes that share a kernel, and what they read. Out: a size in additions. Lavapipe, the slowest
compiler we know, takes about a millisecond for one, so a kernel of `MAX_SIZE` compiles in half a second. Most
of that goes into loads and stores: what counts is how often the text loads a value.
`lower/size.py` measures the finished kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from .plan import Group, joins_pairs

MAX_SIZE = 620  # additions that the text of one kernel may come to: half a second of compiling
COMPONENT = 10  # additions that take as long to compile as loading or storing 32 bits
SHARED = 2  # the same where all threads share the address
PIECE_COST = 12  # additions that an input of a concat counts for
TEMPLATE = 180  # additions that the text of a product or of attention counts for, without its holes
FLOAT64 = 3  # times the text of a function of float32
MAX_UNROLLED_TERMS = (
    12  # elements of a window that are written out: each is a load, and loads are slow to compile
)

# A value, a hash of how its index is made, how often that is written out (`_repeated`); 0: all threads share
# the address.
Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads in a kernel's text.

    The `open` ones depend on the index of the node at the end of the kernel: a movement of it makes different
    loads of them. The `closed` ones are in the loops of folds, whose results stay in registers.
    """

    open: frozenset[Place] = frozenset()
    closed: frozenset[Place] = frozenset()
    windowed: bool = False  # whether folds over a few elements are written out


NO_LOADS = Loads()
_LOOPS = ("reduce", "contract", "attend", "scan")


def wide_factor(op_cost: int, kind: str, itemsize: int) -> int:
    """The size of a map's text for a dtype, relative to float32."""
    return FLOAT64 if op_cost > 1 and kind == "f" and itemsize == 8 else 1


def cost_of(graph: Snapshot, number: int) -> int:
    """Additions; a concat chooses among its inputs by branches.

    Not for the parts of complex numbers: whatever reads one reads both.
    """
    sig = graph.sigs[number]
    if sig.kind == "concat" and not joins_pairs(graph, number):
        return sig.op.cost + PIECE_COST * len(graph.inputs[number])
    return sig.op.cost * wide_factor(sig.op.cost, sig.dtype.kind, sig.dtype.itemsize)


def way(number: int, sig: Signature, source: Signature) -> tuple[object, ...]:
    """From a node's indices to those at which it reads an input: equal for equal movements."""
    if sig.kind in ("map", "cast"):
        return sig.shape, source.shape
    return (sig.number, source.shape) if sig.kind == "move" else (number,)


def loads_at(graph: Snapshot, number: int, parts: Mapping[int, Loads]) -> Loads:
    """The loads of a kernel that ends at a node, from those of its inputs."""
    sig = graph.sigs[number]
    loads = list(parts.values())
    windowed = sig.op.name == "window" or any(each.windowed for each in loads)
    closed = NO_LOADS.closed.union(*[each.closed for each in loads])
    terms = _terms(graph, number) if windowed and sig.kind == "reduce" else 0
    often = 0 if sig.size == 1 and sig.kind not in _LOOPS else terms or 1
    places: set[Place] = set()
    for each, part in parts.items():
        if not part.open or (sig.kind in ("map", "cast") and graph.sigs[each].shape == sig.shape):
            places |= part.open
            continue
        turn = way(number, sig, graph.sigs[each])
        places |= {
            (value, hash((turn, one)), _repeated(sig, graph.sigs[each], times, often))
            for value, one, times in part.open
        }
    if sig.kind in _LOOPS and not terms:
        return Loads(closed=closed | places)
    return Loads(frozenset(places), closed, windowed)


def _repeated(sig: Signature, source: Signature, times: int, often: int) -> int:
    """How often a load is written out after a node.

    A fold that is expanded to the elements of another is computed once for all of them: below zero until a
    window makes different ones of it.
    """
    if source.size < sig.size and times > 1 and (sig.op.name == "expand" or sig.kind in ("map", "cast")):
        return -times
    if sig.op.name == "window":
        return abs(times)
    return -times if sig.kind == "reduce" and times < 0 and often else times * often


def _terms(graph: Snapshot, number: int) -> int:
    """How many elements a fold over windows writes out; 0: it is a loop."""
    shape = graph.sigs[graph.inputs[number][0]].shape
    terms = math.prod(shape[axis] for axis in graph.sigs[number].attributes[0])
    return terms if terms <= MAX_UNROLLED_TERMS else 0


def size_of(graph: Snapshot, kind: str, outputs: Iterable[int], loads: Loads, cost: int, lanes: int) -> int:
    """The size of a kernel with `lanes` lanes.

    Windows that are written out overlap, and lanes share most of what they multiply with: such a kernel has
    half of the loads.
    """
    if loads.windowed:
        lanes = -(-lanes // 2)
    total = cost + (TEMPLATE if kind in ("contract", "attend") else 0)
    total += sum([_access(graph.sigs[each], lanes) for each in outputs])
    for places in (loads.open, loads.closed):
        total += sum([abs(times) * _access(graph.sigs[each], lanes) or SHARED for each, _, times in places])
    return total


def _access(sig: Signature, lanes: int) -> int:
    """What loading or storing one element, or one for each lane, counts for."""
    return SHARED if sig.size == 1 else COMPONENT * max(1, lanes * sig.dtype.itemsize // 4)


def lanes_of(graph: Snapshot, kind: str, outputs: Iterable[int]) -> int:
    """The fewest lanes of a kernel: 1 for a map without packed results."""
    whole = kind == "map" and not any(graph.sigs[each].dtype.is_packed for each in outputs)
    return 1 if whole else 4


def group_size(graph: Snapshot, group: Group, lanes: int | None = None) -> int:
    """The size of a group's kernel."""
    found = {each: Loads(frozenset(((each, 0, 1),))) for each in group.reads}
    cost = 0
    for number in group.inside:
        found[number] = loads_at(
            graph, number, {each: found[each] for each in graph.inputs[number] if each in found}
        )
        cost += cost_of(graph, number)
    ends = [found[each] for each in group.outputs]
    loads = Loads(
        NO_LOADS.open.union(*[each.open for each in ends]),
        NO_LOADS.closed.union(*[each.closed for each in ends]),
        any(each.windowed for each in ends),
    )
    if lanes is None:
        lanes = lanes_of(graph, group.kind, group.outputs)
    return size_of(graph, group.kind, group.outputs, loads, cost, lanes)
