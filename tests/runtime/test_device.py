"""Devices: opened once, closed to forked children, and quiet at exit."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import webgrad
from tests.runtime.helpers import Bench, bench, floats, run_python
from tests.selection import first
from webgrad.config import MemoryBudget
from webgrad.runtime.device import CpuDevice, open_device, open_device_async
from webgrad.runtime.webgpu import Device

# Opening


@pytest.mark.gpu
def test_a_device_is_opened_once() -> None:
    device = open_device("webgpu")
    assert isinstance(device, Device)
    assert open_device(device.name) is device
    assert asyncio.run(open_device_async("webgpu")) is device
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(open_device, ["webgpu"] * 4)) == {device}


def test_the_cpu_is_a_device() -> None:
    device = open_device("cpu")
    assert isinstance(device, CpuDevice)
    assert open_device("cpu") is device
    device.synchronize()
    device.reset_stats()
    assert device.stats()["commands"] == 0
    assert repr(device).startswith("<CpuDevice ")


@pytest.mark.gpu
def test_devices_made_directly_are_apart() -> None:
    one, two = bench(), bench()
    one.numbers(one.scale(one.upload(floats(1)), 2))
    assert two.stats["commands"] == 0


@pytest.mark.gpu
def test_a_device_says_what_it_is(shared: Bench) -> None:
    info = shared.device.info
    assert repr(shared.device) == f"<Device {info.device}: {info.name}>"
    profile = shared.device.profile
    assert profile.features == info.features
    assert profile.max_workgroups == 65535
    assert profile.max_binding_bytes == info.limits["max-storage-buffer-binding-size"]
    assert profile.kind == ("software" if info.software else profile.kind)


@pytest.mark.gpu
def test_features_that_are_switched_off_are_off() -> None:
    without = bench(disable_features=frozenset({"subgroups"}), immediates=False)
    assert not {"subgroups", "immediates"} & without.device.features
    assert without.device.profile.subgroup_size == 0


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("memory", "budget"), [(MemoryBudget(bytes=1 << 20), 1 << 20), (MemoryBudget(fraction=0.001), None)]
)
def test_the_budget_is_the_settings(memory: MemoryBudget, budget: int | None) -> None:
    found = bench(memory=memory).device.budget
    assert found == budget if budget is not None else 0 < found < 1 << 40


# Forked children


PARENT = """
import os, signal, sys, threading, time
from webgrad.errors import ForkError
from webgrad.runtime.adapters import list_adapters
from webgrad.runtime.device import open_device
from tests.runtime.helpers import bench, floats

b = bench()
x = b.upload(floats(1, 2), keep=True)
assert b.numbers(b.scale(x, 2)).tolist() == [2, 4]
y = b.scale(x, 3)  # pending at the forks
b.device.flush()
z = b.scale(x, 4)
shared = open_device("webgpu")

def refused(use):
    try:
        use()
    except ForkError as error:
        assert "spawn" in str(error), error
    else:
        raise SystemExit("no ForkError")

taken, forked = threading.Event(), threading.Event()

def hold():
    with b.queue.hold():
        taken.set()
        forked.wait()

