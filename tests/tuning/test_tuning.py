"""Where tuning is on: contexts, threads, tasks, the setting; and what importing it costs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest

import webgrad as wg
from tests.runtime.helpers import run_python
from webgrad import config
from webgrad.evaluate.evaluate import plans
from webgrad.tuning import is_on, tune


def test_off_unless_asked_for(clean_environment: pytest.MonkeyPatch) -> None:
    assert not is_on()
    clean_environment.setenv("WEBGRAD_TUNE", "1")
    config.reload()
    assert is_on()
    with tune(False):
        assert not is_on()
    assert is_on()


def test_contexts_nest_and_end_with_an_error() -> None:
    with tune():
        with tune():
            assert is_on()
        assert is_on()
        with tune(False):
            assert not is_on()
            with tune():
                assert is_on()
    assert not is_on()
    with pytest.raises(ZeroDivisionError), tune():
        1 / 0  # noqa: B018
    assert not is_on()


def test_as_a_decorator() -> None:
    @tune()
    def inside() -> bool:
        return is_on()

    assert (inside(), inside(), is_on()) == (True, True, False)


def test_it_holds_for_its_thread_and_task() -> None:
    seen: list[bool] = []
    with tune():
        thread = threading.Thread(target=lambda: seen.append(is_on()))
        thread.start()
        thread.join()
    assert seen == [False]

    async def tuned(inside: asyncio.Event, seen: asyncio.Event) -> bool:
        with tune():
            inside.set()
            await seen.wait()
            return is_on()

    async def beside(inside: asyncio.Event, seen: asyncio.Event) -> bool:
        await inside.wait()
        found = is_on()
        seen.set()
        return found

    async def both() -> list[bool]:
        events = asyncio.Event(), asyncio.Event()
        return list(await asyncio.gather(tuned(*events), beside(*events)))

    assert asyncio.run(both()) == [True, False]


def test_plans_with_and_without_are_different(clean_environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean_environment.setenv("WEBGRAD_CACHE", str(tmp_path / "cache"))
    config.reload()
    x = wg.asarray(np.ones((3, 5, 7, 11), np.float32), device="cpu")

    def made() -> int:
        before = plans()
        assert wg.sum(x * 3, axis=(1, 3)).numpy()[0, 0] == 165
        return plans() - before

    assert (made(), made()) == (1, 0)
    with tune():
        assert (made(), made()) == (1, 0)
    assert made() == 0
    assert not (tmp_path / "cache" / "tuning").exists()  # the cpu has nothing to measure


def test_asking_whether_it_is_on_loads_nothing() -> None:
    code = """
import sys, webgrad
from webgrad.tuning import is_on
assert not is_on()
sys.exit(any(name in sys.modules for name in ("wgpu", "webgrad.tuning.choice", "webgrad.tuning.entries")))
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
