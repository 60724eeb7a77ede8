"""`webgrad doctor`: probe a device, and say what was found, with a verdict and advice for each line.

In: the device to probe. Out: lines as they are found, or one JSON object; exit code 1 where there is a
problem. The probes run in a process of their own: no driver can end or stop this one.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..tools import doctor
from .info import versions
from .options import Parser, add_device, add_json
from .text import NARROW, encodable, wrap

__all__ = ["main"]

_VERDICTS = ("ok", "note", "problem")
_NAME = 20  # columns of a finding's name


def main(arguments: Sequence[str]) -> int:
    """Examine the devices; 1 where there is a problem."""
    parser = Parser(prog="webgrad doctor", description="Probe a device: what it is, and whether to trust it.")
    add_device(parser)
    add_json(parser)
    parser.add_argument("--all", action="store_true", help="every adapter, and the cpu")
    options = parser.parse_args(arguments)
    if options.all and options.device is not None:
        parser.error("give either --all or --device, not both")
    reports = _examined(options.device, every=options.all)
    return _print_json(reports) if options.json else _print_text(reports)


def _examined(spec: str | None, *, every: bool) -> Iterator[tuple[str, Iterable[doctor.Finding]]]:
    """Each device with what is found of it."""
    devices, about = doctor.listed(spec, every=every)
    if about:
        yield "adapters", about
    for device in devices:
        yield device, doctor.examine(device)


def _print_json(reports: Iterable[tuple[str, Iterable[doctor.Finding]]]) -> int:
    devices: list[dict[str, Any]] = []
    for device, findings in reports:
        found = [dataclasses.asdict(each) for each in findings]
        devices.append({"device": device, "findings": found})
    verdicts = [each["verdict"] for device in devices for each in device["findings"]]
    problems = verdicts.count("problem")
    print(json.dumps({"versions": versions(), "devices": devices, "problems": problems}, indent=2))
    return 1 if problems else 0


def _print_text(reports: Iterable[tuple[str, Iterable[doctor.Finding]]]) -> int:
    width = shutil.get_terminal_size((80, 24)).columns
    problems = 0
    for number, (device, findings) in enumerate(reports):
        began, group = time.perf_counter(), ""
        counts = dict.fromkeys(_VERDICTS, 0)
        _print(([""] if number else []) + [device])
        for each in findings:
            if each.group != group:
                group = each.group
                _print(["", f"  {group}"])
            counts[each.verdict] += 1
            _print(lines_of(each, width))
        taken = time.perf_counter() - began
        _print(["", f"  {device}: {_counted(counts)} ({taken:.1f} s)"])
        problems += counts["problem"]
    return 1 if problems else 0


def lines_of(finding: doctor.Finding, width: int) -> list[str]:
    """A finding as text: verdict, name, what was found; below it the advice."""
    head = f"  {finding.verdict:7}  {finding.name:{_NAME}} "
    if width < NARROW:
        lines = [head.rstrip(), *wrap(finding.text, width, first="    ", rest="    ")]
        return lines + wrap(finding.advice, width, first="    > ", rest="      ")
    margin = " " * len(head)
    lines = wrap(finding.text, width, first=head, rest=margin)
    return lines + wrap(finding.advice, width, first=f"{margin}> ", rest=f"{margin}  ")


def _counted(counts: dict[str, int]) -> str:
    notes, problems = counts["note"], counts["problem"]
    return ", ".join(
        (
            f"{counts['ok']} ok",
            f"{notes} note{'s' * (notes != 1)}",
            f"{problems or 'no'} problem{'s' * (problems > 1)}",
        )
    )


def _print(lines: Iterable[str]) -> None:
    encoding = sys.stdout.encoding or "ascii"
    for line in lines:
        print(encodable(line, encoding), flush=True)
