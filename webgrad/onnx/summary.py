"""What a model's file says, as a table that prints.

In: a model's records. Out: `Summary`. Nothing is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..io.memory_map import shown
from .graph import Contents, Node, Value

__all__ = ["Summary", "summary_of"]

PER_LINE = 6  # operators
SHOWN = 60  # inputs or outputs


@dataclass(frozen=True, slots=True)
class Summary:
    """Inputs, outputs, operators by count, weights, operator sets and producer of a model.

    Made by `Model.summary`. `waits` are nodes for whose values calls had to wait so far.
    """

    file: str
    producer: str
    opsets: Mapping[str, int]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    operators: Mapping[str, int]
    parameters: int
    nbytes: int
    waits: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        versions = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in self.opsets.items())
        yield f"{Path(self.file).name}, by {shown(self.producer) or 'nobody who says so'}: {shown(versions)}"
        for what, values in (("inputs", self.inputs), ("outputs", self.outputs)):
            yield f"{what}:"
            yield from (f"  {shown(str(each))}" for each in values[:SHOWN])
            if len(values) > SHOWN:
                yield f"  and {len(values) - SHOWN:,} more"
        yield f"operators: {sum(self.operators.values()):,}"
        counts = [f"{count:,} {shown(name)}" for name, count in self.operators.items()]
        for at in range(0, len(counts), PER_LINE):
            yield f"  {', '.join(counts[at : at + PER_LINE])}"
        yield f"weights: {self.parameters:,} in {_size(self.nbytes)}"
        if self.waits:
            yield f"waits for: {shown(', '.join(self.waits))}"


def summary_of(contents: Contents, inputs: tuple[Value, ...], source: str, waits: tuple[str, ...]) -> Summary:
    """The summary of a model."""
    weights = {id(each): each for each in contents.graph.weights.values()}.values()
    operators = Counter(str(node.operator) for node in every_node(contents.graph.nodes))
    return Summary(
        *(source, contents.producer, contents.opsets, inputs, contents.graph.outputs),
        *(dict(operators.most_common()), sum(each.size for each in weights)),
        *(sum(each.nbytes for each in weights), waits),
    )


def every_node(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes, those of branches and bodies included."""
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from every_node(graph.nodes)


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
