"""The device layer in a browser: Python in Pyodide over the JavaScript of runner.js.

Handles are the runner's small integers, a list of commands is one array of numbers and a run of it one call.
WebGPU tells of errors late: the runner keeps the first one, and the next read raises it. Waiting needs a
browser that can suspend Python (`run_sync`); elsewhere whoever waits is told what to await.
"""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from types import MappingProxyType
from typing import Any, NoReturn

from ..errors import (
    CompileError,
    DeviceError,
    DeviceLostError,
    NoAdapterError,
    OutOfMemoryError,
    WebgradError,
)
from ..wgsl import Dialect, Parameters
from .adapters import AdapterInfo
from .layer import PARAMS_STRIDE, READBACK, STORAGE, Answers, Copy, Encoder, Handle, Passes, Prepared, Row

# webgrad's name of a feature → the browser's. Timestamps are left out: passes are not timed there.
BROWSERS_NAMES = {"f16": "shader-f16", "subgroups": "subgroups"}
_ERRORS: Mapping[str, type[WebgradError]] = {
    "out-of-memory": OutOfMemoryError,
    "compile": CompileError,
}
_OPEN_FIRST = "webgrad.open_device_async() first"
_CANNOT_WAIT = (
    "this browser cannot suspend Python until the GPU has answered (JavaScript promise integration is "
    "missing, or Python was not entered by runPythonAsync): await {instead}"
)


def _module(name: str) -> Any:
    """What a JavaScript module beside this file exports; its last line says that, and it imports nothing."""
    from pyodide.code import run_js

    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    body, _, exports = text.rstrip().rpartition("\n")
    return run_js(f"(() => {{\n{body}\n{exports.replace('export', 'return', 1)}\n}})()")


@functools.cache
def _runner() -> Any:
    return _module("runner.js")


@functools.cache
def _watcher() -> Any:
    return _module("browser.js")


def _can_wait() -> bool:
    from pyodide.ffi import can_run_sync

    return bool(can_run_sync())


def _translated(error: Any) -> WebgradError:
    """An error of the runner, or any of JavaScript's, as one of ours."""
    if getattr(error, "code", "") == "lost":  # the runner's words are for pages
        return DeviceLostError(
            "the GPU device was lost: the next use opens a new one, without what was on it"
        )
    return _ERRORS.get(getattr(error, "code", ""), DeviceError)(str(error.message))


def _guarded(function: Any, *arguments: Any) -> Any:
    from pyodide.ffi import JsException

    try:
        return function(*arguments)
    except JsException as error:
        raise _translated(error) from None


def _waited(make: Callable[[], Any], instead: str) -> Any:
    """What a promise gives, with Python suspended meanwhile; where that cannot be, await `instead`."""
    from pyodide.ffi import run_sync

    if not _can_wait():
        raise DeviceError(_CANNOT_WAIT.format(instead=instead))
    return _guarded(run_sync, make())


class _Spare:
    """The device that was opened to learn of the adapter, until it is used; or why there is none."""

    def __init__(self) -> None:
        self.device: Any = None
        self.problem = ""

    async def fill(self) -> None:
        """Have a device that is not lost, if there can be one."""
        from pyodide.ffi import JsException

        if self.device is None or self.device.lost:
            try:
                self.device, self.problem = await _runner().openDevice(), ""
            except JsException as error:
                self.device, self.problem = None, str(error.message)

    def take(self) -> Any:
        found, self.device = self.device, None
        return found


_spare = _Spare()


async def open_adapter() -> None:
    """Have the browser's adapter open, so that nothing need wait for it."""
    await _spare.fill()


def find_adapter() -> tuple[AdapterInfo | None, str]:
    """The browser's adapter; or none, and the problem."""
    if _spare.device is None and not _spare.problem:
        _waited(_spare.fill, _OPEN_FIRST)
    if _spare.device is None:
        return None, _spare.problem
    return _described(_spare.device.info.to_py()), ""


def _described(info: Mapping[str, Any]) -> AdapterInfo:
    smallest, largest = info["subgroupSizes"]
    offered = frozenset(info["features"])
    return AdapterInfo(
        name=info["name"],
        vendor=info["vendor"],
        backend="browser",
        type="software" if info["software"] else "other",
        driver=info["description"],
        features=frozenset(ours for ours, theirs in BROWSERS_NAMES.items() if theirs in offered),
        raw_features=offered,
        limits=MappingProxyType({_hyphened(name): value for name, value in info["limits"].items()}),
        subgroup_sizes=(smallest, largest),
    )


