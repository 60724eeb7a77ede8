"""The doctor: probes of a device, each guarded, in a process of their own that may crash or hang.

In: a device's name. Out: `Finding`s, one after the other, as probes end. `examine` runs the probes here;
`examine_apart` runs them in a child: where a driver ends that process, or keeps it for too long, that is a
finding, and another child goes on with the next probe. So the calling process never touches a driver.
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
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal

from .. import config
from ..errors import NoAdapterError, WebgradError
from ..runtime import adapters, host
from ..runtime.device import open_device
from .probes import adapter, machine, numbers, results, speed
from .probes.findings import Finding, note, problem

__all__ = ["PROBES", "Finding", "Probe", "devices_for", "examine", "examine_apart"]

PATIENCE = 60.0  # seconds without a word from the child
MOST_CHILDREN = 4  # for one device: after so many deaths nothing is learnt from another
_REPORT = "report this with the output of `webgrad doctor --json`; until then use another device"


@dataclass(frozen=True, slots=True)
class Probe:
    """One row: what is measured, under which heading, on which devices, and how."""

    name: str
    group: str
    where: Literal["gpu", "cpu", "both"]
    run: Callable[[Any], Finding | Iterable[Finding]]


PROBES: tuple[Probe, ...] = (
    Probe("adapter", "What it is", "gpu", adapter.driver),
    Probe("limits", "What it is", "gpu", adapter.limits),
    Probe("features", "What it is", "gpu", adapter.features),
    Probe("memory budget", "What it is", "gpu", adapter.memory),
    Probe("processor", "What it is", "cpu", machine.processor),
    Probe("memory", "What it is", "cpu", machine.memory),
    Probe("BLAS", "What it is", "cpu", machine.blas_library),
    Probe("native code", "What it is", "cpu", machine.native_code),
    Probe("settings", "What it is", "cpu", machine.settings),
    Probe("NaN and infinity", "Numbers", "both", numbers.not_numbers),
    Probe("NaN in plain WGSL", "Numbers", "gpu", numbers.plain_kernel),
    Probe("float32 subnormals", "Numbers", "both", numbers.subnormals),
    Probe("float16", "Numbers", "both", numbers.float16),
    Probe("bfloat16", "Numbers", "both", numbers.bfloat16),
    Probe("integers", "Numbers", "both", numbers.integers),
    Probe("casts to integers", "Numbers", "both", numbers.conversions),
    Probe("accuracy", "Numbers", "both", numbers.accuracy),
    Probe("matmul float32", "Results", "both", results.matmul),
    Probe("matmul float16", "Results", "both", results.matmul_half),
    Probe("sum", "Results", "both", results.reduction),
    Probe("softmax", "Results", "both", results.softmax),
    Probe("element-wise", "Results", "both", results.elementwise),
    Probe("many workgroups", "Results", "gpu", results.many_workgroups),
    Probe("large buffer", "Results", "gpu", results.large_buffer),
    Probe("twice the same", "Results", "both", results.repeated),
    Probe("agrees with cpu", "Results", "gpu", results.agreement),
    Probe("transfers", "Costs", "gpu", speed.transfers),
    Probe("read-back", "Costs", "gpu", speed.latency),
    Probe("a launch", "Costs", "gpu", speed.launches),
    Probe("compiling", "Costs", "gpu", speed.compiling),
    Probe("timestamps", "Costs", "gpu", speed.clock),
)


def devices_for(spec: str | None = None, *, every: bool = False) -> tuple[str, ...]:
    """The devices to examine: the one asked for alone; else the best adapter, or all, and then the cpu."""
    settings = config.settings()
    found = adapters.list_adapters()
    if every:
        return (*(each.device for each in found), "cpu")
    if spec is not None:
        return (adapters.choose(spec, found, settings).device,)
    wanted = settings.device if settings.device not in (None, "cpu") else "webgpu"
    return (adapters.choose(wanted, found, settings).device, "cpu") if found else ("cpu",)


def _no_adapter() -> Finding:
    """What to install, as `webgrad info` says."""
    trouble = adapters.enumeration_problem()
    sentences = host.install_advice(host.this_host())
    advice = "; ".join((trouble, *sentences) if trouble else sentences)
    return dataclasses.replace(
        note("adapter", "no GPU adapter was found: all runs on the cpu", advice), group="What it is"
    )


# Here


def examine(device: str, probes: Sequence[Probe] = PROBES, first: int = 0) -> Iterator[Finding]:
    """Run the probes of a device in this process, from the given one on; an error is a problem's text."""
    for probe in probes_of(device, probes)[first:]:
        yield from run_probe(probe, device)


def probes_of(device: str, probes: Sequence[Probe] = PROBES) -> list[Probe]:
    """Those that a device can have."""
    kind = "cpu" if device == "cpu" else "gpu"
    return [each for each in probes if each.where in (kind, "both")]


