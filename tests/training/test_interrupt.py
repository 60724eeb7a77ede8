"""Ctrl-C: once lets the step finish, twice does not."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading

import pytest

import webgrad as wg

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole groups of processes")


def test_the_first_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    with wg.training.finish_step() as is_interrupted:
        assert not is_interrupted()
        signal.raise_signal(signal.SIGINT)
        assert is_interrupted()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "once more to stop at once" in capsys.readouterr().err


def twice() -> None:
    with wg.training.finish_step():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_the_second_stops() -> None:
    with pytest.raises(KeyboardInterrupt):
        twice()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_handlers_and_threads_are_left_alone() -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with wg.training.finish_step() as is_interrupted:
            signal.raise_signal(signal.SIGINT)
            assert heard == [1]
            assert not is_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)

    def work() -> None:
        with wg.training.finish_step() as is_interrupted:
            heard.append(is_interrupted())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [1, False]


def test_nothing_that_cannot_be_said_stops_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(io.StringIO):
        def write(self, text: str) -> int:
            raise RuntimeError("reentrant call")

    monkeypatch.setattr(sys, "stderr", Busy())
    with wg.training.finish_step() as is_interrupted:
        signal.raise_signal(signal.SIGINT)
        assert is_interrupted()
