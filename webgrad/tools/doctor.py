"""The doctor: has a device probed in a process of its own, which a driver may end or stop.

In: a device's name. Out: `Finding`s, one after the other, as probes end. Where a driver ends the process, or
keeps it for too long, that is a finding, and another process goes on with the next probe. The calling process
never touches a driver.
"""

from __future__ import annotations

import dataclasses
import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import IO, Any

from ..errors import DeviceError
from .probes.findings import REPORT, Finding, problem

__all__ = ["Finding", "examine", "listed"]

# The process gets this one's path, wherever webgrad was imported from.
PROGRAM = """
import json, sys
request, sys.path[:] = map(json.loads, sys.argv[1:3])
from webgrad.tools.probes import table
table.main(request)
"""
PATIENCE = 60.0  # seconds without a word from the process
MOST_LOSSES = 3  # of processes for one device; after these another would teach nothing
_BLAME = "a driver does this: update it, or leave the device out (WEBGRAD_DISABLE_DEVICES); "


def listed(spec: str | None = None, *, every: bool = False) -> tuple[tuple[str, ...], list[Finding]]:
    """The devices to examine, as `devices_for` of the table says, and what is to be said of there being none.

    Where a driver cannot even be asked, that is a problem, and the cpu is left.
    """
    for line in _said({"list": spec, "every": every}):
        if "refused" in line:
            raise DeviceError(line["refused"])
        if "devices" in line:
            return tuple(line["devices"]), [Finding(**each) for each in line["findings"]]
        if "ended" in line:
            break
    return ("cpu",), [problem("listing", line["ended"], _BLAME + REPORT)]


def examine(device: str) -> Iterator[Finding]:
    """Have a device probed; a process that dies or hangs costs the probe it was at."""
    at, name, group = -1, "starting", "What it is"
    for _ in range(MOST_LOSSES):
        for line in _said({"device": device, "first": at + 1}):
            if "probe" in line:
                at, name, group = line["probe"], line["name"], line["group"]
            elif "finding" in line:
                yield Finding(**line["finding"])
            elif "done" in line:
                return
            elif "ended" in line:
                ended = problem(name, line["ended"], _BLAME + REPORT)
                yield dataclasses.replace(ended, group=group)
    lost = f"{MOST_LOSSES} processes were lost, so the other probes were left out"
    yield dataclasses.replace(problem("giving up", lost, REPORT), group=group)


def _said(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a new process says to a request; how it ended, where it did not say that it was done."""
    with tempfile.TemporaryFile() as noise:  # Mesa writes to stderr; the end of it is told where it dies
        command = [sys.executable, "-c", PROGRAM, json.dumps(request), json.dumps(sys.path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=noise, encoding="utf-8")
        try:
            assert process.stdout is not None
            done = False
            for line in _lines(process.stdout):
                done = done or bool({"done", "devices", "refused", "ended"} & line.keys())
                yield line
            if not done:
                noise.seek(0)
                last = noise.read()[-4000:].decode("utf-8", "replace").strip().splitlines()[-1:]
                yield {"ended": "; ".join([_death(process.wait()), *last])}
        finally:
            process.kill()
            process.wait()


def _lines(output: IO[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects a process prints, until it prints no more or is silent for too long."""
    heard: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        with output:
            for line in output:
                heard.put(line)
        heard.put("")

    threading.Thread(target=listen, daemon=True).start()
    try:
        while line := heard.get(timeout=PATIENCE):
            yield json.loads(line)
    except queue.Empty:
        yield {"ended": f"no answer within {PATIENCE:g} seconds, so the process was ended"}


def _death(code: int) -> str:
    if code >= 0:
        return f"the process ended with code {code}"
    try:
        return f"the process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was ended by signal {-code}"
