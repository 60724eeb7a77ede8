"""webgrad in Pyodide: the wheel of this checkout in Chromium and Firefox, in a worker too, without NumPy.

The same programs run here natively, on the cpu, and their values are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fcntl")  # browsers are driven on POSIX only

from scripts.system import ROOT
from tests.browser import WEBGPU, Browser
from tests.firefox import Firefox
from tests.missing import need_package, need_program
from tests.pages import BrowserError
from tests.web.pyodide_site import Run, make_site, python_in_page, python_in_worker
from webgrad.web.server import serving

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def chromium(pytestconfig: pytest.Config) -> Iterator[Browser]:
    """A browser of this module's own: its pages stay open from test to test, since Python starts slowly."""
    need_program(pytestconfig, "chromium")
    with Browser(*WEBGPU) as running:
        yield running


@pytest.fixture(scope="module")
def site(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_package(pytestconfig, "pyodide")
    with serving(make_site(tmp_path_factory.mktemp("pyodide")), isolated=True) as url:
        yield url.rstrip("/")


@pytest.fixture(scope="module")
def page(chromium: Browser, site: str) -> Run:
    return python_in_page(chromium.page(), site)


@pytest.fixture(scope="module")
def worker(chromium: Browser, site: str) -> Run:
    return python_in_worker(chromium.page(), site)


@pytest.fixture(scope="module")
def firefox_page(pytestconfig: pytest.Config, site: str) -> Iterator[Run]:
    need_program(pytestconfig, "firefox")
    with Firefox() as running:
        yield python_in_page(running.page(), site)


@pytest.fixture(scope="module", params=["page", "worker", "firefox_page"])
def python(request: pytest.FixtureRequest) -> Run:
    """Python on a page, in a worker, and on a page of the other browser."""
    run: Run = request.getfixturevalue(request.param)
    return run


@pytest.fixture(scope="module")
def unsuspended(chromium: Browser, site: str) -> Run:
    """Python on a page of a browser that cannot suspend it."""
    return python_in_page(chromium.page(), site, suspending=False)


def native(program: str) -> Any:
    """What a program calls `result`, here."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(program, "<program>", "exec"), names)
    return names["result"]


def readme(heading: str) -> str:
    """The program under a heading of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"## {heading}\n\n```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


REGRESSION = f"""
import webgrad as wg
wg.random.seed(3)
{readme("Learning in ten lines")}
result = [model.weight.item(), model.bias.item()]
"""
GRAPH = """
import webgrad as wg
wg.random.seed(1)
x, w = wg.random.normal((48, 96)), wg.random.normal((96, 64), std=0.3)
y = wg.layer_norm(wg.softmax(x @ w, axis=-1), 64)
result = y.tolist()
"""
GRADIENTS = """
import webgrad as wg
wg.random.seed(2)
x = wg.random.normal((8, 5)).requires_grad_()
w = wg.random.normal((5, 3)).requires_grad_()
loss = (wg.tanh(x @ w) ** 2).sum() + wg.exp(-x * x).mean()
loss.backward()
second = wg.grad(wg.grad(lambda t: wg.sin(t) * t))(wg.asarray(0.7))
result = [loss.item(), x.grad.tolist(), w.grad.tolist(), second.item()]
"""
NETWORK = """
import webgrad as wg
wg.random.seed(4)
model = wg.nn.Sequential(
    wg.nn.Conv2d(1, 4, 3, padding=1), wg.nn.ReLU(), wg.nn.MaxPool2d(2), wg.nn.Flatten(),
    wg.nn.Linear(64, 16), wg.nn.LayerNorm(16), wg.nn.GELU(), wg.nn.Linear(16, 3),
)
optimiser = wg.optim.AdamW(model.parameters(), lr=0.01)
x, y = wg.random.normal((12, 1, 8, 8)), wg.asarray([0, 1, 2] * 4)

@wg.jit
def step(x, y):
    optimiser.zero_grad()
    loss = wg.cross_entropy(model(x), y)
    loss.backward()
    optimiser.step()
    return loss

result = [step(x, y).item() for _ in range(8)]
"""
PROGRAMS = {"regression": REGRESSION, "graph": GRAPH, "gradients": GRADIENTS, "network": NETWORK}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs_give_the_native_values(python: Run, name: str) -> None:
    found, wanted = python(PROGRAMS[name]), native(PROGRAMS[name])
    flat = [np.concatenate([np.ravel(each) for each in value]) for value in (found, wanted)]
    np.testing.assert_allclose(flat[0], flat[1], rtol=1e-5, atol=1e-5)


def test_the_device_is_the_browsers_and_numpy_is_not_there(python: Run) -> None:
    name, backend, there, modules = python(
        """
import sys
import webgrad as wg
info = wg.default_device().info
wg.ones(3).tolist()
result = [info.device, info.backend, [each.device for each in wg.devices()], "numpy" in sys.modules]
"""
    )
    assert (name, backend, there[0], modules) == ("webgpu:0", "browser", "webgpu:0", False)


def test_mistakes_are_python_exceptions(python: Run) -> None:
    with pytest.raises(BrowserError, match=r"ShapeError: matmul of \(2, 3\) and \(2, 3\)"):
        python("import webgrad as wg\nwg.ones((2, 3)) @ wg.ones((2, 3))")


def test_kernels_of_users(page: Run) -> None:
    values, refused = page(
        """
import array
import webgrad as wg
text = '''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(4)
fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    x[id.x] = FUNCTION(x[id.x]);
}'''
device = wg.open_device()
buffer = device.upload(array.array("f", [1.0, 4.0, 9.0, 16.0]))
wg.kernel(text.replace("FUNCTION", "sqrt"), device=device)(buffer, threads=4)
refused = ""
try:
    wg.kernel(text.replace("FUNCTION", "nothing"), device=device)
except wg.errors.CompileError as error:
    refused = str(error)
result = [list(array.array("f", bytes(device.read(buffer)))), refused]
"""
    )
    assert values == [1.0, 2.0, 3.0, 4.0]
    assert "unresolved call target 'nothing'" in refused
    assert re.search(r"> +5 \|     x\[id.x\] = nothing\(", refused), refused


ASYNC = """
import webgrad as wg
await wg.open_device_async()
x = wg.arange(6).reshape(2, 3) * 2.0
refused = ""
try:
    x.tolist()
except wg.errors.DeviceError as error:
    refused = str(error)
result = [await x.tolist_async(), refused]
"""


def test_values_are_awaited_where_python_cannot_be_suspended(unsuspended: Run, page: Run) -> None:
    values, refused = unsuspended(ASYNC)
    assert values == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert "await x.numpy_async() or x.tolist_async()" in refused
    assert page(ASYNC) == [values, ""], "the same program where both ways are open"


def test_training_without_suspending(unsuspended: Run) -> None:
    program = GRADIENTS.replace(
        "result = [loss.item(), x.grad.tolist(), w.grad.tolist(), second.item()]",
        "result = [[await loss.tolist_async()], await x.grad.tolist_async(), await w.grad.tolist_async(), "
        "[await second.tolist_async()]]",
    )
    found, wanted = unsuspended(program), native(GRADIENTS)
    flat = [np.concatenate([np.ravel(each) for each in value]) for value in (found, wanted)]
    np.testing.assert_allclose(flat[0], flat[1], rtol=1e-5, atol=1e-5)


def test_without_a_device_the_message_says_what_to_await(chromium: Browser, site: str) -> None:
    run = python_in_page(chromium.page(), site, suspending=False)
    with pytest.raises(BrowserError, match=r"await webgrad\.open_device_async\(\) first"):
        run("import webgrad as wg\nwg.ones(3)")


def test_without_webgpu_the_message_says_so(chromium: Browser, site: str) -> None:
    driven = chromium.page()
    run = python_in_page(driven, site)
    driven.evaluate("delete Navigator.prototype.gpu")
    with pytest.raises(BrowserError, match=r"no GPU adapter was found \(This browser has no WebGPU"):
        run("import webgrad as wg\nwg.ones(3).tolist()")


def test_a_lost_device_is_opened_again(python: Run) -> None:
    found = python(
        """
import webgrad as wg
device = wg.open_device()
x = wg.ones(4) * 3
wg.eval(x)
kept = device.upload(b"12345678", keep=True)
device.queue.context.native.destroy()
said = ""
try:
    x.tolist()
except wg.errors.DeviceLostError as error:
    said = str(error)
try:
    (x + 1).tolist()
    again = "x was there still"
except wg.errors.DeviceLostError as error:
    again = str(error)
result = [said, again, (wg.ones(2) * 4).tolist(), bytes(device.read(kept)).decode()]
"""
    )
    assert "lost" in found[0]
    assert "lost" in found[1]
    assert found[2:] == [[4.0, 4.0], "12345678"]


CHAIN = """
import time
import webgrad as wg

@wg.jit
def chain(x):
    for _ in range(100):
        x = wg.cumsum(x, axis=0)  # scans, which do not fuse with each other
        x = x.sum(axis=0, keepdims=True) * 1e-3 + x
    return x

x = wg.ones((16, 4))
chain(x), chain(x)
wg.synchronize()
wg.reset_stats()
chain(x)
count = wg.stats()["dispatches"]
best = 1.0
for _ in range(100):
    wg.synchronize()
    began = time.perf_counter()
    chain(x)
    best = min(best, time.perf_counter() - began)
result = [count, best / count * 1e6]
"""


def test_a_replayed_dispatch_costs_two_microseconds(page: Run) -> None:
    dispatches, microseconds = page(CHAIN)
    assert dispatches >= 190
    assert microseconds <= 2.0
