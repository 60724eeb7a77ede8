"""The end of a run of tests/torch: how many of torch's samples were compared, and what is absent."""

from __future__ import annotations

import sys
from typing import Any

__all__: list[str] = []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what came of torch's samples, where they were tried."""
    report = sys.modules.get("tests.torch.report")
    if report is None or not report.lines():
        return
    from tests.torch.moduleinfo import MODULES, counterpart
    from tests.torch.opinfo import OPS, function

    absent = {
        "functions": [name for name in OPS if not function(name)],
        "modules": [name for name in MODULES if not counterpart(name)],
    }
    terminalreporter.section("torch's samples")
    for line in report.lines():
        terminalreporter.line(line)
    for kind, names in absent.items():
        terminalreporter.line(f"{kind} that are absent: {len(names)}")
    terminalreporter.line(f"their names, and what is refused: {report.write(absent)}")
