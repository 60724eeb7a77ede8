"""summary: a model's layers as a table, with what they give and how much they hold.

In: a model, and inputs or their shapes. Out: a `Summary` that prints. Nothing is computed: shapes are known
before values are, and the model's buffers are put back, whatever `forward` did to them.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from .module import Module

__all__ = ["Summary", "summary"]


@dataclass(frozen=True, slots=True)
class Row:
    """One module: its name in the one above it, how deep it lies, what it gives, and what it holds itself."""

    name: str
    kind: str
    depth: int
    shape: str
    parameters: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The table, and its totals: numbers of elements, and bytes. A shared parameter counts once.

    >>> wg.nn.summary(wg.nn.Linear(3, 4)).parameters
    16
    """

    rows: tuple[Row, ...]
    has_shapes: bool
    trainable: int
    frozen: int
    buffers: int
    nbytes: int

    @property
    def parameters(self) -> int:
        """All parameters, trainable or frozen."""
        return self.trainable + self.frozen

    def _cells(self) -> list[list[str]]:
        """The table's columns, each with its heading."""
        columns = [
            [
                "layer",
                *("  " * row.depth + (f"{row.name}: " if row.name else "") + row.kind for row in self.rows),
            ],
            ["output", *(row.shape for row in self.rows)],
            ["parameters", *(f"{row.parameters:,}" if row.parameters else "-" for row in self.rows)],
            ["bytes", *(size_text(row.nbytes) if row.nbytes else "-" for row in self.rows)],
        ]
        return columns if self.has_shapes else [columns[0], *columns[2:]]

    def _totals(self) -> str:
        return (
            f"parameters: {self.parameters:,} ({self.trainable:,} trainable, {self.frozen:,} frozen); "
            f"buffers: {self.buffers:,}; {size_text(self.nbytes)}"
        )

    def __str__(self) -> str:
        columns = self._cells()
        widths = [max(map(len, column)) for column in columns]
        numbers = len(columns) - 2  # the columns from here on are flush right
        lines = [
            "  ".join(
                cell.rjust(width) if at >= numbers else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ).rstrip()
            for cells in zip(*columns, strict=True)
        ]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([lines[0], rule, *lines[1:], rule, self._totals()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *body = (list(cells) for cells in zip(*self._cells(), strict=True))
        rows = "".join(_html_row(cells, "td") for cells in body)
        return f"<table>{_html_row(head, 'th')}{rows}</table><p>{html.escape(self._totals())}</p>"


def _html_row(cells: Sequence[str], tag: str) -> str:
    texts = (html.escape(cell).replace("  ", "&nbsp;&nbsp;") for cell in cells)
    return "<tr>" + "".join(f'<{tag} style="text-align:left">{text}</{tag}>' for text in texts) + "</tr>"


def size_text(count: int) -> str:
    """Bytes as a person reads them: 1.5 MiB."""
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def summary(model: Module, *inputs: Any, input_size: Any = None) -> Summary:
    """A model's layers as a table: what each gives for these inputs, its parameters, and their bytes.

    Instead of inputs their shapes may be given, or a list of them as `input_size`: then they are float32.
    Without either, the column of shapes is left out. Nothing is computed, and the model stays as it is.

    >>> model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.ReLU(), wg.nn.Linear(8, 2))
    >>> print(wg.nn.summary(model, input_size=(1, 4)))
    layer        output  parameters  bytes
    ──────────────────────────────────────
    Sequential   (1, 2)           -      -
      0: Linear  (1, 8)          40  160 B
      1: ReLU    (1, 8)           -      -
      2: Linear  (1, 2)          18   72 B
    ──────────────────────────────────────
    parameters: 58 (58 trainable, 0 frozen); buffers: 0; 232 B
    """
    if not isinstance(model, Module):
        raise wg.DTypeError(f"summary takes a Module, not a {type(model).__name__}")
    if inputs and input_size is not None:
        raise wg.ArgumentError("summary takes inputs, or input_size, but not both")
    if any(isinstance(each, tuple) and each and isinstance(each[0], int) for each in inputs):
        inputs, input_size = (), inputs  # shapes, and no tensors
    if input_size is not None:
        device = next((each.device for each in (*model.parameters(), *model.buffers())), None)
        inputs = tuple(wg.zeros(shape, device=device) for shape in _shapes(input_size))
    shapes = _output_shapes(model, inputs) if inputs else {}
    parameters = {id(each): each for each in model.parameters()}.values()
    buffers = list(model.buffers())
    return Summary(
        tuple(_rows(model, shapes)),
        bool(inputs),
        sum(each.size for each in parameters if each.requires_grad),
        sum(each.size for each in parameters if not each.requires_grad),
        sum(each.size for each in buffers),
        sum(each.nbytes for each in (*parameters, *buffers)),
    )


def _shapes(input_size: Any) -> list[tuple[int, ...]]:
    several = isinstance(input_size, Sequence) and input_size and not isinstance(input_size[0], int)
    sizes = list(input_size) if several else [input_size]
    return [(each,) if isinstance(each, int) else tuple(each) for each in sizes]


def _rows(model: Module, shapes: dict[int, str]) -> Iterator[Row]:
    """Every module, a shared one wherever it stands; tensors count where they are met first."""
    seen: set[int] = set()
    for path, module in model.named_modules(remove_duplicate=False):
        own = [each for each in module.parameters(recurse=False) if id(each) not in seen]
        held = own + [each for each in module.buffers(recurse=False) if id(each) not in seen]
        seen.update(map(id, held))
        yield Row(
            path.rpartition(".")[2],
            type(module).__name__,
            path.count(".") + bool(path),
            shapes.get(id(module), ""),
            sum(each.size for each in own),
            sum(each.nbytes for each in held),
        )


def _output_shapes(model: Module, inputs: tuple[Any, ...]) -> dict[int, str]:
    """What each module gives when the model is called."""
    shapes: dict[int, str] = {}

    def note(module: Module, given: tuple[Any, ...], result: Any) -> None:
        shapes[id(module)] = _shape_text(result)

    with ExitStack() as hooks, _unchanged(model), wg.no_grad():
        for module in model.modules():
            hooks.enter_context(module.register_forward_hook(note))
        model(*inputs)
    return shapes


@contextmanager
def _unchanged(model: Module) -> Iterator[None]:
    """Not in training; what a model's tensors hold, its modes and the generator are the same afterwards."""
    held = [(tensor, tensor.node) for tensor in (*model.parameters(), *model.buffers())]
    modes = [(module, module.training) for module in model.modules()]
    state = wg.random.get_state()
    try:
        model.eval()  # so that a batch may be of one
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        wg.random.set_state(state)
        for tensor, node in held:
            tensor.node = node


def _shape_text(result: Any) -> str:
    if isinstance(result, wg.Tensor):
        return str(result.shape)
    if isinstance(result, dict):
        return "{" + ", ".join(f"{name}: {_shape_text(each)}" for name, each in result.items()) + "}"
    if isinstance(result, list | tuple):
        return ", ".join(filter(None, map(_shape_text, result)))
    return ""
