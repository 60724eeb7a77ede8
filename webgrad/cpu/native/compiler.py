"""From LLVM's text to functions: llvmlite compiles it for the processor at hand, once a process.

In: the text of a module whose function `run` takes the address of its arguments and gives an i64. Out: that
function, for ctypes. Where llvmlite is not installed, or native code is switched off, there is none, and
NumPy computes. A module that LLVM does not accept, or that calls anything from outside, is refused before it
is compiled: LLVM would end the process.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from ...config import settings
from ...errors import WebgradError
from ...runtime.shield import shield
from .text import LANES, RELAX

__all__ = ["Functions", "compiled", "converts_halves", "is_available", "is_started"]

Functions = tuple[Callable[[int], int], Callable[[int], int]]
OLDEST = (0, 45)  # of llvmlite: before, LLVM wrote its text in another way
_VECTOR = f"<{LANES} x float>"
_DECLARATIONS = f"""
declare {_VECTOR} @llvm.fma.v{LANES}f32({_VECTOR}, {_VECTOR}, {_VECTOR})
declare <{LANES} x double> @llvm.fma.v{LANES}f64(<{LANES} x double>, <{LANES} x double>, <{LANES} x double>)
declare float @llvm.fma.f32(float, float, float)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
"""
_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
# How a processor is told that a thread only waits
_RELAX = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PASSES = (
    "sroa",
    "instruction_combine",
    "simplify_cfg",
    "loop_rotate",
    "instruction_combine",
    "simplify_cfg",
)
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}
_engines: list[Any] = []  # code lives as long as its engine: for good
_lock = threading.RLock()  # LLVM's objects are made by one thread at a time


def architecture() -> str:
    """The processor's kind, as LLVM calls it."""
    machine = platform.machine().lower()
    return _NAMES.get(machine, machine)


def is_available() -> bool:
    """Whether there is native code here: on the processors that it was written for, with llvmlite."""
    return settings().native and _installed()


def is_started() -> bool:
    """Whether something was compiled already."""
    return bool(_engines)


@cache
def _installed() -> bool:
    if architecture() not in _RELAX:
        return False
    try:
        import llvmlite

        numbers = llvmlite.__version__.split(".")
        return (int(numbers[0]), int(numbers[1])) >= OLDEST
    except (ImportError, ValueError, IndexError):
        return False


class _Compiler:
    """LLVM, set up for this processor."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        features = llvm.get_host_cpu_features()
        self.has_fma = architecture() == "aarch64" or bool(features.get("fma"))
        self.has_halves = architecture() == "aarch64" or bool(features.get("f16c"))
        triple = llvm.get_process_triple() + ("-elf" if sys.platform == "win32" else "")
        self.machine = llvm.Target.from_triple(triple).create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2, jit=True
        )

    @staticmethod
    def whole(text: str, processor: str, *, has_fma: bool) -> str:
        """A module's text with all that it stands on, for a kind of processor."""
        declaration, relax = _RELAX[processor]
        made = "\n".join([_DECLARATIONS, declaration, _ATTRIBUTES, text.replace(RELAX, relax)])
        # Where there is no such instruction, a call of the C library's fma would be a hundred times as slow.
        return made if has_fma else made.replace("@llvm.fma.", "@llvm.fmuladd.")

    def address(self, text: str) -> int:
        """Of the function `run`."""
        llvm = self.llvm
        try:
            module = llvm.parse_assembly(self.whole(text, architecture(), has_fma=self.has_fma))
            module.verify()
        except RuntimeError as error:
            raise WebgradError(f"native code for the cpu that LLVM refuses: {error}") from error
        if all(each.name != "run" for each in module.functions):
            raise WebgradError("native code for the cpu that has no function run")
        outside = [each.name for each in module.functions if each.is_declaration]
        if any(not each.startswith("llvm.") for each in outside):
            raise WebgradError(f"native code for the cpu that calls {outside}")
        self._improve(module)
        engine = llvm.create_mcjit_compiler(module, self.machine)
        engine.finalize_object()
        _engines.append(engine)
        return int(engine.get_function_address("run"))

    def _improve(self, module: Any) -> None:
        """Few passes: the text says what is a vector and what is unrolled. All of LLVM's take eight times as
        long, and make code that is no quicker.
        """
        passes = self.llvm.create_new_module_pass_manager()
        for name in _PASSES:
            getattr(passes, f"add_{name}_pass")()
        options = self.llvm.create_pipeline_tuning_options(speed_level=2)
        passes.run(module, self.llvm.create_pass_builder(self.machine, options))


@cache
def _compiler() -> _Compiler:
    with shield:  # an error of a signal's handler is not llvmlite's
        try:
            return _Compiler()
        except (ImportError, OSError, RuntimeError) as error:
            raise WebgradError(
                f"llvmlite is installed and does not work here ({error}): install it anew, or do without "
                "native code with WEBGRAD_NATIVE=0"
            ) from error


def converts_halves() -> bool:
    """Whether the processor makes float32 of float16: else LLVM would call a library for every number."""
    with _lock:
        return _compiler().has_halves


_KEEPING, _LENDING = (kind(ctypes.c_int64, ctypes.c_void_p) for kind in (ctypes.PYFUNCTYPE, ctypes.CFUNCTYPE))


@cache
def compiled(write: Callable[..., str], *arguments: Any) -> Functions:
    """The function of a module: in a form that keeps the interpreter to itself, and one that lends it."""
    with _lock:
        address = _compiler().address(write(*arguments))
    return _KEEPING(address), _LENDING(address)
