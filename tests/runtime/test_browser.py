"""The device layer in a browser, with a stand-in for Pyodide: what Python does on its side of the calls.

tests/web/test_pyodide.py runs it in Chromium.
"""

from __future__ import annotations

import asyncio
import re
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from webgrad.errors import CompileError, DeviceError, DeviceLostError, NoAdapterError, OutOfMemoryError
from webgrad.runtime import browser
from webgrad.runtime.layer import READBACK, Row

FOLDER = Path(browser.__file__).parent
INFO = {
    "name": "a chip",
    "vendor": "maker",
    "description": "words",
    "software": False,
    "features": ["shader-f16", "timestamp-query"],
    "limits": {"maxBufferSize": 1 << 30, "maxTextureDimension1D": 8192},
    "subgroupSizes": [0, 0],
}


class JsError(Exception):
    """JavaScript's error, as Pyodide shows it."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.message, self.code = message, code


class Bytes(bytes):
    """JavaScript's bytes, as Pyodide shows them."""

    byteLength = property(len)

    def assign_to(self, target: bytearray) -> None:
        target[:] = self


class FakeDevice:
    """Says what it was told, and runs nothing."""

    def __init__(self) -> None:
        self.info = SimpleNamespace(to_py=lambda: INFO)
        self.lost: str | None = None
        self.released: list[int] = []
        self.runs: list[tuple[Any, ...]] = []
        self.landed: dict[int, Any] = {}
        self.ended = 0

    def prepare(self, rows: Any) -> int:
        return 100 + len(rows) // 5

    def releasePrepared(self, handle: int) -> None:
        self.released.append(handle)

    def createBuffer(self, nbytes: int, usage: int) -> int:
        if nbytes > 1000:
            raise JsError("too large", "out-of-memory")
        return 7

    def stage(self, nbytes: int) -> int:
        return 50

    async def ready(self) -> None:
        raise JsError("unknown word", "compile")

    def watched(self) -> Any:
        def submit(*arguments: Any) -> int:
            if self.lost:
                raise JsError("gone", "lost")
            self.runs.append(arguments)
            return self.ended

        def take(number: int) -> Any:
            found = self.landed.get(number)
            if isinstance(found, Exception):
                raise found
            return found

        return SimpleNamespace(
            submit=submit,
            take=take,
            read=lambda staged, nbytes: staged + 1,
            finished=lambda: self.ended,
            lost=lambda: self.lost is not None,
            change=lambda: asyncio.sleep(0),
        )