def run_probe(probe: Probe, device: str) -> list[Finding]:
    """What one probe finds; whatever it raises is a problem."""
    began = time.perf_counter()
    try:
        found = probe.run(open_device(device))
        findings = [found] if isinstance(found, Finding) else list(found)
    except Exception as error:
        words = " ".join(str(error).split()) or "no message"
        findings = [problem(probe.name, f"{type(error).__name__}: {words}", _REPORT)]
    taken = time.perf_counter() - began
    return [dataclasses.replace(each, group=probe.group, seconds=round(taken, 3)) for each in findings]


# Apart


def listed_apart(spec: str | None, *, every: bool, patience: float = PATIENCE) -> tuple[str, ...] | Finding:
    """`devices_for`, asked in a child; a finding where drivers end that."""
    for line in _Child({"list": spec, "every": every}, patience).lines():
        if "refused" in line:
            raise NoAdapterError(line["refused"])
        if "devices" in line:
            return tuple(line["devices"])
        if "ended" in line:
            return _ended("listing adapters", "What it is", line["ended"])
    raise AssertionError("a child's last line says how it ended")


def examine_apart(device: str, patience: float = PATIENCE) -> Iterator[Finding]:
    """Run the probes of a device in children; one that dies or hangs costs the probe it was at."""
    probes = probes_of(device)
    first = 0
    for _ in range(MOST_CHILDREN):
        at = first
        for line in _Child({"device": device, "first": first}, patience).lines():
            if "probe" in line:
                at = line["probe"]
            elif "finding" in line:
                yield Finding(**line["finding"])
            elif "done" in line:
                return
            elif "ended" in line:
                yield _ended(probes[at].name, probes[at].group, line["ended"])
        first = at + 1
        if first >= len(probes):
            return
    yield dataclasses.replace(
        problem("giving up", f"{MOST_CHILDREN} processes were lost; the other probes did not run", _REPORT),
        group=probes[at].group,
    )


def _ended(name: str, group: str, how: str) -> Finding:
    advice = (
        f"a driver does this, not webgrad: update it, or leave it out (WEBGRAD_DISABLE_DEVICES); {_REPORT}"
    )
    return dataclasses.replace(problem(name, how, advice), group=group)


class _Child:
    """A process that runs this module, and the JSON objects it prints; the last one is done or ended."""

    def __init__(self, request: Mapping[str, Any], patience: float) -> None:
        self._command = [sys.executable, "-m", "webgrad.tools.doctor", json.dumps(request)]
        self._patience = patience

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it prints, and how it ended where it did not say that it was done."""
        with tempfile.TemporaryFile() as noise:  # Mesa writes to stderr; it is shown where the child dies
            child = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=noise, text=True)
            try:
                assert child.stdout is not None
                yield from self._heard(child, child.stdout, noise)
            finally:
                child.kill()
                child.wait()

    def _heard(
        self, child: subprocess.Popen[str], output: IO[str], noise: IO[bytes]
    ) -> Iterator[dict[str, Any]]:
        heard: queue.Queue[str] = queue.Queue()

        def listen() -> None:
            for line in output:
                heard.put(line)
            heard.put("")

        threading.Thread(target=listen, daemon=True).start()
        done = False
        while True:
            try:
                line = heard.get(timeout=self._patience)
            except queue.Empty:
                yield {"ended": f"no answer for {self._patience:g} seconds, so the process was ended"}
                return
            if not line:
                break
            said = json.loads(line)
            done = done or bool({"done", "devices", "refused"} & said.keys())
            yield said
        if not done:
            noise.seek(0)
            last = noise.read()[-4000:].decode("utf-8", "replace").strip().splitlines()[-1:]
            yield {"ended": "; ".join([_death(child.wait()), *last])}


def _death(code: int) -> str:
    if code >= 0:
        return f"the process ended with code {code}"
    try:
        return f"the process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was ended by signal {-code}"


def main(arguments: Sequence[str]) -> int:
    """The child: answer a request, one JSON object a line, as soon as each is known."""
    request = json.loads(arguments[0])
    if "list" in request:
        try:
            _say(devices=devices_for(request["list"], every=request["every"]))
        except WebgradError as error:
            _say(refused=str(error))
        return 0
    probes = probes_of(request["device"])
    if request["device"] == "cpu" and request["first"] == 0 and not adapters.list_adapters():
        _say(finding=dataclasses.asdict(_no_adapter()))
    for at in range(request["first"], len(probes)):
        _say(probe=at)
        for each in run_probe(probes[at], request["device"]):
            _say(finding=dataclasses.asdict(each))
    _say(done=True)
    return 0


def _say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
