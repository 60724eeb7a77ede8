"""A device on paper: graphs are planned for it as for any other, and commands are written down, never run.

In: a `Variant`, what browsers' adapters of one kind have. Out: a `Device` whose layer keeps the command lists
it was given. The invariant: buffers have numbers and sizes, and no contents; nothing is ever computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ..errors import DeviceError
from ..runtime.adapters import PROMISED, AdapterInfo, AdapterKind
from ..runtime.browser import BROWSERS_NAMES
from ..runtime.buffers import Buffer
from ..runtime.layer import STORAGE, Answers, Copy, Handle, Passes, Prepared, Row
from ..runtime.webgpu import Device
from ..wgsl import Dialect, Parameters

__all__ = ["VARIANTS", "PaperDevice", "Variant", "WrittenDown", "tracing_device"]


@dataclass(frozen=True, slots=True)
class Variant:
    """Adapters for which kernels are chosen alike; `software` is None where that does not matter."""

    label: str
    software: bool | None = None
    features: frozenset[str] = frozenset()
    subgroup_size: int = 0

    def includes(self, other: Variant) -> bool:
        """Whether every adapter of the other fits here too."""
        return (
            self.software in (None, other.software)
            and self.features <= other.features
            and self.subgroup_size in (0, other.subgroup_size)
        )

    @property
    def needs(self) -> dict[str, Any]:
        """What an adapter must be for it, as the runner asks."""
        found: dict[str, Any] = {}
        if self.software is not None:
            found["software"] = self.software
        if self.features:
            found["features"] = sorted(BROWSERS_NAMES[each] for each in self.features)
        if self.subgroup_size:
            found["subgroupSize"] = self.subgroup_size
        return found


# The runner takes the first that fits; the last fits everywhere.
VARIANTS = (
    Variant("software, subgroups of 4", True, frozenset({"subgroups"}), 4),
    Variant("software, subgroups of 8", True, frozenset({"subgroups"}), 8),
    Variant("software", True),
    Variant(
        "GPU"
    ),  # its kernels work through workgroup memory, and half floats are unpacked without shader-f16
)


class PaperDevice(Device):
    """What a browser's GPU would be, for planning."""

    def __init__(self, variant: Variant) -> None:
        kind: AdapterKind = "software" if variant.software else "discrete"
        size = variant.subgroup_size
        self.layer = _PaperLayer()
        super().__init__(
            AdapterInfo(
                device="browser",
                name=f"a browser's {variant.label}",
                backend="browser",
                type=kind,
                features=variant.features,
                raw_features=variant.features,
                limits=PROMISED,
                subgroup_sizes=(size, size) if size else (1, 128),
            ),
        )

    def _announce(self, why: str) -> None:
        """Nobody need know: it has no driver, no memory, and no work to wait for."""

    def _open_layer(self, done: Answers) -> _PaperLayer:
        self.layer.done = done
        return self.layer

    def _budget(self) -> int:
        return 1 << 50  # paper is cheap

    def lend(self, nbytes: int) -> Buffer:
        """A buffer that has its place."""
        buffer = self.allocate(nbytes)
        size = buffer.virtual.size
        assert isinstance(size, int)  # it is not a view
        buffer.virtual.physical = self.queue.context.pool.take(size)
        return buffer

    def handle_of(self, buffer: Buffer) -> Handle:
        """The layer's handle of where a buffer is."""
        return self.queue.context.pool.buffers.get(buffer.virtual.physical).handle

    def upload(self, data: Any, label: str = "", *, keep: bool = False) -> Buffer:
        """A buffer of a constant, which is kept on the host: on paper there is nothing."""
        return super().upload(data, label, keep=True)


@functools.cache
def tracing_device() -> PaperDevice:
    """What functions are traced on: one for all, since signatures are kept, and each names its device."""
    return PaperDevice(VARIANTS[-1])


class WrittenDown(NamedTuple):
    """A command list: rows, and the parameters of each."""

    rows: Sequence[Row]
    params: Sequence[bytes]


class _PaperLayer:
    """The device layer; see `runtime.layer.DeviceLayer`."""

    dialect: Dialect = "tint"
    parameters: Parameters = "last"
    threaded = False
    blocking = True
    lost = False
    can_wait = True

    def __init__(self) -> None:
        self.account: Callable[[], str] = str
        self.done: Answers = []
        self.encoded: list[WrittenDown] = []  # the newest command list, if any
        self.sizes: dict[Handle, int] = {}

    def alive(self) -> bool:
        return True

    def push_scope(self) -> None:
        """Nothing fails on paper."""

    def pop_scope(self) -> None:
        """Nothing has failed."""

    def fail(self, error: Any, doing: str) -> NoReturn:
        raise DeviceError(f"{doing}: {error}")

    def create_buffer(self, nbytes: int, usage: int = STORAGE) -> Handle:
        handle = len(self.sizes) + 1
        self.sizes[handle] = nbytes
        return handle

    def create_layouts(self, accesses: tuple[str, ...]) -> tuple[Handle, Handle]:
        return accesses, accesses

    def create_bind_group(self, layout: Handle, ranges: Iterable[tuple[Handle, int, int]]) -> Handle:
        return tuple(ranges)

    def create_pipeline(self, text: str, entry: str, layout: Handle, *, checked: bool) -> Handle:
        return text

    def _nothing(self, *_: Any, **__: Any) -> None:
        """What is released or written leaves no trace."""

    release_buffer = release_layouts = release_bind_group = release_pipeline = confirm_pipeline = _nothing
    write = unmap = poll = pause = destroy = forsake = _nothing

    async def pause_async(self, seconds: float) -> None:
        """There is nothing to wait for."""

    def argument(self, handle: Handle) -> Handle:
        return handle

    def make_encoder(self, kind: str, make_buffer: Callable[[int, int], Handle]) -> _PaperEncoder:
        return _PaperEncoder(self.encoded)

    def copy(self, copies: Iterable[Copy]) -> Handle:
        return None

    def submit(self, commands: Handle | None, *, may_block: bool = True) -> None:
        self.done.append(1)

    def map_read(self, buffer: Handle, nbytes: int, answers: Answers) -> None:
        raise DeviceError("nothing is computed on paper, so there is nothing to read")

    def copy_mapped(self, buffer: Handle, nbytes: int) -> Any:
        raise DeviceError("nothing is computed on paper, so there is nothing to read")


class _PaperEncoder:
    """Keeps the command lists."""

    def __init__(self, encoded: list[WrittenDown]) -> None:
        self._encoded = encoded

    def prepare(self, rows: Sequence[Row]) -> Prepared:
        return Prepared(rows)

    def encode(self, prepared: Prepared, params: Sequence[bytes], copies: Iterable[Copy]) -> Handle:
        self._encoded[:] = [WrittenDown(prepared.rows, params)]

    def run_apart(self, passes: Passes, prepared: Prepared, params: Sequence[bytes]) -> None:
        raise DeviceError("nothing runs on paper")

    def close(self) -> None:
        """Nothing is open."""
