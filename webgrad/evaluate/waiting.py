"""Work that waits, computed though nobody asked for it: a full backlog, all before a capture, `wg.eval()`.

In: the nodes of the backlog. Out: the same nodes, settled where they can be. The invariant: a node that
cannot be computed keeps no other from it. Who made it, or asked for it or for all, is told its error; once
that is done, it is tried again only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from weakref import ref

from ..config import settings
from ..errors import ConfigError, WebgradError
from ..graph.node import Node, backlog
from ..runtime.host import memory_bytes
from .evaluate import compute, evaluate


def limit_backlog() -> None:
    """Bound what may wait, as the settings say; reads them anew."""
    options = settings()
    memory = memory_bytes() or 8 << 30
    backlog.most = options.graph
    backlog.most_bytes = memory // 8 if options.graph_memory is None else options.graph_memory.of(memory)
    backlog.compute = compute_backlog
    backlog.restart(backlog.waiting())


def compute_backlog(held: list[Node], newest: Node) -> None:
    """Compute a backlog that is full, while `newest` is made: its error is raised, no other one's."""
    failures = _failures(evaluate, held)
    backlog.failed.difference_update(failures)
    backlog.made += map(ref, failures)
    if newest in failures:
        raise failures[newest]


def compute_waiting() -> None:
    """Compute all that waits and that somebody holds; what cannot be computed says so when it is used."""
    backlog.failed.difference_update(_failures(compute, backlog.held()))


def evaluate_waiting() -> None:
    """Compute and submit all that waits and that somebody holds, and raise the first new error, if any."""
    failures = _failures(evaluate, backlog.held())
    backlog.restart(backlog.waiting())
    for error in failures.values():
        raise error


def _failures(run: Callable[[Sequence[Node]], None], nodes: Sequence[Node]) -> dict[Node, WebgradError]:
    """Compute nodes; gives those that cannot be, with errors that nobody was told. The others of these are
    left out of the backlog.
    """
    known = {each for each in nodes if each in backlog.failed}
    failures = dict(_apart(run, nodes))
    if known:
        backlog.leave_out(known.intersection(failures))
    return {node: error for node, error in failures.items() if node not in known}


def _apart(run: Callable[[Sequence[Node]], None], nodes: Sequence[Node]) -> list[tuple[Node, WebgradError]]:
    """Compute nodes, together where that can be; gives those that cannot be by themselves."""
    try:
        run(nodes)
    except WebgradError as caught:
        error = caught.with_traceback(None)  # it would hold the other nodes
    else:
        return []
    if len(nodes) == 1:
        return [(nodes[0], error)]
    half = len(nodes) // 2
    return [*_apart(run, nodes[:half]), *_apart(run, nodes[half:])]


with suppress(ConfigError):  # said when a device is opened, where a command can tell it in a line
    limit_backlog()
