"""What a probe gives: a finding with a verdict, and advice where that is not "ok".

In: names, texts and figures. Out: `Finding` records. The invariant: a finding that is not ok says what to do,
and its figures are plain numbers, texts and lists, ready for JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...arrays import Array, np
from ...runtime.stats import readable_bytes

__all__ = [
    "REPORT",
    "Array",
    "Finding",
    "Verdict",
    "amount",
    "differing",
    "judged",
    "note",
    "ok",
    "plain",
    "problem",
    "significant",
]

Verdict = Literal["ok", "note", "problem"]
_MOST_NAMED = 4  # of what is wrong, in a line


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    name: str
    text: str
    verdict: Verdict = "ok"
    advice: str = ""  # what to do; empty where the verdict is ok
    figures: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    seconds: float = 0.0  # that the probe took


def ok(name: str, text: str, **figures: Any) -> Finding:
    """Nothing to be done."""
    return Finding(name, text, figures=figures)


def note(name: str, text: str, advice: str, **figures: Any) -> Finding:
    """Something to know; webgrad works."""
    return Finding(name, text, "note", advice, figures)


def problem(name: str, text: str, advice: str, **figures: Any) -> Finding:
    """Something that makes results wrong, or the device useless."""
    return Finding(name, text, "problem", advice, figures)


REPORT = "report this with the output of `webgrad doctor --json`; until then use another device"
_WRONG = f"results of this device cannot be trusted: update its driver; {REPORT}"


def judged(name: str, text: str, wrong: Sequence[str], advice: str = _WRONG, **figures: Any) -> Finding:
    """Ok, with the text, where nothing is wrong; else a problem that names what is."""
    if not wrong:
        return ok(name, text, **figures)
    named = ", ".join(wrong[:_MOST_NAMED]) + (", …" if len(wrong) > _MOST_NAMED else "")
    return problem(name, f"wrong: {named}", advice, wrong=list(wrong), **figures)


def differing(pairs: Iterable[tuple[str, Array, Array]]) -> list[str]:
    """The names of results that are not equal to what is expected, NaN being equal to NaN."""
    return [name for name, actual, expected in pairs if not _same(actual, expected)]


def _same(actual: Array, expected: Array) -> bool:
    if actual.shape != expected.shape:
        return False
    both_nan = np.zeros(actual.shape, np.bool_)
    if actual.dtype.kind not in "iub":
        both_nan = np.isnan(actual) & np.isnan(expected)
    return bool(np.all((actual == expected) | both_nan))


def significant(number: float) -> str:
    """Three digits: 0.0123, 1.23, 123, 1,230."""
    if number == 0:
        return "0"
    rounded = float(f"{number:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def amount(count: int) -> str:
    """A number of bytes for people, which is not broken over lines."""
    return readable_bytes(count).replace(" ", "\N{NO-BREAK SPACE}")


def plain(value: Any) -> Any:
    """A figure as JSON has it: NumPy's numbers become Python's, NaN and infinities words."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
