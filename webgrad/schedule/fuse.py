"""Which nodes are stored: the rules of fusion. All others are computed inside the kernels that need them.

Forward, inputs first: what a kernel that ends here would hold (its `Content`), and cuts where that is not
possible or too much. Backward, results first: who pulls a value, and at how many different indices; cuts
where work would be done twice. Both run until nothing is added. The rules are the functions of this file, in
reading order.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Literal

from ..device_profile import DeviceProfile
from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from .axes import Axes, nontrivial, through_map, through_move
from .content import Content, ContentKind
from .packed_products import whole_inputs
from .plan import bindings_of
from .size import MAX_SIZE, Loads, cost_of, lanes_of, loads_at, size_of, way

MAX_RECOMPUTE_COST = 24  # additions from which a map is stored rather than computed by several kernels
MAX_REPEATED_COST = 48  # additions that kernels may repeat, all together, where each of them is cheap
LOAD_COST = 8  # additions that reading one more value counts for there
MAX_SCALARS = 12  # run-time numbers in one kernel: they are parameters, like its sizes
MAX_NESTING = 5  # indices of indices: expressions and branches grow with each, some of them double
MAX_INDEX_MAPS = 4  # different indices at which a kernel computes a map, unless that is little work in all
MAX_REFOLDING_KERNELS = 3  # kernels that fold the same rows again instead of one that stores the result
MAX_REFOLDED_COST = 80  # additions that may be repeated for that
MAX_LOOPS = 2  # loops over a row that compute a value with a fold before it
MAX_OVERLAP_COST = 24  # additions that overlapping windows repeat for each element; more: it is stored
MAX_OPERAND_COST = 12  # additions that a contraction computes for each element it loads
MAX_ATTENTION_COSTS = (48, 2, 2, 12, 12, 12)  # of attention: for query, key, value, scale, length and mask
MAX_ROUNDS = 8  # forward and backward, until nothing more is stored

ContentOf = Callable[[int], Content]
_CENTERS: dict[str, Literal["contract", "attend"]] = {"contract": "contract", "attend": "attend"}


def is_source(sig: Signature) -> bool:
    """Whether a node has its value before any kernel runs."""
    return sig.kind in ("leaf", "scalar")


def choose_stored(
    graph: Snapshot,
    profile: DeviceProfile,
    *,
    fuse: bool = True,
    alone: Callable[[Signature], bool] = lambda sig: False,
    kept: Callable[[Snapshot], set[int]] = lambda graph: set(),
    pulls: Callable[[Snapshot, int], bool] = lambda graph, number: False,
) -> tuple[set[int], dict[int, Content]]:
    """The nodes to store, and the content of each stored or inner node. Those that are `kept` or `alone` are
    stored, and what the latter read, before it is moved, unless they pull it.
    """
    order = [each for each in graph.order() if not is_source(graph.sigs[each])]
    fixed = {each for each in graph.roots if not is_source(graph.sigs[each])}
    if not fuse:
        fixed |= {each for each in order if graph.sigs[each].kind != "move"}
    for each in order:
        if graph.sigs[each].kind in ("sort", "scatter", "scan", "fft", "kernel"):
            fixed.add(each)
        if pulls(graph, each):
            continue
        fixed |= {source for source in whole_inputs(graph, each) if not is_source(graph.sigs[source])}
        if alone(graph.sigs[each]):
            read = {_unmoved(graph, source) for source in graph.inputs[each]}
            fixed |= {each} | {source for source in read if not is_source(graph.sigs[source])}
    fixed |= kept(graph) if fuse else set()
    known = _Known(graph, order, profile)
    for _ in range(MAX_ROUNDS):
        stored, contents = _settled(graph, order, set(fixed), known)
        centers = {each for each in stored - fixed if graph.sigs[each].kind in _CENTERS}
        if centers:  # known from the start, so that no node after a contraction is stored instead of it
            stored, contents = _settled(graph, order, fixed | centers, known)
        more = _backward(graph, order, stored, contents)
        more |= {each for each in graph.held & contents.keys() - stored if contents[each].kind != "map"}
        if not more - stored:
            return _without_spares(graph, order, stored, contents, fixed, known)
        fixed |= more
    return _settled(graph, order, fixed | stored, known)


def _unmoved(graph: Snapshot, number: int) -> int:
    """What a value is before movement."""
    while graph.sigs[number].kind == "move" and graph.sigs[number].op.name != "pad":
        (number,) = graph.inputs[number]
    return number


def _without_spares(
    graph: Snapshot,
    order: list[int],
    stored: set[int],
    contents: dict[int, Content],
    fixed: set[int],
    known: _Known,
) -> tuple[set[int], dict[int, Content]]:
    """The same cuts without maps that were cut for lack of room before a value under them was stored: a chain
    of residuals grows until then. What is still too large is cut again.
    """
    light = {each for each in stored - fixed if contents[each].kind == "map"}
    if not light:
        return stored, contents
    fewer, found = _settled(graph, order, stored - light, known)
    if len(fewer) < len(stored) and _backward(graph, order, fewer, found) <= fewer:
        return fewer, found
    return stored, contents


# Forward


class _Known:
    """Results cached from one forward pass to the next, since most stay the same: costs, contents of values
    that are read, the content and bindings of a node by its parts, and the cuts made at a node with
    these parts.
    """

    def __init__(self, graph: Snapshot, order: list[int], profile: DeviceProfile) -> None:
        self.graph = graph
        self.profile = profile
        self.costs = {number: cost_of(graph, number) for number in order}
        self.inputs = {number: list(dict.fromkeys(graph.inputs[number])) for number in order}  # each once
        self._read: dict[int, Content] = {}
        self._made: dict[int, tuple[list[Content], Content, int]] = {}
        self.looked_at: dict[tuple[int, ...], tuple[list[Content], Content, frozenset[int]]] = {}

    def read(self, number: int) -> Content:
        """The content of a node that a kernel reads."""
        found = self._read.get(number)
        if found is None:
            one = frozenset((number,))
            if self.graph.sigs[number].kind == "scalar":
                found = Content("map", 0, frozenset(), scalars=one)
            else:
                found = Content("map", 0, one, loads=Loads(frozenset(((number, 0, 1),))))
            self._read[number] = found
        return found

    def content(self, number: int, inputs: list[int], parts: list[Content]) -> tuple[Content, int]:
        """The content of a kernel that ends here, and its bindings: reads, writes, and perhaps parameters."""
        made = self._made.get(number)
        if made is None or not all(map(operator.is_, made[0], parts)):
            content = _content(self.graph, number, inputs, parts, self.costs)
            sigs = self.graph.sigs
            bound = 1 + sum(bindings_of(sigs[each], self.profile) for each in (number, *content.reads))
            made = self._made[number] = parts, content, bound
        return made[1], made[2]


def _settled(
    graph: Snapshot, order: list[int], stored: set[int], known: _Known
) -> tuple[set[int], dict[int, Content]]:
    """Repeat the forward pass until no cut is added: a cut changes the contents of nodes before it."""
    while True:
        count = len(stored)
        stored, contents = _forward(graph, order, stored, known)
        if len(stored) == count:
            return stored, contents


def _forward(
    graph: Snapshot, order: list[int], stored: set[int], known: _Known
) -> tuple[set[int], dict[int, Content]]:
    contents: dict[int, Content] = {}

    def content_of(number: int) -> Content:
        """The content that pulling an input adds to a kernel."""
        if number in stored or is_source(graph.sigs[number]):
            return known.read(number)
        return contents[number]

    for number in order:
        inputs = known.inputs[number]
        parts = [content_of(each) for each in inputs]
        key = (number, number in stored, *map(id, parts))
        if key in known.looked_at:
            _, contents[number], cuts = known.looked_at[key]
            stored |= cuts
            continue
        whole = frozenset(inputs).union(*[part.inside for part in parts]) - stored
        count = len(stored)
        _cut_misfits(graph, number, inputs, content_of, stored)
        if len(stored) > count and graph.sigs[number].op.name == "window":
            _renew_moved(graph, number, content_of, stored, known, contents)
        while True:
            content, bound = known.content(number, inputs, [content_of(each) for each in inputs])
            fits = content.size <= MAX_SIZE and len(content.scalars) <= MAX_SCALARS
            deep = content.nesting > MAX_NESTING
            if fits and not deep and bound <= known.profile.max_storage_buffers:
                break
            largest = max(
                (each for each in inputs if each not in stored and not is_source(graph.sigs[each])),
                key=lambda each: (
                    deep and content_of(each).nesting,
                    content_of(each).size,
                    content_of(each).cost,
                    each,
                ),
                default=None,
            )
            if largest is None:
                break
            stored.add(largest)
        contents[number] = content
        known.looked_at[key] = parts, content, whole & stored
    return stored, contents


def _renew_moved(
    graph: Snapshot,
    number: int,
    content_of: ContentOf,
    stored: set[int],
    known: _Known,
    contents: dict[int, Content],
) -> None:
    """The contents of the movement under a window again, once what is moved is stored: else its readers
    would seem to compute it still, and something larger would be stored for lack of room.
    """
    moved = []
    (number, *_) = graph.inputs[number]
    while graph.sigs[number].kind == "move" and number not in stored:
        moved.append(number)
        (number, *_) = graph.inputs[number]
    for each in reversed(moved):
        inputs = list(dict.fromkeys(graph.inputs[each]))
        contents[each], _ = known.content(each, inputs, [content_of(one) for one in inputs])


def _content(
    graph: Snapshot, number: int, inputs: list[int], parts: list[Content], costs: Mapping[int, int]
) -> Content:
    none: frozenset[int] = frozenset()
    reads = none.union(*[part.reads for part in parts])
    scalars = none.union(*[part.scalars for part in parts])
    inside = none.union((number,), *[part.inside for part in parts])
    cost = sum([costs[each] for each in inside])
    nesting = max((part.nesting for part in parts), default=0) + _nests(graph, number)
    kind, rows, center = _form(graph, number, inputs, parts)
    loads = loads_at(graph, number, {each: part.loads for each, part in zip(inputs, parts, strict=True)})
    size = size_of(graph, kind, (number,), loads, cost, lanes_of(graph, kind, (number,)))
    return Content(kind, cost, reads, rows, center, scalars, inside, nesting, loads, size)


def _form(
    graph: Snapshot, number: int, inputs: list[int], parts: list[Content]
) -> tuple[ContentKind, Axes | None, int]:
    """The kind of a kernel that ends here, the axes its folds depend on, and the contraction in it."""
    sig = graph.sigs[number]
    if sig.kind in _CENTERS:
        return _CENTERS[sig.kind], None, number
    if sig.kind == "reduce":
        return "rows", nontrivial(sig.shape), -1
    rows: Axes | None = None
    center = -1
    for each, part in zip(inputs, parts, strict=True):
        if part.kind == "rows":
            rows = _carried(sig, graph.sigs[each], part.rows or frozenset())
        elif part.kind in _CENTERS:
            center = part.center
    if center >= 0:
        return _CENTERS[graph.sigs[center].kind], None, center
    return "map" if rows is None else "rows", rows, -1


def _nests(graph: Snapshot, number: int) -> int:
    """1 for an op that reads its input in a branch, or at an index that uses the result's more than once."""
    sig = graph.sigs[number]
    if sig.kind in ("concat", "gather") or sig.op.name == "pad":
        return 1
    if sig.op.name != "reshape":
        return 0
    before = graph.sigs[graph.inputs[number][0]].shape
    return int([size for size in before if size != 1] != [size for size in sig.shape if size != 1])


