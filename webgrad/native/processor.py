"""Processors: what native code is compiled for, as one frozen record.

In: the machine, or a name. Out: a `Processor`: what LLVM is told, and what writers of kernels ask, such as
how wide registers are. The option `processor` names one that the machine can run. The invariant: code uses no
instruction that the record does not allow.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from ..config import settings
from ..errors import ArgumentError, ConfigError, WebgradError
from ..runtime.shield import shield

__all__ = ["ARCHITECTURES", "Processor", "architecture", "chosen", "host", "named", "setting_up"]

# Architecture → how it is told that a thread only waits: an intrinsic, and what it is called with
ARCHITECTURES = {
    "x86_64": ("llvm.x86.sse2.pause", ""),
    "aarch64": ("llvm.aarch64.hint", "i32 1"),
}
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}
# The features that the levels of x86-64 add, as LLVM calls them
_V2 = frozenset(("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"))
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
# Name → architecture, what LLVM calls it, its features
_KNOWN: dict[str, tuple[str, str, frozenset[str]]] = {
    "x86-64-v2": ("x86_64", "x86-64-v2", _V2),
    "x86-64-v3": ("x86_64", "x86-64-v3", _V3),
    "x86-64-v4": ("x86_64", "x86-64-v4", _V4),
    "aarch64": ("aarch64", "generic", frozenset()),
}


@dataclass(frozen=True, slots=True)
class Processor:
    """What code is compiled for. The first three are LLVM's; the others are asked by those who write code."""

    triple: str
    cpu: str
    features: str  # "+avx2,-avx512f", "" where the cpu says all
    register_bytes: int  # of a vector register: 16, 32 or 64
    registers: int  # how many vector registers there are
    has_fma: bool  # a * b + c rounded once, in one instruction
    has_halves: bool  # makes float32 of float16, and back
    has_masks: bool  # loads, stores and operations of some lanes of a vector only

    @property
    def architecture(self) -> str:
        """`x86_64` or `aarch64`."""
        return "aarch64" if self.triple.startswith(("aarch64", "arm64")) else "x86_64"


def architecture() -> str:
    """The kind of processor here, as LLVM calls it."""
    machine = platform.machine().lower()
    return _NAMES.get(machine, machine)


def _described(triple: str, cpu: str, features: str, has: AbstractSet[str]) -> Processor:
    if triple.startswith(("aarch64", "arm64")):
        return Processor(triple, cpu, features, 16, 32, has_fma=True, has_halves=True, has_masks=False)
    masks = has >= _V4
    width = 64 if masks else 32 if has >= {"avx", "avx2"} else 16
    registers = 32 if masks else 16
    return Processor(triple, cpu, features, width, registers, "fma" in has, "f16c" in has, masks)


@contextmanager
def setting_up() -> Iterator[None]:
    """While LLVM is looked for and set up: what goes wrong says what to do."""
    with shield:  # an error of a signal's handler is not llvmlite's
        try:
            yield
        except (ImportError, OSError, RuntimeError) as error:
            raise WebgradError(
                f"llvmlite is installed and does not work here ({error}): install it anew, or do without "
                "native code with WEBGRAD_NATIVE=0"
            ) from error


@cache
def _host_features() -> dict[str, bool]:
    with setting_up():
        import llvmlite.binding as llvm

        return dict(llvm.get_host_cpu_features())


def _host_has() -> frozenset[str]:
    return frozenset(name for name, there in _host_features().items() if there)


@cache
def host() -> Processor:
    """The processor of this machine."""
    with setting_up():
        import llvmlite.binding as llvm

        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
    features = ",".join(f"{'-+'[there]}{name}" for name, there in sorted(_host_features().items()))
    return _described(triple, cpu, features, _host_has())


@cache
def named(name: str) -> Processor:
    """A processor by its name: for tests, for other machines, or for less than this machine has."""
    if name not in _KNOWN:
        raise ArgumentError(f"processor {name!r} is not known; there are {', '.join(_KNOWN)}")
    kind, cpu, features = _KNOWN[name]
    triple = host().triple if kind == architecture() else f"{kind}-unknown-linux-gnu"
    return _described(triple, cpu, "", features)


def chosen() -> Processor:
    """What is compiled for here: the machine's own processor, or the one that the settings name."""
    name = settings().processor
    return host() if not name else _chosen(name, settings().source("processor"))


@cache
def _chosen(name: str, source: str) -> Processor:
    kind, _, features = _KNOWN[name]
    if kind != architecture():
        lacks = f"is {architecture()}"
    elif missing := sorted(features - _host_has()):
        lacks = f"has no {', '.join(missing)}"
    else:
        return named(name)
    able = [each for each, row in _KNOWN.items() if row[0] == architecture() and row[2] <= _host_has()]
    raise ConfigError(
        f"{source}: code for {name} cannot run here: this processor {lacks}. Take "
        f"{' or '.join(able) or 'none'}, or leave the option out: then it is the machine's own."
    )