def _hyphened(name: str) -> str:
    """A limit as wgpu spells it: maxBufferSize is max-buffer-size."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "-", name).lower()


def open_browser(done: Answers) -> BrowserDevice:
    """Open a device of the browser's adapter, or take the one that is open already."""
    device = _spare.take()
    if device is None or device.lost:
        _waited(_spare.fill, _OPEN_FIRST)
        device = _spare.take()
        if device is None:
            raise NoAdapterError(_spare.problem)
    return BrowserDevice(device, done)


class _Landing:
    """Where bytes arrive that are read: a staging buffer of the runner while one is lent, then the bytes."""

    __slots__ = ("found", "staged")

    def __init__(self) -> None:
        self.staged: int | None = None
        self.found: memoryview | WebgradError | None = None


class _List(Prepared):
    """Rows that the runner has prepared, with the parameters of their last run, which the GPU has still."""

    __slots__ = ("_release", "block", "handle", "last")

    def __init__(self, rows: Sequence[Row], handle: int, release: Callable[[int], None]) -> None:
        super().__init__(rows)
        self.handle = handle
        self.block = bytearray(PARAMS_STRIDE * len(rows))
        self.last: list[bytes] = []
        self._release = release

    def __del__(self) -> None:
        self._release(self.handle)

    def fill(self, params: Sequence[bytes]) -> bytearray | None:
        """The block of all parameters; None where they are those of the last run."""
        new = list(params)
        last = self.last
        if new == last:
            return None
        block = self.block
        for at, each in enumerate(new):
            if not last or each is not last[at]:
                block[PARAMS_STRIDE * at : PARAMS_STRIDE * at + len(each)] = each
        self.last = new
        return block


Commands = tuple[_List, Sequence[bytes], Sequence[Copy]]