def _carried(sig: Signature, source: Signature, axes: Axes) -> Axes | None:
    if sig.kind == "move":
        return through_move(sig, source, axes)
    return through_map(sig, source, axes)


def _cut_misfits(
    graph: Snapshot, number: int, inputs: list[int], content_of: ContentOf, stored: set[int]
) -> None:
    """Store the inputs whose folds or contractions cannot share a kernel with this node."""
    sig = graph.sigs[number]
    if sig.op.name == "window":
        _cut_overlap(graph, number, content_of, stored)
    if sig.kind == "contract":
        for each in inputs:
            part = content_of(each)
            if part.kind != "map" or part.cost > MAX_OPERAND_COST or len(part.reads) > 2:
                stored |= _cut_moved(graph, each, stored)
        return
    if sig.kind == "scatter":
        stored |= {each for each in inputs if content_of(each).kind != "map"}
        return
    if sig.kind == "attend":
        for each, most in zip(graph.inputs[number], MAX_ATTENTION_COSTS, strict=False):
            part = content_of(each)
            work = sum(cost_of(graph, one) for one in part.inside if graph.sigs[one].kind != "move")
            if part.kind != "map" or work > most or len(part.reads) > 3:
                stored.add(each)
        return
    heavy = [each for each in inputs if content_of(each).kind != "map"]
    if not heavy:
        return
    keep: int | None = None
    for each in sorted(heavy, key=lambda one: (content_of(one).cost, one), reverse=True):
        if each in stored:  # the fold of one before it
            continue
        if _fits(graph, number, each, content_of(each), number in stored) and (
            keep is None or _agree(graph, sig, keep, each, content_of)
        ):
            keep = each if keep is None else keep
        else:
            stored |= _cut(graph, each, content_of(each))