{children}
assert b.numbers(z).tolist() == [4, 8]
assert b.numbers(b.add(x, y)).tolist() == [4, 8]
print("parent done")
"""
CHILD = """
{before}
child = os.fork()
if child == 0:
    signal.alarm(100)  # where it would wait forever
    {inside}
    sys.exit(0)
ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
forked.set()
assert ended == {code}, ({name!r}, ended)
"""
FORKED_USES = {
    "allocate": "b.device.allocate(4)",
    "upload": "b.upload(floats(1))",
    "write": "b.queue.write(x, floats(3, 4))",
    "view": "b.queue.view(x, 0, 4)",
    "dispatch": "b.scale_into(x, y, 2)",
    "read": "b.numbers(z)",
    "flush": "b.device.flush()",
    "synchronize": "b.device.synchronize()",
    "open_device": "open_device('webgpu')",
    "list_adapters": "list_adapters()",
    "a new device": "bench()",
    "the shared device": "shared.allocate(4)",
}
FREED = ("x.free()", "del y, z, b, shared", "import gc; gc.collect()")
REFUSED = tuple(f"refused(lambda: {use})  # {name}" for name, use in FORKED_USES.items())
EVENTS = ("refused(lambda: busy.done)", "refused(busy.wait)", "refused(lambda: busy.wait(0.1))")
HANDLER = ("import atexit; atexit.register(print, 'handler', flush=True)", "sys.exit(7)")
# what a child is about → (what the parent does before, what the child does, the child's exit code)
CHILDREN = {
    "every use is refused": ("", (*REFUSED, *FREED), 0),
    "the cpu may be used": ("", ("assert open_device('cpu').name == 'cpu'",), 0),
    "its exit code and its handlers are its own": ("", HANDLER, 7),
    "another thread has the lock": (
        "threading.Thread(target=hold).start(); taken.wait()",
        ("refused(lambda: b.device.allocate(4))",),
        0,
    ),
    "events do not hang": (
        "b.spin(b.upload(floats(1)), 4_000_000); busy = b.device.flush()",
        EVENTS,
        0,
    ),
}


@pytest.mark.gpu
@pytest.mark.fault
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_children_are_refused_and_their_parent_goes_on() -> None:
    children = "".join(
        CHILD.format(name=name, before=before, inside="\n    ".join(inside), code=code)
        for name, (before, inside, code) in CHILDREN.items()
    )
    result = run_python(PARENT.format(children=children))
    assert (result.returncode, result.stdout, result.stderr) == (0, "handler\nparent done\n", "")


# Exit

# The first have what the others have one by one.
EXITS = {
    "in flight and recorded": "b.spin(x, 4_000_000); b.device.flush(); y = b.scale(x, 2)",
    "in a cycle": "c = [x]; c.append(c); y = b.scale(x, 2); del x",
    "read, uploaded, by sys.exit": "b.numbers(b.scale(x, 2)); y = b.upload(np.zeros(100)); sys.exit(0)",
    "nothing used": "import webgrad.runtime.device",
    "opened": "",
    "recorded": "y = b.scale(x, 2)",
    "in flight": "b.spin(x, 4_000_000); b.device.flush()",
    "compiling": "b.device.dispatch(b.spin_pipeline, [x], bytes(4))",
    "uploaded": "y = b.upload(np.zeros(100_000))",
    "read": "b.numbers(b.scale(x, 2))",
    "by sys.exit": "y = b.scale(x, 2); b.device.flush(); sys.exit(0)",
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", first(3, EXITS))
def test_a_program_may_end_at_any_time(name: str) -> None:
    code = f"""
import sys
import numpy as np
from tests.runtime.helpers import bench, floats
b = bench()
x = b.upload(floats(1))
{EXITS[name]}
"""
    result = run_python(code)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.gpu
@pytest.mark.parametrize("daemon", [False, True], ids=["thread", "daemon thread"])
def test_a_program_may_end_while_a_thread_works(daemon: bool) -> None:
    code = f"""
import itertools, threading, time
from tests.runtime.helpers import bench, floats
b = bench()
started = threading.Event()

def work():
    for step in itertools.count() if {daemon} else range(200):
        x = b.upload(floats(step))
        for _ in range(5):
            x = b.scale(x, 1)
        b.numbers(x)
        started.set()

threading.Thread(target=work, daemon={daemon}).start()
started.wait()
time.sleep(0.05)
"""
    result = run_python(code)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.gpu
def test_an_uncaught_error_is_all_that_is_printed() -> None:
    code = """
from tests.runtime.helpers import bench, floats
b = bench()
y = b.scale(b.upload(floats(1)), 2)
raise ValueError("mine")
"""
    result = run_python(code)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "ValueError: mine"
    assert result.stderr.count("Traceback") == 1


def test_importing_the_runtime_opens_nothing() -> None:
    code = """
import webgrad.runtime.device
from webgrad.runtime.adapters import _cache
assert _cache._entries is None
"""
    result = run_python(code)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_cpu_works_in_a_forked_child_and_starts_no_driver() -> None:
    code = """
import os, sys
import numpy as np
import webgrad as wg

def relu():
    batch = wg.Batch()
    value = batch.relu(batch.upload(np.array([-1, 1], np.float32)))
    batch.execute()
    return batch.read(value).tolist()

if os.environ.get("WEBGRAD_DEVICE") is None and wg.default_device().name != "cpu":
    print("a real GPU")
    sys.exit()
assert relu() == [0, 1]
child = os.fork()
if not child:
    os._exit(0 if relu() == [0, 1] else 1)
assert os.waitpid(child, 0)[1] == 0
if os.environ.get("WEBGRAD_DEVICE"):
    from webgrad.runtime.adapters import _cache
    assert _cache._entries is None
print("done")
"""
    for environment in ({}, {"WEBGRAD_DEVICE": "CPU"}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() in ("done", "a real GPU")


@pytest.mark.gpu
def test_a_device_is_taken_wherever_a_name_is(alone: Bench) -> None:
    device = alone.device
    assert open_device(device) is device
    assert webgrad.stats(device)["commands"] == device.stats()["commands"]
    webgrad.set_default_device(device)
    try:
        assert webgrad.default_device() is device
        assert webgrad.Batch().device is device
    finally:
        webgrad.set_default_device(None)
    assert webgrad.default_device() is not device