@pytest.fixture
def pyodide(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pyodide's functions; `waits` says whether Python can be suspended."""
    ffi: Any = ModuleType("pyodide.ffi")
    ffi.waits = True
    ffi.JsException = JsError
    ffi.to_js = lambda value: bytes(value) if isinstance(value, bytearray) else value
    ffi.can_run_sync = lambda: ffi.waits
    ffi.run_sync = lambda awaitable: asyncio.run(_awaited(awaitable))
    monkeypatch.setitem(sys.modules, "pyodide", ModuleType("pyodide"))
    monkeypatch.setitem(sys.modules, "pyodide.ffi", ffi)
    monkeypatch.setattr(browser, "_watcher", lambda: SimpleNamespace(watchDevice=FakeDevice.watched))
    monkeypatch.setattr(browser, "_spare", browser._Spare())
    return ffi


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def opening(device: FakeDevice | Exception) -> Callable[[], Any]:
    """A runner that opens this device, or refuses to."""

    async def open_device() -> FakeDevice:
        if isinstance(device, Exception):
            raise device
        return device

    return lambda: SimpleNamespace(openDevice=open_device)


def row() -> Row:
    part: Any = SimpleNamespace(argument=3)
    return Row(part, part, 4, (1, 1, 1), ())


@pytest.mark.parametrize("name", ["runner.js", "browser.js"])
def test_modules_have_the_form_that_is_read(name: str) -> None:
    lines = (FOLDER / name).read_text(encoding="utf-8").rstrip().split("\n")
    assert re.fullmatch(r"export \{ [\w, ]+ \};", lines[-1])
    assert not [line for line in lines[:-1] if re.match(r"(import|export)\b", line)]


def test_the_adapter_is_described(pyodide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_runner", opening(FakeDevice()))
    info, problem = browser.find_adapter()
    assert info is not None
    assert (info.name, info.backend, info.type, problem) == ("a chip", "browser", "other", "")
    assert info.features == {"f16"}, "passes are not timed there"
    assert dict(info.limits) == {"max-buffer-size": 1 << 30, "max-texture-dimension-1d": 8192}


def test_without_an_adapter_the_reason_is_kept(pyodide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_runner", opening(JsError("no GPU is offered", "no-adapter")))
    assert browser.find_adapter() == (None, "no GPU is offered")
    with pytest.raises(NoAdapterError, match="no GPU is offered"):
        browser.open_browser([])


def test_where_python_cannot_be_suspended_the_message_says_what_to_await(
    pyodide: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "_runner", opening(FakeDevice()))
    pyodide.waits = False
    with pytest.raises(DeviceError, match=r"await webgrad\.open_device_async\(\) first"):
        browser.find_adapter()
    asyncio.run(browser.open_adapter())
    assert browser.find_adapter()[0] is not None
    opened = browser.open_browser([])
    assert not opened.can_wait
    with pytest.raises(DeviceError, match=r"await x\.numpy_async\(\) or x\.tolist_async\(\)"):
        opened.pause(0)


def test_parameters_go_to_the_gpu_only_where_they_changed(pyodide: Any) -> None:
    device = FakeDevice()
    layer = browser.BrowserDevice(device, [])
    encoder = layer.make_encoder("fast", lambda size, usage: None)
    prepared = encoder.prepare([row(), row()])
    for params in ([b"aaaa", b"bbbb"], [b"aaaa", b"bbbb"], [b"aaaa", b"cccc"]):
        layer.submit(encoder.encode(prepared, params, ()))
    first, second, third = (run[1] for run in device.runs)
    assert (first[:4], first[256:260], len(first)) == (b"aaaa", b"bbbb", 512)
    assert second is None, "they are there still"
    assert (third[:4], third[256:260]) == (b"aaaa", b"cccc")
    device.lost = "gone"
    with pytest.raises(DeviceLostError):
        layer.submit(encoder.encode(prepared, [b"dddd", b"cccc"], ()))
    device.lost = None
    layer.submit(encoder.encode(prepared, [b"dddd", b"cccc"], ()))
    assert device.runs[-1][1][:4] == b"dddd", "what was not submitted is not taken for sent"
    del prepared
    assert device.released == [102]


def test_submissions_end_in_order(pyodide: Any) -> None:
    device = FakeDevice()
    ended: list[int] = []
    layer = browser.BrowserDevice(device, ended)
    layer.submit(None)
    assert ended == []
    device.ended = 2
    layer.poll()
    assert len(ended) == 2
    device.ended = 3
    layer.submit(None)
    assert len(ended) == 3


def test_reads_land_with_their_bytes_or_their_error(pyodide: Any) -> None:
    device = FakeDevice()
    layer = browser.BrowserDevice(device, [])
    landing = layer.create_buffer(4, READBACK)
    answers: list[int] = []

    def read() -> None:
        layer.submit(layer.copy([(7, 8, landing, 4)]))
        layer.map_read(landing, 4, answers)
        layer.poll()

    read()
    assert device.runs[-1][2] == array("d", [7, 8, 50, 0, 4])
    assert answers == [], "it is under way"
    device.landed[51] = Bytes(b"wxyz")
    layer.poll()
    assert (answers, bytes(layer.copy_mapped(landing, 4))) == ([1], b"wxyz")
    device.landed[51] = JsError("unknown word", "compile")
    read()
    with pytest.raises(CompileError, match="unknown word"):
        layer.copy_mapped(landing, 4)
    layer.account = lambda: "9 MiB in use."
    device.landed[51] = JsError("The GPU is out of memory.", "out-of-memory")
    read()
    with pytest.raises(OutOfMemoryError, match=r"The GPU is out of memory\. 9 MiB in use\."):
        layer.copy_mapped(landing, 4)


def test_errors_are_of_our_kinds(pyodide: Any) -> None:
    layer = browser.BrowserDevice(FakeDevice(), [])
    with pytest.raises(OutOfMemoryError, match="too large"):
        layer.create_buffer(1 << 20)
    with pytest.raises(CompileError, match="unknown word"):
        layer.confirm_pipeline(3)
    pyodide.waits = False
    layer.confirm_pipeline(3)  # a read will tell