def _cut_moved(graph: Snapshot, number: int, stored: set[int]) -> set[int]:
    """What to store for a contraction's operand: not the moved value, but that before the movement, since
    others may read it too, and windows are larger. It may have been stored meanwhile.
    """
    found, cost = number, 0
    while graph.sigs[found].kind == "move" and found not in stored:
        cost += cost_of(graph, found)
        (found, *_) = graph.inputs[found]
    if graph.sigs[found].size > graph.sigs[number].size or is_source(graph.sigs[found]):
        return {number}
    return {number} if found in stored and cost > MAX_OPERAND_COST else {found}


def _cut_overlap(graph: Snapshot, number: int, content_of: ContentOf, stored: set[int]) -> None:
    """Store what is costly under overlapping windows: its elements would be computed for several of them."""
    times = 1.0
    while graph.sigs[number].kind == "move" and number not in stored:
        sig, number = graph.sigs[number], graph.inputs[number][0]
        if sig.op.name == "window":
            times *= sig.attributes[1] / sig.attributes[2]
    is_dear = content_of(number).cost * (times - 1) > MAX_OVERLAP_COST
    if is_dear and number not in stored and not is_source(graph.sigs[number]):
        stored.add(number)


def _cut(graph: Snapshot, number: int, content: Content) -> set[int]:
    """What to store so that a value becomes cheap: its only fold where that is much smaller, else itself.

    A contraction's kernel cannot store a packed value whose rows share words: there the contraction itself is
    stored.
    """
    if content.kind in _CENTERS and _has_odd_rows(graph, number, content):
        return {content.center}
    if content.kind == "rows" and not graph.sigs[number].dtype.is_packed:
        while graph.sigs[number].op.name == "reshape":  # as computed, it may merge
            (number,) = graph.inputs[number]
    folds = {each for each in content.inside if graph.sigs[each].kind == "reduce"}
    small = 4 * sum(graph.sigs[each].size for each in folds) <= graph.sigs[number].size
    return folds if content.kind == "rows" and len(folds) == 1 and small else {number}


