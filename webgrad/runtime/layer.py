"""The device layer: what the queue, the pool and the caches above them ask of an open device.

Make a buffer, write, make a pipeline, run a command list, read: `native.py` does it over wgpu-native,
`browser.py` over a browser's WebGPU, and an export on paper, where commands are written down and never run.
Handles are the layer's own; nobody else looks into them. The invariant: whatever may fail raises an error of
ours, and nothing is submitted that the device would not survive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

if TYPE_CHECKING:
    from ..wgsl import Dialect, Parameters
    from .groups import BindGroup
    from .pipelines import Compiled

Handle = Any
Copy = tuple[Handle, int, Handle, int]  # source, offset, target, bytes
Passes = Callable[[int], AbstractContextManager[Handle]]  # a pass for each number, ended when it is left
Answers = list[int]  # what a device adds to when it is done with something

PARAMS_STRIDE = 256  # the dynamic-offset alignment every WebGPU device accepts

STORAGE = 0x80 | 0x04 | 0x08  # Storage | CopySrc | CopyDst
UNIFORM = 0x40 | 0x08
READBACK = 0x01 | 0x08  # MapRead | CopyDst


class Row(NamedTuple):
    """One dispatch, resolved: compiled pipeline, bind group, bytes of parameters, grid, and its slots."""

    pipeline: Compiled
    group: BindGroup
    params_size: int
    grid: tuple[int, int, int]
    slots: Sequence[int]


class Prepared:
    """Rows and what an encoder made of them, which is of its parameter block's generation."""

    __slots__ = ("arguments", "generation", "rows")

    def __init__(self, rows: Sequence[Row], arguments: Any = ()) -> None:
        self.rows = rows
        self.generation = -1
        self.arguments = arguments


class Encoder(Protocol):
    """Turns rows into something quick to run, and that into commands with fresh parameters."""

    def prepare(self, rows: Sequence[Row]) -> Prepared: ...

    def encode(self, prepared: Prepared, params: Sequence[bytes], copies: Iterable[Copy]) -> Handle:
        """Commands of rows in one pass, and copies behind it."""

    def run_apart(self, passes: Passes, prepared: Prepared, params: Sequence[bytes]) -> None:
        """The rows, each in a pass of its own: `passes(number)` opens it, and ends it."""

    def close(self) -> None: ...


class DeviceLayer(Protocol):
    """One open device."""

    dialect: Dialect  # of its shader compiler
    parameters: Parameters  # how kernels get theirs
    threaded: bool  # whether pipelines compile in threads of ours; else by themselves
    # Whether a pause holds up everything; where not, other tasks may come to the same queue meanwhile, so it
    # must not be in the middle of anything.
    blocking: bool
    account: Callable[[], str]  # what is in use, for the error when memory runs out

    @property
    def lost(self) -> bool:
        """Whether the device is known to be gone."""

    def alive(self) -> bool:
        """Whether the device is there still, by asking."""

    # Errors of what is made between a push and its pop; the caller says what that was.

    def push_scope(self) -> None: ...

    def pop_scope(self) -> Any | None: ...

    def fail(self, error: Any, doing: str) -> NoReturn: ...

    # Objects

    def create_buffer(self, nbytes: int, usage: int = STORAGE) -> Handle: ...

    def release_buffer(self, handle: Handle) -> None: ...

    def create_layouts(self, accesses: tuple[str, ...]) -> tuple[Handle, Handle]:
        """The layouts of bind groups and of pipelines for kernels with these accesses."""

    def release_layouts(self, group: Handle, pipeline: Handle) -> None: ...

    def create_bind_group(self, layout: Handle, ranges: Iterable[tuple[Handle, int, int]]) -> Handle:
        """Bind (buffer, offset, bytes) ranges in order; inside a scope."""

    def release_bind_group(self, handle: Handle) -> None: ...

    def create_pipeline(self, text: str, entry: str, layout: Handle, *, checked: bool) -> Handle:
        """Compile a text, or begin to; CompileError carries the compiler's own words."""

    def confirm_pipeline(self, handle: Handle) -> None:
        """Wait until a pipeline is compiled, where that can be; its CompileError is raised here at last."""

    def release_pipeline(self, handle: Handle) -> None: ...

    def argument(self, handle: Handle) -> Any:
        """A pipeline or a bind group as its encoder wants it."""

    # Work

    def make_encoder(self, kind: str, make_buffer: Callable[[int, int], Handle]) -> Encoder:
        """The encoder called "fast" or "plain"."""

    def write(self, buffer: Handle, offset: int, data: Any) -> None:
        """Copy whole words of host memory into a buffer, before anything that is submitted later."""

    def copy(self, copies: Iterable[Copy]) -> Handle:
        """Commands that are nothing but copies."""

    def submit(self, commands: Handle | None, *, may_block: bool = True) -> None:
        """Submit commands (None: only pending writes)."""

    def map_read(self, buffer: Handle, nbytes: int, answers: Answers) -> None:
        """Ask for a read-back buffer's contents; `answers` gets the status, 1 for success."""

    def copy_mapped(self, buffer: Handle, nbytes: int) -> Any:
        """The bytes of a mapped buffer; it is unmapped."""

    def unmap(self, buffer: Handle) -> None: ...

    def poll(self) -> None:
        """Let the driver free what is done and call back, without waiting."""

    @property
    def can_wait(self) -> bool:
        """Whether `pause` can be called at all: a browser may be unable to suspend Python."""

    def pause(self, seconds: float) -> None:
        """Wait a little for the device."""

    async def pause_async(self, seconds: float) -> None:
        """The same, letting other tasks run."""

    def destroy(self) -> None:
        """Make the device lost at once, as a driver reset would."""

    def forsake(self) -> None:
        """In a forked child: leave the device to the parent."""
