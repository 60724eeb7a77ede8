"""C types by name: the same types as before, with few declarations parsed for each."""

from __future__ import annotations

from typing import Any

import pytest

from webgrad.runtime.declarations import hasten

cffi: Any = pytest.importorskip("cffi")  # of wgpu; it ships no types

HEADER = (
    "typedef struct Plain { int a; } Plain; typedef Plain *Handle; typedef int Count; int use(Handle, Count);"
)
TEXTS = ["Plain *", "Handle[]", "Count", "void(*)(Handle, Plain const *, void *)", "uint32_t[4]", "size_t"]


def make() -> Any:
    ffi = cffi.FFI()
    ffi.cdef(HEADER)
    return ffi


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_means_the_same_type(text: str) -> None:
    plain, quick = make(), make()
    hasten(quick)
    for ffi in (plain, quick):
        assert ffi.typeof(text).kind
    assert plain.getctype(text) == quick.getctype(text)
    assert plain.sizeof(plain.typeof("Plain")) == quick.sizeof(quick.typeof("Plain"))


def test_only_the_names_of_the_text_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    ffi = make()
    seen: list[set[str]] = []
    plain = ffi._parser._parse

    def watched(text: str) -> object:
        seen.append(set(ffi._parser._declarations))
        return plain(text)

    monkeypatch.setattr(ffi._parser, "_parse", watched)
    before = set(ffi._parser._declarations)
    hasten(ffi)
    ffi.new("Plain *")
    assert "typedef Plain" in seen[0]
    assert "typedef Count" not in seen[0]
    assert set(ffi._parser._declarations) == before


def test_later_declarations_and_errors() -> None:
    ffi = make()
    hasten(ffi)
    ffi.cdef("typedef struct More { Plain inner; } More;")
    assert ffi.sizeof("More") == ffi.sizeof("Plain")
    with pytest.raises(cffi.CDefError, match="Nothing"):
        ffi.typeof("Nothing *")
    assert ffi.typeof("Count").kind == "primitive"


def test_a_cffi_that_is_built_otherwise_is_left_alone() -> None:
    hasten(object())
