"""Expressions of WGSL as functions over NumPy arrays, compiled for one processor and a number of lanes."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from webgrad.native.text import Function, module
from webgrad.native.translation.translator import Translator
from webgrad.native.value import Value, llvm_type

Array = npt.NDArray[Any]
SCALARS = {
    "float32": "f32",
    "float64": "f64",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "bool": "bool",
}
X86 = platform.machine().lower() in ("x86_64", "amd64")
PROCESSORS = ("host", "x86-64-v2", "x86-64-v3") if X86 else ("host",)


def _memory(scalar: str, width: int) -> str:
    return llvm_type(scalar, width).replace("i1", "i8") if scalar == "bool" else llvm_type(scalar, width)


Write = Callable[[Function, Sequence[Value]], Value]


def spelled(expression: str) -> Write:
    return lambda code, args: Translator(code).spelled(expression, args)


_PARAMETERS = [*(("ptr", each) for each in ("x0", "x1", "x2", "y")), ("i64", "count")]


def function(name: str, write: Write, operands: Sequence[str], result: str, width: int) -> str:
    """A loop over all elements, `width` at a time."""
    code = Function(name, _PARAMETERS)
    with code.loop(0, "%count", max(width, 1)) as at:
        args = []
        for place, scalar in enumerate(operands):
            kind = _memory(scalar, width)
            loaded = code.load(kind, f"%x{place}", at, _memory(scalar, 0))
            if scalar == "bool":
                loaded = code(f"icmp ne {kind} {loaded}, {'zeroinitializer' if width else '0'}")
            args.append(Value(loaded, scalar, width))
        made = write(code, args)
        assert made.scalar == result, (made.scalar, result)
        made = code.splat(made, width)
        stored, kind = made.name, _memory(result, width)
        if result == "bool":
            stored = code(f"zext {made.type} {made.name} to {kind}")
        code.store(kind, stored, "%y", at, _memory(result, 0))
    return code.text(private=False)


@cache
def _machine(processor: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    if processor == "host":
        name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        return target.create_target_machine(cpu=name, features=features, opt=2, jit=True)
    return target.create_target_machine(cpu=processor, features="", opt=2, jit=True)


_engines: list[Any] = []  # an engine takes its machine with it, which others share


class Compiled:
    """Functions of one module, by name."""

    def __init__(self, functions: Iterable[str], processor: str) -> None:
        machine = _machine(processor)
        parsed = llvm.parse_assembly(module(*functions))
        parsed.verify()
        outside = [each.name for each in parsed.functions if each.is_declaration]
        assert all(each.startswith("llvm.") for each in outside), outside
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(
            parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        )
        self.engine = llvm.create_mcjit_compiler(parsed, machine)
        self.engine.finalize_object()
        _engines.append(self.engine)

    def __call__(self, name: str, operands: Sequence[Array], result: Any, width: int) -> Array:
        """One function over arrays of one length."""
        count = operands[0].size
        padded = [np.concatenate([each, np.repeat(each[-1:], -count % max(width, 1))]) for each in operands]
        made = np.empty(padded[0].size, result)
        addresses = [each.ctypes.data for each in padded]
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64)(
            self.engine.get_function_address(name)
        )
        run(*[*addresses, 0, 0][:3], made.ctypes.data, made.size)
        return made[:count]
