"""Arenas: a handle is good until its value is removed, and never again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgrad.errors import StaleBufferError
from webgrad.runtime.arena import INDEX_MASK, Arena


def test_a_value_is_found_by_its_handle() -> None:
    arena: Arena[str] = Arena("buffer")
    first, second = arena.insert("a"), arena.insert("b")
    assert (arena.get(first), arena.get(second)) == ("a", "b")
    assert len(arena) == 2
    assert list(arena) == ["a", "b"]
    assert dict(arena.items()) == {first: "a", second: "b"}


def test_a_slot_is_reused_with_another_generation() -> None:
    arena: Arena[str] = Arena("buffer")
    old = arena.insert("a")
    assert arena.remove(old) == "a"
    new = arena.insert("b")
    assert new & INDEX_MASK == old & INDEX_MASK
    assert new != old
    assert old not in arena
    assert new in arena


@pytest.mark.parametrize("refill", [False, True], ids=["empty slot", "slot taken again"])
def test_a_stale_handle_is_found_out(refill: bool) -> None:
    arena: Arena[str] = Arena("bind group")
    handle = arena.insert("a")
    arena.remove(handle)
    if refill:
        arena.insert("b")
    with pytest.raises(StaleBufferError, match=r"bind group 0 \(generation 1\) is gone"):
        arena.get(handle)
    with pytest.raises(StaleBufferError):
        arena.remove(handle)
    assert arena.discard(handle) is None


@pytest.mark.parametrize("handle", [0, 7, 1 << 32 | 7, 2 << 32])
def test_a_handle_that_was_never_given_is_stale(handle: int) -> None:
    arena: Arena[str] = Arena("buffer")
    arena.insert("a")
    assert handle not in arena
    with pytest.raises(StaleBufferError):
        arena.get(handle)
    assert arena.discard(handle) is None


@pytest.mark.property
@given(
    st.lists(st.tuples(st.sampled_from(["insert", "remove", "stale"]), st.integers(0, 1000)), max_size=200)
)
def test_it_behaves_like_a_dictionary(steps: list[tuple[str, int]]) -> None:
    arena: Arena[int] = Arena("buffer")
    model: dict[int, int] = {}
    gone: list[int] = []
    for step, number in steps:
        if step == "insert":
            handle = arena.insert(number)
            assert handle not in model
            assert handle not in gone
            model[handle] = number
        elif step == "remove" and model:
            handle = sorted(model)[number % len(model)]
            assert arena.remove(handle) == model.pop(handle)
            gone.append(handle)
        elif step == "stale" and gone:
            handle = gone[number % len(gone)]
            assert arena.discard(handle) is None
            with pytest.raises(StaleBufferError):
                arena.get(handle)
        assert len(arena) == len(model)
        assert dict(arena.items()) == model
