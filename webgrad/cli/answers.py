"""Showing an answer while it is made, and how it went.

In: a generation. Out: its text on the stream, then an `Answer`. Ctrl-C ends the answer and nothing else:
while pieces come, the one under way is finished, so that the model is left as after any other answer.
"""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .protocols import Generation, Report
from .terminal import Output, unechoed_keys

__all__ = ["Answer", "report_json", "report_text", "show"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was written and how it went, to its end or as far as it got."""

    text: str
    ids: tuple[int, ...]
    report: Report
    is_whole: bool


class Stopper:
    """Ctrl-C while a model answers: polite once pieces come; at once before that, or when pressed twice."""

    def __init__(self) -> None:
        self.is_asked = self.is_patient = False
        self._before: Any = None

    def __enter__(self) -> Stopper:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(self, *details: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if self.is_asked or not self.is_patient:
            raise KeyboardInterrupt
        self.is_asked = True


def show(generation: Generation, output: Output | None, *, is_trimmed: bool = True) -> Answer:
    """Write an answer's pieces as they come, spaces before its first word left out; or wait for its end."""
    pieces: list[str] = []
    is_whole = False
    with Stopper() as stopper, unechoed_keys():
        try:
            if output is not None:
                output.wait()
            for piece in generation:
                stopper.is_patient = True
                text = piece.lstrip() if is_trimmed and not pieces else piece
                if text:
                    pieces.append(text)
                    if output is not None:
                        output.piece(text)
                if stopper.is_asked:
                    break
            else:
                is_whole = True
        except KeyboardInterrupt:
            pass
        finally:
            if output is not None:
                output.wait_no_more()
    if output is not None and (pieces or is_whole):
        output.end()
    return Answer("".join(pieces), tuple(generation.ids), generation.report, is_whole)


def report_text(report: Report, device: object) -> str:
    """How an answer went, in a line."""
    known = f" ({report.cached_tokens} known)" if report.cached_tokens else ""
    read = f"prefill {report.prompt_tokens} tokens{known}{_speed(report.prefill_speed)}"
    written = f"decode {report.tokens} tokens{_speed(report.decode_speed)}"
    parts = [read, written, str(device)]
    if report.stopped_by in ENDS:
        parts.append(ENDS[report.stopped_by])
    return " · ".join(parts)


# why an answer ended, where that is not the model's own end
ENDS = {"length": "cut at max_tokens", "context": "cut: the context is full"}


def _speed(tokens: float) -> str:
    """Where nothing could be measured, nothing."""
    if not 0 < tokens < math.inf:
        return ""
    return f", {tokens:.0f}/s" if tokens >= 100 else f", {tokens:.3g}/s"


def report_json(report: Report) -> dict[str, Any]:
    """The same for programs."""
    names = (
        "prompt_tokens",
        "cached_tokens",
        "tokens",
        "prefill_seconds",
        "decode_seconds",
        "prefill_speed",
        "decode_speed",
        "stopped_by",
    )
    return {name: getattr(report, name) for name in names}
