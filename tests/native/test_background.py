"""Modules compiled beside the program: asked without waiting, errors, forks, and the end of the program."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import pytest

import webgrad as wg
from tests.limits import HANG
from webgrad.native import compiler
from webgrad.native.background import Request
from webgrad.native.compiler import callable_at
from webgrad.native.text import Function


def request(text: str, names: Sequence[str]) -> Request:
    """One that is compiled soon."""
    made = Request(text, names)
    made.ready()
    return made


def module_of(number: int) -> str:
    return Function("run", [("ptr", "fields")], "i64").module(last=f"ret i64 {number}")


def run(asked: Request) -> int:
    return callable_at(asked.addresses()["run"])[0](0)


def wait(asked: Request) -> None:
    end = time.monotonic() + HANG
    while not asked.ready():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_it_becomes_ready() -> None:
    asked = [request(module_of(2000 + number), ["run"]) for number in range(5)]
    for number, each in enumerate(asked):
        wait(each)
        assert run(each) == 2000 + number
    assert [each.name for each in threading.enumerate()].count("webgrad-compiler") == 1


def test_asking_does_not_wait() -> None:
    with compiler.lock:  # another thread's compilation goes on
        asked = request(module_of(2010), ["run"])
        assert not asked.ready()
    wait(asked)
    assert run(asked) == 2010


def test_addresses_that_are_needed_now() -> None:
    with compiler.lock:
        asked = request(module_of(2020), ["run"])
        assert run(asked) == 2020  # here: the other thread has not begun
        assert asked.ready()


def test_an_error_is_raised_where_the_addresses_are_asked_for() -> None:
    asked = request("define i64 @run(ptr %fields) { ret i64 %nothing }", ["run"])
    wait(asked)
    for _ in range(2):
        with pytest.raises(wg.WebgradError, match="LLVM refuses"):
            asked.addresses()
    after = request(module_of(2030), ["run"])
    wait(after)
    assert run(after) == 2030


def test_several_threads_ask() -> None:
    asked = [request(module_of(2040 + number % 3), ["run"]) for number in range(12)]
    found: list[int] = []
    threads = [threading.Thread(target=lambda each=each: found.append(run(each))) for each in asked]
    for each in threads:
        each.start()
    for each in threads:
        each.join(HANG)
    assert sorted(found) == sorted(2040 + number % 3 for number in range(12))


def test_a_thread_that_needs_llvm_now_does_not_wait_for_the_queue() -> None:
    asked = [request(module_of(2100 + number), ["run"]) for number in range(60)]
    compiler.functions(module_of(2099), ["run"])
    assert not all(each._found for each in asked)
    wait(asked[-1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("polls", [True, False])
def test_a_forked_child_compiles_by_itself(polls: bool) -> None:
    first = 2200 + 100 * polls
    asked = [request(module_of(first + number), ["run"]) for number in range(40)]
    child = os.fork()  # in the midst of it
    if child == 0:
        code = 1
        try:
            if polls:
                wait(asked[-1])
            code = 0 if [run(each) for each in asked] == list(range(first, first + 40)) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [run(each) for each in asked] == list(range(first, first + 40))


PROGRAM = """
from tests.native.test_background import module_of, request
asked = [request(module_of(1 << 20 | number), ["run"]) for number in range(2000)]
print("end")
"""


def test_a_program_ends_while_modules_wait() -> None:
    environment = {**os.environ, "WEBGRAD_NATIVE_CACHE": "0"}
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=HANG
        )
        assert (done.stdout.strip(), done.stderr, done.returncode) == ("end", "", 0)
