"""How many threads BLAS uses: one inside, as before outside, whatever happens in between."""

from __future__ import annotations

import threading

import pytest

from webgrad.cpu import blas


def threads() -> int:
    functions = blas._functions()
    if functions is None:
        pytest.skip("NumPy's BLAS is not an OpenBLAS of its own")
    return functions[0]()


def test_one_thread_inside() -> None:
    before = threads()
    with blas.single_threaded():
        assert threads() == 1
        with blas.single_threaded():
            assert threads() == 1
        assert threads() == 1
    assert threads() == before


def test_an_error_leaves_it_as_it_was() -> None:
    before = threads()
    with pytest.raises(KeyError), blas.single_threaded():
        raise KeyError
    assert threads() == before


def test_the_last_of_several_threads_sets_it_back() -> None:
    before = threads()
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with blas.single_threaded():
            inside.set()
            leave.wait()

    other = threading.Thread(target=work)
    with blas.single_threaded():
        other.start()
        inside.wait()
    assert threads() == 1
    leave.set()
    other.join()
    assert threads() == before


def test_without_a_library_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_functions", lambda: None)
    with blas.single_threaded():
        pass