def _fits(graph: Snapshot, number: int, each: int, part: Content, is_stored: bool) -> bool:
    """Whether a node can be computed, and perhaps stored, in the kernel of one of its inputs."""
    sig, source = graph.sigs[number], graph.sigs[each]
    if part.kind in _CENTERS:  # an epilogue uses the element's index in memory
        if is_stored and _has_odd_rows(graph, number, part):
            return False
        if part.kind == "attend" and sig.op.name == "permute":  # columns stay adjacent
            whole = sig.shape[-1] % 4 == 0 or sig.shape[-1] == graph.sigs[part.center].shape[-1]
            return whole and sig.attributes[0][-1] == len(sig.shape) - 1
        return (sig.kind in ("map", "cast") and source.shape == sig.shape) or sig.op.name == "reshape"
    assert part.rows is not None
    packed = is_stored and sig.dtype.is_packed and sig.kind != "reduce"
    if packed and _shares_words(sig, source, part.rows):
        return False
    if sig.kind == "reduce":  # the same rows, folded along what the first fold does not depend on
        axes = frozenset(sig.attributes[0])
        kept = nontrivial(source.shape) - axes
        return not (axes & part.rows) and kept == part.rows
    if sig.kind in ("map", "cast"):
        return True
    if sig.kind == "move":
        carried = through_move(sig, source, part.rows)
        return carried is not None and sig.op.name in ("reshape", "permute", "expand")
    if sig.op.name == "take_along":  # an element picked from each row
        return (
            graph.inputs[number][0] == each
            and each != graph.inputs[number][1]
            and not part.rows & {sig.attributes[0]}
        )
    return False


