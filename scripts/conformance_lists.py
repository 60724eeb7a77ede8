"""The tests of a standard's suite that are skipped or expected to fail, each with its reason.

In: conformance/skips.txt, xfails.txt and onnx.txt, a test a line: `devices | test | reason`, where devices is
cpu, webgpu or both. Out: the tests for a device. The invariant: a line that names no single test, or gives no
reason, is an error, so that nothing is left out without saying why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DEVICES", "ONNX", "Expectation", "ListError", "for_device", "matches", "read_list", "stale"]

DEVICES = ("cpu", "webgpu", "both")
_FEWEST_WORDS = 3  # of a reason
ARRAY_API = "array_api_tests/file.py::test, or with its [case]"
ONNX = "the name of a case"
FORMS = {ARRAY_API: r"array_api_tests/.*::.*", ONNX: r"[\w.-]+"}  # how tests are named


class ListError(Exception):
    """A line that is not of the form above; the message names it."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A test, the devices that it is listed for, and why."""

    devices: str
    test: str
    reason: str


def read_list(path: Path, form: str = ARRAY_API) -> list[Expectation]:
    """The tests of a file, of such names; empty lines and those that begin with # are for readers."""
    found: list[Expectation] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            found.append(_parsed(line, f"{path.name}, line {number}", form))
    return found


def _parsed(line: str, where: str, form: str) -> Expectation:
    parts = [each.strip() for each in line.split(" | ")]
    if len(parts) != 3:
        raise ListError(f"{where}: {line!r} is not `devices | test | reason`")
    devices, test, reason = parts
    if devices not in DEVICES:
        raise ListError(f"{where}: devices are {', '.join(DEVICES)}, not {devices!r}")
    if not re.fullmatch(FORMS[form], test):
        raise ListError(f"{where}: {test!r} names no test: {form}")
    if len(reason.split()) < _FEWEST_WORDS:
        raise ListError(f"{where}: {test} has no reason that says why, only {reason!r}")
    return Expectation(devices, test, reason)


def for_device(expectations: Iterable[Expectation], device: str) -> list[str]:
    """The tests that are listed for a device, such as cpu or webgpu:0."""
    kind = "cpu" if device == "cpu" else "webgpu"
    return [each.test for each in expectations if each.devices in (kind, "both")]


def matches(node: str, test: str) -> bool:
    """Whether a test of a run is the listed one, or a case of it."""
    return node == test or node.split("[")[0] == test


def stale(tests: Iterable[str], nodes: Sequence[str]) -> list[str]:
    """Listed tests that are not in the suite."""
    return [test for test in tests if not any(matches(node, test) for node in nodes)]
