"""The table of probes, and how they are run: each guarded, so that an error is a finding too.

In: a device's name. Out: `Finding`s. `main` answers a request of the doctor's with one JSON object a line, in
the process that drivers may end or stop.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ... import config
from ...errors import NoAdapterError, WebgradError
from ...runtime import adapters
from ...runtime.device import open_device
from . import adapter, machine, numbers, results, speed
from .findings import REPORT, Finding, note, plain, problem

__all__ = ["PROBES", "Probe", "devices_for", "examine", "main"]


@dataclass(frozen=True, slots=True)
class Probe:
    """One row: what is measured, under which heading, on which devices, and how."""

    name: str
    group: str
    where: Literal["gpu", "cpu", "both"]
    run: Callable[[Any], Finding | Iterable[Finding]]
    vital: bool = False  # where it is a problem, others would only repeat it


PROBES: tuple[Probe, ...] = (
    Probe("opening", "What it is", "gpu", adapter.opening, vital=True),
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
    Probe("GPU's clock", "Costs", "gpu", speed.clock),
)


def devices_for(spec: str | None = None, *, every: bool = False) -> tuple[str, ...]:
    """The devices to examine: the one asked for alone; else the best adapter, or all, and then the cpu."""
    if spec is not None and spec.strip().lower() == "cpu":
        return ("cpu",)  # no driver is asked
    settings = config.settings()
    found = adapters.list_adapters()
    if every:
        return (*(each.device for each in found), "cpu")
    if spec is not None:
        return (adapters.choose(spec, found, settings).device,)
    wanted = settings.device if settings.device not in (None, "cpu") else "webgpu"
    return (adapters.choose(wanted, found, settings).device, "cpu") if found else ("cpu",)


def _no_adapter() -> Finding:
    """That there is none, and why, with what to install."""
    try:
        adapters.choose("webgpu", (), config.settings())
    except NoAdapterError as error:
        why = " ".join(str(error).splitlines()[1:])
    return note("listing", "no GPU adapter was found: all runs on the cpu", why)


def probes_of(device: str, probes: Sequence[Probe] | None = None) -> list[Probe]:
    """Those that a device can have."""
    kind = "cpu" if device == "cpu" else "gpu"
    return [each for each in (PROBES if probes is None else probes) if each.where in (kind, "both")]


def examine(device: str, probes: Sequence[Probe] | None = None) -> Iterator[Finding]:
    """Run the probes of a device in this process; what one raises is a problem."""
    for probe in probes_of(device, probes):
        found = run_probe(probe, device)
        yield from found
        if _is_over(probe, found):
            return


def _is_over(probe: Probe, found: Iterable[Finding]) -> bool:
    return probe.vital and any(each.verdict == "problem" for each in found)


def run_probe(probe: Probe, device: str) -> list[Finding]:
    """What one probe finds; whatever it raises is a problem."""
    began = time.perf_counter()
    try:
        found = probe.run(open_device(device))
        findings = [found] if isinstance(found, Finding) else list(found)
    except Exception as error:
        words = " ".join(str(error).split()) or "no message"
        findings = [problem(probe.name, f"{type(error).__name__}: {words}", REPORT)]
    taken = time.perf_counter() - began
    return [
        dataclasses.replace(each, group=probe.group, seconds=round(taken, 3), figures=plain(each.figures))
        for each in findings
    ]


def main(request: Mapping[str, Any]) -> None:
    """Answer a request, one JSON object a line, each as soon as it is known."""
    if "list" in request:
        try:
            devices = devices_for(request["list"], every=request["every"])
            missing = devices == ("cpu",) and request["list"] is None
            _say(devices=devices, findings=[dataclasses.asdict(_no_adapter())] if missing else [])
        except WebgradError as error:
            _say(refused=str(error))
        return
    device, first = request["device"], request["first"]
    for at, probe in list(enumerate(probes_of(device)))[first:]:
        _say(probe=at, name=probe.name, group=probe.group)
        found = run_probe(probe, device)
        for each in found:
            _say(finding=dataclasses.asdict(each))
        if _is_over(probe, found):
            break
    _say(done=True)


def _say(**words: Any) -> None:
    print(json.dumps(words), flush=True)