def _has_odd_rows(graph: Snapshot, number: int, content: Content) -> bool:
    """Whether rows of a packed node, stored by a contraction, would share words."""
    return graph.sigs[number].dtype.is_packed and graph.sigs[content.center].shape[-1] % 4 != 0


def _shares_words(sig: Signature, source: Signature, rows: Axes) -> bool:
    """Whether rows of a packed result, written one by one, would share words."""
    carried = _carried(sig, source, rows)
    if carried is None:
        return True
    last = len(sig.shape) - 1
    return bool(nontrivial(sig.shape) - carried) and (last in carried or sig.shape[last] % 4 != 0)


def _agree(graph: Snapshot, sig: Signature, keep: int, other: int, content_of: ContentOf) -> bool:
    """Whether two inputs with folds go by the same rows; with contractions, whether it is the same one."""
    a, b = content_of(keep), content_of(other)
    if a.kind == b.kind == "contract":  # what follows a contraction keeps its elements in place
        return a.center == b.center
    if a.kind != "rows" or b.kind != "rows":
        return False
    rows = (a.rows or frozenset(), b.rows or frozenset())
    return _carried(sig, graph.sigs[keep], rows[0]) == _carried(sig, graph.sigs[other], rows[1])


# Backward


def _backward(graph: Snapshot, order: list[int], stored: set[int], contents: dict[int, Content]) -> set[int]:
    """The nodes that would be computed too often: by several kernels, or at many indices in one."""
    more: set[int] = set()
    owners: dict[int, set[int]] = {each: set() for each in order}
    maps: dict[int, set[tuple[int, int]]] = {each: set() for each in order}  # by owner
    for number in reversed(order):
        sig = graph.sigs[number]
        if number in stored or _too_often(graph, number, contents, owners[number], maps[number]):
            if number not in stored:
                more.add(number)
            owners[number] = {number}
            maps[number] = {(number, 0)}
        mine, at = owners[number], maps[number]
        for each in graph.inputs[number]:
            if each not in owners:
                continue
            source = graph.sigs[each]
            owners[each] |= mine
            if sig.kind in ("map", "cast") and source.shape == sig.shape:
                maps[each] |= at
            else:
                turn = hash(way(number, sig, source))
                maps[each] |= {(owner, hash((turn, one))) for owner, one in at}
    return more


def _too_often(
    graph: Snapshot, number: int, contents: dict[int, Content], owners: set[int], maps: set[tuple[int, int]]
) -> bool:
    sig, content = graph.sigs[number], contents[number]
    if sig.kind in ("move", "iota"):
        return False
    if content.kind in _CENTERS:
        return len(owners) > 1
    if content.kind == "rows":
        whole = content.rows == nontrivial(sig.shape)  # one value per row: it stays in the kernel
        if len(owners) > 1:
            return not _is_read_anyway(graph, number, contents, owners)
        return not whole and len(maps) > MAX_LOOPS
    effort = content.cost + LOAD_COST * max(0, len(content.reads) - 1)
    if len(owners) > 1 and (
        content.cost > MAX_RECOMPUTE_COST or effort * (len(owners) - 1) > MAX_REPEATED_COST
    ):
        return True
    most = max(Counter(owner for owner, _ in maps).values(), default=0)  # in one kernel
    return most > MAX_INDEX_MAPS and content.cost * most > MAX_RECOMPUTE_COST


def _is_read_anyway(graph: Snapshot, number: int, contents: dict[int, Content], owners: set[int]) -> bool:
    """Whether few kernels need a value of rows, and all of them load these rows for another reason too.

    Then folding them again, from the cache, costs less than a kernel that stores the folds: a gradient
    needs the mean and variance, or the maximum and the sum, that the value itself needed.
    """
    content = contents[number]
    whole = content.rows == nontrivial(graph.sigs[number].shape)
    if len(owners) > MAX_REFOLDING_KERNELS or content.cost > MAX_REFOLDED_COST:
        return False
    for owner in owners:
        if contents[owner].kind != "rows":
            return False
        loaded: set[int] = set()
        for each in contents[owner].inside - content.inside:
            for source in graph.inputs[each]:
                if source in content.inside and (source != number or not whole):
                    loaded |= contents[source].reads
                loaded.add(source)
        if not content.reads <= loaded:
            return False
    return True