class _Encoder:
    """Prepares rows; what it encodes is run by the submit."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def prepare(self, rows: Sequence[Row]) -> _List:
        from pyodide.ffi import to_js

        numbers = array("i")
        for row in rows:
            numbers.extend((row.pipeline.argument, row.group.argument, *row.grid))
        handle = _guarded(self._device.prepare, to_js(numbers))
        return _List(rows, handle, self._device.releasePrepared)

    def encode(self, prepared: Prepared, params: Sequence[bytes], copies: Iterable[Copy]) -> Commands:
        assert isinstance(prepared, _List)
        return prepared, params, list(copies)

    def run_apart(self, passes: Passes, prepared: Prepared, params: Sequence[bytes]) -> None:
        raise DeviceError("launches are not timed one by one in a browser")

    def close(self) -> None:
        """What was prepared goes with the rows."""


class BrowserDevice:
    """One open device of a browser; `done` gets an item for every submission that has ended."""

    dialect: Dialect = "tint"
    parameters: Parameters = "last"
    threaded = False
    blocking = False

    def __init__(self, device: Any, done: Answers) -> None:
        from pyodide.ffi import to_js

        self.account: Callable[[], str] = str
        self.device = device
        self._watched = _watcher().watchDevice(device)
        self._submit = self._watched.submit  # looked up once: a lookup costs as much as a call
        self._to_js = to_js
        self._done = done
        self._ended = 0
        self._reads: dict[int, tuple[_Landing, Answers]] = {}
        self._empty = _List((), device.prepare(to_js(array("i"))), device.releasePrepared)

    @property
    def lost(self) -> bool:
        """Whether the browser has said that the device is gone."""
        return bool(self._watched.lost())

    def alive(self) -> bool:
        return not self.lost

    @property
    def can_wait(self) -> bool:
        return _can_wait()

    # Errors come late, so there is nothing to ask at the end of a scope.

    def push_scope(self) -> None: ...

    def pop_scope(self) -> None: ...

    def fail(self, error: Any, doing: str) -> NoReturn:
        raise DeviceError(f"the GPU refused {doing}: {error}")

    # Objects

    def create_buffer(self, nbytes: int, usage: int = STORAGE) -> Handle:
        if usage == READBACK:
            return _Landing()
        return _guarded(self.device.createBuffer, nbytes, usage)

    def release_buffer(self, handle: Handle) -> None:
        if not isinstance(handle, _Landing):
            self.device.releaseBuffer(handle)

    def create_layouts(self, accesses: tuple[str, ...]) -> tuple[str, str]:
        letters = "".join("w" if each == "read_write" else "r" for each in accesses)
        return letters, letters

    def release_layouts(self, group: str, pipeline: str) -> None:
        """They are words; the runner keeps what it made of them."""

    def create_bind_group(self, layout: str, ranges: Iterable[tuple[int, int, int]]) -> int:
        numbers = array("d")  # offsets may be larger than 32 bits have room for
        for each in ranges:
            numbers.extend(each)
        return int(_guarded(self.device.createGroup, layout, self._to_js(numbers)))

    def release_bind_group(self, handle: int) -> None:
        self.device.releaseGroup(handle)

    def create_pipeline(self, text: str, entry: str, layout: str, *, checked: bool) -> int:
        """Begin to compile a text."""
        return int(_guarded(self.device.createPipeline, text, entry, layout))

    def confirm_pipeline(self, handle: int) -> None:
        if _can_wait():
            _waited(self.device.ready, "")

    def release_pipeline(self, handle: int) -> None:
        self.device.releasePipeline(handle)

    def argument(self, handle: int) -> int:
        return handle

    # Work

    def make_encoder(self, kind: str, make_buffer: Callable[[int, int], Handle]) -> Encoder:
        return _Encoder(self.device)

    def write(self, buffer: int, offset: int, data: Any) -> None:
        _guarded(self.device.write, buffer, offset, self._to_js(memoryview(data).cast("B")))

    def copy(self, copies: Iterable[Copy]) -> Commands:
        return self._empty, (), list(copies)

    def submit(self, commands: Commands | None, *, may_block: bool = True) -> None:
        """Run commands. Pending writes (None) need no submission, but end in their turn like one."""
        prepared, params, copies = commands or (self._empty, (), ())
        block = prepared.fill(params)
        try:
            ended = _guarded(
                self._submit,
                prepared.handle,
                None if block is None else self._to_js(block),
                self._landed(copies) if copies else None,
            )
        except BaseException:
            prepared.last = []  # the GPU may not have got them
            raise
        self._note_ended(ended)

    def _landed(self, copies: Sequence[Copy]) -> Any:
        """The copies as numbers, each to a staging buffer that is lent to its landing."""
        numbers = array("d")
        for source, offset, target, nbytes in copies:
            target.staged = _guarded(self.device.stage, nbytes)
            numbers.extend((source, offset, target.staged, 0, nbytes))
        return self._to_js(numbers)

    def _note_ended(self, ended: int) -> None:
        while self._ended < ended:
            self._ended += 1
            self._done.append(1)

    def map_read(self, buffer: _Landing, nbytes: int, answers: Answers) -> None:
        number = self._watched.read(buffer.staged, nbytes)
        buffer.staged = None
        self._reads[number] = buffer, answers

    def copy_mapped(self, buffer: _Landing, nbytes: int) -> memoryview:
        """The bytes that have arrived; or the error, of the read or of anything before it, is raised."""
        found, buffer.found = buffer.found, None
        if isinstance(found, WebgradError):
            raise found
        assert found is not None
        return found

    def unmap(self, buffer: _Landing) -> None:
        buffer.found = None

    def poll(self) -> None:
        """Take what has arrived."""
        self._note_ended(self._watched.finished())
        for number in list(self._reads):
            found = self._taken(number)
            if found is not None:
                landing, answers = self._reads.pop(number)
                landing.found = found
                answers.append(1)

    def _taken(self, number: int) -> memoryview | WebgradError | None:
        try:
            data = _guarded(self._watched.take, number)
        except OutOfMemoryError as error:
            return OutOfMemoryError(f"{error} {self.account()}")
        except WebgradError as error:
            return error
        if data is None:
            return None
        block = bytearray(data.byteLength)
        data.assign_to(block)
        return memoryview(block)

    def pause(self, seconds: float) -> None:
        """Suspend Python until something has ended or arrived."""
        _waited(
            self._watched.change, "x.numpy_async() or x.tolist_async() instead of asking for values at once"
        )

    async def pause_async(self, seconds: float) -> None:
        await self._watched.change()

    def destroy(self) -> None:
        self._watched.destroy()

    def forsake(self) -> None:
        """Browsers do not fork."""
